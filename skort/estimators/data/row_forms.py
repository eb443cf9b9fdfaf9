"""
The forms of X: tables, arrays, rows of several dimensions such as images; their dtypes, and the
ranges of numbers and ids.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_array


def as_rows(X: Any) -> Any:
    """Return X for the steps before a model, unvalidated: a DataFrame, an array or a CSR matrix."""
    if isinstance(X, str):
        raise ValueError(
            f"X is {X!r}, and no rows: give a list of texts, or read the file if it is a path."
        )
    if hasattr(X, "columns"):
        return X
    if scipy.sparse.issparse(X):
        return X.tocsr()
    check_no_dict(X)

    if isinstance(X, Iterator):
        X = list(X)
    rows = np.asarray(X, dtype=object if _begins_with_text(X) else None)
    if rows.dtype.kind == "U" and not hasattr(X, "dtype"):
        # numpy turned a list of numbers and text into text.
        rows = np.asarray(X, dtype=object)

    if rows.ndim == 1 and rows.size and rows.dtype.kind in "biuf":
        check_array(rows)
    return rows


def check_no_dict(X: Any) -> None:
    """Raise a ValueError for a dict, which is no table."""
    # A matrix of scipy by keys is a dict.
    if isinstance(X, Mapping) and not scipy.sparse.issparse(X):
        raise ValueError("X is a dict, and no table: give pandas.DataFrame(X).")


def check_in_memory(X: Any, name: str = "X") -> None:
    """Raise a TypeError for a DataFrame whose rows are not in memory: of Dask, or a lazy one."""
    # The type is asked, as a DataFrame has its columns as attributes.
    kind = type(X)
    if not hasattr(kind, "columns"):
        return
    if hasattr(kind, "compute"):
        raise TypeError(
            f"{name} is a Dask DataFrame, whose rows are not in memory. Give {name}.compute(), or "
            "train with the estimators of skort.dask, which take its partitions."
        )
    if hasattr(kind, "collect"):
        read = "toPandas" if hasattr(kind, "toPandas") else "collect"
        raise TypeError(
            f"{name} is a {kind.__name__}, whose rows are not in memory. Give {name}.{read}()."
        )


def has_masked(array: Any) -> bool:
    """Return whether an array of numpy has masked values."""
    # numpy would take a column "_mask" of a DataFrame for the mask.
    return isinstance(array, np.ma.MaskedArray) and bool(np.ma.is_masked(array))


def check_no_iterator(rows: Any, name: str) -> None:
    """Raise a ValueError for an iterator, which gives its rows only once."""
    if isinstance(rows, Iterator):
        batches = " For rows that memory does not hold, there is fit_batches." * (name == "X")
        raise ValueError(
            f"{name} is an iterator ({type(rows).__name__}), which gives its rows only once: give "
            f"list({name}).{batches}"
        )


def _begins_with_text(X):
    """
    Return whether X is a list with text in its first row.

    As an array of text, all its texts would be as long as the longest.
    """
    first = X[0] if isinstance(X, (list, tuple)) and X else None
    return isinstance(first, str) or (
        isinstance(first, (list, tuple)) and any(isinstance(v, str) for v in first)
    )


def row_shape(model: Any, X: Any) -> tuple[int, ...]:
    """
    Return the shape of a row of X if it is that of an ONNX model's input; () if rows are flat.

    A ValueError for another shape of several dimensions names both shapes.
    """
    if model is None or isinstance(model, BaseEstimator):
        return ()

    given = np.shape(X)[1:] if hasattr(X, "shape") or isinstance(X, (list, tuple)) else ()
    if len(given) < 2:
        return ()

    from skort.graphs.onnx_models.inputs import row_sizes

    sizes = row_sizes(model)
    fits = len(sizes) == len(given) and all(
        size in (0, own) for size, own in zip(sizes, given, strict=True)
    )
    if sizes and not fits:
        stated = ", ".join(str(size or "any") for size in sizes)
        raise ValueError(
            f"X has rows of the shape {given}, but the input of the ONNX model takes rows of the "
            f"shape ({stated})."
        )

    return given if sizes else ()


def flat_rows(model: Any, X: Any) -> Any:
    """Return X with flat rows if its rows have the shape of an ONNX model's input; else as it is."""
    if type(X) is np.ndarray and X.ndim < 3:
        return X
    if not row_shape(model, X):
        return X

    rows = np.asarray(X)
    return rows.reshape(len(rows), -1)


def kept_dtypes(X: Any, dtype: DTypeLike) -> tuple[DTypeLike, ...]:
    """Return the dtypes that rows may keep. Rows of another dtype are cast to the first one."""
    # If the dtype of the training holds all digits of X, rows are cast to it. So are sparse rows,
    # from which no mean is subtracted. All other rows keep their digits until the training has
    # subtracted the means.
    given = getattr(X, "dtype", None)
    whole = (np.int64, np.uint64)
    is_sparse = scipy.sparse.issparse(X) or hasattr(getattr(X, "sparse", None), "to_coo")
    if is_sparse or (
        isinstance(given, np.dtype) and np.can_cast(given, dtype) and given not in whole
    ):
        return (np.dtype(dtype),)

    kept = (np.float64, *whole)
    return kept if np.dtype(dtype) == np.float64 else (*kept, np.float32, np.int32, np.uint32)


def is_in_range(rows: Any, dtype: DTypeLike) -> bool:
    """Return whether all finite numbers of rows stay finite in a dtype."""
    if (
        scipy.sparse.issparse(rows)
        or rows.dtype.kind != "f"
        or rows.dtype.itemsize <= np.dtype(dtype).itemsize
    ):
        return True

    most = largest(dtype)
    return not rows.size or bool(-most <= rows.min() and rows.max() <= most)


def largest(dtype: Any) -> float:
    """Return the largest finite number of a floating-point dtype."""
    return float(np.finfo(dtype).max)


@contextlib.contextmanager
def ids_in_range() -> Iterator[None]:
    """Replace ONNX Runtime's error for an id in X without a row in a table of an ONNX model."""
    try:
        yield
    except Exception as error:  # the runtime raises errors of many kinds
        found = missing_id(error)
        if found is None:
            raise

        raise ValueError(
            f"X has the id {found[0]}, but the ids of a table in the ONNX model go from "
            f"0 to {found[1]}."
        ) from error


def missing_id(error: Exception) -> tuple[int, int] | None:
    """Return the id that a Gather of ONNX Runtime did not find, and the last one that it knows."""
    # A backward pass scatters by the same ids, but the Gather of the forward pass fails first.
    found = re.search(
        r"running Gather node.*idx=(-?\d+) must be within .* \[-\d+,(\d+)\]", str(error), re.DOTALL
    )
    return None if found is None else (int(found[1]), int(found[2]))
