"""The loss inside a training graph, as a loss of each row."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnx.compose
from onnx import helper

from skort.common.formulas import function_text
from skort.common.onnx_text import Fragment, function_model
from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models.classifier_heads import part_between
from skort.graphs.onnx_models.inputs import FLOATS, training_losses
from skort.graphs.onnx_models.known_shapes import shapes_for_rows
from skort.graphs.onnx_models.onnx_score_graph import (
    plain_model,
    spec_of,
    unexpanded,
    with_head,
    with_shapes,
)
from skort.graphs.onnx_models.operator_rules import check_shapes
from skort.graphs.onnx_models.opsets import recast
from skort.graphs.score_graph import find_weights
from skort.objective.classification import LogLoss
from skort.objective.custom import Loss
from skort.objective.loss import ScoreLoss
from skort.runtime.sessions import InferenceModel, short_message

_ROW_MEAN = function_text(
    "row_mean (x) => (mean)", "mean = ReduceMean(Flatten(x, axis=1), axes=[1], keepdims=1)"
)
_ROW_SUM = function_text(
    "row_sum (x) => (sum)", "sum = ReduceSum(Flatten(x, axis=1), [1], keepdims=1)"
)
_MATRIX = function_text("matrix (score, loss) => (matrix)", "matrix = 0 * score + loss")


def graph_loss(model: Any, *, is_classifier: bool) -> ScoreLoss:
    """Return the loss that an ONNX model computes from score and labels, as a loss of each row."""
    losses = training_losses(model)
    if not losses:
        raise ValueError(
            "loss=None needs an estimator that is a training graph: an onnx.ModelProto with "
            "inputs X and labels, and with outputs that are its loss, a single number, "
            "and its prediction."
        )
    if len(losses) > 1:
        raise ValueError(
            f"loss=None: the ONNX model has several losses, {', '.join(losses)}. Leave "
            "all but one out."
        )

    spec = spec_of(model)
    n_outputs = 1 if is_classifier and spec.n_outputs == 2 else spec.n_outputs
    forward, head, _ = with_head(
        model, replace(spec, n_outputs=n_outputs, is_classifier=is_classifier)
    )
    whole = with_shapes(unexpanded(plain_model(model)))
    check_shapes(whole.graph, shapes_for_rows(whole, 3))
    part = part_between(whole, head.result, losses[0])
    recast(part, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT)  # as losses are written
    names = [i.name for i in part.graph.input]
    read = {name for node in part.graph.node for name in node.input}

    try:
        if len(names) != 2:
            raise ValueError(
                f"it is computed from {', '.join(names)}, not from one score and one "
                "input of labels."
            )
        if weights := sorted(read.intersection(find_weights(forward.graph).names)):
            raise ValueError(
                f"it reads the weights {', '.join(weights)}. Leave them out, and set penalty."
            )

        return _loss_of_rows(
            onnx.compose.add_prefix(part, "graph/").graph, head.score, n_outputs, is_classifier
        )
    except Exception as error:  # onnx and its runtime raise errors of many kinds
        reason = short_message(error).rstrip(".") + (
            "." if is_classifier else ". Labels of classes need a classifier."
        )
        raise NotTrainableError(
            f"loss=None: the loss {losses[0]!r} of the ONNX model is no loss of rows: {reason} "
            "skort.artifacts.save_training_artifacts(model, folder, loss=None) trains with any. Or "
            'set one of skort, such as "squared_error" or "log_loss", in its place.'
        ) from error


def _loss_of_rows(graph, score, n_outputs, is_classifier):
    """
    Return the loss of a graph as a loss of each row; raise a ValueError if it is none.

    `score` is the function from the inputs of the graph to the raw score. Random rows show that
    both losses are equal.
    """
    random_state = np.random.RandomState(0)
    tensor = graph.input[0].type.tensor_type
    dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)

    def run(source, *arrays):
        shapes = {f"x{i}": (None, array.shape[1]) for i, array in enumerate(arrays)}
        given = {name: array.astype(dtype) for name, array in zip(shapes, arrays, strict=True)}
        return InferenceModel(function_model(source, dtype, shapes)).run("result", given)

    n = max(2, n_outputs)
    numbers = random_state.normal(size=(6, n_outputs)) ** 2
    target = np.eye(n)[np.arange(6) % n][:, -n_outputs:] if is_classifier else numbers
    drawn = random_state.normal(scale=3.0, size=(6, tensor.shape.dim[1].dim_value))

    # The second columns are positive, like the means that an Exp gives.
    for columns in (drawn, np.abs(drawn) + 0.1):
        whole = run(_function(graph, "score", n_outputs * is_classifier), columns, target)
        if np.isfinite(whole).all():
            break

    scores = columns if score is None else run(score, columns)
    if is_classifier and _is_total(whole, run(LogLoss().value_function(n_outputs), scores, target)):
        # Take skort's own log-loss: its gradient is a formula, and it gives probabilities.
        return LogLoss()

    source = _function(
        graph,
        "Concat(0 * score, score, axis=1)" if score else "score",
        n_outputs * is_classifier,
        True,
    )
    losses = run(source, scores, target)
    alone = run(source, scores[:1], target[:1])
    is_of_rows = np.shape(losses)[:1] == scores.shape[:1] and np.allclose(losses[0], alone, 1e-4)
    if not (is_of_rows and _is_total(whole, losses)):
        raise ValueError(
            "it is not the mean or the sum of a loss of each row. End it with ReduceMean; weights "
            "of classes are class_weight."
        )

    return Loss(source)


def _is_total(loss, losses):
    """Return whether a loss is the mean or the sum of the losses of rows."""
    return np.allclose(loss, losses.mean(), 1e-4) or np.allclose(loss, losses.sum(), 1e-4)


def _function(graph, columns, n_classes, of_rows=False):
    """
    Return the loss of a graph as a function of score and target.

    With `of_rows`, means and sums over all rows become those over the elements of each row.
    """
    begin, labels = graph.input
    fragment = Fragment(np.float64)
    (loss,) = [o.name for o in graph.output]
    fragment.nodes.extend(
        helper.make_node("Constant", [], [i.name], value=i) for i in graph.initializer
    )
    fragment.call(
        function_text("columns (score) => (columns)", f"columns = {columns}"),
        ["score"],
        [begin.name],
    )
    fragment.call(
        _label_text(
            labels.type.tensor_type, n_classes, begin.type.tensor_type.shape.dim[1].dim_value
        ),
        ["target"],
        [labels.name],
    )

    for node in graph.node:
        if (
            of_rows
            and node.op_type == "ReduceMean"
            and not {0, -2}.isdisjoint(
                next((a.ints for a in node.attribute if a.name == "axes"), [0])
            )
        ):
            fragment.call(_ROW_MEAN, node.input, node.output)
        elif of_rows and node.op_type == "ReduceSum" and len(node.input) == 1:
            fragment.call(_ROW_SUM, node.input, node.output)
        else:
            fragment.nodes.append(node)

    if not of_rows:
        fragment.call(_MATRIX, ["score", loss], ["matrix"])
    return fragment.as_function("graph_loss", ["score", "target"], [loss if of_rows else "matrix"])


def _label_text(tensor, n_classes, n_columns):
    """Return the function from a target to labels: numbers, class numbers, or one-hot columns."""
    dims = tensor.shape.dim
    label = "target"
    width = 1 if len(dims) == 1 else dims[1].dim_value

    if width == 0:
        # The width is not a number. Labels of floats are then one-hot, as wide as the score.
        width = n_columns if tensor.elem_type in FLOATS else 1

    if n_classes > 1 and width == 1:
        label = "ArgMax(target, axis=1, keepdims=1)"
    elif n_classes == 1 and width == 2:
        label = "Concat(1 - target, target, axis=1)"

    typed = label if tensor.elem_type in FLOATS else f"Cast({label}, to={tensor.elem_type})"
    shape = [-1] if len(dims) == 1 else [0, -1]
    return function_text("label (target) => (label)", f"label = Reshape({typed}, {shape})")
