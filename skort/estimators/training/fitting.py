"""The way of every training: a model, its data and a state go in; a fitted model and a state come out."""

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skort.estimators.data.data_source import BatchShape, DataSource
from skort.estimators.model.model import Model
from skort.estimators.training.config import TrainConfig
from skort.estimators.training.initialization import begin, go_on
from skort.estimators.training.messages import diverged_error
from skort.estimators.training.observers import Observers
from skort.estimators.training.reparametrization import Reparametrization
from skort.estimators.training.result import FitResult, result_of
from skort.estimators.training.terms import chosen_class_weight
from skort.exceptions import DivergedError
from skort.optim.loop import minimise
from skort.optim.state import TrainState
from skort.optim.training import Training, TrainStep
from skort.runtime.no_pickle import NoPickle

if TYPE_CHECKING:
    from skort.solvers.base import Problem

# Of a dense batch of sparse rows: 64 MB in float32.
_MOST_NUMBERS = 2**24


@dataclass(frozen=True, eq=False)
class TrainRun:
    """
    What makes the steps of a training. The next `partial_fit` goes on with it while its parameters hold.

    The generator, of which None is to be made, is the training's own.
    """

    config: TrainConfig
    variables: Reparametrization
    problem: "Problem"
    solver_name: str
    step: TrainStep
    are_sparse: bool = False
    random_state: np.random.RandomState | None = None

    @classmethod
    def begin(
        cls,
        config: TrainConfig,
        model: Model,
        state: TrainState,
        batches: BatchShape,
        n_batches: int | None = None,
        variables: Reparametrization | None = None,
    ) -> "TrainRun":
        """Return the steps of a model that go on from a state; what is None is not known, or found here."""
        from skort.solvers import choose, make_step

        if variables is None:
            variables = config.variables(model.score_graph, state.standardization)
        names = config.sparse_solvers(model, variables) if batches.are_sparse else []
        is_sparse = bool(names)
        if not is_sparse:
            names = config.solvers
            if batches.are_sparse:
                _check_dense_batches(names, batches.batch_size, model.score_graph.n_features)
        problem = config.problem(model, variables, state, batches.batch_size, n_batches, is_sparse=is_sparse)
        name = choose(names, problem)
        # A generator of its own: the order of the rows does not depend on what is drawn from it.
        solver = make_step(problem, solver=name, random_state=state.generator)
        if state.solver is not None:
            solver.restore(state.solver)
        return cls(config, variables, problem, name, solver, batches.are_sparse)

    def goes_on(self, config: TrainConfig, batches: BatchShape) -> bool:
        """Return whether the steps are right for more rows."""
        is_same = self.problem.batch_size == batches.batch_size and self.are_sparse == batches.are_sparse
        return self.config is config and is_same


def _check_dense_batches(names, n_rows, n_columns):
    """Raise an error where only solver "session" comes into question, and would make too much of a sparse X dense."""
    if names == ["session"] and n_rows * n_columns > _MOST_NUMBERS:
        raise ValueError(
            f'solver="session" makes the rows of a batch dense, here {n_rows * n_columns:,} numbers. It takes a sparse '
            f'X up to {_MOST_NUMBERS:,}. Use solver="graph", which multiplies sparse rows as they are, or a smaller '
            "batch_size."
        )


def fit_model(
    config: TrainConfig,
    model: Model,
    source: DataSource,
    state: TrainState,
    *,
    callbacks: Observers,
    epochs: int | None,
) -> FitResult:
    """
    Train a model, from the beginning or from where a state is.

    Raises a DivergedError with a likely cause, and a ValueError where the parameters do not suit the data.
    """
    statistics = source.statistics()
    if state.is_new:
        state, model, variables = begin(config, model, statistics, state)
        run, generator = None, state.generator()
    else:
        state, run, generator = _resumed(config, model, statistics, state)
        variables = config.variables(model.score_graph, state.standardization) if run is None else run.variables
    batches = source.batches(variables, generator)
    if run is None or not run.goes_on(config, batches):
        # The rows of one call say nothing about those of a stream.
        n_batches = None if epochs is None else batches.n_batches
        run = TrainRun.begin(config, model, state, batches, n_batches, variables)
    patience = config.patience(batches.n_batches, is_linear=model.score_graph.is_linear)
    training = Training(
        source.step(run, model, state),
        batches,
        config.schedule,
        state,
        run.variables,
        max_iter=epochs,
        can_restart=config.is_rate_auto,
        is_compared=config.is_compared,
        callbacks=callbacks.callbacks(run.variables.in_units.unit, patience, one_epoch=epochs is None),
        view=callbacks.view(config, model, state),
    )
    try:
        outcome = minimise(training)
    except DivergedError as error:
        raise diverged_error(config, error, state, statistics.some_rows) from None
    if epochs is None:
        live = NoPickle()
        live.put(dataclasses.replace(run, random_state=batches.random_state))
        outcome = dataclasses.replace(outcome, progress=dataclasses.replace(outcome.progress, live=live))
    return FitResult.of(run, model, state, outcome, statistics.some_rows)


def _resumed(config, model, statistics, state):
    """Return a state as more rows change it, what made its steps, where that can go on, and the generator."""
    run = None if state.live is None else state.live.take()
    generator = state.generator() if run is None else run.random_state
    resumed = go_on(config, model, state, statistics)
    is_at = resumed.solver is state.solver and resumed.standardization is state.standardization
    return resumed, run if is_at and run is not None and run.config is config else None, generator


class FittedProblem(NamedTuple):
    """The training that goes on from the weights of a fitted estimator, on the CPU."""

    model: Model
    variables: Reparametrization
    problem: "Problem"
    #: Whether class weights are part of the sample weights that a step gets.
    weighs_rows: bool


def fitted_problem(estimator: Any, *, is_sparse: bool = False) -> FittedProblem:
    """Return the training that goes on from the weights of a fitted estimator; a NotFittedError before a fit."""
    from skort.runtime.device import CPU

    result = result_of(estimator)
    config, model, state = result.config, result.model, result.state
    variables = config.variables(model.score_graph, state.standardization)
    problem = config.problem(model, variables, state, result.batch_size, result.n_batches, is_sparse=is_sparse)
    weighs_rows = config.class_weight is None and (
        chosen_class_weight(estimator, config.own, one_epoch=False) is not None
    )
    return FittedProblem(model, variables, dataclasses.replace(problem, device=CPU), weighs_rows)
