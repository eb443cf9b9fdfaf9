"""Which solver can do what, as it declares it: tests of all solvers ask here, and name none."""

import numpy as np
from sklearn.base import BaseEstimator

from skort.optim.optimizers import SGD
from skort.optim.update import Update
from skort.solvers import ON_REQUEST, SOLVERS, check_solver

__all__ = ["OwnOptimizer", "derives_given", "makes_updates_in_numpy", "takes"]


class OwnOptimizer(BaseEstimator):
    """Without ONNX text."""

    def start(self, n_coefficients, n_others, dtype):
        return {}

    def update(self, weights, gradient, eta, state, scratch):
        weights -= eta * gradient

    def step_length(self, eta, state):
        return eta


def takes(solver, optimizer=None, max_grad_norm=None, dtype="float32"):
    """Return whether a solver makes the updates of an optimizer, by default SGD, in a dtype."""
    update = Update(SGD() if optimizer is None else optimizer, max_grad_norm)
    try:
        check_solver(solver, np.dtype(dtype), update)
    except ValueError:
        return False
    return True


def makes_updates_in_numpy(solver):
    """Return whether a solver takes an optimizer that has its update in numpy only."""
    return takes(solver, OwnOptimizer())


def derives_given(solver):
    """Return whether a solver derives the gradient even if a loss or a penalty gives one."""
    return {**SOLVERS, **ON_REQUEST}[solver].derives_given
