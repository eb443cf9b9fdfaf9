"""OrtValues over numpy arrays."""

from skort.runtime.installed import load

__all__ = ["borrow"]


def borrow(array):
    """
    Return an OrtValue that reads and writes the memory of `array`.

    On CPU the value does not keep that memory alive: whoever borrows keeps the array.

    Parameters
    ----------
    array : ndarray
        C-contiguous: of any other array the runtime would make a copy, and see none of its changes.
    """
    if not array.flags.c_contiguous:
        raise ValueError("only a C-contiguous array can be borrowed")
    return load().OrtValue.ortvalue_from_numpy(array)
