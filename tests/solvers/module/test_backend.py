"""Solver "module" against solver "graph": the same steps, through ONNX Runtime's on-device API."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import Checkpoint
from skort.exceptions import NotTrainableError, RuntimeNotAvailableError
from skort.networks import TabularNetwork
from skort.objective import ConcomitantHuber
from skort.optimizers import Adam
from skort.runtime.installed import training_api
from skort.solvers import SOLVERS

TRAINS = "Module" in training_api()
needs_training = pytest.mark.skipif(not TRAINS, reason="this runtime is no build for training")
rng = np.random.default_rng(0)
# The last batch is short.
X = rng.normal(size=(95, 4)) * [1, 3, 1, 1] + [0, 2, 0, 0]
score = X @ [1.0, -0.3, 0.5, 0] + 0.2 * rng.normal(size=95)
weights = rng.uniform(0.2, 2, size=95)
OPTIONS = {
    "batch_size": 20,
    "max_iter": 12,
    "tol": None,
    "random_state": 0,
    "learning_rate": "constant",
    "eta0": 0.05,
}
CASES = {
    "linear": (OrtSGDRegressor(LinearRegression()), score),
    "l2": (OrtSGDRegressor(LinearRegression(), penalty="l2", alpha=0.1), score),
    "huber": (OrtSGDRegressor(loss="huber", epsilon=0.3), score),
    "loss with weights": (OrtSGDRegressor(LinearRegression(), loss=ConcomitantHuber()), score),
    "log link": (OrtSGDRegressor(PoissonRegressor()), np.exp(score / 2)),
    "network": (
        OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(6,), activation="tanh")),
        np.stack([score, -score], 1),
    ),
    "two classes": (OrtSGDClassifier(LogisticRegression()), score > 0),
    "three classes": (OrtSGDClassifier(MLPClassifier((6,))), np.digitize(score, [-1, 1])),
}


def fit(case, **options):
    estimator, y = CASES[case]
    estimator = pickle.loads(pickle.dumps(estimator)).set_params(**OPTIONS | options)
    return estimator.fit(X, y, sample_weight=weights)


@needs_training
@pytest.mark.parametrize("standardize", [False, "auto"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam", Adam(weight_decay=0.3)])
@pytest.mark.parametrize("case", CASES)
def test_60_steps_agree_with_solver_graph(case, optimizer, standardize):
    options = {
        "optimizer": optimizer,
        "standardize": standardize,
        "eta0": 0.05 if optimizer == "sgd" else 0.01,
    }
    module, graph = (fit(case, solver=solver, **options) for solver in ("module", "graph"))
    assert module.solver_ == "module"
    for name, expected in graph.weights_.items():
        np.testing.assert_allclose(
            module.weights_[name], expected, rtol=1e-5, atol=1e-5, err_msg=name
        )
    np.testing.assert_allclose(module.loss_curve_, graph.loss_curve_, rtol=1e-5)


@needs_training
@pytest.mark.parametrize("alpha", [0.1, 19.0, 30.0, 5000.0])
@pytest.mark.parametrize("schedule", ["constant", "invscaling", lambda n: 0.05 / (1 + n)])
@pytest.mark.parametrize("case", ["linear", "network"])
def test_an_l2_penalty_of_any_strength(case, schedule, alpha):
    # At the rate 0.05, an explicit step overshoots zero from 20 on, and diverges from 40 on.
    options = {"penalty": "l2", "alpha": alpha, "learning_rate": schedule, "standardize": False}
    if callable(schedule):
        options["eta0"] = "auto"
    module, graph = (fit(case, solver=solver, **options) for solver in ("module", "graph"))
    for name, expected in graph.weights_.items():
        np.testing.assert_allclose(
            module.weights_[name], expected, rtol=2e-5, atol=1e-6, err_msg=name
        )
    np.testing.assert_allclose(module.loss_curve_, graph.loss_curve_, rtol=1e-5)


@needs_training
def test_the_defaults_end_at_the_optimum_on_columns_of_small_numbers():
    # On standardized columns, the penalty of the second weight is 1e4 times as strong.
    rows = X * [1, 1e-2, 1, 1]
    model = LogisticRegression(tol=1e-8, max_iter=1000)
    expected = model.fit(rows, score > 0).predict_proba(rows)
    module = OrtSGDClassifier(LogisticRegression(), solver="module", random_state=0)
    np.testing.assert_allclose(module.fit(rows, score > 0).predict_proba(rows), expected, atol=1e-4)


@needs_training
def test_the_learning_rate_of_every_step_and_the_norm_of_its_gradient():
    options = {"learning_rate": "invscaling", "eta0": 0.2, "power_t": 0.3}
    module, graph = (fit("network", solver=solver, **options) for solver in ("module", "graph"))
    for name in ("eta", "loss", "objective", "gradient_norm"):
        np.testing.assert_allclose(module.history_[name], graph.history_[name], rtol=1e-4)


@needs_training
@pytest.mark.parametrize("optimizer", ["sgd", "adam", Adam(weight_decay=0.3)])
def test_a_training_goes_on_from_a_file_with_the_moments(optimizer, tmp_path):
    path = tmp_path / "training.npz"
    options = {"solver": "module", "optimizer": optimizer, "eta0": 0.01}
    fit("network", **options, max_iter=5, callbacks=[Checkpoint(path)])
    rest = fit("network", **options, callbacks=[Checkpoint(resume_from=path)])
    whole = fit("network", **options)
    for name, expected in whole.weights_.items():
        np.testing.assert_allclose(rest.weights_[name], expected, rtol=1e-6, atol=1e-7)


@needs_training
@pytest.mark.parametrize("optimizer", ["sgd", "adam", Adam(weight_decay=0.3)])
def test_partial_fit_and_pickling(optimizer):
    models = [fit("linear", solver=solver, optimizer=optimizer) for solver in ("module", "graph")]
    y = CASES["linear"][1]
    for i, model in enumerate(models):
        model.partial_fit(X, y)
        models[i] = pickle.loads(pickle.dumps(model)).partial_fit(X, y)
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-5)


@needs_training
@pytest.mark.parametrize(
    "options, message",
    [
        ({"optimizer": "momentum"}, r'solver="module" has no optimizer=Momentum\(\)'),
        ({"max_grad_norm": 1.0}, 'solver="module" has no max_grad_norm=1.0'),
        ({"dtype": "float64"}, 'solver="module" trains in float32 only'),
        ({"penalty": "l1", "alpha": 0.1}, 'solver="module" has no l1 term'),
    ],
)
def test_what_it_cannot_do_is_said(options, message):
    with pytest.raises(ValueError, match=message):
        fit("linear", solver="module", **options)


@needs_training
def test_a_network_with_dropout_names_the_cure():
    model = OrtSGDRegressor(TabularNetwork(dropout=0.1), solver="module")
    message = (
        'has a Dropout .*: use solver="graph"; or take dropout=0 in a TabularNetwork, or export'
    )
    with pytest.raises(NotTrainableError, match=message):
        model.fit(X, score)


@needs_training
def test_its_graphs_are_those_of_the_artifacts():
    graphs = fit("linear", solver="module").training_graphs()
    assert graphs.keys() == {"training", "optimizer"}
    assert [node.op_type for node in graphs["optimizer"].graph.node] == [
        "Squeeze",
        "SGDOptimizerV2",
    ]


def test_auto_never_chooses_it():
    model = fit("linear")
    assert model.solver_ != "module"
    assert "module" not in SOLVERS


@pytest.mark.skipif(TRAINS, reason="this runtime is a build for training")
def test_without_a_build_for_training_it_is_refused():
    with pytest.raises(
        RuntimeNotAvailableError,
        match='solver="module" needs the on-device API; solver="graph" works',
    ):
        fit("linear", solver="module")
