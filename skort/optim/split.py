"""
The minimum of an objective with an l1 term, in variables in which this term is smooth.

The difference of two numbers (`split_descent`) has exact zeros; the product of two numbers
(`product_descent`) crosses the kinks of a loss.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from skort.optim.descent import AT_KINKS, Evaluate, Point, descent

# A smaller fall of the objective in an iteration, as a part of it, ends a descent. In float32, its
# line search ends it before. With 1e-7, it may end where it has just begun.
_FALL = 1e-9
# The weights below one of these parts of the largest weight become zero, first all of them, if this
# raises the objective by no more than a part of it: at kinks, a descent ends further from its
# minimum.
_SMALL = (2.0, 1e-2, 1e-3, 1e-4, 1e-5)
_RISE = 1e-7
_RISE_AT_KINKS = 1e-4
# The least first number of a product at its start, in standardised units.
_LEAST = 0.1


def split_descent(
    evaluate: Evaluate,
    l1: np.ndarray,
    start: Point,
    max_iter: int,
    history_size: int,
    after: Callable[[Point], Any],
) -> Point:
    r"""
    Lower a function with an l1 term from a point until it no longer falls. Return the lowest point.

    A weight with a strength :math:`\lambda > 0` is the difference of two numbers that are not
    negative. Their sum is :math:`|w|` at the minimum, so that the objective is as smooth as without
    its l1 term:

    .. math:: \min_{p, n \ge 0} f(p - n) + \lambda (p + n)

    Weights that are zero but for the rounding of the objective become zero at the end.

    Parameters
    ----------
    evaluate : callable
        weights -> the point there, with the l1 term in the objective, but not in the gradient.
    l1 : ndarray
        The strength of the l1 term for each weight.
    start : Point
    max_iter : int
        The largest number of evaluations; a line search is not cut short.
    history_size : int
        The number of changes that are remembered.
    after : callable
        Takes each point.

    Returns
    -------
    point : Point
    """
    from scipy.optimize import minimize

    has_term = l1 > 0
    strengths = l1[has_term]
    n_weights = len(l1)
    lowest = start

    def of_split(split):
        nonlocal lowest
        weights = split[:n_weights].copy()
        weights[has_term] -= split[n_weights:]
        point = evaluate(weights)
        lowest = min(lowest, point, key=lambda at: at.objective)
        after(point)

        both = split[:n_weights][has_term] + split[n_weights:] - np.abs(weights[has_term])
        of_others = -point.gradient[has_term] + strengths
        gradient = point.gradient.copy()
        gradient[has_term] += strengths
        return point.objective + strengths @ both, np.concatenate([gradient, of_others])

    positive = np.where(has_term, np.maximum(start.weights, 0), start.weights)
    negative = np.maximum(-start.weights[has_term], 0)
    bounds = [(0 if each else None, None) for each in has_term] + [(0, None)] * len(negative)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        minimize(
            of_split,
            np.concatenate([positive, negative]),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={
                "maxcor": history_size,
                "maxiter": max_iter,
                "maxfun": max_iter,
                "ftol": _FALL,
                "gtol": 0.0,
            },
        )

    return _with_zeros(evaluate, has_term, lowest, _RISE)


def product_descent(
    evaluate: Evaluate,
    l1: np.ndarray,
    start: Point,
    max_iter: int,
    history_size: int,
    after: Callable[[Point], Any],
) -> Point:
    r"""
    Lower a function with kinks and an l1 term from a point. Return the lowest point.

    A weight with a strength :math:`\lambda > 0` is the product of two numbers. Half the sum of
    their squares is :math:`|w|` at the minimum (Hoff, Computational Statistics & Data Analysis 115,
    2017). So there are no bounds, and the line search of `descent` crosses the kinks of :math:`f`:

    .. math:: \min_{u, v} f(u v) + \frac{\lambda}{2} (u^2 + v^2)

    Weights that are nearly zero at the end become zero.

    Parameters
    ----------
    evaluate, l1, start, history_size
        As in `split_descent`.
    max_iter : int
        The largest number of iterations.
    after : callable
        Takes the lowest point so far, after each iteration.

    Returns
    -------
    point : Point
    """
    has_term = l1 > 0
    strengths = l1[has_term]
    n_weights = len(l1)
    lowest = start

    def of_product(product):
        nonlocal lowest
        first, second = product[:n_weights][has_term], product[n_weights:]
        weights = product[:n_weights].copy()
        weights[has_term] = first * second
        point = evaluate(weights)
        lowest = min(lowest, point, key=lambda at: at.objective)

        by_weights = point.gradient[has_term]
        gradient = np.concatenate([point.gradient, by_weights * first + strengths * second])
        gradient[:n_weights][has_term] = by_weights * second + strengths * first
        squares = 0.5 * (np.square(first) + np.square(second)) - np.abs(weights[has_term])
        return Point(product, point.objective + float(strengths @ squares), gradient)

    roots = np.sqrt(np.abs(start.weights[has_term]))
    # With two numbers near zero, a weight would stay there.
    first = np.maximum(roots, max(roots.mean(), _LEAST))
    weights = start.weights.copy()
    weights[has_term] = first
    begin = of_product(np.concatenate([weights, start.weights[has_term] / first]))
    descent(of_product, begin, AT_KINKS, max_iter, history_size, lambda _: after(lowest))
    return _with_zeros(evaluate, has_term, lowest, _RISE_AT_KINKS)


def _with_zeros(evaluate, has_term, point, rise):
    """
    Return a point whose small weights are zero, if it is higher by no more than a part `rise` of
    the objective; otherwise the point.
    """
    sizes = np.where(has_term, np.abs(point.weights), np.inf)
    for part in _SMALL:
        weights = np.where(sizes < part * sizes[has_term].max(), 0, point.weights)
        zeroed = evaluate(weights)
        if zeroed.objective <= point.objective + rise * abs(point.objective):
            return zeroed

    return point
