"""Mini-batches that somebody else makes, in their order."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from skort.optim.batches import Batch
from skort.optim.filled import fill

__all__ = ["GivenBatches"]


class GivenBatches:
    r"""
    The training data, batch by batch as they are given: what `Batches` is for rows in memory.

    Row i of a batch of m rows of positive sample weight counts :math:`s_i / (\bar s \, m)`, with the mean sample weight
    :math:`\bar s` over all rows, as in `Batches`. Larger batches are divided into parts of `batch_size` rows.

    Parameters
    ----------
    epoch : callable
        Returns an iterable of (X, target, sample weights or None) anew for every epoch; encoded, and of the same rows
        every time.
    n_rows : int
        The number of rows of positive sample weight of an epoch.
    n_batches : int
        The number of batches of an epoch, parts counted.
    batch_size : int
        The largest number of rows of a batch.
    scale : float
        A factor that multiplies all sample weights: the inverse of their mean is part of it.
    random_state : numpy.random.RandomState
        That of the training. Nothing is drawn from it: the order is that of whoever gives the batches.
    """

    def __init__(
        self,
        epoch: Callable[[], Iterable[tuple[Any, np.ndarray, np.ndarray | None]]],
        *,
        n_rows: int,
        n_batches: int,
        batch_size: int,
        scale: float,
        random_state: np.random.RandomState,
    ):
        self._epoch, self._scale = epoch, scale
        self.n_rows, self.n_batches, self.batch_size = n_rows, n_batches, batch_size
        self.random_state = random_state
        #: How often an order was drawn: never.
        self.n_drawn = 0
        #: The rows that a device could take as a whole: none.
        self.data: list[Any] = []

    @property
    def are_sparse(self) -> bool:
        """Whether sparse batches are the fastest: every batch is made dense."""
        return False

    def draw(self, random_state: np.random.RandomState) -> None:
        """Draw nothing."""

    def epoch(self, batch: Batch) -> Iterator[float]:
        """
        Fill `batch` with the rows of each batch of one epoch in turn.

        Yields
        ------
        share : float
            The batch's share of the rows; the shares of an epoch sum to one.

        Raises
        ------
        ValueError
            Where the rows of an epoch are more or fewer than `n_rows`.
        """
        n_rows = 0
        for X, target, sample_weight in self._epoch():
            for start in range(0, len(target), self.batch_size):
                part = slice(start, start + self.batch_size)
                weight = None if sample_weight is None else sample_weight[part]
                count = len(target[part]) if weight is None else int(np.count_nonzero(weight))
                n_rows += count
                if count and n_rows <= self.n_rows:
                    fill(batch, X[part], target[part], weight, self._scale)
                    yield count / self.n_rows
        if n_rows != self.n_rows:
            raise ValueError(
                f"batches gave {n_rows} rows of positive sample weight in an epoch, and {self.n_rows} when they were "
                "read first. Every pass must give the same rows, in any order."
            )
