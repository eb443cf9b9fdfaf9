"""ONNX Runtime's own operators give what their standard formulas give."""

import numpy as np
import onnx.parser
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from skort.graphs.onnx_models.onnx_score_graph import onnx_score_graph, plain_model
from skort.graphs.score_graph import ScoreSpec, Weights

HEADER = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>'
WEIGHTS = """float[4, 3] W = {1, 2, -1, 0.5, 1, 2, -2, 1, 0.5, 1, -1, 0.25}, float[3] b = {1, 0, -1},
float[4] c = {1, -1, 0.5, 2}, int64[4] shape = {-1, 1, 2, 2},
float[2, 1, 2, 1] K = {1, -1, 2, 0.5}, float[2] k = {0.5, -0.5}, float[3, 1] V = {1, 2, -1}"""


def model(body, result="float[N, M] y"):
    return onnx.parser.parse_model(
        f"{HEADER} m (float[N, 4] X) => ({result}) <{WEIGHTS}> {{ {body} }}"
    )


CALLS = {
    "Gelu": "y = com.microsoft.Gelu (X)",
    "BiasGelu": "y = com.microsoft.BiasGelu (X, c)",
    "FastGelu": "y = com.microsoft.FastGelu (X)",
    "FastGelu with a bias": "y = com.microsoft.FastGelu (X, c)",
    "QuickGelu": "y = com.microsoft.QuickGelu <alpha = 1.5> (X)",
    "FusedMatMul": "y = com.microsoft.FusedMatMul <alpha = 0.5> (X, W)",
    "FusedGemm": 'y = com.microsoft.FusedGemm <activation = "Tanh", alpha = 0.5> (X, W, b)',
    "FusedGemm, LeakyRelu": (
        'y = com.microsoft.FusedGemm <activation = "LeakyRelu", activation_alpha = 0.25> (X, W, b)'
    ),
    "FusedConv": (
        "i = Reshape (X, shape) "
        'h = com.microsoft.FusedConv <activation = "Relu", pads = [1, 0, 0, 0]> (i, K, k) '
        "y = Flatten (h)"
    ),
    "FusedConv, padded": (
        "i = Reshape (X, shape) "
        'h = com.microsoft.FusedConv <activation = "Relu", auto_pad = "SAME_UPPER"> (i, K) '
        "y = Flatten (h)"
    ),
    "FusedConv, LeakyRelu": (
        "i = Reshape (X, shape) h = com.microsoft.FusedConv <activation = "
        '"LeakyRelu", activation_params = [0.25]> (i, K, k) y = Flatten (h)'
    ),
}


@pytest.mark.parametrize("body", CALLS.values(), ids=CALLS)
def test_values(body, rng, run_onnx):
    given = model(body)
    plain = plain_model(given)
    assert {node.domain for node in plain.graph.node} == {""}
    X = rng.normal(size=(5, 4)).astype(np.float32)
    expected = run_onnx(given, X=X)["y"]
    np.testing.assert_allclose(run_onnx(plain, X=X)["y"], expected, rtol=2e-5, atol=2e-6)


def test_a_convolution_with_a_sum(rng, run_onnx):
    """ONNX Runtime 1.16 cannot run the file itself."""
    begin = "i = Reshape (X, shape) s = Concat <axis = 1> (i, i)"
    fused = 'com.microsoft.FusedConv <pads = [1, 0, 0, 0], activation = "Relu"> (i, K, k, s)'
    plain = plain_model(model(f"{begin} h = {fused} y = Flatten (h)"))
    assert [node.op_type for node in plain.graph.node[2:]] == ["Conv", "Add", "Relu", "Flatten"]
    X = rng.normal(size=(5, 4)).astype(np.float32)
    conv = model(f"{begin} h = Conv <pads = [1, 0, 0, 0]> (i, K, k) y = Flatten (h)")
    expected = np.maximum(run_onnx(conv, X=X)["y"] + np.concatenate([X, X], axis=1), 0)
    np.testing.assert_allclose(
        ReferenceEvaluator(plain).run(None, {"X": X})[0], expected, rtol=1e-5
    )


@pytest.mark.parametrize(
    "body",
    [
        "y = com.microsoft.FusedMatMul <transB = 1> (X, W)",
        'y = com.microsoft.FusedGemm <activation = "ThresholdedRelu"> (X, W)',
        "y = com.microsoft.CDist (X, W)",
    ],
)
def test_others_stay(body):
    given = model(body)
    assert plain_model(given).graph.node[0].domain == "com.microsoft"


def test_the_weights_of_fused_layers_are_trained():
    body = 'h = com.microsoft.FusedGemm <activation = "Relu"> (X, W, b) y = MatMul (h, V)'
    graph = onnx_score_graph(model(body, "float[N, 1] y"), ScoreSpec(4, 1, "float32"))
    assert graph.trained == Weights(("W", "V"), ("b",))


def test_an_input_that_is_left_out():
    given = model("y = com.microsoft.FusedGemm (X, W)")
    given.graph.node[0].CopyFrom(
        helper.make_node("FusedGemm", ["X", "W", ""], ["y"], domain="com.microsoft")
    )
    assert next(list(node.input) for node in plain_model(given).graph.node) == ["X", "W"]
