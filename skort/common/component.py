"""What has parameters as scikit-learn's estimators have them: estimators, losses, penalties, optimizers, schedules."""

import weakref
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import validate_parameter_constraints

__all__ = ["Component"]

_NAMES: weakref.WeakKeyDictionary[type, list[str]] = weakref.WeakKeyDictionary()
_PLAIN = (str, int, float, bool, type(None))
# Class, name of a parameter and value: many fits have the same ones.
_PASSED: set[tuple[Any, ...]] = set()
_MOST = 10_000


class Component(BaseEstimator):
    """
    A scikit-learn estimator that looks up the names of its parameters once a class.

    A number or text that has passed the validation of a parameter is not validated again.
    """

    _parameter_constraints: dict[str, Any] = {}

    @classmethod
    def _get_param_names(cls):
        if cls not in _NAMES:
            _NAMES[cls] = super()._get_param_names()
        return list(_NAMES[cls])

    def _validate_params(self):
        values = {name: getattr(self, name) for name in self._get_param_names()}
        keys = {name: (type(self), name, type(v), v) for name, v in values.items() if type(v) in _PLAIN}
        unknown = {name: value for name, value in values.items() if name not in keys or keys[name] not in _PASSED}
        validate_parameter_constraints(self._parameter_constraints, unknown, caller_name=type(self).__name__)
        if len(_PASSED) > _MOST:
            _PASSED.clear()
        _PASSED.update(keys.values())
