"""Fixtures of the tests of `skort.optim.optimizers`."""

import numpy as np
import pytest

from skort.optim.update import Update

N_COEFFICIENTS, N_INTERCEPTS = 5, 2


@pytest.fixture
def gradients():
    """
    Return the function that draws gradients of five coefficients and two intercepts,
    of many sizes.
    """

    def draw(rng, n_steps=30, dtype=np.float64):
        sizes = np.logspace(-3, 3, N_COEFFICIENTS + N_INTERCEPTS)
        return (rng.normal(size=(n_steps, len(sizes))) * sizes).astype(dtype)

    return draw


@pytest.fixture
def descend():
    """Return the function that gives the weights after some updates, and the optimizer's state."""

    def make_updates(optimizer, weights, steps, eta):
        weights = weights.copy()
        rule = Update(optimizer).rule()
        state = rule.start(N_COEFFICIENTS, N_INTERCEPTS, weights.dtype)
        for gradient in steps:
            given = gradient.copy()
            rule.update(weights, gradient, eta, state, scratch=np.full_like(weights, np.nan))
            np.testing.assert_array_equal(gradient, given)
        return weights, state

    return make_updates
