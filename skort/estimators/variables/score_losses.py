"""The losses of scores and targets, and their derivatives, without a model."""

import numpy as np

from skort.objective.loss import ScoreLoss


class ScoreLosses:
    """A loss as a function of scores and targets, both of shape (n_rows, n_outputs)."""

    def __init__(self, loss: ScoreLoss, n_outputs: int, dtype: str = "float32"):
        from skort.objective.objective import Objective
        from skort.solvers.loss_graph import loss_model, score_gradient_model

        self.dtype = np.dtype(dtype)
        objective = Objective(loss, None, (), n_outputs, self.dtype)
        self._model = loss_model(objective)
        self._gradient = score_gradient_model(objective)

    @property
    def has_gradient(self) -> bool:
        """Whether the loss has a gradient of its own."""
        return self._gradient is not None

    def of_rows(self, score: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return the loss of each row, summed over its columns."""
        from skort.solvers.loss_graph import ROW_LOSSES

        losses = self._model.run(ROW_LOSSES, self._inputs(score, target, 1.0))
        return losses.astype(np.float64).sum(axis=1)

    def total(self, score: np.ndarray, target: np.ndarray, weight: float) -> float:
        """Return the sum of the losses of rows, all with the same weight."""
        from skort.objective.objective import LOSS

        return float(self._model.run(LOSS, self._inputs(score, target, weight)))

    def gradients(self, score: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return the derivatives of the losses by the scores, as the loss defines them."""
        from skort.objective.objective import SCORE_GRADIENT

        assert self._gradient is not None  # `has_gradient`
        gradients = self._gradient.run(SCORE_GRADIENT, self._inputs(score, target, 1.0))
        return gradients.astype(np.float64)

    def _inputs(self, score, target, weight):
        from skort.objective.objective import SAMPLE_WEIGHT, TARGET
        from skort.solvers.loss_graph import SCORE

        inputs = {SCORE: score, TARGET: target, SAMPLE_WEIGHT: np.full((len(score), 1), weight)}
        with np.errstate(over="ignore"):
            return {name: array.astype(self.dtype) for name, array in inputs.items()}
