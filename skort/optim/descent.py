"""L-BFGS: the minimum of an objective over all rows, smooth or with kinks."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import daxpy, ddot

from skort.common.blas import one_blas_thread

# The conditions of Wolfe: the fall that a step must have, and the slope that it may leave.
_ENOUGH = 1e-4
_FLAT = 0.9
# The most trials of a step. At a kink, more of them find next to no fall: `python -m
# benchmarks.lbfgs --kinks`.
_TRIALS = 10
# A trial stays away from the ends of the interval of lengths by this part of it.
_EDGE = 0.1
# A smaller objective has the rounding of this one, as the losses of rows cancel in it.
_SMALL = 1e-2
# The factor by which a step grows that is too short.
_GROWTH = 2.0


class Point(NamedTuple):
    """A vector of weights, with the objective, the gradient and the loss at it."""

    weights: np.ndarray
    objective: float
    gradient: np.ndarray
    loss: float = math.nan
    #: The gradient by the weights of a model, where the vector is one of other variables.
    by_weights: np.ndarray | None = None


class Limits(NamedTuple):
    """The numbers that end a descent: of the gradient, and of the fall of the objective."""

    #: The largest entry of the gradient at the end.
    gradient: float
    #: A smaller fall of the objective, as a part of it, ends the descent,
    fall: float
    #: if it is the fall in so many iterations.
    n_iterations: int = 1
    #: The objective counts as at least so large.
    size: float = 0.0
    #: A smaller relative change of the objective may be rounding.
    rounding: float = 0.0
    #: The part of the objective by which a step may raise it. At kinks, all other steps are short.
    rise: float = 0.0
    #: Whether second derivatives are about one. Then the gradient itself is a good first step.
    is_scaled: bool = False
    #: Then half the square of the gradient is about the distance to the least objective, too. If
    #: this is a smaller part of the objective, one more step ends the descent.
    distance: float = 0.0


#: At kinks, a descent ends when fifty iterations lower the objective by less than 1e-4 of it:
#: `python -m benchmarks.lbfgs --kinks`.
AT_KINKS = Limits(gradient=0.0, fall=1e-4, n_iterations=50, rise=1e-4)


class Step(NamedTuple):
    """A way from a point to a lower one."""

    point: Point
    #: The fall of the objective.
    fall: float


Evaluate = Callable[[np.ndarray], Point]


def descent(
    evaluate: Evaluate,
    start: Point,
    limits: Limits,
    max_iter: int,
    history_size: int,
    after: Callable[[Point], bool],
) -> Point | None:
    """
    Lower a function from a point until it no longer falls. Return the last point.

    L-BFGS with a line search that ends at the weak conditions of Wolfe: so it crosses kinks, as in
    Lewis and Overton (Mathematical Programming 141, 2013).

    Parameters
    ----------
    evaluate : callable
        weights -> the point there.
    start : Point
    limits : Limits
    max_iter : int
        The largest number of iterations.
    history_size : int
        The number of changes of weights and gradients that are remembered.
    after : callable
        Takes the point of each iteration; True ends the descent.

    Returns
    -------
    point : Point or None
        None after `max_iter` iterations, or a true `after`.
    """
    memory = Memory(history_size)
    point = start
    falls: list[float] = []
    while not _is_end(point, falls, limits):
        if len(falls) >= max_iter:
            return None

        is_last = is_near(point, limits)
        step = _step(evaluate, point, memory, limits)
        if step is None and memory.is_empty:
            return point
        if step is None:
            memory = Memory(history_size)
            continue

        memory.add(step.point.weights - point.weights, step.point.gradient - point.gradient)
        point = step.point
        falls.append(step.fall)
        if after(point):
            return None
        if is_last:
            return point

    return point


def _is_end(point, falls, limits):
    """Return whether a descent ends at a point, after iterations with these falls."""
    if np.abs(point.gradient).max() <= limits.gradient:
        return True
    if len(falls) < limits.n_iterations:
        return False

    fall = sum(falls[-limits.n_iterations :])
    return fall <= limits.fall * max(abs(point.objective), limits.size)


def is_near(point: Point, limits: Limits) -> bool:
    """Return whether the gradient tells that the least objective is one more step away."""
    if not (limits.is_scaled and limits.distance):
        return False
    return 0.5 * np.square(point.gradient).sum() <= limits.distance * abs(point.objective)


class Memory:
    """The last changes of the weights and of the gradient."""

    def __init__(self, size: int):
        self._size = size
        self._changes: list[tuple[np.ndarray, np.ndarray, float]] = []

    @property
    def is_empty(self) -> bool:
        """Whether there is no change yet."""
        return not self._changes

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        """Remember a change of the weights, and the change of the gradient."""
        product = float(step @ change)
        if product > 0:
            self._changes.append((step, change, 1 / product))
            del self._changes[: -self._size]

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        """Return minus the product of the approximate inverse second derivative and a gradient."""
        if not self._changes:
            return -gradient

        # Its threads would wait for each of many short products.
        with one_blas_thread(gradient.size):
            return self._times_inverse(-gradient)

    def _times_inverse(self, result):
        """Multiply a vector by the approximate inverse second derivative, in place; return it."""
        # The two loops of Nocedal (Mathematics of Computation 35, 1980). Of few weights, calls of
        # numpy take longer than the numbers, and these are the fewest.
        factors = []
        for step, change, inverse in reversed(self._changes):
            factors.append(inverse * ddot(step, result))
            daxpy(change, result, a=-factors[-1])

        step, change, inverse = self._changes[-1]
        result /= inverse * ddot(change, change)
        for (step, change, inverse), factor in zip(self._changes, reversed(factors), strict=True):
            daxpy(step, result, a=factor - inverse * ddot(change, result))

        return result


def _step(evaluate, point, memory, limits):
    """Return the step of an iteration, or None if no point in its direction is lower."""
    direction = memory.direction(point.gradient)
    slope = float(point.gradient @ direction)
    if not slope < 0:
        return None

    length = _first_length(slope, limits) if memory.is_empty else 1.0
    # The two ends of an interval of lengths, with their falls and slopes.
    short = (0.0, 0.0, slope)
    long = None
    best = None
    rise = limits.rise * abs(point.objective)
    for _ in range(_TRIALS):
        trial = evaluate(point.weights + length * direction)
        end = float(trial.gradient @ direction)
        fall = _fall(point, trial, length, slope, end, limits.rounding)
        if fall > 0 and (best is None or fall > best.fall):
            best = Step(trial, fall)

        if not fall >= -_ENOUGH * length * slope - rise:
            long = (length, fall, end)
        elif end < _FLAT * slope:
            short = (length, fall, end)
        else:
            return Step(trial, fall)

        length = _next(short, long)

    return best


def _first_length(slope, limits):
    """Return the length of the first trial along the gradient: a step of 1, or less."""
    length = 1 / math.sqrt(-slope)
    return min(length, 1.0) if limits.is_scaled else length


def _fall(point, trial, length, slope, end, rounding):
    """Return the fall of the objective on a way of a length, from its slopes and values."""
    fall = point.objective - trial.objective
    if abs(fall) <= rounding * max(abs(point.objective), _SMALL):
        # For so small a step, the slopes at both ends tell the difference better.
        return -0.5 * length * (slope + end)
    return fall


def _next(short, long):
    """Return the length of the next trial, between the ends of an interval. `long` may be None."""
    begin, fall_begin, slope_begin = short
    if long is None:
        return _GROWTH * begin

    end, fall_end, slope_end = long
    width = end - begin
    part = _part(slope_begin * width, slope_end * width, fall_begin - fall_end)
    return begin + min(max(part, _EDGE), 1 - _EDGE) * width


def _part(begin, end, rise):
    """
    Return where a cubic is least between 0 and 1, from the slopes at both ends and the rise. It is
    0 if they are too large.
    """
    # Nocedal and Wright, Numerical Optimization, equation 3.59
    mean = begin + end - 3 * rise
    square = mean * mean - begin * end
    if not math.isfinite(square):
        return 0.0

    root = math.sqrt(max(square, 0.0))
    bend = end - begin + 2 * root
    return 1 - (end + root - mean) / bend if bend > 0 else 0.5
