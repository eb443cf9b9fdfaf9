"""Optimizers against their formulas."""

import numpy as np

from skort.descent.optimizers import SGD


def test_sgd_updates_in_place():
    weights = np.array([1.0, -2.0, 3.0])
    gradient = np.array([10.0, 0.0, -5.0])
    given = weights
    SGD().update(weights, gradient, 0.1, state={}, scratch=np.empty(3))
    np.testing.assert_array_equal(gradient, [10.0, 0.0, -5.0])
    assert weights is given
    np.testing.assert_allclose(weights, [0.0, -2.0, 3.5])
