"""Rows (arrays, DataFrames, sparse matrices, texts) as the inputs of an ONNX model."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike


@dataclass(frozen=True)
class RawInput:
    """
    One input of an ONNX model, of shape (any, width):
    strings, or numbers of the model's dtype.
    """

    name: str
    is_text: bool
    width: int


def raw_inputs(X: Any) -> tuple[RawInput, ...]:
    """
    Return the inputs that take X: one for each column of a DataFrame or a mixed array, else "X".

    A mixed array has columns of numbers and columns of text.
    """
    parts = _parts(X)
    names = [name for name, _ in parts]
    if "" in names:
        raise ValueError("X has a column whose name is empty: rename it.")
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"X has several columns of the name {sorted(repeated)[0]!r}: rename them.")

    return tuple(RawInput(name, _is_text(part), part.shape[1]) for name, part in parts)


def numeric_inputs(X: Any) -> tuple[RawInput, ...]:
    """Return the inputs that take X. Dates, and texts that are all numbers, count as numbers."""
    texts = {name for name, part in _parts(X) if _is_text(part) and not _is_numeric(part)}
    return tuple(replace(each, is_text=each.name in texts) for each in raw_inputs(X))


def date_columns(X: Any) -> list[str]:
    """Return the names of the inputs with dates or times."""
    return [name for name, part in _parts(X) if has_dates(part)]


def has_dates(values: np.ndarray) -> bool:
    """Return whether some values are dates or times."""
    kinds = ("isoformat", "total_seconds", "to_timestamp")
    return values.dtype.kind in "mM" or any(
        hasattr(value, kind) for value in values.ravel() for kind in kinds
    )


def feeds(X: Any, inputs: tuple[RawInput, ...], dtype: DTypeLike) -> dict[str, np.ndarray]:
    """Return the arrays of X by the names of inputs. Missing text becomes the empty string."""
    # The inputs tell whether X is mixed, as all text may be missing in a part of the rows.
    parts = dict(_parts(X, is_mixed=len(inputs) > 1))
    return {
        i.name: as_texts(parts[i.name]) if i.is_text else _numbers(parts[i.name], dtype)
        for i in inputs
    }


def text_columns(X: Any) -> list[np.ndarray]:
    """Return the texts in X as arrays of shape (n_samples, n_columns)."""
    return [part for _, part in _parts(X) if _is_text(part)]


def object_columns(X: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each column of texts or objects, after the code of its place, such as "X['city']"."""
    parts = [(name, part, j) for name, part in _parts(X) for j in range(part.shape[1])]
    for number, (name, part, j) in enumerate(parts):
        if not scipy.sparse.issparse(part) and part.dtype.kind in "OUST":
            yield f"X[{name!r}]" if hasattr(X, "columns") else f"X[:, {number}]", part[:, j]


def _parts(X, is_mixed=None):
    """
    Return the name and the two-dimensional values of each input.

    A mixed array has one per column.
    """
    if hasattr(X, "columns"):
        # In a table of pyarrow, `columns` has the values, and not the names.
        columns = getattr(X, "column_names", X.columns)
        if len(set(columns)) == len(columns):
            return [(str(column), np.asarray(X[column]).reshape(-1, 1)) for column in columns]
        return [(str(column), np.asarray(X.iloc[:, [i]])) for i, column in enumerate(columns)]
    if scipy.sparse.issparse(X):
        return [("X", X)]

    X = np.asarray(X)
    columns = X.reshape(-1, 1) if X.ndim == 1 else X
    if is_mixed is None:
        is_mixed = columns.dtype.kind == "O" and len({_is_text(column) for column in columns.T}) > 1
    if not is_mixed:
        return [("X", columns)]

    return [(f"x{i}", column.reshape(-1, 1)) for i, column in enumerate(columns.T)]


def _is_text(values):
    if scipy.sparse.issparse(values) or values.dtype.kind in "biuf":
        return False
    # To numpy, a duration is a number.
    if values.dtype.kind in "UTmM":
        return True

    numbers = (bool, int, float, np.number, np.bool_)
    return not all(isinstance(value, numbers) or is_missing(value) for value in values.flat)


def _is_numeric(values):
    """Return whether scikit-learn may take some texts, or dates, for numbers."""
    if values.dtype.kind in "mM":
        return True
    try:
        _numbers(values, np.float64)
    except (TypeError, ValueError):
        return False
    return True


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or the NA of pandas."""
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def as_texts(values: np.ndarray) -> np.ndarray:
    """Return values as texts. What is missing becomes the empty string."""
    flat = [
        "" if is_missing(v) else v.decode() if isinstance(v, bytes) else str(v) for v in values.flat
    ]
    return np.array(flat, dtype=object).reshape(values.shape)


def _numbers(values, dtype):
    if scipy.sparse.issparse(values):
        values = values.toarray()
    elif values.dtype.kind == "O":
        values = np.array(
            [np.nan if is_missing(v) else v for v in values.flat], np.float64
        ).reshape(values.shape)

    return np.ascontiguousarray(values, dtype=dtype)
