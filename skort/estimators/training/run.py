"""
Every training: a plan, a model, its rows and a state go in; a fitted model and a new state come
out.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from skort.common.blas import one_blas_thread
from skort.common.random_state import seeded
from skort.estimators.data.row_forms import ids_in_range
from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.model.model import Model
from skort.estimators.planning.decision import FITTED_WEIGHTS, Decision, yours
from skort.estimators.planning.epochs import is_measured, may_go_on
from skort.estimators.planning.plan import Plan
from skort.estimators.planning.scaling import whitens
from skort.estimators.planning.stream import recent_updates
from skort.estimators.training.data_source import BatchShape, DataSource, InMemory, KnownRows
from skort.estimators.training.diverged import diverged_error
from skort.estimators.training.observers import Observers
from skort.estimators.training.optimum import EndOfSteps, Finish, part_above_least
from skort.estimators.training.result import Ending, FitResult
from skort.estimators.training.start import sparse_solvers, start
from skort.estimators.variables.reparametrization import Reparametrization
from skort.exceptions import DivergedError
from skort.objective.loss import known_curvature
from skort.optim.batches import Batches
from skort.optim.display import print_line
from skort.optim.loop import Outcome, minimise, minimise_together
from skort.optim.optimizers import LBFGS
from skort.optim.row_change import source_rows
from skort.optim.state import TrainState
from skort.optim.training import Course, Training, TrainStep, Watchers
from skort.optim.transforms import Decorrelation, Recent
from skort.optim.update import Update

if TYPE_CHECKING:
    from skort.graphs.score_graph import ScoreGraph
    from skort.solvers.base import Problem
    from skort.solvers.graph.lanes import JointStep

# The most numbers in a dense batch of sparse rows: 64 MB in float32.
_MOST_NUMBERS = 2**24


@ids_in_range()
def run_fit(
    plan: Plan,
    model: Model,
    source: DataSource,
    state: TrainState,
    observers: Observers,
    known: KnownRows | None = None,
) -> FitResult:
    """Train a model from the beginning. `known` has what other fits on the same rows have found."""
    from skort.solvers.full import check_smooth

    known = KnownRows(source) if known is None else known
    statistics = known.statistics
    generator = state.first_generator()
    started = start(plan, model, statistics, state)
    plan, model, state, variables, *_ = started

    batches = known.batches(plan, variables, generator)
    shape = BatchShape(batches.batch_size, batches.are_sparse)
    run = TrainRun.of(plan, model, state, shape, batches.n_batches, variables).with_step(state)
    step = source.step(run, model, state)
    if plan.is_full:
        check_smooth(run.problem)
        step = full_step(run, step, batches, model.score_graph, known.grams)

    ready = ReadyTraining(
        run=run,
        model=model,
        state=state,
        observers=observers,
        epochs=plan.max_iter,
        constant_loss=started.constant_loss,
        rows=source.all_rows,
        warned_of_fitted=started.warned_of_fitted,
    )
    try:
        outcome = minimise(ready.training(step, batches))
    except DivergedError as error:
        rows = statistics.some_rows
        raise diverged_error(run.plan, error, state, rows, model, variables) from None

    spread = step.spread() if plan.is_full and started.spread is None else started.spread
    return ready.result(outcome, statistics, spread)


@dataclass(frozen=True, eq=False)
class TrainRun:
    """
    A plan with the solver that makes its steps. The next `partial_fit` reuses it if no parameter
    changes.
    """

    plan: Plan
    variables: Reparametrization
    problem: "Problem"
    solver_name: str
    #: The step of the solver. None: it is not made yet, or is a part of the step of several
    #: trainings.
    step: Any = None
    shape: BatchShape | None = None
    #: The generator that the next `partial_fit` goes on with. None: there was no call yet.
    random_state: np.random.RandomState | None = None

    @classmethod
    def of(
        cls,
        plan: Plan,
        model: Model,
        state: TrainState,
        shape: BatchShape,
        n_batches: int | None = None,
        variables: Reparametrization | None = None,
    ) -> "TrainRun":
        """
        Return a run without a step. `n_batches=None`: the number is not known. `variables=None`:
        they are made here.
        """
        from skort.solvers import choose

        if variables is None:
            variables = plan.variables(model.score_graph, state.standardization)
        names = sparse_solvers(plan, model, variables, are_sparse=shape.are_sparse)
        is_sparse = bool(names)

        if not is_sparse:
            names = plan.solvers
            if shape.are_sparse:
                _check_dense_batches(names, shape.batch_size, model.score_graph.n_features)

        problem = problem_of(
            plan, model, variables, state, shape.batch_size, n_batches, is_sparse=is_sparse
        )
        name = choose(names, problem)
        of_solver = Decision(name, "it is the fastest here that makes these steps", "solver")
        if plan.given["solver"] == name:
            of_solver = yours(name, "solver")
        plan = plan.decided("solver", of_solver)

        return cls(plan, variables, problem, name, shape=shape)

    def with_step(self, state: TrainState) -> "TrainRun":
        """Return the run with a step that continues from a state."""
        from skort.solvers import make_step

        # The step gets a generator of its own: what it draws does not change the order of the rows.
        step = make_step(self.problem, solver=self.solver_name, random_state=state.generator)
        if state.solver is not None:
            try:
                step.restore(state.solver)
            except ValueError as error:
                given = (
                    f"optimizer={self.plan.update.optimizer!r}, "
                    f"average={self.plan.given['average']!r}"
                )
                raise ValueError(
                    "partial_fit goes on with the memory of the last optimizer, which does not fit "
                    f"{given}. Set optimizer and average back, or call model.set_weights({{}}), "
                    "which empties the memory."
                ) from error

        return dataclasses.replace(self, step=step)


def problem_of(  # noqa: PLR0913  # what steps depend on
    plan: Plan,
    model: Model,
    variables: Reparametrization,
    state: TrainState,
    batch_size: int,
    n_batches: int | None = None,
    *,
    is_sparse: bool = False,
    of_model_rows: bool = False,
) -> "Problem":
    """
    Return the problem of a plan: in the variables of the training, or of X itself.
    `n_batches=None`: the batches of an epoch are not known.
    """
    from skort.graphs.training_mode import masked
    from skort.objective.objective import Objective
    from skort.solvers.base import Problem

    graph = variables.graph(model.score_graph, of_model_rows=of_model_rows)
    if graph.has_dropout:
        graph = masked(graph, batch_size)
    objective = Objective(
        loss=variables.loss,
        penalty=variables.penalty,
        coefficients=model.score_graph.coefficients,
        n_outputs=model.score_graph.n_outputs,
        dtype=graph.dtype,
        intercepts=model.score_graph.trained.intercepts,
        start=state.penalty_start or {},
    )

    update = plan.update
    largest = update.largest_rate
    if largest is not None:
        steps = plan.batch_size / (plan.rate.rows_of_a_step or plan.batch_size)
        update = dataclasses.replace(update, largest_rate=steps * state.rate_scale * largest)
    if state.n_in_rate is not None and "average" in plan.left_open:
        recent = recent_updates(model.score_graph.n_features, plan.batch_size)
        update = dataclasses.replace(update, average=Recent(recent))

    return Problem(
        graph,
        objective,
        update,
        batch_size,
        # The first product of sparse rows is little work.
        device=plan.device_for(model.score_graph, 0 if is_sparse else batch_size),
        n_batches=n_batches,
        loss_weights=variables.training_weights(model.loss_weights),
        row_factor=variables.row_factor if is_sparse else None,
        decorrelation=_decorrelation(graph, variables),
    )


def _decorrelation(graph, variables):
    """Return the change of a gradient in a linear stream, or None."""
    used = variables.standardization
    if used is None or used.decorrelation is None:
        return None
    root = used.decorrelation
    with one_blas_thread(root.size * len(root)):
        square = (root @ root).astype(graph.dtype)
    return Decorrelation(square, transposed=variables.inputs.layer.transposed)


def _check_dense_batches(names, n_rows, n_columns):
    """Raise an error if solver "session" would have to make a sparse X dense in too large batches."""
    if names == ["session"] and n_rows * n_columns > _MOST_NUMBERS:
        raise ValueError(
            f'solver="session" makes the rows of a batch dense, here {n_rows * n_columns:,} '
            f'numbers. It takes a sparse X up to {_MOST_NUMBERS:,}. Use solver="graph", which '
            "multiplies sparse rows as they are, or a smaller batch_size."
        )


@dataclass(frozen=True, eq=False)
class ReadyTraining:
    """A training that is ready to run: its run, its model, its state, and what watches it."""

    run: TrainRun
    model: Model
    state: TrainState
    observers: Observers
    #: The most epochs in all. None: one more epoch, as in `partial_fit`.
    epochs: int | None
    #: The loss of the best constant prediction, if the training begins at the weights of a fitted
    #: network.
    constant_loss: float | None = None
    #: A factor of all rates, at which these batches are stable.
    rate_part: float = 1.0
    #: The factor of the rate of a batch, by the number of rows before it. None: rows do not lower
    #: the rate.
    fall: Callable[[int], float] | None = None
    #: All rows, if they are in memory.
    rows: TrainingData | None = None
    #: Whether a warning has said that the fitted network is worse than a constant.
    warned_of_fitted: bool = False

    def training(self, step: TrainStep, batches: Batches) -> Training:
        """Return the training that a step makes on batches."""
        plan = self.run.plan
        variables = self.run.variables
        observers = self.observers
        stopping = plan.stopping(batches.n_batches, is_linear=self.model.score_graph.is_linear)

        course = Course(
            schedule=plan.schedule,
            optimizer=plan.update.optimizer,
            max_iter=self.epochs,
            rate_part=self.rate_part,
            fall=self.fall,
            can_restart=plan.can_restart,
            is_compared=not plan.loss.is_least_at_zero,
            constant_loss=self.constant_loss,
            finish=self._finish(),
        )
        watchers = Watchers(
            callbacks=observers.callbacks(
                stopping, is_validated=plan.is_validated, is_stream=self.epochs is None
            ),
            preview=observers.preview(plan, self.model, self.state),
        )

        if observers.estimator.verbose > 1 and self.state.is_new:
            so_far = FitResult(
                plan,
                self.model,
                self.state,
                batch_size=batches.batch_size,
                n_batches=batches.n_batches,
            )
            print_line(f"{so_far.whole_plan()}\n")

        return Training(step, batches, self.state, variables, course, watchers)

    def _finish(self):
        """Return the search for a lower objective that follows the steps, or None."""
        rows = self.rows
        if rows is None or not may_go_on(self.run.plan, self.model, rows):
            return None
        return Finish(functools.partial(self._full_step, rows))

    def _full_step(self, rows):
        """Return the `FullStep` of rows in memory."""
        from skort.solvers import SOLVERS

        plan = self.run.plan
        variables = self.run.variables
        update = Update(LBFGS())
        plan = dataclasses.replace(
            plan,
            # A pass over all rows chooses its own blocks.
            left_open=plan.left_open | {"batch_size"},
            update=update,
            solvers=[*SOLVERS],
            shuffle=False,
        )
        of_sparse = sparse_solvers(plan, self.model, variables, are_sparse=rows.is_sparse)
        plan = dataclasses.replace(plan, multiplies_sparse=bool(of_sparse))
        batches = InMemory(rows).batches(plan, variables, seeded(0))
        shape = BatchShape(batches.batch_size, batches.are_sparse)
        state = dataclasses.replace(self.state, solver=None)
        run = TrainRun.of(plan, self.model, state, shape, batches.n_batches, variables).with_step(
            state
        )

        return full_step(run, run.step, batches, self.model.score_graph)

    def _above_least(self, outcome, statistics):
        """
        Return the gap between the end of the user's steps and the least objective, as a part of the
        objective. None: it is small, or not measured.
        """
        plan = self.run.plan
        rows = self.rows
        is_at_end = outcome.state.stopped and outcome.error is None and not outcome.no_better
        if rows is None or not (is_at_end and is_measured(plan, self.model, rows)):
            return None

        variables = self.run.variables
        weights = variables.training_weights(outcome.weights)
        end = EndOfSteps(plan, self.model, variables, weights)
        return part_above_least(end, rows, statistics, self._full_step)

    def result(
        self,
        outcome: Outcome,
        statistics: DataStatistics,
        spread: tuple[float, float] | None = None,
    ) -> FitResult:
        """
        Return the result of the training. Warnings look at the `statistics` of the rows; a later
        stream needs their `spread`.
        """
        run = self.run
        problem = self.run.problem
        scoring = self.observers.scoring
        constant = None
        initial = None
        if scoring is not None:
            # A constant may fit the few held-out rows of a fitted network by chance.
            tells = scoring.is_telling or not self.model.inner.is_fitted
            constant = scoring.constant_loss if tells else None
            is_fitted = run.plan.decisions["weights"].value == FITTED_WEIGHTS
            initial = scoring.initial if is_fitted else None

        ending = Ending(
            outcome=outcome,
            rows=statistics.some_rows,
            variables=run.variables,
            validation_constant_loss=constant,
            constant_loss=self.constant_loss,
            warned_of_fitted=self.warned_of_fitted,
        )

        return FitResult(
            plan=run.plan,
            model=self.model.with_weights(outcome.weights),
            state=outcome.state,
            solver_name=run.solver_name,
            batch_size=problem.batch_size,
            n_batches=problem.n_batches,
            is_sparse=problem.row_factor is not None,
            n_before=self.state.n_epochs,
            kept=outcome.kept,
            initial_score=initial,
            above_least=self._above_least(outcome, statistics),
            spread=spread,
            first_eta=outcome.first_eta,
            ending=ending,
        )


def full_step(
    run: TrainRun,
    step: Any,
    batches: Batches,
    score_graph: "ScoreGraph",
    grams: Any = None,
) -> Any:
    """
    Return the step of L-BFGS: the objective of all rows and its gradient. `grams` are the `Grams`
    of the rows, of which other fits may have found some.
    """
    from skort.solvers.full import FullStep

    plan = run.plan
    optimizer: Any = plan.update.optimizer
    tolerances = optimizer.tolerances(
        plan.tol,
        np.dtype(plan.dtype),
        is_linear=score_graph.is_linear,
        is_given="tol" not in plan.left_open,
    )
    whitener = whitener_of(run, batches, score_graph, grams)

    return FullStep(run.problem, step, batches, tolerances, whitener)


def whitener_of(
    run: TrainRun, batches: Batches, score_graph: "ScoreGraph", grams: Any = None
) -> Any:
    """Return the `Whitener` of a linear model, or None for a network."""
    from skort.solvers.whitening import Whitener

    layer = score_graph.first_layer if score_graph.is_linear else None
    if layer is None:
        return None

    X = source_rows(batches.data[0])
    has_l1 = run.problem.terms.l1 is not None
    # An l1 term is made of single weights, and variables that are sums of weights do not keep it.
    is_diagonal = has_l1 or not whitens(X.shape[1], are_sparse=scipy.sparse.issparse(X))
    # If the curvature of the loss is not known, it counts as that of half a square.
    curvature = known_curvature(run.variables.loss, score_graph.n_outputs) or 1.0
    return Whitener(run.problem, layer, batches, curvature, grams, is_diagonal=is_diagonal)


@ids_in_range()
def fit_models(
    fits: Sequence[ReadyTraining], step: "JointStep", batches: Batches, statistics: DataStatistics
) -> list[FitResult | None]:
    """
    Train models together: their steps are lanes of one. A result is None if its training must be
    made alone.
    """
    trainings = [fit.training(lane, batches) for fit, lane in zip(fits, step.lanes, strict=True)]
    outcomes = minimise_together(trainings, step, batches)
    return [
        None if end is None else fit.result(end, statistics)
        for fit, end in zip(fits, outcomes, strict=True)
    ]
