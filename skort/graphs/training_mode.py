"""Operators that act differently in training and in prediction: Dropout and BatchNormalization."""

import copy
from dataclasses import replace

import numpy as np
import onnx
import onnx.shape_inference
from onnx import helper, numpy_helper

from skort.common.formulas import function_text
from skort.common.onnx_text import Fragment, infos, inlined, known_shapes, read_names, replace_nodes
from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models.limits import constants_of
from skort.graphs.score_graph import ScoreGraph, set_batch_size

#: The prefix of the names of masks.
MASK = "skort_mask/"
#: How a model has no Dropout, as the end of a sentence.
WITHOUT_DROPOUT = "take dropout=0 in a TabularNetwork, or export an ONNX model in evaluation mode"


def in_training_mode(model: onnx.ModelProto) -> set[str]:
    """
    Rewrite Dropout and BatchNormalization for training, in place.

    Return the names of the scales and shifts of the normalizations.
    """
    # A `Dropout` in training mode stays, without the mode; any other becomes an Identity. A
    # `BatchNormalization` becomes its operations with its running statistics. Its scale and its
    # shift are trained.
    graph = model.graph
    constants = constants_of([graph])
    read = {name for node in graph.node for name in node.input} | {
        output.name for output in graph.output
    }

    for node in graph.node:
        if node.op_type == "Dropout":
            _write_dropout(node, constants, read)

    return _split_normalizations(model, constants)


def _write_dropout(node, constants, read):
    inputs = [*node.input, "", ""][:3]
    if any(name and name not in constants for name in inputs[1:]):
        raise _refused(node, "a ratio or a training_mode that is no constant. Make them constants")

    given = [constants[name] for name in inputs[1:] if name]
    if any(array.size != 1 or array.dtype.kind not in "biuf" for array in given):
        raise _refused(
            node, "a ratio or a training_mode that is not one number. Make each one number"
        )

    is_active = bool(inputs[2]) and bool(constants[inputs[2]].item())
    if len(node.output) > 1 and node.output[1] in read:
        raise _refused(
            node, "its mask as a result that is read. Cut the model, or leave the mask out"
        )

    ratio = float(constants[inputs[1]].item()) if inputs[1] else 0.5
    if not 0 <= ratio < 1:
        raise _refused(node, f"the ratio {ratio}. It must be at least 0 and less than 1")

    operator = "Dropout" if is_active else "Identity"
    given = inputs[:2] if is_active and inputs[1] else inputs[:1]
    node.CopyFrom(helper.make_node(operator, given, node.output[:1], name=node.name))


def _refused(node, what):
    return NotTrainableError(
        f"estimator: the {node.op_type} node {node.name!r} of the ONNX model has {what}."
    )


def _split_normalizations(model, constants):
    """
    Write each `BatchNormalization` as its operations, in place;
    return the names of its scales and shifts.
    """
    nodes = [node for node in model.graph.node if node.op_type == "BatchNormalization"]
    names = {name for node in nodes for name in node.input[1:3]}
    fragment = Fragment(
        np.result_type(np.float32, *(constants[name] for name in names if name in constants))
    )

    for node in model.graph.node:
        if node.op_type == "BatchNormalization":
            fragment.call(_operations(node), node.input, node.output[:1])
        else:
            fragment.nodes.append(node)

    if nodes:
        replace_nodes(model.graph, fragment.nodes)
        replace_nodes(model.graph, inlined(model, fragment).graph.node)

    return names


def _operations(node):
    """Return the function of a `BatchNormalization` for inputs of any rank."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if attributes.get("training_mode"):
        raise _refused(
            node,
            "training_mode=1: its statistics are those of a batch, and the rows that fill up a "
            "short batch would change them. Export the model in evaluation mode: the running "
            "statistics stay, and the weights are trained",
        )

    # Only direct operands are found as weights. The function changes the statistics first, so they
    # are not found.
    return function_text(
        "normalization (x, scale, shift, mean, variance) => (y)",
        f"""
        shape = Concat([1, -1], Slice([1, 1, 1, 1], [0], Shape(Shape(x)) - [2]), axis=0)
        deviation = Sqrt(variance + {attributes.get("epsilon", 1e-5)!r})
        normalized = (x + Reshape(-mean, shape)) / Reshape(deviation, shape)
        y = normalized * Reshape(scale, shape) + Reshape(shift, shape)""",
    )


def masked(score_graph: ScoreGraph, batch_size: int) -> ScoreGraph:
    """
    Return a score graph whose `Dropout` nodes, of which it has some, multiply by masks, which are
    inputs.
    """
    # An element of a mask is 1 / (1 - ratio) with the probability 1 - ratio, else 0. `dropout` has
    # the ratios. `arrays` has an array of ones for each mask, which belongs to the caller alone.
    structure = copy.deepcopy(score_graph.structure)
    of_weights = known_shapes(
        onnx.shape_inference.infer_shapes(structure, data_prop=True).graph
    ).keys()
    set_batch_size(structure, batch_size)
    shapes = known_shapes(onnx.shape_inference.infer_shapes(structure, data_prop=True).graph)
    structure.CopyFrom(score_graph.structure)
    ratios = {
        i.name: float(numpy_helper.to_array(i)) for i in structure.graph.initializer if not i.dims
    }

    dropout = {}
    masks = {}
    of_rows = []
    for node in structure.graph.node:
        if node.op_type != "Dropout":
            continue

        shape = shapes.get(node.output[0])
        if shape is None:
            raise _refused(
                node,
                "a result of unknown shape, so that there are no masks for it. Write its shape",
            )

        name = f"{MASK}{node.output[0]}"
        dropout[name] = ratios[node.input[1]] if len(node.input) > 1 else 0.5
        masks[name] = np.ones(shape, score_graph.dtype)
        of_rows.append(node.output[0] not in of_weights)
        node.CopyFrom(
            helper.make_node("Mul", [node.input[0], name], node.output[:1], name=node.name)
        )

    inputs = infos(masks)
    for info, is_of_rows in zip(inputs, of_rows, strict=True):
        if is_of_rows:
            # The number of rows is open, as for X.
            info.type.tensor_type.shape.dim[0].Clear()

    structure.graph.input.extend(inputs)
    read = {name for node in structure.graph.node for name in read_names(node)}
    for unread in [i for i in structure.graph.initializer if i.name not in read]:
        structure.graph.initializer.remove(unread)

    return replace(
        score_graph, structure=structure, arrays={**score_graph.arrays, **masks}, dropout=dropout
    )
