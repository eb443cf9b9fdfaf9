"""What is left of a score graph without its first product gives the same scores."""

import numpy as np
import onnx.parser
import pytest

from skort.graphs.after_first_matmul import PRODUCT, after_first_product, product_layer
from skort.graphs.score_graph import ScoreGraph
from skort.graphs.standardized import centred

LINE = """
<ir_version: 8, opset_import: ["" : 17]>
line (float[N, 2] X) => (float[N, 1] score) <float[2, 1] coef = {1, 2}, float[1] intercept = {3}>
{ product = MatMul (X, coef)  score = Add (product, intercept) }"""
NO_INTERCEPT = """
<ir_version: 8, opset_import: ["" : 17]>
line (float[N, 2] X) => (float[N, 1] score) <float[2, 1] coef = {1, 2}> { score = MatMul (X, coef) }"""
GEMM = """
<ir_version: 8, opset_import: ["" : 17]>
layers (float[N, 2] X) => (float[N, 2] score)
<float[2, 3] first = {1, 2, -3, 4, -5, 6}, float[3] b = {1, 0, 1}, float[3, 2] second = {1, 2, 3, 4, 5, 6}>
{ hidden = Gemm (X, first, b)  active = Relu (hidden)  score = MatMul (active, second) }"""
ONE_OUTPUT_BY_ROWS = """
<ir_version: 8, opset_import: ["" : 17]>
line (float[N, 2] X) => (float[N, 1] score) <float[1, 2] coef = {1, 2}> { score = Gemm <transB = 1> (X, coef) }"""


def graph_of(text):
    return ScoreGraph.of(onnx.parser.parse_model(text))


@pytest.mark.parametrize("text", [LINE, NO_INTERCEPT, GEMM, ONE_OUTPUT_BY_ROWS])
def test_the_rest_makes_the_same_scores_of_the_product(text, run_onnx, rng):
    graph, X = graph_of(text), rng.normal(size=(5, 2)).astype(np.float32)
    layer = product_layer(graph)
    rest = after_first_product(graph, layer)
    coefficient = graph.arrays[layer.coefficient]
    product = X @ (coefficient.T if layer.transposed else coefficient)
    expected = run_onnx(graph.model, X=X)["score"]
    np.testing.assert_allclose(run_onnx(rest.model, **{PRODUCT: product})["score"], expected, rtol=1e-6)
    assert rest.trained.names == tuple(name for name in graph.trained.names if name != layer.coefficient)
    assert rest.n_features == product.shape[1]


def test_a_graph_keeps_its_first_layer_where_the_product_is_none_of_x_alone():
    several = graph_of(GEMM.replace("float[2, 3] first", "float[3, 2] first").replace("Gemm", "Gemm <transB = 1>"))
    frozen = graph_of(LINE).training_only(["intercept"])
    moved = centred(graph_of(LINE), np.array([1e6, 0.0]))
    assert product_layer(several) is product_layer(frozen) is product_layer(moved) is None
