"""What has parameters as scikit-learn's estimators have them: estimators, losses, penalties, optimizers, schedules."""

import copy
import functools
import importlib.metadata
from collections.abc import Callable, Hashable
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import validate_parameter_constraints


def project_address(name: str) -> str:
    """Return an address of `project.urls` in pyproject.toml; an empty one where skort runs without being installed."""
    try:
        urls = importlib.metadata.metadata("skort").get_all("Project-URL") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    return dict(url.split(", ", 1) for url in urls).get(name, "")


#: The address of the pages
DOCUMENTATION = project_address("Documentation")

#: Types of values that nobody changes in place.
PLAIN = frozenset({str, int, float, bool, type(None)})
# Class, name of a parameter and value: many fits have the same ones.
_PASSED: set[tuple[Any, ...]] = set()
_MOST = 10_000


@functools.cache
def parameter_names(cls: Hashable) -> tuple[str, ...]:
    """Return the names of the parameters of a class as scikit-learn does, which finds them anew in every call."""
    return tuple(BaseEstimator._get_param_names.__func__(cls))  # type: ignore[attr-defined]


def own_copy(part: Any, deep: Callable[[Any], Any]) -> Any:
    """Return a `deep` copy of an object, in less time where it holds nothing that anybody changes in place."""
    if not all(type(value) in PLAIN or type(value) is tuple for value in vars(part).values()):
        return deep(part)
    copied = object.__new__(type(part))
    vars(copied).update(vars(part))
    return copied


class Component(BaseEstimator):
    """A scikit-learn estimator that looks up its parameters' names once a class, and validates a value once."""

    _parameter_constraints: dict[str, Any] = {}

    @classmethod
    def _get_param_names(cls):
        return list(parameter_names(cls))  # type: ignore[arg-type]  # classes are hashable

    def _validate_params(self):
        _validate_new(self)


def _validate_new(part):
    """Raise scikit-learn's error for an invalid parameter; a value of a class that has passed is not looked at."""
    cls, unknown, keys = type(part), {}, []
    for name in parameter_names(cls):  # type: ignore[arg-type]  # classes are hashable
        value = getattr(part, name)
        key = (cls, name, type(value), value) if type(value) in PLAIN else None
        if key is None or key not in _PASSED:
            unknown[name] = value
            keys.append(key)
    if unknown:
        validate_parameter_constraints(part._parameter_constraints, unknown, caller_name=cls.__name__)
        if len(_PASSED) > _MOST:
            _PASSED.clear()
        _PASSED.update(key for key in keys if key is not None)


class DocumentationLink:
    """Links the diagram that scikit-learn draws of an estimator to the page of its class."""

    # Without an address no link
    _doc_link_module = "skort" if DOCUMENTATION else ""
    _doc_link_template = DOCUMENTATION + "api/{name}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        """Return the name by which users import the class, such as ``skort.dask.OrtSGDRegressor``."""
        return {"name": f"{type(self).__module__}.{type(self).__name__}"}


def with_defaults(value: Any, base: type, method: str) -> Any:
    """Return a user's object as one of a base that declares the rest; None where it lacks the method that it needs."""
    if isinstance(value, base):
        return value
    if isinstance(value, type) or not hasattr(value, method):
        return None
    return completed(value, base)


class Completed:
    """An object of a user's class that has what a base declares, too: a copy of the user's, which files hold."""


def completed(value: Any, base: type) -> Any:
    """Return a user's object as one of a base, too."""
    copied = copy.copy(value)
    copied.__class__ = _completed_class(type(value), base)  # type: ignore[arg-type]  # classes are hashable
    return copied


def what_was_completed(value: Completed) -> tuple[Any, type]:
    """Return the user's object, and the base."""
    given, base, _ = type(value).__bases__
    original = given.__new__(given)  # type: ignore[call-overload]
    vars(original).update(vars(value))
    return original, base


@functools.cache
def _completed_class(given: type, base: type) -> type:
    attributes = {"__reduce__": lambda self: (completed, what_was_completed(self)), "__module__": given.__module__}
    return type(given.__name__, (given, base, Completed), attributes)


def check_parameters(part: Any) -> None:
    """Raise scikit-learn's error for an invalid parameter of anything that says what its parameters may be."""
    if hasattr(part, "_parameter_constraints"):
        # scikit-learn's own makes all constraints anew.
        is_theirs = getattr(type(part), "_validate_params", None) is BaseEstimator._validate_params
        (_validate_new if is_theirs else type(part)._validate_params)(part)
