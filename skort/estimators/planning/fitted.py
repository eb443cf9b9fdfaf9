"""How a fitted network goes on with new rows."""

import dataclasses
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.model.model import Model
from skort.estimators.planning.decision import rule
from skort.estimators.training.reparametrization import Reparametrization
from skort.estimators.training.row_loss import RowLoss, some_of

if TYPE_CHECKING:
    from skort.estimators.planning.plan import Plan

# Chosen by `python -m benchmarks.fine_tuning`: the least part of the rate, and the number of rows
# below which the rate falls with their square, and a network that is too sure keeps its weights.
_LEAST = 0.05
_FEW_ROWS = 200
# Fewer rows do not tell whether a network has learned something. No benchmark chose the number.
_TELLING_ROWS = 20
# The part of the rows that is most of them.
_MOST = 0.5
_DIVISORS = 2.0 ** np.arange(13)


@rule("first rate")
def fitted_part(share: float, n_rows: int) -> float:
    """
    A fitted network has the rate of a new one times the square of its loss as a part of a
    constant's, at least 0.05, and less with fewer than 200 rows.
    """
    # A network that knows the rows, or that has few of them for many epochs, would forget others.
    if share >= 1:
        return 1.0
    return max(_LEAST, share**2) * min(1.0, n_rows / _FEW_ROWS) ** 2


def other_weights(
    plan: "Plan", model: Model, of_fitted: "FittedLoss", generator: np.random.RandomState
) -> Model | None:
    """
    Return the model that a fitted network begins as, if it is worse than the best constant
    prediction of 20 rows or more; None: as it is.
    """
    # The user asks for these weights.
    if plan.given["warm_start"] or plan.inside["trainable"] is not None:
        return None
    if of_fitted.divisor > 1:
        return divided(model, of_fitted.divisor)

    return drawn_anew(model, generator)


@rule("weights")
def drawn_anew(model: Model, generator: np.random.RandomState) -> Model | None:
    """
    A fitted network that is worse than the best constant prediction begins from new weights, if it
    is no classifier that is better on most of fewer than 200 rows.
    """
    from skort.graphs.initialization import drawn_weights

    weights = drawn_weights(model.inner.model, model.score_graph, generator)
    return (
        None if weights is None else dataclasses.replace(model.with_weights(weights), is_drawn=True)
    )


@rule("weights")
def divisor(plan: "Plan", model: Model, loss: RowLoss, weights: dict[str, np.ndarray]) -> float:
    """
    A fitted classifier that is worse than the best constant prediction in the mean, but not on most
    of fewer than 200 rows, begins with its scores divided by the power of two that makes the loss
    least.
    """
    # More rows tell a new network as much.
    has_few = plan.is_classifier and plan.size.n_rows < _FEW_ROWS
    if not has_few or _score_weights(model) is None or loss.part_above_constant(weights) > _MOST:
        return 1.0

    return min(_DIVISORS, key=lambda each: loss.at({**weights, **_divided(model, weights, each)}))


def divided(model: Model, divisor: float) -> Model:
    """Return a model with divided scores."""
    weights = model.trained_weights
    return model.with_weights({**weights, **_divided(model, weights, divisor)})


def _divided(model, weights, divisor):
    """Return the weights of the last layer, divided."""
    return {
        name: weights[name] / weights[name].dtype.type(divisor) for name in _score_weights(model)
    }


def _score_weights(model):
    """Return the names of the weights of the last layer; None if not all of them are trained."""
    from skort.graphs.standardized import last_layer

    layer = last_layer(model.score_graph)
    if layer is None:
        return None
    return [name for name in (layer.coefficient, layer.intercept) if name is not None]


def tells_of_fitted(rows: TrainingData) -> bool:
    """
    Return whether rows are many and different enough to say
    that a fitted network is worse than a constant.
    """
    target = rows.counted(rows.target)
    return len(target) >= _TELLING_ROWS and bool(np.ptp(target, axis=0).any())


class FittedLoss(NamedTuple):
    """The loss of a fitted network on the rows that it is to train on."""

    #: As a part of that of the best constant prediction.
    share: float = 0.0
    #: That of the best constant prediction.
    constant: float = math.inf
    #: What the scores of a classifier that is too sure of itself are to be divided by.
    divisor: float = 1.0


def fitted_loss(
    plan: "Plan", model: Model, variables: Reparametrization, statistics: DataStatistics
) -> FittedLoss:
    """Return the loss of a fitted network; a share of 0 where it is not known."""
    if plan.loss.is_least_at_zero:
        return FittedLoss()

    loss = RowLoss(plan, model.score_graph, variables, some_of(statistics.some_rows))
    weights = variables.training_weights(model.trained_weights)

    with np.errstate(all="ignore"):
        constant = loss.best_constant(weights)
        if not constant > 0:
            return FittedLoss()
        share = float(np.fmin(loss.at(weights) / constant, np.inf))

        of_scores = divisor(plan, model, loss, weights) if share > 1 else 1.0

    return FittedLoss(share, constant, of_scores)
