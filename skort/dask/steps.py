"""The steps before a model, fitted over all partitions: each as scikit-learn fits it to all rows."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from distributed import Future
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags

from skort.dask.cluster import Cluster
from skort.dask.gathering import Gathered
from skort.dask.parts import Part
from skort.dask.statistics import statistic_of
from skort.estimators.inner_model import InnerModel
from skort.estimators.nesting import FIT_STEP_FIRST

__all__ = ["with_fitted_steps"]


class _Table(NamedTuple):
    """
    The X of all partitions, as a step gets it.

    Parameters
    ----------
    cluster : Cluster
    parts : sequence of Future
        Of `Part`.
    view : tuple of callable
        What was done to X before.
    head : object
        The first rows.
    """

    cluster: Cluster
    parts: Sequence[Future]
    view: tuple[Callable, ...]
    head: Any

    def then(self, transform: Callable) -> "_Table":
        """Return what a function makes of it."""
        return self._replace(view=(*self.view, transform), head=transform(self.head))

    def collected(self, step: Any, statistic: Any) -> Any:
        """Return a statistic of all rows."""
        of_parts = self.cluster.each(_collected, self.parts, self.view, step, statistic)
        return self.cluster.value(self.cluster.merged(_Merge(statistic), of_parts))


class _Merge:
    """Merges statistics of partitions; those without rows have none."""

    __name__ = "merge"

    def __init__(self, statistic):
        self._statistic = statistic

    def __call__(self, values):
        some = [value for value in values if value is not None]
        return self._statistic.merged(some) if some else None


def _collected(part: Part, view: tuple, step: Any, statistic: Any) -> Any:
    if part.n_rows == 0:
        return None
    X = part.X
    for transform in view:
        X = transform(X)
    return statistic.collected(step, X)


class _Columns:
    """Takes columns of X, as `ColumnTransformer` does."""

    def __init__(self, columns):
        self._columns = columns

    def __call__(self, X):
        return _safe_indexing(X, self._columns, axis=1)


def with_fitted_steps(inner: InnerModel, gathered: Gathered) -> InnerModel:
    """
    Return a model whose steps, and whose transformer of y, are fitted over all partitions.

    Parameters
    ----------
    inner : InnerModel
    gathered : Gathered

    Raises
    ------
    ValueError
        For a step whose statistics do not merge.
    """
    X, y = gathered.survey.some_rows()
    target, transformers = inner.target, inner.transformers
    if target is not None and getattr(target, "transformer", None) is not None:
        y_parts = [gathered.cluster.submit(_of_target, part) for part in gathered.parts]
        fitted = _fitted("transformer", target.transformer, _Table(gathered.cluster, y_parts, (), _columns(y)))
        target = clone(target).set_params(transformer=_frozen(fitted))
    if transformers is not None:
        table, steps = _Table(gathered.cluster, gathered.parts, (), X), []
        for name, step in transformers.steps:
            fitted = _fitted(name, step, table)
            table = table.then(fitted.transform)
            steps.append((name, _frozen(fitted)))
        transformers = Pipeline(steps, memory=transformers.memory)
    return dataclasses.replace(inner, transformers=transformers, target=target)


def _of_target(part: Part) -> Part:
    """Return a partition with y as X."""
    return part._replace(X=_columns(part.y))


def _columns(y):
    y = np.asarray(y)
    return y[:, None] if y.ndim == 1 else y


def _frozen(step):
    return step if isinstance(step, FrozenEstimator) else FrozenEstimator(step)


def _fitted(name, step, table):
    """Return a step fitted over all partitions."""
    if isinstance(step, FrozenEstimator):
        return step
    if isinstance(step, Pipeline):
        return _fitted_pipeline(name, step, table)
    if isinstance(step, ColumnTransformer):
        return _fitted_columns(name, step, table)
    statistic = statistic_of(step)
    if statistic is not None:
        return statistic.fitted(clone(step), table.collected(clone(step), statistic), table.head)
    if get_tags(step).requires_fit:
        raise ValueError(
            f"estimator: the step {name!r}, {step!r}, cannot be fitted over partitions: what it learns from two of "
            f"them cannot be merged. {FIT_STEP_FIRST}"
        )
    return clone(step).fit(table.head)


def _fitted_pipeline(name, pipeline, table):
    steps = []
    for key, step in pipeline.steps:
        if step is not None and step != "passthrough":
            step = _fitted(f"{name}/{key}", step, table)
            table = table.then(step.transform)
        steps.append((key, step))
    return Pipeline(steps, memory=pipeline.memory)


def _fitted_columns(name, step, table):
    """Return a fitted `ColumnTransformer`, whose parts are fitted one by one."""
    rest = step.remainder
    if not isinstance(rest, str) and not isinstance(rest, FrozenEstimator) and get_tags(rest).requires_fit:
        raise ValueError(
            f"estimator: the remainder of {name!r}, {rest!r}, cannot be fitted over partitions. Give its columns to a "
            "transformer of their own."
        )
    parts = []
    for key, transformer, columns in step.transformers:
        if not isinstance(transformer, str):
            chosen = columns(table.head) if callable(columns) else columns
            transformer = _frozen(_fitted(f"{name}/{key}", transformer, table.then(_Columns(chosen))))
        parts.append((key, transformer, columns))
    fitted = clone(step).set_params(transformers=parts).fit(table.head)
    fitted.transformers = clone(step).transformers
    fitted.transformers_ = [(key, _thawed(each), columns) for key, each, columns in fitted.transformers_]
    return fitted


def _thawed(step):
    return step.estimator if isinstance(step, FrozenEstimator) else step
