"""Derived gradients, for losses and custom penalties that come without a gradient."""

import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import onnx
import onnx.shape_inference
from onnx import helper, numpy_helper

from skort.common.onnx_text import DOMAIN, Fragment, build_model, onnx_dtype
from skort.exceptions import NotTrainableError
from skort.graphs.differentiable import (
    FLOAT32_GRADIENTS,
    Gradient,
    runtime_gradient,
    undifferentiable,
)
from skort.graphs.gradient.elementwise import FLOAT32_ONLY
from skort.graphs.gradient.reverse import add_gradients, rule_gradient
from skort.objective.custom import CustomTerm, check_term
from skort.objective.loss import source_key
from skort.objective.objective import SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET, Objective
from skort.runtime.cache import COMPILED
from skort.runtime.training_api import gradient_graph

_WEIGHT = "weight"
_PENALTY = "skort_penalty"
_SCORE = "skort_score"
_LOSS = "skort_loss_sum"
#: A function (objective, batch size) -> the gradient of the loss by the score.
Derive: TypeAlias = Callable[[Objective, int], onnx.FunctionProto]

# How to write an operator without a gradient with others, after a space.
_WITH_OTHERS = {
    "Cosh": (
        " Cosh(d) is (Exp(d) + Exp(-d)) / 2, and Log(Cosh(d)) is d + Softplus(-2 * d) - log(2), "
        "which stays finite."
    ),
    "Sinh": " Sinh(d) is (Exp(d) - Exp(-d)) / 2.",
    "Tan": " Tan(d) is Sin(d) / Cos(d).",
}


def check_loss(objective: Objective, batch_size: int, gradient: Gradient) -> None:
    """Raise a NotTrainableError if an operator between the score and the loss has no gradient."""
    _check("loss", _loss_model(objective, batch_size), _inputs(objective), gradient)


def derived_score_gradient(objective: Objective, batch_size: int) -> onnx.FunctionProto:
    """Return the function of `ruled_score_gradient`, but differentiated by ONNX Runtime."""
    loss = _loss_model(objective, batch_size)
    names = _inputs(objective)
    _check("loss", loss, names, runtime_gradient)
    model = onnx.load_from_string(gradient_graph(loss.SerializeToString(), names))
    nodes = [
        helper.make_node("Constant", [], [weight.name], value=weight)
        for weight in model.graph.initializer
    ]

    for node in model.graph.node:
        if node.op_type == "YieldOp":
            # The derivative of the sum by itself is one.
            one = numpy_helper.from_array(np.ones((), objective.dtype))
            node = helper.make_node("Constant", [], node.output, value=one)
        nodes.append(node)

    outputs = [f"{name}_grad" for name in names]
    opsets = list(model.opset_import)
    inputs = _inputs(objective, TARGET, SAMPLE_WEIGHT)

    return helper.make_function(DOMAIN, "derived_gradient", inputs, outputs, nodes, opsets)


def ruled_score_gradient(objective: Objective, batch_size: int) -> onnx.FunctionProto:
    """
    Return the gradient of the weighted sum of the losses, differentiated by skort's rules.

    It is a function of score, target, sample weight and the weights of the loss. Its results are
    the gradients by the score and by the weights of the loss.
    """
    inputs = _inputs(objective, TARGET, SAMPLE_WEIGHT)
    return _ruled("loss", _loss_model(objective, batch_size), inputs, _inputs(objective))


def add_score_gradient(
    writer: Fragment,
    objective: Objective,
    score: str,
    batch_size: int,
    derive: Derive = ruled_score_gradient,
    sample_weight: str = SAMPLE_WEIGHT,
) -> None:
    """
    Add the nodes for the gradient of the loss by the score.

    If the loss has no gradient of its own, `derive` makes one, once for each loss.
    """
    if objective.loss.gradient_function(objective.n_outputs) is None:
        key = "loss gradient", derive, objective.loss_key, batch_size
        derived = COMPILED.get(key, lambda: derive(objective, batch_size))
        by_weights = objective.weight_gradients
        inputs = [score, TARGET, sample_weight, *by_weights]
        writer.call_as_is(derived, inputs, [SCORE_GRADIENT, *by_weights.values()])
    else:
        objective.add_score_gradient(writer, score, sample_weight)


def _ruled(part, model, inputs, wanted):
    """Return the derivatives of a model's output by `wanted`, as a function, by skort's rules."""
    _check(part, model, wanted, rule_gradient)
    dtype = helper.tensor_dtype_to_np_dtype(model.graph.output[0].type.tensor_type.elem_type)
    fragment = Fragment(dtype)
    fragment.constant("one", np.ones((), dtype))
    fragment.nodes.extend(model.graph.node)
    gradients = add_gradients(fragment, model.graph, "one", wanted)

    return fragment.as_function("derived_gradient", inputs, list(gradients.values()))


def _inputs(objective, *others):
    """Return the score's name, the given names, and the names of the loss's own weights."""
    return [_SCORE, *others, *objective.loss.weight_names]


def _check(part, model, names, gradient):
    """Raise an error if a value has no gradient by `names`, or does not use the first of them."""
    start = {"loss": "score", "penalty": "weight"}[part]
    if not any(names[0] in node.input for node in model.graph.node):
        raise NotTrainableError(f"{part}: its value does not use the {start}.")

    found = undifferentiable(model.graph, names, gradient)
    if found is None:
        return

    element_type = model.graph.output[0].type.tensor_type.elem_type
    if element_type == onnx.TensorProto.DOUBLE and found[0] in FLOAT32_GRADIENTS | FLOAT32_ONLY:
        raise NotTrainableError(
            f"{part}: ONNX Runtime has no gradient of the operator {found[0]} in float64. Train with "
            'dtype="float32", or write the value with other operators.'
        )
    others = _WITH_OTHERS.get(found[0], "")
    raise NotTrainableError(
        f"{part}: no gradient goes through the operator {found[0]} on the way from the "
        f"{start} to its value. Write the value with others, or give its gradient and "
        f'use solver="graph".{others}'
    )


def _loss_model(objective, batch_size):
    """
    Return the model (target, sample weight) -> weighted sum of the losses.

    The score and the weights of the loss are initializers.
    """
    element_type = onnx_dtype(objective.dtype)
    n_outputs = objective.n_outputs
    shapes = {
        _SCORE: (batch_size, n_outputs),
        **dict.fromkeys(objective.loss.weight_names, (n_outputs,)),
    }
    zeros = [
        numpy_helper.from_array(np.zeros(shape, objective.dtype), name)
        for name, shape in shapes.items()
    ]
    fragment = Fragment(objective.dtype)
    objective.add_loss(fragment, _SCORE, _LOSS)
    output = helper.make_tensor_value_info(_LOSS, element_type, [])
    graph = helper.make_graph(fragment.nodes, "loss", objective.inputs(batch_size), [output], zeros)

    return onnx.shape_inference.infer_shapes(build_model(graph, fragment), data_prop=True)


def check_custom_penalty(
    objective: Objective,
    weights: dict[str, np.ndarray],
    gradient: Gradient,
    *,
    derives_all: bool = False,
) -> None:
    """
    Raise an error if a custom penalty does not fit the weights or has no gradient.

    With `derives_all`, a given gradient does not count.
    """
    for name, term in objective.custom_terms.items():
        check_term(term, name, weights[name].shape)
        if term.gradient is None or derives_all:
            _check(
                "penalty",
                _penalty_model(term, objective.dtype, weights[name].shape),
                [_WEIGHT],
                gradient,
            )


def custom_gradient_name(name: str) -> str:
    """Return the name of the derivative of a custom penalty by a weight."""
    return f"skort_{name}_custom_gradient"


def add_custom_gradients(
    writer: Fragment, objective: Objective, weights: dict[str, np.ndarray]
) -> dict[str, str]:
    """Add nodes for the derivatives of a custom penalty; return the results' names by weight."""
    results = {}
    for name, term in objective.custom_terms.items():
        results[name] = custom_gradient_name(name)
        of_model = f"{results[name]}_of_model"
        inputs = objective.custom_inputs(writer, name, "of_gradient")

        if term.gradient is None:
            dtype = objective.dtype
            shape = weights[name].shape
            key = "penalty gradient", source_key(term.value), np.dtype(dtype).str, shape
            derived = COMPILED.get(
                key, functools.partial(ruled_penalty_gradient, term, dtype, shape)
            )
            writer.call_as_is(derived, inputs, [of_model])
        else:
            writer.call(term.gradient, inputs, [of_model])

        writer.constant(
            f"{results[name]}_factor", np.asarray(term.strength * term.factor, objective.dtype)
        )
        writer.node("Mul", [of_model, f"{results[name]}_factor"], [results[name]])

    return results


def ruled_penalty_gradient(
    term: CustomTerm, dtype: np.dtype, shape: tuple[int, ...]
) -> onnx.FunctionProto:
    """Return the derivative of a custom penalty by a weight of this shape, by skort's rules."""
    return _ruled("penalty", _penalty_model(term, dtype, shape), term.inputs, [_WEIGHT])


def _penalty_model(term, dtype, shape):
    """Return the model that computes the value of a custom penalty of one weight."""
    fragment = Fragment(dtype)
    fragment.call(term.value, term.inputs, [_PENALTY])
    inputs = [helper.make_tensor_value_info(name, onnx_dtype(dtype), shape) for name in term.inputs]
    output = helper.make_tensor_value_info(_PENALTY, onnx_dtype(dtype), [])
    graph = helper.make_graph(fragment.nodes, "penalty", inputs, [output])

    return onnx.shape_inference.infer_shapes(build_model(graph, fragment), data_prop=True)
