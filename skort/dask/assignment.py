"""The assignment of rows to groups of workers: in every round, partitions are drawn again."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from skort.common.random_state import seeded
from skort.optim.batches import Portion

# The rows of a task have at most so many bytes, or are one partition.
_MOST_BYTES = 2**27
# The number of exchanges per round, and the least number of updates of a group between two of them.
_EXCHANGES = 5
_LEAST_UPDATES = 50
# The rows of a piece come from at least so many partitions, since all rows of one may be alike.
_LEAST_PARTITIONS = 2


class Size(NamedTuple):
    """The size of a partition."""

    n_rows: int
    n_bytes: int


class Task(NamedTuple):
    """
    One pass of a group over a part of the rows of some partitions.

    The part is every `stride`-th row from row `start` on. `seed` decides the order of the rows.
    """

    partitions: list[int]
    start: int
    stride: int
    seed: int


class Assignment(NamedTuple):
    """
    The tasks of one round.

    `exchanges` has, for each exchange, one task per group. `n_updates` has, for each exchange, the
    number of updates of the group with the most.
    """

    exchanges: list[list[Task]]
    n_updates: list[int]


class Assignments:
    """Assigns partitions to groups. The training reads it in the place of its batches."""

    # Neighbours are often alike, as in sorted data. So each run of as many neighbours as there are
    # groups is dealt at random, one to each group. A group divides its rows between the exchanges
    # of a round in the same way.

    def __init__(
        self,
        sizes: Sequence[Size],
        n_groups: int,
        batch_size: int,
        random_state: np.random.RandomState,
    ):
        self._sizes = list(sizes)
        self.n_groups: int = min(n_groups, len(sizes))
        self.batch_size: int = min(batch_size, sum(size.n_rows for size in sizes))

        #: The generator, used once per round.
        self.random_state = random_state
        #: The number of rounds so far.
        self.n_drawn: int = 0

        #: The rows are on the workers, so there are none here. The workers' batches are dense.
        self.data: list[Any] = []
        self.are_sparse = False
        #: The approximate number of batches of a group.
        self.n_batches: int = -(
            -sum(size.n_rows for size in sizes) // (self.n_groups * self.batch_size)
        )

    def draw(self, random_state: np.random.RandomState) -> Assignment:
        """Draw the assignment of one round."""
        draws = seeded(int(random_state.randint(2**32, dtype=np.uint32)))
        groups: list[list[int]] = [[] for _ in range(self.n_groups)]
        n_rows = [0] * self.n_groups
        n = len(self._sizes)
        size = self.n_groups

        # A stratum has as many consecutive partitions as there are groups. Each stratum is
        # shuffled.
        for number in np.argsort(np.arange(n) // size + draws.random_sample(n)).tolist():
            # The next partition goes to the group with the fewest rows so far.
            least = n_rows.index(min(n_rows))
            groups[least].append(number)
            n_rows[least] += self._sizes[number].n_rows

        # All groups have equally many pieces, so that all of them work in every exchange. With
        # enough partitions, each partition is in one piece, and moves to another worker at most
        # once per round. Otherwise, several exchanges share the partitions of a piece, and each
        # takes every `stride`-th row of them.
        fewest = min(map(len, groups))
        most = self._n_updates(max(n_rows)) // _LEAST_UPDATES
        n_exchanges = 1 if size == 1 else max(1, min(_EXCHANGES, most))
        n_bytes = max(sum(self._sizes[number].n_bytes for number in group) for group in groups)
        n_pieces = min(fewest, -(-n_bytes // _MOST_BYTES))
        if fewest >= _LEAST_PARTITIONS * n_exchanges:
            n_pieces = max(n_pieces, n_exchanges)
        stride = -(-n_exchanges // n_pieces)
        exchanges = []
        n_updates = []
        for pieces in zip(*(_pieces(group, n_pieces, draws) for group in groups), strict=True):
            for start in range(stride):
                tasks = [
                    Task(piece, start, stride, int(draws.randint(2**32, dtype=np.uint32)))
                    for piece in pieces
                    if self._n_rows(piece, start, stride)
                ]
                if tasks:
                    exchanges.append(tasks)
                    n_updates.append(
                        max(self._n_updates(self._n_rows(*task[:3])) for task in tasks)
                    )

        return Assignment(exchanges, n_updates)

    def _n_rows(self, partitions, start, stride):
        return sum(
            max(0, -(-(self._sizes[number].n_rows - start) // stride)) for number in partitions
        )

    def _n_updates(self, n_rows):
        return -(-n_rows // self.batch_size)

    def epoch(self, batch: Any) -> Iterator[Portion]:
        """
        Let a `DistributedStep` make an epoch, with all steps at the end of the epoch.

        The portions are equal. The workers know how many rows each step has.
        """
        self.n_drawn += 1
        assignment = self.draw(self.random_state)
        batch.open(assignment)
        n_updates = sum(assignment.n_updates)
        for _ in range(n_updates):
            yield Portion(1 / n_updates, 1.0)
        batch.close()


def _pieces(group, n_pieces, random_state):
    """
    Return the partitions of a group in pieces.

    Each piece has a random partition of each stratum.
    """
    strata = [
        random_state.permutation(stratum).tolist()
        for stratum in np.array_split(group, len(group) // n_pieces)
    ]
    pieces = [[stratum[i] for stratum in strata] for i in range(n_pieces)]
    for i, number in enumerate(number for stratum in strata for number in stratum[n_pieces:]):
        pieces[i % n_pieces].append(number)
    return pieces
