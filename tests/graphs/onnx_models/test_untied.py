"""Which weights are separate after a file that shares their arrays."""

import numpy as np
import onnx.checker
import onnx.parser
import pytest
from onnx import numpy_helper

from skort import OrtSGDRegressor
from skort.graphs.onnx_models.untied import untied
from skort.onnx_models import find_weights, with_weights

ZEROS = "float[2] o = {0, 0}"
W = "float[2, 2] W = {1, -1, 2, 1}, float[2, 2] U = {1, 2, 2, -1}"
ONES = "float[2] e = {1, 1}"


def model(body, weights):
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> m (float[N, 2] X) => (float[N, 2] y) '
        f"<{weights}> {{ {body} }}"
    )


CASES = {
    "biases of two layers": (
        "h = Gemm (X, W, o) r = Relu (h) y = Gemm (r, U, o)",
        f"{W}, {ZEROS}",
        {"o/2": "o"},
    ),
    "by Identity": (
        "i = Identity (o) h = Gemm (X, W, o) r = Relu (h) y = Gemm (r, U, i)",
        f"{W}, {ZEROS}",
        {"o/2": "o"},
    ),
    "a bias and a threshold": (
        "h = Gemm (X, W, o) y = Max (h, o)",
        f"{W}, {ZEROS}",
        {"o/2": "o"},
    ),
    "statistics": (
        "h = MatMul (X, W) y = BatchNormalization (h, e, o, o, e)",
        f"{W}, {ONES}, {ZEROS}",
        {"e/2": "e", "o/2": "o"},
    ),
    "statistics that are not new": (
        "h = MatMul (X, W) y = BatchNormalization (h, e, o, o, e)",
        f"{W}, float[2] e = {{1, 2}}, float[2] o = {{3, 1}}",
        {"e/2": "e", "o/2": "o"},
    ),
    "matrices of zeros": (
        "h = Gemm (X, Z, o) r = Relu (h) y = Gemm (r, Z, o)",
        f"float[2, 2] Z = {{0, 0, 0, 0}}, {ZEROS}",
        {"Z/2": "Z", "o/2": "o"},
    ),
    "one layer, used twice": (
        "h = Gemm (X, W, o) r = Relu (h) s = Gemm (r, W, o) y = Add (r, s)",
        f"{W}, {ZEROS}",
        {},
    ),
    "a normalized layer, used twice": (
        "h = MatMul (X, W) a = BatchNormalization (h, e, o, m, v) r = Relu (a) "
        "g = MatMul (r, W) y = BatchNormalization (g, e, o, m, v)",
        f"{W}, {ONES}, {ZEROS}, float[2] m = {{1, 2}}, float[2] v = {{3, 2}}",
        {},
    ),
    "one bias that has learned": (
        "h = Gemm (X, W, b) r = Relu (h) y = Gemm (r, U, b)",
        f"{W}, float[2] b = {{1, 2}}",
        {},
    ),
    "a matrix and its transpose": (
        "h = MatMul (X, W) T = Transpose (W) y = MatMul (h, T)",
        W,
        {},
    ),
}


@pytest.mark.parametrize("body, weights, expected", CASES.values(), ids=CASES)
def test_copies(body, weights, expected, rng, run_onnx):
    given = model(body, weights)
    apart, copies = untied(given)
    assert copies == expected
    assert (apart is given) == (not expected)
    onnx.checker.check_model(apart, full_check=True)
    X = rng.normal(size=(4, 2)).astype(np.float32)
    np.testing.assert_array_equal(run_onnx(apart, X=X)["y"], run_onnx(given, X=X)["y"])


def test_old_files_have_the_copy_among_their_inputs():
    given = model(*CASES["biases of two layers"][:2])
    given.ir_version = 3
    given.graph.input.extend(
        onnx.helper.make_tensor_value_info(i.name, 1, i.dims) for i in given.graph.initializer
    )
    apart = untied(given).model
    onnx.checker.check_model(apart)
    assert apart.graph.input[-1].name == "o/2"


def test_a_layer_changes_without_the_other():
    given = model(*CASES["biases of two layers"][:2])
    assert [w.name for w in find_weights(given) if w.kind == "intercept"] == ["o", "o/2"]
    changed = with_weights(given, {"o": [1, 2]})
    values = {i.name: numpy_helper.to_array(i).tolist() for i in changed.graph.initializer}
    assert values["o"] == [1, 2] and values["o/2"] == [0, 0]
    # What shares nothing stays as it is, byte for byte.
    assert len(with_weights(given, {"W": np.eye(2)}).graph.initializer) == 3


def test_running_statistics_stay_in_a_training(rng, run_onnx):
    text = "h = MatMul (X, W) b = BatchNormalization (h, e, o, o, e) r = Relu (b) y = MatMul (r, U)"
    given = model(text, f"{W}, {ONES}, {ZEROS}")
    X = rng.normal(size=(100, 2)).astype(np.float32)
    y = 1.5 * run_onnx(given, X=X)["y"] + 0.5
    fitted = OrtSGDRegressor(given, max_iter=50, tol=None, random_state=0).fit(X, y)
    original = fitted.to_onnx(original=True)
    (node,) = [n for n in original.graph.node if n.op_type == "BatchNormalization"]
    values = {i.name: numpy_helper.to_array(i) for i in original.graph.initializer}
    scale, shift, mean, variance = (values[name] for name in node.input[1:])
    np.testing.assert_array_equal([mean, variance], [[0, 0], [1, 1]])
    assert abs(scale - 1).min() > 1e-3 and abs(shift).min() > 1e-3
    np.testing.assert_allclose(
        run_onnx(original, X=X)["y"], fitted.predict(X), rtol=1e-5, atol=1e-6
    )
