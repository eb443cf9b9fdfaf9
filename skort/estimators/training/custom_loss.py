"""What is wrong with a custom loss whose training fails."""

import numpy as np

from skort.estimators.training.score_losses import row_losses
from skort.exceptions import NotTrainableError
from skort.objective.loss import ScoreLoss
from skort.optim.standardization import moments

# A gradient with a larger error than this is that of another function. Rounding has about 1e-9.
_WRONG = 0.1
# Scores so many standard deviations of y from a target are far from it.
_FAR = 1e3
_FARTHER = 1e5
# A negative loss that grows by this factor from the far score to the farther one does not level off.
_FALLS = 50
# The step of the differences, in standard deviations of y.
_STEP = 1e-6
# The number of rows at which a gradient is compared.
_N_ROWS = 8


def check_differentiable(loss: ScoreLoss, n_outputs: int) -> None:
    """Raise a NotTrainableError that names an operator for which no solver has a gradient."""
    if loss.gradient_function(n_outputs) is not None:
        return

    from skort.graphs.differentiable import runtime_gradient
    from skort.graphs.gradient.reverse import rule_gradient
    from skort.objective.objective import Objective
    from skort.solvers.derived_gradients import check_loss

    objective = Objective(loss, None, (), n_outputs, np.dtype(np.float32))
    try:
        check_loss(objective, 1, rule_gradient)
    except NotTrainableError:
        try:
            check_loss(objective, 1, runtime_gradient)
        except NotTrainableError:
            pass
        else:
            return
        raise


def fault_of(loss: ScoreLoss, target: np.ndarray) -> str:
    """
    Return what is wrong with a custom loss, and what to do about it; "" if nothing is found.

    Its gradient is not the derivative of its value, or its value falls without end.
    """
    if not loss.is_custom:
        return ""
    return _wrong_gradient(loss, target) or _no_lower_bound(loss, target)


def _wrong_gradient(loss, target):
    """Return what is said of a gradient that is far from finite differences of the value, or ""."""
    if loss.gradient_function(target.shape[1]) is None:
        return ""

    from skort.solvers.part_gradient import differentiated_part, gradient_error

    some = target[:_N_ROWS]
    # No score is at its target, where a loss may have a kink.
    parts = np.linspace(-0.93, 0.87, some.size).reshape(some.shape)
    value, score, gradient = differentiated_part(loss, some + parts * _unit(target), some)
    error = gradient_error(value, score, gradient, _STEP * _unit(target))
    if not error > _WRONG:
        return ""
    return (
        "The gradient of the loss is not the derivative of its value: "
        f"skort.gradients.check_gradient(loss, score, y) returns {error:.2g}, and about 1e-9 for a "
        "right one; score and y have the shape (n_rows, n_outputs). Correct it, or leave it out, "
        "unless that is meant."
    )


def _no_lower_bound(loss, target):
    """Return what is said of a value that falls in proportion to the distance to y, or ""."""
    ends = np.concatenate([target.argmin(axis=0), target.argmax(axis=0)])
    y = target[ends]
    columns = np.tile(np.eye(target.shape[1]), (2, 1)) * _unit(target)

    for side in (columns, -columns):
        far, farther = (row_losses(loss, y + d * side, y) for d in (_FAR, _FARTHER))
        falls = np.isfinite(farther) & (far < 0) & (farther < _FALLS * far)
        if falls.any():
            row = int(np.argmax(falls))
            return (
                f"The loss seems to have no lower bound: for one y, it is {far[row]:.3g} at a score "
                f"{_FAR:,.0f} standard deviations away, and {farther[row]:.3g} at {_FARTHER:,.0f}. "
                "Check its sign."
            )
    return ""


def _unit(target):
    """Return the standard deviations of the target's columns; 1 for constant ones."""
    deviation = moments(target, None)[1]
    return np.where(deviation > 0, deviation, 1.0)
