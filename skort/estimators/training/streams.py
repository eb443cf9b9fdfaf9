"""The way of a stream: each call of `partial_fit` is one pass over its rows, on scales that the first rows decide."""

import copy
import dataclasses
from typing import Any

import numpy as np
import scipy.sparse

from skort.common.user_warning import warn_user
from skort.estimators.data.data_source import BatchShape, InMemory
from skort.estimators.data.not_numbers import ids_in_range
from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.model.model import Model
from skort.estimators.training.config import TrainConfig
from skort.estimators.training.fitting import Fit, TrainRun
from skort.estimators.training.initialization import begin, stable_rate, stream_rate
from skort.estimators.training.loss_scale import has_units
from skort.estimators.training.messages import diverged_error
from skort.estimators.training.result import FitResult, Observers
from skort.estimators.training.row_loss import RowLoss
from skort.exceptions import DivergedError
from skort.optim.loop import minimise
from skort.optim.standardization import Standardization
from skort.optim.state import TrainState
from skort.runtime.cache import NoPickle

# So many rows say what the scales of a stream are.
_FIRST_ROWS = 20
# A column whose mean distance from the first rows is so many scales, over 20 rows, is another one.
_FAR = 10.0
# Of a larger call, so many rows tell.
_SOME_ROWS = 1000
# By how much the rate of a fitted network is smaller than that of a new one.
_FITTED = 0.1


@ids_in_range()
def stream_model(
    config: TrainConfig, model: Model, rows: TrainingData, state: TrainState, *, callbacks: Observers
) -> FitResult:
    """Return a model after one pass over the rows of a call; the first wait until 20 say what scales and rate are."""
    config.check_steps("partial_fit")
    if not state.is_new:
        state, run = _resumed(config, model, rows, state)
        return _trained(config, model, rows, state, run, callbacks)

    rows = rows.after(state.first_rows)
    if rows.n_rows < _FIRST_ROWS and (config.standardize or config.is_rate_auto):
        return _waiting(config, model, rows, state)

    if state.first_weights is not None:
        model = dataclasses.replace(model.with_weights(state.first_weights), is_drawn=True)
    state = dataclasses.replace(state, first_rows=None, first_weights=None)
    is_fitted = not (model.is_drawn or model.score_graph.is_linear)
    state, model, _ = begin(config, model, DataStatistics(rows), state, is_stream=True)
    if is_fitted and config.is_rate_auto:
        state = dataclasses.replace(state, rate_scale=_FITTED * state.rate_scale)
    return _trained(config, model, rows, state, None, callbacks)


def _waiting(config, model, rows, state):
    """Return a result without a step: a model without weights of its own predicts the best constant."""
    first_weights = state.first_weights
    if model.is_drawn:
        first_weights = model.trained_weights
    if first_weights is not None:
        model = _constant(config, model, rows)
    # What is wrong with the parameters is said now. The user may write other rows into the same arrays.
    shape = BatchShape(min(config.batch_size, max(rows.n_rows, 1)), rows.is_sparse)
    run = TrainRun.plan(config, model, state, shape).begun(state)
    state = dataclasses.replace(state, first_rows=copy.deepcopy(rows), first_weights=first_weights)
    return FitResult(config, model, state, solver_name=run.solver_name, batch_size=config.batch_size)


def _constant(config, model, rows):
    """Return a model that predicts the best constant of some rows, if its last layer has an intercept."""
    from skort.graphs.standardized import last_layer

    graph = model.score_graph
    layer = last_layer(graph)
    if layer is None or layer.intercept is None or not rows.n_rows:
        return dataclasses.replace(model, is_drawn=False)
    loss = RowLoss(config, graph, config.variables(graph, None), rows)
    weights = model.trained_weights
    score = loss.best_constant_score(weights)
    intercept, coefficient = weights[layer.intercept], weights[layer.coefficient]
    weights[layer.intercept] = score.astype(intercept.dtype).reshape(intercept.shape)
    weights[layer.coefficient] = np.zeros_like(coefficient)
    return model.with_weights(weights)


def _resumed(config, model, rows, state):
    """Return the state that a stream goes on from, and what made its steps so far; None: that is to be made anew."""
    _check_terms(config, model, state.standardization)
    run = None if state.live is None else state.live.take()
    if run is not None and run.config is not config:
        run = None
    if config.is_rate_auto != state.is_rate_auto:
        variables = config.variables(model.score_graph, state.standardization)
        rate_scale = stream_rate(config, variables, model.score_graph, DataStatistics(rows))
        state = dataclasses.replace(state, rate_scale=rate_scale, is_rate_auto=config.is_rate_auto)
    if config.takes_start and state.penalty_start is None:
        state = dataclasses.replace(state, penalty_start=model.score_graph.trained_arrays)
    if not state.is_told and _warned_of_far_columns(rows, state.standardization):
        state = dataclasses.replace(state, is_told=True)
    return state, run


def _trained(config, model, rows, state, run, callbacks):
    """Return what one pass over rows leaves, with what made its steps."""
    generator = state.first_generator() if run is None else run.random_state
    variables = config.variables(model.score_graph, state.standardization) if run is None else run.variables
    batches = StreamCall(config, rows).batches(variables, generator)
    shape = BatchShape(batches.batch_size, batches.are_sparse)
    if run is None or run.shape != shape:
        run = TrainRun.plan(config, model, state, shape, None, variables).begun(state)
    rate_scale = _rate_of_call(config, model, variables, rows, state.rate_scale)
    fit = Fit(run, model, dataclasses.replace(state, rate_scale=rate_scale), callbacks, None)
    try:
        outcome = minimise(fit.training(run.step, batches))
    except DivergedError as error:
        raise diverged_error(config, error, state, rows) from None
    if outcome.progress.rate_scale != rate_scale:
        # It was resumed from a checkpoint, whose rate it goes on with.
        state = dataclasses.replace(state, rate_scale=outcome.progress.rate_scale)
    live = NoPickle()
    live.put(dataclasses.replace(run, random_state=batches.random_state))
    progress = dataclasses.replace(outcome.progress, live=live, rate_scale=state.rate_scale, is_told=state.is_told)
    return fit.result(dataclasses.replace(outcome, progress=progress), rows)


def _rate_of_call(config, model, variables, rows, rate_scale):
    """Return the rate of a stream, or for rows on which eta0="auto" is not stable the largest rate that is."""
    if not config.is_rate_auto or config.update.tags.gain is None or not model.score_graph.is_linear:
        return rate_scale
    facts, n_rows = DataStatistics(rows), min(config.batch_size, rows.n_rows)
    # No eigenvalue is larger than the mean norm, which takes less time.
    if rate_scale <= stable_rate(config, variables, model.score_graph, facts, n_rows, is_rough=True):
        return rate_scale
    return min(rate_scale, stable_rate(config, variables, model.score_graph, facts, n_rows))


class StreamCall(InMemory):
    """The rows of one call, whose weights multiply as they are: nobody knows the mean of a stream's."""

    def batches(self, view: Any, random_state: np.random.RandomState) -> Any:  # type: ignore[override]
        """Return batches of the rows in random order."""
        return super().batches(view, random_state, DataStatistics(self.data).mean_weight)


def _warned_of_far_columns(rows: TrainingData, used: Standardization | None) -> bool:
    """Warn of a column, or a y, that is many scales of the first rows away; return whether there is one."""
    if used is None:
        return False
    found = []
    if used.mean is not None and not scipy.sparse.issparse(rows.X):
        distance = _distance(rows.X, used.mean, used.scale)
        column = int(np.argmax(distance))
        found.append((f"column {column} of X", distance[column]))
    if used.target_mean is not None:
        found.append(("y", np.max(_distance(rows.target, used.target_mean, used.target_scale))))
    for name, distance in found:
        if distance > _FAR:
            warn_user(
                f"partial_fit: {name} is {distance:.3g} standard deviations away from the rows that the stream began "
                "with, whose scale it keeps. Call fit on rows of today, or put a scaler of your own before the model."
            )
            return True
    return False


def _distance(values, mean, scale):
    """Return the mean distance of some rows from a mean, in scales; few rows count as if others were near it."""
    some = values[:: -(-len(values) // _SOME_ROWS)]
    with np.errstate(over="ignore", invalid="ignore"):
        return np.abs((some - mean) / scale).sum(axis=0) / max(len(some), _FIRST_ROWS)


def _check_terms(config, model, used):
    """Raise an error where a changed loss or penalty does not suit the variables of a stream."""
    if used is None:
        return
    n_outputs, mean = model.score_graph.n_outputs, used.target_mean
    has_link = config.loss.inverse_link_function(n_outputs) is not None
    if mean is not None and (not has_units(config.loss, n_outputs) or (has_link and mean.any())):
        raise ValueError(
            f"loss={config.loss!r} does not suit the standardized y of earlier calls. Call fit, or use "
            "standardize=False from the first call on."
        )
    means = [each for each in (used.mean, used.target_mean) if each is not None]
    is_centred = any(np.any(each) for each in means) or (has_link and used.target_mean is not None)
    penalty = config.penalty
    if is_centred and penalty is not None and penalty.intercepts is not None:
        raise ValueError(
            f"penalty={type(penalty).__name__} covers intercepts, but earlier calls subtracted the means of X or "
            "y. Call fit, or use standardize=False from the first call on."
        )
