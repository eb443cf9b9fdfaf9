"""What a user may give as an instance: losses, penalties, optimizers, schedules."""

import functools
import inspect

from sklearn.base import BaseEstimator, clone

from skort.descent.schedules import rate

__all__ = ["checked_schedule", "named", "parameter_names", "resolved"]


@functools.cache
def parameter_names(cls):
    """Return the names of the parameters of a scikit-learn class, which `get_params` finds anew in every call."""
    return tuple(inspect.signature(cls).parameters)


def named(cls, estimator):
    """Return a component of this class, with the parameters that an estimator has of its own under the same names."""
    return _checked(cls(**{name: getattr(estimator, name) for name in parameter_names(cls)}))


def resolved(component):
    """
    Return a component as training uses it.

    Parameters
    ----------
    component : object
        A loss, penalty, optimizer or schedule; None and plain functions are returned as they are.

    Returns
    -------
    component : object
        A clone: what training changes in it is no business of the caller's.

    Raises
    ------
    ValueError
        Where it, or a component inside it, is a class, and where a parameter of either is not as it must be.
    """
    _checked(component)
    return clone(component) if isinstance(component, BaseEstimator) else component


def _checked(component):
    for part in (component, *(component.get_params().values() if isinstance(component, BaseEstimator) else ())):
        if isinstance(part, type):
            raise ValueError(f"{part.__name__} is a class: give an instance of it, {part.__name__}().")
        if hasattr(part, "_parameter_constraints"):
            part._validate_params()
    return component


def checked_schedule(schedule):
    """Return a schedule, t -> learning rate; raise an error where its first rate is none."""
    rate(schedule, 1)
    return schedule
