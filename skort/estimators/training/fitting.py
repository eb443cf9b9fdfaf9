"""The way of every training: a model, its data and a state go in; a fitted model and a state come out."""

import copy
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skort.estimators.data.data_source import BatchShape, DataSource
from skort.estimators.data.not_numbers import ids_in_range
from skort.estimators.data.rows import TrainingData
from skort.estimators.model.model import Model
from skort.estimators.training.config import TrainConfig
from skort.estimators.training.initialization import UNKNOWN, begin, fitted_start, go_on, stream_part, tries_rates
from skort.estimators.training.messages import diverged_error
from skort.estimators.training.network import fitted_part
from skort.estimators.training.reparametrization import Reparametrization
from skort.estimators.training.result import Ending, FitResult, Observers, result_of
from skort.estimators.training.terms import chosen_class_weight
from skort.exceptions import DivergedError
from skort.optim.batches import Batches
from skort.optim.loop import Outcome, minimise, minimise_together
from skort.optim.state import TrainState
from skort.optim.training import Training, TrainStep
from skort.runtime.cache import NoPickle

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
        return Training(
            step,
            batches,
            config.schedule,
            self.state,
            variables,
            max_iter=self.epochs,
            can_restart=config.can_restart,
            # One that ends above the objective of its initial weights has ended badly.
            is_compared=not config.loss.is_least_at_zero,
            constant_loss=self.constant_loss,
            callbacks=observers.callbacks(tol, variables.in_units.unit, patience, one_epoch=self.epochs is None),
            view=observers.view(config, self.model, self.state),
            optimizer=config.update.optimizer,
        )

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
    epochs: int | None,
) -> FitResult:
    """Train a model, from the beginning or from where a state is; no `epochs`: one more."""
    if epochs is None:
        config.check_steps("partial_fit")
    statistics, given = source.statistics(), config
    if state.first_weights is not None:
        model = dataclasses.replace(model.with_weights(state.first_weights), is_drawn=True)
        state = dataclasses.replace(state, penalty_start=None)
    drawn, is_new = model, state.is_new
    part, is_told = stream_part(config, model, statistics) if epochs is None else (1.0, True)
    if is_new:
        n_rows = None if epochs is None else config.size.n_rows
        start = _begun(config, model, statistics, state, n_rows, is_told=is_told)
    else:
        start = _resumed(config, model, statistics, state)
    config, model, state, variables, run = start.config, start.model, start.state, start.variables, start.run
    first_scale = max(state.first_scale, state.rate_scale)
    batches = source.batches(variables, start.generator)
    shape = BatchShape(batches.batch_size, batches.are_sparse)
    if run is None or run.shape != shape:
        # The rows of one call say nothing about those of a stream.
        n_batches = None if epochs is None else batches.n_batches
        run = TrainRun.plan(config, model, state, shape, n_batches, variables).begun(state)
    if start.is_rate_open and start.share is None:
        part = 1.0  # The rate is tried on these rows.
    if part < 1.0:
        state = dataclasses.replace(state, rate_scale=part * state.rate_scale)
    fit = Fit(run, model, state, callbacks, epochs, start.constant_loss)
    step = source.step(run, model, state)
    if config.is_full:
        from skort.solvers.full import FullStep

        is_exact = model.score_graph.is_linear or not config.is_open("tol")
        step = FullStep(run.problem, step, batches, config.tol, is_exact=is_exact)
    training = fit.training(step, batches)
    if start.other is not None:
        training.begin_at_better(start.other)
    if start.is_rate_open:
        training.find_rate(source.trial(step, batches), 1.0 if epochs or start.share is None else start.share**2)
    try:
        outcome = minimise(training)
    except DivergedError as error:
        raise diverged_error(config, error, state, statistics.some_rows) from None
    if epochs is not None:
        return fit.result(outcome, statistics.some_rows)
    rate_scale = outcome.progress.rate_scale / part
    progress = dataclasses.replace(outcome.progress, rate_scale=rate_scale, first_scale=first_scale)
    is_few = is_new and not is_told and outcome.progress.n_epochs == state.n_epochs + 1  # It was not resumed.
    if is_few:
        # The stream begins anew with these rows before the next ones.
        rows, weights = copy.deepcopy(statistics.some_rows), drawn.trained_weights if drawn.is_drawn else None
        progress = dataclasses.replace(progress, first_rows=rows, first_weights=weights)
    else:
        live = NoPickle()
        live.put(dataclasses.replace(run, random_state=batches.random_state))
        progress = dataclasses.replace(progress, live=live)
    result = fit.result(dataclasses.replace(outcome, progress=progress), statistics.some_rows)
    return dataclasses.replace(result, config=given) if is_few else result


@ids_in_range()
def fit_models(fits: Sequence[Fit], step: "JointStep", batches: Batches) -> list[FitResult | None]:
    """Train models whose steps are lanes of one, as `fit_model` does each; None where one has to be trained alone."""
    trainings = [fit.training(lane, batches) for fit, lane in zip(fits, step.lanes, strict=True)]
    outcomes = minimise_together(trainings, step, batches)
    return [None if end is None else fit.result(end) for fit, end in zip(fits, outcomes, strict=True)]


class _Start(NamedTuple):
    """What a training begins with, or goes on from."""

    config: TrainConfig
    model: Model
    state: TrainState
    variables: Reparametrization
    #: What made the steps before; None: it is to be made.
    run: TrainRun | None
    generator: np.random.RandomState
    #: Another state of the solver, which may be better.
    other: dict[str, np.ndarray] | None = None
    #: The loss of a fitted network that begins as a share of that of the best constant, and that loss.
    share: float | None = None
    constant_loss: float | None = None
    #: Whether the first rate is found by trying some: a fitted network's, or one's for columns of any scale.
    is_rate_open: bool = False


def _begun(config, model, statistics, state, n_rows, *, is_told):
    """Return the start of a training of `n_rows`, or of a stream: None; `is_told` as from `stream_part`."""
    is_fitted = not (model.is_drawn or model.score_graph.is_linear or config.is_full)
    state, model, variables = begin(config, model, statistics, state)
    share, constant_loss = UNKNOWN, None
    if is_fitted and is_told:
        model, share, constant_loss = fitted_start(config, model, variables, statistics)
    if is_fitted and config.is_planned and n_rows is None:
        config = config.for_stream(fitted_part(share, None) if config.can_restart else 1.0)
    elif is_fitted and config.is_planned:
        state = dataclasses.replace(state, rate_scale=fitted_part(share, n_rows))
    return _Start(
        config,
        model,
        state,
        variables,
        run=None,
        generator=state.first_generator(),
        share=share if is_fitted else None,
        constant_loss=constant_loss,
        is_rate_open=(is_fitted and config.is_rate_auto) or tries_rates(config, model, state),
    )


def _resumed(config, model, statistics, state):
    """Return the start of a training from a state, as more rows change it."""
    run = None if state.live is None else state.live.take()
    generator = state.generator() if run is None else run.random_state
    resumed, other = go_on(config, model, state, statistics)
    is_at = resumed.solver is state.solver and resumed.standardization is state.standardization
    if not is_at or run is None or run.config is not config:
        return _Start(
            config, model, resumed, config.variables(model.score_graph, resumed.standardization), None, generator, other
        )
    return _Start(config, model, resumed, run.variables, run, generator, other)


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
