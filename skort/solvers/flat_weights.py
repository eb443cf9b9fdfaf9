"""All weights as one vector, and the parts of this vector."""

import numpy as np

from skort.objective.objective import Objective


def flat(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return the values of all arrays as one new vector."""
    return np.concatenate([a.ravel() for a in arrays.values()])


def views(vector: np.ndarray, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return views of the parts of a vector, with the names and shapes of `arrays`."""
    parts = {}
    start = 0
    for name, array in arrays.items():
        parts[name] = vector[start : start + array.size].reshape(array.shape)
        start += array.size

    return parts


def strengths_vector(
    objective: Objective, weights: dict[str, np.ndarray], norm: str
) -> np.ndarray | None:
    """Return the "l1" or "l2" strengths of all weights as a vector, or None if there is no term."""
    strengths = objective.with_term(norm)
    if not (weights and strengths):
        return None

    vector = np.zeros(sum(weight.size for weight in weights.values()), objective.dtype)
    for name, part in views(vector, weights).items():
        strength = np.asarray(strengths.get(name, 0.0), objective.dtype)
        try:
            part[...] = strength
        except ValueError:
            raise ValueError(
                f"penalty: the strengths of {name!r} have shape {strength.shape}, but the weight "
                f"has {part.shape}. Use one number, or an array that broadcasts to that shape."
            ) from None

    return vector
