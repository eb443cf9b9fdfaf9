"""The batch of a solver that multiplies sparse rows as they are."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from skort.optim.batches import filler

try:
    # The functions behind the products of scipy.sparse. They add to an array in place, and touch no other rows of it.
    from scipy.sparse._sparsetools import csc_matvec, csc_matvecs, csr_matvec, csr_matvecs, csr_row_index
except ImportError:  # They are private, and may go.
    csr_row_index = None

__all__ = ["SparseBatch", "SparseRows"]


class SparseRows:
    """
    Some rows of a CSR matrix, and their products with dense matrices.

    Parameters
    ----------
    n_rows, n_columns : int
    dtype : dtype
        float32 or float64, of the values and of all matrices that they are multiplied by.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> from skort.optim.sparse_batch import SparseRows
    >>> rows = SparseRows(2, 3, "float64")
    >>> rows.take(scipy.sparse.csr_matrix([[1.0, 0, 0], [0, 2, 0], [0, 0, 3]]), np.array([2, 0]))
    >>> rows.product(np.array([[1.0], [10.0], [100.0]])).ravel()
    array([300.,   1.])
    >>> rows.columns()
    array([0, 2])
    """

    def __init__(self, n_rows: int, n_columns: int, dtype: DTypeLike):
        self.shape = n_rows, n_columns
        self._dtype = np.dtype(dtype)
        self._indptr = np.zeros(n_rows + 1, np.int32)
        self._indices, self._values = np.empty(0, np.int32), np.empty(0, self._dtype)

    def take(self, X: Any, numbers: np.ndarray) -> None:
        """
        Hold other rows.

        Parameters
        ----------
        X : CSR matrix of shape (n, n_columns)
            Of `dtype`. Its indices may be unsorted, and repeated.
        numbers : ndarray of int of shape (n_rows,)
            Those of the rows.
        """
        if csr_row_index is None:
            rows = X[numbers]
            self._indptr, self._indices, self._values = rows.indptr, rows.indices, rows.data
            return
        if self._indptr.dtype != X.indptr.dtype:
            self._indptr = np.zeros(self.shape[0] + 1, X.indptr.dtype)
        numbers = numbers.astype(X.indptr.dtype)
        (X.indptr[1:][numbers] - X.indptr[numbers]).cumsum(out=self._indptr[1:])
        n_values = int(self._indptr[-1])
        if len(self._indices) < n_values or self._indices.dtype != X.indices.dtype:
            self._indices, self._values = np.empty(n_values, X.indices.dtype), np.empty(n_values, self._dtype)
        csr_row_index(len(numbers), numbers, X.indptr, X.indices, X.data, self._indices, self._values)

    def columns(self) -> np.ndarray:
        """Return the numbers of the columns that have values, in their order."""
        return np.unique(self._indices[: self._indptr[-1]]).astype(np.intp)

    def product(self, matrix: np.ndarray) -> np.ndarray:
        """
        Return the product of the rows and a matrix.

        Parameters
        ----------
        matrix : ndarray of shape (n_columns, n_outputs)
            C-contiguous.

        Returns
        -------
        product : ndarray of shape (n_rows, n_outputs)
        """
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
        Add the product of the transposed rows and a matrix to `out`, in place.

        Parameters
        ----------
        matrix : ndarray of shape (n_rows, n_outputs)
            C-contiguous.
        out : ndarray of shape (n_columns, n_outputs)
            C-contiguous. Only its rows that are columns of a value change.
        """
        (n_rows, n_columns), n_outputs = self.shape, matrix.shape[1]
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


class SparseBatch:
    """
    What a solver's next step reads, of which X is sparse.

    Parameters
    ----------
    shape : (int, int)
        Numbers of rows and of columns of X.
    n_outputs : int
        Number of columns of the target.
    dtype : dtype
    """

    in_place = True

    def __init__(self, shape: tuple[int, int], n_outputs: int, dtype: DTypeLike):
        self.rows = SparseRows(*shape, dtype)
        self.target, self.sample_weight = (np.zeros((shape[0], n), dtype) for n in (n_outputs, 1))

    def __len__(self) -> int:
        return len(self.target)

    def begin(self, data: list[Any]) -> None:
        """Begin a training on this data, which stays where it is."""

    def fillers(self, data: list[Any]) -> list[Callable[[np.ndarray], None]]:
        """Return the functions that put the rows of given numbers into the batch."""
        X, *others = data
        if X.indices.dtype != X.indptr.dtype:
            # The constructor makes them the same; somebody has replaced one of them.
            X = scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), X.shape)
        take, outs = self.rows.take, (self.target, self.sample_weight)
        return [lambda numbers: take(X, numbers), *(filler(a, out) for a, out in zip(others, outs, strict=False))]
