"""Prepared rows in partitions on the workers, and statistics merged from all partitions."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from distributed import Future

from skort.dask.assignment import Size
from skort.dask.cluster import Broadcast, Cluster
from skort.dask.partitions import Part, joined_pieces
from skort.estimators.data.rows import Columns, DataStatistics, TrainingData
from skort.estimators.model.model import Model
from skort.estimators.planning.scaling import dense_if_narrow
from skort.estimators.training.data_source import encoded_rows
from skort.optim.standardization import (
    Standardization,
    batch_smoothness,
    column_sums,
    evenly_spaced,
    largest_eigenvalue,
    largest_norm,
    moments,
    unit_scales,
)

# The number of rows for the largest eigenvalue.
_SOME_ROWS = 2000


class Rows(TrainingData):
    """Prepared rows of one or several partitions. No row has the sample weight zero."""

    __slots__ = ()

    @property
    def n_bytes(self) -> int:
        """The number of bytes of X and the target."""
        X = self.X
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if self.is_sparse else X.nbytes
        return int(size + self.target.nbytes)

    def taken(self, numbers: np.ndarray | slice) -> "Rows":
        """Return the rows with some numbers."""
        weights = self.sample_weight
        return Rows(
            self.X[numbers], self.target[numbers], None if weights is None else weights[numbers]
        )

    def every(self, start: int, stride: int) -> "Rows":
        """Return every `stride`-th row, from number `start` on."""
        return self if stride == 1 else self.taken(slice(start, None, stride))

    @classmethod
    def concatenated(cls, parts: "Sequence[Rows]") -> "Rows":
        """Return all rows of some partitions, in their order."""
        X, target, weights = zip(*parts, strict=True)
        return cls(
            joined_pieces(X),
            joined_pieces(target),
            None if weights[0] is None else joined_pieces(weights),
        )


@dataclass(frozen=True, eq=False)
class Preparation:
    """The preparation of partitions for the training."""

    #: An unfitted estimator, for scikit-learn's checks.
    estimator: Any
    columns: Columns
    model: Model
    #: Factors of the sample weights, by class.
    by_class: np.ndarray | None
    is_weighted: bool

    def rows(self, part: Part) -> Rows:
        """Return the prepared rows of a partition, without rows of sample weight zero."""
        if part.n_rows == 0:
            return Rows(np.empty((0, 0)), np.empty((0, 0)), None)

        model = self.model
        X, encoded = encoded_rows(self.estimator, model, part.X, part.y, self.columns)
        X = dense_if_narrow(model.transform(X), is_partition=True)
        model.loss.check_target(encoded.target)
        if not self.is_weighted:
            return Rows(X, encoded.target, None)

        weights = np.ones(part.n_rows)
        if part.sample_weight is not None:
            weights = np.array(part.sample_weight, dtype=np.float64)
        if self.by_class is not None and model.classes is not None:
            weights *= self.by_class[np.searchsorted(model.classes, encoded.y)]
        rows = Rows(X, encoded.target, weights)

        return rows if weights.all() else rows.taken(np.flatnonzero(weights))


def prepared_rows(part: Part, preparation: Broadcast[Preparation], of: str = "") -> Rows:
    """Return the prepared rows of a partition. Errors name its number, and `of`, its data set."""
    try:
        return preparation.value().rows(part)
    except ValueError as error:
        raise ValueError(f"Partition {part.number}{of}: {error}") from error


class Moments(NamedTuple):
    """
    Mergeable moments of columns.

    `squares` has the weighted sums of squared differences from the mean, `total` the sum of
    weights.
    """

    total: float | np.ndarray
    mean: np.ndarray
    squares: np.ndarray

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation."""
        return np.sqrt(self.squares / self.total)

    @classmethod
    def of_all(cls, moments_of_parts: "Sequence[Moments | None]") -> "Moments | None":
        """Return the merged moments of those partitions that have moments."""
        some = [each for each in moments_of_parts if each is not None]
        return functools.reduce(cls._merged, some) if some else None

    def _merged(self, other):
        """Return the merged moments, by the formula of Chan, Golub and LeVeque (1979)."""
        total = self.total + other.total
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.nan_to_num(np.divide(other.total, total))
        delta = other.mean - self.mean
        squares = self.squares + other.squares + np.square(delta) * (self.total * share)

        return Moments(total, self.mean + delta * share, squares)


class Measures(NamedTuple):
    """Sizes and statistics of partitions of prepared rows."""

    #: The size of each partition.
    sizes: tuple[Size, ...]
    weight_sum: float
    #: The moments of a dense X and of the target. None without rows.
    columns: Moments | None
    targets: Moments | None
    #: The largest squared norm of a row times its sample weight, for a sparse X.
    norm: float
    #: See the function `column_sums`. None for a dense X.
    column_sums: tuple[np.ndarray, np.ndarray] | None = None


def measured(rows: Rows, n_rows: int) -> Measures:
    """Return the measures of a partition. `n_rows` is the number of rows of all partitions."""
    if rows.n_rows == 0:
        return Measures((Size(0, 0),), 0.0, None, None, 0.0)

    weights = rows.sample_weight
    total = float(rows.n_rows if weights is None else weights.sum())
    return Measures(
        (Size(rows.n_rows, rows.n_bytes),),
        total,
        None if rows.is_sparse else _moments(rows.X, weights, total, n_rows),
        _moments(rows.target, weights, total, n_rows),
        largest_norm(rows.X, weights, None, 0.0) if rows.is_sparse else 0.0,
        column_sums(rows.X, weights) if rows.is_sparse else None,
    )


def _summed(sums):
    """Return the merged `column_sums` of those partitions that have any, or None."""
    some = [each for each in sums if each is not None]
    return tuple(map(sum, zip(*some, strict=True))) if some else None


def _moments(columns, weights, total, n_rows):
    mean, deviation = moments(columns, weights, n_rows)
    return Moments(total, mean, total * np.square(deviation))


def merged_measures(measures: Sequence[Measures]) -> Measures:
    """Return the measures of several partitions, in their order."""
    return Measures(
        sum((each.sizes for each in measures), ()),
        sum(each.weight_sum for each in measures),
        Moments.of_all([each.columns for each in measures]),
        Moments.of_all([each.targets for each in measures]),
        max(each.norm for each in measures),
        _summed([each.column_sums for each in measures]),
    )


def _norm(rows: Rows, mean_weight: float, used: Standardization | None, ones: float) -> float:
    shares = None if rows.sample_weight is None else rows.sample_weight / mean_weight
    return largest_norm(rows.X, shares, used, ones)


def _some_rows(cluster, partitions, sizes):
    """Return at most 2,000 evenly spaced rows."""
    n_rows = [size.n_rows for size in sizes]
    ends = np.cumsum(n_rows)
    numbers = evenly_spaced(ends[-1], _SOME_ROWS)

    # A partition without chosen rows needs no task.
    pieces = np.split(numbers, np.searchsorted(numbers, ends[:-1]))
    futures = [
        cluster.submit(Rows.taken, future, piece - start)
        for future, piece, start in zip(partitions, pieces, ends - n_rows, strict=True)
        if len(piece)
    ]
    return cluster.value(cluster.merged(Rows.concatenated, futures))


@dataclass(frozen=True, eq=False)
class PartStatistics(DataStatistics):
    """
    The statistics of rows on the workers.

    `partitions` are the futures of the `Rows` that are not empty, and `measures` their measures.
    """

    some_rows: Rows
    cluster: Cluster
    partitions: Sequence["Future[Any]"]
    measures: Measures

    @classmethod
    def of(
        cls, cluster: Cluster, partitions: Sequence["Future[Any]"], n_rows: int
    ) -> "PartStatistics":
        """
        Return the statistics of partitions of `Rows`, without the empty ones.

        `n_rows` is the number of rows of all partitions.
        """
        measures = cluster.value(
            cluster.merged(merged_measures, cluster.each(measured, partitions, n_rows))
        )
        if not any(size.n_rows for size in measures.sizes):
            raise ValueError("No row has a positive sample weight: there is nothing to train on.")

        some = [part for part, size in zip(partitions, measures.sizes, strict=True) if size.n_rows]
        sizes = tuple(size for size in measures.sizes if size.n_rows)
        return cls(_some_rows(cluster, some, sizes), cluster, some, Measures(sizes, *measures[1:]))

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(size.n_rows for size in self.measures.sizes)

    @property
    def mean_weight(self) -> float:
        """The mean sample weight."""
        return self.measures.weight_sum / self.n_rows

    @functools.cached_property
    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """The means and standard deviations of the columns of X."""
        assert self.measures.columns is not None  # X is dense.
        return self.measures.columns.mean, self.measures.columns.deviation

    @functools.cached_property
    def targets(self) -> tuple[np.ndarray, np.ndarray]:
        """The means and standard deviations of the columns of the target."""
        assert self.measures.targets is not None  # There are rows.
        return self.measures.targets.mean, self.measures.targets.deviation

    def unit_scales(self) -> np.ndarray | None:
        """Return the scales of sparse columns in other units, see the function `unit_scales`."""
        assert self.measures.column_sums is not None  # X is sparse.
        return unit_scales(*self.measures.column_sums)

    def common_scale(self, batch_size: int, used: Standardization | None) -> float:
        """Return the number that divides a sparse X."""
        n = self.n_rows
        norm = (
            self.measures.norm / self.mean_weight
            if used is None
            else self.largest_norm(used, ones=0.0)
        )
        return float(
            np.sqrt(batch_smoothness(self._eigenvalue(used, 0.0), norm, n, min(batch_size, n)))
        )

    def largest_norm(self, used: Standardization | None, ones: float = 1.0) -> float:
        """Return the largest squared norm of a row times its relative weight."""
        norms = self.cluster.each(_norm, self.partitions, self.mean_weight, used, ones)
        return self.cluster.value(self.cluster.merged(max, norms))

    def largest_eigenvalue(self, used: Standardization | None) -> float:
        """Return the largest eigenvalue of some weighted rows."""
        return self._eigenvalue(used, 1.0)

    def _eigenvalue(self, used, ones):
        rows = self.some_rows
        shares = None if rows.sample_weight is None else rows.sample_weight / self.mean_weight
        return largest_eigenvalue(rows.X, shares, used, ones)
