"""The end of a linear fit by SGD: whether L-BFGS over all rows finds a lower objective."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skort.estimators.model.model import Model
from skort.estimators.planning.plan import Plan
from skort.estimators.planning.stopping import is_exacting, is_lower
from skort.optim.descent import descent
from skort.optim.training import Finished
from skort.optim.transforms import norm


def finish_of(plan: Plan, model: Model, full_step: Callable[[], Any]) -> "Finish | None":
    """Return what ends a fit by SGD on rows in memory; None where the user decides how it ends."""
    if (
        plan.is_full
        or not plan.leaves_steps_open
        or not is_exacting(plan.tol)
        or plan.given["early_stopping"]
        or plan.loss.is_least_at_zero
        or not model.score_graph.is_linear
    ):
        return None

    strengths = (
        {} if plan.penalty is None else plan.penalty.strengths(model.score_graph.coefficients)
    )
    if any(np.any(strength.l1) for strength in strengths.values()):
        return None
    return Finish(full_step)


@dataclass(frozen=True, eq=False)
class Finish:
    """What looks for a lower objective from the weights of a training on."""

    #: Returns what computes the objective of all rows and its gradient, a `FullStep`.
    full_step: Callable[[], Any]

    def __call__(self, weights: dict[str, np.ndarray], max_iter: int) -> Finished | None:
        """Return the end at a lower objective, or None if there is none that is clearly lower."""
        from skort.solvers.flat_weights import flat

        full = self.full_step()
        start = full.variables_of(flat(weights).astype(np.float64))
        begin, _ = full.evaluate(start)
        end = descent(full.evaluate, start, max_iter)
        if not is_lower(end.point.objective, begin):
            return None

        full.evaluate(end.point.weights)
        return Finished(
            weights=full.weights_of(end.point.weights),
            means=full.means(),
            gradient_norm=norm(end.point.gradient),
            is_falling=end.is_falling,
        )
