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
        Where it, or a component inside it, is a class, and where a parameter of either is not as it must be.
    """
    is_component = isinstance(component, BaseEstimator)
    for part in (component, *(component.get_params().values() if is_component else ())):
        if isinstance(part, type):
            raise ValueError(f"{part.__name__} is a class: give an instance of it, {part.__name__}().")
        if hasattr(part, "_parameter_constraints"):
            part._validate_params()
    return clone(component) if is_component else component


def checked_schedule(schedule):
    """Return a schedule, t -> learning rate; raise an error where its first rate is none."""
    rate(schedule, 1)
    return schedule
