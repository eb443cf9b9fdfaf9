"""The parameters of an estimator: as values to compare, and as components of a training."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator

from skort.common.component import PLAIN, check_parameters, parameter_names

# The parameters that say nothing about the steps.
_NO_SETTINGS = ("estimator", "trainable", "callbacks", "client", "n_groups")
# It replaces a NaN, which does not equal itself.
_NAN = ("NaN",)


def given_parameters(estimator: Any, device: Any) -> dict[str, Any]:
    """Return the parameters that a plan is made from, as values. The device is one of this machine."""
    names = [name for name in estimator._parameter_constraints if name not in _NO_SETTINGS]
    return {**_values(estimator, names), "device": device}


def names_left_open(given: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the parameters that leave their matter to skort."""
    return frozenset(
        name for name, value in given.items() if isinstance(value, str) and value == "auto"
    )


def parameters_inside(estimator: Any) -> dict[str, Any]:
    """Return the parameters that decide which weights are trained, as values."""
    return _values(estimator, ("estimator", "trainable"))


def _values(estimator, names):
    """Return some parameters of an estimator as values, by name."""
    parameters = {name: getattr(estimator, name) for name in names}
    # Most are plain values, and each call of a stream compares all of them.
    return {
        name: value if type(value) in PLAIN else snapshot(value)
        for name, value in parameters.items()
    }


def snapshot(value: Any, model: Any = None, left_out: Collection[str] = ()) -> Any:
    """
    Return a value that equals later snapshots until the original changes, in place or not. The
    parameters `left_out` of `model` do not count.
    """
    if type(value) in PLAIN or isinstance(value, np.generic):
        return _equal_to_itself(value)

    # An array is its values, and so is an Index of pandas, such as X.columns. A Series has an
    # index, too.
    if hasattr(type(value), "__array__") and not hasattr(value, "index"):
        value = np.asarray(value)
        is_object = value.dtype.kind == "O"
        values = snapshot(value.tolist(), model, left_out) if is_object else value.tobytes()
        return value.shape, value.dtype.str, values

    if isinstance(value, FrozenEstimator):
        # It is fitted, and its parameters do not describe it.
        return value.estimator

    if isinstance(value, BaseEstimator):
        names = parameter_names(type(value))  # type: ignore[arg-type]  # classes are hashable
        return type(value), {
            name: snapshot(getattr(value, name, None), model, left_out)
            for name in names
            if not (value is model and name in left_out)
        }

    if isinstance(value, dict):
        # The order of the keys counts: it decides on the columns of an output, and between two
        # patterns.
        return [(key, snapshot(part, model, left_out)) for key, part in value.items()]

    if isinstance(value, (list, tuple)):
        return [snapshot(part, model, left_out) for part in value]
    return _equal_to_itself(value)


def _equal_to_itself(value):
    """Return a value, or one that equals itself in place of NaN, NaT or the NA of pandas."""
    is_equal = value == value
    if isinstance(is_equal, (bool, np.bool_)):
        return value if is_equal else _NAN

    # NA == NA is NA.
    return type(value) if is_equal is value else value


def are_equal(snapshots: Any, others: Any) -> bool:
    """Return whether snapshots are equal. Values without a plain comparison count as different."""
    try:
        return bool(snapshots == others)
    except ValueError:
        return False


def for_training(chosen: Any, given: Any, name: str) -> Any:
    """Return a validated component: a copy if the user gave it, as the user may change it."""
    return resolved(chosen, name) if chosen is given else validated(chosen)


def resolved(component: Any, name: str = "component") -> Any:
    """Return a copy of a component, validated."""
    validated(component, name)
    return clone(component) if isinstance(component, BaseEstimator) else component


def validated(component: Any, name: str = "component") -> Any:
    """Validate a component, and return it. The errors are those of `resolved`."""
    if isinstance(component, type):
        raise ValueError(
            f"{name}: {component.__name__} is a class: give an instance of it, "
            f"{component.__name__}()."
        )

    check_parameters(component)
    if isinstance(component, BaseEstimator):
        parts = [getattr(component, each) for each in parameter_names(type(component))]  # type: ignore[arg-type]  # classes are hashable
        for part in parts:
            if type(part) not in PLAIN:
                validated(part, name)

    return component
