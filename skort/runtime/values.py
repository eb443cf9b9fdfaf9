"""OrtValues over numpy arrays."""

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from skort.runtime.installed import load

__all__ = ["borrow", "borrowed_vector", "cpu_memory"]


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


def borrowed_vector(arrays: Iterable[np.ndarray]) -> Any:
    """Return an OrtValueVector over the memory of arrays, or over copies of those that are not C-contiguous."""
    bindings = _bindings()
    vector, memory, borrowed = bindings.OrtValueVector(), cpu_memory(), bindings.OrtValue.ortvalue_from_numpy
    for array in arrays:
        vector.push_back(borrowed(array, memory))
    return vector


@functools.cache
def cpu_memory() -> Any:
    """Return the OrtDevice of the memory of numpy arrays."""
    device = _bindings().OrtDevice
    return device(device.cpu(), device.default_memory(), 0)


@functools.cache
def _bindings():
    load()
    from onnxruntime.capi import _pybind_state

    return _pybind_state
