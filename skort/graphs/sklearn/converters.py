"""Converters of imputers and polynomials for skl2onnx, and the inverse of a transformer of y."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto
from skl2onnx.common.data_types import StringTensorType
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from skort.exceptions import NotExportableError


@dataclass(frozen=True)
class Nodes:
    """
    A writer of the nodes of a conversion.

    Each result gets a new name that begins with `name`.
    """

    scope: Any
    container: Any

    def add(
        self,
        operator: str,
        inputs: Sequence[str],
        name: str = "",
        domain: str = "",
        version: int = 13,
        result: str = "",
        **attributes,
    ) -> str:
        """Write an operator; return the name of its result, which is `result` or a new one."""
        result = result or self.scope.get_unique_variable_name(name or operator.lower())
        self.container.add_node(
            operator, inputs, result, op_domain=domain, op_version=version, **attributes
        )
        return result

    def constant(
        self, values: Any, element_type: int = TensorProto.INT64, name: str = "constant"
    ) -> str:
        """Write a constant; return its name."""
        name = self.scope.get_unique_variable_name(name)
        values = np.asarray(values)
        flat = (
            [value.encode() for value in values.flat]
            if element_type == TensorProto.STRING
            else values.ravel()
        )
        self.container.add_initializer(name, element_type, list(values.shape), flat)

        return name

    def codes(self, tokens: str, table: dict[str, int], otherwise: int, name: str = "") -> str:
        """Write a lookup of tokens in a table of integers; return the name of its result."""
        attributes: dict[str, Any] = {
            "keys_strings": list(table),
            "values_int64s": list(table.values()),
        }
        return self.add(
            "LabelEncoder", [tokens], name, "ai.onnx.ml", 2, **attributes, default_int64=otherwise
        )


def _convert_imputer(scope, operator, container):
    # skl2onnx's own converter fails on missing numbers in float64 and on missing text without a
    # marker, and drops the columns of add_indicator.
    nodes = Nodes(scope, container)
    imputer = operator.raw_operator
    (X, *others) = operator.inputs
    values = X.full_name
    if others:
        values = nodes.add("Concat", [i.full_name for i in operator.inputs], "concatenated", axis=1)
    is_text = isinstance(X.type, StringTensorType)
    marker = imputer.missing_values
    element_type = TensorProto.STRING if is_text else X.type.to_onnx_type().tensor_type.elem_type

    if is_text:
        # Equal takes no text before opset 19.
        code = nodes.codes(values, {marker if isinstance(marker, str) else "": 1}, 0, "code")
        missing = nodes.add("Cast", [code], "missing", to=TensorProto.BOOL)
    elif isinstance(marker, float) and marker != marker:
        missing = nodes.add("IsNaN", [values], "missing")
    else:
        missing = nodes.add(
            "Equal", [values, nodes.constant([marker], element_type, "marker")], "missing"
        )

    fill = nodes.constant([imputer.statistics_.tolist()], element_type, "statistics")
    output = operator.outputs[0]
    if imputer.indicator_ is None or is_text or not len(imputer.indicator_.features_):
        nodes.add("Where", [missing, fill, values], result=output.full_name, version=9)
        return

    imputed = nodes.add("Where", [missing, fill, values], "imputed", version=9)
    marked = imputer.indicator_.features_.tolist()
    chosen = nodes.add(
        "Gather", [missing, nodes.constant(marked, name="features")], "chosen", axis=1
    )
    indicator = nodes.add("Cast", [chosen], "indicator", to=element_type)
    nodes.add("Concat", [imputed, indicator], result=output.full_name, axis=1)

    # skl2onnx counts only the imputed columns.
    output.type.shape = [None, len(imputer.statistics_) + len(marked)]


def _convert_polynomial(scope, operator, container):
    # skl2onnx's own converter writes float32 constants into a float64 model, and a dozen
    # nodes per feature.
    nodes = Nodes(scope, container)
    powers = operator.raw_operator.powers_
    X = operator.inputs[0]
    n_features = powers.shape[1]
    factors = [np.repeat(np.arange(n_features), row).tolist() for row in powers]

    # Products with fewer factors than the degree are filled up with a column of ones.
    pads = nodes.constant([0, 0, 0, 1], name="pads")
    one = nodes.constant(1, X.type.to_onnx_type().tensor_type.elem_type, "one")
    with_ones = nodes.add("Pad", [X.full_name, pads, one], "with_ones")

    product = ""
    for i in range(max(1, powers.sum(axis=1).max())):
        columns = nodes.constant(
            [row[i] if i < len(row) else n_features for row in factors], name="columns"
        )
        factor = nodes.add("Gather", [with_ones, columns], "factor", axis=1)
        product = (
            nodes.add("Mul", [product, factor], f"product{i}", version=14) if product else factor
        )

    nodes.add("Identity", [product], result=operator.outputs[0].full_name, version=14)


#: The converters by the type of a transformer.
CONVERTERS = {SimpleImputer: _convert_imputer, PolynomialFeatures: _convert_polynomial}


# Function of numpy -> operators one after the other, each with its second operand or None.
_FUNCTIONS: dict[Any, list[tuple[str, float | None]]] = {
    None: [],
    np.exp: [("Exp", None)],
    np.expm1: [("Exp", None), ("Sub", 1.0)],
    np.log: [("Log", None)],
    np.log1p: [("Add", 1.0), ("Log", None)],
    np.negative: [("Neg", None)],
    np.reciprocal: [("Reciprocal", None)],
    np.sqrt: [("Sqrt", None)],
    np.square: [("Pow", 2.0)],
}
# Type of a scaler -> the operators of its inverse, each with the attribute that is its second
# operand and the parameter that turns it off.
_SCALERS: dict[type, list[tuple[str, str, str]]] = {
    MaxAbsScaler: [("Mul", "scale_", "")],
    MinMaxScaler: [("Sub", "min_", ""), ("Div", "scale_", "")],
    RobustScaler: [("Mul", "scale_", "with_scaling"), ("Add", "center_", "with_centering")],
    StandardScaler: [("Mul", "scale_", "with_std"), ("Add", "mean_", "with_mean")],
}


def target_inverse(transformer: Any) -> str:
    """
    Return the inverse of a fitted transformer of y as ONNX text: (transformed) => (target).

    Both are matrices.
    """
    lines = []
    result = "transformed"
    for i, (operator, operand) in enumerate(_operations(transformer)):
        operands = [result]
        if operand is not None:
            numbers = np.ravel(operand).astype(float).tolist()
            values = ", ".join(map(repr, numbers))
            lines.append(f"operand{i} = Constant <value = float[{len(numbers)}] {{{values}}}> ()")
            operands.append(f"operand{i}")

        result = f"result{i}"
        lines.append(f"{result} = {operator} ({', '.join(operands)})")

    nodes = "\n    ".join([*lines, f"target = Identity ({result})"])
    return f"target_inverse (transformed) => (target) {{\n    {nodes}\n}}"


def _operations(transformer: Any) -> Iterable[tuple[str, Any]]:
    """
    Return the operators of the inverse one after the other,
    each with its second operand or None.
    """
    if isinstance(transformer, FrozenEstimator):
        return _operations(transformer.estimator)
    if type(transformer) is Pipeline:
        return [
            operation for _, step in reversed(transformer.steps) for operation in _operations(step)
        ]
    if transformer is None or transformer == "passthrough":
        return []
    if type(transformer) in _SCALERS:
        parts = _SCALERS[type(transformer)]
        return [
            (op, getattr(transformer, operand))
            for op, operand, on in parts
            if getattr(transformer, on, True)
        ]

    if type(transformer) is FunctionTransformer and not transformer.inv_kw_args:
        for known, operations_of_known in _FUNCTIONS.items():
            if transformer.inverse_func is known:
                return operations_of_known

    name = " ".join(repr(transformer).split())
    raise NotExportableError(
        f"TransformedTargetRegressor: the inverse of its transformer {name} cannot be part of an "
        "ONNX model. Use StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler; or functions "
        "whose inverse_func is numpy's exp, expm1, log, log1p, negative, reciprocal, sqrt or "
        "square; or a Pipeline of these."
    )
