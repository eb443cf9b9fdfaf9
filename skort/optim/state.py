"""The state of a training, from which it can continue, and its history."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skort.common.random_state import generator_of
from skort.optim.standardization import Standardization
from skort.runtime.cache import NoPickle


class History(dict[str, list[Any]]):
    """
    The table of a training: a column for each recorded value, a row for each epoch.

    `pandas.DataFrame(history)` gives the same table. A column that begins late has NaN before
    its first value.

    Examples
    --------
    >>> from skort.callbacks import History
    >>> history = History()
    >>> history.next_epoch(objective=3.0)
    >>> history.next_epoch(objective=2.0)
    >>> history.record("accuracy", 0.9)
    >>> history
    {'objective': [3.0, 2.0], 'accuracy': [nan, 0.9]}
    """

    __module__ = "skort.callbacks"

    @property
    def n_epochs(self) -> int:
        """Number of epochs."""
        return max(map(len, self.values()), default=0)

    def next_epoch(self, **values: float) -> None:
        """Add the row of one more epoch."""
        n = self.n_epochs
        self.truncate(n)
        for name, value in values.items():
            if name not in self:
                self[name] = [math.nan] * n
            self[name].append(value)

    def record(self, name: str, value: Any) -> None:
        """
        Add a value to the row of the last epoch;
        raise a ValueError if it has one of that name already.

        Parameters
        ----------
        name : str
            The column.
        value : object
            Usually a number.
        """
        column = self.setdefault(name, [])
        if len(column) >= self.n_epochs:
            raise ValueError(
                f"The history takes one {name!r} for each epoch: give each column a name of its own."
            )

        column += [math.nan] * (self.n_epochs - 1 - len(column))
        column.append(value)

    def truncate(self, n_epochs: int) -> None:
        """Keep the first `n_epochs` rows; fill shorter columns with NaN."""
        for column in self.values():
            if len(column) != n_epochs:
                column[n_epochs:] = [math.nan] * (n_epochs - len(column))

    def head(self, n_epochs: int, columns: Iterable[str]) -> "History":
        """Return a copy of the first `n_epochs` rows of some columns."""
        copied = History({name: self[name][:n_epochs] for name in columns})
        copied.truncate(n_epochs)
        return copied


def best_epoch(scores: Iterable[float]) -> tuple[int, float] | None:
    """
    Return the number and the score of the last epoch with the largest score, or None if no score is
    a number.
    """
    known = [(score, epoch) for epoch, score in enumerate(scores, 1) if not math.isnan(score)]
    if not known:
        return None
    score, epoch = max(known)
    return epoch, score


@dataclass(frozen=True, eq=False)
class TrainState:
    """
    Everything that a training continues from, to the last bit. It never changes: a training makes
    the next one.
    """

    #: The state of the step: weights, the optimizer's memory and averages. None: the initial
    #: weights. The name is that of files; any solver of the problem can continue from it.
    solver: dict[str, np.ndarray] | None
    n_updates: int
    #: How often the learning rate fell because the training did not improve.
    n_falls: int
    stopped: bool
    #: The state of the training's own generator, from `RandomState.get_state(legacy=False)`.
    random_state: dict[str, Any]
    #: The history, to which a later training adds its rows, so that short trainings copy nothing.
    #: Of it, `n_epochs` rows and `columns` belong to this state.
    history: History
    n_epochs: int
    columns: tuple[str, ...]
    #: The state, as in `solver`, after the epoch with the weights of the end.
    best: dict[str, np.ndarray] | None = None
    #: The standardization of X and y in `solver` and `best`.
    standardization: Standardization | None = None
    #: The factor of the schedule's rates, and whether the data decided on it.
    rate_scale: float = 1.0
    is_rate_found: bool = False
    #: All rows of a stream so far, and of a fit before it. A penalty of the model inside counts them.
    n_seen: int = 0
    #: The rows that have lowered the rate of a stream, a heavy one as often as its call repeats it.
    #: None: rows do not lower it.
    n_in_rate: int | None = None
    #: The weights before the training, if a custom penalty compares with them.
    penalty_start: dict[str, np.ndarray] | None = None
    stopping_reason: str | None = None
    #: The objective of the first batch before its update. None: it is not known.
    first_objective: float | None = None
    #: The rows of a stream that wait for its training to begin, and the weights drawn for it, if
    #: any.
    first_rows: Any = None
    first_weights: dict[str, np.ndarray] | None = None
    #: How far columns, by name and way, have left their scale, as warnings have said.
    told: Mapping[tuple[str, str], float] | None = None
    #: The last rows of a stream, if its calls have few: they tell with the next ones whether columns
    #: have left their scale.
    recent: Any = None
    #: A box with what makes the next steps, in this process only: copies of the box are empty.
    live: Any = None

    @classmethod
    def start(cls, random_state: np.random.RandomState, **others: Any) -> "TrainState":
        """Return the state before the first update, with the present state of a generator."""
        live = NoPickle(random_state)
        state = random_state.get_state(legacy=False)
        return cls(None, 0, 0, False, state, History(), 0, (), live=live, **others)

    @property
    def is_new(self) -> bool:
        """Whether the variables and the learning rate are still to be found."""
        return self.n_epochs == 0

    def generator(self) -> np.random.RandomState:
        """Return a new random generator in the state `random_state`."""
        return generator_of(self.random_state)

    def first_generator(self) -> np.random.RandomState:
        """
        Return the generator that was given to `start`, once and before the first update; later, one
        as from `generator`.
        """
        given = None if self.live is None else self.live.take()
        return self.generator() if given is None else given

    def rows(self) -> History:
        """Return a copy of the history of this state."""
        return self.history.head(self.n_epochs, self.columns)

    def column(self, name: str) -> list[Any] | None:
        """Return a copy of a column of the history of this state, or None if it has no such column."""
        return self.history[name][: self.n_epochs] if name in self.columns else None

    def open_history(self) -> History:
        """Return a history to add rows to. It is a copy if another training has added some already."""
        is_last = self.history.n_epochs == self.n_epochs and tuple(self.history) == self.columns
        return self.history if is_last else self.rows()
