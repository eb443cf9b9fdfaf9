"""A training while it runs: what the loop changes and what callbacks see."""

import dataclasses
from typing import Any, Protocol

import numpy as np

from skort.descent.batches import Batch
from skort.descent.progress import Progress

__all__ = ["ModelView", "Stepper", "Training"]


class Stepper(Protocol):
    """What the loop needs of a solver."""

    #: What the next step reads its rows from.
    batch: Batch

    def step(self, eta: float, share: float) -> None:
        """
        Make one update on the batch.

        Parameters
        ----------
        eta : float
            Learning rate.
        share : float
            The batch's part of the epoch, between 0 and 1: its weight in `means`.
        """

    def objective(self) -> float:
        """Return the objective on the last step's batch before its update."""

    def means(self) -> tuple[float, float]:
        """Return the objective and the loss, each the mean over all steps since the last call."""

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the last step's gradient, before it was clipped; 0 before the first step."""

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the trained weights, by name."""

    def state(self) -> dict[str, np.ndarray]:
        """
        Return a copy of everything that the solver goes on from, by name.

        Another solver of the same problem makes the same steps after `restore`, to the last bit.
        """

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go on from a state as from `state`."""


class ModelView(Protocol):
    """Shows the fitted model as it would be if the training ended now."""

    def prepare(self, X) -> Any:
        """Return data in the form that models from `at` take, so that it is brought there once."""

    def at(self, weights: dict[str, np.ndarray]) -> Any:
        """Return the fitted estimator with other weights, for prepared data. It holds until the next call."""

    def fitted(self, weights: dict[str, np.ndarray]) -> Any:
        """Return the fitted estimator with other weights, for data as `fit` takes it, to be kept."""


class Training:
    """
    A training while it runs.

    Parameters
    ----------
    solver : Stepper
        At the state of `progress`.
    batches : Batches
        Its random generator is the training's own.
    schedule : callable
        Number of the update, from 1 -> learning rate. Where it has a method `on_bad_epochs`, that lowers its rate and
        returns True, or False where the training is to end.
    progress : Progress
        What the training goes on from.
    max_iter : int or None
        Number of epochs to end with. None: one epoch more than there are.
    callbacks : sequence of Callback, default=()
    view : ModelView, default=None

    Attributes
    ----------
    history : History
        What was written down of every epoch: `training.history["objective"][-1]`.
    n_updates : int
        Updates made, those of earlier calls included.
    eta : float
        Learning rate of the last update.
    objective : float
        Objective of the last batch, before its update.
    max_iter : int or None
        Number of epochs that the training ends with at the latest; None in `partial_fit`.
    stopped : bool
        Whether the training ends after this epoch.
    """

    def __init__(self, solver, batches, schedule, progress, *, max_iter, callbacks=(), view=None):
        self.solver = solver
        self.batches = batches
        self.schedule = schedule
        self.max_iter = max_iter
        self.callbacks = callbacks
        self._view = view
        self.history = progress.open_history()
        self.n_updates = progress.n_updates
        self._n_falls = 0
        self._fall_to(progress.n_falls)
        self._best = progress.best
        self.eta = self.objective = float("nan")
        self.stopped = False
        self._last_epoch: Progress | None = None

    @property
    def n_epochs(self) -> int:
        """Whole epochs made, those of earlier calls included."""
        return self.history.n_epochs

    @property
    def model(self) -> Any:
        """The fitted estimator as it would be if the training ended now, for data from `prepare`."""
        return self._view.at(self.weights())

    def trained_model(self) -> Any:
        """Return the fitted estimator as it would be if the training ended now, to be kept."""
        return self._view.fitted(self.weights())

    def prepare(self, X) -> Any:
        """Return X, as `fit` takes it, in the form that `model` takes."""
        return self._view.prepare(X)

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the trained weights, by name."""
        return self.solver.weights()

    def stop(self) -> None:
        """End the training after this epoch."""
        self.stopped = True

    def no_improvement(self) -> None:
        """End the training after this epoch, unless the learning rate can fall instead."""
        if getattr(self.schedule, "on_bad_epochs", bool)():
            self._n_falls += 1
        else:
            self.stop()

    def keep_best(self) -> None:
        """Let this epoch be the one whose weights the training ends with."""
        self._best = self.solver.state()

    def progress(self) -> Progress:
        """Return everything that the training goes on from."""
        return Progress(
            self.solver.state(),
            self.n_updates,
            self._n_falls,
            self.stopped,
            self.batches.random_state.get_state(legacy=False),
            self.history,
            self.n_epochs,
            tuple(self.history),
            self._best,
        )

    def restore(self, progress: Progress) -> None:
        """Go on from another progress, of at least one epoch; an interruption goes back to it."""
        self.solver.restore(progress.solver)
        self.n_updates = progress.n_updates
        self._fall_to(progress.n_falls)
        self.stopped = progress.stopped
        self.batches.random_state = progress.generator()
        self.history = progress.rows()
        self._best = progress.best
        self._last_epoch = progress

    def end_epoch(self) -> None:
        """Let this be the epoch that an interruption goes back to."""
        self._last_epoch = self.progress()

    def go_back(self) -> bool:
        """Go back to the end of the last whole epoch; return whether there was one."""
        if self._last_epoch is None:
            return False
        # What callbacks decided and wrote down at the end of that epoch stays.
        decided = {"n_falls": self._n_falls, "stopped": self.stopped, "best": self._best}
        columns = tuple(self.history)
        self.restore(dataclasses.replace(self._last_epoch, history=self.history, columns=columns, **decided))
        return True

    def take_best(self) -> None:
        """Go back to the weights of the best epoch, where one was kept."""
        if self._best is not None:
            self.solver.restore(self._best)

    def _fall_to(self, n_falls):
        for _ in range(n_falls - self._n_falls):
            self.schedule.on_bad_epochs()
        self._n_falls = n_falls
