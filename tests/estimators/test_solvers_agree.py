"""A solver says who computes, never what: all give the same result, with all defaults, too."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.runtime.installed import training_api
from skort.schedules import Cosine
from skort.solvers import available_solvers

SOLVERS = [name for name in available_solvers() if name != "graph"]
SOLVERS += ["module"] if "Module" in training_api() else []
MODELS = {
    "regressor": (OrtSGDRegressor(optimizer="sgd"), load_diabetes),
    "ridge": (OrtSGDRegressor(Ridge(), optimizer="sgd"), load_diabetes),
    "network": (OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(12,))), load_diabetes),
    "classifier": (OrtSGDClassifier(optimizer="sgd"), load_breast_cancer),
    "logistic regression": (OrtSGDClassifier(LogisticRegression(), optimizer="sgd"), load_digits),
    "network of two classes": (
        OrtSGDClassifier(MLPClassifier((12,), activation="tanh")),
        load_breast_cancer,
    ),
    "network of ten classes": (OrtSGDClassifier(MLPClassifier((12,))), load_digits),
}


def scores(model, X):
    return model.predict(X) if isinstance(model, OrtSGDRegressor) else model.decision_function(X)


def check(estimator, load, solver, tolerance, **parameters):
    """Fit by a solver and by "graph", and compare."""
    X, y = load(return_X_y=True)
    # The last batch is short.
    X, y = X[:-7], y[:-7]
    ours, theirs = (
        clone(estimator).set_params(solver=s, random_state=0, **parameters)
        for s in (solver, "graph")
    )
    ours.fit(X, y), theirs.fit(X, y)
    assert ours.solver_ == solver
    assert (repr(ours.optimizer_), ours.t_, ours.eta0_) == (
        repr(theirs.optimizer_),
        theirs.t_,
        theirs.eta0_,
    )
    expected = scores(theirs, X)
    np.testing.assert_allclose(scores(ours, X), expected, atol=tolerance * np.abs(expected).max())
    return ours


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("model", MODELS)
def test_all_defaults_of_sgd_and_networks(model, solver):
    # Up to 2,754 updates, in which a difference of the last digit may grow.
    check(*MODELS[model], solver, 1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("model", [name for name in MODELS if "network" in name])
def test_a_hundred_updates_of_the_plan_agree_to_rounding(model, solver):
    n_batches = {load_diabetes: 3, load_breast_cancer: 3, load_digits: 9}[MODELS[model][1]]
    fitted = check(*MODELS[model], solver, 1e-5, max_iter=99 // n_batches)
    assert fitted.t_ == 99
    # 2.5 for so few updates, times .4 to 2.5 for the noise of y
    assert 0.4 <= fitted.optimizer_.weight_decay / 2.5 <= 2.5


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "parameters", [{"eta0": 0.004}, {"learning_rate": Cosine(60, 0.05)}, {"optimizer": "sgd"}]
)
def test_a_parameter_means_the_same(parameters, solver):
    check(*MODELS["network"], solver, 1e-5, max_iter=20, **parameters)
