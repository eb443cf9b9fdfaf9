"""The penalties against their formulas."""

import numpy as np
import pytest
from onnx import helper

from skort.objective.penalties import L2
from skort.onnx_text import IR_VERSION, OPSET, Fragment, inlined, onnx_dtype
from skort.runtime.installed import load


def run(text, parameters, dtype, weight, result_shape):
    fragment = Fragment(dtype)
    fragment.call(text, ["weight"], ["result"], parameters)
    value = helper.make_tensor_value_info
    inputs, outputs = (
        [value("weight", onnx_dtype(dtype), weight.shape)],
        [value("result", onnx_dtype(dtype), result_shape)],
    )
    graph = helper.make_graph(fragment.nodes, "penalty", inputs, outputs)
    model = helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])
    session = load().InferenceSession(inlined(model, fragment).SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"weight": weight.astype(dtype)})[0]


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("alpha", [1e-10, 1e-4, 0.3, 12.5])
def test_l2(alpha, dtype, rtol, rng):
    weight = rng.normal(size=(5, 3))
    penalty = L2(alpha)
    value = run(penalty.value(), penalty.get_params(), dtype, weight, [])
    gradient = run(penalty.gradient(), penalty.get_params(), dtype, weight, weight.shape)
    assert value == pytest.approx(0.5 * alpha * (weight**2).sum(), rel=rtol)
    np.testing.assert_allclose(gradient, alpha * weight, rtol=rtol)
