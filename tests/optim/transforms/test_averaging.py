"""Averages against the mean that they are."""

import numpy as np
import pytest

from skort.optim.optimizers import SGD
from skort.optim.update import Update


class Given:
    """Makes given weights of an update."""

    def __init__(self, weights):
        self.weights = iter(weights)

    def start(self, n_coefficients, n_others, dtype):
        return {}

    def update(self, weights, gradient, eta, state, scratch):
        weights[...] = next(self.weights)

    def step_length(self, eta, state):
        return eta


def averaged(first, weights):
    """Return the result after updates to these weights, and the weights of the last one."""
    rule, current = Update(Given(weights), average=first).rule(), np.zeros_like(weights[0])
    state = rule.start(len(current), 0, current.dtype)
    for _ in weights:
        rule.update(current, np.zeros_like(current), 1.0, state, np.empty_like(current))
    return rule.result(current, state), current


@pytest.mark.parametrize("first, begin", [(True, 0), (1, 0), (2, 1), (7, 6)])
def test_mean_of_the_weights_from_an_update_on(first, begin, rng):
    weights = rng.normal(size=(7, 3)).astype("float32")
    mean, _ = averaged(first, weights)
    assert mean.dtype == "float32"
    np.testing.assert_allclose(mean, weights[begin:].mean(axis=0, dtype=float), rtol=1e-6)


@pytest.mark.parametrize("first", [False, 0, 8])
def test_before_it_has_begun_the_last_weights(first, rng):
    weights = rng.normal(size=(7, 3))
    mean, last = averaged(first, weights)
    np.testing.assert_array_equal(mean, weights[-1])
    assert not np.shares_memory(mean, last)


def test_many_updates_of_float32_lose_no_digits():
    weights = np.full((100_000, 1), 1e-3, "float32")
    assert averaged(True, weights)[0][0] == weights[0, 0]


def test_its_state_is_beside_that_of_the_optimizer():
    state = Update(SGD(), average=3).rule().start(2, 1, np.dtype("float32"))
    assert {name: (array.dtype, array.tolist()) for name, array in state.items()} == {
        "average_n_updates": (np.int64, [0]),
        "average_sum": (np.float64, [0, 0, 0]),
    }
