"""
A fit of a fitted model to new rows. Cross-validation on these rows decides which weights it ends
with: fitted, trained or new ones. Without it, a fit to few rows would forget all that the model
knows.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from skort.common.random_state import seeded
from skort.common.user_warning import unwarned
from skort.estimators.data.nesting import model_inside
from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.model.model import Model
from skort.estimators.model.wrapped import spec_of_rows
from skort.estimators.planning.fine_tuning import (
    Rise,
    best_weights,
    knowledge_of,
    knows_little,
    n_that_count,
    says_nothing,
)
from skort.estimators.planning.plan import OpenPlan, Plan
from skort.estimators.planning.plan_of_fit import for_model
from skort.estimators.training.data_source import InMemory
from skort.estimators.training.observers import Observers
from skort.estimators.training.result import FitResult
from skort.estimators.training.run import run_fit
from skort.estimators.variables.row_loss import RowLoss, some_of
from skort.exceptions import DivergedError
from skort.optim.loop import INTERRUPTED
from skort.optim.optimizers import SGD
from skort.optim.schedules import Constant
from skort.optim.state import TrainState

_FOLDS = 5
# So many held-out rows are enough. More would only take time.
_ENOUGH_ROWS = 1000


class Chosen(NamedTuple):
    """The model that a fit begins with, and why: see `FitResult.kept`."""

    model: Model
    kept: str
    #: What ended the comparison early, or None.
    interrupt: KeyboardInterrupt | None = None
    #: For few rows: see `Ending.counts`.
    counts: tuple[int, int] | None = None


def chosen_weights(
    plan: Plan,
    plan_of: Callable[[np.ndarray], OpenPlan],
    model: Model,
    rows: TrainingData,
    observers: Observers,
    generator: np.random.RandomState,
) -> Chosen:
    """
    Return the weights that are best on held-out rows. `plan_of` takes sample weights, and returns the
    plan of a fit with them.
    """
    target = rows.counted(rows.target)
    if says_nothing(target):
        return Chosen(model, "few rows", counts=(n_that_count(target), len(target)))

    others = {"trained": model}
    try:
        drawn = _drawn(plan, model, rows, generator)
        if drawn is not None:
            others["new"] = drawn

        with unwarned():
            rises = {
                name: rise(plan_of, model, other, rows, observers) for name, other in others.items()
            }
    except KeyboardInterrupt as interrupt:
        return Chosen(model, "interrupted", interrupt)

    best = best_weights(rises)
    return Chosen(model, "not beaten") if best is None else Chosen(others[best], best)


def _drawn(plan, model, rows, generator):
    """
    Return a network with new weights. None: the fitted model knows these rows, is no network, or
    has frozen weights.
    """
    graph = model.score_graph
    if graph.is_linear or plan.given_inside["trainable"] is not None:
        return None
    known = knowledge_of(plan, model, plan.variables(graph, None), DataStatistics(rows))
    if not knows_little(known.share):
        return None

    weights = _new_weights(plan, model, rows, generator)
    if weights is None:
        return None
    return dataclasses.replace(model.with_weights(weights), is_drawn=True)


def _new_weights(plan, model, rows, generator):
    """Return new initial weights of a network for some rows, by name, or None."""
    from skort.graphs.initialization import drawn_weights
    from skort.graphs.score_graph import ScoreSpec

    graph = model.score_graph
    spec = functools.partial(
        ScoreSpec,
        n_outputs=graph.n_outputs,
        dtype=graph.dtype,
        is_classifier=plan.is_classifier,
    )
    network = model.inner.model
    if hasattr(network, "__skort_apart__"):
        # An estimator of skort has the network inside.
        network = model_inside(network.estimator)
    of_rows = spec_of_rows(spec, model.preprocessing.transformers, rows.X)
    return drawn_weights(network, graph, of_rows, generator)


def rise(
    plan_of: Callable[[np.ndarray], OpenPlan],
    model: Model,
    other: Model,
    rows: TrainingData,
    observers: Observers,
) -> Rise:
    """
    Return the rise of the loss of held-out rows from a fitted model to another one that is trained
    on the other rows, and to their best constant.
    """
    weights = np.ones(len(rows.target)) if rows.sample_weight is None else rows.sample_weight
    parameters = observers.estimator.get_params(deep=False)
    quiet = type(observers.estimator)(**{**parameters, "callbacks": None, "verbose": 0})
    quiet_observers = Observers(quiet, observers.columns)
    total = np.zeros((2, 2))

    for held_out, rest in _folds(np.flatnonzero(weights)):
        of_rest = np.zeros_like(weights)
        of_rest[rest] = weights[rest]
        taken = rows.taken(rest)
        plan = for_model(plan_of(of_rest), other, taken)
        start = TrainState.start(seeded(0))
        try:
            end = run_fit(plan, other, InMemory(taken), start, quiet_observers)
        except DivergedError:
            return Rise(np.inf, 0.0)
        outcome = end.ending.outcome
        assert outcome is not None
        if outcome.error is not None:
            raise outcome.error

        total += _rises_of_rows(end, model, rows.taken(held_out), taken)

    # If the loss of the fitted model is infinite, any other model is better, and there is no error.
    errors = np.sqrt(np.where(np.isfinite(total[:, 1]), total[:, 1], 0.0))
    return Rise(*np.column_stack([total[:, 0], errors]).ravel().tolist())


def _folds(numbers: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield held-out rows and the others, until enough rows were held out."""
    from sklearn.model_selection import KFold

    folds = KFold(_FOLDS, shuffle=True, random_state=0)
    n_rows = 0
    for others, held_out in folds.split(numbers):
        yield numbers[held_out], numbers[others]

        n_rows += len(held_out)
        if n_rows >= _ENOUGH_ROWS:
            return


def _rises_of_rows(result, model, rows, others):
    """
    Return the rises of the summed losses of rows from a fitted model to the end of a fit, and to the
    best constant of the rows that it was trained on, each with its squared standard error.
    """
    end = result.model
    variables = result.plan.variables(end.score_graph, result.state.standardization)
    loss, of_others = (
        RowLoss(result.plan, end.score_graph, variables, each) for each in (rows, some_of(others))
    )
    unit = variables.in_units.unit
    here, there = (
        variables.training_weights(each.trained_weights) for each in (end, _at_weights(end, model))
    )
    with np.errstate(all="ignore"):
        constant = of_others.best_constant_score(there)
        rises = np.array([loss.rise(here, there), loss.rise_to_score(constant, there)])
        return loss.total * rises * (unit, unit**2)


def _at_weights(trained, fitted):
    """Return a trained model with the weights of the fitted one that it began at."""
    from skort.graphs.standardized import with_moved_offsets

    # The offsets of the trained model keep the digits of far columns.
    graph = with_moved_offsets(fitted.score_graph, trained.score_graph.arrays)
    return trained.with_weights({**graph.trained_arrays, **fitted.loss_weights})


def at_fitted(run: Callable[[Plan], FitResult], plan: Plan, chosen: Chosen) -> FitResult:
    """
    Return the result of a fit that keeps the fitted weights. `run` makes the training of a plan.
    Here this is one epoch at a rate of zero, which finds the loss and the scores of these weights.
    """
    still = dataclasses.replace(
        plan,
        update=dataclasses.replace(plan.update, optimizer=SGD()),
        schedule=Constant(0.0),
        max_iter=1,
        can_restart=False,
    )
    # Its warnings would be of a training, and there is none.
    with unwarned():
        result = run(still)

    planned = dataclasses.replace(
        result.plan,
        update=plan.update,
        schedule=plan.schedule,
        max_iter=plan.max_iter,
        can_restart=plan.can_restart,
    )
    outcome = result.ending.outcome
    assert outcome is not None
    error = outcome.error
    # The memory of the optimizer belongs to other weights.
    result = result.with_weights({})
    state = result.state
    if chosen.interrupt is not None:
        error = error or chosen.interrupt
        state = dataclasses.replace(state, stopping_reason=INTERRUPTED)

    return dataclasses.replace(
        result,
        plan=planned,
        model=_at_weights(result.model, chosen.model),
        state=state,
        kept=chosen.kept,
        ending=result.ending._replace(
            outcome=dataclasses.replace(outcome, went_back=True, error=error),
            counts=chosen.counts,
        ),
    )
