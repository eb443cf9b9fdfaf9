"""Which updates touch few weights."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor
from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.objective import L1, L2, SquaredError
from skort.objective.objective import Objective
from skort.optim.optimizers import SGD, Adam, Nesterov
from skort.optim.update import Update
from skort.solvers import has_sparse_steps
from skort.solvers.base import Problem
from skort.solvers.sparse.updates import FullUpdate, LazyUpdate, make_update

SHAPE = (6, 1)


def update_of(update, penalty=None):
    graph = initial_score_graph(
        LinearRegression(), ScoreSpec(6, 1, "float64"), np.random.RandomState(0)
    )
    objective = Objective(SquaredError(), penalty, graph.coefficients, 1, np.dtype("float64"))
    return make_update(Problem(graph, objective, update, 4, row_factor=1.0), SHAPE, 1.0)


@pytest.mark.parametrize(
    "update, penalty",
    [
        (Update(SGD()), None),
        (Update(SGD(), largest_rate=0.1), L2(0.5)),
        (Update(Nesterov(), average=True, largest_rate=0.1), L2(0.1)),
        (Update(SGD(), largest_rate=0.1), L2(np.full((6, 1), 0.5))),
    ],
)
def test_sgd_and_momentum_are_lazy_where_all_weights_have_the_same_l2_term(update, penalty):
    assert isinstance(update_of(update, penalty), LazyUpdate)


@pytest.mark.parametrize(
    "update, penalty",
    [
        (Update(Adam()), None),
        (Update(SGD(), max_grad_norm=1.0), None),
        (Update(SGD(), largest_rate=0.1), L1(0.5)),
        (Update(SGD(), largest_rate=0.1), L2(np.arange(6.0)[:, None])),
        # Its steps may be implicit.
        (Update(SGD(), largest_rate=10.0), L2(0.5)),
        (Update(SGD()), L2(0.5)),
    ],
)
def test_other_updates_are_those_of_all_weights(update, penalty):
    assert isinstance(update_of(update, penalty), FullUpdate)


def _lazy_adam(X, y, eta, alpha, batch_size, n_epochs):
    """
    Return the coefficients, intercept and moments of a least squares fit by the formula,
    batch after batch.
    """
    n, d = X.shape
    w, first, second = (np.zeros(d + 1) for _ in range(3))
    t = 0
    for _ in range(n_epochs):
        for start in range(0, n, batch_size):
            rows = X[start : start + batch_size]
            residual = rows @ w[:d] + w[d] - y[start : start + batch_size]
            touched = np.append(np.unique(rows.indices), d)
            gradient = np.append(rows.T @ residual, residual.sum()) / rows.shape[
                0
            ] + alpha * np.append(w[:d], 0)
            t += 1
            g = gradient[touched]
            first[touched] += 0.1 * (g - first[touched])
            second[touched] += 0.001 * (g**2 - second[touched])
            length = eta * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            w[touched] -= length * first[touched] / (np.sqrt(second[touched]) + 1e-8)
    return w[:d], w[d]


@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_lazy_adam_is_the_formula_on_the_columns_of_each_batch(alpha, solver):
    if not has_sparse_steps(solver):
        pytest.skip("its batches are dense")
    X = scipy.sparse.random(60, 1500, density=0.01, format="csr", random_state=0)
    y = np.random.default_rng(0).normal(size=60)
    options = {
        "optimizer": Adam(lazy=True),
        "learning_rate": "constant",
        "eta0": 0.05,
        "penalty": "l2",
        "alpha": alpha,
    }
    steps = {
        "batch_size": 20,
        "shuffle": False,
        "standardize": False,
        "max_iter": 8,
        "tol": None,
        "dtype": "float64",
    }
    model = OrtSGDRegressor(solver=solver, **options, **steps).fit(X, y)
    coef, intercept = _lazy_adam(X, y, 0.05, alpha, 20, 8)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-9)
    untouched = np.setdiff1d(np.arange(1500), X.indices)
    assert len(untouched) > 100
    np.testing.assert_array_equal(model.coef_[untouched], 0)


def test_lazy_adam_of_batches_that_touch_all_columns_is_adam():
    # One column of ones for each row number modulo 40, so that a batch of 40 rows touches all of
    # 1,000 columns.
    X = scipy.sparse.csr_matrix(np.tile(np.repeat(np.eye(40), 25, axis=1), (4, 1)))
    y = np.random.default_rng(0).normal(size=(160, 2))
    steps = {
        "batch_size": 40,
        "shuffle": False,
        "max_iter": 5,
        "tol": None,
        "random_state": 0,
        "dtype": "float64",
    }
    network = MLPRegressor(hidden_layer_sizes=(4,))
    exact, lazy = (
        OrtSGDRegressor(
            network, optimizer=Adam(lazy=is_lazy), eta0=0.01, learning_rate="constant", **steps
        ).fit(X, y)
        for is_lazy in (False, True)
    )
    for name, array in exact.weights_.items():
        np.testing.assert_allclose(lazy.weights_[name], array, rtol=1e-10, atol=1e-12)
    for name in ("loss", "objective"):
        np.testing.assert_allclose(lazy.history_[name], exact.history_[name], rtol=1e-10)


def test_lazy_adam_goes_on_to_the_same_bytes_after_pickling():
    X = scipy.sparse.random(60, 1500, density=0.01, format="csr", random_state=0, dtype=np.float32)
    y = np.random.default_rng(0).normal(size=60)
    options = {
        "optimizer": Adam(lazy=True),
        "learning_rate": "constant",
        "eta0": 0.05,
        "random_state": 0,
    }
    whole = OrtSGDRegressor(**options).partial_fit(X, y).partial_fit(X, y)
    parts = pickle.loads(pickle.dumps(OrtSGDRegressor(**options).partial_fit(X, y))).partial_fit(
        X, y
    )
    assert parts.onnx_.SerializeToString() == whole.onnx_.SerializeToString()
