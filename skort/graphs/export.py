"""The deployable model: transformers, score graph and head in one ONNX file."""

import copy

import numpy as np
import onnx.compose
from onnx import helper, numpy_helper

from skort.onnx_text import Fragment, import_each_domain_once, inlined, onnx_dtype
from skort.version import __version__

__all__ = ["LABEL", "PREDICTION", "PROBABILITIES", "SCORE", "classifier_model", "label_tensor", "regressor_model"]

# The names that skl2onnx gives to outputs.
PREDICTION = "variable"
LABEL = "label"
PROBABILITIES = "probabilities"
# The raw score, a result inside a classifier's model.
SCORE = "skort_score"

# The label follows the score, not the probability: probabilities round to 0.5 or 1 where scores still differ.
_SIGMOID = """
sigmoid_head (score) => (decision, probabilities) {
    minus_score = Neg (score)
    decision = Concat <axis = 1> (minus_score, score)
    probabilities = Sigmoid (decision)
}"""
_SOFTMAX = """
softmax_head (score) => (decision, probabilities) {
    decision = Identity (score)
    probabilities = Softmax <axis = 1> (score)
}"""
_LABEL = """
label (decision, classes) => (label) {
    column = ArgMax <axis = 1, keepdims = 0> (decision)
    label = Gather <axis = 0> (classes, column)
}"""


def regressor_model(score_graph, transformers=None):
    """
    Return the model X -> `PREDICTION`, of shape (any, n_outputs).

    Parameters
    ----------
    score_graph : ScoreGraph
    transformers : onnx.ModelProto, default=None
        What comes before the score graph.
    """
    model = _raw_score(score_graph, transformers)
    model.graph.node.append(helper.make_node("Identity", [score_graph.score_name], [PREDICTION]))
    info = helper.make_tensor_value_info(PREDICTION, onnx_dtype(score_graph.dtype), [None, score_graph.n_outputs])
    return _finished(model, [info])


def classifier_model(score_graph, classes, transformers=None):
    """
    Return the model X -> `LABEL`, of shape (any,), and `PROBABILITIES`, of shape (any, n_classes).

    Parameters
    ----------
    score_graph : ScoreGraph
        One column for two classes, the score of the second one; otherwise one column a class.
    classes : ndarray of shape (n_classes,)
    transformers : onnx.ModelProto, default=None
        What comes before the score graph.
    """
    model = _raw_score(score_graph, transformers)
    labels = label_tensor(classes)
    model.graph.initializer.append(labels)
    head = Fragment(score_graph.dtype)
    head.node("Identity", [score_graph.score_name], [SCORE])
    head.call(_SIGMOID if score_graph.n_outputs == 1 else _SOFTMAX, [SCORE], ["skort_decision", PROBABILITIES])
    head.call(_LABEL, ["skort_decision", labels.name], [LABEL])
    model.graph.node.extend(head.nodes)
    outputs = [
        helper.make_tensor_value_info(LABEL, labels.data_type, [None]),
        helper.make_tensor_value_info(PROBABILITIES, onnx_dtype(score_graph.dtype), [None, len(classes)]),
    ]
    return _finished(inlined(model, head), outputs)


def _raw_score(score_graph, transformers):
    """Return X -> raw score as one model of its own."""
    if transformers is None:
        return copy.deepcopy(score_graph.model)
    _check_columns([i.name for i in transformers.graph.input], score_graph.model.graph)
    before = onnx.compose.add_prefix(transformers, "transformers/", rename_inputs=False)
    link = [(before.graph.output[0].name, score_graph.input_name)]
    model = onnx.compose.merge_models(before, score_graph.model, io_map=link)
    import_each_domain_once(model)
    return model


def _check_columns(columns, graph):
    """Raise an error for a column of X that has the name of something else in the model."""
    taken = {PREDICTION, LABEL, PROBABILITIES, *(i.name for i in graph.initializer)}
    taken.update(name for node in graph.node for name in node.output)
    for name in columns:
        if name in taken:
            raise ValueError(f"X has a column named {name!r}, which is a name inside the ONNX model too: rename it.")


def label_tensor(classes):
    """
    Return class labels as an ONNX tensor: ints, floats, bools or strings.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)

    Raises
    ------
    ValueError
        For labels that ONNX cannot hold.
    """
    # Unsigned ints keep their type: the largest are no int64. Other numbers and strings become the types of Python.
    labels = classes if classes.dtype.kind == "u" else np.array(classes.tolist())
    known = classes.dtype.kind in "biufUOT" and labels.dtype.kind in "biufU"
    try:
        if not known or labels.dtype == np.longdouble or labels.tolist() != classes.tolist():
            raise ValueError
        return numpy_helper.from_array(labels.astype(object) if labels.dtype.kind == "U" else labels, "skort_classes")
    except ValueError as error:  # of numpy_helper too, for text that is no Unicode
        raise ValueError(
            f"y has labels of dtype {classes.dtype}, such as {classes[0]!r}, that an ONNX model cannot return. "
            "Use ints, floats, bools or strings."
        ) from error


def _finished(model, outputs):
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    model.graph.name = "skort"
    model.graph.doc_string = ""
    model.producer_name, model.producer_version = "skort", __version__
    model.domain = ""
    return model
