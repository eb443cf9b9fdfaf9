"""A training while it runs: what the loop changes, and what callbacks see."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from skort.descent.batches import Batch, Batches
from skort.descent.progress import Progress

__all__ = ["ModelView", "Stepper", "Training"]


class Stepper(Protocol):
    """The methods of a solver that the loop needs."""

    #: The place from which the next step reads its rows.
    batch: Batch

    def step(self, eta: float, share: float) -> None:
        """
        Make one update on the batch.

        Parameters
        ----------
        eta : float
            Learning rate.
        share : float
            The batch's share of the epoch's rows, between 0 and 1: how much it counts in `means`.
        """

    def objective(self) -> float:
        """Return the objective on the last step's batch before its update."""

    def means(self) -> tuple[float, float]:
        """Return the objective and the loss, each the mean over all steps since the last call."""

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the last step's gradient before clipping; 0 before the first step."""

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the trained weights, by name."""

    def state(self) -> dict[str, np.ndarray]:
        """
        Return a copy of all arrays that the solver goes on from, by name.

        After `restore` another solver of the same problem makes the same steps, to the last bit.
        """

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go on from a state that `state` returned."""


class ModelView(Protocol):
    """Gives the fitted model as it would be if the training ended now."""

    def prepare(self, X: Any) -> Any:
        """Return X, as `fit` takes it, in the form that models from `at` take: once, for all calls."""

    def at(self, weights: dict[str, np.ndarray]) -> Any:
        """Return the fitted estimator with these weights, for data from `prepare`. The next call changes it."""

    def fitted(self, weights: dict[str, np.ndarray]) -> Any:
        """Return the fitted estimator with these weights, for data as `fit` takes it. The caller may keep it."""


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
        Number of the update, from 1 -> learning rate. It may have a method `on_bad_epochs`, which lowers the rate and
        returns True, or returns False if the training is to end.
    progress : Progress
        Everything that the training goes on from.
    max_iter : int or None
        Total number of epochs to end with. None: one more epoch.
    callbacks : sequence of Callback, default=()
    view : ModelView, default=None

    Attributes
    ----------
    history : History
        The values of every epoch, such as `training.history["objective"][-1]`.
    n_updates : int
        Number of updates made, earlier calls included.
    eta : float
        Learning rate of the last update.
    objective : float
        Objective of the last batch, before its update.
    max_iter : int or None
        Total number of epochs after which the training ends at the latest; None in `partial_fit`.
    stopped : bool
        Whether the training ends after this epoch.
    """

    def __init__(
        self,
        solver: Stepper,
        batches: Batches,
        schedule: Any,
        progress: Progress,
        *,
        max_iter: int | None,
        callbacks: Sequence[Any] = (),
        view: ModelView | None = None,
    ):
        self.solver = solver
        self.batches = batches
        self.schedule = schedule
        self.max_iter = max_iter
        self.callbacks = callbacks
        self._view: Any = view
        self.history = progress.open_history()
        self.n_updates = progress.n_updates
        self._n_falls = 0
        self._fall_to(progress.n_falls)
        self._best = progress.best
        self.eta = self.objective = float("nan")
        self.stopped = False
        self._last_epoch: Progress | None = None
        # Only an epoch draws from the generator, and asking for its state takes as long as two steps.
        self._random_state = progress.random_state

    @property
    def n_epochs(self) -> int:
        """Number of whole epochs made, earlier calls included."""
        return self.history.n_epochs

    @property
    def model(self) -> Any:
        """The fitted estimator as it would be if the training ended now, for data from `prepare`."""
        return self._view.at(self.weights())

    def trained_model(self) -> Any:
        """Return the fitted estimator as it would be if the training ended now, as a copy that stays."""
        return self._view.fitted(self.weights())

    def prepare(self, X: Any) -> Any:
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
        """Keep the present weights as those that the training ends with."""
        self._best = self.solver.state()

    def progress(self) -> Progress:
        """Return everything that the training goes on from."""
        return Progress(
            self.solver.state(),
            self.n_updates,
            self._n_falls,
            self.stopped,
            self._random_state,
            self.history,
            self.n_epochs,
            tuple(self.history),
            self._best,
        )

    def restore(self, progress: Progress) -> None:
        """Go on from another progress of at least one epoch. An interruption goes back to it."""
        assert progress.solver is not None  # It has an epoch.
        self.solver.restore(progress.solver)
        self.n_updates = progress.n_updates
        self._fall_to(progress.n_falls)
        self.stopped = progress.stopped
        self.batches.random_state, self._random_state = progress.generator(), progress.random_state
        self.history = progress.rows()
        self._best = progress.best
        self._last_epoch = progress

    def end_epoch(self) -> None:
        """Keep the present progress, to which an interruption goes back."""
        self._random_state = self.batches.random_state.get_state(legacy=False)
        self._last_epoch = self.progress()

    def go_back(self) -> bool:
        """Go back to the end of the last whole epoch; return whether there was one."""
        if self._last_epoch is None:
            return False
        # The decisions and columns that callbacks added after that epoch stay.
        decided: dict[str, Any] = {"n_falls": self._n_falls, "stopped": self.stopped, "best": self._best}
        columns = tuple(self.history)
        self.restore(dataclasses.replace(self._last_epoch, history=self.history, columns=columns, **decided))
        return True

    def take_best(self) -> None:
        """Go back to the weights that `keep_best` kept, if any."""
        if self._best is not None:
            self.solver.restore(self._best)

    def _fall_to(self, n_falls):
        for _ in range(n_falls - self._n_falls):
            self.schedule.on_bad_epochs()
        self._n_falls = n_falls
