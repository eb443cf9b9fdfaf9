"""The rows of X in the variables of a training: changed where they are cast, or where a batch takes them."""

import mmap
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

# A copy of so many bytes, in other variables, is too large beside rows that need no cast.
_LARGE = 2**28
# The number of values that are changed at once.
_BLOCK = 2**18


@dataclass(frozen=True, eq=False)
class RowChange:
    """What a training makes of the rows of X: (X - mean) times the inverse scale in the type of X, in its own dtype."""

    #: In float64, as the inverse scale; None: nothing is subtracted.
    mean: np.ndarray | None
    #: None: nothing is multiplied.
    inverse: np.ndarray | np.float64 | None
    dtype: np.dtype

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the rows of the training, C-contiguous; X itself where it is that."""
        mean, inverse = self._numbers(X.dtype)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            if mean is None and inverse is None:
                return np.ascontiguousarray(X, self.dtype)
            changed = np.empty(X.shape, self.dtype)
            # In blocks that stay in the cache between both operations.
            length = max(1, _BLOCK // X.shape[1])
            for start in range(0, len(X), length):
                rows = slice(start, start + length)
                block = X[rows] if mean is None else difference(X[rows], mean)
                np.multiply(block, 1.0 if inverse is None else inverse, out=changed[rows], casting="same_kind")
        return changed

    def in_place(self, rows: np.ndarray) -> None:
        """Change rows that have the dtype of the training, to the same bits."""
        mean, inverse = self._numbers(self.dtype)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            if mean is not None:
                np.subtract(rows, mean, rows)
            np.multiply(rows, inverse, rows)

    def _numbers(self, dtype):
        """Return mean and inverse scale in the type in which rows of a dtype are changed."""
        dtype = np.float32 if dtype == np.float32 else np.float64
        return tuple(None if each is None else each.astype(dtype) for each in (self.mean, self.inverse))


def difference(X: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Return X - offset in the type of X, that of integers in float64: exact, too, where float64 lacks their digits."""
    if X.dtype.kind in "iu" and X.dtype.itemsize == 8 and np.any(np.abs(offset) > 2.0**52):
        of_high = np.floor(offset / 2.0**32)
        return ((X >> 32) - of_high) * 2.0**32 + ((X & 0xFFFFFFFF) - (offset - of_high * 2.0**32))
    return np.subtract(X, offset, dtype=X.dtype if X.dtype == offset.dtype else np.float64)


@dataclass(frozen=True, eq=False)
class UnchangedRows:
    """Rows of X that are read where they are, such as sparse ones or those of a file, and changed in the batch."""

    rows: Any
    change: RowChange

    @property
    def shape(self) -> tuple[int, int]:
        """That of the rows."""
        return self.rows.shape

    def __getitem__(self, part: slice) -> "UnchangedRows":
        return UnchangedRows(self.rows[part], self.change)


def stays_where_it_is(X: Any, dtype: DTypeLike) -> bool:
    """Return whether X, in a dtype, is sparse, or a file or large and needs no cast: no copy is made of it."""
    if scipy.sparse.issparse(X) or X.dtype != dtype or not X.flags.c_contiguous:
        return scipy.sparse.issparse(X)
    return X.nbytes > _LARGE or not is_in_memory(X)


def is_in_memory(rows: Any) -> bool:
    """Return whether rows are an ndarray that is no view of a file."""
    base = rows
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(rows, np.ndarray) and not isinstance(base, mmap.mmap)


def source_rows(X: Any) -> Any:
    """Return X as it is, of `UnchangedRows` or of an array."""
    return X.rows if isinstance(X, UnchangedRows) else X
