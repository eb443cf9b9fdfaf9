r"""
The order of many rows: blocks of consecutive rows, in windows that fit into a processor's cache.

To read a single row costs a cache miss, or a page of a memory map. So windows of about 2^20 values of X (4 MB in
float32) are copied one after the other. X is divided into K regions, and a window has one random block of each; K is
256, or the number of rows of a batch if that is more. The variance of the mean over a batch of m rows is about

.. math:: \frac{\sigma^2}{m} \left(1 - (1 - f) \frac{m}{K}\right)

where f is the share of the variance :math:`\sigma^2` within the regions (two-stage sampling: Cochran, Sampling
Techniques, 1977): at most that of a permutation, and less in sorted data. The batches of a window share its blocks: the
mean over them has a variance of up to :math:`f \sigma^2 / K`. Xu et al. (CorgiPile, SIGMOD 2022) show that block
shuffling, there without regions, trains as well as a permutation.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

#: A larger number of rows is shuffled in windows.
MANY_ROWS = 2**17


@dataclass(frozen=True)
class WindowShape:
    """The largest number of blocks in a window, and the number of rows (`length`) of a block."""

    n_blocks: int
    length: int

    @classmethod
    def of(cls, n_features: int, batch_size: int) -> "WindowShape":
        """Return windows of about 2^20 values, of as many blocks as a batch has rows: few of them share a block."""
        n_blocks = max(256, batch_size)
        return cls(n_blocks, max(1, 2**20 // (n_blocks * n_features)))

    def rows(self, blocks: np.ndarray) -> np.ndarray:
        """Return the numbers of the rows of some blocks, block by block."""
        return (blocks[:, None] * self.length + np.arange(self.length)).ravel()

    def divide(self, sample_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of blocks with rows of positive weight, and of such rows at the end that fill no block."""
        n_blocks = len(sample_weight) // self.length
        in_blocks = n_blocks * self.length
        blocks = sample_weight[:in_blocks].reshape(n_blocks, self.length)
        return np.flatnonzero(blocks.any(axis=1)), in_blocks + np.flatnonzero(sample_weight[in_blocks:])

    def draw(self, blocks: np.ndarray, random_state: np.random.RandomState) -> Iterator[np.ndarray]:
        """
        Yield the blocks of each window, ascending: all windows together have each block once.

        Consecutive blocks form strata, each with as many blocks as there are windows. Each window gets one random block
        of every stratum. So it has its part of every region, such as of every class if the rows are sorted by class.
        """
        n_windows = -(-len(blocks) // self.n_blocks)
        n_strata = -(-len(blocks) // n_windows)
        places = np.argsort(random_state.random_sample((n_strata, n_windows)), axis=1)
        places += n_windows * np.arange(n_strata)[:, None]
        for window in places.T:
            yield blocks[window[window < len(blocks)]]

    def deal(self, n_more: int, n_blocks: int, random_state: np.random.RandomState) -> np.ndarray:
        """
        Return a random order of a window's rows, as `copier` copies them: single rows, then those of blocks.

        The blocks are dealt out like cards: one row of each, in random order, then another one of each. The single rows
        go to random places.
        """
        turns = np.tile(random_state.permutation(self.length), 2)
        first_turns = random_state.randint(self.length, size=n_blocks)
        order = turns.take(np.arange(self.length)[:, None] + first_turns)
        order += n_more + self.length * random_state.permutation(n_blocks)
        places = random_state.randint(order.size + 1, size=n_more)
        return np.insert(order.ravel(), places, np.arange(n_more))

    def copier(self, rows: np.ndarray, n_more: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Return the function (at most `n_more` numbers of rows, numbers of blocks) -> their copy, which it reuses."""
        copies = np.empty((n_more + self.n_blocks * self.length, rows.shape[1]), rows.dtype)
        rows, out = aligned(rows, copies)
        n_whole = len(rows) // self.length
        whole = rows[: n_whole * self.length].reshape(n_whole, -1)

        def copy(more, blocks):
            begin, end = len(more), len(more) + len(blocks) * self.length
            rows.take(more, axis=0, out=out[:begin], mode="clip")
            whole.take(blocks, axis=0, out=out[begin:end].reshape(len(blocks), -1), mode="clip")
            return copies[:end]

        return copy


def aligned(rows: np.ndarray, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    Return both arrays as bytes where `take` would copy the whole of `rows` first, as it does for each call.

    It does so where the memory of an array begins at an odd byte, as that from a network or a file may.
    """
    if rows.flags.aligned or not rows.flags.c_contiguous or rows.dtype != out.dtype:
        return rows, out
    return rows.view(np.uint8), out.view(np.uint8)
