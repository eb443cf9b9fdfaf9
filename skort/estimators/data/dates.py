"""Dates and times in an X: they are no numbers."""

import contextlib
import datetime
from typing import Any

import numpy as np

from skort.estimators.data.columns import listed
from skort.graphs.sklearn.raw_inputs import has_dates

# The number of values that are searched for dates in a column of objects.
_LOOKED_AT = 20
DAYS = (
    "Convert them to numbers before, such as the days since the first one, the month or the hour."
)


def check_dates(X: Any, given: Any = None) -> None:
    """
    Raise an error for dates and times in X that names their columns.

    If steps made X, the names are those of the dates that they were given. scikit-learn would
    convert dates to numbers of nanoseconds.
    """
    names = date_columns(X)
    if names:
        names = date_columns(given) or names
        raise ValueError(
            f"X has dates or times{place_of(names)}, but the model takes numbers. {DAYS}"
        )


def dates_in_steps(names: list[Any]) -> ValueError:
    """Return the error for the columns of dates that a step before the model takes for numbers."""
    return ValueError(
        f"X has dates or times{place_of(names)}, and a step of the pipeline inside takes numbers. "
        f"{DAYS}"
    )


def date_columns(X: Any) -> list[Any]:
    """Return the names or the numbers of the columns of X with dates or times; [None]: all."""
    if hasattr(X, "columns") and hasattr(X, "head"):
        dtypes = dict(zip(X.columns, X.dtypes, strict=True))
        parts = {name: X[name].head(_LOOKED_AT) for name in dtypes if _may_date(dtypes[name])}
    elif isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        return [None]
    else:
        parts = dict(enumerate(_first_objects(X).T))

    return [name for name, part in parts.items() if has_dates(np.asarray(part))]


def _first_objects(X):
    """Return the first rows of a list or of an array of objects; an empty matrix for another X."""
    rows = np.empty((0, 0), object)
    if isinstance(X, (list, tuple)) or (isinstance(X, np.ndarray) and X.dtype.kind == "O"):
        with contextlib.suppress(ValueError):  # The rows of a list may differ in their lengths.
            rows = np.asarray(X[:_LOOKED_AT], object)

    return rows if rows.ndim == 2 else np.empty((0, 0), object)


def _may_date(dtype):
    return getattr(dtype, "kind", "O") in "mMO"


def place_of(names: list[Any]) -> str:
    """Return where `date_columns` are, as a message says it."""
    return "" if names == [None] else f" in {listed(names)}"


def is_date(text: str) -> bool:
    """Return whether a text is a date, as ISO 8601 writes it."""
    try:
        datetime.date.fromisoformat(text[:10])
    except ValueError:
        return False
    return True
