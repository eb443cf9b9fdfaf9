import numpy as np
import pytest

from skort.optim.descent import descent


def test_a_sum_of_distances_ends_at_the_medians():
    values = np.random.RandomState(0).normal(size=(41, 3))

    def evaluate(weights):
        return np.abs(weights - values).mean(), np.sign(weights - values).mean(axis=0) / 3

    end = descent(evaluate, np.full(3, 5.0), 200)
    least = np.abs(np.median(values, axis=0) - values).mean()
    assert end.point.objective == pytest.approx(least, rel=1e-3)
    assert not end.is_falling


def test_a_smooth_function_ends_at_its_minimum():
    stiffness = np.array([1.0, 10.0, 1000.0])

    def evaluate(weights):
        return 1 + stiffness @ (weights - 1) ** 2 / 2, stiffness * (weights - 1)

    end = descent(evaluate, np.zeros(3), 200)
    np.testing.assert_allclose(end.point.weights, 1, atol=1e-2)


def test_too_few_iterations_leave_it_falling():
    end = descent(lambda weights: (float(np.abs(weights).sum()), np.sign(weights)), np.ones(2), 3)
    assert end.is_falling
    assert end.point.objective < 2


def test_a_minimum_stays():
    end = descent(lambda weights: (float(weights @ weights), 2 * weights), np.zeros(4), 50)
    np.testing.assert_array_equal(end.point.weights, 0)
    assert not end.is_falling
