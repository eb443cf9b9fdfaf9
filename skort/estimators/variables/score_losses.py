"""A loss as a function of scores and targets, without a model; and its unit."""

import numpy as np

from skort.objective.loss import ScoreLoss

#: The positive numbers of float32. Sample weights are divided by the unit of a loss in float32.
USABLE = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


class ScoreLosses:
    """A loss as a function of scores and targets, both of shape (n_rows, n_outputs)."""

    def __init__(self, loss: ScoreLoss, n_outputs: int, dtype: str = "float32"):
        from skort.objective.objective import Objective
        from skort.solvers.loss_graph import loss_model, score_gradient_model

        self.dtype = np.dtype(dtype)
        self._objective = Objective(loss, None, (), n_outputs, self.dtype)
        self._model = loss_model(self._objective)
        self._gradient = score_gradient_model(self._objective)

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

    def derived_gradients(self, score: np.ndarray, target: np.ndarray) -> np.ndarray | None:
        """Return the derivatives by the scores by skort's rules; None: an operator has no rule."""
        from skort.objective.objective import SCORE_GRADIENT
        from skort.solvers.loss_graph import derived_gradient_model

        model = derived_gradient_model(self._objective, len(score))
        try:
            gradients = model.run(SCORE_GRADIENT, self._inputs(score, target, 1.0))
        except Exception:  # an error of the runtime is no ValueError
            return None
        return gradients.astype(np.float64)

    def _inputs(self, score, target, weight):
        from skort.objective.objective import SAMPLE_WEIGHT, TARGET
        from skort.solvers.loss_graph import SCORE

        inputs = {SCORE: score, TARGET: target, SAMPLE_WEIGHT: np.full((len(score), 1), weight)}
        with np.errstate(over="ignore"):
            return {name: array.astype(self.dtype) for name, array in inputs.items()}


def loss_unit(loss: ScoreLoss, mean: np.ndarray, scale: float) -> float:
    """
    Return twice the mean loss of the score `mean` for the targets `mean` ± `scale`. For half the
    squared error, it is `scale` squared.
    """
    score = np.tile(mean, (2, 1))
    weight = loss.weight_scale(len(mean)) / 2
    target = score + np.array([[scale], [-scale]])
    unit = 2 * ScoreLosses(loss, len(mean)).total(score, target, weight)
    return unit if USABLE[0] <= unit <= USABLE[1] else 1.0
