"""Fits that share a session, or get one from each other, are those that make their own."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor
from skort.objective import Huber
from skort.runtime.cache import forget

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = X[:, 0] - X[:, 1] ** 2
OPTIONS = {
    "learning_rate": "constant",
    "max_iter": 5,
    "tol": None,
    "batch_size": 10,
    "random_state": 0,
}
NUMBERS = [
    {"alpha": alpha, "eta0": eta0, "loss": Huber(epsilon)}
    for alpha, eta0, epsilon in RNG.uniform(0.001, 0.1, size=(12, 3)).tolist()
]


def weights(model):
    return np.concatenate([array.ravel() for array in model.weights_.values()])


def fitted(model, numbers):
    return weights(clone(model).set_params(**numbers).fit(X, Y))


@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
@pytest.mark.parametrize(
    "inner", [None, MLPRegressor(hidden_layer_sizes=(5,))], ids=["linear", "MLP"]
)
def test_fits_in_threads_are_those_one_by_one(solver, inner, penalty):
    model = OrtSGDRegressor(inner, solver=solver, penalty=penalty, **OPTIONS)
    alone = []
    for numbers in NUMBERS:
        forget()
        alone.append(fitted(model, numbers))
    forget()
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda numbers: fitted(model, numbers), NUMBERS))
    assert len({array.tobytes() for array in alone}) == len(NUMBERS)
    for ours, expected in zip(together, alone, strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_adam_begins_without_the_memory_of_the_fit_before(solver):
    model = OrtSGDRegressor(solver=solver, optimizer="adam", eta0=0.01, **OPTIONS)
    first, second = (weights(clone(model).fit(X, Y)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.filterwarnings("ignore:On these rows, the fitted model is worse than a constant")
def test_frozen_weights_are_those_of_each_fit(solver):
    results = []
    for seed in (0, 1):
        given = MLPRegressor(hidden_layer_sizes=(5,), max_iter=1, random_state=seed)
        with pytest.warns(Warning, match="Maximum iterations"):
            given.fit(X, Y)
        options = {**OPTIONS, "eta0": 0.01, "standardize": False, "penalty": None}
        options["early_stopping"] = False
        model = OrtSGDRegressor(
            FrozenEstimator(given), solver=solver, trainable=["coefficient1"], **options
        ).fit(X, Y)
        np.testing.assert_allclose(model.weights_["coefficient"], given.coefs_[0], rtol=1e-6)
        results.append(weights(model))
        forget()
        np.testing.assert_array_equal(weights(clone(model).fit(X, Y)), results[-1])
    assert not np.array_equal(*results)


def test_a_solver_that_is_still_used_keeps_its_session(solver):
    stream = OrtSGDRegressor(solver=solver, eta0=0.01, **OPTIONS).partial_fit(X, Y)
    alone = weights(clone(stream).fit(X, Y))
    for _ in range(2):
        np.testing.assert_array_equal(weights(clone(stream).fit(X, Y)), alone)
    expected = (
        OrtSGDRegressor(solver=solver, eta0=0.01, **OPTIONS).partial_fit(X, Y).partial_fit(X, Y)
    )
    np.testing.assert_array_equal(weights(stream.partial_fit(X, Y)), weights(expected))
