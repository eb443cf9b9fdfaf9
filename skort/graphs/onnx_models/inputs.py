"""The inputs of an ONNX model as the columns of one X of floats, even if they are integers."""

import copy
import math
from typing import Any

import numpy as np
import onnx
import onnx.shape_inference
from onnx import TensorProto, helper, numpy_helper

from skort.common.onnx_text import leading_to, read_names, rename, replace_nodes
from skort.graphs.onnx_models.limits import INTEGERS

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)
_NUMBERS = {*FLOATS, TensorProto.BOOL, *INTEGERS}


def given_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs of a graph that are not initializers."""
    initializers = {i.name for i in graph.initializer}
    return [i for i in graph.input if i.name not in initializers]


def in_one_input(graph: onnx.GraphProto) -> None:
    """
    Replace all inputs by one X of floats that has their columns in their order, in place.

    The rows of an input of more dimensions, such as images, are flattened in X. A graph stays as it
    is if it has such an X already, or if an input has no numeric columns.
    """
    inputs = given_inputs(graph)
    types = [i.type.tensor_type.elem_type for i in inputs]
    widths = [_width(i) for i in inputs]
    is_one = len(inputs) == 1 and types[0] in FLOATS and not _row_shape(inputs[0])
    have_rows = None not in widths and not any(
        i.type.tensor_type.shape.dim[0].dim_value for i in inputs
    )
    are_columns = len(inputs) == 1 or have_rows
    if is_one or not inputs or not _NUMBERS.issuperset(types) or not are_columns:
        return

    is_double = TensorProto.DOUBLE in (
        *types,
        *(o.type.tensor_type.elem_type for o in graph.output),
    )
    names = {i.name: f"{i.name}/given" for i in inputs}
    rename(graph.node, names)
    X = helper.make_tensor_value_info(
        inputs[0].name if len(inputs) == 1 else "X",
        TensorProto.DOUBLE if is_double else TensorProto.FLOAT,
        [None, None if None in widths else sum(widths)],
    )
    parts = [X.name]

    nodes = []
    if len(inputs) > 1:
        parts = [f"{name}/columns" for name in names]
        graph.initializer.append(numpy_helper.from_array(np.array(widths), "X/widths"))
        nodes.append(helper.make_node("Split", [X.name, "X/widths"], parts, axis=1))

    for info, part, inner in zip(inputs, parts, names.values(), strict=True):
        row_shape = _row_shape(info)
        if row_shape or len(info.type.tensor_type.shape.dim) == 1:
            shape = np.array([-1, *row_shape], np.int64)
            graph.initializer.append(numpy_helper.from_array(shape, f"{inner}/shape"))
            nodes.append(helper.make_node("Reshape", [part, f"{inner}/shape"], [f"{inner}/flat"]))
            part = f"{inner}/flat"

        nodes.append(helper.make_node("Cast", [part], [inner], to=info.type.tensor_type.elem_type))

    del graph.input[:]
    graph.input.append(X)
    replace_nodes(graph, [*nodes, *graph.node])


def with_output_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose outputs state their shapes, if onnx finds those that they lack."""
    tensors = [o.type.tensor_type for o in model.graph.output if o.type.HasField("tensor_type")]
    if all(tensor.HasField("shape") for tensor in tensors):
        return model
    try:
        return onnx.shape_inference.infer_shapes(model)
    except Exception:  # the checker, which follows, says what is wrong
        return model


def training_losses(model: Any) -> list[str]:
    """
    Return the outputs of a training graph that are losses: single floats.

    A training graph is an ONNX model with several inputs, and with other outputs beside the losses.
    """
    if not isinstance(model, onnx.ModelProto):
        return []

    if len(given_inputs(model.graph)) < 2:
        return []

    outputs = with_output_shapes(model).graph.output
    dims = {
        o.name: [d.dim_value for d in o.type.tensor_type.shape.dim]
        for o in outputs
        if o.type.tensor_type.elem_type in FLOATS and o.type.tensor_type.HasField("shape")
    }
    # Beside an output of any number of rows, a single number in two dimensions is no row.
    have_rows = any(sizes and sizes[0] == 0 for sizes in dims.values())
    single = ([], [1], [1, 1]) if have_rows else ([], [1])
    losses = [name for name, sizes in dims.items() if sizes in single]

    return losses if len(losses) < len(outputs) else []


def check_whole(graph: onnx.GraphProto, X: np.ndarray) -> None:
    """Raise a ValueError if the graph takes integers, such as ids, and X has fractions there."""
    inputs = given_inputs(graph)
    if INTEGERS.isdisjoint(i.type.tensor_type.elem_type for i in inputs):
        return

    columns = [i for i in inputs for _ in range(_width(i) or X.shape[1])]
    # A training graph also takes labels. Its columns are not checked.
    for j, info in enumerate(columns if len(columns) == X.shape[1] else []):
        x = X[:, j]
        if info.type.tensor_type.elem_type in INTEGERS and (wrong := x[x != np.rint(x)]).size:
            name = f"the input {info.name!r} of the ONNX model"
            raise ValueError(f"X has {wrong[0]} in column {j}, but {name} takes whole numbers.")


def with_given_input(model: onnx.ModelProto, given: Any) -> onnx.ModelProto:
    """
    Return an exported model whose X has the type of the only input of the given ONNX model.

    It is returned as it is if that type is one of floats, or if X is not only cast.
    """
    inputs = given_inputs(given.graph) if isinstance(given, onnx.ModelProto) else []
    types = {i.type.tensor_type.elem_type for i in inputs}
    (X, *_) = model.graph.input
    readers = {node.op_type for node in model.graph.node if X.name in node.input}
    if len(inputs) != 1 or types & {*FLOATS, TensorProto.FLOAT16} or readers != {"Cast"}:
        return model

    model = copy.deepcopy(model)
    model.graph.input[0].type.tensor_type.elem_type = types.pop()
    return model


def picks_rows(graph: onnx.GraphProto) -> bool:
    """Return whether X has ids: positions of rows of a table."""
    reached = {graph.input[0].name}
    for node in graph.node:
        if node.op_type == "Gather" and node.input[1] in reached:
            return True
        if not reached.isdisjoint(read_names(node)):
            reached.update(node.output)

    return False


def row_sizes(model: Any) -> tuple[int, ...]:
    """
    Return the sizes of a row of the only input of an ONNX model, if it has more than one; or ().

    A size of 0 is not known. The labels of a training graph are no input.
    """
    inputs = _inputs_of_score(model) if isinstance(model, onnx.ModelProto) else []
    if len(inputs) != 1:
        return ()

    sizes = tuple(dim.dim_value for dim in inputs[0].type.tensor_type.shape.dim[1:])
    return sizes if len(sizes) > 1 else ()


def _inputs_of_score(model):
    """Return the inputs of a model; of a training graph, those of its score alone."""
    inputs = given_inputs(model.graph)
    losses = training_losses(model)
    if not losses:
        return inputs

    scores = [o.name for o in model.graph.output if o.name not in losses]
    of_score = leading_to(model.graph.node, scores)
    return [i for i in inputs if i.name in of_score]


def with_row_sizes(model: onnx.ModelProto, row_shape: tuple[int, ...]) -> onnx.ModelProto:
    """Return a model whose input states the sizes of a row; itself if it states them already."""
    if row_sizes(model) == row_shape:
        return model

    model = copy.deepcopy(model)
    (X,) = _inputs_of_score(model)
    for dim, size in zip(X.type.tensor_type.shape.dim[1:], row_shape, strict=True):
        dim.dim_value = size

    return model


def with_input_of_rows(model: onnx.ModelProto, row_shape: tuple[int, ...]) -> onnx.ModelProto:
    """Return an exported model whose X has rows of a shape, in place of flat ones."""
    model = copy.deepcopy(model)
    graph = model.graph
    (X,) = graph.input
    flat = "skort_flat_rows"
    rename(graph.node, {X.name: flat})
    replace_nodes(graph, [helper.make_node("Flatten", [X.name], [flat]), *graph.node])
    X.CopyFrom(
        helper.make_tensor_value_info(X.name, X.type.tensor_type.elem_type, [None, *row_shape])
    )
    return model


def _width(info):
    """Return the number of columns of an input in X; None if it is unknown."""
    dims = info.type.tensor_type.shape.dim
    if not dims:
        return None
    if len(dims) == 1:
        return 1
    if len(dims) == 2:
        return dims[1].dim_value or None
    return math.prod(_row_shape(info)) or None


def _row_shape(info):
    """Return the shape of a row of an input of more than two dimensions, if it is known, or ()."""
    sizes = tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim[1:])
    return sizes if len(sizes) > 1 and all(sizes) else ()
