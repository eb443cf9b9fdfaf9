"""Score graphs that are a chain of layers."""

import numpy as np
import onnx.parser
import pytest
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort.graphs.chain import Link, chain_of
from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreGraph, ScoreSpec
from skort.graphs.standardized import centred

NETWORK = (Link("coefficient", "intercepts", ("Tanh",)), Link("coefficient1", "intercepts1"))
MODELS = [
    (LinearRegression(), {}, (Link("coef", "intercept"),)),
    (LinearRegression(fit_intercept=False), {}, (Link("coef"),)),
    (PoissonRegressor(), {}, (Link("coef", "intercept", ("Exp",)),)),
    (PoissonRegressor(), {"own_link": False}, (Link("coef", "intercept"),)),
    (MLPRegressor(hidden_layer_sizes=(4,), activation="tanh"), {}, NETWORK),
    (MLPClassifier(hidden_layer_sizes=(4,), activation="tanh"), {"is_classifier": True}, NETWORK),
]


@pytest.mark.parametrize("model, options, chain", MODELS)
def test_linear_models_and_networks_are_chains(model, options, chain):
    spec = ScoreSpec(3, 1, "float32", **options)
    assert chain_of(initial_score_graph(model, spec, np.random.RandomState(0))) == chain


def graph_of(nodes, weights="float[2, 1] V = {1, 2}, float[1] c = {0}"):
    return ScoreGraph.of(
        onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["" : 17]> m (float[N, 2] X) => (float[N, 1] s) <{weights}> {{ {nodes} }}'
        )
    )


OTHERS = {
    "residual": "a = MatMul (X, V)  b = Add (a, c)  s = Add (b, a)",
    "gate": "a = MatMul (X, V)  b = Sigmoid (a)  s = Mul (a, b)",
    "scaled": "a = MatMul (X, V)  s = Mul (a, c)",
    "second intercept": "a = MatMul (X, V)  b = Add (a, c)  s = Add (b, c)",
    "attributes": "s = Gemm <alpha = 2.0> (X, V, c)",
    "operator": "a = MatMul (X, V)  b = Add (a, c)  s = Softplus (b)",
}


@pytest.mark.parametrize("nodes", OTHERS.values(), ids=OTHERS)
def test_other_graphs_are_none(nodes):
    assert chain_of(graph_of(nodes)) is None


def test_frozen_weights_and_other_shapes_are_none():
    graph = graph_of("a = MatMul (X, V)  s = Add (a, c)")
    assert chain_of(graph) == (Link("V", "c"),)
    assert chain_of(graph.training_only({"V"})) is None
    assert chain_of(centred(graph, np.ones(2))) is None
    wide = graph_of("a = MatMul (X, V)  s = Add (a, c)", "float[2, 1] V = {1, 2}, float[3, 1] c = {1, 2, 3}")
    assert chain_of(wide) is None
