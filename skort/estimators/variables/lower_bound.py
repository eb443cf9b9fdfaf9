"""A sign that a function has no lower bound: it falls on and on, far from the data."""

import numpy as np

#: The distances of the values for `falls_without_end`, in units of the data.
DISTANCES = 1e3, 1e5, 1e7
# A value that levels off falls by less than this part of its fall before.
_FALLS = 0.9


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
