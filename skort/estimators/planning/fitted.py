"""How a fitted network goes on with new rows."""

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.model.model import Model
from skort.estimators.planning.decision import rule
from skort.estimators.training.reparametrization import Reparametrization
from skort.estimators.training.row_loss import RowLoss, some_of

if TYPE_CHECKING:
    from skort.estimators.planning.plan import Plan

# Chosen by `python -m benchmarks.fine_tuning`: the least part of the rate, and the number of rows
# below which the rate falls with their square.
_LEAST = 0.05
_FEW_ROWS = 200
# Fewer rows do not tell whether a network has learned something. No benchmark chose the number.
_TELLING_ROWS = 20


@rule("first rate")
def fitted_part(share: float, n_rows: int) -> float:
    """
    A fitted network has a part of the rate of a new one: the square of its loss divided by a
    constant's loss, at least 0.05, and less with fewer than 200 rows.
    """
    # A network that knows the rows, or that has few of them for many epochs, would forget others.
    if share >= 1:
        return 1.0
    return max(_LEAST, share**2) * min(1.0, n_rows / _FEW_ROWS) ** 2


@rule("weights")
def drawn_anew(plan: "Plan", model: Model, generator: np.random.RandomState) -> Model | None:
    """
    A fitted network that is worse than the best constant prediction,
    of 20 rows or more, begins from new weights.
    """
    from skort.graphs.initialization import drawn_weights

    # The user asks for these weights.
    if plan.given["warm_start"] or plan.inside["trainable"] is not None:
        return None

    weights = drawn_weights(model.inner.model, model.score_graph, generator)
    return (
        None if weights is None else dataclasses.replace(model.with_weights(weights), is_drawn=True)
    )


def tells_of_fitted(rows: TrainingData) -> bool:
    """
    Return whether rows are many and different enough to say
    that a fitted network is worse than a constant.
    """
    target = rows.counted(rows.target)
    return len(target) >= _TELLING_ROWS and bool(np.ptp(target, axis=0).any())


def fitted_share(
    plan: "Plan", model: Model, variables: Reparametrization, statistics: DataStatistics
) -> tuple[float, float]:
    """
    Return the loss of a fitted network as a part of that of the best constant prediction,
    and that; or 0, inf.
    """
    if plan.loss.is_least_at_zero:
        return 0.0, math.inf

    loss = RowLoss(plan, model.score_graph, variables, some_of(statistics.some_rows))
    weights = variables.training_weights(model.trained_weights)

    with np.errstate(all="ignore"):
        constant = loss.best_constant(weights)
        if not constant > 0:
            return 0.0, math.inf
        return float(np.fmin(loss.at(weights) / constant, np.inf)), constant
