"""Converted models against the scikit-learn models they come from."""

import numpy as np
import onnx
import pytest
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skort.graphs.conversion import score_graph, transformer_graph
from skort.graphs.templates import score_template
from skort.runtime.installed import load


def run(model, X):
    session = load().InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"X": X})[0]


MODELS = [
    LinearRegression(),
    LinearRegression(fit_intercept=False),
    *[MLPRegressor(hidden_layer_sizes=(6, 4), activation=a) for a in ("identity", "logistic", "tanh", "relu")],
    MLPRegressor(hidden_layer_sizes=()),
]


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-13)])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_score_is_the_templates_prediction(model, n_outputs, dtype, rtol, rng):
    graph = score_graph(model, 5, n_outputs, dtype, np.random.RandomState(3))
    template = score_template(model, 5, n_outputs, np.random.RandomState(3))
    X = rng.normal(size=(9, 5)).astype(dtype)
    score = run(graph.model, X)
    assert score.shape == (9, n_outputs)
    assert score.dtype == dtype
    np.testing.assert_allclose(score, template.predict(X).reshape(9, n_outputs), rtol=rtol, atol=rtol)
    onnx.checker.check_model(graph.model, full_check=True)


def test_weights_of_a_neural_network_by_name():
    graph = score_graph(MLPRegressor(hidden_layer_sizes=(6, 4)), 5, 2, "float32", np.random.RandomState(3))
    assert graph.coefficients == ("coefficient", "coefficient1", "coefficient2")
    assert graph.intercepts == ("intercepts", "intercepts1", "intercepts2")
    assert {name: w.shape for name, w in graph.weights().items()} == {
        "coefficient": (5, 6),
        "coefficient1": (6, 4),
        "coefficient2": (4, 2),
        "intercepts": (1, 6),
        "intercepts1": (1, 4),
        "intercepts2": (1, 2),
    }
    assert graph.linear_weights() is None


def test_only_nodes_that_a_step_needs():
    graph = score_graph(MLPRegressor(hidden_layer_sizes=(6,)), 5, 2, "float32", np.random.RandomState(3))
    assert [node.op_type for node in graph.model.graph.node] == ["MatMul", "Add", "Relu", "MatMul", "Add"]


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-4), ("float64", 1e-12)])
def test_transformers(dtype, rtol, rng):
    X = rng.normal(3, 2, size=(40, 4))
    transformer = make_pipeline(StandardScaler(), PCA(3, random_state=0)).fit(X)
    model = transformer_graph(transformer, 4, dtype)
    np.testing.assert_allclose(run(model, X.astype(dtype)), transformer.transform(X), rtol=rtol, atol=rtol)


def test_a_transformer_without_converter_is_named(rng):
    transformer = make_pipeline(StandardScaler(), RBFSampler()).fit(rng.normal(size=(5, 2)))
    with pytest.raises(ValueError, match=r"cannot convert to ONNX in float32: .*RBFSampler"):
        transformer_graph(transformer, 2, "float32")


def test_a_transformer_whose_graph_is_invalid_is_refused(rng):
    transformer = PolynomialFeatures(2).fit(rng.normal(size=(5, 2)))
    assert transformer_graph(transformer, 2, "float32").graph.output[0].name
    with pytest.raises(ValueError, match="cannot convert to ONNX in float64"):
        transformer_graph(transformer, 2, "float64")
