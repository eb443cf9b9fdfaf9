"""Rows that are ready for the training, on a worker."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

__all__ = ["Rows"]


class Rows(NamedTuple):
    """
    Rows after the steps before the model, none of sample weight zero.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    target : ndarray of shape (n_samples, n_outputs)
    sample_weight : ndarray of shape (n_samples,) or None
    """

    X: Any
    target: np.ndarray
    sample_weight: np.ndarray | None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.X.shape[0]

    @property
    def n_bytes(self) -> int:
        """The memory of X and the target."""
        X = self.X
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if scipy.sparse.issparse(X) else X.nbytes
        return int(size + self.target.nbytes)

    def taken(self, numbers: np.ndarray | slice) -> "Rows":
        """Return the rows of some numbers."""
        weights = self.sample_weight
        return Rows(self.X[numbers], self.target[numbers], None if weights is None else weights[numbers])

    def every(self, start: int, stride: int) -> "Rows":
        """Return every `stride`-th row, from number `start` on."""
        if stride == 1:
            return self
        return self.taken(slice(start, None, stride))

    @classmethod
    def concatenated(cls, parts: "Sequence[Rows]") -> "Rows":
        """Return all rows of some partitions, in their order."""
        X, target, sample_weight = zip(*parts, strict=True)
        is_sparse = any(scipy.sparse.issparse(each) for each in X)
        return cls(
            scipy.sparse.vstack(X, format="csr") if is_sparse else _joined(X),
            _joined(target),
            None if sample_weight[0] is None else _joined(sample_weight),
        )


def _joined(arrays):
    """Return arrays as a C-contiguous one."""
    return np.ascontiguousarray(arrays[0] if len(arrays) == 1 else np.concatenate(arrays))
