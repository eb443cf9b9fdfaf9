"""The order of many rows: blocks of consecutive rows, in windows that the cache of a processor holds."""

from dataclasses import dataclass

import numpy as np

__all__ = ["MANY_ROWS", "WindowShape"]

#: More rows than these are shuffled in windows.
MANY_ROWS = 2**17


@dataclass(frozen=True)
class WindowShape:
    """
    How large blocks and windows are.

    Parameters
    ----------
    n_blocks : int
        The largest number of blocks of a window.
    length : int
        Rows a block.
    """

    n_blocks: int
    length: int

    @classmethod
    def of(cls, n_features, batch_size):
        """
        Return the shape of windows of about 2^20 values.

        There are no fewer blocks than a batch has rows, so that few rows of a batch are of the same block.
        """
        n_blocks = max(256, batch_size)
        return cls(n_blocks, max(1, 2**20 // (n_blocks * n_features)))

    def rows(self, blocks):
        """Return the numbers of the rows of some blocks, one block after the other."""
        return (blocks[:, None] * self.length + np.arange(self.length)).ravel()

    def divide(self, sample_weight):
        """
        Divide rows among blocks.

        Parameters
        ----------
        sample_weight : ndarray of shape (n_samples,)

        Returns
        -------
        blocks : ndarray of int
            The numbers of the blocks that have a row of positive weight.
        rest : ndarray of int
            The numbers of such rows that are in no block: at the end, too few for one.
        """
        n_blocks = len(sample_weight) // self.length
        in_blocks = n_blocks * self.length
        blocks = sample_weight[:in_blocks].reshape(n_blocks, self.length)
        return np.flatnonzero(blocks.any(axis=1)), in_blocks + np.flatnonzero(sample_weight[in_blocks:])

    def draw(self, blocks, random_state):
        """
        Divide blocks among windows of about the same size, at random.

        The blocks in their order are cut into strata of as many consecutive blocks as there are windows; each window
        has a random one of every stratum. So it has its part of every region of the data, such as of every class where
        rows are sorted by class.

        Parameters
        ----------
        blocks : ndarray of shape (n_blocks,)
            Numbers of blocks, ascending.
        random_state : numpy.random.RandomState

        Yields
        ------
        window : ndarray of int
            The blocks of a window, ascending. All windows together have each block once.
        """
        n_windows = -(-len(blocks) // self.n_blocks)
        n_strata = -(-len(blocks) // n_windows)
        places = np.argsort(random_state.random_sample((n_strata, n_windows)), axis=1)
        places += n_windows * np.arange(n_strata)[:, None]
        for window in places.T:
            yield blocks[window[window < len(blocks)]]

    def deal(self, n_more, n_blocks, random_state):
        """
        Return a random order of some rows, and the rows of blocks after them.

        The blocks are dealt out like cards: one row of each, in random order, then another one of each. The rows that
        are in no block are put in at random.

        Parameters
        ----------
        n_more, n_blocks : int
        random_state : numpy.random.RandomState

        Returns
        -------
        order : ndarray of shape (n_more + n_blocks * length,)
            Numbers of rows as in the copies of `copier`.
        """
        turns = np.tile(random_state.permutation(self.length), 2)
        first_turns = random_state.randint(self.length, size=n_blocks)
        order = turns.take(np.arange(self.length)[:, None] + first_turns)
        order += n_more + self.length * random_state.permutation(n_blocks)
        places = random_state.randint(order.size + 1, size=n_more)
        return np.insert(order.ravel(), places, np.arange(n_more))

    def copier(self, rows, n_more):
        """
        Return the function that copies some rows, and the blocks of a window after them.

        Parameters
        ----------
        rows : ndarray of shape (n_samples, n_columns)
            C-contiguous.
        n_more : int
            Largest number of rows that are copied besides those of the blocks.

        Returns
        -------
        copy : callable
            Numbers of rows, numbers of blocks -> ndarray, which the next call overwrites.
        """
        n_whole = len(rows) // self.length
        whole = rows[: n_whole * self.length].reshape(n_whole, -1)
        copies = np.empty((n_more + self.n_blocks * self.length, rows.shape[1]), rows.dtype)

        def copy(more, blocks):
            begin, end = len(more), len(more) + len(blocks) * self.length
            rows.take(more, axis=0, out=copies[:begin], mode="clip")
            whole.take(blocks, axis=0, out=copies[begin:end].reshape(len(blocks), -1), mode="clip")
            return copies[:end]

        return copy
