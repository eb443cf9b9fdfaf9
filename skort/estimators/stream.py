"""What makes the steps of a training, and what a `partial_fit` leaves of it to the next one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from skort.estimators.fitted_model import FittedModel
from skort.estimators.settings import Settings
from skort.estimators.variables import Variables
from skort.optim.batches import Batches
from skort.optim.callbacks import Callback
from skort.optim.loop import Outcome, minimise
from skort.optim.progress import Progress
from skort.optim.training import ModelView, Training

if TYPE_CHECKING:
    from skort.solvers.base import Problem, Solver

__all__ = ["Stream", "check_dense_batches"]

# Of a dense batch of sparse rows: 64 MB in float32.
_MOST_NUMBERS = 2**24


def check_dense_batches(names: list[str], n_rows: int, n_columns: int) -> None:
    """
    Raise a ValueError where only solver "session" comes into question, and would make too much of a sparse X dense.

    Parameters
    ----------
    names : list of str
        The solvers that come into question.
    n_rows, n_columns : int
        Of a batch.
    """
    if names == ["session"] and n_rows * n_columns > _MOST_NUMBERS:
        raise ValueError(
            f'solver="session" makes the rows of a batch dense, here {n_rows * n_columns:,} numbers. It takes a sparse '
            f'X up to {_MOST_NUMBERS:,}. Use solver="graph", which multiplies sparse rows as they are, or a smaller '
            "batch_size."
        )


@dataclass(frozen=True, eq=False)
class Stream:
    """
    What makes the steps of a training. The next `partial_fit` goes on with it while its settings hold.

    Parameters
    ----------
    settings : Settings
    variables : Variables
        Of the solver.
    problem : Problem
        What the solver was made from.
    solver_name : str
    solver : Solver
    progress : Progress
        What the solver is at. Where an estimator is at another one, the solver is not that of this estimator.
    random_state : numpy.random.RandomState or None, default=None
        The training's own generator, at the progress. None: it is to be made.
    are_sparse : bool, default=False
        Whether the batches were sparse.
    """

    settings: Settings
    variables: Variables
    problem: "Problem"
    solver_name: str
    solver: "Solver"
    progress: Progress
    random_state: np.random.RandomState | None = None
    are_sparse: bool = False

    @classmethod
    def begin(
        cls,
        settings: Settings,
        fitted: FittedModel,
        variables: Variables,
        batch_size: int,
        progress: Progress,
        n_batches: int | None = None,
        *,
        are_sparse: bool = False,
    ) -> "Stream":
        """Return a solver that goes on from a model and a progress; an epoch has `n_batches`, where this is known."""
        from skort.solvers import choose, make_solver

        names = settings.sparse_solvers(fitted, variables) if are_sparse else []
        is_sparse = bool(names)
        if not is_sparse:
            names = settings.solvers
            if are_sparse:
                check_dense_batches(names, batch_size, fitted.score_graph.n_features)
        size = batch_size, progress.rate_scale, n_batches
        problem = settings.problem(fitted, variables, *size, is_sparse=is_sparse)
        name = choose(names, problem)
        # A generator of its own: the order of the rows does not depend on what is drawn from it.
        solver = make_solver(name, problem, progress.generator)
        if progress.solver is not None:
            solver.restore(progress.solver)
        return cls(settings, variables, problem, name, solver, progress, are_sparse=are_sparse)

    def train(
        self, batches: Batches, *, max_iter: int | None, callbacks: Sequence[Callback], view: ModelView
    ) -> Outcome:
        """
        Train from the progress on.

        Parameters
        ----------
        batches : Batches
            Of the batch size of the solver.
        max_iter : int or None
            See `Training`.
        callbacks : sequence of Callback
        view : ModelView
            What callbacks see of the model.
        """
        settings = self.settings
        training = Training(
            self.solver,
            batches,
            settings.schedule,
            self.progress,
            self.variables,
            max_iter=max_iter,
            can_restart=settings.is_rate_auto,
            is_compared=not settings.loss.is_least_at_zero,
            penalty_start=self.problem.objective.start,
            callbacks=callbacks,
            view=view,
        )
        return minimise(training)

    def goes_on(self, settings: Settings, batches: Batches) -> bool:
        """Return whether the solver is right for more rows."""
        is_same = self.problem.batch_size == batches.batch_size and self.are_sparse == batches.are_sparse
        return self.settings is settings and is_same

    def from_there(self, progress: Progress) -> "Stream | None":
        """Return what goes on from a progress that differs in its learning rate alone; None where others differ."""
        is_at = progress.solver is self.progress.solver and progress.standardization is self.progress.standardization
        return replace(self, progress=progress) if is_at else None

    def generator(self) -> np.random.RandomState:
        """Return the training's own generator."""
        return self.progress.generator() if self.random_state is None else self.random_state

    def at(self, progress: Progress, random_state: np.random.RandomState) -> "Stream":
        """Return what goes on from another progress, that the solver and a generator are at."""
        return replace(self, progress=progress, random_state=random_state)
