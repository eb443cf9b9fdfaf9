"""The layers of a score graph by the names of their weights, and what is subtracted from X and y."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import helper, numpy_helper

if TYPE_CHECKING:
    from skort.graphs.score_graph import ScoreGraph

#: The weight that a model subtracts from X if float32 lacks the digits for its mean.
OFFSET = "X_offset"
#: The weight that is added to the score of a model if float32 lacks the digits for it.
TARGET_OFFSET = "y_offset"
# Operators f with f(c x) = c f(x) for each c > 0.
_HOMOGENEOUS = ("Relu", "LeakyRelu", "Identity")


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


def first_layer(score_graph: "ScoreGraph") -> Layer | None:
    """
    Return the layer that reads X, or some columns that no other node reads.

    None if there is no such layer, or its matrix is not trained.
    """
    name = score_graph.input_name
    readers = readers_of(score_graph)
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


def reads_ids(score_graph: "ScoreGraph") -> bool:
    """Return whether a model reads some columns apart from the others: ids, or numbers in bins."""
    readers = readers_of(score_graph).get(score_graph.input_name, [])
    return any(_selected(score_graph, node) is not None for node in readers)


def last_layer(score_graph: "ScoreGraph") -> Layer | None:
    """Return the layer that computes the score; None if there is none that is all trained."""
    return next(_layers_before_score(score_graph), None)


def last_layers(score_graph: "ScoreGraph") -> list[Layer]:
    """
    Return the layers at the end of a network, the last one first, as far as each reads a homogeneous
    function of the layer before and nothing else does.
    """
    return list(_layers_before_score(score_graph))


def _layers_before_score(score_graph):
    """Yield the layers of `last_layers`, if they are all trained."""
    makers = {name: node for node in score_graph.structure.graph.node for name in node.output}
    readers = readers_of(score_graph)
    node: onnx.NodeProto | None = makers[score_graph.score_name]
    if node is not None and TARGET_OFFSET in score_graph.arrays:
        node = makers.get(node.input[0])

    while node is not None:
        has_intercept = TARGET_OFFSET in score_graph.arrays
        if node.op_type == "Add":
            products = [makers[name] for name in node.input if name in makers]
            node, has_intercept = (products[0], True) if len(products) == 1 else (node, True)

        layer = _layer(score_graph, node, readers)
        has_intercept = has_intercept or len(node.input) > 2
        if layer is None or (layer.intercept is None and has_intercept):
            return

        yield layer
        node = _homogeneous_of(node.input[0], makers, readers)


def _homogeneous_of(name, makers, readers):
    """Return the node whose result becomes the named one by homogeneous functions only, or None."""
    node = makers.get(name)
    while node is not None and node.op_type in _HOMOGENEOUS and len(readers[name]) == 1:
        name = node.input[0]
        node = makers.get(name)
    is_own = node is not None and len(readers[name]) == 1
    return node if is_own else None


def balanced(score_graph: "ScoreGraph", of_training: Mapping[str, np.ndarray]) -> "ScoreGraph":
    """
    Return a network with the same function whose layers have one size by the weights of a training.

    A relu network is the same if a layer is multiplied by a number and the next one divided by it.
    """
    layers = last_layers(score_graph)[::-1]
    sizes = [_relative_size(of_training[layer.coefficient]) for layer in layers]
    if len(layers) < 2 or not (np.isfinite(sizes).all() and np.all(sizes)):
        return score_graph

    # Powers of two change no digit.
    logarithms = np.log2(sizes)
    exponents = np.rint(np.mean(logarithms) - logarithms).astype(int)
    exponents[-1] -= exponents.sum()
    of_results = np.cumsum(exponents)

    weights = score_graph.trained_arrays
    for layer, of_matrix, of_result in zip(layers, exponents, of_results, strict=True):
        weights[layer.coefficient] = np.ldexp(weights[layer.coefficient], of_matrix)
        if layer.intercept is not None:
            weights[layer.intercept] = np.ldexp(weights[layer.intercept], of_result)

    return score_graph.with_weights(weights)


def _relative_size(matrix):
    """Return the root mean square of a matrix over that of new weights (Glorot and Bengio, 2010)."""
    return np.sqrt(np.mean(np.square(matrix, dtype=np.float64)) * sum(matrix.shape) / 2)


def readers_of(score_graph: "ScoreGraph") -> dict[str, list[onnx.NodeProto]]:
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
