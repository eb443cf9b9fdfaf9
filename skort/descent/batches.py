"""Mini-batches: every epoch uses every row once, in seeded random order."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from skort.descent.windows import MANY_ROWS, WindowShape

try:
    # Behind `rows[indices].toarray()`, whose checks take longer than the work.
    from scipy.sparse._sparsetools import csr_row_index, csr_todense
except ImportError:  # they are private
    csr_row_index = csr_todense = None

__all__ = ["Batch", "Batches", "HostBatch"]


class Batch(Protocol):
    """What a solver's next step reads its rows from."""

    #: What the loss of each row is multiplied with, of shape (batch_size, 1); zero for rows that only fill the batch.
    sample_weight: np.ndarray
    #: Whether the rows are best taken from where they are; otherwise windows of many rows are copied before.
    in_place: bool

    def __len__(self) -> int:
        """Return the number of rows."""

    def begin(self, data: list[Any]) -> None:
        """Begin a training on these rows: X, the target and, where these differ, the sample weights."""

    def fillers(self, data: list[Any]) -> list[Callable[[np.ndarray], None]]:
        """Return the functions that let the rows of some numbers be the batch, to be called one after the other."""


@dataclass(frozen=True, eq=False)
class HostBatch:
    """
    Arrays in memory that a solver's next step reads; filled anew for every step, never replaced.

    Parameters
    ----------
    X : ndarray of shape (batch_size, n_features)
    target : ndarray of shape (batch_size, n_outputs)
    sample_weight : ndarray of shape (batch_size, 1)
    """

    X: np.ndarray
    target: np.ndarray
    sample_weight: np.ndarray
    in_place = False

    @classmethod
    def empty(cls, batch_size: int, n_features: int, n_outputs: int, dtype) -> "HostBatch":
        """Return a batch of zeros."""
        return cls(
            np.zeros((batch_size, n_features), dtype),
            np.zeros((batch_size, n_outputs), dtype),
            np.zeros((batch_size, 1), dtype),
        )

    def __len__(self) -> int:
        return len(self.X)

    def begin(self, data: list[Any]) -> None:
        """Begin a training on these rows, which stay where they are."""

    def fillers(self, data: list[Any]) -> list[Callable[[np.ndarray], None]]:
        """Return the functions that copy the rows of some numbers into the arrays."""
        outs = self.X, self.target, self.sample_weight
        return [_filler(rows, out) for rows, out in zip(data, outs, strict=False)]


class Batches:
    r"""
    The training data, batch by batch.

    The loss of row i in a batch B is multiplied with

    .. math:: v_i = \frac{s_i}{\bar s \, |B|}, \qquad \bar s = \frac{1}{n} \sum_{i=1}^n s_i

    over the n rows of positive weight :math:`s_i`: each batch is divided by its number of rows, and all batches by the
    same mean weight, so that the gradient of a random batch is on average that of the weighted mean over all rows.

    All batches have `batch_size` rows, so that a solver's graph has fixed shapes. The last one of an epoch is filled up
    with rows of weight zero, which change neither the objective nor its gradient.

    The order of an epoch is a permutation of all rows: of up to 131,072 rows, that of `RandomState.permutation`. A row
    by itself costs a cache miss, and a page of a memory map, so more rows are taken in windows of about 2^20 values of
    X (4 MB in float32), which are copied one after the other by blocks of consecutive rows. A window has K blocks: as
    many as a batch has rows, or 256, whichever is more, one at random of every of K regions of X. Its rows are dealt
    out like cards, one of each block, then another one of each, so that nearly all rows of a batch are of different
    blocks. The variance of the mean over a batch of m rows is about

    .. math:: \frac{\sigma^2}{m} \left(1 - (1 - f) \frac{m}{K}\right)

    where the part f of the variance :math:`\sigma^2` is within the regions: that of two-stage sampling [1]_, at most
    that of a permutation, and less where the rows of a region are alike, as in sorted data. But all batches of a window
    share its blocks, and the mean over them has a variance of up to :math:`f \sigma^2 / K`. [2]_ shows that block
    shuffling trains as well as a permutation; there are no regions there, and the rows of a window are permuted.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        C-contiguous; read, never copied as a whole. The rows of a sparse one are made dense batch by batch, and it has
        the dtype of the batches.
    target : ndarray of shape (n_samples, n_outputs)
    sample_weight : ndarray of shape (n_samples,) or None
        Not negative, not all zero. Rows of weight zero are left out, as if they were not there. None: all ones.
    batch_size : int
        Rows a batch; at most the number of rows of positive weight is used.
    shuffle : bool
    random_state : numpy.random.RandomState
        Drawn from once an epoch, where `shuffle`.
    sample_weight_scale : float, default=1.0
        A factor of all :math:`v_i`.

    References
    ----------
    .. [1] Cochran, W. G., Sampling Techniques, Wiley, 1977: subsampling with units of equal size.
    .. [2] Xu, L. et al., In-Database Machine Learning with CorgiPile: Stochastic Gradient Descent without Full Data
       Shuffle, SIGMOD 2022.
    """

    def __init__(self, X, target, sample_weight, *, batch_size, shuffle, random_state, sample_weight_scale=1.0):
        self.random_state = random_state
        self.shuffle = shuffle
        self._weighted = sample_weight is not None
        if not self._weighted:
            self.sample_weight = np.broadcast_to(float(sample_weight_scale), X.shape[0])
        else:
            # Relative to the largest one, so that no sum overflows.
            sample_weight = np.asarray(sample_weight, dtype=np.float64) / np.max(sample_weight)
            # The numerators of v, with their factor.
            self.sample_weight = sample_weight * (sample_weight_scale / np.mean(sample_weight[sample_weight > 0]))
        self.n_rows = int(np.count_nonzero(self.sample_weight))
        self.batch_size = min(int(batch_size), self.n_rows)
        #: Of an epoch, the short one included.
        self.n_batches = -(-self.n_rows // self.batch_size)
        #: X, the target and, where these differ, the sample weights.
        self.data = [X, target]
        if self._weighted:
            self.data.append((self.sample_weight / self.batch_size).astype(X.dtype)[:, None])
        self._windows = WindowShape.of(X.shape[1], self.batch_size)
        self._in_windows = shuffle and self.n_rows > MANY_ROWS and self._windows.length > 1
        if self._in_windows:
            self._blocks, self._rest = self._windows.divide(self.sample_weight)
        else:
            self._rows = np.nonzero(self.sample_weight)[0]

    def order(self, *, in_place=False):
        """
        Draw the order of one more epoch.

        Parameters
        ----------
        in_place : bool, default=False
            Whether windows are not copied.

        Returns
        -------
        parts : iterable of (list of ndarray or CSR matrix, ndarray of int)
            The data, or copies of a window of it, and the order of their rows: whole batches, but for the last part.
        """
        if self._in_windows:
            return self._parts(self.random_state.randint(2**32, dtype=np.uint32), in_place)
        return [(self.data, self.random_state.permutation(self._rows) if self.shuffle else self._rows)]

    def _parts(self, seed, in_place):
        """Yield the parts window by window, whose rows that do not fill a batch go to the next one."""
        random_state = np.random.RandomState(seed)
        windows, size, rest = self._windows, self.batch_size, self._rest
        copiers = [] if in_place else [windows.copier(rows, max(size, windows.length)) for rows in self.data]
        for blocks in windows.draw(self._blocks, random_state):
            rows = np.concatenate([rest, windows.rows(blocks)])
            order = windows.deal(len(rest), len(blocks), random_state)
            if self._weighted:
                order = order[self.sample_weight[rows[order]] > 0]
            order, left = np.split(order, [len(order) - len(order) % size])
            yield (self.data, rows[order]) if in_place else ([copy(rest, blocks) for copy in copiers], order)
            rest = rows[left]
        yield self.data, rest

    def epoch(self, batch):
        """
        Fill `batch` with the next rows, once for every batch of one epoch.

        Yields
        ------
        share : float
            The batch's part of the rows: the shares of an epoch sum to one.
        """
        size = self.batch_size
        share = size / self.n_rows
        # Where all weights are equal, there are none in the data.
        batch.sample_weight[...] = self.sample_weight[0] / size
        # Copying the rows of a sparse matrix takes as long as making them dense.
        in_place = batch.in_place or scipy.sparse.issparse(self.data[0])
        for data, order in self.order(in_place=in_place):
            fillers = batch.fillers(data)
            n_last = len(order) % size
            for indices in order[: len(order) - n_last].reshape(-1, size):
                for fill in fillers:
                    fill(indices)
                yield share
            if n_last:
                last = order[-n_last:]
                indices = np.resize(np.concatenate([last, order]), size)
                for fill in fillers:
                    fill(indices)
                batch.sample_weight[:n_last, 0] = self.sample_weight[last] / n_last
                batch.sample_weight[n_last:] = 0
                yield n_last / self.n_rows


def _filler(rows, out):
    """Return the function that copies the rows of some numbers into `out`."""
    if scipy.sparse.issparse(rows):
        return _sparse_filler(rows, out) if csr_todense is not None else _plain_sparse_filler(rows, out)
    # mode="clip" writes straight into `out`; the default mode goes through a buffer. functools.partial takes longer.
    take = rows.take
    return lambda indices: take(indices, 0, out, "clip")


def _plain_sparse_filler(rows, out):
    """Return the same for a CSR matrix, by scipy's public functions."""

    def fill(indices):
        rows[indices].toarray(out=out)

    return fill


def _sparse_filler(rows, out):
    """Return the same for a CSR matrix, by the functions behind scipy's public ones."""
    begins, ends = rows.indptr[:-1], rows.indptr[1:]
    indptr = np.zeros(len(out) + 1, rows.indptr.dtype)

    def fill(indices):
        np.cumsum(ends[indices] - begins[indices], out=indptr[1:])
        columns, values = (np.empty(indptr[-1], part.dtype) for part in (rows.indices, rows.data))
        indices = indices.astype(indptr.dtype)
        csr_row_index(len(out), indices, rows.indptr, rows.indices, rows.data, columns, values)
        out.fill(0)
        csr_todense(*out.shape, indptr, columns, values, out)

    return fill
