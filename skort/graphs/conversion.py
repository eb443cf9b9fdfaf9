"""scikit-learn model -> ONNX."""

import onnx
import skl2onnx
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

from skort.graphs.score_graph import ScoreGraph, affine_weights
from skort.graphs.templates import score_template
from skort.onnx_text import IR_VERSION, OPSET, import_each_domain_once, onnx_dtype

__all__ = ["score_graph", "to_onnx"]

# Operators whose weights are attributes, which cannot be trained.
_DECOMPOSED = {"LinearRegressor", "LinearClassifier"}


def score_graph(estimator, n_features, n_outputs, dtype, random_state):
    """
    Convert an unfitted model to ONNX, up to its raw score and at its initial weights.

    Parameters
    ----------
    estimator : estimator
        As for `score_template`.
    n_features, n_outputs : int
    dtype : dtype
        float32 or float64.
    random_state : numpy.random.RandomState

    Returns
    -------
    score_graph : ScoreGraph
    """
    template = score_template(estimator, n_features, n_outputs, random_state)
    model = to_onnx(template, n_features, dtype)
    _drop_ends(model.graph, n_outputs)
    coefficients, intercepts = affine_weights(model.graph)
    if not getattr(template, "fit_intercept", True):
        intercepts = ()
    return ScoreGraph(model, coefficients, intercepts)


def to_onnx(estimator, n_features, dtype):
    """Convert a fitted scikit-learn estimator of `n_features` numbers, with its weights as initializers."""
    tensor = {1: FloatTensorType, 11: DoubleTensorType}[onnx_dtype(dtype)]
    model = skl2onnx.to_onnx(
        estimator, initial_types=[("X", tensor([None, n_features]))], target_opset=OPSET, black_op=_DECOMPOSED
    )
    model.ir_version = IR_VERSION
    import_each_domain_once(model)
    return model


def _drop_ends(graph, n_outputs):
    """Drop the cast of X to its own type and the last reshape to (any, n_outputs): the nodes between keep both."""
    element_type = graph.input[0].type.tensor_type.elem_type
    nodes = list(graph.node)
    if nodes[0].op_type == "Cast" and nodes[0].attribute[0].i == element_type:
        cast = nodes.pop(0)
        for node in nodes:
            node.input[:] = [cast.input[0] if name == cast.output[0] else name for name in node.input]
    if nodes[-1].op_type == "Reshape":
        reshape = nodes.pop()
        shape = reshape.input[1]
        kept = [i for i in graph.initializer if i.name != shape]
        del graph.initializer[:]
        graph.initializer.extend(kept)
        graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info(reshape.input[0], element_type, [None, n_outputs]))
    del graph.node[:]
    graph.node.extend(nodes)
