"""Arrays of finite numbers that a user gives."""

import numpy as np
from numpy.typing import ArrayLike, DTypeLike


def finite_array(values: ArrayLike, name: str, dtype: DTypeLike) -> np.ndarray:
    """Return a new array of finite numbers in a dtype; the ValueError for anything else begins with `name`."""
    try:
        with np.errstate(over="ignore"):
            array = np.array(values)
            if array.dtype.kind == "c":
                raise TypeError("it is complex.")
            array = array.astype(dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not an array of numbers: {error}") from error
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has numbers that are not finite in {np.dtype(dtype)}.")
    return array
