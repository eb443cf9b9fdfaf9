"""The inverse of a transformer of y as an ONNX function."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from skort.exceptions import NotExportableError

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
# Type of a scaler -> the operators of its inverse, each with the attribute that is its second operand and the parameter
# that turns it off.
_SCALERS: dict[type, list[tuple[str, str, str]]] = {
    MaxAbsScaler: [("Mul", "scale_", "")],
    MinMaxScaler: [("Sub", "min_", ""), ("Div", "scale_", "")],
    RobustScaler: [("Mul", "scale_", "with_scaling"), ("Add", "center_", "with_centering")],
    StandardScaler: [("Mul", "scale_", "with_std"), ("Add", "mean_", "with_mean")],
}


def target_inverse(transformer: Any) -> str:
    """Return the inverse of a fitted transformer of y as ONNX text, (transformed) => (target), both matrices."""
    lines, result = [], "transformed"
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
    """Return the operators of the inverse one after the other, each with its second operand or None."""
    if isinstance(transformer, FrozenEstimator):
        return _operations(transformer.estimator)
    if type(transformer) is Pipeline:
        return [operation for _, step in reversed(transformer.steps) for operation in _operations(step)]
    if transformer is None or transformer == "passthrough":
        return []
    if type(transformer) in _SCALERS:
        parts = _SCALERS[type(transformer)]
        return [(op, getattr(transformer, operand)) for op, operand, on in parts if getattr(transformer, on, True)]
    if type(transformer) is FunctionTransformer and not transformer.inv_kw_args:
        for known, operations_of_known in _FUNCTIONS.items():
            if transformer.inverse_func is known:
                return operations_of_known
    name = " ".join(repr(transformer).split())
    raise NotExportableError(
        f"TransformedTargetRegressor: the inverse of its transformer {name} cannot be part of an ONNX model. "
        "Use StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler; or functions whose inverse_func is numpy's "
        "exp, expm1, log, log1p, negative, reciprocal, sqrt or square; or a Pipeline of these."
    )
