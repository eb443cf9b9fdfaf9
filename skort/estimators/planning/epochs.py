"""How many epochs a training makes at most."""

import math

from skort.estimators.planning.decision import Decision, rule

# What LogisticRegression calls many iterations; a linear model ends by its `tol`.
_LINEAR_EPOCHS = 1000

# Chosen by `python -m benchmarks.defaults --networks`: the updates of a network of so many rows,
# the power with which they grow, and how they grow fastest from 200 to 300 rows.
_UPDATES = 150
_ROWS = 150
_POWER = 0.6
_MORE = 1.5
_MORE_ROWS = 200
_LEAST_EPOCHS = 20
_MOST_EPOCHS = 300
# `python -m benchmarks.epochs`, with `--hidden 256 128` too, measures it: longer trainings help from
# so many rows a column on, and learn noise below. Where they do not help, they take less than
# twice the time.
_ROWS_PER_COLUMN = 400
_MOST_LONGER = 1.75


@rule("epochs")
def linear_epochs() -> Decision:
    """A linear model is trained for at most 1,000 epochs."""
    return Decision(_LINEAR_EPOCHS, "tol ends the training of a linear model", "max_iter")


@rule("epochs")
def network_epochs(n_rows: int, n_batches: int, n_columns: int) -> Decision:
    """
    A network makes 150 updates, more with the rows to the power of 0.6, and up to 1.75 times as
    many with more than 400 rows a column, in 20 to 300 epochs.
    """
    growth = max(1.0, n_rows / _ROWS) ** _POWER
    more = min(max(1.0, n_rows / _MORE_ROWS), _MORE)
    n_updates = _UPDATES * growth * more * longer(n_rows / n_columns)
    n_epochs = math.ceil(n_updates / n_batches)
    n_epochs = int(min(max(n_epochs, _LEAST_EPOCHS), _MOST_EPOCHS))
    return Decision(n_epochs, "the number of updates of a network grows with its rows", "max_iter")


def longer(rows_per_column: float) -> float:
    """Return how many times the updates of few rows a column a network of more rows makes."""
    return min(max(1.0, rows_per_column / _ROWS_PER_COLUMN), _MOST_LONGER)
