"""The unit of a loss that is known only in the units of y, such as a custom one."""

import numpy as np

from skort.estimators.variables.score_losses import ScoreLosses
from skort.objective.loss import ScoreLoss

# Sample weights are divided by the unit in float32.
_USABLE = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


def is_of_y(loss: ScoreLoss, n_outputs: int) -> bool:
    """Return whether a regressor's loss is known only in the units of y, in which its score is, too."""
    return (
        not (loss.has_units or loss.weight_names) and loss.inverse_link_function(n_outputs) is None
    )


def has_units(loss: ScoreLoss, n_outputs: int) -> bool:
    """Return whether a regressor's loss can be minimised with a standardized y."""
    return loss.has_units or is_of_y(loss, n_outputs)


def loss_unit(loss: ScoreLoss, mean: np.ndarray, scale: float) -> float:
    """
    Return twice the mean loss of the score `mean` for the targets `mean` ± `scale`. For half the
    squared error, it is `scale` squared.
    """
    score = np.tile(mean, (2, 1))
    weight = loss.weight_scale(len(mean)) / 2
    target = score + np.array([[scale], [-scale]])
    unit = 2 * ScoreLosses(loss, len(mean)).total(score, target, weight)
    return unit if _USABLE[0] <= unit <= _USABLE[1] else 1.0


def estimated_curvature(
    loss: ScoreLoss, n_outputs: int, start: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
) -> float:
    """Return an estimate of the largest second derivative of a row's loss by one column of its score."""
    # Long steps look across kinks. Their length is one for a classifier. For a regressor that
    # starts at a score s, it is the root mean square of s - y; it is one if that is zero, or if the
    # score is a logarithm.
    moved = np.repeat(np.eye(n_outputs), 3, axis=0)
    steps = np.array([[-1.0], [0.0], [1.0]] * n_outputs)

    if start is None:
        # One column moves, once for a row of its class and once for a row of the next class.
        target = np.concatenate([moved, np.roll(moved, 3, axis=0) if n_outputs > 1 else 1 - moved])
        moved, score, length = (
            np.tile(moved, (2, 1)),
            np.tile(steps * moved, (2, 1)),
            np.ones(n_outputs),
        )
    else:
        score, mean, deviation = (np.asarray(each, np.float64) for each in start)
        length = np.hypot(score - mean, deviation)
        has_link = loss.inverse_link_function(n_outputs) is not None
        length = np.where((length > 0) & np.isfinite(length) & (not has_link), length, 1.0)
        target, score = mean + steps * deviation, np.tile(score, (len(steps), 1))

    h = moved * length
    # In a loss of several columns, one column moves.
    losses = ScoreLosses(loss, n_outputs)
    below, here, above = (losses.of_rows(s, target) for s in (score - h, score, score + h))

    with np.errstate(all="ignore"):
        differences = np.abs(above - 2 * here + below)
        # Values are in float32: a smaller difference is rounding.
        is_bent = differences > 1e-6 * (np.abs(above) + 2 * np.abs(here) + np.abs(below))
        seconds = differences / (h**2).sum(axis=1)

    curvature = float(np.max(seconds, initial=0.0, where=is_bent & np.isfinite(seconds)))
    if not _USABLE[0] <= curvature <= _USABLE[1]:
        from skort.estimators.variables.custom_loss import check_differentiable, fault_of

        check_differentiable(loss, n_outputs)
        fault = fault_of(loss, target)
        if fault:
            raise ValueError(f"{fault} If a penalty does, give eta0 a number.")
        raise ValueError(
            f'eta0="auto": the loss {type(loss).__name__} does not say its largest second '
            "derivative, and float32 shows none around the targets of these rows. Give eta0 a "
            "number."
        )

    return curvature
