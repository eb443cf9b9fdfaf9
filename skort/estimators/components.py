"""What a user may give as an instance: losses, penalties, optimizers, schedules."""

from sklearn.base import BaseEstimator, clone

from skort.descent.schedules import rate

__all__ = ["checked_schedule", "resolved"]


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
        Where it is a class, or one of its parameters, or of those of a component inside it, is not as it must be.
    """
    if isinstance(component, type):
        raise ValueError(f"{component.__name__} is a class: give an instance of it, {component.__name__}().")
    if not isinstance(component, BaseEstimator):
        return component
    component = clone(component)
    for part in (component, *component.get_params().values()):
        if hasattr(part, "_parameter_constraints"):
            part._validate_params()
    return component


def checked_schedule(schedule):
    """Return a schedule, t -> learning rate; raise an error where its first rate is none."""
    rate(schedule, 1)
    return schedule
