"""The rows of X in the variables of a training. They change when they are cast, or in each batch."""

import functools
import mmap
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

try:
    # The functions behind the rows and products of scipy.sparse, whose checks take longer than the
    # work. Products add to an array in place, and touch no other row of it.
    from scipy.sparse._sparsetools import (
        csc_matvec,
        csc_matvecs,
        csr_matvec,
        csr_matvecs,
        csr_row_index,
        csr_todense,
    )
except ImportError:  # They are private, and may go.
    csr_row_index = None

# A copy of so many bytes, in the variables of the training, would be too large if the rows need no
# cast.
_LARGE = 2**28
# The number of values in a block that changes at once.
_BLOCK = 2**18


@dataclass(frozen=True, eq=False)
class RowChange:
    """
    The change of the rows of X in a training: (X - mean) times the inverse scale, in the type of X,
    then a cast.
    """

    #: float64, as `inverse`. None: nothing is subtracted.
    mean: np.ndarray | None
    #: None: nothing is multiplied.
    inverse: np.ndarray | np.float64 | None
    dtype: np.dtype

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """
        Return the rows of the training, C-contiguous and aligned. X itself comes back if it is
        that.
        """
        mean, inverse = self._numbers(X.dtype)
        if mean is None and inverse is None and X.dtype == self.dtype:
            return np.require(X, requirements=["C", "A"])

        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            if mean is None and inverse is None:
                return np.require(X, self.dtype, ["C", "A"])

            changed = np.empty(X.shape, self.dtype)
            # Blocks stay in the cache between both operations.
            length = max(1, _BLOCK // X.shape[1])

            for start in range(0, len(X), length):
                rows = slice(start, start + length)
                block = X[rows] if mean is None else difference(X[rows], mean)
                if inverse is not None:
                    block = np.multiply(block, inverse, out=None if mean is None else block)
                # numpy is slow where it casts within a product.
                changed[rows] = block

        return changed

    @functools.cached_property
    def _fits_float32(self):
        return self.inverse is None or bool(
            np.all(np.abs(self.inverse) <= np.finfo(np.float32).max)
        )

    def in_place(self, rows: np.ndarray) -> None:
        """Change rows of the training's dtype in place, with the same bits."""
        mean, inverse = self._numbers(self.dtype)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            if mean is not None:
                np.subtract(rows, mean, rows, casting="same_kind")
            np.multiply(rows, inverse, rows, casting="same_kind")

    def _numbers(self, dtype):
        """
        Return mean and inverse scale in the type in which rows of a dtype change: float32 if it
        holds both.
        """
        dtype = np.float32 if dtype == np.float32 and self._fits_float32 else np.float64
        return tuple(
            None if each is None else each.astype(dtype) for each in (self.mean, self.inverse)
        )


def difference(X: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """
    Return X - offset in the type of X. For integers it is exact and in float64, even where float64
    lacks their digits.
    """
    if X.dtype.kind in "iu" and X.dtype.itemsize == 8 and np.any(np.abs(offset) > 2.0**52):
        of_high = np.floor(offset / 2.0**32)
        return ((X >> 32) - of_high) * 2.0**32 + ((X & 0xFFFFFFFF) - (offset - of_high * 2.0**32))
    return np.subtract(X, offset, dtype=X.dtype if X.dtype == offset.dtype else np.float64)


@dataclass(frozen=True, eq=False)
class UnchangedRows:
    """
    Rows of X that stay where they are, such as sparse ones or those of a file. Each batch changes
    its own.
    """

    rows: Any
    change: RowChange

    @property
    def shape(self) -> tuple[int, int]:
        """That of the rows."""
        return self.rows.shape

    def __getitem__(self, part: slice) -> "UnchangedRows":
        return UnchangedRows(self.rows[part], self.change)


def is_in_memory(rows: Any) -> bool:
    """Return whether rows are an ndarray that is not a view of a file."""
    base = rows
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(rows, np.ndarray) and not isinstance(base, mmap.mmap)


def stays_where_it_is(X: Any, dtype: DTypeLike) -> bool:
    """Return whether X stays where it is: it is sparse, or needs no cast and is a file or large."""
    if scipy.sparse.issparse(X) or X.dtype != dtype or not X.flags.c_contiguous:
        return scipy.sparse.issparse(X)
    return X.nbytes > _LARGE or not is_in_memory(X)


def source_rows(X: Any) -> Any:
    """Return X as the user gave it, of `UnchangedRows` or of an array."""
    return X.rows if isinstance(X, UnchangedRows) else X


class SparseRows:
    """
    Some rows of a CSR matrix, and their products with dense, C-contiguous matrices of the same
    dtype.
    """

    def __init__(self, n_rows: int, n_columns: int, dtype: DTypeLike):
        self.shape: tuple[int, int] = n_rows, n_columns
        self._dtype = np.dtype(dtype)
        self._indptr = np.zeros(n_rows + 1, np.int32)
        self._indices = np.empty(0, np.int32)
        self._values = np.empty(0, self._dtype)

    def take(self, X: Any, numbers: np.ndarray) -> None:
        """Hold some rows of X, a CSR matrix of this dtype. Indices may be unsorted and repeated."""
        if csr_row_index is None:
            rows = X[numbers]
            self._indptr = rows.indptr
            self._indices = rows.indices
            self._values = rows.data
            return

        if self._indptr.dtype != X.indptr.dtype:
            self._indptr = np.zeros(self.shape[0] + 1, X.indptr.dtype)
        numbers = numbers.astype(X.indptr.dtype)
        (X.indptr[1:][numbers] - X.indptr[numbers]).cumsum(out=self._indptr[1:])
        n_values = int(self._indptr[-1])

        if len(self._indices) < n_values or self._indices.dtype != X.indices.dtype:
            self._indices = np.empty(n_values, X.indices.dtype)
            self._values = np.empty(n_values, self._dtype)

        csr_row_index(
            len(numbers), numbers, X.indptr, X.indices, X.data, self._indices, self._values
        )

    def write(self, out: np.ndarray) -> None:
        """Write the rows into a dense array of their shape and dtype."""
        if csr_row_index is None:
            self._matrix().toarray(out=out)
        else:
            out.fill(0)
            csr_todense(*self.shape, self._indptr, self._indices, self._values, out)

    def columns(self) -> np.ndarray:
        """Return the numbers of the columns with values, in ascending order."""
        return np.unique(self._indices[: self._indptr[-1]]).astype(np.intp)

    def product(self, matrix: np.ndarray) -> np.ndarray:
        """Return the product of the rows and a matrix of shape (n_columns, n_outputs)."""
        n_outputs = matrix.shape[1]
        if csr_row_index is None:
            return self._matrix() @ matrix

        product = np.zeros((self.shape[0], n_outputs), self._dtype)
        arrays = self._indptr, self._indices, self._values, matrix.ravel(), product.ravel()

        if n_outputs == 1:
            csr_matvec(*self.shape, *arrays)
        else:
            csr_matvecs(*self.shape, n_outputs, *arrays)

        return product

    def add_transposed_product(self, matrix: np.ndarray, out: np.ndarray) -> None:
        """
        Add the product of the transposed rows and a matrix to those rows of `out` whose columns
        have values.
        """
        (n_rows, n_columns) = self.shape
        n_outputs = matrix.shape[1]
        if csr_row_index is None:
            out += self._matrix().T @ matrix
            return

        # A matrix by rows is its transposed one by columns.
        arrays = self._indptr, self._indices, self._values, matrix.ravel(), out.reshape(-1)
        if n_outputs == 1:
            csc_matvec(n_columns, n_rows, *arrays)
        else:
            csc_matvecs(n_columns, n_rows, n_outputs, *arrays)

    def _matrix(self):
        return scipy.sparse.csr_matrix((self._values, self._indices, self._indptr), self.shape)
