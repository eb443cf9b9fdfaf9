"""Reverse-mode differentiation of an ONNX graph, into standard operators."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
import onnx.shape_inference
from onnx import helper, numpy_helper

from skort.common.onnx_text import (
    Fragment,
    build_model,
    constant_value,
    function,
    known_shapes,
    read_names,
    replace_nodes,
)
from skort.exceptions import NotTrainableError
from skort.graphs.differentiable import HasGradient
from skort.graphs.gradient.applied import Applied, gradient_text, sum_to
from skort.graphs.gradient.arrays import ARRAYS, evaluated
from skort.graphs.gradient.elementwise import ELEMENTWISE, FLOAT32_ONLY
from skort.graphs.gradient.windows import WINDOWS

#: The rules by operator.
RULES = {**ELEMENTWISE, **ARRAYS, **WINDOWS}

_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
# skl2onnx writes these operators before the first weight. Each gives one float32 per number, but
# onnx does not infer the shape of the result.
_SHAPELESS = ("Imputer", "Normalizer", "Scaler")


def add_gradients(
    fragment: Fragment, graph: onnx.GraphProto, output_gradient: str, names: Iterable[str]
) -> dict[str, str]:
    """
    Add nodes that compute the gradients by `names` from `output_gradient`.

    Return a dict: name -> name of its gradient.
    """
    # The derivative by x is the sum of (dy / dx)' dJ / dy over all nodes that take x, visited in
    # reverse order.
    known = _Known(graph)
    names = list(names)
    # `names`, and all results of floats that are computed from them.
    reached = set(names)

    for node in known.nodes:
        if not reached.isdisjoint(node.input):
            reached.update(name for name in node.output if name in known.dtypes)

    partials: dict[str, list[str]] = {graph.output[0].name: [output_gradient]}
    for node in reversed(graph.node):
        if not any(name in partials for name in node.output):
            continue

        wanted = [(i, name) for i, name in enumerate(node.input) if name in reached]
        if wanted:
            gradients = [
                _summed(fragment, partials, known, n) if n in known.dtypes else ""
                for n in node.output
            ]
            for i, name in wanted:
                parts = partials.setdefault(name, [])
                parts.append(f"skort_gradient/{name}/{len(parts)}")
                _add_partial(fragment, known, node, i, gradients, parts[-1])

    return {name: _summed(fragment, partials, known, name) for name in names}


def rule_gradient(graph: onnx.GraphProto) -> HasGradient:
    """Return the function that tells which nodes `add_gradients` can differentiate."""
    known = _Known(graph)

    def has_gradient(node, reached):
        applied = known.applied(node)
        if node.op_type in FLOAT32_ONLY and applied.dtype == np.float64:
            return False

        wanted = [i for i, name in enumerate(node.input) if name in reached]
        # A result that only a subgraph reads is no input of the node.
        return bool(wanted) and all(_formula(applied, i) for i in wanted)

    return has_gradient


class _Known:
    """The shapes, types and values of results that are known before a graph runs."""

    def __init__(self, graph):
        # Operators of other domains have no rule, whatever their version.
        model = build_model(graph, domains=dict.fromkeys({node.domain for node in graph.node}, 1))
        for node in model.graph.node:
            if node.domain == "ai.onnx.ml" and node.op_type in _SHAPELESS:
                node.CopyFrom(
                    helper.make_node("Cast", node.input, node.output, to=onnx.TensorProto.FLOAT)
                )

        # onnx evaluates computations with shapes, but lacks some operators that torch uses in them.
        while self._infer(model) and self._fold(model.graph):
            pass

    def _infer(self, model):
        """Find types and shapes; return whether a shape is missing."""
        model.CopyFrom(onnx.shape_inference.infer_shapes(model, data_prop=True))
        graph = model.graph
        self.nodes = list(graph.node)

        # No rule needs the value of a float: weights are not unpacked.
        self.constants = {
            i.name: numpy_helper.to_array(i)
            for i in graph.initializer
            if i.data_type not in _FLOATS
        }
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].name != "sparse_value":
                self.constants[node.output[0]] = constant_value(node)

        self.shapes = {name: array.shape for name, array in self.constants.items()} | known_shapes(
            graph
        )
        self.dtypes = {
            name: array.dtype for name, array in self.constants.items() if array.dtype.kind == "f"
        }

        for initializer in graph.initializer:
            if initializer.data_type in _FLOATS:
                self.dtypes[initializer.name] = helper.tensor_dtype_to_np_dtype(
                    initializer.data_type
                )

        for info in (*graph.input, *graph.value_info, *graph.output):
            if info.type.tensor_type.elem_type in _FLOATS:
                self.dtypes[info.name] = helper.tensor_dtype_to_np_dtype(
                    info.type.tensor_type.elem_type
                )

        return any(name not in self.shapes for node in graph.node for name in node.output if name)

    def _fold(self, graph):
        """Evaluate integers that follow from constants and known shapes; return whether any do."""
        kept = []
        for node in graph.node:
            is_of_shape = node.op_type in ("Shape", "Size")
            known: dict[str, Any] = self.shapes if is_of_shape else self.constants
            names = read_names(node)
            is_single = not node.domain and len(node.output) == 1

            if (
                names
                and is_single
                and known.keys() >= {*names}
                and node.output[0] not in self.dtypes
            ):
                value = evaluated(
                    node,
                    {n: np.broadcast_to(0, known[n]) if is_of_shape else known[n] for n in names},
                )
                self.constants[node.output[0]] = value
                graph.initializer.append(numpy_helper.from_array(value, node.output[0]))
            else:
                kept.append(node)

        is_less = len(kept) < len(graph.node)
        replace_nodes(graph, kept)
        return is_less

    def applied(self, node):
        return Applied(node, self.shapes, self.constants, self.dtypes.get(node.output[0]))


def _formula(applied, i):
    """Return the gradient of a node by its input `i` as a formula; None if there is none."""
    rule = RULES.get(applied.node.op_type) if applied.node.domain in ("", "ai.onnx") else None
    return None if rule is None or not applied.is_known() else rule(applied, i)


def _add_partial(fragment, known, node, i, gradients, result):
    """Add the derivative by input `i` of a node, given the derivatives by its outputs."""
    applied = known.applied(node)
    formula = _formula(applied, i)
    if formula is None:
        unknown = [
            name for name in (*node.input, *node.output) if name and name not in known.shapes
        ]
        why = f" The shape of {unknown[0]!r} is not known before it runs." if unknown else ""
        raise NotTrainableError(
            "No gradient goes through the operator "
            f"{node.op_type}{f' (node {node.name!r})' if node.name else ''} by its input "
            f"{node.input[i]!r}.{why}"
        )

    values = dict(zip("abc", node.input, strict=False)) | {
        "x": node.input[i],
        "y": node.output[0],
        "dy": gradients[0],
    }
    values |= {f"x{k}": name for k, name in enumerate(node.input)}
    values |= {f"y{k}": name for k, name in enumerate(node.output)}
    values |= {f"dy{k}": gradient for k, gradient in enumerate(gradients)}

    # The constants of a rule have the type of the node, which a Cast may have changed.
    rule = function(gradient_text(formula), applied.dtype)
    shape = applied.shape(i)
    given = applied.gradient_shape(i)
    partial = result if shape == given else f"{result}_broadcast"
    fragment.call_as_is(rule, [values[name] for name in rule.input], [partial])
    if shape != given:
        fragment.call(gradient_text(sum_to(shape, given)), [partial], [result])


def _summed(fragment, partials, known, name):
    """
    Return the name of the sum of all derivatives by a result.

    The sum is zero if there are none.
    """
    parts = partials.get(name, [])
    if len(parts) == 1:
        return parts[0]

    # The prefix differs from that of the parts, because the sum for a result named "a/1" must not
    # have the name of part 1 of "a".
    total = f"skort_gradient_sum/{name}"
    if parts:
        fragment.node("Sum", parts, [total])
    else:
        zeros = numpy_helper.from_array(np.zeros(known.shapes[name], known.dtypes[name]))
        fragment.nodes.append(helper.make_node("Constant", [], [total], value=zeros))

    partials[name] = [total]
    return total
