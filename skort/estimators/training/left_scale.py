"""The warning of a stream whose columns have left the scale of its first rows."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse

from skort.common.user_warning import warn_user
from skort.estimators.data.rows import TrainingData
from skort.estimators.planning.stream import FIRST_ROWS
from skort.objective.loss import ScoreLoss
from skort.optim.standardization import FAR_UNITS, Standardization

if TYPE_CHECKING:
    from skort.graphs.layers import Layer

# A column has left its scale if its mean distance from the first rows is so many scales. Fewer than
# 20 rows count as 20.
_FAR = 10.0
_AWAY = "is {:.3g} standard deviations away from"
# A warning names a column again if the column is so many times farther away than at the last
# warning.
_FARTHER = 10.0
# Positive values have a long tail if their standard deviation is so many times their mean.
_LONG_TAIL = 2.0
# The most rows of a call that are looked at.
_SOME_ROWS = 1000


class _Change(NamedTuple):
    """How a column has left the mean and the scale of the first rows."""

    column: int
    #: In words, with a place for the size.
    how: str
    size: float
    #: The value of the row that is far away alone, or None.
    lone: float | None = None

    @property
    def way(self) -> str:
        """
        The key by which warnings are remembered. One far value is another matter than a drift of
        the column.
        """
        return self.how if self.lone is None else f"in one row {self.how}"

    def text(self) -> str:
        alone = "" if self.lone is None else f"has the value {self.lone:.4g} in one row, which "
        return alone + self.how.format(self.size)


def warn_of_left_scale(
    rows: TrainingData,
    used: Standardization | None,
    layer: "Layer | None",
    named: Callable[..., str],
    loss: ScoreLoss,
    told: Mapping[tuple[str, str], float] | None,
) -> Mapping[tuple[str, str], float]:
    """
    Warn of columns that are far from the scale of the first rows, and of such a y. Only columns
    that the first layer reads count; `named` lists them. `told` has the distances of earlier
    warnings, and a new warning needs a distance ten times as large. Return `told` with the new
    distances.
    """
    told = told or {}
    if used is None:
        return told

    found = []
    if used.deviation is not None and layer is not None:
        changes = _changes(rows.counted(rows.X), used.mean, used.deviation)
        # The columns that the layer does not read are ids, which have no scale.
        read = layer.read(np.arange(len(used.deviation)))
        found += [
            (named([change.column], has_y=False), change)
            for change in changes
            if change.column in read
        ]

    if used.target_mean is not None:
        target = rows.counted(rows.target)
        scales = np.broadcast_to(used.target_scale, len(used.target_mean))
        changes = _changes(target, used.target_mean, scales)
        if not changes and not loss.is_robust and len(target):
            changes = _lone_changes(target, used.target_mean, scales)
        found += [("y", change) for change in changes[:1]]

    found = [
        (name, change)
        for name, change in found
        if change.size >= _FARTHER * told.get((name, change.way), 0)
    ]
    if found:
        _warn_of(found, named, loss)
    return {**told, **{(name, change.way): change.size for name, change in found}}


def too_far_error(X: Any, used: Standardization | None, named: Callable[..., str]) -> ValueError:
    """
    Return the error for values so far from the first rows that the square of their distance is
    infinite: it names their column.
    """
    n_columns = X.shape[1]
    mean = np.zeros(n_columns) if used is None or used.mean is None else used.mean
    scale = np.ones(n_columns) if used is None or used.deviation is None else used.deviation
    # All values, or those of a sparse X that are not zero, and their columns.
    if scipy.sparse.issparse(X):
        values, columns = X.data, X.tocoo().col
    else:
        values, columns = X.ravel(), np.tile(np.arange(n_columns), len(X))
    far = np.argmax(_distances(values, mean[columns], scale[columns]))
    return ValueError(
        f"partial_fit: {named([int(columns[far])], has_y=False)} has the value {values[far]:.4g}, which "
        "is too far from the rows that the stream began with. Check this value, or clip such values "
        "before the model."
    )


def _warn_of(found, named, loss):
    """Warn of columns and y, which have names and changes."""
    (name, change), *others = found
    cures = [_cure(name, change, loss)]
    y_too = ""
    if others and others[-1][0] == "y" and others[-1][1].lone is not None:
        last, lone = others.pop()
        cures.append(_cure(last, lone, loss))
        y_too = f" {last} {lone.text()} them."

    has_y = bool(others) and others[-1][0] == "y"
    numbers = [change.column for _, change in (others[:-1] if has_y else others)]
    also = f" These have left theirs, too: {named(numbers, has_y=has_y)}." if others else ""

    warn_user(
        f"partial_fit: {name} {change.text()} the rows that the stream began with, whose scale it "
        f"keeps.{also}{y_too} {' '.join(cures)}"
    )


def _cure(name, change, loss):
    """Return what to do about a column, or y, that has left its scale."""
    if change.lone is None:
        scaler = ", or fit a scaler before the model to them"
        return f"Call fit on rows of today{'' if name == 'y' else scaler}."
    if name != "y":
        return "Check this value, or clip such values before the model."
    if loss.is_robust:
        return "Check this y."
    return 'Check this y, or use loss="huber" or max_grad_norm=1.0.'


def _changes(values, mean, scale):
    """Return how columns have left their mean and scale, the farthest first."""
    if scipy.sparse.issparse(values):
        larger = "has values {:.3g} times larger than"
        distance = _sparse_distance(values, scale)
        return [_Change(i, larger, distance[i]) for i in _largest(distance, _FAR)]

    some = values[:: -(-len(values) // _SOME_ROWS)]
    distance = _distance(some, mean, scale)
    changes = [
        _lone(column, some[:, column], mean[column], scale[column])
        or _Change(column, _AWAY, distance[column])
        for column in _largest(distance, _FAR)
    ]

    shrinking = _shrinking(some, mean, scale)
    told = {change.column for change in changes}
    smaller = "has values {:.3g} times smaller than"
    return changes + [
        _Change(column, smaller, shrinking[column])
        for column in _largest(shrinking, FAR_UNITS)
        if column not in told
    ]


def _lone(column, values, mean, scale):
    """
    Return the change of the farthest row if it is the only one that takes a column far away, or
    None.
    """
    distance = _distances(values, mean, scale)
    row = np.argmax(distance)
    others = np.delete(distance, row)
    is_drift = others.sum() > _FAR * max(len(values), FIRST_ROWS)
    if is_drift or others.max(initial=0.0) > distance[row] / 2:
        return None
    return _Change(column, _AWAY, distance[row], values[row])


def _lone_changes(target, mean, scale):
    """
    Return the change of a row whose y is so far away that it spoils a squared error; none, if there
    is no such row.
    """
    distance = _distances(target, mean, scale)
    row, column = np.unravel_index(np.argmax(distance), distance.shape)
    if distance[row, column] <= _FAR * FIRST_ROWS:
        return []
    return [_Change(int(column), _AWAY, distance[row, column], target[row, column])]


def _largest(sizes, limit):
    """Return the positions of the sizes above a limit, the largest first."""
    above = np.flatnonzero(sizes > limit)
    return above[np.argsort(-sizes[above], kind="stable")].tolist()


def _distances(values, mean, scale):
    """Return the distance of each value from a mean, in scales."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.abs((values - mean) / scale)


def _distance(values, mean, scale):
    """
    Return the mean distance of some rows from a mean, in scales. Few rows count as if others were
    near the mean.
    """
    return _distances(values, mean, scale).sum(axis=0) / max(len(values), FIRST_ROWS)


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
    Return, for each column, the root mean square of the first rows divided by the size of most
    values now; 0 if nothing can be said. Zeros and the largest twentieth of the values do not
    count.
    """
    shrinking = np.zeros(len(mean))
    if len(values) < FIRST_ROWS:
        return shrinking

    size = np.hypot(mean, scale)
    counts = np.count_nonzero(values, axis=0)
    # A column with one value, or with fewer than 20 values that are not zero, tells nothing.
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
