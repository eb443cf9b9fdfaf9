"""X and y that need no validation by scikit-learn, and the rows of X in blocks."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

__all__ = ["blocks", "check_sparse", "is_plain", "plain_rows"]

# The largest number of values that a model gets at once: a few MB.
_BLOCK = 2**20
_ROWS = 4


def plain_rows(estimator: Any, X: Any, dtype: DTypeLike) -> np.ndarray | None:
    """
    Return X in the form that the model takes if X is valid already, otherwise None.

    `validate_data` also handles data frames, feature names and arrays of other libraries; these checks take most of the
    time that it takes to predict one row.

    Parameters
    ----------
    estimator : BaseOrtSGD
    X : object
        As the user passes it.
    dtype : dtype
        float32 or float64.

    Returns
    -------
    rows : ndarray of shape (n_samples, n_features) or None
        C-contiguous, of `dtype`: X itself if it is both. None: `validate_data` has to convert or refuse X.
    """
    known = vars(estimator)
    if (
        type(X) is not np.ndarray
        or X.shape[1:] != (known.get("n_features_in_"),)
        or X.dtype.kind not in "biuf"
        or "feature_names_in_" in known
    ):
        return None
    if X.dtype != dtype:
        with np.errstate(over="ignore"):
            X = X.astype(dtype, order="C")
    rows = np.ascontiguousarray(X)
    return rows if is_plain(rows) else None


def is_plain(array: Any) -> bool:
    """Return whether `check_array` would return a matrix or vector unchanged, in its own dtype."""
    if type(array) is not np.ndarray or array.ndim not in (1, 2) or not array.size:
        return False
    # The sum of squares is not finite if a number is not: squares cannot cancel. It raises no warning.
    return array.dtype.kind in "biuU" or (array.dtype.kind == "f" and math.isfinite(np.vdot(array, array)))


def check_sparse(X: Any) -> None:
    """
    Raise an error where an index of a sparse matrix is outside of it: scipy would read memory that is not its own.

    Parameters
    ----------
    X : object
        Anything but a CSR or CSC matrix is passed over.

    Raises
    ------
    ValueError
    """
    if not scipy.sparse.issparse(X) or X.format not in ("csr", "csc"):
        return
    n_outer, n_inner = X.shape if X.format == "csr" else X.shape[::-1]
    indices, ends = X.indices, X.indptr
    is_sound = len(ends) == n_outer + 1 and ends[0] == 0 and ends[-1] <= min(len(indices), len(X.data))
    is_sound = is_sound and bool((ends[1:] >= ends[:-1]).all())
    if not is_sound or (len(indices) and not 0 <= indices.min() <= indices.max() < n_inner):
        raise ValueError(f"X is a sparse matrix of shape {X.shape} with indices outside of it: it is damaged.")


def blocks(X: Any) -> Iterator[np.ndarray]:
    """
    Yield the rows of an array or CSR matrix as C-contiguous arrays of a few MB, each with a multiple of four rows.

    ONNX Runtime computes four rows at a time, and rows that are left over with another rounding: whether a row is
    predicted alone or among others must not matter. The last row is repeated to fill the last block.
    """
    n_rows = max(_ROWS, _BLOCK // X.shape[1] // _ROWS * _ROWS)
    whole = X.shape[0] // _ROWS * _ROWS
    for start in range(0, whole, n_rows):
        rows = X[start : min(start + n_rows, whole)]
        yield rows.toarray() if scipy.sparse.issparse(rows) else rows
    if whole < X.shape[0]:
        rest = X[whole:]
        rest = rest.toarray() if scipy.sparse.issparse(rest) else rest
        filled = np.empty((_ROWS, X.shape[1]), rest.dtype)
        filled[: len(rest)], filled[len(rest) :] = rest, rest[-1]
        yield filled
