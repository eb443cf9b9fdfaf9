"""The deployable model: transformers, score graph and head in one ONNX file."""

import copy
from collections.abc import Mapping
from numbers import Integral

import numpy as np
import onnx
import onnx.checker
import onnx.compose
import onnx.defs
import onnx.version_converter
from onnx import helper, numpy_helper

from skort.common.formulas import function_text
from skort.common.onnx_text import (
    IR_VERSION,
    Fragment,
    function,
    import_each_domain_once,
    inlined,
    name_inputs,
    onnx_dtype,
)
from skort.exceptions import NotExportableError
from skort.graphs.score_graph import ScoreGraph
from skort.version import __version__

# skl2onnx gives outputs these names.
PREDICTION = "variable"
LABEL = "label"
PROBABILITIES = "probabilities"
# The name of the raw score, a result inside the model of a classifier.
SCORE = "skort_score"
# The name of a prediction before the inverse of the transformer of y.
_TRANSFORMED = "skort_transformed_target"
# The name of the raw score in float64, if the probabilities are computed in float64.
_LINKED = "skort_float64_score"

# What names of the steps before the model begin with. The inputs lose it at the end.
_BEFORE = "transformers/"

_OLDEST_OPSET = 13

# Labels follow from scores: probabilities may round to 0.5 or 1 although the scores differ.
_BINARY_LABEL = """
binary_label (score, classes) => (label) {
    minus_score = Neg (score)
    decision = Concat <axis = 1> (minus_score, score)
    column = ArgMax <axis = 1, keepdims = 0> (decision)
    label = Gather <axis = 0> (classes, column)
}"""
_LABEL = """
label (score, classes) => (label) {
    column = ArgMax <axis = 1, keepdims = 0> (score)
    label = Gather <axis = 0> (classes, column)
}"""
_LABELS = function_text(
    "labels (score) => (label)", "has_label = Greater(score, 0)\nlabel = Cast(has_label, to=7)"
)
_IN_FLOAT64 = "in_float64 (score) => (wide) { wide = Cast <to = 11> (score) }"
_IDENTITY = "identity (score) => (prediction) { prediction = Identity (score) }"


def regressor_model(
    score_graph: ScoreGraph,
    transformers: onnx.ModelProto | None = None,
    inverse_link: str | onnx.FunctionProto | None = None,
    inverse_target: str | None = None,
    outputs: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """
    Return the model X -> `PREDICTION`, of shape (any, n_outputs).

    With `outputs` (name -> width), the columns of the prediction are several outputs.
    """
    model = _raw_score(score_graph, transformers)
    head = Fragment(score_graph.dtype)
    transformed = PREDICTION if inverse_target is None else _TRANSFORMED
    head.call(inverse_link or _IDENTITY, [score_graph.score_name], [transformed])
    if inverse_target is not None:
        head.call(inverse_target, [transformed], [PREDICTION])
    model.graph.node.extend(head.nodes)
    widths = outputs or {PREDICTION: score_graph.n_outputs}

    if outputs:
        sizes = numpy_helper.from_array(np.array(list(outputs.values())), "skort_columns")
        model.graph.initializer.append(sizes)
        model.graph.node.append(
            helper.make_node("Split", [PREDICTION, sizes.name], list(outputs), axis=1)
        )

    element_type = onnx_dtype(score_graph.dtype)
    infos = [
        helper.make_tensor_value_info(name, element_type, [None, width])
        for name, width in widths.items()
    ]
    return _finished(inlined(model, head), infos, transformers)


def classifier_model(
    score_graph: ScoreGraph,
    classes: np.ndarray,
    transformers: onnx.ModelProto | None = None,
    inverse_link: str | onnx.FunctionProto | None = None,
    *,
    multi_label: bool = False,
    in_float64: bool = False,
) -> onnx.ModelProto:
    """
    Return the model X -> `LABEL`, and `PROBABILITIES` if there is an inverse link.

    With `multi_label`, the labels of a row are columns of 1 or 0.
    """
    model = _raw_score(score_graph, transformers)
    labels = label_tensor(classes)
    head = Fragment(score_graph.dtype)
    head.node("Identity", [score_graph.score_name], [SCORE])

    if multi_label:
        head.call(_LABELS, [SCORE], [LABEL])
        outputs = [
            helper.make_tensor_value_info(LABEL, onnx.TensorProto.INT64, [None, len(classes)])
        ]
    else:
        model.graph.initializer.append(labels)
        head.call(
            _BINARY_LABEL if score_graph.n_outputs == 1 else _LABEL, [SCORE, labels.name], [LABEL]
        )
        outputs = [helper.make_tensor_value_info(LABEL, labels.data_type, [None])]

    if inverse_link is not None:
        dtype = score_graph.dtype
        score = SCORE

        if in_float64 and dtype != np.float64:
            dtype = np.dtype(np.float64)
            score = _LINKED
            head.call(_IN_FLOAT64, [SCORE], [score])

        head.call_as_is(function(inverse_link, dtype), [score], [PROBABILITIES])
        outputs.append(
            helper.make_tensor_value_info(PROBABILITIES, onnx_dtype(dtype), [None, len(classes)])
        )

    model.graph.node.extend(head.nodes)
    return _finished(inlined(model, head), outputs, transformers)


def check_names(score_graph: ScoreGraph, *, has_steps: bool) -> None:
    """Raise a ValueError if an ONNX model has an input or a weight with a name that a file uses."""
    inside, weights = _names(score_graph)
    if not has_steps:
        inputs = [i.name for i in score_graph.structure.graph.input[:1]]
        _check_free("estimator has an input", inputs, inside | weights)
    _check_free("estimator has a weight", sorted(weights), inside)


def check_columns(score_graph: ScoreGraph, transformers: onnx.ModelProto | None) -> None:
    """Raise a ValueError if a column of X has a name that another part of the model has."""
    if transformers is not None:
        names = [i.name for i in transformers.graph.input]
        _check_free("X has a column", names, set().union(*_names(score_graph)))


def _names(score_graph):
    """Return the names of results, and those of weights."""
    graph = score_graph.structure.graph
    results = {name for node in graph.node for name in node.output}
    return results, {*score_graph.arrays, *(i.name for i in graph.initializer)}


def _check_free(kind, names, others):
    for name in names:
        if (
            name in (PREDICTION, LABEL, PROBABILITIES)
            or name in others
            or name.startswith("skort_")
        ):
            raise ValueError(
                f"{kind} named {name!r}, which is also a name inside the ONNX model: rename it."
            )


def at_opset(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """Return a model in another opset; raise a ValueError if it cannot be written in that opset."""
    newest = onnx.defs.onnx_opset_version()
    if not isinstance(opset, Integral) or not _OLDEST_OPSET <= opset <= newest:
        advice = " save_onnx(path) writes a file." if isinstance(opset, str) else ""
        advice = " to_onnx takes no rows." if hasattr(opset, "shape") else advice
        given = type(opset).__name__ if hasattr(opset, "shape") else repr(opset)
        raise ValueError(
            f"The model cannot be written with target_opset={given}: it is an integer between "
            f"{_OLDEST_OPSET} and {newest}, the newest one that the installed onnx knows.{advice}"
        )

    model = copy.deepcopy(model)
    (default,) = [o for o in model.opset_import if o.domain == ""]

    try:
        if opset > default.version:
            model = onnx.version_converter.convert_version(model, opset)
        else:
            # skort's own operators have not changed since then; the checker refuses
            # others that have.
            default.version = opset

        model.ir_version = max(IR_VERSION, helper.find_min_ir_version_for(model.opset_import, True))
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # the converter and the checker raise errors of many kinds
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"The model cannot be written with target_opset={opset!r}: {reason}"
        ) from error

    return model


def _raw_score(score_graph, transformers):
    """Return the model X -> raw score, which includes the transformers."""
    if transformers is None:
        return score_graph.model

    before = onnx.compose.add_prefix(transformers, _BEFORE)
    link = [(before.graph.output[0].name, score_graph.input_name)]
    model = onnx.compose.merge_models(before, score_graph.model, io_map=link)
    import_each_domain_once(model)

    return model


def label_tensor(classes: np.ndarray) -> onnx.TensorProto:
    """Return class labels as an ONNX tensor: ints, floats, bools or strings."""
    # Unsigned ints keep their type: int64 is too small for the largest. Other labels get the
    # types of Python.
    labels = classes if classes.dtype.kind == "u" else np.array(classes.tolist())
    known = classes.dtype.kind in "biufUOT" and labels.dtype.kind in "biufU"

    try:
        if not known or labels.dtype == np.longdouble or labels.tolist() != classes.tolist():
            raise ValueError
        return numpy_helper.from_array(
            labels.astype(object) if labels.dtype.kind == "U" else labels, "skort_classes"
        )
    except ValueError as error:  # numpy_helper raises it, too, for text that is no Unicode
        raise NotExportableError(
            f"y has labels of dtype {classes.dtype}, such as {classes[0]!r}, that an ONNX model "
            "cannot return. Use ints, floats, bools or strings."
        ) from error


def _finished(model, outputs, transformers):
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    if transformers is not None:
        name_inputs(model.graph, [i.name for i in transformers.graph.input])
    model.graph.name = "skort"
    model.graph.doc_string = ""
    model.producer_name = "skort"
    model.producer_version = __version__
    model.domain = ""

    return model
