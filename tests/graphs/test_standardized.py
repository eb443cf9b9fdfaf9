"""Score graphs of the weights of standardized columns."""

import numpy as np
import onnx.parser
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

from skort.graphs.initialization import initial_score_graph
from skort.graphs.layers import OFFSET, Layer
from skort.graphs.score_graph import ScoreGraph, ScoreSpec
from skort.graphs.standardized import (
    PRODUCT,
    after_first_product,
    centred,
    linear_weights,
    product_layer,
    standardized_graph,
    uncentred_arrays,
)

P = 4


def graph_of(text):
    header = (
        '<ir_version: 8, opset_import: ["" : 17]> model (float[N, 4] X) => (float[N, 2] score) '
    )
    return ScoreGraph.of(onnx.parser.parse_model(header + text))


def initial(model, n_outputs=2, dtype="float64"):
    return initial_score_graph(model, ScoreSpec(P, n_outputs, dtype), np.random.RandomState(0))


TRANSPOSED = graph_of(
    "<float[2, 4] W = {1, 2, 3, 4, 5, 6, 7, 8}, float[2] b = {1, 2}> { score = Gemm "
    "<transB = 1> (X, W, b) }"
)
MODELS = {
    "linear": initial(LinearRegression()),
    "without intercept": initial(LinearRegression(fit_intercept=False)),
    "network": initial(MLPRegressor(hidden_layer_sizes=(5, 3), activation="tanh")),
    "transposed": TRANSPOSED,
}


@pytest.fixture(params=MODELS)
def score_graph(request, rng):
    graph = MODELS[request.param]
    return graph.with_weights(
        {n: rng.normal(size=w.shape).astype(w.dtype) for n, w in graph.arrays.items()}
    )


def score(run_onnx, graph, X):
    (result,) = run_onnx(graph.model, **{graph.input_name: X.astype(graph.dtype)}).values()
    return result


@pytest.mark.parametrize(
    "name, first, last",
    [
        ("linear", Layer("coef", "intercept"), Layer("coef", "intercept")),
        ("without intercept", Layer("coef", None), Layer("coef", None)),
        ("network", Layer("coefficient", "intercepts"), Layer("coefficient2", "intercepts2")),
        ("transposed", Layer("W", "b", True), Layer("W", "b", True)),
    ],
)
def test_layers_are_found_by_structure(name, first, last):
    assert MODELS[name].first_layer == first
    assert MODELS[name].last_layer == last


@pytest.mark.parametrize(
    "text",
    [
        (
            "<float[4, 2] W = {1, 2, 3, 4, 5, 6, 7, 8}> { double = Add (X, X)  "
            "score = MatMul (double, W) }"
        ),
        "<float[4, 2] W = {1, 2, 3, 4, 5, 6, 7, 8}, float[4, 2] V = {1, 2, 3, 4, 5, 6, 7, 8}> "
        "{ a = MatMul (X, W)  b = MatMul (X, V)  score = Add (a, b) }",
        "<float[4, 2] W = {1, 2, 3, 4, 5, 6, 7, 8}> { score = Gemm <alpha = 2.0> (X, W) }",
    ],
    ids=["sum", "two products", "alpha"],
)
def test_there_is_no_first_layer_where_x_does_not_go_straight_into_one_product(text):
    assert graph_of(text).first_layer is None


def test_frozen_weights_are_no_layer():
    network = MODELS["network"]
    assert network.training_only(["intercepts"]).first_layer is None
    assert network.training_only(["coefficient"]).first_layer == Layer("coefficient", None)
    assert network.training_only(["coefficient2"]).last_layer is None


def test_the_graph_of_standardized_columns_is_that_of_the_rows_themselves(
    score_graph, run_onnx, rng
):
    X = rng.normal(size=(6, P)) * [1, 10, 100, 1] + [0, 5, 50, 1]
    mean, scale = X.mean(axis=0), X.std(axis=0)
    layer = score_graph.first_layer
    if layer.intercept is None:
        mean = np.zeros(P)
    changed = standardized_graph(score_graph, layer, mean, scale)
    rtol = 1e-4 if score_graph.dtype == np.float32 else 1e-12
    expected = score(run_onnx, score_graph, (X - mean) / scale)
    np.testing.assert_allclose(score(run_onnx, changed, X), expected, rtol=rtol, atol=rtol)
    assert changed.trained == score_graph.trained
    assert changed.structure is standardized_graph(score_graph, layer, 2 * mean, scale).structure


def test_a_centred_graph_is_the_same_function(score_graph, run_onnx, rng):
    X, offset = rng.normal(size=(6, P)), np.array([1.0, -2, 3, 0])
    if score_graph.first_layer.intercept is None:
        pytest.skip("there is no intercept to take the offset")
    changed = centred(score_graph, offset)
    rtol = 1e-5 if score_graph.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(
        score(run_onnx, changed, X), score(run_onnx, score_graph, X), rtol=rtol, atol=rtol
    )
    assert changed.first_layer == score_graph.first_layer
    assert OFFSET not in changed.trained.names
    for name, array in uncentred_arrays(changed).items():
        np.testing.assert_allclose(array, score_graph.arrays[name], rtol=rtol)


def test_the_weights_of_a_centred_linear_model_are_those_of_x_itself():
    graph = MODELS["linear"].with_weights({"coef": np.ones((P, 2)), "intercept": np.ones(2)})
    coef, intercept = linear_weights(centred(graph, np.arange(4.0)))
    np.testing.assert_array_equal(coef, np.ones((2, P)))
    np.testing.assert_array_equal(intercept, [1, 1])


LINE = """
<ir_version: 8, opset_import: ["" : 17]>
line (float[N, 2] X) => (float[N, 1] score) <float[2, 1] coef = {1, 2}, float[1] intercept = {3}>
{ product = MatMul (X, coef)  score = Add (product, intercept) }"""
NO_INTERCEPT = """
<ir_version: 8, opset_import: ["" : 17]>
line (float[N, 2] X) => (float[N, 1] score) <float[2, 1] coef = {1, 2}> {
score = MatMul (X, coef) }"""
GEMM = """
<ir_version: 8, opset_import: ["" : 17]>
layers (float[N, 2] X) => (float[N, 2] score)
<float[2, 3] first = {1, 2, -3, 4, -5, 6}, float[3] b = {1, 0, 1},
float[3, 2] second = {1, 2, 3, 4, 5, 6}>
{ hidden = Gemm (X, first, b)  active = Relu (hidden)  score = MatMul (active, second) }"""
ONE_OUTPUT_BY_ROWS = """
<ir_version: 8, opset_import: ["" : 17]>
line (float[N, 2] X) => (float[N, 1] score) <float[1, 2] coef = {1, 2}> {
score = Gemm <transB = 1> (X, coef) }"""


def parsed(text):
    return ScoreGraph.of(onnx.parser.parse_model(text))


@pytest.mark.parametrize("text", [LINE, NO_INTERCEPT, GEMM, ONE_OUTPUT_BY_ROWS])
def test_the_rest_makes_the_same_scores_of_the_product(text, run_onnx, rng):
    graph, X = parsed(text), rng.normal(size=(5, 2)).astype(np.float32)
    layer = product_layer(graph)
    rest = after_first_product(graph, layer)
    coefficient = graph.arrays[layer.coefficient]
    product = X @ (coefficient.T if layer.transposed else coefficient)
    expected = run_onnx(graph.model, X=X)["score"]
    np.testing.assert_allclose(
        run_onnx(rest.model, **{PRODUCT: product})["score"], expected, rtol=1e-6
    )
    assert rest.trained.names == tuple(
        name for name in graph.trained.names if name != layer.coefficient
    )
    assert rest.n_features == product.shape[1]


def test_a_graph_keeps_its_first_layer_where_the_product_is_none_of_x_alone():
    several = parsed(
        GEMM.replace("float[2, 3] first", "float[3, 2] first").replace("Gemm", "Gemm <transB = 1>")
    )
    frozen = parsed(LINE).training_only(["intercept"])
    moved = centred(parsed(LINE), np.array([1e6, 0.0]))
    assert product_layer(several) is product_layer(frozen) is product_layer(moved) is None
