"""How noisy y is, as nearest rows tell it."""

from typing import Any

import numpy as np
import scipy.sparse

from skort.common.blas import one_blas_thread
from skort.optim.standardization import moments, of_unit_size, some_numbers

# So few rows do not tell. More rows than so many tell it little better, and take longer.
_FEW_ROWS = 20
_MANY_ROWS = 1000
# More sparse columns than so many would take memory.
_MANY_COLUMNS = 1000
# The squared distance of a row to its copy is at most such a part of its square, in float32.
_ROUNDING = 1e-5


def noise_of(
    X: Any,
    target: np.ndarray,
    sample_weight: np.ndarray | None,
    mean: np.ndarray,
    scale: np.ndarray,
) -> float | None:
    """
    Return the mean squared difference of y between nearest rows, divided by that between any two
    rows: about 0 without noise, and 1 if X says nothing about y.

    It is that of at most 1,000 evenly spaced rows; copies of a row are not near it. None: fewer
    than 20 rows, rows of one y, or sparse rows of more than 1,000 columns do not tell it.
    """
    rows = some_numbers(X, sample_weight, _MANY_ROWS)
    is_sparse = scipy.sparse.issparse(X)
    if len(rows) < _FEW_ROWS or (is_sparse and X.shape[1] > _MANY_COLUMNS):
        return None

    weights = None if sample_weight is None else sample_weight[rows]

    y = of_unit_size(target[rows])
    variance = np.sum(moments(y, weights)[1] ** 2)
    if not variance > 0:
        return None

    of_X = X[rows].toarray() if is_sparse else X[rows]
    differences = y - y[_nearest(((of_X - mean) / scale).astype(np.float32))]
    noise = np.average(differences**2, 0, weights).sum() / (2 * variance)
    return float(noise) if np.isfinite(noise) else None


def _nearest(rows):
    """Return the number of the nearest other row of each row. Copies of a row are no others."""
    squares = np.einsum("ij,ij->i", rows, rows)[:, None]
    with one_blas_thread(len(rows) ** 2), np.errstate(over="ignore", invalid="ignore"):
        distances = rows @ rows.T
        distances *= -2
        distances += squares
        distances += squares.T
        # Rounding errors are smaller.
        distances[distances <= _ROUNDING * squares] = np.inf

    return distances.argmin(axis=1)
