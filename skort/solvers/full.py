"""The objective of all rows and its gradient, for an optimizer over all rows."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skort.graphs.training_mode import WITHOUT_DROPOUT
from skort.optim.batches import Batches
from skort.optim.descent import Point, is_near
from skort.optim.standardization import spread_of_gram
from skort.optim.transforms import norm
from skort.solvers.base import BackendStep, Problem
from skort.solvers.whitening import Whitener

# The curvature of a row is about the same for so many iterations: `python -m benchmarks.lbfgs`.
_STAGE = 10
# Where few rows bend, which these are changes faster, and variables cost less.
_LEAST_STAGE = 3
# A fit that begins with the curvatures of another one keeps them for so many stages, and ends at
# this part of the objective from the least one: `python -m benchmarks.lbfgs --searches`.
_STAGES_AT_ONCE = 4
_DISTANCE = 1e-7
_LEAST_PART = 0.3


class _Block(NamedTuple):
    """Rows that a step reads where they are."""

    X: np.ndarray
    target: np.ndarray
    #: ndarray of shape (n_rows, 1).
    sample_weight: np.ndarray
    #: The number of rows of the block over that of all rows.
    share: float


class FullStep:
    """
    A `TrainStep` whose optimizer asks for the objective of all rows and its gradient.

    The rows are read block by block, and the gradients of the blocks are added in float64. The
    optimizer works in the variables of a `Whitening`, which is found anew after some iterations if
    the curvature of the rows is known; without a `Whitener` in the weights. Far from an optimum,
    numbers may overflow: the caller has numpy ignore it.
    """

    def __init__(
        self,
        problem: Problem,
        step: BackendStep,
        batches: Batches,
        tolerances: Any = None,
        whitener: Whitener | None = None,
    ):
        self.batch: Any = step.batch
        self._step = step
        self._batches = batches
        self._dtype = problem.objective.dtype
        optimizer: Any = problem.update.optimizer
        self._optimizer = optimizer
        self._tolerances = tolerances if whitener is None else _scaled(tolerances)
        self._l1 = problem.terms.l1
        #: Whether the gradient of the loss jumps.
        self.has_kink: bool = problem.objective.loss.smooth_instead is not None
        self._whitener: Any = whitener
        self._whitening = None if whitener is None else whitener.begin()
        # Whether the variables are for the curvatures that the losses of the rows have at some
        # weights.
        self._is_curved = whitener is not None and whitener.knows_curvatures

        # The blocks of rows that the step can read in place, and the block that it reads now.
        self._blocks = None if step.read is None else _blocks(batches)
        self._read: _Block | None = None
        # The variables whose weights the step has.
        self._loaded: np.ndarray | None = None

        self.step: Callable[[float, float], None] = step.step
        self.weights: Callable[[], dict[str, np.ndarray]] = step.weights
        self.state: Callable[[], dict[str, np.ndarray]] = step.state
        self.restore: Callable[[dict[str, np.ndarray]], None] = step.restore
        self._now = Point(np.empty(0), np.nan, np.zeros(sum(problem.n_weights)))

    def objective(self) -> float:
        """Return the objective of all rows."""
        return self._now.objective

    def means(self) -> tuple[float, float]:
        """Return the objective and the loss of all rows."""
        return self._now.objective, self._now.loss

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the gradient by the variables."""
        return norm(self._now.gradient)

    def is_finite(self) -> bool:
        """Return whether all variables are finite."""
        return bool(np.isfinite(self._now.weights).all())

    def evaluate(self, variables: np.ndarray) -> Point:
        """Return the objective, its gradient and the loss at variables, after a pass over all rows."""
        step = self._step
        by_weights: Any = None

        self._load(variables)
        for share in self._pass():
            step.step(0.0, share)
            part = share * step.backend.last_gradient().astype(np.float64)
            by_weights = part if by_weights is None else by_weights + part

        gradient = self._gradient_of(by_weights)
        objective, loss = step.means()
        return Point(variables, objective, gradient, loss, by_weights)

    def _load(self, variables):
        """Give the step the weights of a vector of variables, and return them."""
        weights = self.weights_of(variables)
        self._step.backend.load({"weights": weights.astype(self._dtype)})
        self._loaded = variables
        return weights

    def variables_of(self, weights: np.ndarray) -> np.ndarray:
        """Return the variables of a vector of weights."""
        return weights if self._whitening is None else self._whitening.variables(weights)

    def weights_of(self, variables: np.ndarray) -> np.ndarray:
        """Return the weights of a vector of variables."""
        return variables if self._whitening is None else self._whitening.weights(variables)

    def _gradient_of(self, by_weights):
        """Return the gradient by the variables, from that by the weights."""
        return by_weights if self._whitening is None else self._whitening.gradient(by_weights)

    def _pass(self):
        """Let the step read each block of rows in turn; yield the block's share of all rows."""
        if self._blocks is None:
            yield from (portion.share for portion in self._batches.epoch(self.batch))
            return

        for block in self._blocks:
            if block is not self._read:
                self._step.read(block.X)
                self.batch.target[...] = block.target
                self.batch.sample_weight[...] = block.sample_weight
                self._read = block
            yield block.share

    @property
    def l1(self) -> np.ndarray | None:
        """The strength of the l1 term for each variable, which is a multiple of one weight; or None."""
        l1 = self._l1
        return None if l1 is None else self._gradient_of(l1.astype(np.float64))

    def spread(self) -> tuple[float, float] | None:
        """
        Return the largest eigenvalue and the mean squared norm of the rows, from their Gram matrix,
        or None without one.
        """
        gram = None if self._whitener is None else self._whitener.gram
        return None if gram is None else spread_of_gram(gram)

    def begin(self) -> None:
        """Find the values at the first weights."""
        weights = self._step.state()["weights"].astype(np.float64)
        if self._is_curved and self._whitener.couples_again():
            self._whitening = self._whitener.at(weights, couples=True)
        self._now = self.evaluate(self.variables_of(weights))

    def minimise(self, max_iter: int, after: Callable[[], bool]) -> str | None:
        """
        Let the optimizer make up to `max_iter` iterations, and call `after` after each.

        Return why the optimizer ended, or None if `after` ended it.
        """
        is_ended = False
        n_left = max_iter

        def counted():
            nonlocal is_ended, n_left
            n_left -= 1
            is_ended = after()
            return is_ended

        if not self._now.weights.size:
            self.begin()
        if self._is_curved:
            self._tolerances = _near(self._tolerances, self._now)

        first = self._now
        whitener = self._whitener
        whitens_anew = whitener is not None and whitener.knows_rows
        stage = self._first_stage()

        while True:
            is_curved = self._is_curved
            # Rows that are flat at a point may bend on the way. Where its variables lead no
            # further, the first ones may: they take all rows as equal.
            tolerances = self._for_share()
            tolerances = tolerances._replace(flat=np.inf) if is_curved else tolerances
            n_iterations = min(n_left, stage) if whitens_anew else n_left
            reason, weights = self._stage(tolerances, n_iterations, counted)
            is_stuck = reason is not None and is_curved and not self._is_flat()
            if is_ended or n_left <= 0 or (reason is not None and not is_stuck):
                if whitener is not None:
                    whitener.took(max_iter - n_left)
                return reason

            n_made = max_iter - n_left
            n_more = _n_more(first, self._now, self._tolerances.limits.gradient, n_made)
            stage = self._renewed(weights, stage, n_made, n_more, is_stuck=is_stuck)

    def _first_stage(self):
        """Return the number of iterations for which the first variables are good."""
        whitener = self._whitener
        if whitener is None or not self._is_curved:
            return _STAGE
        if whitener.is_coupled:
            return _next_stage(whitener)
        # They are nearly those of this fit, too.
        return _STAGE if whitener.is_whole else _STAGE * _STAGES_AT_ONCE

    def _renewed(self, weights, stage, n_made, n_more, *, is_stuck):
        """
        Find new variables after a stage, with `n_more` iterations to come. Return the number of
        iterations for which they are good.
        """
        whitener = self._whitener
        # Old variables may keep the gradient where rounding hides its fall.
        couples = whitener.is_coupled or whitener.couples(n_made, n_more)
        self._whitening = whitener.first() if is_stuck else whitener.at(weights, couples=couples)
        self._is_curved = not is_stuck
        self._now = self._now._replace(
            weights=self.variables_of(weights),
            gradient=self._gradient_of(self._now.by_weights),
        )
        # L-BFGS has more to learn where they are not whole, and each stage forgets it.
        return _next_stage(whitener) if whitener.is_whole else 2 * stage

    def _for_share(self):
        """Return the tolerances for the rows that bend."""
        share = 1.0 if self._whitener is None else self._whitener.share
        limits = self._tolerances.limits
        # The fewer rows bend, the further are predictions from the optimum's at a distance.
        return self._tolerances._replace(limits=limits._replace(distance=share * limits.distance))

    def _is_flat(self):
        """Return whether the gradient is small enough for the end."""
        limits = self._for_share().limits
        largest = float(np.max(np.abs(self._now.gradient)))
        return largest <= limits.gradient or is_near(self._now, limits)

    def _stage(self, tolerances, max_iter, after):
        """
        Let the optimizer make at most `max_iter` iterations. Return why it ended before, or None,
        and the weights.
        """

        def call(point):
            self._now = point
            if point.weights is not self._loaded:
                # The last trial of a line search may not have been the best one.
                self._load(point.weights)
            return after()

        reason = self._optimizer.minimise(self.evaluate, self._now, tolerances, max_iter, call)
        return reason, self._load(self._now.weights)


def _scaled(tolerances):
    """Return tolerances for variables whose second derivatives are about one."""
    return tolerances._replace(limits=tolerances.limits._replace(is_scaled=True))


def _near(tolerances, begin):
    """
    Return the tolerances of a fit that begins near its optimum. The gradient at which others end is
    too large for it: half its square is about the distance to the least objective.
    """
    limits = tolerances.limits
    near = math.sqrt(2 * _DISTANCE * abs(begin.objective) / begin.gradient.size)
    # Rounding may not let it become smaller.
    least = _LEAST_PART * limits.gradient
    gradient = min(limits.gradient, max(near, least))
    return tolerances._replace(limits=limits._replace(gradient=gradient))


def _n_more(first, now, limit, n_made):
    """Return the number of iterations that are left if the gradient falls as it did so far."""
    begin = float(np.abs(first.gradient).max())
    end = float(np.abs(now.gradient).max())
    if not 0 < limit < end < begin:
        return math.inf
    return n_made * math.log(end / limit) / math.log(begin / end)


def _next_stage(whitener):
    """Return the number of iterations for which variables of a whole second derivative are good."""
    longest = max(_STAGE, whitener.cost)
    return max(_LEAST_STAGE, math.ceil(whitener.share * longest))


def _blocks(batches):
    """
    Return all rows as blocks of one size, or None if X has to change.

    The last block begins with rows of the one before, whose weights are zero, so that it needs no
    copy.
    """
    if not batches.are_plain:
        return None

    X, target, *_ = batches.data
    size = batches.batch_size
    blocks = []
    for begin in range(0, batches.n_rows, size):
        rows = slice(min(begin, batches.n_rows - size), min(begin + size, batches.n_rows))
        n_rows = rows.stop - begin
        sample_weight = (batches.sample_weight[rows] / n_rows).astype(target.dtype)[:, None]
        sample_weight[: size - n_rows] = 0
        blocks.append(_Block(X[rows], target[rows], sample_weight, n_rows / batches.n_rows))

    return blocks


def check_smooth(problem: Problem) -> None:
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
            'Dropout draws masks. Use another optimizer, such as "adam"; or '
            f"{WITHOUT_DROPOUT}."
        )
