"""The error for a column of another type than the one that an encoder was fitted on."""

import datetime
from collections.abc import Iterator
from numbers import Number
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from skort.common.sklearn_private import input_indices, safe_indexing
from skort.estimators.data.columns import as_texts, is_missing, names_out
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
    "text": "{column}{as_texts}",
    "numbers": "pandas.to_numeric({column})",
    "dates": "pandas.to_datetime({column})",
    "durations": "pandas.to_timedelta({column})",
    "objects": "{column}.astype(object)",
}
# What a message calls bytes, in an array of them and in one of objects.
_BYTES = ("bytes", "values of type bytes")
# The error of numpy for a comparison of objects with numbers.
_OF_OBJECTS = "ufunc 'isnan' not supported"


def other_type_error(error: Exception, X: Any, steps: Any) -> ValueError | None:
    """
    Return the error for the first column of X whose values have no type of the categories that an
    encoder in fitted steps knows, or None. `error` is that of the steps.
    """
    n_columns = np.shape(X)[1] if np.ndim(X) == 2 else 0
    names = list(getattr(X, "columns", range(n_columns)))
    for encoder, rows, names_of_rows in _encoders(steps, X, names):
        for j, categories in enumerate(encoder.categories_):
            if j >= np.shape(rows)[1]:
                return None
            kinds = _other_kinds(error, categories, rows, j)
            if kinds is not None:
                known, given = kinds
                name = names_of_rows[j]
                is_given = hasattr(X, "iloc") and name is not None
                text = as_texts(X[name], categories) if is_given else None
                return _error(name, encoder, known, given, text)
    return None


def _other_kinds(error, categories, rows, j):
    """Return the kinds of the categories and those of a column, if none is the same; or None."""
    known = _kinds_of(categories)
    given = _kinds_of(_column(rows, j))
    # A column of missing values only may have a dtype that scikit-learn takes for numbers.
    if not given and isinstance(error, TypeError) and known != {"numbers"}:
        given = {"missing values"}
    # scikit-learn compares numbers with objects only if they are objects, too.
    if known == given == {"numbers"} and _OF_OBJECTS in str(error):
        dtype = str(rows.dtypes.iloc[j] if hasattr(rows, "iloc") else rows.dtype)
        if categories.dtype.kind == "O" and dtype != "object":
            return {"objects"}, {f"values of dtype {dtype}"}
    return (known, given) if known and given and not known & given else None


def _error(name, encoder, known, given, text):
    """
    Return the error for a column, with how to make its values such as they were; `text` makes text
    of them. None: the column is not one of pandas.
    """
    (was, *_), (is_now, *_) = sorted(known), sorted(given)
    fitted = f"where {type(encoder).__name__} was fitted on {was}. Give"
    if name is None:
        return ValueError(
            f"The steps before the model make {is_now} of a column, {fitted} X the types of the fit."
        )

    cure = _CURES.get(was)
    if is_now in _BYTES:
        cure = '{column}.str.decode("utf-8")'
    elif "text" not in (was, is_now) and was != "objects":
        cure = None
    column = f"X[{name!r}]"
    advice = f": {column} = {cure.format(column=column, as_texts=text)}" if text and cure else ""
    return ValueError(f"X has {is_now} in column {name!r}, {fitted} the column that type{advice}.")


def _column(rows, j):
    """Return the values of a column, by its number."""
    return np.asarray(rows.iloc[:, j] if hasattr(rows, "iloc") else rows[:, j])


def _kinds_of(values):
    """Return the kinds of the values of a column that are not missing."""
    kind = _KINDS.get(values.dtype.kind)
    if kind is not None:
        missing = values.dtype.kind == "f" and np.isnan(values).all()
        return set() if missing or not values.size else {kind}
    all_values = values.ravel().tolist()
    firsts = (
        next((v for v in all_values if type(v) is each and not is_missing(v)), None)
        for each in set(map(type, all_values))
    )
    return {_kind(value) for value in firsts if value is not None}


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


def _encoders(step: Any, X: Any, names: list[Any]) -> Iterator[tuple[Any, Any, list[Any]]]:
    """
    Yield the fitted encoders in a step, each with the rows that it is given, and with the names that
    the columns of these have in X. The name of a column that steps have made is None.
    """
    step = thawed(step)
    if not hasattr(step, "categories_"):
        for part, rows, names_of_rows in _parts(step, X, names):
            yield from _encoders(part, rows, names_of_rows)
    elif np.ndim(X) == 2 and not hasattr(X, "tocsr"):
        yield step, X, names


def _parts(step, X, names):
    """Yield the parts of a step, each with its rows and their names."""
    if isinstance(step, FeatureUnion):
        yield from ((part, X, names) for _, part in step.transformer_list)
    elif isinstance(step, Pipeline):
        for _, part in step.steps:
            yield part, X, names
            if part in (None, "passthrough"):
                continue
            try:
                X = part.transform(X)
            except Exception:  # a step that failed may be half fitted
                return
            names = _names_after(part, names, np.shape(X)[-1])
    elif isinstance(step, ColumnTransformer):
        all_places = input_indices(step)
        # A part may be fitted where the step is not.
        for name, part, _ in getattr(step, "transformers_", step.transformers):
            places = all_places.get(name, [])
            rows = _taken(X, places) if places and not isinstance(part, str) else None
            if rows is not None:
                yield part, rows, [names[place] for place in places]


def _names_after(step, names, width):
    """Return the names in X of so many columns after a step. None: the step tells none."""
    out = names_out(step)
    if out is None:
        return [None] * width
    # A step that leaves a column in place gives it the name of the fit, or x and its number.
    is_of_table = hasattr(step, "feature_names_in_")
    known = {str(name) if is_of_table else f"x{j}": name for j, name in enumerate(names)}
    return [known.get(name) for name in out]


def _taken(X, places):
    """Return the columns of X that a part of a `ColumnTransformer` takes; None: X lacks some."""
    try:
        return safe_indexing(X, places, axis=1)
    except (KeyError, IndexError, ValueError):
        return None
