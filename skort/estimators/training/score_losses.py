"""The losses of some scores and targets, without a model."""

import numpy as np

from skort.objective.loss import ScoreLoss


def row_losses(loss: ScoreLoss, score: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the loss of each row, summed over its columns, in float32."""
    from skort.solvers.loss_graph import ROW_LOSSES

    return weighted_losses(loss, score, target, 1.0, ROW_LOSSES).sum(axis=1)


def weighted_losses(
    loss: ScoreLoss, score: np.ndarray, target: np.ndarray, weight: float, output: str
) -> np.ndarray:
    """
    Return the sum of the losses of rows that all have a weight,
    or the losses of the rows, `ROW_LOSSES`.
    """
    from skort.objective.objective import SAMPLE_WEIGHT, TARGET, Objective
    from skort.solvers.loss_graph import SCORE, loss_model

    objective = Objective(loss, None, (), score.shape[1], np.dtype(np.float32))
    inputs = {SCORE: score, TARGET: target, SAMPLE_WEIGHT: np.full((len(score), 1), weight)}
    with np.errstate(over="ignore"):
        inputs = {name: array.astype(np.float32) for name, array in inputs.items()}
    return loss_model(objective).run(output, inputs).astype(np.float64)
