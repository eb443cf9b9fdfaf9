"""A fitted model and new rows: which weights a fit ends with, and the rate of its training."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skort.estimators.data.rows import DataStatistics
from skort.estimators.model.model import Model
from skort.estimators.planning.decision import rule
from skort.estimators.variables.reparametrization import Reparametrization
from skort.estimators.variables.row_loss import RowLoss, some_of

if TYPE_CHECKING:
    from skort.estimators.planning.plan import Plan

# Chosen by `python -m benchmarks.fine_tuning --tables`: the part of the rate, and the number of
# rows below which cross-validation tells nothing. If 59 of 60 rows have the same y, training on
# them lowers the score of other rows by more than .01 on 14 of 24 tables; if 50 have the same y, on
# 4.
_PART = 0.05
_LEAST_ROWS = 20
_MOST_OF_ONE_TARGET = 10
# The part of a constant's loss above which a network is compared with new weights.
_KNOWS_LITTLE = 0.5


@rule("first rate")
def fitted_part(share: float, *, is_fitted: bool) -> float:
    """
    A fitted network has a twentieth of the rate of a new one; an ONNX file and a warm start have it
    if their loss on the new rows is at most half the loss of a constant prediction.
    """
    # A file that knows little may hold initial weights.
    return 1.0 if not is_fitted and knows_little(share) else _PART


@rule("weights")
def is_planned_as_new(model: Model) -> bool:
    """
    A warm start has the plan of a new network, but for the first rate; that of a frozen network or
    of an ONNX file ignores the noise of y, the weights a row and the relevance of columns.
    """
    # With a smaller decay, a warm start remembers what is no longer so, and learns the noise of few
    # rows.
    return model.is_drawn or model.inner.draws_weights


@rule("weights")
def is_compared(plan: "Plan", model: Model) -> bool:
    """
    A `fit` to rows in memory compares the weights of a fitted model with others, unless you give
    `coef_init`, `intercept_init`, `early_stopping`, `warm_start`, `loss="perceptron"`, an optimizer
    other than L-BFGS, its rate or its batches.
    """
    return (
        model.inner.is_fitted
        and (plan.is_full or plan.leaves_steps_open)
        and "early_stopping" in plan.left_open
        and not plan.given["warm_start"]
        and not plan.loss.is_least_at_zero
    )


@rule("weights")
def says_nothing(target: np.ndarray) -> bool:
    """
    Fewer than 20 rows leave the weights of a fitted model as they are; of rows with the same y, only
    ten count.
    """
    return n_that_count(target) < _LEAST_ROWS


def n_that_count(target: np.ndarray) -> int:
    """Return the number of rows, of which only ten with the same y count."""
    _, counts = np.unique(target, axis=0, return_counts=True)
    return int(np.minimum(counts, _MOST_OF_ONE_TARGET).sum())


@rule("weights")
def knows_little(share: float) -> bool:
    """
    New weights are compared with those of a fitted network if its loss on the new rows is more than
    half the loss of a constant prediction.
    """
    # A network that knows more may know rows that are not among these.
    return share > _KNOWS_LITTLE


class Rise(NamedTuple):
    """
    The rise of the loss of held-out rows from a fitted model to another one, and to the best constant
    of the other rows, each with its standard error.
    """

    loss: float
    error: float
    constant: float = math.nan
    constant_error: float = 0.0

    @property
    def most(self) -> float:
        """The rise that speaks for the fitted model: a constant that is better takes its advantage."""
        is_worse = self.constant + self.constant_error < 0
        # If it is no number, the fitted weights stay.
        return float(np.nan_to_num(self.loss if is_worse else self.loss + self.error, nan=np.inf))


@rule("weights")
def best_weights(rises: Mapping[str, Rise]) -> str | None:
    """
    A fitted model keeps its weights unless trained or new ones lower the loss by more than a standard
    error in five-fold cross-validation on the new rows; if a constant does, they need only lower it.
    """
    best = min(rises, key=lambda name: rises[name].most)
    return best if rises[best].most < 0 else None


class Knowledge(NamedTuple):
    """How well a fitted network knows the rows that it is to train on."""

    #: Its loss, and this loss as a part of that of the best constant prediction.
    loss: float = 0.0
    share: float = 0.0
    #: The loss of the best constant prediction; infinite where these rows cannot tell whether the
    #: network is worse.
    constant: float = math.inf
    #: Whether it is worse than the constant by more than two standard errors.
    is_worse: bool = False
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
        # The best constant fits one target exactly: no part of its loss means anything.
        return Knowledge(has_one_target=True)

    weights = variables.training_weights(model.trained_weights)
    with np.errstate(all="ignore"):
        constant = loss.best_constant(weights)
        # A loss that overflows is no number.
        ours = float(np.nan_to_num(loss.at(weights), nan=np.inf, posinf=np.inf))
        is_above = ours > constant
        is_worse = is_above and loss.is_clearly_worse(weights)
        # A part of a negative loss means nothing.
        share = ours / constant if constant > 0 else float(is_worse)

    return Knowledge(ours, share, math.inf if is_above and not is_worse else constant, is_worse)
