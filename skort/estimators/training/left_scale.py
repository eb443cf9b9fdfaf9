"""The warning of a stream whose columns have left the scale of its first rows."""

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

from skort.common.user_warning import warn_user
from skort.estimators.data.rows import TrainingData
from skort.estimators.planning.stream import FIRST_ROWS
from skort.optim.standardization import FAR_UNITS, Standardization

if TYPE_CHECKING:
    from skort.graphs.layers import Layer

# A column has left its scale if its mean distance from the first rows is so many scales, over 20
# rows.
_FAR = 10.0
# Positive values have a long tail if their standard deviation is so many times their mean.
_LONG_TAIL = 2.0
# The most rows of a call that are looked at.
_SOME_ROWS = 1000
# The most other columns that a warning names.
_NAMED = 5


def warned_of_left_scale(
    rows: TrainingData,
    used: Standardization | None,
    layer: "Layer | None",
    place: str,
    names: np.ndarray | None,
) -> bool:
    """
    Warn of the columns that the first layer reads, and of a y, that have left the scale of the first
    rows by far. Return whether there are some. The columns are of `place`, and have `names` or None.
    """
    if used is None:
        return False

    found = []
    scale = used.deviation
    if scale is not None and layer is not None:
        # The columns that it does not read are ids, which have no scale.
        read = layer.read(np.arange(len(scale)))
        for column, change in _changes(rows.counted(rows.X), used.mean, scale):
            if column in read:
                name = f"column {column if names is None else repr(names[column])}"
                found.append((f"{name} of {place}", change))

    if used.target_mean is not None:
        scales = np.full(len(used.target_mean), used.target_scale)
        of_target = _changes(rows.counted(rows.target), used.target_mean, scales)
        found += [("y", change) for _, change in of_target[:1]]

    if not found:
        return False

    (name, change), *others = found
    also = ", ".join(name for name, _ in others[:_NAMED])
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    warn_user(
        f"partial_fit: {name} {change} the rows that the stream began with, whose scale it keeps."
        f"{f' These have left theirs, too: {also}{more}.' if others else ''} Call fit on rows of today, "
        "or put a scaler of your own before the model."
    )
    return True


def _changes(values, mean, scale):
    """
    Return the columns that have left their mean and scale, the farthest first, each with how, as
    text.
    """
    if scipy.sparse.issparse(values):
        distance = _sparse_distance(values, scale)
        shrinking = np.zeros(1)
    else:
        some = values[:: -(-len(values) // _SOME_ROWS)]
        distance = _distance(some, mean, scale)
        shrinking = _shrinking(some, mean, scale)

    # A sparse column has no standard deviation here.
    far = (
        "has values {:.3g} times larger than"
        if scipy.sparse.issparse(values)
        else "is {:.3g} standard deviations away from"
    )
    changes = {column: far.format(distance[column]) for column in _largest(distance, _FAR)}
    for column in _largest(shrinking, FAR_UNITS):
        changes.setdefault(column, f"has values {shrinking[column]:.3g} times smaller than")
    return list(changes.items())


def _largest(sizes, limit):
    """Return the places of the sizes above a limit, the largest first."""
    above = np.flatnonzero(sizes > limit)
    return above[np.argsort(-sizes[above], kind="stable")].tolist()


def _distance(values, mean, scale):
    """
    Return the mean distance of some rows from a mean, in scales. Few rows count as if others were
    near the mean.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return np.abs((values - mean) / scale).sum(axis=0) / max(len(values), FIRST_ROWS)


def _sparse_distance(values, scale):
    """Return the `_distance` from zero of the values of each column that are not zero."""
    sizes = np.abs(values.data) / np.asarray(scale)[values.indices]
    # Few calls need the sums, which take the time of all columns.
    if not np.any(sizes > _FAR):
        return np.zeros(1)

    n_columns = values.shape[1]
    counts = np.bincount(values.indices, minlength=n_columns)
    return np.bincount(values.indices, sizes, n_columns) / np.maximum(counts, FIRST_ROWS)


def _shrinking(values, mean, scale):
    """
    Return how many times smaller most values of each column are than its root mean square was, or 0
    where nothing can be said. Zeros do not count, and nor do the largest values, a twentieth.
    """
    shrinking = np.zeros(len(mean))
    if len(values) < FIRST_ROWS:
        return shrinking

    size = np.hypot(mean, scale)
    counts = np.count_nonzero(values, axis=0)
    # A column of one value, or of fewer than 20 but zeros, has not changed.
    can_tell = (counts >= FIRST_ROWS) & (np.ptp(values, axis=0) > 0)
    can_tell &= FAR_UNITS * np.abs(values).sum(axis=0) < size * counts
    # One value of a long tail may have been most of the root mean square.
    has_both_signs = (values.min(axis=0) < 0) & (values.max(axis=0) > 0)
    can_tell &= has_both_signs | (scale <= _LONG_TAIL * np.abs(mean))

    for column in np.flatnonzero(can_tell):
        sizes = np.abs(values[:, column])
        most = np.quantile(sizes[sizes > 0], 1 - 1 / FIRST_ROWS, method="higher")
        shrinking[column] = size[column] / most
    return shrinking
