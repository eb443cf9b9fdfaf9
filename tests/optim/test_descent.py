import itertools
import math

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from skort.optim.descent import Limits, Memory, Point, descent


def never(point):
    return False


def quadratic(stiffness):
    """Return 1 + sum of stiffness (w - 1)^2 / 2 as a function of w."""

    def evaluate(weights):
        away = weights - 1
        return Point(weights, 1 + float(stiffness @ away**2) / 2, stiffness * away)

    return evaluate


def test_a_sum_of_distances_ends_at_the_medians():
    values = np.random.RandomState(0).normal(size=(41, 3))

    def evaluate(weights):
        gradient = np.sign(weights - values).mean(axis=0) / 3
        return Point(weights, np.abs(weights - values).mean(), gradient)

    limits = Limits(gradient=0.0, fall=1e-4, n_iterations=20, rise=1e-4)
    end = descent(evaluate, evaluate(np.full(3, 5.0)), limits, 200, 100, never)
    least = np.abs(np.median(values, axis=0) - values).mean()
    assert end.objective == pytest.approx(least, rel=1e-3)


@pytest.mark.parametrize("is_scaled", [True, False])
@pytest.mark.parametrize("distance", [0.0099, 0.0101])
def test_one_more_step_ends_a_descent_near_the_least_objective(is_scaled, distance):
    # Half the square of the gradient is 0.01, and so is the distance in a direction of stiffness 1.
    stiffness = np.array([1.0, 2.0, 0.5])
    evaluate = quadratic(stiffness)
    away = np.array([0.1, 0.05, 0.0])
    start = evaluate(1 + away)
    size = 0.5 * float(start.gradient @ start.gradient) / start.objective / 0.01
    limits = Limits(1e-12, fall=0.0, is_scaled=is_scaled, distance=size * distance)
    points = []
    descent(evaluate, start, limits, 100, 10, points.append)
    assert (len(points) == 1) is (is_scaled and distance > 0.01)


def recording(evaluate):
    """Return a function that does the same, and the points at which it was asked."""
    tried = []

    def recorded(weights):
        tried.append(weights)
        return evaluate(weights)

    return recorded, tried


@pytest.mark.parametrize("distance", [1e-3, 0.5])
@pytest.mark.parametrize("is_scaled", [True, False])
def test_the_first_step_is_the_gradient_where_second_derivatives_are_one(distance, is_scaled):
    evaluate = quadratic(np.ones(3))
    recorded, tried = recording(evaluate)
    limits = Limits(gradient=1e-9, fall=0.0, is_scaled=is_scaled)
    start = evaluate(np.array([1 + distance, 1.0, 1.0]))
    end = descent(recorded, start, limits, 100, 10, never)
    np.testing.assert_allclose(end.weights, 1, atol=1e-9)
    # Otherwise the first trial is a step of length 1.
    np.testing.assert_allclose(tried[0], [1 if is_scaled else distance, 1, 1], rtol=1e-9)
    assert (len(tried) == 1) is is_scaled


def test_the_first_step_is_no_longer_than_one():
    evaluate = quadratic(np.ones(2))
    recorded, tried = recording(evaluate)
    limits = Limits(gradient=1e-9, fall=0.0, is_scaled=True)
    descent(recorded, evaluate(np.array([8.0, 1.0])), limits, 100, 10, never)
    np.testing.assert_allclose(tried[0], [7, 1])


def test_a_smooth_function_ends_where_no_entry_of_the_gradient_is_larger():
    evaluate = quadratic(np.array([1.0, 10.0, 1000.0]))
    path = []
    limits = Limits(gradient=1e-9, fall=0.0)
    end = descent(evaluate, evaluate(np.zeros(3)), limits, 200, 10, path.append)
    assert end is path[-1]
    assert np.abs(end.gradient).max() <= 1e-9 < np.abs(path[-2].gradient).max()
    np.testing.assert_allclose(end.weights, 1, atol=1e-8)


def test_the_objective_of_each_iteration_is_lower():
    evaluate = quadratic(np.array([1.0, 10.0, 1000.0]))
    path = [evaluate(np.zeros(3))]
    descent(evaluate, path[0], Limits(gradient=1e-9, fall=0.0), 200, 10, path.append)
    assert np.all(np.diff([point.objective for point in path[:-3]]) < 0)


def test_a_fall_that_is_small_ends_it():
    evaluate = quadratic(np.array([1.0, 10.0, 1000.0]))

    def objectives(limits):
        path = [evaluate(np.zeros(3))]
        assert descent(evaluate, path[0], limits, 200, 10, path.append) is path[-1]
        return [point.objective for point in path]

    once = objectives(Limits(gradient=0.0, fall=1e-2))
    assert once[-2] - once[-1] <= 1e-2 * once[-1]
    assert all(a - b > 1e-2 * b for a, b in itertools.pairwise(once[:-1]))

    # In two iterations
    twice = objectives(Limits(gradient=0.0, fall=1e-2, n_iterations=2))
    assert twice[-3] - twice[-1] <= 1e-2 * twice[-1]
    assert len(twice) > len(once)

    # As if the objective were larger
    assert len(objectives(Limits(gradient=0.0, fall=1e-2, size=1e6))) == 2


def test_too_few_iterations_and_a_callback_end_it_without_a_point():
    evaluate = quadratic(np.array([1.0, 100.0]))
    start = evaluate(np.zeros(2))
    limits = Limits(gradient=1e-9, fall=0.0)
    path = []
    assert descent(evaluate, start, limits, 3, 10, path.append) is None
    assert len(path) == 3
    assert descent(evaluate, start, limits, 99, 10, lambda point: True) is None


def test_a_minimum_stays():
    evaluate = quadratic(np.ones(4))
    start = evaluate(np.ones(4))
    limits = Limits(gradient=0.0, fall=0.0)
    assert descent(evaluate, start, limits, 50, 10, never) is start


def test_a_wrong_gradient_ends_it_at_the_start():
    def evaluate(weights):
        return Point(weights, float(weights @ weights), -2 * weights)

    start = evaluate(np.ones(2))
    assert descent(evaluate, start, Limits(1e-9, 0.0), 50, 10, never) is start


def test_it_comes_back_from_where_the_function_is_not_finite():
    def evaluate(weights):
        (x,) = weights
        if x <= 0:
            return Point(weights, math.inf, np.array([math.nan]))
        return Point(weights, x - math.log(x), np.array([1 - 1 / x]))

    end = descent(evaluate, evaluate(np.array([1.9])), Limits(1e-9, 0.0), 50, 10, never)
    assert end.weights[0] == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("rise, is_accepted", [(0.0, False), (0.1, False), (0.2, True)])
def test_a_step_may_raise_the_objective_by_a_part_of_it(rise, is_accepted):
    def evaluate(weights):
        return Point(weights, 1 + float(np.abs(weights).sum()), np.sign(weights))

    path = []
    limits = Limits(gradient=1e-9, fall=0.0, rise=rise)
    descent(evaluate, evaluate(np.array([0.4])), limits, 1, 10, path.append)
    # The first trial is -0.6, where the objective is 1.6 instead of 1.4.
    assert path[0].objective == pytest.approx(1.6) if is_accepted else path[0].objective < 1.4


def test_the_memory_knows_the_second_derivatives_in_the_directions_it_went():
    stiffness = np.array([2.0, 5.0, 9.0])
    memory = Memory(3)
    assert memory.is_empty
    np.testing.assert_array_equal(memory.direction(stiffness), -stiffness)

    for step in np.eye(3):
        memory.add(step, stiffness * step)
    gradient = np.array([1.0, -2.0, 3.0])
    np.testing.assert_allclose(memory.direction(gradient), -gradient / stiffness)

    # A change of the gradient against the step is none of a convex function.
    memory.add(np.eye(3)[0], -np.eye(3)[0])
    np.testing.assert_allclose(memory.direction(gradient), -gradient / stiffness)


def test_slopes_tell_of_falls_that_a_small_objective_rounds_away():
    curvature = np.geomspace(1e-3, 1.0, 7)
    rounding = np.random.default_rng(0)
    n_calls = 0

    def evaluate(weights):
        nonlocal n_calls
        n_calls += 1
        exact = 3e-4 + 0.5 * curvature @ weights**2
        # As float32 rounds the mean of losses that are differences of scores.
        return Point(weights, exact + 1e-9 * rounding.normal(), curvature * weights)

    start = evaluate(np.full(7, 1e-2))
    limits = Limits(gradient=1e-9, fall=0.0, rounding=1e-6)
    iterations = []
    end = descent(evaluate, start, limits, 100, 10, lambda point: bool(iterations.append(point)))
    assert np.abs(end.gradient).max() <= 1e-9
    # A line search that believed the objective would try ten lengths, again and again.
    assert n_calls < 1.5 * len(iterations) + 3


def test_directions_of_many_weights_take_one_thread_of_blas(monkeypatch):
    seen = []

    def recorded(x, y):
        seen.extend(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")
        return float(np.sum(x * y))

    monkeypatch.setattr("skort.optim.descent.ddot", recorded)
    memory = Memory(2)
    memory.add(np.ones(20_000), np.full(20_000, 2.0))
    with threadpool_limits(2, user_api="blas"):
        # Half of it, where second derivatives are two.
        np.testing.assert_allclose(memory.direction(np.ones(20_000)), -0.5)
        assert set(seen) == {1}
