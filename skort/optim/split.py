"""The minimum of an objective with an l1 term: L-BFGS with bounds."""

from collections.abc import Callable
from typing import Any

import numpy as np

from skort.optim.descent import Evaluate, Point

# A smaller fall of the objective in an iteration, as a part of it, is the rounding of float32.
_FALL = 1e-7


def split_descent(
    evaluate: Evaluate,
    l1: np.ndarray,
    start: Point,
    max_iter: int,
    history_size: int,
    after: Callable[[Point], Any],
) -> None:
    r"""
    Lower a function with an l1 term from a point until it no longer falls.

    A weight with a strength :math:`\lambda > 0` is the difference of two numbers that are not
    negative. Their sum is :math:`|w|` at the minimum, so that the objective is as smooth as without
    its l1 term:

    .. math:: \min_{p, n \ge 0} f(p - n) + \lambda (p + n)

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
    """
    from scipy.optimize import minimize

    has_term = l1 > 0
    strengths = l1[has_term]
    n_weights = len(l1)

    def of_split(split):
        weights = split[:n_weights].copy()
        weights[has_term] -= split[n_weights:]
        point = evaluate(weights)
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
