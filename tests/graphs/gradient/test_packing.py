"""All weights as one vector in a graph."""

import numpy as np
import onnx.parser
import pytest

from skort.common.onnx_text import function
from skort.graphs.gradient.packing import GRADIENT, packed_gradients, packed_text, unpacked_text

WEIGHTS = {"w": np.array([[1.0, 2.0], [3.0, 4.0]]), "v": np.array([5.0, 6.0]), "u": np.array([[7.0]])}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_packed_gradients_are_one_output(dtype, run_onnx):
    onnx_type = {"float32": "float", "float64": "double"}[dtype]
    weights = {name: array.astype(dtype) for name, array in WEIGHTS.items()}
    backward = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
    backward ({onnx_type}[1] dy) => ({onnx_type}[2, 2] w_gradient, {onnx_type}[1] X_gradient,
        {onnx_type}[2] v_gradient, {onnx_type}[1, 1] u_gradient)
    <{onnx_type}[2, 2] w = {{1, 2, 3, 4}}, {onnx_type}[2] v = {{5, 6}}, {onnx_type}[1, 1] u = {{7}}> {{
        w_gradient = Mul (w, dy)  v_gradient = Mul (v, dy)  u_gradient = Mul (u, dy)  X_gradient = Neg (dy)
    }}""")
    results = run_onnx(packed_gradients(backward, weights), dy=np.array([2], dtype))
    assert list(results) == [GRADIENT, "X_gradient"]
    np.testing.assert_array_equal(results[GRADIENT], [2, 4, 6, 8, 10, 12, 14])
    assert results[GRADIENT].dtype == dtype


def test_the_parts_of_a_vector_have_the_shapes_of_the_weights(run_onnx):
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "skort" : 1]>
    there_and_back (double[7] vector) => (double[2, 2] a, double[2] b, double[1, 1] c, double[7] same)
    { a, b, c = skort.unpacked (vector)  same = skort.packed (a, b, c) }""")
    model.functions.extend(function(text, "float64") for text in (unpacked_text(WEIGHTS), packed_text(WEIGHTS)))
    vector = np.arange(1.0, 8.0)
    results = run_onnx(onnx.inliner.inline_local_functions(model), vector=vector)
    for result, array in zip(results.values(), WEIGHTS.values(), strict=False):
        np.testing.assert_array_equal(result, array)
    np.testing.assert_array_equal(results["same"], vector)
