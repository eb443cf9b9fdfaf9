"""How a fitted model goes on with new rows."""

import dataclasses
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skort.estimators.data.rows import DataStatistics
from skort.estimators.model.model import Model
from skort.estimators.planning.decision import rule
from skort.estimators.variables.reparametrization import Reparametrization
from skort.estimators.variables.row_loss import RowLoss, some_of
from skort.optim.standardization import share_of_equal_rows

if TYPE_CHECKING:
    from skort.estimators.planning.plan import Plan

# Chosen by `python -m benchmarks.fine_tuning`: the least part of the rate, and the number of rows
# below which the rate falls with their square. A few confident mistakes of an old network outweigh
# as few rows.
_LEAST = 0.05
_FEW_ROWS = 200


@rule("first rate")
def fitted_part(share: float, n_rows: float) -> float:
    """
    A fitted network has a part of the rate of a new one: the square of its loss divided by a
    constant's loss, from 0.05 to 1, and less with fewer than 200 rows, of which those of a long tail
    count as fewer.
    """
    # A network that knows the rows, or that has few of them for many epochs, would forget others.
    return min(1.0, max(_LEAST, share**2)) * min(1.0, n_rows / _FEW_ROWS) ** 2


def n_equal_rows(
    plan: "Plan", model: Model, variables: Reparametrization, statistics: DataStatistics
) -> float:
    """Return how many rows of equal size are worth these rows, of which large ones outweigh others."""
    used, first = variables.standardization, model.score_graph.first_layer
    # Columns in their own units have no size, and ids have none at all.
    if used is None or used.scale is None or first is None or first.columns is not None:
        return plan.size.n_rows

    rows = statistics.some_rows
    return plan.size.n_rows * share_of_equal_rows(rows.X, rows.sample_weight, used)


@rule("weights")
def drawn_anew(plan: "Plan", model: Model, generator: np.random.RandomState) -> Model | None:
    """
    A fitted network that is worse than the best constant prediction begins from new weights; with
    fewer than 200 rows, it must be worse by more than two standard errors.
    """
    from skort.graphs.initialization import drawn_weights

    # The user asks for these weights.
    if plan.given["warm_start"] or plan.given_inside["trainable"] is not None:
        return None

    weights = drawn_weights(model.inner.model, model.score_graph, generator)
    return (
        None if weights is None else dataclasses.replace(model.with_weights(weights), is_drawn=True)
    )


@rule("weights")
def keeps_fitted(rise: float) -> bool:
    """
    A frozen linear model keeps its weights unless new ones have a lower loss in five-fold
    cross-validation on the new rows.
    """
    # A loss that is no number says nothing against the model.
    return not rise < 0


def can_tell(model: Model, n_rows: int, *, is_surely_worse: bool) -> bool:
    """
    Return whether rows can say anything against a model: fewer than 200 say nothing against a fitted
    one, unless it is worse than their best constant by more than two standard errors.
    """
    # It has learned from others. A model that is not fitted may be new.
    return is_surely_worse or n_rows >= _FEW_ROWS or not model.inner.is_fitted


class Knowledge(NamedTuple):
    """How well a fitted network knows the rows that it is to train on."""

    #: Its loss, and this loss as a part of that of the best constant prediction.
    loss: float = 0.0
    share: float = 0.0
    #: The loss of the best constant prediction; infinite where these rows cannot tell whether the
    #: network is worse.
    constant: float = math.inf
    #: Whether it is worse than the constant, and the rows can tell: see `can_tell`.
    is_worse: bool = False
    #: Whether it is worse by more than two standard errors.
    is_surely_worse: bool = False
    #: Whether the rows have one target.
    has_one_target: bool = False


def knowledge_of(
    plan: "Plan", model: Model, variables: Reparametrization, statistics: DataStatistics
) -> Knowledge:
    """Return how well a fitted network knows the rows."""
    if plan.loss.is_least_at_zero:
        return Knowledge()

    loss = RowLoss(plan, model.score_graph, variables, some_of(statistics.some_rows))
    if not loss.has_several_targets:
        # A constant has no loss here, and a part of it means nothing.
        return Knowledge(has_one_target=True)

    weights = variables.training_weights(model.trained_weights)
    with np.errstate(all="ignore"):
        constant = loss.best_constant(weights)
        # A loss that overflows is no number.
        ours = float(np.nan_to_num(loss.at(weights), nan=np.inf, posinf=np.inf))
        is_above = ours > constant
        is_sure = is_above and loss.is_clearly_worse(weights)
        # A part of a negative loss means nothing.
        share = ours / constant if constant > 0 else 0.0

    is_worse = is_above and can_tell(model, loss.n_rows, is_surely_worse=is_sure)
    return Knowledge(
        ours, share, math.inf if is_above and not is_worse else constant, is_worse, is_sure
    )
