"""The progress of a training: everything that it goes on from."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skort.common.random_state import generator_of
from skort.optim.history import History
from skort.optim.standardization import Standardization

__all__ = ["TrainState"]


@dataclass(frozen=True, eq=False)
class TrainState:
    """
    Everything that a training goes on from, to the last bit.

    It is a value: a training that goes on makes a new one; an error or an interruption restores the old one.

    Parameters
    ----------
    solver : dict of str to ndarray or None
        The state of the solver: the weights, the optimizer's memory and the averages. None: the initial weights.
    n_updates : int
        Number of updates made.
    n_falls : int
        How often the learning rate fell because the training did not improve.
    stopped : bool
        Whether the training ended because it did not improve, or because a callback stopped it.
    random_state : dict
        The state of the training's own random generator, as `numpy.random.RandomState.get_state(legacy=False)` returns
        it.
    history : History
        Only its first `n_epochs` rows and its `columns` belong to this progress. A training that goes on adds rows to
        the same history, so that a long stream of short trainings copies nothing.
    n_epochs : int
        Number of whole epochs made.
    columns : tuple of str
        The columns of the history.
    best : dict of str to ndarray or None, default=None
        Like `solver`, after the epoch whose weights the training will end with.
    standardization : Standardization or None, default=None
        That of the variables of `solver` and `best`.
    rate_scale : float, default=1.0
        What the rates of the schedule are multiplied by.
    row_norm : float, default=0.0
        Largest squared norm of a row of the standardized X so far, where the learning rate comes from the data; zero
        where it is not known.
    penalty_start : dict of str to ndarray or None, default=None
        The weights that an own penalty compares with, where it does so.
    stopping_reason : str or None, default=None
        Why the training ended, a sentence; None where it goes on.
    live : object, default=None
        A box for what makes the steps in this process, at this state; it is empty in copies.
    """

    solver: dict[str, np.ndarray] | None
    n_updates: int
    n_falls: int
    stopped: bool
    random_state: dict[str, Any]
    history: History
    n_epochs: int
    columns: tuple[str, ...]
    best: dict[str, np.ndarray] | None = None
    standardization: Standardization | None = None
    rate_scale: float = 1.0
    row_norm: float = 0.0
    penalty_start: dict[str, np.ndarray] | None = None
    stopping_reason: str | None = None
    live: Any = None

    @classmethod
    def start(cls, random_state: np.random.RandomState, **others: Any) -> "TrainState":
        """Return the progress before the first update, with the present state of a random generator."""
        return cls(None, 0, 0, False, random_state.get_state(legacy=False), History(), 0, (), **others)

    @property
    def is_new(self) -> bool:
        """Whether no epoch was made yet: the variables and the learning rate are still to be found."""
        return self.n_epochs == 0

    @property
    def is_rate_auto(self) -> bool:
        """Whether the learning rate comes from the data: then every row of X' has a one, and a norm."""
        return self.row_norm > 0

    def generator(self) -> np.random.RandomState:
        """Return a new random generator in the state `random_state`."""
        return generator_of(self.random_state)

    def rows(self) -> History:
        """Return a copy of the history up to here."""
        return self.history.head(self.n_epochs, self.columns)

    def column(self, name: str) -> list | None:
        """Return a copy of a column of the history up to here, or None if there is no such column."""
        return self.history[name][: self.n_epochs] if name in self.columns else None

    def open_history(self) -> History:
        """Return a history to add rows to: the same one, or a copy if another training has added rows to it."""
        is_last = self.history.n_epochs == self.n_epochs and tuple(self.history) == self.columns
        return self.history if is_last else self.rows()
