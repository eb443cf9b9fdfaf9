"""The steps before a model, fitted to all partitions: statistics of the partitions are merged."""

import collections
import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from distributed import Future
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.utils import get_tags

from skort.common.sklearn_private import safe_indexing
from skort.dask.cluster import Cluster
from skort.dask.part_statistics import Moments
from skort.dask.partitions import Part, Partitions
from skort.estimators.data.nesting import FIT_STEP_FIRST, thawed
from skort.estimators.data.step_errors import step_error
from skort.estimators.model.wrapped import WrappedModel


class Statistic:
    """
    A statistic of rows that a transformer learns.

    This one is empty: all is given in parameters.
    """

    def collected(self, step: Any, X: Any) -> Any:
        """Return the statistic of the rows of a partition."""
        return True

    def merged(self, values: list[Any]) -> Any:
        """Return the merged statistics of partitions, which are in order."""
        return True

    def fitted(self, step: Any, value: Any, head: Any) -> Any:
        """
        Return the transformer fitted to the rows of a statistic.

        `head` has a few of the rows.
        """
        return step.fit(head)


class _Standard(Statistic):
    """The number, mean and variance of each column."""

    def collected(self, step, X):
        fitted = step.fit(X)
        if fitted.mean_ is None or fitted.var_ is None:
            # The scaler does not divide, and maybe does not subtract: it needs the mean at most.
            fitted = StandardScaler(with_mean=step.with_mean).fit(X)

        n = fitted.n_samples_seen_
        return Moments(n, np.nan_to_num(fitted.mean_), np.nan_to_num(fitted.var_) * n)

    def merged(self, values):
        return Moments.of_all(values)

    def fitted(self, step, value, head):
        fitted = step.fit(head)
        n = value.total

        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(np.asarray(n) > 0, value.mean, np.nan)
            variance = value.squares / n

        fitted.n_samples_seen_ = n
        if fitted.mean_ is not None:
            fitted.mean_ = mean
        if fitted.var_ is not None:
            fitted.var_, fitted.scale_ = variance, _scale(mean, variance, n)

        return fitted


def _scale(mean, variance, n):
    """Return the standard deviation, or one if it is only rounding, by scikit-learn's rule."""
    eps = np.finfo(np.float64).eps
    return np.where(
        variance <= n * eps * variance + np.square(n * mean * eps), 1.0, np.sqrt(variance)
    )


class _Extremes(Statistic):
    """
    The number of rows, and some attributes of the transformer for each column.

    `merges` has, by the name of an attribute, the function that merges its values.
    """

    def __init__(self, **merges: np.ufunc):
        self._merges = merges

    def collected(self, step, X):
        fitted = step.fit(X)
        return fitted.n_samples_seen_, [getattr(fitted, name) for name in self._merges]

    def merged(self, values):
        n, found = zip(*values, strict=True)
        columns = zip(self._merges.values(), zip(*found, strict=True), strict=True)
        return sum(n), [functools.reduce(merge, each) for merge, each in columns]

    def fitted(self, step, value, head):
        n, rows = value
        fitted = step.fit(_like_columns(head, list(np.stack(rows).T)))
        fitted.n_samples_seen_ = n
        return fitted


class _Categories(Statistic):
    """The different values of each column."""

    def collected(self, step, X):
        return OrdinalEncoder().fit(X).categories_

    def merged(self, values):
        columns = [np.concatenate(column)[:, None] for column in zip(*values, strict=True)]
        return [OrdinalEncoder().fit(column).categories_[0] for column in columns]

    def fitted(self, step, value, head):
        n = max(map(len, value))
        return step.fit(_like_columns(head, [np.resize(categories, n) for categories in value]))


class _Filling(Statistic):
    """For each column: whether any value is missing, and the counts or sums for the fill value."""

    def collected(self, step, X):
        columns = []
        missing = step.missing_values

        for values in _columns_of(X):
            # Only NaN differs from itself.
            is_missing = values == missing if missing == missing else values != values
            columns.append(
                (bool(is_missing.any()), self._of_column(step.strategy, values[~is_missing]))
            )

        return columns

    def _of_column(self, strategy, values):
        if strategy == "mean":
            values = values.astype(np.float64)
            return np.array([values.sum(), len(values)])

        return collections.Counter(
            values.tolist() if strategy == "most_frequent" else values[:1].tolist()
        )

    def merged(self, values):
        return [
            (
                any(each[0] for each in column),
                functools.reduce(lambda a, b: a + b, [each[1] for each in column]),
            )
            for column in zip(*values, strict=True)
        ]

    def fitted(self, step, value, head):
        has_missing = any(is_missing for is_missing, _ in value)
        columns = []
        for _, found in value:
            filling = self._filling(step.strategy, found)
            rows = [
                step.missing_values if filling is None else filling,
                *[step.missing_values] * has_missing,
            ]
            dtype = np.float64 if step.strategy == "mean" else getattr(head, "dtype", object)
            columns.append(np.array(rows, dtype=dtype))

        return step.fit(_like_columns(head, columns))

    def _filling(self, strategy, found):
        if strategy == "mean":
            return found[0] / found[1] if found[1] else None

        most = max(found.values(), default=0)
        # Of several most frequent values, take the smallest one, as scikit-learn does.
        return min(
            (value for value, n in found.items() if strategy == "constant" or n == most),
            default=None,
        )


def _columns_of(X):
    """Return the columns of an array or a DataFrame."""
    if scipy.sparse.issparse(X):
        raise ValueError(
            "estimator: SimpleImputer cannot be fitted over partitions of sparse rows. "
            f"{FIT_STEP_FIRST}"
        )
    if hasattr(X, "iloc"):
        return [X.iloc[:, j].to_numpy() for j in range(X.shape[1])]

    return list(np.asarray(X).T)


def _like_columns(head, columns):
    """Return columns as a DataFrame if the head is one, otherwise as an array."""
    if hasattr(head, "iloc"):
        import pandas as pd

        return pd.DataFrame(dict(zip(head.columns, columns, strict=True)))
    is_object = any(column.dtype == object for column in columns)
    return np.column_stack([column.astype(object) if is_object else column for column in columns])


_STATISTICS: dict[type, Statistic] = {
    StandardScaler: _Standard(),
    MinMaxScaler: _Extremes(data_min_=np.fmin, data_max_=np.fmax),
    MaxAbsScaler: _Extremes(max_abs_=np.fmax),
}


def statistic_of(step: Any) -> Statistic | None:
    """Return the statistic of a transformer, or None if statistics of partitions do not merge."""
    kind = type(step)
    if kind in (OneHotEncoder, OrdinalEncoder):
        if step.min_frequency is not None or step.max_categories is not None:
            return None
        return _Categories() if isinstance(step.categories, str) else Statistic()
    if kind is SimpleImputer:
        merges = step.strategy in ("mean", "most_frequent", "constant") and not step.add_indicator
        return _Filling() if merges else None

    return _STATISTICS.get(kind)


class _Table(NamedTuple):
    """
    The input of a step: all partitions, and a few of the first rows as `head`.

    `transforms` has the functions that turn a `Part` into the input of the step. `steps` are the
    steps of X, which an error on a worker names; None: the table is of y.
    """

    cluster: Cluster
    parts: Sequence["Future[Any]"]
    transforms: tuple[Callable, ...]
    head: Any
    steps: Any = None

    def then(self, transform: Callable) -> "_Table":
        """Return the table after one more transform."""
        return self._replace(transforms=(*self.transforms, transform), head=transform(self.head))

    def collected(self, step: Any, statistic: Any) -> Any:
        """Return a statistic of all rows."""
        of_parts = self.cluster.each(
            _collected, self.parts, self.transforms, step, statistic, self.steps
        )
        return self.cluster.value(
            self.cluster.merged(functools.partial(_merge, statistic), of_parts)
        )


def _merge(statistic, values):
    """Return the merged statistics of the partitions that have rows."""
    some = [value for value in values if value is not None]
    return statistic.merged(some) if some else None


def _collected(part: Part, transforms: tuple, step: Any, statistic: Any, steps: Any) -> Any:
    if part.n_rows == 0:
        return None

    try:
        rows = functools.reduce(lambda rows, transform: transform(rows), transforms, part)
        return statistic.collected(step, rows)
    except (ValueError, TypeError, AttributeError) as error:
        if steps is None:
            raise
        # Only this partition may have the value that a step refuses.
        raise step_error(error, part.X, steps) from None


def with_fitted_steps(inner: WrappedModel, partitions: Partitions) -> WrappedModel:
    """Return the model with its steps, and its transformer of y, fitted to all partitions."""
    X, y = partitions.survey.some_rows()
    target = inner.target
    transformers = inner.transformers

    if target is not None and getattr(target, "transformer", None) is not None:
        table = _Table(
            partitions.cluster, partitions.parts, (operator.attrgetter("y"), _columns), _columns(y)
        )
        fitted = _fitted("transformer", target.transformer, table)
        target = clone(target).set_params(transformer=_frozen(fitted))

    if transformers is not None:
        of_X = (operator.attrgetter("X"),)
        table = _Table(partitions.cluster, partitions.parts, of_X, X, transformers)
        transformers = _fitted_steps(transformers, table)

    return dataclasses.replace(inner, transformers=transformers, target=target)


def _columns(y):
    y = np.asarray(y)
    return y[:, None] if y.ndim == 1 else y


def _frozen(step):
    return step if isinstance(step, FrozenEstimator) else FrozenEstimator(step)


def _fitted(name, step, table):
    """Return a step fitted to all partitions."""
    if isinstance(step, FrozenEstimator):
        return step
    if isinstance(step, Pipeline):
        return _fitted_steps(step, table, f"{name}/")
    if isinstance(step, ColumnTransformer):
        return _fitted_columns(name, step, table)

    statistic = statistic_of(step)
    if statistic is not None:
        return statistic.fitted(clone(step), table.collected(clone(step), statistic), table.head)
    if get_tags(step).requires_fit:
        raise ValueError(
            f"estimator: the step {name!r}, {step!r}, cannot be fitted over partitions: its fits "
            f"to two partitions cannot be merged. {FIT_STEP_FIRST}"
        )

    return clone(step).fit(table.head)


def _fitted_steps(pipeline, table, prefix=""):
    """Return a pipeline of fitted steps. In the outermost pipeline, they are frozen."""
    steps = []
    for key, step in pipeline.steps:
        if step is not None and step != "passthrough":
            step = _fitted(prefix + key, step, table)
            table = table.then(step.transform)
        steps.append((key, step if prefix else _frozen(step)))

    return Pipeline(steps, memory=pipeline.memory)


def _fitted_columns(name, step, table):
    """Return a fitted `ColumnTransformer`. Its transformers are fitted one by one."""
    rest = step.remainder
    if (
        not isinstance(rest, str)
        and not isinstance(rest, FrozenEstimator)
        and get_tags(rest).requires_fit
    ):
        raise ValueError(
            f"estimator: the remainder of {name!r}, {rest!r}, cannot be fitted over partitions. "
            "Give its columns to a transformer of their own."
        )

    parts = []
    for key, transformer, columns in step.transformers:
        if not isinstance(transformer, str):
            chosen = columns(table.head) if callable(columns) else columns
            taken = table.then(functools.partial(safe_indexing, indices=chosen, axis=1))
            transformer = _frozen(_fitted(f"{name}/{key}", transformer, taken))
        parts.append((key, transformer, columns))

    fitted = clone(step).set_params(transformers=parts).fit(table.head)
    fitted.transformers = clone(step).transformers
    fitted.transformers_ = [
        (key, thawed(each), columns) for key, each, columns in fitted.transformers_
    ]

    return fitted
