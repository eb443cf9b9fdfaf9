"""An own penalty in the graphs of the solvers: its gradient, given or derived."""

import numpy as np
import onnx
import onnx.shape_inference
from onnx import helper, numpy_helper

from skort.common.model_builder import build_model
from skort.common.onnx_text import DOMAIN, Fragment, inlined, onnx_dtype
from skort.exceptions import NotTrainableError
from skort.graphs.differentiable import Gradient, undifferentiable
from skort.graphs.gradient.reverse import add_gradients, rule_gradient
from skort.objective.custom import CustomTerm, check_term, source_key
from skort.objective.objective import Objective
from skort.runtime.cache import LRUCache

__all__ = ["add_custom_gradients", "check_custom_penalty", "custom_gradient_name", "ruled_penalty_gradient"]

_GRADIENTS: LRUCache[onnx.FunctionProto] = LRUCache(16)
_WEIGHT, _PENALTY = "weight", "skort_penalty"


def check_custom_penalty(
    objective: Objective, weights: dict[str, np.ndarray], gradient: Gradient, *, derives_all: bool = False
) -> None:
    """
    Raise an error where an own penalty does not fit the weights, or has no gradient.

    Parameters
    ----------
    objective : Objective
    weights : dict of str to ndarray
        The trained weights.
    gradient : callable
        The parts of a graph that the solver differentiates, as for `skort.graphs.differentiable.undifferentiable`.
    derives_all : bool, default=False
        Whether the solver derives gradients that the user gives, too.

    Raises
    ------
    ValueError
        As `skort.objective.custom.check_term` does.
    NotTrainableError
        Names the operator on the way from the weight to the penalty that has no gradient.
    """
    for name, term in objective.custom_terms.items():
        check_term(term, name, weights[name].shape)
        if term.gradient is None or derives_all:
            _check(_penalty_model(term, objective.dtype, weights[name].shape), gradient)


def custom_gradient_name(name: str) -> str:
    """Return what the derivative of an own penalty by a weight is called."""
    return f"skort_{name}_custom_gradient"


def add_custom_gradients(writer, objective: Objective, weights: dict[str, np.ndarray]) -> dict[str, str]:
    """
    Add the nodes that compute the derivatives of an own penalty by the weights that have it.

    Parameters
    ----------
    writer : Fragment or Program
    objective : Objective
    weights : dict of str to ndarray
        The trained weights; their values do not matter.

    Returns
    -------
    gradients : dict of str to str
        The names of the results, by weight.
    """
    results = {}
    for name, term in objective.custom_terms.items():
        results[name] = custom_gradient_name(name)
        of_model = f"{results[name]}_of_model"
        inputs = objective.custom_inputs(writer, name, "of_gradient")
        if term.gradient is None:
            writer.call_as_is(_derived(term, objective.dtype, weights[name].shape), inputs, [of_model])
        else:
            writer.call(term.gradient, inputs, [of_model])
        writer.constant(f"{results[name]}_factor", np.asarray(term.strength * term.factor, objective.dtype))
        writer.node("Mul", [of_model, f"{results[name]}_factor"], [results[name]])
    return results


def _derived(term, dtype, shape):
    key = source_key(term.value), np.dtype(dtype).str, shape
    return _GRADIENTS.get(key, lambda: ruled_penalty_gradient(term, dtype, shape))


def ruled_penalty_gradient(term: CustomTerm, dtype: np.dtype, shape: tuple[int, ...]) -> onnx.FunctionProto:
    """
    Differentiate the value of an own penalty by the weight, by skort's rules.

    Parameters
    ----------
    term : CustomTerm
    dtype : dtype
        float32 or float64.
    shape : tuple of int
        That of the weight.

    Returns
    -------
    gradient : onnx.FunctionProto
        Of the inputs of the value.

    Raises
    ------
    NotTrainableError
        As for `check_custom_penalty`.
    """
    model = _penalty_model(term, dtype, shape)
    _check(model, rule_gradient)
    fragment = Fragment(dtype)
    one = numpy_helper.from_array(np.ones((), dtype))
    fragment.nodes.extend([helper.make_node("Constant", [], ["one"], value=one), *model.graph.node])
    gradients = add_gradients(fragment, model.graph, "one", [_WEIGHT])
    del model.graph.node[:]
    model.graph.node.extend(fragment.nodes)
    nodes, opsets = inlined(model, fragment).graph.node, list(model.opset_import)
    return helper.make_function(DOMAIN, "penalty_gradient", term.inputs, list(gradients.values()), nodes, opsets)


def _check(model, gradient):
    if not any(_WEIGHT in node.input for node in model.graph.node):
        raise NotTrainableError("penalty: its value does not use the weight.")
    found = undifferentiable(model.graph, [_WEIGHT], gradient)
    if found is not None:
        raise NotTrainableError(
            f"penalty: no gradient goes through the operator {found[0]} on the way from the weight to its value. Write "
            'the value with others, or give its gradient and use solver="graph".'
        )


def _penalty_model(term, dtype, shape):
    """Return the model of the inputs of a value that gives the value."""
    fragment = Fragment(dtype)
    fragment.call(term.value, term.inputs, [_PENALTY])
    inputs = [helper.make_tensor_value_info(name, onnx_dtype(dtype), shape) for name in term.inputs]
    output = helper.make_tensor_value_info(_PENALTY, onnx_dtype(dtype), [])
    graph = helper.make_graph(fragment.nodes, "penalty", inputs, [output])
    return onnx.shape_inference.infer_shapes(build_model(graph, fragment), data_prop=True)
