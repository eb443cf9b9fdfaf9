"""The history of a training: a table with a row for each epoch."""

import math
from collections.abc import Iterable
from typing import Any

__all__ = ["History", "best_epoch"]


class History(dict):
    """
    The table of a training: a column for each recorded value, a row for each epoch.

    `pandas.DataFrame(history)` gives the same table. A column that begins late has NaN before its first value.

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

    @property
    def n_epochs(self) -> int:
        """Number of epochs."""
        return max(map(len, self.values()), default=0)

    def next_epoch(self, **values: float) -> None:
        """Add the row of one more epoch."""
        n = self.n_epochs
        self.truncate(n)
        for name, value in values.items():
            self.setdefault(name, [math.nan] * n).append(value)

    def record(self, name: str, value: Any) -> None:
        """
        Add a value to the row of the last epoch.

        Parameters
        ----------
        name : str
            The column.
        value : object
            Usually a number.

        Raises
        ------
        ValueError
            If the row has a value of that name already.
        """
        column = self.setdefault(name, [])
        if len(column) >= self.n_epochs:
            raise ValueError(f"The history takes one {name!r} an epoch: give each column a name of its own.")
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
    Return the number of the first epoch with the largest score, and this score; None where no score is a number.

    Examples
    --------
    >>> from skort.optim.history import best_epoch
    >>> best_epoch([0.5, 0.75, float("nan"), 0.75])
    (2, 0.75)
    """
    known = [(score, -epoch) for epoch, score in enumerate(scores, 1) if not math.isnan(score)]
    if not known:
        return None
    score, epoch = max(known)
    return -epoch, score
