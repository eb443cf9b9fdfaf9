"""Arrays of other libraries as numpy arrays over the same memory."""

from typing import Any

import numpy as np
import scipy.sparse

__all__ = ["as_array"]

# What libraries raise where memory cannot be shared: other devices, tensors with a gradient, types without a DLPack.
_REFUSALS = (BufferError, RuntimeError, TypeError, ValueError, AttributeError)


def as_array(value: Any, name: str) -> Any:
    """
    Return a value as a numpy array, without a copy where another library shares its memory through DLPack.

    Parameters
    ----------
    value : array-like
        Tensors of torch and arrays of JAX, on the CPU. Sparse matrices and DataFrames are returned as they are.
    name : str
        That of the parameter, for the error.

    Raises
    ------
    ValueError
        Where the library does not give its numbers, such as those on another device.

    Examples
    --------
    >>> from skort.estimators.data.dlpack import as_array
    >>> as_array([[1.0, 2.0]], "X")
    array([[1., 2.]])
    """
    if isinstance(value, np.ndarray) or scipy.sparse.issparse(value) or hasattr(value, "iloc"):
        return value
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except _REFUSALS:
            pass  # numpy's own way below may do, and its error says more.
    try:
        return np.asarray(value)
    except _REFUSALS as error:
        raise ValueError(f"{name} cannot be read as a numpy array: {error}") from error
