"""The error for a column of another type than the one that an encoder was fitted on."""

import datetime
from collections.abc import Iterator
from numbers import Number
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from skort.common.sklearn_private import safe_indexing
from skort.estimators.data.columns import is_missing
from skort.estimators.data.nesting import thawed

_KINDS = {
    "U": "text",
    "S": "bytes",
    "M": "dates",
    "m": "durations",
    **dict.fromkeys("biuf", "numbers"),
}
# What makes a column one of the type that an encoder was fitted on.
_CURES = {
    "text": "{column}.astype(str)",
    "numbers": "pandas.to_numeric({column})",
    "dates": "pandas.to_datetime({column})",
    "durations": "pandas.to_timedelta({column})",
}


def other_type_error(error: Exception, X: Any, steps: Any) -> ValueError | None:
    """
    Return the error for the first column of X whose values have no type of the categories that an
    encoder in fitted steps knows, or None. `error` is that of the steps.
    """
    for encoder, rows in _encoders(steps, X):
        names = list(getattr(rows, "columns", range(np.shape(rows)[1])))
        for j, categories in enumerate(encoder.categories_):
            if j >= len(names):
                return None
            known = _kinds_of(categories)
            given = _kinds_of(_column(rows, j))
            # A column of missing values only may have a dtype that scikit-learn takes for numbers.
            if not given and isinstance(error, TypeError) and known != {"numbers"}:
                given = {"missing values"}
            if known and given and not known & given:
                return _error(names[j], hasattr(rows, "columns"), encoder, known, given)
    return None


def _error(name, has_names, encoder, known, given):
    """Return the error for a column, with how to make its values such as they were."""
    (was, *_), (is_now, *_) = sorted(known), sorted(given)
    advice = "."
    if has_names and (was == "text" or is_now == "text") and was in _CURES:
        column = f"X[{name!r}]"
        advice = f": {column} = {_CURES[was].format(column=column)}."
    return ValueError(
        f"X has {is_now} in column {name!r}, where {type(encoder).__name__} was fitted on {was}. Give "
        f"the column that type{advice}"
    )


def _column(rows, j):
    """Return the values of a column, by its number."""
    return np.asarray(rows.iloc[:, j] if hasattr(rows, "iloc") else rows[:, j])


def _kinds_of(values):
    """Return the kinds of the values of a column that are not missing."""
    kind = _KINDS.get(values.dtype.kind)
    if kind is not None:
        missing = values.dtype.kind == "f" and np.isnan(values).all()
        return set() if missing or not values.size else {kind}
    return {_kind(value) for value in values.ravel() if not is_missing(value)}


def _kind(value):
    """Return the kind of a single value."""
    for kind, types in (
        ("text", str),
        ("numbers", (Number, np.bool_)),
        ("dates", (datetime.date, np.datetime64)),
        ("durations", (datetime.timedelta, np.timedelta64)),
    ):
        if isinstance(value, types):
            return kind
    return f"values of type {type(value).__name__}"


def _encoders(step: Any, X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the fitted encoders in a step, each with the rows that it is given."""
    step = thawed(step)
    if isinstance(step, Pipeline):
        rows = X
        for _, each in step.steps:
            yield from _encoders(each, rows)
            try:
                rows = rows if each in (None, "passthrough") else each.transform(rows)
            except Exception:  # a step that failed may be half fitted
                return
    elif isinstance(step, ColumnTransformer):
        for _, part, columns in getattr(step, "transformers_", ()):
            rows = None if isinstance(part, str) else _taken(X, columns)
            if rows is not None:
                yield from _encoders(part, rows)
    elif isinstance(step, FeatureUnion):
        for _, part in step.transformer_list:
            yield from _encoders(part, X)
    elif hasattr(step, "categories_") and np.ndim(X) == 2 and not hasattr(X, "tocsr"):
        yield step, X


def _taken(X, columns):
    """Return the columns of X that a part of a `ColumnTransformer` takes; None: X lacks some."""
    try:
        return safe_indexing(X, columns, axis=1)
    except (KeyError, IndexError, ValueError):
        return None
