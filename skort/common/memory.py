"""Where the values of an array are: in memory or in a file, at an aligned address or not."""

import mmap
from typing import Any

import numpy as np
import scipy.sparse


def is_in_memory(rows: Any) -> bool:
    """Return whether rows are an ndarray that is not a view of a file."""
    base = rows
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(rows, np.ndarray) and not isinstance(base, mmap.mmap)


def aligned(values: Any) -> Any:
    """
    Return an array or sparse matrix with aligned addresses: itself, or a copy.

    An aligned address is a multiple of the size of a value.
    """
    # At other addresses, BLAS and ONNX Runtime may crash.
    if scipy.sparse.issparse(values):
        return _aligned_matrix(values)
    if type(values) is not np.ndarray or values.flags.aligned:
        return values

    return values.copy()


def aligned_rows(X: Any) -> Any:
    """
    Return rows as `aligned` does, but a view of a file as it is.

    The rows of a file are copied batch by batch.
    """
    return X if isinstance(X, np.ndarray) and not is_in_memory(X) else aligned(X)


def _aligned_matrix(matrix):
    parts = [*vars(matrix).values(), *getattr(matrix, "coords", ())]
    if all(part.flags.aligned for part in parts if isinstance(part, np.ndarray)):
        return matrix
    # A copy of a matrix has arrays of its own.
    return matrix.copy()
