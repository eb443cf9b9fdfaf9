"""A training while it runs: what the loop goes on from and what callbacks see."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from skort.descent.batches import Batch
from skort.descent.history import History

__all__ = ["Preview", "RemoteStepper", "Stepper", "Training", "TrainingState"]


class Stepper(Protocol):
    """What the loop needs of a solver."""

    #: The arrays that the next step reads.
    batch: Batch

    def step(self, eta: float) -> float:
        """Make one update with learning rate `eta`; return the objective on the batch before it."""

    def loss(self) -> float:
        """Return the loss on the last step's batch before its update: the objective without the penalty."""

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the last step's gradient, before it was clipped; 0 before the first step."""

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the trained weights, by name."""

    def state(self) -> dict[str, np.ndarray]:
        """
        Return a copy of everything that training goes on from, by name.

        A solver that is made with it as `state` makes the same steps, to the last bit, as this one would.
        """

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go on from a state as from `state`."""


class RemoteStepper(Stepper, Protocol):
    """A solver whose results are elsewhere, and take longer to be read than a step takes."""

    def launch(self, eta: float, share: float) -> None:
        """Make one update with learning rate `eta`, of a batch that is this part of the epoch; read nothing."""

    def means(self) -> tuple[float, float]:
        """Return the objective and the loss, each the mean over all launches since the last call."""

    def objective(self) -> float:
        """Return the objective on the last step's batch before its update."""


class Preview(Protocol):
    """The model as it would be if the training ended now."""

    def prepare(self, X) -> Any:
        """Return data in the form that models from `at` take, so that it is brought there once."""

    def at(self, weights: dict[str, np.ndarray]) -> Any:
        """Return the fitted estimator with other weights. It holds until the next call."""


@dataclass(frozen=True)
class TrainingState:
    """
    Everything that a training goes on from, to the last bit.

    Parameters
    ----------
    solver : dict of str to ndarray
        Weights, the optimizer's memory and averages.
    n_updates : int
    n_falls : int
        How often the learning rate fell for want of improvement.
    random_state : dict
        As from `numpy.random.RandomState.get_state(legacy=False)`.
    stopped : bool
        Whether the training ended there for want of improvement, or because a callback stopped it.
    history : History
    best : dict of str to ndarray or None
        As `solver`, of the epoch to be restored at the end.
    """

    solver: dict[str, np.ndarray]
    n_updates: int
    n_falls: int
    stopped: bool
    random_state: dict[str, Any]
    history: History
    best: dict[str, np.ndarray] | None


class Training:
    """
    A training while it runs.

    Parameters
    ----------
    solver : Stepper
    batches : Batches
    schedule : callable
        Number of the update, from 1 -> learning rate. Where it has a method `on_bad_epochs`, that lowers its rate and
        returns True, or False where the training is to end.
    max_iter : int or None
        Number of epochs to end with. None: one epoch more than there are.
    callbacks : sequence of Callback, default=()
    preview : Preview, default=None
    n_updates : int, default=0
        Updates made before.
    n_falls : int, default=0
        How often the learning rate fell before.
    history : History, default=None
        Epochs made before.

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

    def __init__(
        self, solver, batches, schedule, *, max_iter, callbacks=(), preview=None, n_updates=0, n_falls=0, history=None
    ):
        self.solver = solver
        self.batches = batches
        self.schedule = schedule
        self.max_iter = max_iter
        self.callbacks = callbacks
        self.preview = preview
        self.n_updates = n_updates
        self.n_falls = 0
        self._fall_to(n_falls)
        self.history = History() if history is None else history.copy()
        self.eta = self.objective = float("nan")
        self.stopped = False
        self._last = self._best = None
        self._mark_order()

    @property
    def n_epochs(self):
        """Whole epochs made, those of earlier calls included."""
        return self.history.n_epochs

    @property
    def model(self):
        """The fitted estimator as it would be if the training ended now, for data from `prepare`."""
        return self.preview.at(self.weights())

    def prepare(self, X):
        """Return X, as `fit` takes it, in the form that `model` takes."""
        return self.preview.prepare(X)

    def weights(self):
        """Return a copy of the trained weights, by name."""
        return self.solver.weights()

    def stop(self):
        """End the training after this epoch."""
        self.stopped = True

    def no_improvement(self):
        """End the training after this epoch, unless the learning rate can fall instead."""
        if getattr(self.schedule, "on_bad_epochs", bool)():
            self.n_falls += 1
        else:
            self.stop()

    def keep_best(self):
        """Let this epoch be the one whose weights the training ends with."""
        self._best = self.solver.state()

    def state(self):
        """Return everything that the training goes on from."""
        return TrainingState(
            self.solver.state(),
            self.n_updates,
            self.n_falls,
            self.stopped,
            self.batches.random_state.get_state(legacy=False),
            self.history.copy(),
            self._best,
        )

    def restore(self, state):
        """Go on from a state as from `state`."""
        self.solver.restore(state.solver)
        self.n_updates = state.n_updates
        self._fall_to(state.n_falls)
        self.stopped = state.stopped
        self.batches.random_state.set_state(state.random_state)
        self.history = state.history.copy()
        self._best = state.best
        self._mark_order()
        self.end_epoch()

    def end_epoch(self):
        """Let this be the epoch that an interruption goes back to."""
        self._last = (self.solver.state(), self.n_updates, self.n_epochs)

    def go_back(self):
        """Go back to the end of the last whole epoch; return whether there was one."""
        if self._last is None:
            return False
        solver, self.n_updates, n_epochs = self._last
        self.solver.restore(solver)
        self.history.truncate(n_epochs)
        self.rewind_order(n_epochs)
        return True

    def rewind_order(self, n_epochs=None):
        """Let the order of the rows go on as it did after `n_epochs`; None: as before the training."""
        first_epoch, random_state = self._order
        self.batches.random_state.set_state(random_state)
        # To draw again is cheaper than to save the generator every epoch.
        for _ in range(0 if n_epochs is None else n_epochs - first_epoch):
            self.batches.order()

    def _fall_to(self, n_falls):
        for _ in range(n_falls - self.n_falls):
            self.schedule.on_bad_epochs()
        self.n_falls = n_falls

    def _mark_order(self):
        self._order = (self.n_epochs, self.batches.random_state.get_state(legacy=False))

    def take_best(self):
        """Go back to the weights of the best epoch, where one was kept."""
        if self._best is not None:
            self.solver.restore(self._best)
