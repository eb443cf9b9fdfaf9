"""The tolerances and the tests by which custom losses and penalties are found faulty."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

Functions = TypeVar("Functions")

#: A derivative that is off by a larger part is one of another function.
WRONG = 0.1
#: The steps of finite differences, in units of the data or of the weights.
STEPS = {"float64": 1e-6, "float32": 1e-2}
#: The part of a number that may be rounding.
DIGITS = {"float64": 1e-12, "float32": 1e-5}
#: The distances of the values for `falls_without_end`, in the same units.
DISTANCES = 1e3, 1e5, 1e7
# A value that levels off falls by less than this part of its fall before.
_FALLS = 0.9


def most_exact(make: Callable[[str], Functions], run: Callable[[Functions], object]) -> Functions:
    """Return functions in float64, or in float32 if an operator has no other kernel."""
    functions = make("float64")
    try:
        run(functions)
    except Exception:  # an error of the runtime is no ValueError
        return make("float32")
    return functions


def falls_without_end(values: np.ndarray, rounding: np.ndarray) -> np.ndarray:
    """
    Return whether each function goes on falling.

    `values` has a row for each of the three distances, and `rounding` what may be rounding in them.
    """
    far, farther, farthest = values
    with np.errstate(all="ignore"):
        is_falling = far - farther > rounding
        goes_on = farther - farthest > _FALLS * (far - farther)
        return (is_falling & goes_on) | np.isneginf(farthest)
