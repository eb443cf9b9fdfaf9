"""The fitted steps before a model: they transform X, and have a graph or a reason why they have none."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from skort.exceptions import NotExportableError

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Preprocessing:
    """The fitted steps before what is trained: scikit-learn transforms X, and deployed models hold the same as ONNX."""

    transformers: Pipeline | None
    #: The same as ONNX.
    graph: "onnx.ModelProto | None"
    #: float32 or float64, of what comes out.
    dtype: DTypeLike
    #: Why there is no ONNX of the steps: the message of the error that an export raises.
    obstacle: str | None = None

    @classmethod
    def of(cls, transformers: Pipeline | None, some_rows, dtype: DTypeLike) -> "Preprocessing":
        """Return fitted steps with their ONNX, or why they have none, compared with scikit-learn on some rows."""
        from skort.graphs.sklearn.transformers import transformer_graph

        if transformers is None:
            return cls(None, None, dtype)
        try:
            return cls(transformers, transformer_graph(transformers, some_rows, dtype), dtype)
        except NotExportableError as error:
            return cls(transformers, None, dtype, str(error))

    def exported(self) -> "onnx.ModelProto | None":
        """Return the steps as ONNX; None where there are no steps."""
        if self.obstacle is not None:
            raise NotExportableError(self.obstacle)
        return self.graph

    def transform(self, X):
        """Return what the steps make of X: an array, or a CSR matrix of `dtype`."""
        if self.transformers is None:
            return X
        return numbers(self.transformers.transform(X), self.dtype)


def as_rows(X):
    """Return X as steps before a model take it, unvalidated: a DataFrame as it is, others as an array or CSR matrix."""
    # What is wrong with a single text is said by the steps.
    if hasattr(X, "columns") or isinstance(X, str):
        return X
    if scipy.sparse.issparse(X):
        return X.tocsr()
    if isinstance(X, Iterator):
        X = list(X)
    rows = np.asarray(X, dtype=object if _begins_with_text(X) else None)
    if rows.dtype.kind == "U" and not hasattr(X, "dtype"):
        # A list of numbers and text, which numpy made text of.
        rows = np.asarray(X, dtype=object)
    if rows.ndim == 1 and rows.size and rows.dtype.kind in "biuf":
        check_array(rows)
    return rows


def _begins_with_text(X):
    """Return whether X is a list with text in its first row: numpy would make all texts as long as the longest."""
    first = X[0] if isinstance(X, (list, tuple)) and X else None
    return isinstance(first, str) or (isinstance(first, (list, tuple)) and any(isinstance(v, str) for v in first))


def numbers(X, dtype):
    """Return what steps made of X as a C-contiguous array of numbers or CSR matrix; raise an error for other things."""
    checks = {"order": "C", "accept_sparse": "csr", "input_name": "transformed X"}
    rows = check_array(X, dtype=kept_dtypes(X, dtype), **checks)
    return rows if is_in_range(rows, dtype) else check_array(rows, dtype=dtype, **checks)


def kept_dtypes(X, dtype):
    """Return the dtypes in which rows stay as they are; others get the first."""
    # It is that of the training where it holds all digits of X, or nothing is subtracted from X, which is sparse, or a
    # DataFrame of sparse columns. A training casts other rows after it has subtracted the means.
    given, whole = getattr(X, "dtype", None), (np.int64, np.uint64)
    is_sparse = scipy.sparse.issparse(X) or hasattr(getattr(X, "sparse", None), "to_coo")
    if is_sparse or (isinstance(given, np.dtype) and np.can_cast(given, dtype) and given not in whole):
        return (np.dtype(dtype),)
    kept = (np.float64, *whole)
    return kept if np.dtype(dtype) == np.float64 else (*kept, np.float32, np.int32, np.uint32)


def is_in_range(rows, dtype):
    """Return whether no finite number of rows is infinite in a dtype."""
    if scipy.sparse.issparse(rows) or rows.dtype.kind != "f" or rows.dtype.itemsize <= np.dtype(dtype).itemsize:
        return True
    most = largest(dtype)
    return not rows.size or bool(-most <= rows.min() and rows.max() <= most)


def largest(dtype):
    """Return the largest finite number of a dtype of floats."""
    return float(np.finfo(dtype).max)
