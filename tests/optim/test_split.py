import numpy as np
import pytest

from skort.optim.descent import Point
from skort.optim.split import product_descent, split_descent

TARGET = np.array([3.0, -2.0, 0.5, -0.1, 4.0])
L1 = np.array([1.0, 0.5, 0.5, 0.3, 0.0])


def distance(weights):
    """Half the squared distance from a target, with the l1 term."""
    away = weights - TARGET
    return Point(weights, float(away @ away) / 2 + float(L1 @ np.abs(weights)), away)


@pytest.mark.parametrize("start", [np.zeros(5), np.array([-1.0, 2.0, 3.0, -4.0, 5.0])])
def test_the_least_distance_has_soft_thresholds_and_exact_zeros(start):
    best = split_descent(distance, L1, distance(start), 100, 10, lambda _: None)
    expected = np.sign(TARGET) * np.maximum(np.abs(TARGET) - L1, 0)
    np.testing.assert_allclose(best.weights, expected, atol=1e-6)
    assert best.weights[2] == best.weights[3] == 0
    assert best.objective == pytest.approx(distance(expected).objective)


def test_weights_within_rounding_of_zero_are_zero():
    start = np.array([1.0, 1.0, 1e-7, 1e-6, 1.0])

    def evaluate(weights):
        point = distance(weights)
        return point._replace(objective=float(np.float32(point.objective)))

    best = split_descent(evaluate, L1, evaluate(start), 1, 10, lambda _: None)
    np.testing.assert_array_equal(best.weights == 0, [False, False, True, True, False])


def test_few_evaluations_end_a_descent():
    stiff = np.logspace(0, 6, 5)

    def evaluate(weights):
        away = weights - 1
        return Point(
            weights, float(stiff @ away**2) / 2 + float(L1 @ np.abs(weights)), stiff * away
        )

    points = []
    split_descent(evaluate, L1, evaluate(np.zeros(5)), 3, 10, points.append)
    assert 3 <= len(points) <= 25


@pytest.mark.parametrize(
    "start", [np.zeros(5), np.full(5, 1e-12), np.array([-1.0, 2.0, 3.0, -4.0, 5.0])]
)
def test_a_product_ends_at_the_kinks_of_the_least_absolute_distance(start):
    slopes = np.array([2.0, 1.0, 0.1, 0.05, 3.0])

    def evaluate(weights):
        away = weights - TARGET
        objective = float(slopes @ np.abs(away)) + float(L1 @ np.abs(weights))
        return Point(weights, objective, slopes * np.sign(away))

    point = product_descent(evaluate, L1, evaluate(start), 2000, 10, lambda _: False)

    # A slope below the strength of the l1 term does not hold a weight at its target.
    expected = np.where(slopes > L1, TARGET, 0)
    np.testing.assert_allclose(point.weights, expected, atol=1e-3)
    np.testing.assert_array_equal(point.weights == 0, expected == 0)
    assert point.objective == pytest.approx(evaluate(expected).objective, rel=1e-3)


@pytest.mark.parametrize("start", [np.zeros(5), np.full(5, 1e-12), np.ones(5)])
def test_all_weights_of_a_product_may_be_zero(start):
    slopes = np.array([0.9, 0.4, 0.4, 0.2, 0.1])
    strengths = np.full(5, 1.0)

    def evaluate(weights):
        away = weights - TARGET
        objective = float(slopes @ np.abs(away)) + float(strengths @ np.abs(weights))
        return Point(weights, objective, slopes * np.sign(away))

    point = product_descent(evaluate, strengths, evaluate(start), 2000, 10, lambda _: False)
    np.testing.assert_array_equal(point.weights, 0)
