"""Converters of transformers of numbers for skl2onnx, and the inverse of a transformer of y."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto
from skl2onnx.common.data_types import StringTensorType, guess_proto_type, guess_tensor_type
from skl2onnx.operator_converters.function_transformer import convert_sklearn_function_transformer
from skl2onnx.shape_calculators.function_transformer import (
    calculate_sklearn_function_transformer_output_shapes,
)
from skl2onnx.shape_calculators.imputer import calculate_sklearn_imputer_output_shapes
from sklearn import feature_selection
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
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
        **attributes: Any,
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

    all_missing = missing
    kept = _kept(imputer)
    fills = imputer.statistics_[kept].tolist()
    if len(kept) < len(imputer.statistics_):
        numbers = nodes.constant(kept, name="kept")
        values, missing = (
            nodes.add("Gather", [each, numbers], "kept", axis=1) for each in (values, missing)
        )
    if is_text and None in fills:
        raise NotExportableError(
            "it fills texts with None, which no file has. Write None as NaN before, as "
            "X.fillna(numpy.nan) does, or fill with a text"
        )
    kinds = {isinstance(value, str) for value in fills} if is_text else set()
    if len(kinds) > 1:
        _refuse_both_kinds(imputer)
    if False in kinds:
        raise NotExportableError("it takes numbers, and X has texts there")
    fill = nodes.constant([fills], element_type, "statistics")
    output = operator.outputs[0]
    if imputer.indicator_ is None or is_text or not len(imputer.indicator_.features_):
        nodes.add("Where", [missing, fill, values], result=output.full_name, version=9)
        return

    imputed = nodes.add("Where", [missing, fill, values], "imputed", version=9)
    marked = imputer.indicator_.features_.tolist()
    chosen = nodes.add(
        "Gather", [all_missing, nodes.constant(marked, name="features")], "chosen", axis=1
    )
    indicator = nodes.add("Cast", [chosen], "indicator", to=element_type)
    nodes.add("Concat", [imputed, indicator], result=output.full_name, axis=1)

    # skl2onnx counts only the imputed columns.
    output.type.shape = [None, len(kept) + len(marked)]


def _kept(imputer):
    """Return the positions of the columns that an imputer keeps: not those without any value."""
    # A number that is not equal to itself is NaN.
    fills_nan = imputer.strategy == "constant" and imputer.fill_value != imputer.fill_value
    return [j for j, fill in enumerate(imputer.statistics_) if fills_nan or fill == fill]


def _set_imputed_type(operator):
    """Give the output of an imputer its type and shape; refuse numbers and texts together."""
    values = (*operator.inputs, *operator.outputs)
    if len({isinstance(value.type, StringTensorType) for value in values}) > 1:
        _refuse_both_kinds(operator.raw_operator)
    calculate_sklearn_imputer_output_shapes(operator)
    operator.outputs[0].type.shape = [None, len(_kept(operator.raw_operator))]


def _refuse_both_kinds(imputer):
    """Raise the error of numbers beside texts. What the imputer fills tells the kind of a column."""
    names = getattr(imputer, "feature_names_in_", ())
    fills = dict(zip(names, imputer.statistics_.tolist(), strict=False))
    texts = [name for name, fill in fills.items() if isinstance(fill, str)]
    numbers = [name for name in fills if name not in texts]
    which, types = "numbers and texts", "str"

    if numbers and texts:
        which = f"numbers ({', '.join(numbers)}) and texts ({', '.join(texts)})"
        types = f"{{{', '.join(f'{name!r}: str' for name in numbers)}}}"
    raise NotExportableError(
        f"SimpleImputer gets {which} together. Give each kind a transformer of its own, or make "
        f"texts of the numbers before, as X.astype({types}) does"
    )


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


def _convert_normalizer(scope, operator, container):
    # ONNX's Normalizer divides by the largest number in place of the largest magnitude, and
    # squares numbers that are too large for it.
    nodes = Nodes(scope, container)
    values, element_type = matrix(nodes, operator)

    # The norm of parts of the largest magnitude stays in range.
    norm = nodes.add("ReduceMax", [nodes.add("Abs", [values])], "norm", axes=[1], keepdims=1)
    result = nodes.add("Div", [values, norm], version=14)
    if operator.raw_operator.norm != "max":
        is_l1 = operator.raw_operator.norm == "l1"
        parts = (
            nodes.add("Abs", [result]) if is_l1 else nodes.add("Mul", [result, result], version=14)
        )
        length = nodes.add("ReduceSum", [parts, nodes.constant([1])], "length", keepdims=1)
        length = length if is_l1 else nodes.add("Sqrt", [length], "length")
        result = nodes.add("Div", [result, length], version=14)
        norm = nodes.add("Mul", [norm, length], "norm", version=14)

    # As in scikit-learn, a row of a tiny norm stays as it is. The norm of zeros is NaN here.
    least = nodes.constant(10 * np.finfo(np.float64).eps, element_type, "least")
    is_large = nodes.add("GreaterOrEqual", [norm, least], version=16)
    nodes.add("Where", [is_large, result, values], result=operator.outputs[0].full_name, version=9)


def _convert_bins(scope, operator, container):
    # skl2onnx's own converter writes no sparse result, which is the default, and rounds to float32.
    nodes = Nodes(scope, container)
    bins = operator.raw_operator
    values, element_type = matrix(nodes, operator)

    # Rows of edges are filled up with infinity, which no number reaches.
    counts = bins.n_bins_.astype(int)
    edges = np.full((len(counts), max(1, counts.max() - 1)), np.inf)
    for row, of_feature in zip(edges, bins.bin_edges_, strict=True):
        row[: len(of_feature) - 2] = of_feature[1:-1]

    values = nodes.add("Unsqueeze", [values, nodes.constant([2])])
    reached = nodes.add(
        "GreaterOrEqual", [values, nodes.constant(edges, element_type, "edges")], version=16
    )
    reached = nodes.add("Cast", [reached], to=element_type)
    one_hot = bins.encode != "ordinal"
    code = nodes.add("ReduceSum", [reached, nodes.constant([2])], "code", keepdims=int(one_hot))
    if one_hot:
        every = np.arange(counts.max())
        code = nodes.add("Equal", [code, nodes.constant(every, element_type, "bins")])
        code = nodes.add("Reshape", [code, nodes.constant([-1, len(counts) * len(every)])])
        kept = np.flatnonzero(every < counts[:, None]).tolist()
        code = nodes.add("Gather", [code, nodes.constant(kept, name="kept")], axis=1)

    nodes.add("Cast", [code], result=operator.outputs[0].full_name, to=element_type)


def _convert_binarizer(scope, operator, container):
    # skl2onnx's own converter gives 1 at the threshold in float64.
    nodes = Nodes(scope, container)
    values, element_type = matrix(nodes, operator)
    threshold = nodes.constant(operator.raw_operator.threshold, element_type, "threshold")
    above = nodes.add("Greater", [values, threshold], "above")
    nodes.add("Cast", [above], result=operator.outputs[0].full_name, to=element_type)


def _convert_power(scope, operator, container):
    # skl2onnx's own converter gives numbers for what is missing, and fails in float64.
    nodes = Nodes(scope, container)
    power = operator.raw_operator
    values, element_type = matrix(nodes, operator)
    values = nodes.add("Cast", [values], to=TensorProto.DOUBLE)
    write = _box_cox if power.method == "box-cox" else _yeo_johnson
    result = write(nodes, values, power.lambdas_)

    if power.standardize:
        scaler = power._scaler
        for name, array in (("Sub", scaler.mean_), ("Div", scaler.scale_)):
            operand = nodes.constant(array, TensorProto.DOUBLE, name.lower())
            result = nodes.add(name, [result, operand], version=14)

    nodes.add("Cast", [result], result=operator.outputs[0].full_name, to=element_type)


def _convert_function(scope, operator, container):
    # skl2onnx's own converter takes no function.
    step = operator.raw_operator
    if step.func is None:
        convert_sklearn_function_transformer(scope, operator, container)
        return

    nodes = Nodes(scope, container)
    values, element_type = matrix(nodes, operator)
    result = nodes.add("Cast", [values], to=TensorProto.DOUBLE)

    for name, number in _operations_of(step.func) or ():
        second = [] if number is None else [nodes.constant(number, TensorProto.DOUBLE)]
        result = nodes.add(name, [result, *second])

    nodes.add("Cast", [result], result=operator.outputs[0].full_name, to=element_type)


def _box_cox(nodes, values, powers):
    """Write (x ** p - 1) / p, or log(x) for p of 0; NaN for an x that is not positive."""
    is_zero = np.abs(powers) < np.spacing(1.0)
    safe, one, zero, nan = (
        nodes.constant(array, TensorProto.DOUBLE)
        for array in (np.where(is_zero, 1.0, powers), 1.0, 0.0, np.nan)
    )
    is_positive = nodes.add("Greater", [values, zero])
    values = nodes.add("Where", [is_positive, values, nan], version=9)
    power = nodes.add("Sub", [nodes.add("Pow", [values, safe], version=15), one], version=14)
    power = nodes.add("Div", [power, safe], version=14)
    logarithm = nodes.add("Log", [values])
    flags = nodes.constant(is_zero, TensorProto.BOOL, "is_zero")
    return nodes.add("Where", [flags, logarithm, power], version=9)


def _yeo_johnson(nodes, values, powers):
    """
    Write the Box-Cox transform of 1 + x, for x of 0 and more;
    else minus that of 1 - x with the power 2 - p.
    """
    one, zero = (nodes.constant(number, TensorProto.DOUBLE) for number in (1.0, 0.0))
    size = nodes.add("Add", [nodes.add("Abs", [values]), one], "size", version=14)
    above = _box_cox(nodes, size, powers)
    below = nodes.add("Neg", [_box_cox(nodes, size, 2 - powers)])
    is_negative = nodes.add("Less", [values, zero])
    return nodes.add("Where", [is_negative, below, above], version=9)


def _set_bins_type(operator):
    """Give the output of binning its type and shape: numbers as precise as its input."""
    bins = operator.raw_operator
    width = len(bins.n_bins_) if bins.encode == "ordinal" else int(bins.n_bins_.sum())
    numbers = type(guess_tensor_type(operator.inputs[0].type))
    operator.outputs[0].type = numbers([None, width])


def _set_same_type(operator):
    """Give the output the width of the input: numbers as precise as its input."""
    numbers = type(guess_tensor_type(operator.inputs[0].type))
    operator.outputs[0].type = numbers([None, operator.raw_operator.n_features_in_])


def _set_function_type(operator):
    """Give the output of a function of numpy its type; raise a RuntimeError for any other."""
    step = operator.raw_operator
    if step.func is None:
        calculate_sklearn_function_transformer_output_shapes(operator)
        return

    if step.kw_args or _operations_of(step.func) is None:
        name = getattr(step.func, "__name__", repr(step.func))
        raise RuntimeError(
            f"FunctionTransformer has no ONNX for func={name}. It has for numpy's "
            f"{_FUNCTION_NAMES}, without kw_args."
        )
    _set_same_type(operator)


def _operations_of(function: Any) -> list[tuple[str, float | None]] | None:
    """Return the operators of a function of numpy, each with its second operand, or None."""
    # A function may have no hash.
    return next((known for each, known in _FUNCTIONS.items() if each is function), None)


def matrix(nodes: Nodes, operator: Any) -> tuple[str, int]:
    """Return the name of the inputs as one matrix of numbers, and its element type."""
    if any(isinstance(value.type, StringTensorType) for value in operator.inputs):
        raise NotExportableError("it takes numbers, and X has texts there")
    numbers = guess_tensor_type(operator.inputs[0].type)
    element_type = guess_proto_type(numbers)
    columns = [nodes.add("Cast", [value.full_name], to=element_type) for value in operator.inputs]
    values = columns[0] if len(columns) == 1 else nodes.add("Concat", columns, axis=1)
    return values, element_type


def _convert_selector(scope, operator, container):
    # skl2onnx's own converter fails if the first column is the only one that stays.
    nodes = Nodes(scope, container)
    kept = nodes.constant(operator.raw_operator.get_support(indices=True).tolist(), name="kept")
    (X,) = operator.inputs
    nodes.add("Gather", [X.full_name, kept], result=operator.outputs[0].full_name, axis=1)


_SELECTORS = """
GenericUnivariateSelect RFE RFECV SelectFdr SelectFpr SelectFromModel SelectFwe SelectKBest SelectPercentile
VarianceThreshold
"""

#: The converters by the type of a transformer.
CONVERTERS: dict[Any, Callable[..., None]] = {
    SimpleImputer: _convert_imputer,
    PolynomialFeatures: _convert_polynomial,
    Normalizer: _convert_normalizer,
    KBinsDiscretizer: _convert_bins,
    Binarizer: _convert_binarizer,
    PowerTransformer: _convert_power,
    FunctionTransformer: _convert_function,
    **{vars(feature_selection)[name]: _convert_selector for name in _SELECTORS.split()},
}

#: The functions that give their outputs types and shapes, where skl2onnx's own are wrong.
SHAPES: dict[Any, Callable[..., None]] = {
    SimpleImputer: _set_imputed_type,
    KBinsDiscretizer: _set_bins_type,
    Binarizer: _set_same_type,
    PowerTransformer: _set_same_type,
    FunctionTransformer: _set_function_type,
}


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
*_FIRST, _LAST = [each.__name__ for each in _FUNCTIONS if each is not None]
_FUNCTION_NAMES = f"{', '.join(_FIRST)} or {_LAST}"
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
        operations = _operations_of(transformer.inverse_func)
        if operations is not None:
            return operations

    name = " ".join(repr(transformer).split())
    raise NotExportableError(
        f"TransformedTargetRegressor: the inverse of its transformer {name} cannot be part of an "
        "ONNX model. Use StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler; or functions "
        f"whose inverse_func is numpy's {_FUNCTION_NAMES}; or a Pipeline of these."
    )
