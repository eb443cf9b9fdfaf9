"""Score graphs with standardized or centred variables, or without their first product."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
from numpy.typing import DTypeLike
from onnx import helper, numpy_helper

from skort.common.onnx_text import rename
from skort.graphs.score_graph import TARGET_OFFSET, ScoreGraph, shared_edit
from skort.runtime.cache import LRUCache

#: The input of a graph of `after_first_product`: the product of X and the first coefficients.
PRODUCT = "skort_product"
#: The weight that `centred` subtracts from X.
OFFSET = "X_offset"
MEAN = "skort_X_mean"
INVERSE_SCALE = "skort_X_inverse_scale"
#: The score before `rescaled_score`.
STANDARDIZED_SCORE = "skort_standardized_score"
#: Layers by the structure of their graph. A fit asks for them several times.
_LAYERS: LRUCache = LRUCache(64)
_TARGET_MEAN = "skort_y_mean"
_TARGET_SCALE = "skort_y_scale"


@dataclass(frozen=True)
class Layer:
    """
    A layer by the names of its trained weights: the matrix of a product and its intercept.

    `intercept` is None if nothing that is trained is added. `transposed` means that the rows of the
    matrix are outputs. `columns` are those of X that a first layer reads, None for all.
    """

    coefficient: str
    intercept: str | None
    transposed: bool = False
    columns: tuple[int, ...] | None = None

    def read(self, vector: np.ndarray) -> np.ndarray:
        """Return the elements of a vector, of one for each column of X, that the layer reads."""
        return vector if self.columns is None else vector[list(self.columns)]


def _kept(find: Callable[[ScoreGraph], Layer | None]) -> Callable[[ScoreGraph], Layer | None]:
    """Return `find` with a cache. Its key has all that a layer depends on."""

    def layer(score_graph):
        shapes = tuple((name, array.shape) for name, array in score_graph.arrays.items())
        return _LAYERS.get((find, shapes, score_graph.key), lambda: find(score_graph))

    return layer


@_kept
def first_layer(score_graph: ScoreGraph) -> Layer | None:
    """
    Return the layer that reads X, or some columns that no other node reads.

    None if there is no such layer, or its matrix is not trained.
    """
    name = score_graph.input_name
    readers = _readers(score_graph)
    if OFFSET in score_graph.arrays:
        name = readers[name][0].output[0]

    columns = _columns_for_product(score_graph, name, readers)
    if columns is not None:
        name = columns.output[0]
    products = readers.get(name, [])
    if len(products) != 1 or products[0].input[0] != name:
        return None

    layer = _layer(score_graph, products[0], readers)
    if layer is not None and columns is not None:
        layer = replace(layer, columns=_selected(score_graph, columns))
    # An offset needs a trained intercept.
    return (
        None
        if layer is not None and layer.intercept is None and OFFSET in score_graph.arrays
        else layer
    )


def _columns_for_product(score_graph, name, readers):
    """
    Return the node that selects the columns of X for a product;
    None unless all readers of X select columns, each of them others.
    """
    nodes = readers.get(name, [])
    columns = list[int]()
    for node in nodes:
        selected = _selected(score_graph, node)
        if selected is None:
            return None
        columns += selected
    if len(columns) > len(set(columns)):
        return None

    found = [
        node
        for node in nodes
        if [other.op_type for other in readers.get(node.output[0], [])] in (["MatMul"], ["Gemm"])
    ]
    return found[0] if len(found) == 1 else None


def _selected(score_graph, node) -> tuple[int, ...] | None:
    """Return the columns that a node selects; None if it is no selection of columns."""
    axis = [attribute.i for attribute in node.attribute if attribute.name == "axis"]
    constants = {i.name: i for i in score_graph.structure.graph.initializer}
    if node.op_type != "Gather" or axis != [1] or node.input[1] not in constants:
        return None
    positions = np.ravel(numpy_helper.to_array(constants[node.input[1]]))
    return tuple((positions % score_graph.n_features).tolist())


@_kept
def last_layer(score_graph: ScoreGraph) -> Layer | None:
    """Return the layer that computes the score; None if there is none that is all trained."""
    makers = {name: node for node in score_graph.structure.graph.node for name in node.output}
    node = makers[score_graph.score_name]
    has_intercept = False
    if TARGET_OFFSET in score_graph.arrays:
        node = makers[node.input[0]]
    if node.op_type == "Add":
        products = [makers[name] for name in node.input if name in makers]
        node, has_intercept = (products[0], True) if len(products) == 1 else (node, True)

    layer = _layer(score_graph, node, _readers(score_graph))
    has_intercept = has_intercept or len(node.input) > 2 or TARGET_OFFSET in score_graph.arrays
    if layer is None or (layer.intercept is None and has_intercept):
        return None

    return layer


_OFFSET_LAYERS = {OFFSET: first_layer, TARGET_OFFSET: last_layer}


def _readers(score_graph):
    """Return the nodes that read each result or weight."""
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in score_graph.structure.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    return readers


def _layer(score_graph, product, readers):
    """
    Return the layer of a node; None unless it is a product with a trained matrix.

    No other node may read the matrix.
    """
    trained = score_graph.trained.names
    arrays = score_graph.arrays
    options = {a.name: helper.get_attribute_value(a) for a in product.attribute}
    plain = (
        options.get("transA", 0) == 0
        and options.get("alpha", 1.0) == options.get("beta", 1.0) == 1.0
    )
    if product.op_type not in ("MatMul", "Gemm") or not plain:
        return None

    coefficient, *added = product.input[1:]
    if coefficient not in trained or arrays[coefficient].ndim != 2 or len(readers[coefficient]) > 1:
        return None

    adders = readers.get(product.output[0], [])
    if not added and len(adders) == 1 and adders[0].op_type == "Add":
        added = [name for name in adders[0].input if name != product.output[0]]
    transposed = bool(options.get("transB", 0))
    n_outputs = arrays[coefficient].shape[0 if transposed else 1]
    is_own = (
        len(added) == 1
        and added[0] in trained
        and arrays[added[0]].shape in ((n_outputs,), (1, n_outputs))
        and len(readers[added[0]]) == 1
    )

    return Layer(coefficient, added[0] if is_own else None, transposed)


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


def rescaled_score(score_graph: ScoreGraph, mean: np.ndarray, scale: float) -> ScoreGraph:
    """
    Return a score graph that gives scale * score + mean.

    Scale and mean are weights that are not trained.
    """
    dtype = np.dtype(score_graph.dtype)
    arrays = {_TARGET_SCALE: np.array([scale], dtype), _TARGET_MEAN: mean.astype(dtype)}
    operators = (("Mul", _TARGET_SCALE, 1), ("Add", _TARGET_MEAN, len(mean)))
    structure = _after_score(score_graph.structure, STANDARDIZED_SCORE, operators)
    return ScoreGraph(structure, {**score_graph.arrays, **arrays}, score_graph.trained)


def centred(score_graph: ScoreGraph, offset: np.ndarray, name: str = OFFSET) -> ScoreGraph:
    """
    Return a score graph with an offset that gives the same scores.

    `OFFSET` is subtracted from X before the first layer. `TARGET_OFFSET` is added to the score.
    """
    # Without an offset, a large mean of X or y may take all digits of an intercept.
    layer = _OFFSET_LAYERS[name](score_graph)
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
    return replace(score_graph, arrays={**score_graph.arrays, **zeros}) if zeros else score_graph


def with_moved_offsets(score_graph: ScoreGraph, offsets: Mapping[str, np.ndarray]) -> ScoreGraph:
    """
    Return a score graph with other offsets, by name, that gives the same scores.

    An offset of the graph that is not given becomes zero.
    """
    for name, layer_of in _OFFSET_LAYERS.items():
        before = score_graph.arrays.get(name)
        offset = offsets.get(name, None if before is None else np.zeros_like(before))
        if offset is not None and layer_of(score_graph) is not None:
            score_graph = centred(score_graph, offset, name)

    return score_graph


def check_offsets(score_graph: ScoreGraph) -> None:
    """Raise a ValueError if a weight has the name of an offset, but is used for something else."""
    graph, X, readers = score_graph.structure.graph, score_graph.input_name, _readers(score_graph)
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
        arrays = _moved(arrays, first_layer(graph), -offset, dtype)
    if of_target is not None:
        layer = last_layer(graph)
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
    layer = first_layer(score_graph)
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
