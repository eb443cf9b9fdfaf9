"""
An optimizer that is none of skort's: Lion (Chen et al., arXiv:2302.06675),
as a user or a contributor adds it.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from skort import OrtSGDClassifier
from skort.common.formulas import function_text
from skort.optim.optimizers.protocol import NamedOptimizer, OptimizerTags, update_signature
from skort.optimizers import Adam
from skort.schedules import Cosine
from skort.solvers import available_solvers

_LION = """
next_weights = weights - eta * Sign(moment * kept_1 + gradient * part_1)
next_moment = moment * kept_2 + gradient * part_2
length = eta
"""


@dataclass(eq=False, repr=False)
class Lion(NamedOptimizer):
    """Steps by the sign of a mean of gradients, each as long as the learning rate."""

    beta_1: float = 0.9
    beta_2: float = 0.99

    def start(self, n_coefficients, n_others, dtype):
        return {"moment": np.zeros(n_coefficients + n_others, dtype)}

    def update(self, weights, gradient, eta, state, scratch):
        moment = state["moment"]
        np.sign(self.beta_1 * moment + (1 - self.beta_1) * gradient, out=scratch)
        weights -= eta * scratch
        moment[...] = self.beta_2 * moment + (1 - self.beta_2) * gradient

    def step_length(self, eta, state):
        return eta

    @property
    def tags(self):
        return OptimizerTags(
            memory=1 / (1 - self.beta_2), first_rates=(1e-3, 2e-3, 1e-3), is_elementwise=True
        )

    def onnx_update(self):
        means = {
            "kept_1": self.beta_1,
            "part_1": 1 - self.beta_1,
            "kept_2": self.beta_2,
            "part_2": 1 - self.beta_2,
        }
        return function_text(update_signature("lion", ["moment"]), _LION, **means)


def network(optimizer, **parameters):
    return OrtSGDClassifier(MLPClassifier((50,)), optimizer=optimizer, random_state=0, **parameters)


def test_a_network_gets_the_same_plan_with_any_optimizer():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    lion, adam = (network(optimizer).fit(X, y) for optimizer in (Lion(), Adam()))
    assert lion.n_iter_ == adam.n_iter_
    assert lion.t_ == adam.t_
    # The rate falls along a cosine to zero, from the one that each declares for networks, and the
    # part of it that 12 and a third weights a row leave.
    part = (8 / ((64 * 50 + 50 * 10) / 300)) ** 0.5
    for model, first in ((lion, 2e-3), (adam, 2e-2)):
        cosine = Cosine(model.t_, part * first).simulate(model.t_)
        last_of_epoch = cosine[model.t_ // model.n_iter_ - 1 :: model.t_ // model.n_iter_]
        np.testing.assert_allclose(model.history_["eta"], last_of_epoch)
    assert lion.score(X, y) == 1.0


@pytest.mark.parametrize("solver", [x for x in ("graph", "agent") if x in available_solvers()])
def test_its_updates_are_those_of_the_formula(solver, rng):
    X = rng.normal(size=(6, 3))
    y = np.arange(6) % 2
    model = network(
        Lion(),
        solver=solver,
        eta0=0.125,
        learning_rate="constant",
        max_iter=1,
        tol=None,
        standardize=False,
    )
    first = network(
        Lion(),
        solver=solver,
        eta0=1e-30,
        learning_rate="constant",
        max_iter=1,
        tol=None,
        standardize=False,
    )
    before, after = (each.fit(X, y).weights_ for each in (first, model))
    # Each weight with a gradient moves by the rate.
    steps = np.concatenate([np.ravel(np.abs(after[name] - before[name])) for name in before])
    assert set(np.round(steps, 5)) <= {0.0, 0.125}
    assert np.mean(steps > 0.1) > 0.5
