"""Sparse X with many columns: what it trains and predicts is what the same values in an array do."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import HuberRegressor, LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.optimizers import Momentum, Nesterov
from skort.solvers import SPARSE_SOLVERS, available_solvers

N_ROWS, N_COLUMNS = 120, 1000
X = scipy.sparse.random(N_ROWS, N_COLUMNS, density=0.02, format="csr", random_state=0, dtype=np.float32)
SCORE = X @ np.random.RandomState(0).normal(size=N_COLUMNS)
# Of 10 batches: 100 steps.
OPTIONS = {"eta0": 0.05, "tol": None, "max_iter": 10, "batch_size": 12, "random_state": 0, "standardize": False}
SOLVERS = [name for name in SPARSE_SOLVERS if name in available_solvers()]
REGRESSION = ["squared_error", "absolute_error", "huber", "epsilon_insensitive", "quantile", "poisson"]
CLASSIFICATION = ["log_loss", "hinge", "squared_hinge", "modified_huber", "perceptron"]
RULES = [
    {"penalty": None},
    {"penalty": "l2", "alpha": 1e-2},
    {"penalty": "l1", "alpha": 1e-3},
    {"penalty": "elasticnet", "alpha": 1e-3, "l1_ratio": 0.5},
    {"penalty": "l2", "alpha": 1e-2, "average": True},
    {"penalty": "l2", "alpha": 1e-2, "average": 30},
    {"penalty": "l2", "alpha": 1e-2, "max_grad_norm": 0.05},
    {"optimizer": "momentum", "penalty": None},
    {"optimizer": "momentum", "penalty": "l2", "alpha": 1e-2, "average": 30},
    {"optimizer": Nesterov(0.5), "penalty": "l2", "alpha": 1e-2},
    {"optimizer": "nesterov", "penalty": "l2", "alpha": 1e-2, "average": True, "learning_rate": "invscaling"},
    {"optimizer": Momentum(1.0), "penalty": None, "eta0": 1e-3},
    {"optimizer": "adam", "penalty": "l2", "alpha": 1e-2, "eta0": 1e-2},
    # Steps of this l2 term are implicit.
    {"optimizer": "momentum", "penalty": "l2", "alpha": 0.3, "eta0": 0.4, "learning_rate": "invscaling"},
]


def labels(n_classes):
    return np.digitize(SCORE, np.quantile(SCORE, np.linspace(0, 1, n_classes + 1)[1:-1]))


def assert_same(model, y, *, rtol=1e-5):
    """Fit a model to X as it is and as an array, and compare all that a training leaves."""
    dense = model.fit(X.toarray(), y)
    weights, history, predictions = dense.weights_, dense.history_, dense.predict(X.toarray())
    sparse = model.fit(X, y)
    for name, w in sparse.weights_.items():
        np.testing.assert_allclose(w, weights[name], atol=rtol * np.abs(weights[name]).max(), rtol=0)
    for column in ("objective", "loss", "gradient_norm"):
        np.testing.assert_allclose(sparse.history_[column], history[column], rtol=2e-5, atol=1e-6 * history[column][0])
    np.testing.assert_allclose(sparse.predict(X), predictions, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", REGRESSION)
def test_every_loss_of_a_regressor(loss, solver):
    y = np.abs(SCORE) if loss == "poisson" else SCORE
    assert_same(OrtSGDRegressor(loss=loss, solver=solver, **OPTIONS), y)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", CLASSIFICATION)
def test_every_loss_of_a_classifier(loss, n_classes, solver):
    assert_same(OrtSGDClassifier(loss=loss, solver=solver, **OPTIONS), labels(n_classes))


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-11)])
def test_every_rule(rule, dtype, rtol):
    assert_same(OrtSGDClassifier(dtype=dtype, **{**OPTIONS, **rule}), labels(3), rtol=rtol)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("rule", [RULES[1], RULES[2], RULES[10]], ids=repr)
@pytest.mark.parametrize(
    "model, y",
    [
        (OrtSGDClassifier(MLPClassifier((6,), activation="tanh")), labels(3)),
        (OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(6, 5))), np.column_stack([SCORE, -SCORE])),
        (OrtSGDRegressor(HuberRegressor()), SCORE),
        (OrtSGDRegressor(LinearRegression(fit_intercept=False)), SCORE),
        (OrtSGDClassifier(make_pipeline(MaxAbsScaler(), LogisticRegression())), labels(2)),
        (OrtSGDClassifier(MLPClassifier((6,))), np.column_stack([labels(2), 1 - labels(2)])),
    ],
    ids=["network", "outputs", "scale", "no intercept", "pipeline", "labels"],
)
def test_every_kind_of_model(model, y, rule, solver):
    assert_same(model.set_params(solver=solver, **{**OPTIONS, **rule}), y, rtol=2e-5)
