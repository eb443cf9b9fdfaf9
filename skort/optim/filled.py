"""A batch filled with rows that somebody gives, in their order."""

from collections.abc import Callable
from typing import Any

import numpy as np

from skort.optim.batches import Batch, HostBatch

__all__ = ["fill"]


def fill(
    batch: Batch,
    X: Any,
    target: np.ndarray,
    sample_weight: np.ndarray | None,
    scale: float,
    read: Callable[[np.ndarray | None], None] | None = None,
) -> None:
    r"""
    Put rows into a batch.

    Row i of m rows of positive sample weight counts :math:`scale \cdot s_i / m`. The batch is filled up with the same
    rows once more, of weight zero.

    Parameters
    ----------
    batch : Batch
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        At most as many rows as the batch has, of its dtype.
    target : ndarray of shape (n_samples, n_outputs)
    sample_weight : ndarray of shape (n_samples,) or None
        As they count: nobody divides them by their mean. None: all ones.
    scale : float
    read : callable, default=None
        The method `read` of a solver. Where the rows are a whole batch in memory, X is not copied: the solver reads it
        where it is.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.optim.batches import HostBatch
    >>> from skort.optim.filled import fill
    >>> batch = HostBatch.empty(3, 1, 1, "float32")
    >>> fill(batch, np.float32([[5], [6]]), np.float32([[0], [1]]), np.array([1.0, 3.0]), 1.0)
    >>> batch.X.ravel(), batch.sample_weight.ravel()
    (array([5., 6., 5.], dtype=float32), array([0.5, 1.5, 0. ], dtype=float32))
    """
    n_rows = len(target)
    is_whole = n_rows == len(batch) and isinstance(X, np.ndarray)
    if read is not None and is_whole and isinstance(batch, HostBatch):
        read(X)
        batch.target[...] = target
    else:
        if read is not None:
            read(None)
        _copy(batch, [X, target], n_rows)
    if sample_weight is None:
        batch.sample_weight[:n_rows] = scale / n_rows
    else:
        batch.sample_weight[:n_rows, 0] = sample_weight * (scale / max(np.count_nonzero(sample_weight), 1))
    batch.sample_weight[n_rows:] = 0


def _copy(batch, data, n_rows):
    batch.begin(data)
    indices = np.resize(np.arange(n_rows), len(batch))
    for put in batch.fillers(data):
        put(indices)
