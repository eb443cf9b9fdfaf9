"""Suggestions in the errors for unknown names and values of parameters."""

import difflib
import functools
import inspect
from collections.abc import Mapping
from numbers import Real
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import InvalidParameterError, StrOptions

from skort.common.component import Component
from skort.optim.optimizers import OPTIMIZERS

# The names of values and parameters in other libraries.
_VALUES = {
    "squared_error": ("mse", "mean_squared_error", "l2_loss"),
    "absolute_error": ("mae", "mean_absolute_error", "l1_loss"),
    "quantile": ("pinball",),
    "log_loss": (
        "bce",
        "binary_crossentropy",
        "categorical_crossentropy",
        "cross_entropy",
        "crossentropy",
        "logistic",
    ),
}
_PARAMETERS = {
    "eta0": ("lr", "learning_rate_init"),
    "max_iter": ("epochs", "n_epochs", "num_epochs", "max_epochs", "n_iter"),
    "n_iter_no_change": ("patience",),
    "validation_fraction": ("validation_split",),
    "random_state": ("seed",),
    "loss": ("criterion",),
    "estimator": ("base_estimator", "model"),
    "max_grad_norm": ("clip_norm", "clipnorm"),
}


# A remark for those who may expect more of a parameter, because it does more in other libraries.
_ALONE = {
    "eta0": " It sets only the first learning rate: optimizer and learning_rate stay as they are."
}


def _nearest(given, known, other_names, cutoff):
    """Return the known names that have `given` as a synonym, else the most similar name, if any."""
    same = [name for name in known if given.lower() in other_names.get(name, ())]
    return same or difflib.get_close_matches(given, known, 1, cutoff)


def hint(parameters: Mapping[str, Any], constraints: Mapping[str, Any]) -> str:
    """Return sentences, each after a space, that suggest other values for unknown ones."""
    hints = []
    for name, value in parameters.items():
        if name == "learning_rate" and isinstance(value, Real):
            hints.append(f" To set the rate, give eta0={value}.")
        options = set().union(
            *(c.options for c in constraints.get(name, ()) if isinstance(c, StrOptions))
        )
        if isinstance(value, str) and value not in options:
            hints.extend(
                f" Did you mean {name}={o!r}?" for o in _nearest(value, options, _VALUES, 0.5)
            )

    return "".join(hints)


class NamedParameters(Component):
    """Parameters whose errors suggest a name or a value."""

    estimator: Any

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _with_hints(cls.__init__)  # type: ignore[method-assign]

    def set_params(self, **params: Any):  # noqa: D102 - it has scikit-learn's
        try:
            return super().set_params(**params)
        except ValueError as error:
            unknown = [
                name for name in params if name.partition("__")[0] not in self._get_param_names()
            ]
            hints = (name_hint(type(self), self.estimator, name, params[name]) for name in unknown)
            raise ValueError(f"{error}{next(hints, '')}") from None

    def _validate_params(self):
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            message = f"{error}{hint(self.get_params(deep=False), self._parameter_constraints)}"
            raise InvalidParameterError(message) from None


def _with_hints(init):
    """Return a constructor whose error for an unknown parameter suggests another one."""

    @functools.wraps(init)
    def __init__(self, *args, **given):
        try:
            init(self, *args, **given)
        except TypeError as error:
            unknown = [name for name in given if name not in inspect.signature(init).parameters]
            if not unknown:
                raise

            inside = args[0] if args else given.get("estimator")
            # Since Python 3.13, the error itself suggests a similar name.
            refused = str(error).partition(". Did you mean")[0]
            raise TypeError(
                f"{refused}.{name_hint(type(self), inside, unknown[0], given[unknown[0]])}"
            ) from None

    return __init__


def name_hint(cls: type[Component], inside: Any, name: str, value: Any) -> str:
    """Return a sentence, after a space, that suggests a parameter for an unknown one, if any."""
    of_optimizers = [
        each.__name__ for each in OPTIMIZERS.values() if name in each._get_param_names()
    ]
    nearest = _nearest(name, cls._get_param_names(), _PARAMETERS, 0.75)
    if nearest:
        alone = _ALONE.get(nearest[0], "") if name in _PARAMETERS.get(nearest[0], ()) else ""
        return f" Did you mean {nearest[0]}={value!r}?{alone}"
    if of_optimizers:
        return (
            f" It is a parameter of the optimizer: optimizer={of_optimizers[0]}({name}={value!r})."
        )
    if isinstance(inside, BaseEstimator):
        paths = [path for path in inside.get_params() if path == name or path.endswith(f"__{name}")]
        return (
            f" It is a parameter of the estimator inside: estimator__{paths[0]}." if paths else ""
        )

    # These imports take long.
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    is_classifier = issubclass(cls, ClassifierMixin)
    known_models = (
        (LogisticRegression, MLPClassifier) if is_classifier else (LinearRegression, MLPRegressor)
    )
    models = [each for each in known_models if name in each._get_param_names()]

    return (
        f" It is a parameter of the model inside: estimator={models[0].__name__}({name}={value!r})."
        if models
        else ""
    )
