"""What is written down of every epoch."""

import math

__all__ = ["History"]


class History(dict):
    """
    A column of one value an epoch for everything that is watched: name -> list.

    `pandas.DataFrame(history)` is the table. A column that begins late has NaN before.

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
    def n_epochs(self):
        """Number of epochs."""
        return max(map(len, self.values()), default=0)

    def next_epoch(self, **values):
        """Begin the row of one more epoch."""
        n = self.n_epochs
        self.truncate(n)
        for name, value in values.items():
            self.setdefault(name, [math.nan] * n).append(value)

    def record(self, name, value):
        """Add a value to the row of the last epoch; raise a ValueError where there is one of that name already."""
        column = self.setdefault(name, [])
        if len(column) >= self.n_epochs:
            raise ValueError(f"The history takes one {name!r} an epoch: give each column a name of its own.")
        column += [math.nan] * (self.n_epochs - 1 - len(column))
        column.append(value)

    def truncate(self, n_epochs):
        """Keep the first `n_epochs`, with NaN where a column ends before."""
        for column in self.values():
            if len(column) != n_epochs:
                column[n_epochs:] = [math.nan] * (n_epochs - len(column))

    def copy(self):
        """Return a copy, of the columns too."""
        return History({name: list(column) for name, column in self.items()})
