"""X and y that scikit-learn's validation returns as they are, and the rows of X in blocks."""

import math

import numpy as np
import scipy.sparse

__all__ = ["blocks", "is_plain", "plain_rows"]

# The largest array that a model is given at once, in numbers: a few MB.
_BLOCK = 2**20


def plain_rows(estimator, X, dtype):
    """
    Return X as the model takes it where X is valid already, otherwise None.

    `validate_data` looks for data frames, names of features and arrays of other libraries, which takes most of the
    time of a prediction of one row.

    Parameters
    ----------
    estimator : BaseOrtSGD
    X : object
        As given by the user.
    dtype : dtype
        float32 or float64.

    Returns
    -------
    rows : ndarray of shape (n_samples, n_features) or None
        C-contiguous, of `dtype`; X itself where it is both. None: `validate_data` is to convert X, or to refuse it.
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


def is_plain(array):
    """Return whether `check_array` would return a matrix or vector, in its own dtype, as it is."""
    if type(array) is not np.ndarray or array.ndim not in (1, 2) or not array.size:
        return False
    # A sum of squares is not finite where a number is not; nothing cancels, and nothing warns.
    return array.dtype.kind in "biuU" or (array.dtype.kind == "f" and math.isfinite(np.vdot(array, array)))


def blocks(X):
    """Yield the rows of an array or CSR matrix as C-contiguous arrays of a few MB."""
    n_rows = max(1, _BLOCK // X.shape[1])
    for start in range(0, X.shape[0], n_rows):
        rows = X[start : start + n_rows]
        yield rows.toarray() if scipy.sparse.issparse(rows) else rows
