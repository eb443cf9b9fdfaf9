"""The order of many rows: blocks of consecutive rows, in windows that fit into a processor's cache."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["MANY_ROWS", "WindowShape", "aligned"]

#: A larger number of rows is shuffled in windows.
MANY_ROWS = 2**17


@dataclass(frozen=True)
class WindowShape:
    """
    The sizes of blocks and windows.

    Parameters
    ----------
    n_blocks : int
        The largest number of blocks in a window.
    length : int
        Rows per block.
    """

    n_blocks: int
    length: int

    @classmethod
    def of(cls, n_features: int, batch_size: int) -> "WindowShape":
        """
        Return the shape of windows of about 2^20 values.

        A window has at least as many blocks as a batch has rows, so that few rows of a batch share a block.
        """
        n_blocks = max(256, batch_size)
        return cls(n_blocks, max(1, 2**20 // (n_blocks * n_features)))

    def rows(self, blocks: np.ndarray) -> np.ndarray:
        """Return the numbers of the rows of some blocks, block by block."""
        return (blocks[:, None] * self.length + np.arange(self.length)).ravel()

    def divide(self, sample_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """
        Divide rows among blocks.

        Parameters
        ----------
        sample_weight : ndarray of shape (n_samples,)

        Returns
        -------
        blocks : ndarray of int
            The numbers of the blocks that have a row of positive sample weight.
        rest : ndarray of int
            The numbers of such rows at the end that are too few for a block.
        """
        n_blocks = len(sample_weight) // self.length
        in_blocks = n_blocks * self.length
        blocks = sample_weight[:in_blocks].reshape(n_blocks, self.length)
        return np.flatnonzero(blocks.any(axis=1)), in_blocks + np.flatnonzero(sample_weight[in_blocks:])

    def draw(self, blocks: np.ndarray, random_state: np.random.RandomState) -> Iterator[np.ndarray]:
        """
        Divide blocks at random among windows of about the same size.

        Consecutive blocks form strata, each with as many blocks as there are windows. Each window gets one random block
        of every stratum. So it has its part of every region of the data, such as of every class if the rows are sorted
        by class.

        Parameters
        ----------
        blocks : ndarray of shape (n_blocks,)
            The numbers of the blocks, ascending.
        random_state : numpy.random.RandomState

        Yields
        ------
        window : ndarray of int
            The blocks of one window, ascending. All windows together have each block once.
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

        Parameters
        ----------
        n_more : int
            Number of single rows.
        n_blocks : int
        random_state : numpy.random.RandomState

        Returns
        -------
        order : ndarray of shape (n_more + n_blocks * length,)
            Numbers of rows in the copy.
        """
        turns = np.tile(random_state.permutation(self.length), 2)
        first_turns = random_state.randint(self.length, size=n_blocks)
        order = turns.take(np.arange(self.length)[:, None] + first_turns)
        order += n_more + self.length * random_state.permutation(n_blocks)
        places = random_state.randint(order.size + 1, size=n_more)
        return np.insert(order.ravel(), places, np.arange(n_more))

    def copier(self, rows: np.ndarray, n_more: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """
        Return the function that copies single rows and, after them, the blocks of a window.

        Parameters
        ----------
        rows : ndarray of shape (n_samples, n_columns)
            C-contiguous.
        n_more : int
            The largest number of single rows.

        Returns
        -------
        copy : callable
            (numbers of rows, numbers of blocks) -> ndarray, which the next call overwrites.
        """
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

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        As it is where it is not C-contiguous, or of another dtype than `out`.
    out : ndarray of shape (n_taken, n_columns)
        C-contiguous.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.optim.block_shuffle import aligned
    >>> rows = np.arange(13, dtype=np.uint8)[1:].view(np.int16).reshape(3, 2)
    >>> rows, out = aligned(rows, np.empty((1, 2), np.int16))
    >>> rows.take([1], axis=0, out=out, mode="clip")
    array([[5, 6, 7, 8]], dtype=uint8)
    """
    if rows.flags.aligned or not rows.flags.c_contiguous or rows.dtype != out.dtype:
        return rows, out
    return rows.view(np.uint8), out.view(np.uint8)
