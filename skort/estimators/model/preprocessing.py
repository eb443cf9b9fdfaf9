"""The fitted steps before a model: they transform X, and usually have an ONNX graph."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike
from sklearn.utils import check_array

from skort.estimators.data.dates import check_dates, dates_in_steps
from skort.estimators.data.step_errors import one_column, step_error
from skort.exceptions import NotExportableError

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Preprocessing:
    """The fitted steps before the trained graph: in scikit-learn, and as ONNX for deployment."""

    #: A fitted Pipeline, or None.
    transformers: Any
    #: The steps as ONNX.
    graph: "onnx.ModelProto | None"
    #: float32 or float64: the dtype of the transformed X.
    dtype: DTypeLike
    #: Why the steps have no ONNX: the message of the error that an export raises.
    obstacle: str | None = None

    @classmethod
    def of(cls, transformers: Any, some_rows: Any, dtype: DTypeLike) -> "Preprocessing":
        """Return fitted steps with their ONNX, compared with scikit-learn on `some_rows`."""
        from skort.graphs.sklearn.transformers import DatesError, transformer_graph

        if transformers is None:
            return cls(None, None, dtype)

        try:
            return cls(transformers, transformer_graph(transformers, some_rows, dtype), dtype)
        except NotExportableError as error:
            return cls(transformers, None, dtype, str(error))
        except DatesError as error:
            raise dates_in_steps(list(error.args)) from None

    def exported(self) -> "onnx.ModelProto | None":
        """Return the steps as ONNX, or None if there are no steps."""
        if self.obstacle is not None:
            raise NotExportableError(self.obstacle)
        return self.graph

    def transform(self, X: Any) -> Any:
        """Return X after the steps: an array or a CSR matrix of `dtype`."""
        if self.transformers is None:
            return X
        return transformed(self.transformers, self.transformers.transform, X, self.dtype)


def transformed(steps: Any, transform: Callable[[Any], Any], X: Any, dtype: DTypeLike) -> Any:
    """Return what a method of steps makes of X, as numbers; an error names what they refused."""
    try:
        result = transform(X)
        check_dates(result, X)
        rows = numbers(result, dtype)
    except (ValueError, TypeError, AttributeError) as error:
        raise step_error(error, X, steps) from None

    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if rows.shape[0] != n_rows:
        raise ValueError(
            f"The steps before the model return another number of rows than X has: {rows.shape[0]}, "
            f"not {n_rows}. {one_column(X, steps)}"
        )
    return rows


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

    if isinstance(X, Iterator):
        X = list(X)
    rows = np.asarray(X, dtype=object if _begins_with_text(X) else None)
    if rows.dtype.kind == "U" and not hasattr(X, "dtype"):
        # numpy turned a list of numbers and text into text.
        rows = np.asarray(X, dtype=object)

    if rows.ndim == 1 and rows.size and rows.dtype.kind in "biuf":
        check_array(rows)
    return rows


def _begins_with_text(X):
    """
    Return whether X is a list with text in its first row.

    As an array of text, all its texts would be as long as the longest.
    """
    first = X[0] if isinstance(X, (list, tuple)) and X else None
    return isinstance(first, str) or (
        isinstance(first, (list, tuple)) and any(isinstance(v, str) for v in first)
    )


def numbers(X: Any, dtype: DTypeLike) -> Any:
    """Return a transformed X as a C-contiguous array of numbers or a CSR matrix, or raise."""
    checks = {"order": "C", "accept_sparse": "csr", "input_name": "transformed X"}
    rows = check_array(X, dtype=kept_dtypes(X, dtype), **checks)
    return rows if is_in_range(rows, dtype) else check_array(rows, dtype=dtype, **checks)


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
