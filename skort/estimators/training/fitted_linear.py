"""
A fitted linear model after a fit to new rows: the optimum of these rows, or its own weights. The
optimum is the same from any weights, so that few rows would make it forget all that it knows.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np
from sklearn.base import clone

from skort.common.random_state import seeded
from skort.estimators.data.rows import TrainingData
from skort.estimators.model.model import Model
from skort.estimators.planning.fitted import keeps_fitted
from skort.estimators.training.data_source import InMemory
from skort.estimators.training.observers import Observers
from skort.estimators.training.result import FitResult
from skort.estimators.training.run import run_fit
from skort.estimators.variables.row_loss import RowLoss
from skort.optim.state import TrainState

_FOLDS = 5
# So many held-out rows tell enough; more would only take time.
_ENOUGH_ROWS = 1000


def better_of(
    result: FitResult, model: Model, rows: TrainingData | None, observers: Observers
) -> FitResult:
    """
    Return the result of a fit that began at a model, or one with the weights of the model, if a
    rule keeps them. `rows` are all rows, or None if they are not in memory.
    """
    if rows is None or not _is_asked(result, model):
        return result

    kept = "one target"
    # A model of rows with one target predicts it for all rows, and is right.
    if np.ptp(rows.counted(rows.target), axis=0).any():
        is_kept = keeps_fitted(rise(result, model, rows, observers))
        kept = "not beaten" if is_kept else "optimum"
    if kept == "optimum":
        return dataclasses.replace(result, kept=kept)

    return dataclasses.replace(
        # The memory of the optimizer is that of other weights.
        result.with_weights({}),
        model=_with_weights_of(model, result.model),
        kept=kept,
        ending=result.ending._replace(went_back=True),
    )


def _is_asked(result, model):
    """Return whether a fit went to the optimum of its rows from fitted weights, by skort's choice."""
    plan = result.plan
    is_at_end = result.state.stopped or "max_iter" in plan.left_open
    return (
        model.inner.is_fitted
        and model.score_graph.is_linear
        and is_at_end
        and result.ending.error is None
        and (plan.is_full or plan.leaves_steps_open)
        and "early_stopping" in plan.left_open
        and not plan.given["warm_start"]
        and not plan.loss.is_least_at_zero
    )


def rise(result: FitResult, model: Model, rows: TrainingData, observers: Observers) -> float:
    """
    Return how much higher the loss of held-out rows is with models fitted to the other rows than
    with the fitted model.
    """
    weight = rows.sample_weight
    counted = np.arange(len(rows.target)) if weight is None else np.flatnonzero(weight)
    quiet = clone(observers.estimator).set_params(callbacks=None, verbose=0)
    quiet_observers = Observers(quiet, observers.columns)

    total = 0.0
    for held_out, others in _folds(counted):
        source = InMemory(result.plan, rows.taken(others))
        start = TrainState.start(seeded(0))
        fitted = run_fit(result.plan, model, source, start, quiet_observers)
        apart = rows.taken(held_out)
        total += _loss(fitted, fitted.model, apart)
        total -= _loss(fitted, _with_weights_of(model, fitted.model), apart)

    return total


def _folds(numbers: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield held-out rows and the others, until enough rows were held out."""
    from sklearn.model_selection import KFold

    folds = KFold(min(_FOLDS, len(numbers)), shuffle=True, random_state=0)
    n_rows = 0
    for others, held_out in folds.split(numbers):
        yield numbers[held_out], numbers[others]

        n_rows += len(held_out)
        if n_rows >= _ENOUGH_ROWS:
            return


def _with_weights_of(fitted, trained):
    """Return a trained model with the weights of the fitted one that it began at."""
    from skort.graphs.standardized import with_moved_offsets

    # The offsets of the trained model keep the digits of far columns.
    graph = with_moved_offsets(fitted.score_graph, trained.score_graph.arrays)
    return trained.with_weights({**graph.trained_arrays, **fitted.loss_weights})


def _loss(result, model, rows):
    """Return the sum of the losses of rows at the weights of a model, with their sample weights."""
    plan = result.plan
    variables = plan.variables(model.score_graph, result.state.standardization)
    loss = RowLoss(plan, model.score_graph, variables, rows)
    with np.errstate(all="ignore"):
        return loss.total * loss.at(variables.training_weights(model.trained_weights))
