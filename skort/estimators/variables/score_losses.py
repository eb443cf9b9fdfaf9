"""A loss as a function of scores and targets, without a model; and its unit."""

import numpy as np

from skort.objective.loss import ScoreLoss

#: The positive numbers of float32. Sample weights are divided by the unit of a loss in float32.
USABLE = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)

# The most steps of a search for a constant score, and the size of its last one in scales of y.
_MOST_STEPS = 100
_LAST_STEP = 0.05


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


def reads_together(loss: ScoreLoss, n_outputs: int) -> bool:
    """Return whether a loss of several columns of scores has one number for a row."""
    return n_outputs > 1 and loss.weight_scale(n_outputs) == 1.0


def score_units(
    loss: ScoreLoss, mean: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """
    Return means and scales of the columns of a score, from those of the targets: zero and one for a
    column whose target does not change the loss.
    """
    is_read = reads_targets(loss, mean, scale)
    return np.where(is_read, mean, 0.0), np.where(is_read, scale, 1.0)


def reads_targets(loss: ScoreLoss, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return whether the target of each column, of a mean and a scale, changes the loss."""
    target = mean + np.concatenate([scale[None], scale + np.diag(scale)])
    losses = ScoreLosses(loss, len(mean)).of_rows(np.zeros(target.shape), target)
    return losses[1:] != losses[0]


def loss_unit(
    loss: ScoreLoss, score: np.ndarray, mean: np.ndarray, scale: float | np.ndarray
) -> float:
    """
    Return twice the mean loss of a constant score for the targets `mean` ± `scale`. For half the
    squared error at the mean, it is `scale` squared.
    """
    losses, target = ScoreLosses(loss, len(mean)), _around(mean, scale)
    weight = loss.weight_scale(len(mean)) / 2
    unit = 2 * losses.total(np.tile(score, (2, 1)), target, weight)
    return unit if USABLE[0] <= unit <= USABLE[1] else 1.0


def best_constant_score(loss: ScoreLoss, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """
    Return a constant score of nearly the least loss for the targets `mean` ± `scale`, found from
    the mean, or zero where the target is not read, by steps of one column at a time; this beginning
    itself if the search has no end.
    """
    losses, target = ScoreLosses(loss, len(mean)), _around(mean, scale)

    def at(scores):
        of_rows = losses.of_rows(np.repeat(scores, 2, axis=0), np.tile(target, (len(scores), 1)))
        is_number = np.isfinite(of_rows)
        return np.where(is_number, of_rows, np.inf).reshape(-1, 2).sum(axis=1)

    first, scale = score_units(loss, mean, scale)
    score, steps = first, scale
    least = at(first[None])[0]
    for _ in range(_MOST_STEPS):
        moves = np.concatenate([np.diag(steps), -np.diag(steps)])
        found = at(score + moves)
        best = int(np.argmin(found))
        if found[best] < least:
            score, least = score + moves[best], found[best]
            steps = np.where(moves[best] != 0, 2 * steps, steps)
        elif (steps <= _LAST_STEP * scale).all():
            return score
        else:
            steps = steps / 2
    return first


def _around(mean, scale):
    """Return two targets, the mean plus and minus a scale."""
    return mean + np.array([1.0, -1.0])[:, None] * scale
