"""The shapes of all results of an ONNX model, for a number of rows."""

import math
from collections.abc import Iterator
from typing import Any, TypeGuard

import numpy as np
import onnx
import onnx.shape_inference
from onnx import helper, numpy_helper

from skort.common.onnx_text import build_model, domains_of, replace_nodes
from skort.graphs import onnx_models
from skort.graphs.onnx_models.limits import check_size, constants_of, with_branches

# A size is an int, or None if it is not known.
Shape = tuple[Any, ...]


def names_of(text: str) -> frozenset[str]:
    """Return the names of operators in a text."""
    return frozenset(text.split())


# An array with more values holds no shape.
_MAX_IN_SHAPES = 64
# The domain of a Range until its length is known: onnx would compute all its numbers.
_HIDDEN = "skort.hidden"
_NONE = np.empty(0)
# Operators of shapes. Their results are no larger than their inputs together.
_OF_SHAPES = names_of(
    "Abs Add And Cast Ceil Concat Div Equal Exp Flatten Floor Gather Greater GreaterOrEqual "
    "Identity Less LessOrEqual Log Max Min Mod Mul Neg Not Or Pow ReduceMax ReduceMean ReduceMin "
    "ReduceProd ReduceSum Reshape Round Shape Size Slice Sqrt Squeeze Sub Transpose Unsqueeze "
    "Where"
)


def shapes_for_rows(model: onnx.ModelProto, n_rows: int) -> dict[str, Shape]:
    """
    Return the shapes of inputs, weights and results for a number of rows, by name.

    A size that is not known is None. A result of unknown rank is left out. Shapes that are computed
    from other shapes are computed here. A Range that is too long raises an error.
    """
    light = _without_values(model)
    for info in model.graph.input:
        _set_rows(light.graph, info.name, n_rows)
    shapes = _inferred(light)

    while _any_unknown(light, shapes) and _fold(light, shapes, n_rows):
        shapes = _inferred(light)

    return shapes


def _set_rows(graph, name, n_rows):
    """Set the number of rows of an input that takes any, in place."""
    info = next(i for i in graph.input if i.name == name)
    dims = info.type.tensor_type.shape.dim
    if dims and not dims[0].HasField("dim_value"):
        dims[0].dim_value = n_rows


def _without_values(model):
    """Return a copy that has types and shapes in place of the values of its weights."""
    graph = onnx.GraphProto(
        name="shapes", node=model.graph.node, input=model.graph.input, output=model.graph.output
    )
    for output in graph.output:
        # What the model states may be for another number of rows.
        output.type.tensor_type.ClearField("shape")

    given = {i.name for i in graph.input}
    for i in model.graph.initializer:
        if math.prod(i.dims) <= _MAX_IN_SHAPES:
            graph.initializer.append(i)
        elif i.name not in given:
            graph.input.append(helper.make_tensor_value_info(i.name, i.data_type, i.dims))

    for node in (node for part in with_branches(graph) for node in part.node):
        if node.op_type == "Range" and not node.domain:
            node.domain = _HIDDEN

    domains = {**domains_of(model), _HIDDEN: 1}
    return build_model(graph, domains=domains)


def _inferred(model):
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    shapes: dict[str, Shape] = {
        name: array.shape for name, array in constants_of(list(with_branches(inferred))).items()
    }
    for part in with_branches(inferred):
        for info in (*part.input, *part.value_info, *part.output):
            tensor = info.type.tensor_type
            if tensor.HasField("shape"):
                shapes[info.name] = tuple(
                    d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim
                )
    return shapes


def is_known(shape: Shape | None) -> TypeGuard[Shape]:
    """Return whether a shape has a known rank and known sizes."""
    return shape is not None and None not in shape


def results(graph: onnx.GraphProto) -> Iterator[str]:
    """Yield the names of the results of all nodes, also of those in branches."""
    return (
        name for part in with_branches(graph) for node in part.node for name in node.output if name
    )


def _any_unknown(model, shapes):
    return not all(is_known(shapes.get(name)) for name in results(model.graph))


def _fold(model, shapes, n_rows):
    """Replace nodes that compute shapes by their values, in place; return whether there are any."""
    graph = model.graph
    constants = constants_of([graph])
    kept: list[onnx.NodeProto] = []
    folded: dict[str, np.ndarray] = {}
    for node in graph.node:
        value = _value(node, shapes, {**constants, **folded})
        if value is None:
            kept.append(node)
        else:
            folded[node.output[0]] = value

    shown = _show_ranges(kept, {**constants, **folded}, n_rows)
    replace_nodes(graph, kept)
    graph.initializer.extend(numpy_helper.from_array(v, name) for name, v in folded.items())
    return shown or bool(folded)


def _show_ranges(nodes, constants, n_rows):
    """Let onnx see the ranges whose ends are known and near, in place; return whether it does."""
    hidden = [node for node in nodes if node.domain == _HIDDEN]
    seen = [node for node in hidden if all(constants.get(n, _NONE).size for n in node.input)]
    for node in seen:
        start, limit, step = (float(constants[name].ravel()[0]) for name in node.input)
        # The runtime refuses a step of 0.
        length = (limit - start) / step if step else 0.0
        if length > 0:
            n_values = int(min(length, 2.0**62) // n_rows)
            check_size(node.output[0], (n_values,), onnx_models.MAX_VALUES)
        node.domain = ""

    return bool(seen)


def _value(node, shapes, constants):
    """Return the value of a node that computes a shape; None if it is not known."""
    if node.op_type not in _OF_SHAPES or node.domain:
        return None
    if node.op_type in ("Shape", "Size") and is_known(shapes.get(node.input[0])):
        # Only the shape of this array matters.
        array = np.broadcast_to(np.float32(0), shapes[node.input[0]])
        given = {node.input[0]: array}
    elif all(name in constants for name in node.input if name):
        given = {name: constants[name] for name in node.input if name}
        if sum(array.size for array in given.values()) > _MAX_IN_SHAPES:
            return None
    else:
        return None

    # It takes long to import.
    from onnx.reference import ReferenceEvaluator

    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in given.items()
    ]
    output = onnx.ValueInfoProto(name=node.output[0])
    alone = build_model(helper.make_graph([node], "shape", infos, [output]))
    try:
        with np.errstate(all="ignore"):
            (result,) = ReferenceEvaluator(alone).run(None, given)
            return np.asarray(result)
    except Exception:  # a shape that cannot be computed stays unknown
        return None
