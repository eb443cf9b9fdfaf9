"""scikit-learn model -> ONNX."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import skl2onnx
from numpy.typing import DTypeLike
from onnx import TensorProto
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures

from skort.common.onnx_text import IR_VERSION, OPSET, import_each_domain_once, onnx_dtype
from skort.graphs.sklearn.raw_inputs import RawInput
from skort.graphs.sklearn.text import check_convertible, text_converters, text_shapes

# Operators of skl2onnx that hold their weights as attributes, which cannot be trained.
_DECOMPOSED = {"LinearRegressor", "LinearClassifier", "Scaler"}


def to_onnx(estimator: Any, inputs: Sequence[RawInput], dtype: DTypeLike) -> onnx.ModelProto:
    """Convert a fitted scikit-learn estimator, its weights as initializers; skl2onnx raises errors of many kinds."""
    element_type = onnx_dtype(dtype)
    number = DoubleTensorType if element_type == TensorProto.DOUBLE else FloatTensorType
    model = skl2onnx.convert_sklearn(
        _convertible(estimator),
        initial_types=[(i.name, (StringTensorType if i.is_text else number)([None, i.width])) for i in inputs],
        target_opset=OPSET,
        black_op=_DECOMPOSED,
        options={"zipmap": False} if is_classifier(estimator) else None,
        custom_conversion_functions={**_CONVERTERS, **text_converters(element_type)},
        custom_shape_calculators=text_shapes(element_type),
    )
    model.ir_version = IR_VERSION
    import_each_domain_once(model)
    for opset in model.opset_import:
        if opset.domain == "":
            # skl2onnx imports the newest opset that an operator here needs; none of them changed from there to OPSET.
            opset.version = OPSET
    for raw_input, value in zip(inputs, model.graph.input, strict=True):
        rename_input(model.graph, value, raw_input.name)
    return model


def _convertible(estimator):
    """Return a copy that skl2onnx knows how to convert: nothing is frozen, and missing text is the empty string."""
    if isinstance(estimator, str):
        return estimator
    if isinstance(estimator, FrozenEstimator):
        return _convertible(estimator.estimator)
    check_convertible(estimator)
    estimator = copy.copy(estimator)
    if isinstance(estimator, Pipeline):
        estimator.steps = [(name, _convertible(step)) for name, step in estimator.steps]
    elif isinstance(estimator, FeatureUnion):
        estimator.transformer_list = [(name, _convertible(part)) for name, part in estimator.transformer_list]
    elif isinstance(estimator, ColumnTransformer):
        # skl2onnx takes positions of columns, but no masks, slices of names, or names from an earlier step.
        columns = estimator._transformer_to_input_indices
        parts = estimator.transformers_
        estimator.transformers_ = [(name, _convertible(part), columns[name]) for name, part, _ in parts]
    elif isinstance(estimator, (OneHotEncoder, OrdinalEncoder)):
        estimator.categories_ = [_without_missing_text(categories) for categories in estimator.categories_]
    return estimator


def _without_missing_text(categories):
    if not any(isinstance(category, str) for category in categories):
        return categories
    return np.array([category if isinstance(category, str) else "" for category in categories], dtype=object)


def _convert_imputer(scope, operator, container):
    # skl2onnx's own converter fails on missing numbers in float64 and on missing text without a marker, and drops the
    # columns of add_indicator.
    imputer, (X, *others) = operator.raw_operator, operator.inputs
    name = X.full_name
    if others:
        name = scope.get_unique_variable_name("concatenated")
        container.add_node("Concat", [i.full_name for i in operator.inputs], name, axis=1, op_version=13)
    is_text = isinstance(X.type, StringTensorType)
    element_type = TensorProto.STRING if is_text else X.type.to_onnx_type().tensor_type.elem_type
    missing = scope.get_unique_variable_name("missing")
    marker = imputer.missing_values
    if not is_text and isinstance(marker, float) and marker != marker:
        container.add_node("IsNaN", name, missing, op_version=13)
    elif is_text:
        # Equal takes no text before opset 19.
        code = scope.get_unique_variable_name("code")
        keys = [marker if isinstance(marker, str) else ""]
        attributes = {"keys_strings": keys, "values_int64s": [1], "default_int64": 0}
        container.add_node("LabelEncoder", name, code, op_domain="ai.onnx.ml", op_version=2, **attributes)
        container.add_node("Cast", code, missing, to=TensorProto.BOOL, op_version=13)
    else:
        value = scope.get_unique_variable_name("marker")
        container.add_initializer(value, element_type, [1], [marker])
        container.add_node("Equal", [name, value], missing, op_version=13)
    fill = scope.get_unique_variable_name("statistics")
    statistics = imputer.statistics_.tolist()
    container.add_initializer(
        fill, element_type, [1, len(statistics)], [s.encode() for s in statistics] if is_text else statistics
    )
    output = operator.outputs[0]
    marked = [] if imputer.indicator_ is None or is_text else imputer.indicator_.features_.tolist()
    imputed = scope.get_unique_variable_name("imputed") if marked else output.full_name
    container.add_node("Where", [missing, fill, name], imputed, op_version=9)
    if marked:
        features, chosen, indicator = map(scope.get_unique_variable_name, ("features", "chosen", "indicator"))
        container.add_initializer(features, TensorProto.INT64, [len(marked)], marked)
        container.add_node("Gather", [missing, features], chosen, axis=1, op_version=13)
        container.add_node("Cast", chosen, indicator, to=element_type, op_version=13)
        container.add_node("Concat", [imputed, indicator], output.full_name, axis=1, op_version=13)
        # skl2onnx counts only the imputed columns.
        output.type.shape = [None, len(statistics) + len(marked)]


def _convert_polynomial(scope, operator, container):
    # skl2onnx's own converter writes float32 constants into a float64 model, and a dozen nodes per feature.
    powers, X = operator.raw_operator.powers_, operator.inputs[0]
    n_features = powers.shape[1]
    factors = [np.repeat(np.arange(n_features), row) for row in powers]
    element_type = X.type.to_onnx_type().tensor_type.elem_type

    def constant(name, type, values):
        name = scope.get_unique_variable_name(name)
        container.add_initializer(name, type, [len(values)] if isinstance(values, list) else [], np.ravel(values))
        return name

    # Products with fewer factors than the degree are filled up with a column of ones.
    with_ones = scope.get_unique_variable_name("with_ones")
    pads, one = constant("pads", TensorProto.INT64, [0, 0, 0, 1]), constant("one", element_type, 1)
    container.add_node("Pad", [X.full_name, pads, one], with_ones, op_version=13)
    product = ""
    for i in range(max(1, powers.sum(axis=1).max())):
        columns = [int(row[i]) if i < len(row) else n_features for row in factors]
        factor, next_product = (scope.get_unique_variable_name(name) for name in ("factor", "product"))
        indices = constant("columns", TensorProto.INT64, columns)
        container.add_node("Gather", [with_ones, indices], factor, axis=1, op_version=13)
        if product:
            container.add_node("Mul", [product, factor], next_product, op_version=14)
        product = next_product if product else factor
    container.add_node("Identity", product, operator.outputs[0].full_name, op_version=14)


_CONVERTERS = {SimpleImputer: _convert_imputer, PolynomialFeatures: _convert_polynomial}


def rename_input(graph: onnx.GraphProto, value: onnx.ValueInfoProto, name: str) -> None:
    """Give an input of a graph another name, in place; a ValueError where something else in the graph has it."""
    if value.name == name:
        return
    given = [i.name for i in (*graph.input, *graph.initializer)]
    if name in given or any(name in node.output for node in graph.node):
        raise ValueError(f"X has a column named {name!r}, which is also a name inside the ONNX model: rename it.")
    for node in graph.node:
        node.input[:] = [name if i == value.name else i for i in node.input]
    value.name = name
