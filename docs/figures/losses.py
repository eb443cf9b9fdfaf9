"""Pictures of losses: value and gradient by the score, as their own ONNX functions compute them."""

import numpy as np
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.reference import ReferenceEvaluator

from skort.common.onnx_text import function

DOUBLE = TensorProto.DOUBLE


def evaluated(source, *arrays):
    """Return the first result of an ONNX function of a loss, of arrays of shape (n_samples,), in float64."""
    proto = function(source, "float64")
    inputs = {name: np.asarray(array, float)[:, None] for name, array in zip(proto.input, arrays, strict=True)}
    infos = [make_tensor_value_info(name, DOUBLE, array.shape) for name, array in inputs.items()]
    node = make_node(proto.name, [*proto.input], [*proto.output], domain=proto.domain)
    graph = make_graph([node], "loss", infos, [make_tensor_value_info(proto.output[0], DOUBLE, None)])
    opsets = [*proto.opset_import, make_opsetid(proto.domain, 1)]
    model = make_model(graph, functions=[proto], opset_imports=opsets, ir_version=8)
    return ReferenceEvaluator(model).run(None, inputs)[0].ravel()


def by_residual(*losses, reach=2.5):
    """Draw losses of regression: y = 0."""
    _draw([(loss, 0.0, _parameters(loss)) for loss in losses], (-reach, reach), "score - y")


def by_score(loss, targets, low=-2.0, high=2.0):
    """Draw a loss whose score is the logarithm of the prediction, for some y."""
    _draw([(loss, target, f"y = {target:g}") for target in targets], (low, high), "score = log(prediction)")


def by_margin(*losses):
    """Draw losses of classification: of the second class, and of the first one."""
    labels = [_parameters(loss) for loss in losses]
    lines = [(loss, 1.0, f"y = 1  {label}") for loss, label in zip(losses, labels, strict=True)]
    lines += [(loss, 0.0, f"y = -1  {label}") for loss, label in zip(losses, labels, strict=True)]
    _draw(lines, (-3.0, 3.0), "score")


def by_label(**losses):
    """Draw losses of classification by their names, of the second class."""
    _draw([(loss, 1.0, name) for name, loss in losses.items()], (-3.0, 3.0), "score, y = 1")


def by_scale(loss, scales):
    """Draw a loss that has a scale of its own, for some scales: y = 0."""
    _draw([(loss, 0.0, f"scale={scale:g}", scale) for scale in scales], (-2.5, 2.5), "score - y")


def _parameters(loss):
    return ", ".join(f"{name}={value:g}" for name, value in loss.get_params().items())


def _draw(lines, between, xlabel):
    from figures.drawing import panels

    # An even number of scores: none of them is at a kink, where the gradient is a number of its own.
    score = np.linspace(*between, 1200)
    axes = panels("value", "gradient by the score")
    for loss, target, label, *others in lines:
        arrays = [score, *(np.full_like(score, number) for number in (target, *others))]
        for axis, source in zip(axes, (loss.value_function(1), loss.gradient_function(1)), strict=True):
            values = evaluated(source, *arrays)
            jumps = np.flatnonzero(abs(np.diff(values)) > 0.1) + 1
            axis.plot(np.insert(score, jumps, np.nan), np.insert(values, jumps, np.nan), label=label)
    for axis in axes:
        axis.set_xlabel(xlabel)
    if any(label for _, _, label, *_ in lines):
        axes[0].legend(fontsize="small", frameon=False)
