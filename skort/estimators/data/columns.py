"""What the columns of an X hold that are no numbers, and how a message names them."""

import re
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse

# The number of columns, or of labels, that a message names.
_SHOWN = 5
# Fewer texts than these may all differ and be categories.
_FEWEST_TEXTS = 20
# The beginning of numpy's errors for text. The text follows.
REFUSED = "could not convert string to float: "
# The beginnings of pandas's errors for categories of text beside other types.
_REFUSED_CATEGORIES = ("Cannot cast str dtype to ", "Cannot cast object dtype to ")
# A number with other signs than Python's: 1,5 or 1.000,50 or 10 % or $ 7 or 1 000.
OF_NUMBER = re.compile(r"[$€£+-]? ?\d{1,3}(?:[., ']?\d{3})*(?:[.,]\d+)? ?[%$€£]?")


def columns_with(X: Any, has: Callable[[np.ndarray], bool]) -> list[Any]:
    """Return the names or the numbers of the columns of X whose values pass a test."""
    if scipy.sparse.issparse(X):
        columns = X.tocsc()
        parts = np.split(columns.data, columns.indptr[1:-1])
        return [j for j, values in enumerate(parts) if has(values)]

    names = getattr(X, "columns", None)
    if names is not None:
        return [name for name in names if has(np.asarray(X[name]))]
    rows = np.asarray(X)
    return [j for j, column in enumerate(rows.T) if has(column)] if rows.ndim == 2 else []


def names_out(step: Any) -> list[str] | None:
    """Return the names of the columns that a fitted step makes, or None if it tells none."""
    try:
        return [str(name) for name in step.get_feature_names_out()]
    except (AttributeError, ValueError, NotImplementedError):
        return None


def first_texts(X: Any, error: Exception) -> dict[Any, str]:
    """Return the first text of each column of X with text, by name, for an error about text."""
    if not str(error).startswith((REFUSED, *_REFUSED_CATEGORIES)) or scipy.sparse.issparse(X):
        return {}

    names = list(getattr(X, "columns", ()))
    rows = np.asarray(X, dtype=object)
    if rows.ndim == 1:
        return {None: rows[0]}
    if rows.ndim != 2:
        return {}

    texts = (
        (value for value in column if isinstance(value, str) and not is_number(value))
        for column in rows.T
    )
    firsts = {j: next(column, None) for j, column in enumerate(texts)}
    return {
        (names or range(len(firsts)))[j]: text for j, text in firsts.items() if text is not None
    }


def has_text(values: np.ndarray) -> bool:
    """Return whether some values have a text."""
    return values.dtype.kind in "OTU" and any(isinstance(value, str) for value in values.ravel())


def has_sentences(values: np.ndarray) -> bool:
    """Return whether most texts of some values have spaces, and most differ: no categories."""
    texts = [value for value in values.ravel() if isinstance(value, str)]
    n_spaced = sum(" " in text.strip() for text in texts)
    half = len(texts) / 2
    return len(texts) >= _FEWEST_TEXTS and len(set(texts)) > half and n_spaced > half


def column_of_texts(X: Any, among: list[Any] | None = None) -> Any:
    """Return the name or the number of the column with the most different texts, or None."""

    def n_different(name):
        values = X[name] if hasattr(X, "columns") else np.asarray(X, object)[:, name]
        return len(set(map(repr, np.asarray(values, object).ravel())))

    names = columns_with(X, has_text)
    if among:
        names = [name for name in names if name in among]
    return max(names, key=n_different, default=None)


def is_number(value: Any) -> bool:
    """Return whether a value is a number, or a text that Python reads as one."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def has_missing(values: np.ndarray) -> bool:
    """Return whether some values have None, NaN or the NA of pandas."""
    if values.dtype.kind == "f":
        return bool(np.isnan(values).any())
    return values.dtype == object and any(is_missing(value) for value in values.ravel())


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or the NA of pandas."""
    return (
        value is None
        or (isinstance(value, Real) and value != value)
        or repr(value) in ("<NA>", "NaT")
    )


def as_texts(values: Any, known: Iterable[Any] = ()) -> str:
    """
    Return what makes text of a column of pandas. 2.0 becomes "2", as the int 2 does, unless a known
    text is that of such a float.
    """
    whole = {
        str(value)
        for value in np.asarray(values, dtype=object).ravel()
        if isinstance(value, float) and value.is_integer()
    }
    return ".astype(str)" + '.str.removesuffix(".0")' * (bool(whole) and whole.isdisjoint(known))


def first_of(names: Iterable[Any]) -> str:
    """Return names as a message shows them: the first five, and how many more there are."""
    texts = [repr(name) for name in names]
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return f"{', '.join(texts[:_SHOWN])}{more}"


def listed(names: Iterable[Any]) -> str:
    """Return the names of columns as a message shows them."""
    names = list(names)
    return f"{'column' if len(names) == 1 else 'columns'} {first_of(names)}"


def listed_with_y(names: Sequence[Any], *, has_y: bool, place: str = "X") -> str:
    """Return the names of columns of X, and y if it belongs to them, as a message shows them."""
    parts = [f"{listed(names)} of {place}"] if names else []
    return " and ".join(parts + ["y"] * has_y)
