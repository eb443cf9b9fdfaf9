"""Score graphs with standardized or centred variables, or without their first product."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx
from numpy.typing import DTypeLike
from onnx import helper

from skort.common.onnx_text import rename
from skort.graphs.layers import OFFSET, TARGET_OFFSET, Layer, readers_of
from skort.graphs.score_graph import ScoreGraph, shared_edit

#: The input of a graph of `after_first_product`: the product of X and the first coefficients.
PRODUCT = "skort_product"
MEAN = "skort_X_mean"
INVERSE_SCALE = "skort_X_inverse_scale"
#: The score before `rescaled_score`.
STANDARDIZED_SCORE = "skort_standardized_score"
_TARGET_MEAN = "skort_y_mean"
_TARGET_SCALE = "skort_y_scale"


def standardized_graph(
    score_graph: ScoreGraph, layer: Layer, mean: np.ndarray, scale: np.ndarray
) -> ScoreGraph:
    """
    Return a score graph whose first layer reads (X - mean) / scale.

    Mean and inverse scale are weights that are not trained.
    """
    arrays = {MEAN: mean} if mean.any() else {}
    arrays = {
        name: array.astype(score_graph.dtype)
        for name, array in {**arrays, INVERSE_SCALE: 1 / scale}.items()
    }
    operators = tuple(("Sub" if name == MEAN else "Mul", name, len(scale)) for name in arrays)
    structure = _before_layer(score_graph.structure, layer.coefficient, operators)

    return ScoreGraph(structure, {**score_graph.arrays, **arrays}, score_graph.trained)


@shared_edit
def _before_layer(
    graph: onnx.GraphProto, coefficient: str, operators: Sequence[tuple[str, str, int]]
) -> None:
    """
    Insert operators (type, name of weight, size of weight) before the first layer, in place.

    All that reads X then reads their result.
    """
    makers = {name: node for node in graph.node for name in node.output}
    before = next(node.input[0] for node in graph.node if coefficient in node.input)
    if before in makers and makers[before].op_type == "Gather":
        before = makers[before].input[0]

    for kind, name, size in operators:
        result = f"{name}_changed"
        place = next(i for i, node in enumerate(graph.node) if before in node.input)
        for node in graph.node[place:]:
            node.input[:] = [result if each == before else each for each in node.input]
        graph.node.insert(place, helper.make_node(kind, [before, name], [result]))
        graph.input.append(_vector(graph, name, size))
        before = result


@shared_edit
def _after_score(
    graph: onnx.GraphProto, before: str, operators: Sequence[tuple[str, str, int]]
) -> None:
    """
    Append operators, as for `_before_product`, to the score, in place.

    `before` becomes the name of the score before them.
    """
    score = graph.output[0].name
    rename(graph.node, {score: before})

    for kind, name, size in operators:
        graph.node.append(helper.make_node(kind, [before, name], [f"{name}_changed"]))
        before = f"{name}_changed"
        graph.input.append(_vector(graph, name, size))

    graph.node[-1].output[0] = score


def _vector(graph, name, size):
    return helper.make_tensor_value_info(name, graph.input[0].type.tensor_type.elem_type, [size])


def rescaled_score(
    score_graph: ScoreGraph, mean: np.ndarray, scale: float | np.ndarray
) -> ScoreGraph:
    """
    Return a score graph that gives scale * score + mean.

    Scale and mean are weights that are not trained.
    """
    dtype = np.dtype(score_graph.dtype)
    scales = np.array(scale, dtype, ndmin=1)
    arrays = {_TARGET_SCALE: scales, _TARGET_MEAN: mean.astype(dtype)}
    operators = (("Mul", _TARGET_SCALE, len(scales)), ("Add", _TARGET_MEAN, len(mean)))
    structure = _after_score(score_graph.structure, STANDARDIZED_SCORE, operators)
    return ScoreGraph(structure, {**score_graph.arrays, **arrays}, score_graph.trained)


def centred(score_graph: ScoreGraph, offset: np.ndarray, name: str = OFFSET) -> ScoreGraph:
    """
    Return a score graph with an offset that gives the same scores.

    `OFFSET` is subtracted from X before the first layer. `TARGET_OFFSET` is added to the score.
    """
    # Without an offset, a large mean of X or y may take all digits of an intercept.
    layer = _offset_layer(score_graph, name)
    assert layer is not None
    arrays = score_graph.arrays
    before = score_graph.arrays.get(name)
    structure = score_graph.structure
    offset = offset.astype(score_graph.dtype)

    if before is None and name == OFFSET:
        structure = _before_layer(structure, layer.coefficient, (("Sub", name, len(offset)),))
    elif before is None:
        structure = _after_score(structure, "y_centred", (("Add", name, len(offset)),))

    change = offset.astype(np.float64) - (0 if before is None else before)
    arrays = (
        _moved(arrays, layer, change)
        if name == OFFSET
        else _shifted(arrays, layer.intercept, -change)
    )
    return replace(score_graph, structure=structure, arrays={**arrays, name: offset})


def _offset_layer(score_graph, name):
    """Return the layer whose intercept holds the rest of an offset."""
    return score_graph.first_layer if name == OFFSET else score_graph.last_layer


def without_offsets(
    score_graph: ScoreGraph, names: Sequence[str] = (OFFSET, TARGET_OFFSET)
) -> ScoreGraph:
    """
    Return a score graph whose offsets are zero.

    It takes rows minus `OFFSET`, and gives scores minus `TARGET_OFFSET`.
    """
    zeros = {
        name: np.zeros_like(score_graph.arrays[name])
        for name in names
        if name in score_graph.arrays
    }
    return score_graph.with_weights(zeros) if zeros else score_graph


def with_moved_offsets(score_graph: ScoreGraph, offsets: Mapping[str, np.ndarray]) -> ScoreGraph:
    """
    Return a score graph with other offsets, by name, that gives the same scores.

    An offset of the graph that is not given becomes zero.
    """
    for name in (OFFSET, TARGET_OFFSET):
        before = score_graph.arrays.get(name)
        offset = offsets.get(name, None if before is None else np.zeros_like(before))
        if offset is not None and _offset_layer(score_graph, name) is not None:
            score_graph = centred(score_graph, offset, name)

    return score_graph


def check_offsets(score_graph: ScoreGraph) -> None:
    """Raise a ValueError if a weight has the name of an offset, but is used for something else."""
    graph, X, readers = score_graph.structure.graph, score_graph.input_name, readers_of(score_graph)
    makers = {name: node for node in graph.node for name in node.output}
    last = makers[score_graph.score_name]
    before = next((makers[name] for name in last.input[:1] if name in makers), onnx.NodeProto())
    has_intercept = before.op_type == "Add" or len(before.input) > 2
    places = {
        OFFSET: ("Sub", [X, OFFSET], score_graph.n_features, readers.get(X, [])),
        TARGET_OFFSET: (
            "Add",
            [*last.input[:1], TARGET_OFFSET],
            score_graph.n_outputs,
            [last] * has_intercept,
        ),
    }

    for name, (kind, inputs, size, nodes) in places.items():
        is_offset = (
            [(node.op_type, list(node.input)) for node in nodes] == [(kind, inputs)]
            and len(readers.get(name, [])) == 1
            and name in score_graph.arrays
            and score_graph.arrays[name].shape == (size,)
        )
        if not is_offset and (
            name in score_graph.arrays or any(i.name == name for i in graph.initializer)
        ):
            raise ValueError(
                f"estimator: {name!r} is the name of a mean that skort writes into models, and "
                "this ONNX model has another weight of this name. Rename it."
            )


def uncentred_arrays(
    score_graph: ScoreGraph, dtype: DTypeLike | None = None
) -> dict[str, np.ndarray]:
    """Return the weights of a score graph for X and y themselves, `centred` or not."""
    graph = replace(score_graph, trained=score_graph.weight_names)
    arrays = dict(score_graph.arrays)
    offset, of_target = (arrays.pop(name, None) for name in (OFFSET, TARGET_OFFSET))

    # Add the offset of the target last, because it is the larger one.
    if offset is not None:
        arrays = _moved(arrays, graph.first_layer, -offset, dtype)
    if of_target is not None:
        layer = graph.last_layer
        assert layer is not None  # `centred` has checked this.
        arrays = _shifted(arrays, layer.intercept, of_target.astype(np.float64), dtype)

    return arrays


def linear_weights(score_graph: ScoreGraph) -> tuple[np.ndarray, np.ndarray] | None:
    """
    Return copies of a linear model's coef_, (n_outputs, n_features),
    and intercept_, (n_outputs,), or None.
    """
    if not score_graph.is_linear:
        return None

    # An intercept for X and y themselves may need more digits than the dtype of the weights has.
    coef, *intercept = uncentred_arrays(score_graph, np.float64).values()
    empty = np.zeros(score_graph.n_outputs, score_graph.dtype)
    ordered = in_score_order(score_graph, coef.T)
    return (
        ordered.copy(),
        in_score_order(score_graph, intercept[0].flatten()) if intercept else empty,
    )


def in_score_order(
    score_graph: ScoreGraph, values: np.ndarray, *, back: bool = False
) -> np.ndarray:
    """
    Return values of the columns of the last product in the order of the score.

    With `back`, return values of the score in the order of the product.
    """
    order = score_graph.order
    if order is None:
        return values
    if order == (-1,):
        return -values
    return values[np.argsort(order) if back else list(order)]


def _moved(arrays, layer, offset, dtype=None):
    """Return the weights for X - offset that give the same scores as these weights for X."""
    coefficient = arrays[layer.coefficient].astype(np.float64)
    read = layer.read(offset.astype(np.float64))
    shift = (coefficient if layer.transposed else coefficient.T) @ read
    return _shifted(arrays, layer.intercept, shift, dtype)


def _shifted(arrays, name, shift, dtype=None):
    """Return weights in which a vector is added, in float64, to the one of this name."""
    moved = arrays[name].astype(np.float64) + shift.reshape(arrays[name].shape)
    return {**arrays, name: moved.astype(dtype or arrays[name].dtype)}


def product_layer(score_graph: ScoreGraph) -> Layer | None:
    """Return the first layer of a score graph; None if its product cannot be computed outside."""
    layer = score_graph.first_layer
    if layer is None or layer.columns is not None or OFFSET in score_graph.arrays:
        return None

    return (
        None if layer.transposed and score_graph.arrays[layer.coefficient].shape[0] > 1 else layer
    )


def after_first_product(score_graph: ScoreGraph, layer: Layer) -> ScoreGraph:
    """
    Return the score graph after the product of `product_layer`.

    It is the function (`PRODUCT`, other weights) -> raw score.
    """
    name = layer.coefficient
    n_outputs = score_graph.arrays[name].shape[0 if layer.transposed else 1]
    structure = _begin_after(score_graph.structure, name, n_outputs)
    arrays = {other: array for other, array in score_graph.arrays.items() if other != name}

    return replace(
        score_graph, structure=structure, arrays=arrays, trained=score_graph.trained.only(arrays)
    )


@shared_edit
def _begin_after(graph: onnx.GraphProto, coefficient: str, n_outputs: int) -> None:
    inputs = [i for i in graph.input[1:] if i.name != coefficient]
    first = helper.make_tensor_value_info(
        PRODUCT, graph.input[0].type.tensor_type.elem_type, [None, n_outputs]
    )
    del graph.input[:]
    graph.input.extend([first, *inputs])

    for node in graph.node:
        if coefficient in node.input:
            added = [name for name in node.input[2:] if name]
            node.CopyFrom(
                helper.make_node(
                    "Add" if added else "Identity", [PRODUCT, *added], list(node.output)
                )
            )
