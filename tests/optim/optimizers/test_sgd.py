"""Stochastic gradient descent."""

import numpy as np

from skort.optim.optimizers.sgd import SGD


def test_it_remembers_nothing():
    assert SGD().start(3, 1, np.float32) == {}
