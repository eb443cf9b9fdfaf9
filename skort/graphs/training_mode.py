"""Operators that do something else in a training than in a prediction: Dropout and BatchNormalization."""

import copy
from dataclasses import replace

import numpy as np
import onnx
import onnx.shape_inference
from onnx import helper, numpy_helper

from skort.common.onnx_text import constant_value, infos, read_names, replace_nodes
from skort.exceptions import NotTrainableError
from skort.graphs.score_graph import ScoreGraph, set_batch_size

#: What the names of masks begin with.
MASK = "skort_mask/"


def in_training_mode(model: onnx.ModelProto) -> None:
    """Write a model so that it predicts, and knows what is another operation in a training, in place."""
    # `Dropout` in training mode stays, without that mode; otherwise it is left out. A `BatchNormalization` of a matrix
    # becomes its four operations, so that its shift is trained as an intercept, and its scale where it is named.
    graph = model.graph
    constants = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    constants |= {node.output[0]: constant_value(node) for node in graph.node if node.op_type == "Constant"}
    read = {name for node in graph.node for name in node.input} | {output.name for output in graph.output}
    for node in graph.node:
        if node.op_type == "Dropout":
            _write_dropout(node, constants, read)
    _split_normalizations(model, constants)


def _write_dropout(node, constants, read):
    inputs = [*node.input, "", ""][:3]
    if any(name and name not in constants for name in inputs[1:]):
        raise _refused(node, "a ratio or a training_mode that is no constant. Make them constants")
    given = [constants[name] for name in inputs[1:] if name]
    if any(array.size != 1 or array.dtype.kind not in "biuf" for array in given):
        raise _refused(node, "a ratio or a training_mode that is not one number. Make each one number")
    is_active = bool(inputs[2]) and bool(constants[inputs[2]].item())
    if len(node.output) > 1 and node.output[1] in read:
        raise _refused(node, "its mask as a result that is read. Cut the model, or leave the mask out")
    ratio = float(constants[inputs[1]].item()) if inputs[1] else 0.5
    if not 0 <= ratio < 1:
        raise _refused(node, f"the ratio {ratio}. It must be at least 0 and less than 1")
    if is_active:
        kept = helper.make_node("Dropout", inputs[:2] if inputs[1] else inputs[:1], node.output[:1], name=node.name)
    else:
        kept = helper.make_node("Identity", inputs[:1], node.output[:1], name=node.name)
    node.CopyFrom(kept)


def _refused(node, what):
    return NotTrainableError(f"estimator: the {node.op_type} node {node.name!r} of the ONNX model has {what}.")


def _split_normalizations(model, constants):
    """Write each `BatchNormalization` of a matrix as its four operations, in place; leave others as they are."""
    graph = model.graph
    if not any(node.op_type == "BatchNormalization" for node in graph.node):
        return
    known = onnx.shape_inference.infer_shapes(model).graph
    ranks = {i.name: len(i.type.tensor_type.shape.dim) for i in (*known.input, *known.value_info, *known.output)}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        is_normalization = node.op_type == "BatchNormalization"
        nodes += _four_operations(node, constants, graph, ranks.get(node.input[0])) if is_normalization else [node]
    replace_nodes(graph, nodes)


def _four_operations(node, constants, graph, rank):
    """Return the nodes of a `BatchNormalization`; what it divides by becomes an initializer. Itself for images."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if attributes.get("training_mode"):
        raise _refused(
            node,
            "training_mode=1: its statistics are those of a batch, which the rows that fill up a short one would "
            "change. Export the model in evaluation mode: the running statistics stay, and the weights are trained",
        )
    X, scale, shift, mean, variance = node.input
    if rank != 2 or variance not in constants:
        return [node]
    deviation = np.sqrt(constants[variance] + attributes.get("epsilon", 1e-5)).astype(constants[variance].dtype)
    parts = ("deviation", "centred", "divided", "scaled")
    divisor, centred, divided, scaled = (f"{node.output[0]}/{part}" for part in parts)
    graph.initializer.append(numpy_helper.from_array(deviation, divisor))
    return [
        helper.make_node("Sub", [X, mean], [centred]),
        helper.make_node("Div", [centred, divisor], [divided]),
        helper.make_node("Mul", [divided, scale], [scaled]),
        helper.make_node("Add", [scaled, shift], node.output[:1], name=node.name),
    ]


def masked(score_graph: ScoreGraph, batch_size: int) -> ScoreGraph:
    """Return a score graph whose `Dropout` nodes multiply by masks, which are inputs; itself where it has none."""
    # A number of a mask is 1 / (1 - ratio) with the probability 1 - ratio, else 0. `dropout` has the ratios, and
    # `arrays` an array of ones for each, which belongs to the caller alone.
    if not any(node.op_type == "Dropout" for node in score_graph.structure.graph.node):
        return score_graph
    structure = copy.deepcopy(score_graph.structure)
    of_weights = _shapes(structure).keys()
    set_batch_size(structure, batch_size)
    shapes = _shapes(structure)
    structure.CopyFrom(score_graph.structure)
    ratios = {i.name: float(numpy_helper.to_array(i)) for i in structure.graph.initializer if not i.dims}
    dropout, masks, of_rows = {}, {}, []
    for node in structure.graph.node:
        if node.op_type != "Dropout":
            continue
        shape = shapes.get(node.output[0])
        if shape is None:
            raise _refused(node, "a result of unknown shape, so that there are no masks for it. Write its shape")
        name = f"{MASK}{node.output[0]}"
        dropout[name] = ratios[node.input[1]] if len(node.input) > 1 else 0.5
        masks[name] = np.ones(shape, score_graph.dtype)
        of_rows.append(node.output[0] not in of_weights)
        node.CopyFrom(helper.make_node("Mul", [node.input[0], name], node.output[:1], name=node.name))
    inputs = infos(masks)
    for info, is_of_rows in zip(inputs, of_rows, strict=True):
        if is_of_rows:
            # Their number is open, as that of X.
            info.type.tensor_type.shape.dim[0].Clear()
    structure.graph.input.extend(inputs)
    read = {name for node in structure.graph.node for name in read_names(node)}
    for unread in [i for i in structure.graph.initializer if i.name not in read]:
        structure.graph.initializer.remove(unread)
    return replace(score_graph, structure=structure, arrays={**score_graph.arrays, **masks}, dropout=dropout)


def _shapes(model):
    """Return the shapes of all results whose dimensions are known, by name."""
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    shapes = {}
    for info in (*graph.value_info, *graph.output):
        dims = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        if dims and all(dims):
            shapes[info.name] = tuple(dims)
    return shapes
