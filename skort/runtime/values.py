"""OrtValues over numpy arrays."""

from typing import Any

import numpy as np

from skort.runtime.installed import load

__all__ = ["borrow"]


def borrow(array: np.ndarray) -> Any:
    """
    Return an OrtValue that reads and writes the memory of `array`.

    On the CPU the value does not keep that memory alive: the caller keeps the array.

    Parameters
    ----------
    array : ndarray
        C-contiguous: the runtime would copy any other array, and miss its changes.
    """
    if not array.flags.c_contiguous:
        raise ValueError("only a C-contiguous array can be borrowed")
    return load().OrtValue.ortvalue_from_numpy(array)
