"""What skl2onnx calls to write nodes, and skort's converters of an imputer and of polynomials."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto
from skl2onnx.common.data_types import StringTensorType
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import PolynomialFeatures


@dataclass(frozen=True)
class Nodes:
    """Writes nodes of a conversion; results get names of their own, which begin with `name`."""

    scope: Any
    container: Any

    def add(
        self, operator: str, inputs: Sequence[str], name: str = "", domain: str = "", version: int = 13, **attributes
    ) -> str:
        """Return the name of the result of an operator."""
        result = self.scope.get_unique_variable_name(name or operator.lower())
        return self.give(operator, inputs, result, domain, version, **attributes)

    def give(
        self, operator: str, inputs: Sequence[str], result: str, domain: str = "", version: int = 13, **attributes
    ) -> str:
        """Write an operator whose result has a name already, for instance that of the output; return the name."""
        self.container.add_node(operator, inputs, result, op_domain=domain, op_version=version, **attributes)
        return result

    def constant(self, values: Any, element_type: int = TensorProto.INT64, name: str = "constant") -> str:
        """Return the name of a constant."""
        name, values = self.scope.get_unique_variable_name(name), np.asarray(values)
        flat = [value.encode() for value in values.flat] if element_type == TensorProto.STRING else values.ravel()
        self.container.add_initializer(name, element_type, list(values.shape), flat)
        return name

    def codes(self, tokens: str, table: dict[str, int], otherwise: int, name: str = "") -> str:
        """Return the name of the integers that stand for tokens."""
        attributes = {"keys_strings": list(table), "values_int64s": list(table.values()), "default_int64": otherwise}
        return self.add("LabelEncoder", [tokens], name, "ai.onnx.ml", 2, **attributes)


def _convert_imputer(scope, operator, container):
    # skl2onnx's own converter fails on missing numbers in float64 and on missing text without a marker, and drops the
    # columns of add_indicator.
    nodes, imputer, (X, *others) = Nodes(scope, container), operator.raw_operator, operator.inputs
    values = X.full_name
    if others:
        values = nodes.add("Concat", [i.full_name for i in operator.inputs], "concatenated", axis=1)
    is_text, marker = isinstance(X.type, StringTensorType), imputer.missing_values
    element_type = TensorProto.STRING if is_text else X.type.to_onnx_type().tensor_type.elem_type
    if is_text:
        # Equal takes no text before opset 19.
        code = nodes.codes(values, {marker if isinstance(marker, str) else "": 1}, 0, "code")
        missing = nodes.add("Cast", [code], "missing", to=TensorProto.BOOL)
    elif isinstance(marker, float) and marker != marker:
        missing = nodes.add("IsNaN", [values], "missing")
    else:
        missing = nodes.add("Equal", [values, nodes.constant([marker], element_type, "marker")], "missing")
    fill = nodes.constant([imputer.statistics_.tolist()], element_type, "statistics")
    output = operator.outputs[0]
    if imputer.indicator_ is None or is_text or not len(imputer.indicator_.features_):
        nodes.give("Where", [missing, fill, values], output.full_name, version=9)
        return
    imputed = nodes.add("Where", [missing, fill, values], "imputed", version=9)
    marked = imputer.indicator_.features_.tolist()
    chosen = nodes.add("Gather", [missing, nodes.constant(marked, name="features")], "chosen", axis=1)
    indicator = nodes.add("Cast", [chosen], "indicator", to=element_type)
    nodes.give("Concat", [imputed, indicator], output.full_name, axis=1)
    # skl2onnx counts only the imputed columns.
    output.type.shape = [None, len(imputer.statistics_) + len(marked)]


def _convert_polynomial(scope, operator, container):
    # skl2onnx's own converter writes float32 constants into a float64 model, and a dozen nodes per feature.
    nodes, powers, X = Nodes(scope, container), operator.raw_operator.powers_, operator.inputs[0]
    n_features = powers.shape[1]
    factors = [np.repeat(np.arange(n_features), row).tolist() for row in powers]
    # Products with fewer factors than the degree are filled up with a column of ones.
    pads = nodes.constant([0, 0, 0, 1], name="pads")
    one = nodes.constant(1, X.type.to_onnx_type().tensor_type.elem_type, "one")
    with_ones, product = nodes.add("Pad", [X.full_name, pads, one], "with_ones"), ""
    for i in range(max(1, powers.sum(axis=1).max())):
        columns = nodes.constant([row[i] if i < len(row) else n_features for row in factors], name="columns")
        factor = nodes.add("Gather", [with_ones, columns], "factor", axis=1)
        product = nodes.add("Mul", [product, factor], f"product{i}", version=14) if product else factor
    nodes.give("Identity", [product], operator.outputs[0].full_name, version=14)


#: The converters of numbers, by the type of a transformer.
CONVERTERS = {SimpleImputer: _convert_imputer, PolynomialFeatures: _convert_polynomial}
