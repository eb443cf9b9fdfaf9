"""What somebody may have meant by a parameter that is refused."""

import difflib
from collections.abc import Mapping
from numbers import Real
from typing import Any

from sklearn.utils._param_validation import StrOptions

# The names that other libraries have for what is here.
_ALSO_KNOWN_AS = {
    "mse": "squared_error",
    "mean_squared_error": "squared_error",
    "l2_loss": "squared_error",
    "mae": "absolute_error",
    "mean_absolute_error": "absolute_error",
    "l1_loss": "absolute_error",
    "pinball": "quantile",
    "bce": "log_loss",
    "binary_crossentropy": "log_loss",
    "categorical_crossentropy": "log_loss",
    "cross_entropy": "log_loss",
    "crossentropy": "log_loss",
    "logistic": "log_loss",
}


def hint(parameters: Mapping[str, Any], constraints: Mapping[str, Any]) -> str:
    """Return what somebody may have meant, as sentences with a space before each; empty where all is right."""
    hints = []
    for name, value in parameters.items():
        if name == "learning_rate" and isinstance(value, Real):
            hints.append(f" To set the rate, give eta0={value}.")
        options = set().union(*(c.options for c in constraints.get(name, ()) if isinstance(c, StrOptions)))
        if isinstance(value, str) and value not in options:
            known = [o for o in [_ALSO_KNOWN_AS.get(value.lower())] if o in options]
            nearest = known or difflib.get_close_matches(value, options, 1, 0.5)
            hints.extend(f" Did you mean {name}={o!r}?" for o in nearest)
    return "".join(hints)
