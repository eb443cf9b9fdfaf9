"""Pictures of losses: value and gradient by the score, as their own ONNX functions compute them."""

import numpy as np
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.reference import ReferenceEvaluator

from skort.common.onnx_text import function

DOUBLE = TensorProto.DOUBLE


def evaluated(source, *arrays):
    """
    Return the first result of an ONNX function of a loss,
    of arrays of shape (n_samples,), in float64.
    """
    proto = function(source, "float64")
    inputs = {
        name: np.asarray(array, float)[:, None]
        for name, array in zip(proto.input, arrays, strict=True)
    }
    infos = [make_tensor_value_info(name, DOUBLE, array.shape) for name, array in inputs.items()]
    node = make_node(proto.name, [*proto.input], [*proto.output], domain=proto.domain)
    graph = make_graph(
        [node], "loss", infos, [make_tensor_value_info(proto.output[0], DOUBLE, None)]
    )
    opsets = [*proto.opset_import, make_opsetid(proto.domain, 1)]
    model = make_model(graph, functions=[proto], opset_imports=opsets, ir_version=8)
    return ReferenceEvaluator(model).run(None, inputs)[0].ravel()


def compared(xlabel, between=(-2.5, 2.5), target=0.0, **losses):
    """Draw losses by their names, for one target."""
    from figures.drawing import panels

    # An even number of scores: none of them is at a kink, where the gradient is a
    # number of its own.
    score = np.linspace(*between, 1200)
    axes = panels("value", "gradient by the score", height=3.2)
    for name, loss in losses.items():
        for axis, source in zip(
            axes, (loss.value_function(1), loss.gradient_function(1)), strict=True
        ):
            values = evaluated(source, score, np.full_like(score, target))
            jumps = np.flatnonzero(abs(np.diff(values)) > 0.1) + 1
            axis.plot(np.insert(score, jumps, np.nan), np.insert(values, jumps, np.nan), label=name)
    for axis in axes:
        axis.set_xlabel(xlabel)
    axes[0].legend(fontsize="small", frameon=False)
