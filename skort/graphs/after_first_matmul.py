"""A score graph without its first product, which something else computes: of sparse rows, for instance."""

import functools
from dataclasses import replace

import onnx
from onnx import helper

from skort.graphs.score_graph import ScoreGraph
from skort.graphs.standardized import OFFSET, Layer, first_layer

__all__ = ["PRODUCT", "after_first_product", "product_layer"]

#: The input of what is left: the product of X and the coefficients of the first layer.
PRODUCT = "skort_product"


def product_layer(score_graph: ScoreGraph) -> Layer | None:
    """
    Return the first layer of a score graph if its product can be computed outside.

    Parameters
    ----------
    score_graph : ScoreGraph

    Returns
    -------
    layer : Layer or None
        None where `skort.graphs.standardized.first_layer` finds none, where an offset is subtracted from X, and where
        the matrix has a row for each of several outputs of the layer.
    """
    layer = first_layer(score_graph)
    if layer is None or OFFSET in score_graph.arrays:
        return None
    return None if layer.transposed and score_graph.arrays[layer.coefficient].shape[0] > 1 else layer


def after_first_product(score_graph: ScoreGraph, layer: Layer) -> ScoreGraph:
    """
    Return the function (product, other weights) -> raw score.

    Parameters
    ----------
    score_graph : ScoreGraph
    layer : Layer
        Its `product_layer`.

    Returns
    -------
    rest : ScoreGraph
        Its input `PRODUCT`, of shape (any, n_outputs of the layer), takes the place of X and of the coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> import onnx.parser
    >>> from skort.graphs.score_graph import ScoreGraph
    >>> from skort.graphs.after_first_matmul import after_first_product, product_layer
    >>> graph = ScoreGraph.of(onnx.parser.parse_model('''
    ... <ir_version: 8, opset_import: ["" : 17]>
    ... line (float[N, 2] X) => (float[N, 1] score) <float[2, 1] coef = {1, 2}, float[1] intercept = {0}>
    ... { product = MatMul (X, coef)  score = Add (product, intercept) }'''))
    >>> rest = after_first_product(graph, product_layer(graph))
    >>> rest.input_name, rest.n_features, rest.trained.names
    ('skort_product', 1, ('intercept',))
    """
    name = layer.coefficient
    n_outputs = score_graph.arrays[name].shape[0 if layer.transposed else 1]
    structure = _rest(score_graph.structure.SerializeToString(), name, n_outputs)
    arrays = {other: array for other, array in score_graph.arrays.items() if other != name}
    return replace(score_graph, structure=structure, arrays=arrays, trained=score_graph.trained.only(arrays))


# Fits share a structure.
@functools.lru_cache(maxsize=8)
def _rest(serialized: bytes, coefficient: str, n_outputs: int) -> onnx.ModelProto:
    structure = onnx.ModelProto.FromString(serialized)
    graph = structure.graph
    inputs = [i for i in graph.input[1:] if i.name != coefficient]
    first = helper.make_tensor_value_info(PRODUCT, graph.input[0].type.tensor_type.elem_type, [None, n_outputs])
    del graph.input[:]
    graph.input.extend([first, *inputs])
    for node in graph.node:
        if coefficient in node.input:
            added = [name for name in node.input[2:] if name]
            node.CopyFrom(helper.make_node("Add" if added else "Identity", [PRODUCT, *added], list(node.output)))
    return structure
