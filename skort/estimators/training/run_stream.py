"""A call of `partial_fit`: one pass over its rows. The scales of a stream come from its first rows."""

import copy
import dataclasses
import functools
import math

import numpy as np

from skort.estimators.data.columns import listed_with_y, names_out
from skort.estimators.data.row_forms import ids_in_range
from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.model.model import Model
from skort.estimators.planning.fine_tuning import knowledge_of
from skort.estimators.planning.plan import Plan
from skort.estimators.planning.rate import RateBasis
from skort.estimators.planning.stream import (
    FIRST_ROWS,
    call_part,
    falling_part,
    falls_by_rows,
    heavy_row_copies,
    is_waiting,
    keeps_decorrelation,
    spread_of_stream,
    stream_rates,
    with_late_scales,
)
from skort.estimators.training.data_source import BatchShape, batches_in_memory
from skort.estimators.training.diverged import diverged_error
from skort.estimators.training.left_scale import too_far_error, warn_of_left_scale
from skort.estimators.training.observers import Observers
from skort.estimators.training.result import FitResult
from skort.estimators.training.run import ReadyTraining, TrainRun
from skort.estimators.training.start import Start, check_first_rows, start_at_weights
from skort.estimators.training.warnings_at_start import warn_of_fitted
from skort.estimators.variables.row_loss import RowLoss
from skort.exceptions import DivergedError
from skort.objective.loss import takes_standardized_y
from skort.optim.loop import minimise
from skort.optim.schedules import rate
from skort.optim.state import TrainState
from skort.optim.transforms import with_recent_mean
from skort.runtime.cache import NoPickle


@ids_in_range()
def run_stream(
    plan: Plan,
    model: Model,
    rows: TrainingData,
    state: TrainState,
    observers: Observers,
    last: FitResult | None = None,
) -> FitResult:
    """
    Return a model after one pass over the rows of a call. `last` is the result that the call goes on
    from. If scales or the rate come from the first rows, these wait until there are 20.
    """
    plan.check_steps("partial_fit")
    if last is None or state.is_new:
        return _of_first_rows(plan, model, rows.after(state.first_rows), state, observers)
    return _of_later_rows(plan, model, rows, state, observers, last)


def _of_first_rows(plan, model, rows, state, observers):
    """Return the result of the first rows: they make the first pass, or wait for more rows."""
    if is_waiting(plan, rows.n_rows):
        return _waiting(plan, model, rows, state)

    if state.first_weights is not None:
        model = dataclasses.replace(model.with_weights(state.first_weights), is_drawn=True)
    state = dataclasses.replace(state, first_rows=None, first_weights=None)
    started = start_at_weights(plan, model, DataStatistics(rows), state, is_stream=True)
    if model.inner.is_fitted and not model.is_drawn:
        _warn_of_worse(started.plan, started.model, started.variables, rows)

    return _trained(started, rows, None, observers)


def _of_later_rows(plan, model, rows, state, observers, last):
    """Return the result of one more pass, after a fit or after a call."""
    is_after_fit = not last.plan.is_stream
    _check_terms(plan, model, state.standardization)
    run = None if state.live is None else state.live.take()
    if run is not None and run.plan is not plan:
        run = None

    used = with_late_scales(state.standardization, rows)
    if used is not state.standardization:
        # The weights of the training stay: that of a constant column has changed no score so far.
        state = dataclasses.replace(state, standardization=used)
        run = None

    variables = (
        plan.variables(model.score_graph, state.standardization) if run is None else run.variables
    )
    spread = last.spread
    basis = RateBasis(plan, variables, model.score_graph, DataStatistics(rows))
    is_dropped = run is None and not keeps_decorrelation(basis)
    if is_dropped:
        plan, state, variables = _without_decorrelation(plan, model, state)
        basis = basis._replace(plan=plan, variables=variables)
        spread = None
    if is_after_fit or is_dropped or _has_other_rate(plan, last.plan):
        spread = spread or spread_of_stream(basis)
        plan, state = _at_new_rate(basis, state, spread, is_after_fit=is_after_fit)
    if plan.takes_start and state.penalty_start is None:
        state = dataclasses.replace(state, penalty_start=model.score_graph.trained_arrays)

    looked_at, recent = _with_recent(rows, state.recent)
    told = _told(plan, model, looked_at, state, observers.columns)
    state = dataclasses.replace(state, told=told, recent=recent)
    # A warning of a column that has left its scale already tells why.
    if is_after_fit and not told:
        # After a short fit, a model may still be no better than a constant, even on its own rows.
        losses = state.column("loss") or [-np.inf]
        _warn_of_worse(plan, model, variables, rows, losses[-1])

    return _trained(Start(plan, model, state, variables, spread=spread), rows, run, observers)


def _with_recent(rows, recent):
    """Return the rows of a call behind those of small calls before it, and the next such rows."""
    if len(rows.target) >= FIRST_ROWS:
        return rows, None
    rows = rows.after(recent).taken(slice(-FIRST_ROWS, None))
    # The user may overwrite the arrays.
    return rows, copy.deepcopy(rows.taken(slice(1 - FIRST_ROWS, None)))


def _told(plan, model, rows, state, columns):
    """Warn of columns that have left their scale. Return what warnings have said so far."""
    named = functools.partial(_named, model, columns)
    layer = model.score_graph.first_layer
    return warn_of_left_scale(rows, state.standardization, layer, named, plan.loss, state.told)


def _named(model, columns, numbers, *, has_y):
    """Return the names of columns of X, by their numbers, and y, as a message shows them."""
    names = columns.names
    if model.has_steps and names is not None:
        names = names_out(model.preprocessing.transformers)
    shown = numbers if names is None else [names[number] for number in numbers]
    return listed_with_y(shown, has_y=has_y, place="the transformed X" if model.has_steps else "X")


def _warn_of_worse(plan, model, variables, rows, fitted_loss=-np.inf):
    """
    Warn if a fitted network is worse than a constant on the rows of a first call, by more than two
    standard errors, and if its loss is above that of the last epoch of its fit.
    """
    if model.score_graph.is_linear:
        return

    known = knowledge_of(plan, model, variables, DataStatistics(rows))
    # On 20 rows, a constant often beats a network that knows a small part of y.
    if known.is_worse and known.loss > fitted_loss:
        warn_of_fitted(known)


def _waiting(plan, model, rows, state):
    """Return a result without a step. A model without weights of its own predicts the best constant."""
    shape = BatchShape(min(plan.batch_size, max(rows.n_rows, 1)), rows.is_sparse)
    run = TrainRun.of(plan, model, state, shape)
    if state.first_rows is None:
        # Errors of the rows and the parameters are raised now, and not when the rows are enough.
        check_first_rows(plan, model, rows)
        run.with_step(state)

    first_weights = model.trained_weights if model.is_drawn else state.first_weights
    if first_weights is not None:
        model = _constant(plan, model, rows)

    # The user may overwrite the arrays.
    state = dataclasses.replace(state, first_rows=copy.deepcopy(rows), first_weights=first_weights)

    return FitResult(plan, model, state, solver_name=run.solver_name, batch_size=plan.batch_size)


def _constant(plan, model, rows):
    """Return a model that predicts the best constant of some rows; without an intercept or rows, zero."""
    graph = model.score_graph
    layer = graph.last_layer
    if layer is None:
        return dataclasses.replace(model, is_drawn=False)

    weights = model.trained_weights
    weights[layer.coefficient] = np.zeros_like(weights[layer.coefficient])

    if layer.intercept is not None:
        weights[layer.intercept] = np.zeros_like(weights[layer.intercept])
        if rows.n_rows:
            loss = RowLoss(plan, graph, plan.variables(graph, None), rows)
            weights[layer.intercept] = loss.best_intercept(weights, layer.intercept)

    return model.with_weights(weights)


def _has_other_rate(plan, last):
    """Return whether parameters that decide on the rate of a stream have changed since the last plan."""
    # The state does not say it: that of a checkpoint of a fit, from which a call may go on, has a
    # rate that no rows lower.
    return falls_by_rows(plan) != falls_by_rows(last) or plan.rate.is_found != last.rate.is_found


def _without_decorrelation(plan, model, state):
    """Return the start of a call of a stream whose steps are no more multiplied by a matrix."""
    assert state.standardization is not None  # It has the matrix.
    used = state.standardization.units
    state = dataclasses.replace(state, standardization=used)
    plan = plan.decided("scaling", plan.decisions["scaling"]._replace(value=used))
    return plan, state, plan.variables(model.score_graph, used)


def _at_new_rate(basis, state, spread, *, is_after_fit):
    """Return the plan and the state of a stream with a new rate for its next steps."""
    plan, _, graph, statistics = basis
    rates = stream_rates(basis, spread, is_fitted=is_after_fit and not graph.is_linear)

    # The falls of a rate belong to its schedule. After a fit, an open schedule is another one.
    n_falls = 0 if is_after_fit and "learning_rate" in plan.left_open else state.n_falls
    n_in_rate = None
    if falls_by_rows(plan):
        # All rows before this call were seen.
        n_in_rate = state.n_seen - statistics.n_rows
        if state.solver is not None:
            # A step that makes no mean of recent weights does not read it.
            n_updates = math.ceil(n_in_rate / plan.batch_size)
            state = dataclasses.replace(state, solver=with_recent_mean(state.solver, n_updates))

    state = dataclasses.replace(
        state,
        rate_scale=rates["first rate"].value,
        is_rate_found=plan.rate.is_found,
        n_falls=n_falls,
        n_in_rate=n_in_rate,
    )

    return plan.with_decisions(rates), state


def _trained(started, rows, run, observers):
    """Return the result of one pass over rows. It remembers what made the steps."""
    plan, model, state, variables, *_ = started
    generator = state.first_generator() if run is None else run.random_state
    statistics = DataStatistics(rows)
    # Sample weights multiply losses as they are, since the mean of a whole stream is not known.
    weight = statistics.mean_weight

    first = state.rate_scale * rate(plan.schedule, state.n_updates + 1)
    fall = None
    if state.n_in_rate is not None:
        bound = plan.rate.bound
        most = 1.0 if bound is None else bound / state.rate_scale
        fall = functools.partial(falling_part, n_columns=rows.X.shape[1], most=most)
        first *= fall(state.n_in_rate)
    part = call_part(RateBasis(plan, variables, model.score_graph, statistics), first)
    if not part > 0:
        named = functools.partial(_named, model, observers.columns)
        raise too_far_error(rows.X, variables.standardization, named)
    copies = heavy_row_copies(part, weight)
    if copies > 1:
        part = min(1.0, copies * part)

    batches = batches_in_memory(plan, rows, variables, generator, weight, copies)
    shape = BatchShape(batches.batch_size, batches.are_sparse)
    if run is None or run.shape != shape:
        run = TrainRun.of(plan, model, state, shape, None, variables).with_step(state)
    ready = ReadyTraining(run, model, state, observers, epochs=None, rate_part=part, fall=fall)

    try:
        outcome = minimise(ready.training(run.step, batches))
    except DivergedError as error:
        raise diverged_error(run.plan, error, state, rows, model, run.variables) from None

    live = NoPickle(dataclasses.replace(run, random_state=batches.random_state))
    ended = dataclasses.replace(
        outcome.state, live=live, told=state.told, recent=state.recent, n_seen=state.n_seen
    )

    outcome = dataclasses.replace(outcome, state=ended)
    return ready.result(outcome, statistics, started.spread)


def _check_terms(plan, model, used):
    """Raise an error if a changed loss or penalty does not suit the variables of a stream."""
    if used is None:
        return

    n_outputs = model.score_graph.n_outputs
    mean = used.target_mean
    has_link = plan.loss.inverse_link_function(n_outputs) is not None
    if mean is not None and (
        not takes_standardized_y(plan.loss, n_outputs) or (has_link and mean.any())
    ):
        raise ValueError(
            f"loss={plan.loss!r} does not suit the standardized y of earlier calls. Call fit, or "
            "use standardize=False from the first call on."
        )

    means = [each for each in (used.mean, used.target_mean) if each is not None]
    is_centred = any(np.any(each) for each in means) or (has_link and used.target_mean is not None)
    penalty = plan.penalty
    if is_centred and penalty is not None and penalty.intercepts is not None:
        raise ValueError(
            f"penalty={type(penalty).__name__} covers intercepts, but earlier calls subtracted the "
            "means of X or y. Call fit, or use standardize=False from the first call on."
        )
