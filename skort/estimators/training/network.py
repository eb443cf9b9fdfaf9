"""How a network is trained where nothing is given: Adam with decay along a cosine to zero, as long as its rows ask."""

import math

# By `benchmarks.defaults`: so many updates, which grow with the rows, and epochs.
_UPDATES, _ROWS, _POWER = 150, 150, 0.6
_LEAST_EPOCHS, _MOST_EPOCHS = 20, 300
#: The learning rate of the first update.
RATE = 0.02
#: What the rate of the first update is multiplied by where rows come after the plan, in calls of `partial_fit`.
LATER = 0.05
# The sum of all decays, for rates that stay at the first one, and the most that one update shrinks a weight by.
_DECAY, _MOST_DECAY = 6.0, 0.05


def planned_epochs(n_rows: int, n_batches: int) -> int:
    """Return the number of epochs that a network is trained for."""
    n_updates = _UPDATES * max(1.0, n_rows / _ROWS) ** _POWER
    return int(min(max(math.ceil(n_updates / n_batches), _LEAST_EPOCHS), _MOST_EPOCHS))


def planned_decay(n_updates: int, eta0: float) -> float:
    """Return the weight decay with which a whole cosine shrinks weights by the same factor, however long it is."""
    return min(_DECAY / n_updates, _MOST_DECAY) / eta0
