"""
The end of a linear fit by SGD: whether L-BFGS over all rows finds a lower objective, or how far
above the least one a fit of the user's own steps ended.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skort.estimators.data.rows import TrainingData
from skort.estimators.model.model import Model
from skort.estimators.planning.plan import Plan
from skort.estimators.planning.stopping import is_exacting, is_far_above, is_lower
from skort.estimators.training.row_loss import some_of
from skort.optim.descent import Evaluate, Limits, Point, descent
from skort.optim.training import Finished
from skort.optim.transforms import norm

# The rounds end when one of them lowers the objective by a smaller part of it.
_ROUND = 1e-2
# Changes of weights and gradients that are remembered, if they are not more numbers than this.
_MEMORY = 100
_MOST_NUMBERS = 10**7
_LEAST_MEMORY = 10
# A round ends when fifty iterations lower the objective by less than 1e-4 of it:
# `python -m benchmarks.lbfgs --kinks`.
_LIMITS = Limits(gradient=0.0, fall=1e-4, n_iterations=50, rise=1e-4)
# So many rows tell of a gap, and more where there are many columns: the least objective of few
# rows is one that fits their noise.
_ROWS = 2000
_ROWS_PER_COLUMN = 50
# So many iterations tell how far a minimum is whose loss has no bound of its curvature.
_ITERATIONS = 10


def finish_of(plan: Plan, model: Model, full_step: Callable[[], Any]) -> "Finish | None":
    """Return what ends a fit by SGD on rows in memory; None where the user decides how it ends."""
    ends_here = aims_at_optimum(plan, model) and plan.leaves_steps_open
    return Finish(full_step) if ends_here else None


def aims_at_optimum(plan: Plan, model: Model) -> bool:
    """Return whether a fit by steps should end at the least objective that L-BFGS would find."""
    return not (
        plan.is_full
        or not is_exacting(plan.tol)
        or plan.given["early_stopping"]
        or plan.loss.is_least_at_zero
        or not model.score_graph.is_linear
        or plan.has_l1(model)
    )


def rows_for_gap(rows: TrainingData) -> TrainingData:
    """Return rows that tell how far above the least objective a training ended."""
    n_columns = rows.X.shape[1]
    return some_of(rows, max(_ROWS, _ROWS_PER_COLUMN * n_columns))


def part_above_least(
    full: Any, weights: dict[str, np.ndarray], *, is_bounded: bool
) -> float | None:
    r"""
    Return how far the objective at some weights is above the least one, at least, as a part of it;
    None where that is not far.

    Where the loss has a bound of its curvature, no second derivative by the variables u of a
    `FullStep` is above one, so that

    .. math:: J(u) - \min J \ge \tfrac{1}{2} \lVert \nabla J(u) \rVert^2

    (Nesterov, Introductory lectures on convex optimization, 2004, theorem 2.1.5). Otherwise some
    iterations find a lower objective.
    """
    from skort.solvers.flat_weights import flat

    start = full.variables_of(flat(weights).astype(np.float64))
    end = full.evaluate(start)
    if is_bounded:
        fall = 0.5 * float(end.gradient @ end.gradient)
    else:
        fall = end.objective - _rounds(full.evaluate, end, _ITERATIONS)[0].objective

    # Most fits end near the least objective, and need no second pass over the rows.
    if not is_far_above(fall, end.objective, constant=0.0):
        return None

    constant = full.evaluate(np.zeros_like(start)).objective
    return fall / end.objective if is_far_above(fall, end.objective, constant) else None


@dataclass(frozen=True, eq=False)
class Finish:
    """What looks for a lower objective from the weights of a training on."""

    #: Returns what computes the objective of all rows and its gradient, a `FullStep`.
    full_step: Callable[[], Any]

    def __call__(self, weights: dict[str, np.ndarray], max_iter: int) -> Finished | None:
        """Return the end at a lower objective, or None if there is none that is clearly lower."""
        from skort.solvers.flat_weights import flat

        full = self.full_step()
        begin = full.evaluate(full.variables_of(flat(weights).astype(np.float64)))
        best, is_falling = _rounds(full.evaluate, begin, max_iter)
        if not is_lower(best.objective, begin.objective):
            return None

        return Finished(
            weights=full.weights_of(best.weights),
            means=(best.objective, best.loss),
            gradient_norm=norm(best.gradient),
            is_falling=is_falling,
        )


def _rounds(evaluate: Evaluate, point: Point, max_iter: int) -> tuple[Point, bool]:
    """
    Lower a function, with a new memory after each descent, until one of them hardly lowers it;
    return the lowest point, and whether it was still falling after all iterations.
    """
    history_size = max(_LEAST_MEMORY, min(_MEMORY, _MOST_NUMBERS // point.weights.size))
    n_left = max_iter
    best = point

    def after(each):
        nonlocal best, n_left
        n_left -= 1
        best = min(best, each, key=lambda at: at.objective)
        return False

    while n_left > 0:
        begin = best
        descent(evaluate, begin, _LIMITS, n_left, history_size, after)
        if not begin.objective - best.objective > _ROUND * abs(begin.objective):
            return best, False

    return best, True
