"""Averages against the mean that they are."""

import numpy as np
import pytest
from skort.descent.averaging import Average


def averaged(first, weights):
    average = Average(first, weights.shape[1])
    for w in weights:
        if average.count():
            average.add(w)
    return average


@pytest.mark.parametrize("first, begin", [(True, 0), (1, 0), (2, 1), (7, 6)])
def test_mean_of_the_weights_from_an_update_on(first, begin, rng):
    weights = rng.normal(size=(7, 3)).astype("float32")
    mean = averaged(first, weights).mean(weights[-1])
    assert mean.dtype == "float32"
    np.testing.assert_allclose(mean, weights[begin:].mean(axis=0, dtype=float), rtol=1e-6)


@pytest.mark.parametrize("first", [False, 0, 8])
def test_before_it_has_begun_the_last_weights(first, rng):
    weights = rng.normal(size=(7, 3))
    mean = averaged(first, weights).mean(weights[-1])
    np.testing.assert_array_equal(mean, weights[-1])
    assert not np.shares_memory(mean, weights)


def test_many_updates_of_float32_lose_no_digits():
    weights = np.full((100_000, 1), 1e-3, "float32")
    assert averaged(True, weights).mean(weights[-1])[0] == weights[0, 0]
