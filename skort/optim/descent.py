"""Quasi-Newton descent of an objective over all rows, with kinks or without."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# A round ends when so many iterations lower the objective by a smaller part of it.
_ITERATIONS = 50
_FALL = 1e-4
# The rounds end when one of them lowers the objective by a smaller part of it.
_ROUND = 1e-2
# Changes of weights and gradients that are remembered, if they are not more numbers than this.
_MEMORY = 100
_MOST_NUMBERS = 10**7
_LEAST_MEMORY = 10
# The length of the first step of a round.
_FIRST_STEP = 0.1
_TRIALS = 25
# The conditions of Wolfe: the fall that a step needs, and the slope that it may leave.
_ENOUGH = 1e-4
_FLAT = 0.9
# An objective in float32 that is by a smaller part higher may be the same.
_ROUNDING = 1e-4

Evaluate = Callable[[np.ndarray], tuple[float, np.ndarray]]


class Point(NamedTuple):
    """A vector of weights, with the objective and its gradient there."""

    weights: np.ndarray
    objective: float
    gradient: np.ndarray


class Descent(NamedTuple):
    """The end of a descent."""

    point: Point
    #: Whether the objective still fell when the iterations were over.
    is_falling: bool


def descent(evaluate: Evaluate, start: np.ndarray, max_iter: int) -> Descent:
    """
    Lower a convex function from a vector of weights, until it no longer falls.

    L-BFGS with a line search that ends at the conditions of Wolfe, not at their strong form: so it
    crosses kinks, as in Lewis and Overton (Mathematical Programming 141, 2013).

    Parameters
    ----------
    evaluate : callable
        weights -> objective and a gradient.
    start : ndarray of shape (n_weights,), float64
    max_iter : int
        The largest number of iterations.
    """
    point = Point(start, *evaluate(start))
    n_left = max_iter
    while n_left > 0:
        begin = point.objective
        point, n_made = _round(evaluate, point, n_left)
        n_left -= n_made
        if not begin - point.objective > _ROUND * abs(begin):
            return Descent(point, is_falling=False)

    return Descent(point, is_falling=True)


def _round(evaluate, point, max_iter):
    """Return the point of a descent with a new memory, and the number of iterations."""
    memory = _Memory(point.weights.size)
    best = point
    objectives = [point.objective]
    for n_made in range(1, max_iter + 1):
        reached = _searched(evaluate, point, memory.direction(point.gradient))
        if reached is point:
            if memory.is_empty:
                return best, n_made
            memory = _Memory(point.weights.size)
            continue

        memory.add(reached.weights - point.weights, reached.gradient - point.gradient)
        point = reached
        best = min(best, point, key=lambda each: each.objective)
        objectives.append(best.objective)
        if len(objectives) > _ITERATIONS:
            earlier = objectives[-1 - _ITERATIONS]
            if not earlier - best.objective > _FALL * abs(earlier):
                return best, n_made

    return best, max_iter


class _Memory:
    """The last changes of the weights and of the gradient."""

    def __init__(self, n_weights: int):
        self._size = max(_LEAST_MEMORY, min(_MEMORY, _MOST_NUMBERS // n_weights))
        self._changes: list[tuple[np.ndarray, np.ndarray, float]] = []

    @property
    def is_empty(self) -> bool:
        """Whether there is no change yet."""
        return not self._changes

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        """Remember a change of the weights, and that of the gradient."""
        product = float(step @ change)
        if product > 0:
            self._changes.append((step, change, 1 / product))
            del self._changes[: -self._size]

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        """Return minus the product of the approximate inverse second derivatives and a gradient."""
        if not self._changes:
            return gradient * (-_FIRST_STEP / max(float(np.linalg.norm(gradient)), 1e-300))

        # The two loops of Nocedal (Mathematics of Computation 35, 1980)
        result = -gradient
        factors = []
        for step, change, inverse in reversed(self._changes):
            factors.append(inverse * float(step @ result))
            result -= factors[-1] * change

        step, change, inverse = self._changes[-1]
        result /= inverse * float(change @ change)
        for (step, change, inverse), factor in zip(self._changes, reversed(factors), strict=True):
            result += (factor - inverse * float(change @ result)) * step

        return result


def _searched(evaluate, point, direction):
    """Return a lower point in a direction, or the point itself where there is none."""
    slope = float(point.gradient @ direction)
    shortest = 0.0
    longest = np.inf
    length = 1.0
    best = point
    for _ in range(_TRIALS):
        weights = point.weights + length * direction
        trial = Point(weights, *evaluate(weights))
        if trial.objective < best.objective:
            best = trial

        allowed = _ENOUGH * length * slope + _ROUNDING * abs(point.objective)
        if not trial.objective <= point.objective + allowed:
            longest = length
        elif float(trial.gradient @ direction) < _FLAT * slope:
            shortest = length
        else:
            return trial

        length = (shortest + longest) / 2 if np.isfinite(longest) else 2 * length

    return best
