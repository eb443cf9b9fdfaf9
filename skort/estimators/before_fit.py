"""What the parameters of an estimator say before a fit."""

from skort.estimators.model.nesting import FIT_STEP_FIRST, model_inside, steps_to_fit
from skort.estimators.training.config import what_is_inside
from skort.estimators.training.terms import chosen_loss, own_objective_of
from skort.objective.loss import as_loss


def loss_before_fit(estimator):
    """Return the loss that a fit would have, or None where its parameters are not as they must be."""
    try:
        own = own_objective_of(estimator, None if estimator.estimator is None else model_inside(estimator.estimator))
        return as_loss(chosen_loss(estimator, own))
    except (ValueError, KeyError):  # fit raises it
        return None


def can_partial_fit(estimator):
    """Raise an AttributeError where steps before the model need a fit."""
    for name in steps_to_fit(estimator.estimator):
        raise AttributeError(f"partial_fit does not fit the step {name!r} before the model. {FIT_STEP_FIRST}")
    return True


def check_same_model(estimator, config):
    """Raise an error where the parameters that say what is trained are others than in earlier calls."""
    now = what_is_inside(estimator)
    for name, value in now.items():
        if value != config.inside[name]:
            raise ValueError(
                f"{name} was changed since the last fit, and partial_fit goes on with the model of that fit. Call fit, "
                "or set it back."
            )
    if estimator.dtype != config.dtype:
        raise ValueError(
            f"dtype={estimator.dtype!r}, but earlier calls had dtype={config.dtype!r}. Call fit, or set it back."
        )
