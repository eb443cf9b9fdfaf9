"""The way of every training: a model, its data and a state go in; a fitted model and a state come out."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skort.estimators.data.data_source import BatchShape, DataSource
from skort.estimators.data.not_numbers import ids_in_range
from skort.estimators.data.rows import TrainingData
from skort.estimators.model.model import Model
from skort.estimators.training.config import TrainConfig
from skort.estimators.training.initialization import begin, drawn_anew, fitted_share
from skort.estimators.training.messages import diverged_error, warn_of_fitted
from skort.estimators.training.network import fitted_part
from skort.estimators.training.reparametrization import Reparametrization
from skort.estimators.training.result import Ending, FitResult, Observers, result_of
from skort.estimators.training.terms import chosen_class_weight
from skort.exceptions import DivergedError
from skort.optim.batches import Batches
from skort.optim.loop import Outcome, minimise, minimise_together
from skort.optim.state import TrainState
from skort.optim.training import Course, Training, TrainStep
from skort.optim.watchers import Watchers

if TYPE_CHECKING:
    from skort.solvers.base import Problem
    from skort.solvers.graph.lanes import JointStep

# Of a dense batch of sparse rows: 64 MB in float32.
_MOST_NUMBERS = 2**24


@dataclass(frozen=True, eq=False)
class TrainRun:
    """What makes the steps of a training. The next `partial_fit` goes on with it while its parameters hold."""

    config: TrainConfig
    variables: Reparametrization
    problem: "Problem"
    solver_name: str
    #: A `TrainStep`, with the methods that one has beside; None: it is made with those of other trainings.
    step: Any = None
    shape: BatchShape | None = None
    #: The training's own; None: it is still to be made.
    random_state: np.random.RandomState | None = None

    @classmethod
    def plan(
        cls,
        config: TrainConfig,
        model: Model,
        state: TrainState,
        shape: BatchShape,
        n_batches: int | None = None,
        variables: Reparametrization | None = None,
    ) -> "TrainRun":
        """Return a run that has no step yet; what is None is not known, or found here."""
        from skort.solvers import choose

        if variables is None:
            variables = config.variables(model.score_graph, state.standardization)
        names = config.sparse_solvers(model, variables) if shape.are_sparse else []
        is_sparse = bool(names)
        if not is_sparse:
            names = config.solvers
            if shape.are_sparse:
                _check_dense_batches(names, shape.batch_size, model.score_graph.n_features)
        problem = config.problem(model, variables, state, shape.batch_size, n_batches, is_sparse=is_sparse)
        return cls(config, variables, problem, choose(names, problem), shape=shape)

    def begun(self, state: TrainState) -> "TrainRun":
        """Return it with a step that goes on from a state."""
        from skort.solvers import make_step

        # A generator of its own: the order of the rows does not depend on what is drawn from it.
        step = make_step(self.problem, solver=self.solver_name, random_state=state.generator)
        if state.solver is not None:
            try:
                step.restore(state.solver)
            except ValueError as error:
                given = f"optimizer={self.config.update.optimizer!r}, average={self.config.update.average!r}"
                raise ValueError(
                    f"partial_fit goes on with the memory of the last optimizer, and that of {given} is another. Set "
                    "optimizer and average back, or call model.set_weights({}), which begins it anew."
                ) from error
        return dataclasses.replace(self, step=step)


def _check_dense_batches(names, n_rows, n_columns):
    """Raise an error where only solver "session" comes into question, and would make too much of a sparse X dense."""
    if names == ["session"] and n_rows * n_columns > _MOST_NUMBERS:
        raise ValueError(
            f'solver="session" makes the rows of a batch dense, here {n_rows * n_columns:,} numbers. It takes a sparse '
            f'X up to {_MOST_NUMBERS:,}. Use solver="graph", which multiplies sparse rows as they are, or a smaller '
            "batch_size."
        )


@dataclass(frozen=True, eq=False)
class Fit:
    """A training before its first step, and what it ends in."""

    run: TrainRun
    model: Model
    state: TrainState
    observers: Observers
    #: The most epochs in all; None: one more.
    epochs: int | None
    #: Loss of the best constant prediction, where it begins at the weights of a fitted network.
    constant_loss: float | None = None

    def training(self, step: TrainStep, batches: Batches) -> Training:
        """Return the training on batches by a step."""
        config, variables, observers = self.run.config, self.run.variables, self.observers
        patience = config.patience(batches.n_batches, is_linear=self.model.score_graph.is_linear)
        # What makes its updates itself knows where it ends.
        tol = None if config.is_full else config.tol
        course = Course(
            schedule=config.schedule,
            optimizer=config.update.optimizer,
            max_iter=self.epochs,
            can_restart=config.can_restart,
            is_compared=not config.loss.is_least_at_zero,
            constant_loss=self.constant_loss,
        )
        watchers = Watchers(
            callbacks=observers.callbacks(tol, patience, one_epoch=self.epochs is None),
            view=observers.view(config, self.model, self.state),
        )
        return Training(step, batches, self.state, variables, course, watchers)

    def result(self, outcome: Outcome, rows: TrainingData | None = None) -> FitResult:
        """Return what the training leaves; rows that stand for all, where something may be said of them."""
        run, problem = self.run, self.run.problem
        prior = getattr(self.observers.scoring, "prior", None)
        ending = Ending(outcome.error, outcome.no_better, rows, prior, outcome.went_back, self.constant_loss)
        return FitResult(
            config=run.config,
            model=self.model.with_weights(outcome.weights),
            state=outcome.progress,
            solver_name=run.solver_name,
            batch_size=problem.batch_size,
            n_batches=problem.n_batches,
            is_sparse=problem.row_factor is not None,
            n_before=self.state.n_epochs,
            first_eta=outcome.first_eta,
            ending=ending,
        )


@ids_in_range()
def fit_model(
    config: TrainConfig,
    model: Model,
    source: DataSource,
    state: TrainState,
    *,
    callbacks: Observers,
    epochs: int,
) -> FitResult:
    """Train a model from the beginning."""
    statistics = source.statistics()
    start = _begun(config, model, statistics, state)
    config, model, state, variables = start.config, start.model, start.state, start.variables
    batches = source.batches(variables, start.generator)
    shape = BatchShape(batches.batch_size, batches.are_sparse)
    run = TrainRun.plan(config, model, state, shape, batches.n_batches, variables).begun(state)
    fit = Fit(run, model, state, callbacks, epochs, start.constant_loss)
    step = source.step(run, model, state)
    if config.is_full:
        from skort.solvers.full import FullStep

        is_exact = model.score_graph.is_linear or not config.is_open("tol")
        step = FullStep(run.problem, step, batches, config.tol, is_exact=is_exact)
    training = fit.training(step, batches)
    try:
        outcome = minimise(training)
    except DivergedError as error:
        raise diverged_error(config, error, state, statistics.some_rows) from None
    return fit.result(outcome, statistics.some_rows)


@ids_in_range()
def fit_models(fits: Sequence[Fit], step: "JointStep", batches: Batches) -> list[FitResult | None]:
    """Train models whose steps are lanes of one, as `fit_model` does each; None where one has to be trained alone."""
    trainings = [fit.training(lane, batches) for fit, lane in zip(fits, step.lanes, strict=True)]
    outcomes = minimise_together(trainings, step, batches)
    return [None if end is None else fit.result(end) for fit, end in zip(fits, outcomes, strict=True)]


class _Start(NamedTuple):
    """What a training begins with."""

    config: TrainConfig
    model: Model
    state: TrainState
    variables: Reparametrization
    generator: np.random.RandomState
    #: The loss of the best constant prediction, where it begins at the weights of a fitted network.
    constant_loss: float | None = None


def _begun(config, model, statistics, state):
    """Return the start of a training."""
    begun, scaled, variables = begin(config, model, statistics, state)
    start = _Start(config, scaled, begun, variables, state.first_generator())
    is_fitted = not (model.is_drawn or model.score_graph.is_linear or config.is_full)
    return _fitted(start, model, statistics) if is_fitted else start


def _fitted(start, model, statistics):
    """Return the start of a fitted network, at a part of the rate; worse than a constant, it begins at new weights."""
    config, state = start.config, start.state
    share, constant_loss = fitted_share(config, start.model, start.variables, statistics)
    drawn = None
    # Nobody says whether the weights of an ONNX file are fitted ones.
    if share > 1 and model.inner.is_fitted:
        drawn = drawn_anew(config, model, start.generator)
        warn_of_fitted(share, constant_loss, is_drawn=drawn is not None)

    if drawn is not None:
        # It is a new network, for its penalty too.
        random_state = start.generator.get_state(legacy=False)
        state = dataclasses.replace(state, random_state=random_state, penalty_start=None)
        state, model, variables = begin(config, drawn, statistics, state)
        return start._replace(model=model, state=state, variables=variables)

    if not config.is_open("eta0"):
        # A few epochs at the user's rate may have other aims.
        return start._replace(constant_loss=math.inf)
    state = dataclasses.replace(state, rate_scale=fitted_part(share, config.size.n_rows) * state.rate_scale)
    return start._replace(state=state, constant_loss=constant_loss)


class FittedProblem(NamedTuple):
    """The training that goes on from the weights of a fitted estimator, on the CPU."""

    model: Model
    variables: Reparametrization
    problem: "Problem"
    #: Whether class weights are part of the sample weights that a step gets.
    weighs_rows: bool


def fitted_problem(estimator: Any, *, is_sparse: bool = False, of_model_rows: bool = False) -> FittedProblem:
    """Return the training that goes on from the weights of a fitted estimator; a NotFittedError before a fit."""
    from skort.runtime.device import CPU

    result = result_of(estimator)
    config, model, state = result.config, result.model, result.state
    variables = config.variables(model.score_graph, state.standardization)
    of_rows = {"is_sparse": is_sparse, "of_model_rows": of_model_rows}
    problem = config.problem(model, variables, state, result.batch_size, result.n_batches, **of_rows)
    if of_model_rows:
        config.check_steps("a device")
    weighs_rows = config.class_weight is None and (
        chosen_class_weight(estimator, config.own, one_epoch=False) is not None
    )
    return FittedProblem(model, variables, dataclasses.replace(problem, device=CPU), weighs_rows)
