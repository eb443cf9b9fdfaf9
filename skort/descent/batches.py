"""Mini-batches: every epoch uses every row once, in seeded random order."""

import functools
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.sparse._sparsetools import csr_row_index, csr_todense

__all__ = ["Batch", "Batches"]


@dataclass(frozen=True)
class Batch:
    """
    The arrays that a solver's next step reads; filled anew for every step, never replaced.

    X and target may be elsewhere than in memory: then they have a method `filler`.

    Parameters
    ----------
    X : ndarray or Table of shape (batch_size, n_features)
    target : ndarray or Table of shape (batch_size, n_outputs)
    sample_weight : ndarray of shape (batch_size, 1)
        What the loss of each row is multiplied with; zero for rows that only fill the batch up.
    """

    X: np.ndarray
    target: np.ndarray
    sample_weight: np.ndarray

    @classmethod
    def empty(cls, batch_size, n_features, n_outputs, dtype):
        """Return a batch of zeros."""
        return cls(
            np.zeros((batch_size, n_features), dtype),
            np.zeros((batch_size, n_outputs), dtype),
            np.zeros((batch_size, 1), dtype),
        )


class Batches:
    r"""
    The training data, batch by batch.

    The loss of row i in a batch B is multiplied with

    .. math:: v_i = \frac{s_i}{\bar s \, |B|}, \qquad \bar s = \frac{1}{n} \sum_{i=1}^n s_i

    over the n rows of positive weight :math:`s_i`: each batch is divided by its number of rows, and all batches by the
    same mean weight, so that the gradient of a random batch is on average that of the weighted mean over all rows.

    All batches have `batch_size` rows, so that a solver's graph has fixed shapes. The last one of an epoch is filled up
    with rows of weight zero, which change neither the objective nor its gradient.

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
    """

    def __init__(self, X, target, sample_weight, *, batch_size, shuffle, random_state, sample_weight_scale=1.0):
        self.X = X
        self.target = target
        self.shuffle = shuffle
        self.random_state = random_state
        if sample_weight is None:
            sample_weight = np.ones(X.shape[0])
        # Relative to the largest one, so that no sum overflows.
        sample_weight = np.asarray(sample_weight, dtype=np.float64) / np.max(sample_weight)
        self.rows = np.flatnonzero(sample_weight)
        # The numerators of v, with their factor.
        self.sample_weight = sample_weight * (sample_weight_scale / np.mean(sample_weight[self.rows]))
        self.batch_size = min(int(batch_size), len(self.rows))
        self._full_weight = (self.sample_weight / self.batch_size).astype(X.dtype)[:, None]

    def order(self):
        """Return the rows in the order of one more epoch."""
        return self.random_state.permutation(self.rows) if self.shuffle else self.rows

    def epoch(self, batch):
        """
        Fill `batch` with the next rows, once for every batch of one epoch.

        Yields
        ------
        share : float
            The batch's part of the rows: the shares of an epoch sum to one.
        """
        rows, size = self.order(), self.batch_size
        sources = (self.X, batch.X), (self.target, batch.target), (self._full_weight, batch.sample_weight)
        fillers = [_filler(source, out) for source, out in sources]
        n_last = len(rows) % size
        share = size / len(rows)
        for indices in rows[: len(rows) - n_last].reshape(-1, size):
            for fill in fillers:
                fill(indices)
            yield share
        if n_last:
            last = rows[-n_last:]
            for fill in fillers:
                fill(np.concatenate([last, rows[: size - n_last]]))
            batch.sample_weight[:n_last, 0] = self.sample_weight[last] / n_last
            batch.sample_weight[n_last:] = 0
            yield n_last / len(rows)


def _filler(rows, out):
    """Return the function that writes the rows of some indices into `out`, which may be elsewhere than in memory."""
    if not isinstance(out, np.ndarray):
        return out.filler(rows, _filler)
    if scipy.sparse.issparse(rows):
        return _sparse_filler(rows, out)
    # mode="clip" writes straight into `out`; the default mode goes through a buffer.
    return functools.partial(rows.take, axis=0, out=out, mode="clip")


def _sparse_filler(rows, out):
    """Return the same for a CSR matrix, by the functions behind `rows[indices].toarray()`, whose checks take longer."""
    lengths = np.diff(rows.indptr)
    indptr = np.zeros(len(out) + 1, rows.indptr.dtype)

    def fill(indices):
        np.cumsum(lengths[indices], out=indptr[1:])
        columns, values = (np.empty(indptr[-1], part.dtype) for part in (rows.indices, rows.data))
        indices = indices.astype(indptr.dtype)
        csr_row_index(len(out), indices, rows.indptr, rows.indices, rows.data, columns, values)
        out.fill(0)
        csr_todense(*out.shape, indptr, columns, values, out)

    return fill
