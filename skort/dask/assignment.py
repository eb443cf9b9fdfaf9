"""Which group gets which rows in a round: the partitions are assigned anew in every one, by the seed."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from skort.common.random_state import seeded
from skort.optim.batches import Portion

# The rows of a task: at most so many bytes, or one partition.
_MOST_BYTES = 2**27
# Groups exchange what they have so many times a round, if each of them makes so many updates in between.
_EXCHANGES, _LEAST_UPDATES = 5, 50
# The rows of a piece come from so many partitions or more: one may hold rows of one kind.
_LEAST_PARTITIONS = 2


class Size(NamedTuple):
    """How large a partition is."""

    n_rows: int
    n_bytes: int


class Task(NamedTuple):
    """One pass of a group over every `stride`-th row of some partitions, from row `start` on, in an order by `seed`."""

    partitions: list[int]
    start: int
    stride: int
    seed: int


class Assignment(NamedTuple):
    """The tasks of one round: of each exchange that of each group, and the updates of the group with the most."""

    exchanges: list[list[Task]]
    n_updates: list[int]


class Assignments:
    """Assigns the partitions to the groups: the batches of a training whose steps groups make."""

    # Neighbours are often alike, as in sorted data. So each group gets a random one of as many neighbours as there are
    # groups. Before an exchange, a group goes through a part of its rows, which is drawn in the same way.

    def __init__(self, sizes: Sequence[Size], n_groups: int, batch_size: int, random_state: np.random.RandomState):
        self._sizes = list(sizes)
        self.n_groups = min(n_groups, len(sizes))
        self.batch_size = min(batch_size, sum(size.n_rows for size in sizes))
        #: Used once a round.
        self.random_state = random_state
        #: The number of rounds so far.
        self.n_drawn = 0
        #: The rows are on the workers, which make their batches dense.
        self.data: list[Any] = []
        self.are_sparse = False
        #: The number of batches of a group, about.
        self.n_batches = -(-sum(size.n_rows for size in sizes) // (self.n_groups * self.batch_size))

    def draw(self, random_state: np.random.RandomState) -> Assignment:
        """Return all that a round takes from a generator."""
        draws = seeded(int(random_state.randint(2**32, dtype=np.uint32)))
        groups: list[list[int]] = [[] for _ in range(self.n_groups)]
        n_rows = [0] * self.n_groups
        n, size = len(self._sizes), self.n_groups
        # In strata of so many consecutive partitions as there are groups, each stratum shuffled.
        for number in np.argsort(np.arange(n) // size + draws.random_sample(n)).tolist():
            # Where sizes differ, it goes to the group that has the fewest rows so far.
            least = n_rows.index(min(n_rows))
            groups[least].append(number)
            n_rows[least] += self._sizes[number].n_rows
        # As many pieces of each group, so that all of them are at work in every exchange. Where there are enough
        # partitions, each is in one piece, and goes to another worker once a round at most; otherwise a piece is every
        # `stride`-th row of them.
        fewest, most = min(map(len, groups)), self._n_updates(max(n_rows)) // _LEAST_UPDATES
        n_exchanges = 1 if size == 1 else max(1, min(_EXCHANGES, most))
        n_bytes = max(sum(self._sizes[number].n_bytes for number in group) for group in groups)
        n_pieces = min(fewest, -(-n_bytes // _MOST_BYTES))
        if fewest >= _LEAST_PARTITIONS * n_exchanges:
            n_pieces = max(n_pieces, n_exchanges)
        stride = -(-n_exchanges // n_pieces)
        exchanges, n_updates = [], []
        for pieces in zip(*(_pieces(group, n_pieces, draws) for group in groups), strict=True):
            for start in range(stride):
                tasks = [
                    Task(piece, start, stride, int(draws.randint(2**32, dtype=np.uint32)))
                    for piece in pieces
                    if self._n_rows(piece, start, stride)
                ]
                if tasks:
                    exchanges.append(tasks)
                    n_updates.append(max(self._n_updates(self._n_rows(*task[:3])) for task in tasks))
        return Assignment(exchanges, n_updates)

    def _n_rows(self, partitions, start, stride):
        return sum(max(0, -(-(self._sizes[number].n_rows - start) // stride)) for number in partitions)

    def _n_updates(self, n_rows):
        return -(-n_rows // self.batch_size)

    def epoch(self, batch: Any) -> Iterator[Portion]:
        """Let a `DistributedStep` make an epoch, all steps at its end; the workers know how many rows each has."""
        self.n_drawn += 1
        assignment = self.draw(self.random_state)
        batch.open(assignment)
        n_updates = sum(assignment.n_updates)
        for _ in range(n_updates):
            yield Portion(1 / n_updates, 1.0)
        batch.close()


def _pieces(group, n_pieces, random_state):
    """Return the partitions of a group in pieces, with a random partition of each stratum in each piece."""
    strata = [random_state.permutation(stratum).tolist() for stratum in np.array_split(group, len(group) // n_pieces)]
    pieces = [[stratum[i] for stratum in strata] for i in range(n_pieces)]
    for i, number in enumerate(number for stratum in strata for number in stratum[n_pieces:]):
        pieces[i % n_pieces].append(number)
    return pieces
