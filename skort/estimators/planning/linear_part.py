"""How much of y a linear model leaves, as noise or as curves."""

import numpy as np

from skort.common.blas import one_blas_thread
from skort.estimators.data.rows import TrainingData
from skort.optim.standardization import moments, usable_scale

# The strength of the l2 penalty for columns of variance one: the part hardly depends on it.
_PENALTY = 0.1
# More rows tell the same, and more equations take a part of the time of the fit.
_MOST_ROWS = 1000
_MOST_EQUATIONS = 256


def part_left(rows: TrainingData) -> float:
    """
    Return the part of the variance of the target that a ridge regression leaves of new rows, at
    most 1, by generalized cross-validation; 1 where it would take long.
    """
    if rows.is_sparse or rows.X.ndim != 2:
        return 1.0

    X, target = _standardized(rows)
    if min(X.shape) > _MOST_EQUATIONS:
        return 1.0

    # Squares of y overflow where no network can be trained either.
    with np.errstate(all="ignore"), one_blas_thread(X.size * min(X.shape)):
        part = _cross_validated(X, target)
    return min(1.0, part) if np.isfinite(part) else 1.0


def _standardized(rows):
    """Return the standardized X and centred y of some rows, times the roots of their weights."""
    used = np.arange(len(rows.target))
    if rows.sample_weight is not None:
        used = np.flatnonzero(rows.sample_weight)
    if len(used) > _MOST_ROWS:
        used = used[np.linspace(0, len(used) - 1, _MOST_ROWS).astype(int)]

    weights, roots = None, np.ones((1, 1))
    if rows.sample_weight is not None:
        weights = rows.sample_weight[used]
        roots = np.sqrt(weights / weights.mean())[:, None]

    X, target = (np.asarray(part[used], np.float64) for part in (rows.X, rows.target))
    means, deviations = moments(X, weights)
    X = (X - means) / usable_scale(deviations, np.float64)
    target = target - moments(target, weights)[0]
    return roots * X, roots * target


def _cross_validated(X, target):
    """Return the error of a ridge regression by generalized cross-validation, over y's variance."""
    n, n_columns = X.shape
    penalty = _PENALTY * n
    # The same fit, in equations of columns or of rows.
    if n_columns <= n:
        inverse = np.linalg.inv(X.T @ X + penalty * np.eye(n_columns))
        residuals = target - X @ (inverse @ (X.T @ target))
    else:
        inverse = np.linalg.inv(X @ X.T + penalty * np.eye(n))
        residuals = penalty * (inverse @ target)

    # The mean of y is a parameter, too.
    n_parameters = 1 + len(inverse) - penalty * np.trace(inverse)
    return np.sum(residuals**2) / np.sum(target**2) / (1 - n_parameters / n) ** 2
