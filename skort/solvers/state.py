"""What the solvers share about their weights and their state: vectors and their parts, arrays saved and put back."""

import numpy as np

__all__ = ["everything", "flat", "load", "saved", "strengths_vector", "views"]


def flat(arrays):
    """Return the values of all arrays as one new vector."""
    return np.concatenate([a.ravel() for a in arrays.values()])


def views(vector, arrays):
    """Return the parts of a vector, by the names and shapes of `arrays`: the inverse of `flat`, without a copy."""
    parts, start = {}, 0
    for name, array in arrays.items():
        parts[name] = vector[start : start + array.size].reshape(array.shape)
        start += array.size
    return parts


def strengths_vector(objective, weights, norm):
    """
    Return how strong one term of the penalty is for every weight.

    Parameters
    ----------
    objective : Objective
    weights : dict of str to ndarray
    norm : {"l1", "l2"}

    Returns
    -------
    strengths : ndarray of shape (n_weights,) or None
        In the order of `flat`; None where there is no such term.
    """
    strengths = {name: getattr(strength, norm) for name, strength in objective.strengths.items()}
    if not any(strengths.values()):
        return None
    return flat({name: np.full(w.shape, strengths.get(name, 0.0), objective.dtype) for name, w in weights.items()})


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
