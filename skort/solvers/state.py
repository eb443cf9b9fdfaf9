"""What the solvers share about their weights and their state: vectors and their parts, arrays saved and put back."""

import numpy as np

__all__ = ["load", "saved", "views"]


def views(flat, arrays):
    """Return the parts of the vector `flat`, by the names and shapes of `arrays`."""
    ends = np.cumsum([a.size for a in arrays.values()])
    parts = np.split(flat, ends[:-1])
    return {name: part.reshape(a.shape) for (name, a), part in zip(arrays.items(), parts, strict=True)}


def saved(arrays):
    """Return copies."""
    return {name: array.copy() for name, array in arrays.items()}


def load(arrays, state):
    """
    Put saved values back, in place.

    Parameters
    ----------
    arrays : dict of str to ndarray
        Overwritten.
    state : dict of str to ndarray

    Raises
    ------
    ValueError
        Where the state is that of another model or of other parameters.
    """
    described, given = (sorted((k, a.shape, a.dtype.str) for k, a in s.items()) for s in (arrays, state))
    if described != given:
        raise ValueError(
            "state does not fit: the training that it is of had another model or dtype, or other parameters optimizer "
            f"or average. It has {given}, expected {described}."
        )
    for name, array in arrays.items():
        array[...] = state[name]
