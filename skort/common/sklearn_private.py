"""The private names of scikit-learn that skort uses; `docs/development.rst` says what for."""

from collections.abc import Callable
from typing import Any, TypeVar

import sklearn

try:
    from sklearn.base import _fit_context
    from sklearn.utils import _safe_indexing as safe_indexing
    from sklearn.utils._param_validation import (
        HasMethods,
        Interval,
        InvalidParameterError,
        Options,
        StrOptions,
        validate_parameter_constraints,
    )
    from sklearn.utils.multiclass import (
        _check_partial_fit_first_call as check_partial_fit_first_call,
    )
    from sklearn.utils.validation import _check_sample_weight as check_sample_weight
    from sklearn.utils.validation import _num_samples as num_samples
except ImportError as _error:
    raise ImportError(
        f"This version of skort does not know scikit-learn {sklearn.__version__}: {_error}. Install "
        'a newer skort, or an older scikit-learn: pip install "scikit-learn<'
        f'{sklearn.__version__}".'
    ) from _error

__all__ = [
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "Options",
    "StrOptions",
    "check_partial_fit_first_call",
    "check_sample_weight",
    "fit_context",
    "input_indices",
    "num_samples",
    "safe_indexing",
    "validate_parameter_constraints",
]

Method = TypeVar("Method", bound=Callable[..., Any])


def fit_context(method: Method) -> Method:
    """
    Return a method that checks all parameters first, unless scikit-learn's configuration says no.

    The steps of a pipeline in `estimator` are fitted in it, and check their own parameters.
    """
    checked: Method = _fit_context(prefer_skip_nested_validation=False)(method)
    return checked


def input_indices(columns: Any) -> dict[str, list[int]]:
    """Return the columns of X that each part of a `ColumnTransformer` takes; {} before its fit."""
    taken: dict[str, list[int]] = getattr(columns, "_transformer_to_input_indices", {})
    return taken
