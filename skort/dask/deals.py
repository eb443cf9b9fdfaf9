"""Which group gets which partitions in a round: dealt anew in every one, by the seed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

__all__ = ["Deal", "Deals", "Size"]

# The rows of a task: at most so many bytes, or one partition.
_MOST_BYTES = 2**27


class Size(NamedTuple):
    """How large a partition is."""

    n_rows: int
    n_bytes: int


@dataclass(frozen=True)
class Deal:
    """
    The tasks of one round.

    Parameters
    ----------
    groups : list of list of (list of int, int)
        Of each group, the numbers of the partitions and the seed of each of its tasks, which follow each other.
    n_updates : int
        Those of the group with the most.
    """

    groups: list[list[tuple[list[int], int]]]
    n_updates: int


class _Round(Protocol):
    """What makes the steps of a round together."""

    def open(self, deal: Deal) -> None:
        """Begin to write down the steps of a round."""

    def close(self) -> None:
        """Make them."""


class Deals:
    """
    Deals the partitions to the groups: the batches of a training whose steps groups make.

    Every round has a new order of the partitions. They go one by one to the group that has the fewest rows so far: no
    group keeps rows of one kind, and all have about as many.

    Parameters
    ----------
    sizes : sequence of Size
        Of the partitions.
    n_groups : int
    batch_size : int
    random_state : numpy.random.RandomState
        Used once a round.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.dask.deals import Deals, Size
    >>> deals = Deals([Size(100, 800)] * 4, 2, 10, np.random.RandomState(0))
    >>> deal = deals.draw(np.random.RandomState(0))
    >>> [[numbers for numbers, seed in tasks] for tasks in deal.groups], deal.n_updates
    ([[[2, 1]], [[3, 0]]], 20)
    """

    def __init__(self, sizes: Sequence[Size], n_groups: int, batch_size: int, random_state: np.random.RandomState):
        self._sizes = list(sizes)
        self._n_groups = min(n_groups, len(sizes))
        self.batch_size = min(batch_size, sum(size.n_rows for size in sizes))
        self.random_state = random_state
        #: How often a deal was drawn.
        self.n_drawn = 0
        #: The rows are on the workers.
        self.data: list[Any] = []
        #: The number of batches of a group, about.
        self.n_batches = -(-sum(size.n_rows for size in sizes) // (self._n_groups * self.batch_size))

    def draw(self, random_state: np.random.RandomState) -> Deal:
        """Return all that a round takes from a generator."""
        order = random_state.permutation(len(self._sizes)).tolist()
        seeds = iter(random_state.randint(2**32, size=len(self._sizes), dtype=np.uint32).tolist())
        groups: list[list[int]] = [[] for _ in range(self._n_groups)]
        n_rows = [0] * self._n_groups
        for number in order:
            least = n_rows.index(min(n_rows))
            groups[least].append(number)
            n_rows[least] += self._sizes[number].n_rows
        tasks = [[(numbers, next(seeds)) for numbers in self._tasks(group)] for group in groups]
        return Deal(tasks, max(sum(self._n_updates(numbers) for numbers, _ in group) for group in tasks))

    def _tasks(self, group):
        """Divide the partitions of a group among tasks of a bounded size."""
        n_bytes = sum(self._sizes[number].n_bytes for number in group)
        n_tasks = min(len(group), -(-n_bytes // _MOST_BYTES))
        return [part.tolist() for part in np.array_split(group, max(1, n_tasks))]

    def _n_updates(self, numbers):
        return -(-sum(self._sizes[number].n_rows for number in numbers) // self.batch_size)

    def epoch(self, batch: _Round) -> Iterator[float]:
        """
        Let groups make one epoch, all steps together at its end.

        Yields
        ------
        share : float
            What one update of every group is of the round.
        """
        self.n_drawn += 1
        deal = self.draw(self.random_state)
        batch.open(deal)
        for _ in range(deal.n_updates):
            yield 1 / deal.n_updates
        batch.close()
