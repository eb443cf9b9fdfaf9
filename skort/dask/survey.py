"""What has to be known of all partitions before any row is prepared: classes, sample weights, a few rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from skort.dask.parts import Part

__all__ = ["Split", "Survey", "held_out", "merged_surveys", "survey"]

_HEAD = 200


class Survey(NamedTuple):
    """
    What partitions have in them.

    Parameters
    ----------
    head : tuple of list, or None
        The first rows of X and y, in pieces; None where there are no rows.
    classes : ndarray of shape (n_classes,) or None
        The labels, sorted; None for a regressor and for several labels a row.
    totals : ndarray of shape (n_classes,)
        The sum of the sample weights of each class, or of all rows.
    counts : ndarray of shape (n_classes,)
        The number of rows of a positive sample weight.
    all_counts : ndarray of shape (n_classes,)
        The number of rows.
    """

    head: tuple[list, list] | None = None
    classes: np.ndarray | None = None
    totals: Any = 0.0
    counts: Any = 0
    all_counts: Any = 0

    def some_rows(self) -> tuple[Any, Any]:
        """Return X and y of the first rows."""
        if self.head is None:
            raise ValueError("X has no rows.")
        return _joined(self.head[0]), _joined([np.asarray(y) for y in self.head[1]])


def survey(part: Part, is_classifier: bool) -> Survey:
    """
    Survey a partition.

    Raises
    ------
    ValueError
        For sample weights that are negative or not finite.
    """
    n = part.n_rows
    if n == 0:
        return Survey()
    weights = np.ones(n)
    if part.sample_weight is not None:
        weights = check_array(part.sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
        if (weights < 0).any():
            raise ValueError("Negative values in data passed to `sample_weight`.")
    classes, codes = _classes_of(part, is_classifier)
    few = np.arange(min(n, _HEAD))
    head = ([_safe_indexing(part.X, few)], [_safe_indexing(part.y, few)])
    totals, counts, all_counts = (np.bincount(codes, each) for each in (weights, weights > 0, None))
    return Survey(head, classes, totals, counts, all_counts)


def _classes_of(part, is_classifier):
    """Return the classes of a partition, and the number of each row's; without one label a row, None and zeros."""
    shape = np.shape(part.y)
    if not is_classifier or not (len(shape) == 1 or shape[1] == 1):
        return None, np.zeros(part.n_rows, dtype=int)
    y = column_or_1d(part.y)
    check_classification_targets(y)
    return np.unique(y, return_inverse=True)


def merged_surveys(surveys: Sequence[Survey]) -> Survey:
    """Return the survey of several partitions, in their order."""
    surveys = [each for each in surveys if each.head is not None]
    if not surveys:
        return Survey()
    head = _merged_heads([each.head for each in surveys])
    sums = [[getattr(each, name) for each in surveys] for name in ("totals", "counts", "all_counts")]
    if surveys[0].classes is None:
        return Survey(head, None, *(np.sum(each, axis=0) for each in sums))
    classes, codes = np.unique(np.concatenate([each.classes for each in surveys]), return_inverse=True)
    return Survey(head, classes, *(np.bincount(codes, np.concatenate(each)) for each in sums))


def _merged_heads(heads):
    """Return the first rows of the first pieces."""
    n, Xs, ys = 0, [], []
    for X_pieces, y_pieces in heads:
        for X, y in zip(X_pieces, y_pieces, strict=True):
            if n < _HEAD:
                Xs.append(X)
                ys.append(y)
                n += X.shape[0]
    return Xs, ys


class Split(NamedTuple):
    """
    How rows are held out for validation.

    Parameters
    ----------
    fraction : float
        The part of the rows.
    seed : int
    is_classifier : bool
        Whether the part of each class is the same.
    """

    fraction: float
    seed: int
    is_classifier: bool


def held_out(part: Part, split: Split, is_validation: bool) -> Part:
    """
    Return the rows of a partition that are held out for validation, or all others.

    Each class of a classifier has the same part of its rows held out; whether what is left of a row is one is drawn.

    Parameters
    ----------
    part : Part
    split : Split
    is_validation : bool
    """
    if part.n_rows == 0:
        return part
    random_state = np.random.RandomState([split.seed % 2**32, part.number])
    _, codes = _classes_of(part, split.is_classifier)
    is_held = np.zeros(part.n_rows, dtype=bool)
    for code in range(codes.max() + 1):
        order = random_state.permutation(np.flatnonzero(codes == code))
        is_held[order[: int(split.fraction * len(order) + random_state.random_sample())]] = True
    rows = np.flatnonzero(is_held if is_validation else ~is_held)
    taken = (None if values is None else _safe_indexing(values, rows) for values in part[1:])
    return Part(part.number, *taken)


def _joined(pieces):
    """Return pieces of arrays, sparse matrices or DataFrames as one."""
    if len(pieces) == 1:
        return pieces[0]
    if hasattr(pieces[0], "iloc"):
        import pandas as pd

        return pd.concat(pieces, ignore_index=True)
    if hasattr(pieces[0], "tocsr"):
        import scipy.sparse

        return scipy.sparse.vstack(pieces, format="csr")
    return np.concatenate(pieces)
