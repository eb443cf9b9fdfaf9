"""Gradient descent with Nesterov's momentum."""

import numpy as np

from skort.optim.optimizers.momentum import MomentumState
from skort.optim.optimizers.nesterov import Nesterov


def test_the_weights_are_one_step_ahead_of_the_velocity(rng, descend, gradients):
    first, second = steps = gradients(rng, n_steps=2)
    weights, state = descend(Nesterov(momentum=0.5), np.zeros(7), steps, 0.1)
    velocity = -0.05 * first - 0.1 * second
    np.testing.assert_allclose(MomentumState(**state).velocity, velocity)
    np.testing.assert_allclose(weights, -0.15 * first + 0.5 * velocity - 0.1 * second)
