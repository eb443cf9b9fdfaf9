"""Gradient descent with a velocity."""

import numpy as np

from skort.optim.optimizers.momentum import Momentum, MomentumState


def test_it_remembers_the_velocities(rng, descend, gradients):
    first, second = steps = gradients(rng, n_steps=2)
    _, state = descend(Momentum(momentum=0.5), np.zeros(7), steps, 0.1)
    memory = MomentumState(**state)
    np.testing.assert_allclose(memory.velocity, -0.05 * first - 0.1 * second)
    np.testing.assert_allclose(memory.unit_velocity, [0.05 + 0.1])
