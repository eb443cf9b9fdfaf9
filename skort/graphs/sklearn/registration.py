"""Converters of skl2onnx for fitted estimators of skort and for transformed targets."""

import functools

import numpy as np
import onnx.compose
import onnx.version_converter
import skl2onnx
from onnx import TensorProto, helper
from skl2onnx._parse import _parse_sklearn
from skl2onnx._supported_operators import sklearn_operator_name_map
from skl2onnx.common.data_types import (
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
    guess_proto_type,
    guess_tensor_type,
)
from sklearn.base import ClassifierMixin, is_classifier
from sklearn.compose import TransformedTargetRegressor

from skort.common.onnx_text import function, onnx_dtype
from skort.graphs.export import PREDICTION, SCORE
from skort.graphs.sklearn.converters import Nodes, target_inverse
from skort.graphs.sklearn.thresholds import register_thresholds

# The options of scikit-learn's classifiers. skl2onnx asks for "nocl" (indices in place of labels),
# which users cannot set.
_CLASSIFIER_OPTIONS = {
    "nocl": [False],
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "raw_scores": [False, True],
}
_ALIAS = "SkortTransformedTargetRegressor"


@functools.cache
def register(estimator_class: type) -> None:
    """Register the converters of an estimator class, and of what scikit-learn puts around it."""
    if TransformedTargetRegressor not in sklearn_operator_name_map:
        skl2onnx.update_registered_converter(
            TransformedTargetRegressor,
            _ALIAS,
            _set_target_type,
            _convert_target,
            parser=_parse_target,
        )
        register_thresholds()

    skl2onnx.update_registered_converter(
        estimator_class,
        f"{estimator_class.__module__}.{estimator_class.__qualname__}",
        _set_output_types,
        _convert,
        options=_CLASSIFIER_OPTIONS if issubclass(estimator_class, ClassifierMixin) else None,
    )


def _set_output_types(operator):
    """
    Set the types of an operator's outputs: numbers as precise as its input,
    labels as int64 or strings.
    """
    estimator = operator.raw_operator
    rows = operator.inputs[0].get_first_dimension()
    numbers = type(guess_tensor_type(operator.inputs[0].type))
    if not is_classifier(estimator):
        columns = sum(
            o.type.tensor_type.shape.dim[1].dim_value for o in estimator.onnx_.graph.output
        )
        operator.outputs[0].set_type(numbers([rows, columns]))
        return

    classes = estimator.classes_
    if _is_multi_label(estimator):
        operator.outputs[0].set_type(Int64TensorType([rows, len(classes)]))
        operator.outputs[1].set_type(numbers([rows, len(classes)]))
        return

    if estimator.onnx_.graph.output[0].type.tensor_type.elem_type == TensorProto.STRING:
        label = StringTensorType
    elif np.array_equal(classes, classes.astype(np.int64)):
        label = Int64TensorType
    else:
        raise ValueError(
            f"skl2onnx writes labels that are ints or strings, not such as {classes[0]!r}. "
            "Encode y, or export this estimator alone, with its to_onnx()."
        )

    operator.outputs[0].set_type(label([rows]))
    operator.outputs[1].set_type(numbers([rows, len(classes)]))


def _is_multi_label(classifier):
    """Return whether a row may have several labels: then "label" is a matrix."""
    return len(classifier.onnx_.graph.output[0].type.tensor_type.shape.dim) == 2


def _convert(scope, operator, container):
    """Write the ONNX model of a fitted estimator into the model that skl2onnx makes."""
    estimator = operator.raw_operator
    # One model may hold several estimators: each has a prefix of its own.
    prefix = scope.get_unique_operator_name(type(estimator).__name__) + "/"
    model = estimator.onnx_
    kinds = {
        node.op_type
        for node in model.graph.node
        if node.op_type.startswith("Reduce") or node.op_type == "Split"
    }

    if container.target_opset >= 18 and kinds - {"ReduceSum"}:
        # These operators changed from opset 17 to 18. Nodes of opset 18 are valid in the
        # container's opset, too.
        model = onnx.version_converter.convert_version(model, 18)

    model = onnx.compose.add_prefix(model, prefix)
    # The label of a classifier without probabilities may be text.
    last = model.graph.output[-1].type.tensor_type.elem_type
    numbers = onnx_dtype(estimator.dtype) if last == TensorProto.STRING else last
    inner = _made(model, prefix + (SCORE if is_classifier(estimator) else PREDICTION))
    outputs = [info.name for info in model.graph.output]
    types = {inner: numbers} | {
        info.name: info.type.tensor_type.elem_type
        for info in (*model.graph.input, *model.graph.output)
    }
    nodes = Nodes(scope, container)
    _add_inputs(
        nodes, operator, [i.name.removeprefix(prefix) for i in model.graph.input], prefix, types
    )
    container.nodes.extend(model.graph.node)

    results = _results(nodes, operator, inner, outputs, types)
    for result, variable in zip(results, operator.outputs, strict=True):
        _cast(nodes, result, types[result], guess_proto_type(variable.type), variable.onnx_name)

    container.initializers.extend(model.graph.initializer)
    container.node_domain_version_pair_sets.update(
        (o.domain, o.version) for o in model.opset_import
    )


def _add_inputs(nodes, operator, names, prefix, types):
    """
    Add nodes that compute the inputs `names` of an estimator.

    The operator of the estimator has columns of these names, or one matrix.
    """
    given = {variable.raw_name: variable for variable in operator.inputs}
    if len(names) == 1:
        element_type = types[prefix + names[0]]
        columns = [
            _cast(nodes, v.onnx_name, guess_proto_type(v.type), element_type)
            for v in operator.inputs
        ]
        whole = columns if len(columns) == 1 else [nodes.add("Concat", columns, axis=1)]
        nodes.add("Identity", whole, result=prefix + names[0])

        return

    by_name = given.keys() >= set(names)
    if not by_name and len(given) > 1:
        raise ValueError(
            f"The estimator was fitted on the columns {names}, the model to convert "
            f"has {list(given)}."
        )

    for i, name in enumerate(names):
        variable = given[name] if by_name else operator.inputs[0]
        column = variable.onnx_name
        if not by_name:
            column = nodes.add("Gather", [column, nodes.constant([i])], axis=1)
        _cast(nodes, column, guess_proto_type(variable.type), types[prefix + name], prefix + name)


def _made(model, name):
    """Return the name of a result: it has a "_" at the end if a column has its usual name."""
    made = {result for node in model.graph.node for result in node.output}
    while name not in made:
        name += "_"
    return name


def _results(nodes, operator, inner, outputs, types):
    """
    Return the names of the results of an estimator's operator: some of `outputs`, or `inner`.

    `inner` is a regressor's prediction or a raw score, which gets one column per class.
    """
    estimator = operator.raw_operator
    if not is_classifier(estimator):
        return [inner]

    raw_scores = nodes.container.get_options(estimator, {"raw_scores": False})["raw_scores"]
    if len(outputs) > 1 and not raw_scores:
        return outputs
    if len(estimator.classes_) > 2 or _is_multi_label(estimator):
        return [outputs[0], inner]

    score = nodes.add("Concat", [nodes.add("Neg", [inner]), inner], axis=1)
    types[score] = types[inner]
    return [outputs[0], score]


def _cast(nodes, name, from_type, to_type, result=""):
    """Write a cast to another type; return the name of the result."""
    if from_type == to_type:
        return nodes.add("Identity", [name], result=result)
    if TensorProto.STRING in (from_type, to_type):
        raise ValueError(
            f"{name!r} is text where the fitted estimator has numbers, or the other way round."
        )

    return nodes.add("Cast", [name], result=result, to=to_type)


def _parse_target(scope, model, inputs, custom_parsers=None):
    """Let skl2onnx parse the inner regressor. Its prediction is the input of this operator."""
    operator = scope.declare_local_operator(_ALIAS, model)
    operator.inputs = _parse_sklearn(scope, model.regressor_, inputs, custom_parsers)
    operator.outputs.append(scope.declare_local_variable("variable", FloatTensorType()))
    return operator.outputs


def _set_target_type(operator):
    """Give the output the type and shape of the input. The inverse keeps the number of columns."""
    (prediction,) = operator.inputs
    operator.outputs[0].set_type(type(guess_tensor_type(prediction.type))(prediction.type.shape))


def _convert_target(scope, operator, container):
    """Write the inverse of the transformer of y."""
    (prediction,) = operator.inputs
    (target,) = operator.outputs
    numbers = (
        "float64"
        if target.type.to_onnx_type().tensor_type.elem_type == onnx_dtype("float64")
        else "float32"
    )
    inverse = function(target_inverse(operator.raw_operator.transformer_), numbers)
    names = {inverse.input[0]: prediction.full_name, inverse.output[0]: target.full_name}

    for node in inverse.node:
        for result in node.output:
            names.setdefault(result, scope.get_unique_variable_name(result))

    for node in inverse.node:
        inputs, outputs = ([names[name] for name in part] for part in (node.input, node.output))
        attributes = {
            attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute
        }
        container.add_node(node.op_type, inputs, outputs, op_version=13, **attributes)
