"""The weights of a problem as one vector."""

import numpy as np

from skort.solvers.base import flat, views


def test_views_are_the_parts_of_a_vector():
    arrays = {"W": np.array([[1.0, 2.0], [3.0, 4.0]]), "b": np.array([5.0])}
    vector = flat(arrays)
    assert vector.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]

    parts = views(vector, arrays)
    parts["W"][1, 0] = 7.0
    assert vector[2] == 7.0 and arrays["W"][1, 0] == 3.0
    assert parts["b"].tolist() == [5.0]
