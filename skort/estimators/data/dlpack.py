"""Arrays of other libraries as numpy arrays over the same memory."""

from typing import Any

import numpy as np
import scipy.sparse

# What libraries raise where memory cannot be shared: other devices, tensors with a gradient, types without a DLPack.
_REFUSALS = (BufferError, RuntimeError, TypeError, ValueError, AttributeError)


def as_array(value: Any, name: str) -> Any:
    """Return a value as a numpy array, without a copy where another library shares its memory through DLPack."""
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
