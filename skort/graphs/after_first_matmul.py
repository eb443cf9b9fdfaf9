"""A score graph without its first product, which something else computes: of sparse rows, for instance."""

from dataclasses import replace

import onnx
from onnx import helper

from skort.graphs.score_graph import ScoreGraph, shared_edit
from skort.graphs.standardized import OFFSET, Layer, first_layer

#: The input of what is left: the product of X and the coefficients of the first layer.
PRODUCT = "skort_product"


def product_layer(score_graph: ScoreGraph) -> Layer | None:
    """Return the first layer of a score graph if its product can be computed outside, or None."""
    layer = first_layer(score_graph)
    if layer is None or OFFSET in score_graph.arrays:
        return None
    return None if layer.transposed and score_graph.arrays[layer.coefficient].shape[0] > 1 else layer


def after_first_product(score_graph: ScoreGraph, layer: Layer) -> ScoreGraph:
    """Return the function (`PRODUCT` of the `product_layer`, other weights) -> raw score."""
    name = layer.coefficient
    n_outputs = score_graph.arrays[name].shape[0 if layer.transposed else 1]
    structure = _begin_after(score_graph.structure, name, n_outputs)
    arrays = {other: array for other, array in score_graph.arrays.items() if other != name}
    return replace(score_graph, structure=structure, arrays=arrays, trained=score_graph.trained.only(arrays))


@shared_edit
def _begin_after(graph: onnx.GraphProto, coefficient: str, n_outputs: int) -> None:
    inputs = [i for i in graph.input[1:] if i.name != coefficient]
    first = helper.make_tensor_value_info(PRODUCT, graph.input[0].type.tensor_type.elem_type, [None, n_outputs])
    del graph.input[:]
    graph.input.extend([first, *inputs])
    for node in graph.node:
        if coefficient in node.input:
            added = [name for name in node.input[2:] if name]
            node.CopyFrom(helper.make_node("Add" if added else "Identity", [PRODUCT, *added], list(node.output)))
