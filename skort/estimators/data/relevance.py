"""How much each column says about y, as means of y in bins of the column tell it."""

import numpy as np

from skort.common.blas import one_blas_thread
from skort.optim.standardization import moments, of_unit_size, some_numbers

# More rows tell it little better, and take longer.
_MANY_ROWS = 2000
_BINS = 10
# So many columns at once stay in the cache.
_COLUMNS = 256
# Sums of weights that should be equal differ by less.
_ROUNDING = 1e-9


def explained_parts(
    X: np.ndarray, target: np.ndarray, sample_weight: np.ndarray | None
) -> np.ndarray | None:
    """
    Return the part of the variance of y that each column explains alone, by the means of y in ten
    bins of about equal weight.

    It is that of at most 2,000 evenly spaced rows. Few rows are in bins of their own, so that all
    columns explain much of y. None: rows of one y do not tell it.
    """
    rows = some_numbers(X, sample_weight, _MANY_ROWS)
    weights = np.ones(len(rows)) if sample_weight is None else sample_weight[rows]
    weights = weights / weights.sum()

    y = of_unit_size(target[rows])
    mean, deviation = moments(y, weights)
    variance = np.sum(deviation**2)
    if not (variance > 0 and np.isfinite(variance)):
        return None

    sums = weights[:, None] * (y - mean)
    blocks = [X[rows, i : i + _COLUMNS] for i in range(0, X.shape[1], _COLUMNS)]
    with one_blas_thread(len(rows) * X.shape[1]):
        return np.concatenate([_between_bins(each, sums, weights) for each in blocks]) / variance


def _between_bins(X, sums, weights):
    """Return the variance of y between the bins of each column."""
    edges = _edges(X, weights)
    places = np.sum([edge < X for edge in edges], axis=0)

    between = np.zeros(X.shape[1])
    for place in range(_BINS):
        inside = (places == place).astype(np.float64)
        weight = weights @ inside
        between += np.sum((sums.T @ inside) ** 2, axis=0) / np.where(weight > 0, weight, 1.0)
    return between


def _edges(X, weights):
    """Return the largest number in each bin of each column but the last."""
    order = np.argsort(X, axis=0)
    # Of a row and of all smaller ones.
    weight = np.cumsum(weights[order], axis=0)
    shares = np.arange(1, _BINS) / _BINS
    last = [np.sum(weight < share - _ROUNDING, axis=0) for share in shares]
    return np.take_along_axis(X, np.take_along_axis(order, np.array(last), axis=0), axis=0)
