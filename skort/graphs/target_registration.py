"""skl2onnx converts a `TransformedTargetRegressor`, which it does not by itself: its converter."""

import functools

import skl2onnx
from onnx import helper
from skl2onnx.common.data_types import FloatTensorType, guess_tensor_type
from sklearn.compose import TransformedTargetRegressor

from skort.common.onnx_text import function, onnx_dtype
from skort.graphs.target_inverse import target_inverse

__all__ = ["register_transformed_target"]

_ALIAS = "SkortTransformedTargetRegressor"


@functools.cache
def register_transformed_target() -> None:
    """Tell skl2onnx how to convert a `TransformedTargetRegressor`, unless it knows already."""
    from skl2onnx._supported_operators import sklearn_operator_name_map

    if TransformedTargetRegressor not in sklearn_operator_name_map:
        skl2onnx.update_registered_converter(
            TransformedTargetRegressor, _ALIAS, _set_output_types, _convert, parser=_parse
        )


def _parse(scope, model, inputs, custom_parsers=None):
    """Let skl2onnx parse the regressor inside, whose prediction is the input of this operator."""
    from skl2onnx._parse import _parse_sklearn

    operator = scope.declare_local_operator(_ALIAS, model)
    operator.inputs = _parse_sklearn(scope, model.regressor_, inputs, custom_parsers)
    operator.outputs.append(scope.declare_local_variable("variable", FloatTensorType()))
    return operator.outputs


def _set_output_types(operator):
    """Give the output the type of the input: the inverse has as many columns."""
    (prediction,) = operator.inputs
    shape = prediction.type.shape
    operator.outputs[0].set_type(type(guess_tensor_type(prediction.type))(shape))


def _convert(scope, operator, container):
    """Write the inverse of the transformer of y."""
    (prediction,), (target,) = operator.inputs, operator.outputs
    numbers = "float64" if target.type.to_onnx_type().tensor_type.elem_type == onnx_dtype("float64") else "float32"
    inverse = function(target_inverse(operator.raw_operator.transformer_), numbers)
    names = {inverse.input[0]: prediction.full_name, inverse.output[0]: target.full_name}
    for node in inverse.node:
        for result in node.output:
            names.setdefault(result, scope.get_unique_variable_name(result))
    for node in inverse.node:
        inputs, outputs = ([names[name] for name in part] for part in (node.input, node.output))
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        container.add_node(node.op_type, inputs, outputs, op_version=13, **attributes)
