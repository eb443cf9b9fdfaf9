"""What the solvers share about their weights and their state: vectors and their parts, arrays saved and put back."""

import numpy as np

__all__ = ["everything", "flat", "load", "saved", "views"]


def flat(arrays):
    """Return the values of all arrays as one new vector."""
    return np.concatenate([a.ravel() for a in arrays.values()])


def views(vector, arrays):
    """Return the parts of a vector, by the names and shapes of `arrays`: the inverse of `flat`, without a copy."""
    ends = np.cumsum([a.size for a in arrays.values()])
    parts = np.split(vector, ends[:-1])
    return {name: part.reshape(a.shape) for (name, a), part in zip(arrays.items(), parts, strict=True)}


def everything(weights, memory, average):
    """Return the arrays that training goes on from, by name: weights, what the optimizer remembers, and the average."""
    return {"weights": weights, **{f"optimizer_{name}": array for name, array in memory.items()}, **average.arrays()}


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
