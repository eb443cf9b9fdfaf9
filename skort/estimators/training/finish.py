"""The end of a linear fit by SGD: L-BFGS over all rows looks for a lower objective."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skort.estimators.model.model import Model
from skort.estimators.planning.plan import Plan
from skort.estimators.planning.stopping import is_exacting, is_lower
from skort.optim.descent import Limits, Point, descent
from skort.optim.split import split_descent
from skort.optim.training import Finished
from skort.optim.transforms import norm

# The last round lowers the objective by a smaller part of it.
_ROUND = 1e-2
# The changes that L-BFGS remembers, unless these are more numbers.
_MEMORY = 100
_MOST_NUMBERS = 10**7
_LEAST_MEMORY = 10
# A round ends when fifty iterations lower the objective by less than 1e-4 of it:
# `python -m benchmarks.lbfgs --kinks`.
_LIMITS = Limits(gradient=0.0, fall=1e-4, n_iterations=50, rise=1e-4)


def finish_of(plan: Plan, model: Model, full_step: Callable[[], Any]) -> "Finish | None":
    """Return the end of a fit by SGD, or None if the user's parameters decide on it."""
    ends_here = plan.leaves_steps_open and aims_at_optimum(plan, model)
    return Finish(full_step) if ends_here else None


def aims_at_optimum(plan: Plan, model: Model) -> bool:
    """Return whether a fit by steps should end at the least objective, as L-BFGS does."""
    return not (
        plan.is_full
        or not is_exacting(plan.tol)
        or plan.is_validated
        or plan.loss.is_least_at_zero
        or not model.score_graph.is_linear
    )


@dataclass(frozen=True, eq=False)
class Finish:
    """The search for a lower objective, from the weights of a training."""

    #: Makes the `FullStep` of all rows.
    full_step: Callable[[], Any]

    def __call__(self, weights: dict[str, np.ndarray], max_iter: int) -> Finished | None:
        """Return the end at a clearly lower objective, or None if there is none."""
        from skort.solvers.flat_weights import flat

        full = self.full_step()
        begin = full.evaluate(full.variables_of(flat(weights).astype(np.float64)))
        best, is_falling = rounds(full, begin, max_iter)
        if not is_lower(best.objective, begin.objective):
            return None

        return Finished(
            weights=full.weights_of(best.weights),
            means=(best.objective, best.loss),
            gradient_norm=norm(best.gradient),
            is_falling=is_falling,
        )


def rounds(full: Any, point: Point, max_iter: int) -> tuple[Point, bool]:
    """
    Lower the objective of a `FullStep` by several descents, each with a new memory, until one hardly
    lowers it. Return the lowest point, and whether the objective was still falling when the
    iterations were over.
    """
    history_size = max(_LEAST_MEMORY, min(_MEMORY, _MOST_NUMBERS // point.weights.size))
    l1 = full.l1
    n_left = max_iter
    best = point

    def after(each):
        nonlocal best, n_left
        n_left -= 1
        best = min(best, each, key=lambda at: at.objective)
        return False

    while n_left > 0:
        begin = best
        if l1 is None:
            descent(full.evaluate, begin, _LIMITS, n_left, history_size, after)
        else:
            split_descent(full.evaluate, l1, begin, n_left, history_size, after)
        if not begin.objective - best.objective > _ROUND * abs(begin.objective):
            return best, False

    return best, True
