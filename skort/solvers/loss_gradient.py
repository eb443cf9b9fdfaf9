"""The gradient of a loss by the raw score, for a loss that has none: derived by ONNX Runtime or by skort."""

from collections.abc import Callable

import numpy as np
import onnx
import onnx.shape_inference
from onnx import helper, numpy_helper

from skort.common.model_builder import build_model
from skort.common.onnx_text import DOMAIN, Fragment, inlined, onnx_dtype
from skort.exceptions import NotTrainableError
from skort.graphs.differentiable import Gradient, runtime_gradient, undifferentiable
from skort.graphs.gradient.reverse import add_gradients, rule_gradient
from skort.objective.objective import SAMPLE_WEIGHT, TARGET, Objective
from skort.runtime.cache import LRUCache
from skort.runtime.training_agent import gradient_graph

__all__ = ["check_loss", "derived_score_gradient", "ruled_score_gradient", "score_gradient"]

_GRADIENTS: LRUCache[onnx.FunctionProto] = LRUCache(16)
_SCORE, _LOSS = "skort_score", "skort_loss_sum"


def check_loss(objective: Objective, batch_size: int, gradient: Gradient) -> None:
    """
    Raise an error if the value of a loss cannot be differentiated by the score.

    Parameters
    ----------
    objective : Objective
    batch_size : int
    gradient : callable
        The parts of a graph that the solver differentiates, as for `skort.graphs.differentiable.undifferentiable`.

    Raises
    ------
    NotTrainableError
        Names the operator on the way from the score to the loss that has no gradient.
    """
    _check(_loss_model(objective, batch_size), gradient)


def score_gradient(
    derive: Callable[[Objective, int], onnx.FunctionProto], objective: Objective, batch_size: int
) -> onnx.FunctionProto:
    """Return what `derive`, one of the two functions below, makes of a loss: once for every loss."""
    key = derive, objective.loss_key, batch_size
    return _GRADIENTS.get(key, lambda: derive(objective, batch_size))


def derived_score_gradient(objective: Objective, batch_size: int) -> onnx.FunctionProto:
    """
    Differentiate the weighted sum of the loss over a batch by the score, and by the weights of the loss.

    Parameters
    ----------
    objective : Objective
    batch_size : int

    Returns
    -------
    gradient : onnx.FunctionProto
        `(score, target, sample_weight, *loss_weights) => (gradient, *weight_gradients)`, for batches of `batch_size`
        rows.

    Raises
    ------
    NotTrainableError
        As for `check_loss`.
    """
    loss, names = _loss_model(objective, batch_size), _inputs(objective)
    _check(loss, runtime_gradient)
    model = onnx.load_from_string(gradient_graph(loss.SerializeToString(), names))
    nodes = [helper.make_node("Constant", [], [weight.name], value=weight) for weight in model.graph.initializer]
    for node in model.graph.node:
        if node.op_type == "YieldOp":
            # The derivative of the sum by itself.
            one = numpy_helper.from_array(np.ones((), objective.dtype))
            node = helper.make_node("Constant", [], node.output, value=one)
        nodes.append(node)
    return _gradient_function(objective, [f"{name}_grad" for name in names], nodes, model.opset_import)


def ruled_score_gradient(objective: Objective, batch_size: int) -> onnx.FunctionProto:
    """
    Return the same gradient as `derived_score_gradient`, by skort's own rules.

    Parameters
    ----------
    objective : Objective
    batch_size : int

    Returns
    -------
    gradient : onnx.FunctionProto
        As from `derived_score_gradient`, of standard operators.

    Raises
    ------
    NotTrainableError
        As for `check_loss`.
    """
    loss = _loss_model(objective, batch_size)
    _check(loss, rule_gradient)
    fragment = Fragment(objective.dtype)
    one = numpy_helper.from_array(np.ones((), objective.dtype))
    fragment.nodes.extend([helper.make_node("Constant", [], ["one"], value=one), *loss.graph.node])
    gradients = add_gradients(fragment, loss.graph, "one", _inputs(objective))
    del loss.graph.node[:]
    loss.graph.node.extend(fragment.nodes)
    nodes = inlined(loss, fragment).graph.node
    return _gradient_function(objective, list(gradients.values()), nodes, loss.opset_import)


def _inputs(objective):
    """Return the names of what a loss is differentiated by."""
    return [_SCORE, *objective.loss.weight_names]


def _gradient_function(objective, outputs, nodes, opsets):
    inputs = [_SCORE, TARGET, SAMPLE_WEIGHT, *objective.loss.weight_names]
    return helper.make_function(DOMAIN, "derived_gradient", inputs, outputs, nodes, list(opsets))


def _check(loss, gradient):
    if not any(_SCORE in node.input for node in loss.graph.node):
        raise NotTrainableError("loss: its value does not use the score.")
    found = undifferentiable(loss.graph, [i.name for i in loss.graph.initializer], gradient)
    if found is not None:
        raise NotTrainableError(
            f"loss: no gradient goes through the operator {found[0]} on the way from the score to its value. Write the "
            'value with others, or give its gradient and use solver="graph".'
        )


def _loss_model(objective, batch_size):
    """
    Return the model (target, sample weight) -> weighted sum of the losses.

    Its initializers are the score and the weights of the loss.
    """
    element_type = onnx_dtype(objective.dtype)
    n_outputs = objective.n_outputs
    shapes = {_SCORE: (batch_size, n_outputs), **dict.fromkeys(objective.loss.weight_names, (n_outputs,))}
    zeros = [numpy_helper.from_array(np.zeros(shape, objective.dtype), name) for name, shape in shapes.items()]
    fragment = Fragment(objective.dtype)
    objective.add_loss(fragment, _SCORE, _LOSS)
    output = helper.make_tensor_value_info(_LOSS, element_type, [])
    graph = helper.make_graph(fragment.nodes, "loss", objective.inputs(batch_size), [output], zeros)
    return onnx.shape_inference.infer_shapes(build_model(graph, fragment), data_prop=True)
