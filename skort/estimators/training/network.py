"""How a network is trained where nothing is given: Adam with decay along a cosine to zero, as long as its rows ask."""

import math

# By `benchmarks.defaults`: so many updates, which grow with the rows, fastest from 200 to 300 of them, and epochs.
_UPDATES, _ROWS, _POWER = 150, 150, 0.6
_MORE, _MORE_ROWS = 1.5, 200
_LEAST_EPOCHS, _MOST_EPOCHS = 20, 300
#: Rows of a batch of a stream, where neither `batch_size` nor the first call says another number.
STREAM_ROWS = 16
#: What the rate of the first update is multiplied by where rows come after the plan, in calls of `partial_fit`.
LATER = 0.05
# The part of a weight that an update at the first rate takes, if that of all updates is at least and at most so much.
_DECAY, _LEAST_SUM, _MOST_SUM = 0.027, 6.0, 9.0
# The largest part in any case.
_MOST_DECAY = 0.05
# A fitted network: the least part of the rate, and below how many rows it falls with their square.
_LEAST, _FEW_ROWS = 0.05, 200


def planned_epochs(n_rows: int, n_batches: int) -> int:
    """Return the number of epochs that a network is trained for."""
    n_updates = _UPDATES * max(1.0, n_rows / _ROWS) ** _POWER * min(max(1.0, n_rows / _MORE_ROWS), _MORE)
    return int(min(max(math.ceil(n_updates / n_batches), _LEAST_EPOCHS), _MOST_EPOCHS))


def planned_decay(n_updates: int, eta0: float) -> float:
    """Return the weight decay with which a cosine shrinks weights by about the same factor, however long it is."""
    return min(max(_DECAY, _LEAST_SUM / n_updates), _MOST_SUM / n_updates, _MOST_DECAY) / eta0


def fitted_part(share: float, n_rows: int) -> float:
    """Return what a fitted network's rate is multiplied by: 1 where its loss is that of a constant, else less."""
    # Where it knows the rows, or these are few, with many epochs it would forget others.
    return 1.0 if share >= 1 else max(_LEAST, share**2) * min(1.0, n_rows / _FEW_ROWS) ** 2
