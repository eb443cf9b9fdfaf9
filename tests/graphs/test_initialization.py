"""Converted models and stand-ins against the scikit-learn models that they come from."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort.graphs.initialization import initial_score_graph, initial_stand_in
from skort.graphs.score_graph import ScoreSpec, Weights
from skort.graphs.standardized import linear_weights

MODELS = [
    LinearRegression(),
    LinearRegression(fit_intercept=False),
    *[
        MLPRegressor(hidden_layer_sizes=(6, 4), activation=a)
        for a in ("identity", "logistic", "tanh", "relu")
    ],
    MLPRegressor(hidden_layer_sizes=()),
]


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-13)])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_score_is_the_templates_prediction(model, n_outputs, dtype, rtol, rng, run_onnx):
    graph = initial_score_graph(model, ScoreSpec(5, n_outputs, dtype), np.random.RandomState(3))
    template = initial_stand_in(model, 5, n_outputs, np.random.RandomState(3))
    X = rng.normal(size=(9, 5)).astype(dtype)
    (score,) = run_onnx(graph.model, X=X).values()
    assert score.shape == (9, n_outputs)
    assert score.dtype == dtype
    np.testing.assert_allclose(
        score, template.predict(X).reshape(9, n_outputs), rtol=rtol, atol=rtol
    )


def test_weights_of_a_neural_network_by_name():
    graph = initial_score_graph(
        MLPRegressor(hidden_layer_sizes=(6, 4)),
        ScoreSpec(5, 2, "float32"),
        np.random.RandomState(3),
    )
    assert graph.trained == Weights(
        ("coefficient", "coefficient1", "coefficient2"),
        ("intercepts", "intercepts1", "intercepts2"),
    )
    assert {name: w.shape for name, w in graph.weights().items()} == {
        "coefficient": (5, 6),
        "coefficient1": (6, 4),
        "coefficient2": (4, 2),
        "intercepts": (1, 6),
        "intercepts1": (1, 4),
        "intercepts2": (1, 2),
    }
    assert linear_weights(graph) is None


def test_only_nodes_that_a_step_needs():
    graph = initial_score_graph(
        MLPRegressor(hidden_layer_sizes=(6,)), ScoreSpec(5, 2, "float32"), np.random.RandomState(3)
    )
    assert [node.op_type for node in graph.model.graph.node] == [
        "MatMul",
        "Add",
        "Relu",
        "MatMul",
        "Add",
    ]


def test_graphs_of_one_structure_have_their_own_weights():
    first, second = (
        initial_score_graph(
            MLPRegressor(hidden_layer_sizes=(6,)),
            ScoreSpec(5, 2, "float32"),
            np.random.RandomState(seed),
        )
        for seed in (0, 1)
    )
    for graph, seed in ((first, 0), (second, 1)):
        template = initial_stand_in(
            MLPRegressor(hidden_layer_sizes=(6,)), 5, 2, np.random.RandomState(seed)
        )
        np.testing.assert_array_equal(
            graph.weights()["coefficient"], template.coefs_[0].astype(np.float32)
        )
        np.testing.assert_array_equal(
            graph.weights()["intercepts1"].ravel(), template.intercepts_[1].astype(np.float32)
        )


def test_graphs_of_one_structure_share_it():
    model, spec = MLPRegressor(hidden_layer_sizes=(6,)), ScoreSpec(5, 2, "float32")
    first, second = (
        initial_score_graph(model, spec, np.random.RandomState(seed)) for seed in (0, 1)
    )
    assert first.structure is second.structure
    assert (
        initial_score_graph(model, ScoreSpec(4, 2, "float32"), np.random.RandomState(0)).structure
        != first.structure
    )


@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
@pytest.mark.parametrize("hidden", [(), (5,), 5, (6, 4), [3]])
def test_neural_networks_start_where_scikit_learns_do(hidden, activation, rng):
    X, y = rng.normal(size=(8, 3)), rng.normal(size=(8, 2))
    # A learning rate of almost zero: after one step the weights are still the initial ones.
    theirs = MLPRegressor(
        hidden_layer_sizes=hidden,
        activation=activation,
        solver="sgd",
        learning_rate_init=1e-300,
        random_state=7,
    ).partial_fit(X, y)
    ours = initial_stand_in(
        MLPRegressor(hidden_layer_sizes=hidden, activation=activation),
        3,
        2,
        np.random.RandomState(7),
    )
    for a, b in zip(
        ours.coefs_ + ours.intercepts_, theirs.coefs_ + theirs.intercepts_, strict=True
    ):
        np.testing.assert_array_equal(a, b)
    X_test = rng.normal(size=(4, 3))
    np.testing.assert_array_equal(ours.predict(X_test), theirs.predict(X_test))


def test_a_classifiers_raw_score_is_a_regressors_prediction(rng):
    template = initial_stand_in(
        MLPClassifier(hidden_layer_sizes=(4,)), 3, 1, np.random.RandomState(0)
    )
    X = rng.normal(size=(5, 3))
    hidden = np.maximum(X @ template.coefs_[0] + template.intercepts_[0], 0)
    np.testing.assert_allclose(
        template.predict(X), (hidden @ template.coefs_[1] + template.intercepts_[1]).ravel()
    )


@pytest.mark.parametrize("model", [LinearRegression(), LogisticRegression()])
def test_linear_models_start_at_zero(model):
    template = initial_stand_in(model, 4, 3, np.random.RandomState(0))
    np.testing.assert_array_equal(template.coef_, np.zeros((3, 4)))
    np.testing.assert_array_equal(template.predict(np.ones((2, 4))), np.zeros((2, 3)))
