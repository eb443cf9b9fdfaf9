"""What the parameters of an estimator say before a fit."""

from skort.estimators.nesting import FIT_STEP_FIRST, model_inside, steps_to_fit
from skort.estimators.own_terms import chosen_loss
from skort.objective.loss import as_loss

__all__ = ["can_partial_fit", "check_same_model", "loss_before_fit"]


def loss_before_fit(estimator):
    """Return the loss that a fit would have, or None where its parameters are not as they must be."""
    try:
        own = estimator._own_objective(None if estimator.estimator is None else model_inside(estimator.estimator))
        return as_loss(chosen_loss(estimator, own, estimator._losses, estimator._default_loss))
    except (ValueError, KeyError):  # fit raises it
        return None


def can_partial_fit(estimator):
    """Raise an AttributeError where steps before the model need a fit."""
    for name in steps_to_fit(estimator.estimator):
        raise AttributeError(f"partial_fit does not fit the step {name!r} before the model. {FIT_STEP_FIRST}")
    return True


def check_same_model(estimator, before, now, dtype):
    """Raise an error where the parameters that say what is trained are others than in earlier calls, with `dtype`."""
    for name, value in now.items():
        if value != before[name]:
            raise ValueError(
                f"{name} was changed since the last fit, and partial_fit goes on with the model of that fit. Call fit, "
                "or set it back."
            )
    if estimator.dtype != dtype:
        raise ValueError(f"dtype={estimator.dtype!r}, but earlier calls had dtype={dtype!r}. Call fit, or set it back.")
