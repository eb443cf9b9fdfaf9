"""The objective of all rows and its gradient, for an optimizer that makes its updates itself."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skort.optim.batches import Batches, HostBatch, fill
from skort.optim.transforms import norm
from skort.solvers.base import Problem
from skort.solvers.step import BackendStep


class _Point(NamedTuple):
    """A vector of all weights, and the values there."""

    weights: np.ndarray
    #: The objective and the loss.
    means: tuple[float, float]
    gradient: np.ndarray


class FullStep:
    """
    A `TrainStep` whose optimizer asks for the objective of all rows and its gradient.

    The rows are read block by block, and the gradients of the blocks are added in float64.
    """

    def __init__(
        self,
        problem: Problem,
        step: BackendStep,
        batches: Batches,
        tol: float | None,
        is_exact: bool = True,
    ):
        _check(problem)
        self.batch, self._step, self._batches, self._dtype = (
            step.batch,
            step,
            batches,
            problem.objective.dtype,
        )

        # The blocks of rows that the step can read in place, and the block that it reads now.
        self._blocks = batches.blocks() if isinstance(step.batch, HostBatch) else None
        self._rows: slice | None = None
        optimizer: Any = problem.update.optimizer
        self._optimizer = optimizer
        self._tolerances = optimizer.tolerances(tol, problem.objective.dtype, is_exact=is_exact)
        self.step, self.weights, self.is_finite = step.step, step.weights, step.is_finite
        self.state = step.state
        self.restore = step.restore
        self._now = _Point(np.empty(0), (np.nan, np.nan), np.zeros(sum(problem.n_weights())))

    def objective(self) -> float:
        """Return the objective of all rows."""
        return self._now.means[0]

    def means(self) -> tuple[float, float]:
        """Return the objective and the loss of all rows."""
        return self._now.means

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the gradient."""
        return norm(self._now.gradient)

    def evaluate(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient at a vector of all weights, and stay there."""
        if np.array_equal(vector, self._now.weights):
            return self.objective(), self._now.gradient

        step = self._step
        gradient = np.zeros_like(self._now.gradient)

        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            step.backend.load({"weights": vector.astype(self._dtype)})
            for share in self._pass():
                step.step(0.0, share)
                gradient += share * step.backend.last_gradient()

        self._now = _Point(vector.copy(), step.means(), gradient)
        return self.objective(), gradient

    def _pass(self):
        """Let the step read each block of rows in turn; yield the block's share of all rows."""
        if self._blocks is None:
            yield from (portion.share for portion in self._batches.epoch(self.batch))
            return

        for rows in self._blocks:
            if rows is not self._rows:
                X, target, *_ = self._batches.data
                fill(
                    self.batch,
                    X[rows],
                    target[rows],
                    self._batches.sample_weight[rows],
                    1.0,
                    self._step.read,
                )
                self._rows = rows

            yield (rows.stop - rows.start) / self._batches.n_rows

    def minimise(self, max_iter: int, after: Callable[[], bool]) -> str | None:
        """
        Let the optimizer make up to `max_iter` iterations, and call `after` after each.

        Return why the optimizer ended, or None if `after` ended it.
        """
        start = self._step.state()["weights"].astype(np.float64)
        self.evaluate(start)
        reached = self._now

        def call(vector):
            nonlocal reached
            self.evaluate(vector)
            reached = self._now
            return after()

        reason = self._optimizer.minimise(self.evaluate, start, self._tolerances, max_iter, call)
        self._now = reached  # The last trial point may be worse than the last iteration.
        self._step.backend.load({"weights": reached.weights.astype(self._dtype)})
        return reason


def _check(problem):
    """Raise an error for an objective that is not a smooth function of the weights alone."""
    smooth = problem.objective.loss.smooth_instead
    if smooth is not None:
        raise ValueError(
            'optimizer="lbfgs" needs a smooth objective, and the loss has a kink. Use '
            f'loss="{smooth}", or another optimizer, such as "adam".'
        )
    if problem.terms.l1 is not None:
        raise ValueError(
            'optimizer="lbfgs" needs a smooth objective, and the penalty has an l1 term. Use '
            'penalty="l2", or another optimizer, such as "adam".'
        )
    if problem.score_graph.dropout:
        raise ValueError(
            'optimizer="lbfgs" needs an objective that is a function of the weights, and '
            "Dropout draws masks. Export the model in evaluation mode, or use another "
            'optimizer, such as "adam".'
        )
