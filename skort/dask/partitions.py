"""Dask collections as aligned partitions on the workers, and their survey before a fit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
import scipy.sparse
from distributed import Future
from sklearn.base import is_classifier
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from skort.common.sklearn_private import safe_indexing
from skort.dask.cluster import Cluster
from skort.estimators.data.sample_weight import ClassWeight, balanced, check_not_negative
from skort.estimators.training.read import is_given

# A survey keeps at least so many rows, if there are as many.
_HEAD = 200


class Part(NamedTuple):
    """The original rows of one partition, and its number."""

    number: int
    X: Any
    y: Any
    sample_weight: Any

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.X.shape[0]


def check_rows(name: str, X: Any) -> None:
    """Raise a ValueError for an array with one dimension."""
    if isinstance(X, da.Array) and X.ndim == 1:
        raise ValueError(
            f"{name} has 1 dimension, expected rows and columns: use {name}.reshape(-1, "
            "1) for one column."
        )


def is_collection(X: Any) -> bool:
    """Return whether X is a Dask array or DataFrame."""
    return isinstance(X, da.Array) or _is_frame(X)


def delayed_parts(
    X: Any, y: Any, sample_weight: Any = None, names: tuple[str, str] = ("X", "y")
) -> list[Any]:
    """
    Return the partitions of aligned collections, each as a delayed `Part`.

    `names` are the names of X and y in error messages.
    """
    given = {names[0]: X, names[1]: y, "sample_weight": sample_weight}
    given = {name: collection for name, collection in given.items() if collection is not None}

    for name, collection in given.items():
        if not is_collection(collection):
            raise TypeError(
                f"{name} is of type {type(collection).__name__}: skort.dask trains on Dask arrays "
                f"and DataFrames. Use dask.array.from_array({name}, chunks=...), or the estimators "
                "of skort itself."
            )

    check_rows(names[0], X)
    columns = [
        blocks_of(name, collection) for name, collection in _aligned(given, names[0]).items()
    ]
    columns += [[None] * len(columns[0])] * (3 - len(columns))
    part = dask.delayed(_part, pure=False)

    return [
        part(names, number, *blocks) for number, blocks in enumerate(zip(*columns, strict=True))
    ]


def _part(names, number, X, y, sample_weight):
    """Return a partition after a check that its parts have equally many rows."""
    n = X.shape[0]
    lengths = {names[1]: y, "sample_weight": sample_weight}

    for name, values in lengths.items():
        if values is not None and len(values) != n:
            raise ValueError(
                f"Partition {number} of {names[0]} has {n} rows, that of {name} has {len(values)}: "
                "they are not aligned. Divide both alike, for instance with rechunk after "
                "compute_chunk_sizes()."
            )

    return Part(number, X, y, sample_weight)


def _aligned(given, first):
    """Return the collections with equal partitions, as far as their sizes are known."""
    sizes = {name: sizes_of(collection) for name, collection in given.items()}
    expected = sizes[first]
    lengths = {name: sum(size) for name, size in sizes.items()}
    known = {name: n for name, n in lengths.items() if not math.isnan(n)}
    if len(set(known.values())) > 1:
        raise ValueError(
            f"The collections have different numbers of rows: {_listed(known)}. They "
            "need the same rows."
        )

    aligned = dict(given)
    for name, size in sizes.items():
        if name in known and first in known:
            aligned[name] = given[name] if size == expected else given[name].rechunk({0: expected})
        elif len(size) != len(expected):
            counts = {name: len(size) for name, size in sizes.items()}
            raise ValueError(
                f"The collections have different numbers of partitions: {_listed(counts)}, and not "
                "all sizes are known, so that they cannot be aligned. Call compute_chunk_sizes() "
                "of the arrays, or divide all alike."
            )

    return aligned


def sizes_of(collection: Any) -> tuple[float, ...]:
    """Return the number of rows of each partition, or NaN if it is not known."""
    return (math.nan,) * collection.npartitions if _is_frame(collection) else collection.chunks[0]


def blocks_of(name: str, collection: Any) -> list[Any]:
    """Return the partitions of a collection."""
    if _is_frame(collection):
        # An optimized graph that reads few columns of a file may have fewer partitions than others.
        return collection.simplify().to_delayed(optimize_graph=False)
    if collection.ndim > 2:
        raise ValueError(f"{name} has {collection.ndim} dimensions, expected at most 2.")

    if collection.ndim == 2 and len(collection.chunks[1]) > 1:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(collection.to_delayed()))


def _is_frame(collection):
    return hasattr(collection, "to_delayed") and hasattr(collection, "divisions")


def _listed(numbers):
    return ", ".join(f"{name} has {n}" for name, n in numbers.items())


class Survey(NamedTuple):
    """The facts about partitions that a fit needs to know first."""

    #: The first rows of X and y, in pieces. None if there are no rows.
    head: tuple[list[Any], list[Any]] | None = None
    #: The labels, sorted. None for a regressor, and for several labels per row.
    classes: np.ndarray | None = None
    #: For each class, or for all rows: the sum of the sample weights, the number of rows with a
    #: positive sample weight, and the number of rows.
    totals: Any = 0.0
    counts: Any = 0
    all_counts: Any = 0

    def some_rows(self) -> tuple[Any, Any]:
        """Return X and y of the first rows."""
        if self.head is None:
            raise ValueError("X has no rows.")
        return joined_pieces(self.head[0]), joined_pieces([np.asarray(y) for y in self.head[1]])


def survey(part: Part, is_classifier: bool) -> Survey:
    """Return the survey of a partition, and check its sample weights."""
    n = part.n_rows
    if n == 0:
        return Survey()

    weights = np.ones(n)
    if part.sample_weight is not None:
        weights = check_array(
            part.sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
        )
        check_not_negative(weights)

    classes, codes = _classes_of(part, is_classifier)
    few = np.arange(min(n, _HEAD))
    head = ([safe_indexing(part.X, few)], [safe_indexing(part.y, few)])
    totals, counts, all_counts = (np.bincount(codes, each) for each in (weights, weights > 0, None))

    return Survey(head, classes, totals, counts, all_counts)


def _classes_of(part, is_classifier):
    """
    Return the classes of a partition, and the number of each row's class.

    For a regressor or several labels per row, return None and zeros.
    """
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
    sums = [
        [getattr(each, name) for each in surveys] for name in ("totals", "counts", "all_counts")
    ]
    if surveys[0].classes is None:
        return Survey(head, None, *(np.sum(each, axis=0) for each in sums))

    classes, codes = np.unique(
        np.concatenate([each.classes for each in surveys]), return_inverse=True
    )
    return Survey(head, classes, *(np.bincount(codes, np.concatenate(each)) for each in sums))


def _merged_heads(heads):
    """Return the first pieces of rows: as many as have enough rows."""
    Xs, ys = ([piece for head in heads for piece in head[place]] for place in (0, 1))
    n_needed = 1 + np.searchsorted(np.cumsum([X.shape[0] for X in Xs]), _HEAD)
    return Xs[:n_needed], ys[:n_needed]


def joined_pieces(pieces: Sequence[Any]) -> Any:
    """Return the pieces of an array, sparse matrix or DataFrame as one. Arrays are C-contiguous."""
    if hasattr(pieces[0], "iloc"):
        import pandas as pd

        return pieces[0] if len(pieces) == 1 else pd.concat(pieces, ignore_index=True)
    if scipy.sparse.issparse(pieces[0]):
        return scipy.sparse.vstack(pieces, format="csr")
    return np.ascontiguousarray(pieces[0] if len(pieces) == 1 else np.concatenate(pieces))


class Split(NamedTuple):
    """The parameters for holding out rows: which part of them, or of each class, and the seed."""

    fraction: float
    seed: int
    is_classifier: bool


def held_out(part: Part, split: Split, is_validation: bool) -> Part:
    """Return the held-out rows of a partition, the same part of each class, or all other rows."""
    if part.n_rows == 0:
        return part

    random_state = np.random.RandomState([split.seed % 2**32, part.number])
    _, codes = _classes_of(part, split.is_classifier)
    is_held = np.zeros(part.n_rows, dtype=bool)

    for code in range(codes.max() + 1):
        order = random_state.permutation(np.flatnonzero(codes == code))
        is_held[order[: int(split.fraction * len(order) + random_state.random_sample())]] = True

    rows = np.flatnonzero(is_held if is_validation else ~is_held)
    return Part(
        part.number,
        *(None if values is None else safe_indexing(values, rows) for values in part[1:]),
    )


class RowCounts(NamedTuple):
    """The weights of rows and classes."""

    #: Factors of the sample weights, by class, or None.
    by_class: np.ndarray | None
    #: Class weights that belong to the loss, see `ClassWeight.of_positives`, or None.
    of_positives: np.ndarray | None
    #: The sum of all weights, and the number of rows with a positive weight.
    weight_sum: float
    n_rows: int


@dataclass(frozen=True, eq=False)
class Partitions:
    """
    The partitions of a fit and of its validation set, as futures of `Part`.

    The survey is that of the partitions of the fit.
    """

    cluster: Cluster
    parts: Sequence["Future[Any]"]
    validation: Sequence["Future[Any]"] | None
    survey: Survey
    is_weighted: bool

    @classmethod
    def of(
        cls,
        estimator: Any,
        cluster: Cluster,
        data: tuple[Any, ...],
        validation: tuple[Any, ...],
        random_state: Any,
        *,
        holds_out: bool,
    ) -> "Partitions":
        """
        Let the workers compute the partitions of (X, y, sample_weight) and (X_val, y_val).

        The generator draws the seed for holding out rows.
        """
        X_val, y_val = validation
        has_validation_set = is_given(X_val, y_val)
        surveyed = parts = cluster.computed(delayed_parts(*data))

        validation_parts = None
        if has_validation_set:
            validation_parts = cluster.computed(
                delayed_parts(X_val, y_val, names=("X_val", "y_val"))
            )
        elif holds_out:
            seed = int(random_state.randint(2**32, dtype=np.uint32))
            split = Split(estimator.validation_fraction, seed, is_classifier(estimator))
            parts, validation_parts = (
                cluster.each(held_out, surveyed, split, kind) for kind in (False, True)
            )

        distinct = [parts] if surveyed is parts else [parts, surveyed]
        surveys = [cluster.each(survey, each, is_classifier(estimator)) for each in distinct]
        found = cluster.values([cluster.merged(merged_surveys, each) for each in surveys])
        train = found[0]
        whole = found[-1]
        if train.head is None:
            raise ValueError("X has no rows to train on.")
        if whole.classes is not None and len(whole.classes) != len(train.classes):
            lost = np.setdiff1d(whole.classes, train.classes).tolist()
            raise ValueError(
                f"early_stopping=True holds out all rows of the classes {lost}: lower "
                "validation_fraction, or give X_val and y_val."
            )

        return cls(cluster, parts, validation_parts, train, data[2] is not None)

    def counts(self, class_weight: ClassWeight | None, classes: np.ndarray | None) -> RowCounts:
        """Return the weights of rows and classes. `classes` has all classes, seen or not."""
        totals = self.survey.totals
        counts = self.survey.counts
        all_counts = self.survey.all_counts

        by_class = None
        if class_weight is not None:
            if classes is None or self.survey.classes is None:
                raise ValueError(
                    "class_weight is for one label per row, and y has several. Use sample_weight."
                )

            places = np.searchsorted(classes, self.survey.classes)
            totals, counts, all_counts = (
                np.bincount(places, each, minlength=len(classes))
                for each in (totals, counts, all_counts)
            )

            if class_weight.given == "balanced":
                by_class = balanced(all_counts if class_weight.balances_rows else totals)
            else:
                by_class = class_weight.by_class(classes, classes, None)

        of_positives = None
        if class_weight is not None and class_weight.of_positives and len(classes) > 2:  # type: ignore[arg-type]
            by_class, of_positives = None, by_class
        factors = np.ones(len(totals)) if by_class is None else by_class
        n_rows = int(np.sum(counts[factors > 0]))
        if n_rows == 0:
            raise ValueError("No row has a positive sample weight: there is nothing to train on.")

        return RowCounts(by_class, of_positives, float(totals @ factors), n_rows)
