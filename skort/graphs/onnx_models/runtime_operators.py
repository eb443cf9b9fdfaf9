"""ONNX Runtime's own operators, which its optimiser writes into files, as standard ones."""

import math
from typing import Any

import onnx
from onnx import helper

#: The domain of these operators.
RUNTIME_DOMAIN = "com.microsoft"
# The attributes that belong to the activation of a fused operator.
_OF_ACTIVATION = ("activation", "activation_params")
_TANH = f"Tanh({math.sqrt(2 / math.pi)!r} * (s + 0.044715 * s * s * s))"
GELU = f"0.5 * s * (1 + Erf(s / {math.sqrt(2)!r}))"
TANH_GELU = f"0.5 * s * (1 + {_TANH})"
_INPUTS = {
    "BiasGelu": ["a", "b"],
    "FastGelu": ["a", "b"],
    "FusedConv": ["a", "b", "c", "d"],
    "FusedGemm": ["a", "b", "c"],
    "FusedMatMul": ["a", "b"],
    "Gelu": ["a"],
    "QuickGelu": ["a"],
}


def runtime_formula(node: onnx.NodeProto) -> tuple[list[str], str]:
    """
    Return the names of the inputs of an operator of ONNX Runtime, and its formula.

    The formula is "" if skort does not know the operator.
    """
    names = [
        name
        for name, given in zip(_INPUTS.get(node.op_type, ()), node.input, strict=False)
        if given
    ]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}

    match node.op_type:
        case "Gelu":
            formula = f"s = Identity(a)\nZ = {GELU}"
        case "BiasGelu":
            formula = f"s = a + b\nZ = {GELU}"
        case "FastGelu":
            formula = f"s = {' + '.join(names)}\nZ = {TANH_GELU}"
        case "QuickGelu":
            formula = f"Z = a * Sigmoid({attributes.get('alpha', 1.702)!r} * a)"
        case "FusedMatMul":
            formula = _matmul(attributes)
        case "FusedGemm":
            formula = _gemm(names, attributes)
        case "FusedConv":
            formula = _convolution(names, attributes)
        case _:
            formula = ""

    return names, formula


def _matmul(attributes):
    is_turned = any(
        attributes.get(name) for name in ("transA", "transB", "transBatchA", "transBatchB")
    )
    return "" if is_turned else f"Z = {attributes.get('alpha', 1.0)!r} * MatMul(a, b)"


def _gemm(names, attributes):
    kept = {k: v for k, v in attributes.items() if k in ("alpha", "beta", "transA", "transB")}
    params = [attributes.get(f"activation_{name}") for name in ("alpha", "beta")]
    end = _activation(attributes.get("activation", b""), [v for v in params if v is not None])
    return end and f"s = Gemm({', '.join([*names, *_texts(kept)])})\nZ = {end}"


def _convolution(names, attributes):
    kept = {k: v for k, v in attributes.items() if k not in _OF_ACTIVATION}
    operands = ", ".join([*(name for name in names if name != "d"), *_texts(kept)])
    sum_ = " + d" if "d" in names else ""
    end = _activation(attributes.get("activation", b""), attributes.get("activation_params", []))
    return end and f"s = Conv({operands}){sum_}\nZ = {end}"


def _activation(name: bytes, params: list[float]) -> str:
    """Return the formula of an activation of s; "" if it is unknown."""
    operator = name.decode()
    numbers = ", ".join(repr(float(param)) for param in params)
    if operator in ("Relu", "Sigmoid", "Tanh", "Softplus"):
        return f"{operator}(s)"
    if operator == "Clip" and len(params) == 2:
        return f"Clip(s, {numbers})"
    if operator in ("Elu", "HardSigmoid", "LeakyRelu"):
        pairs = zip(("alpha", "beta"), params, strict=False)
        return f"{operator}({', '.join(['s', *(f'{k}={float(v)!r}' for k, v in pairs)])})"

    return "" if operator else "Identity(s)"


def _texts(attributes: dict[str, Any]) -> list[str]:
    """Return attributes as keywords of a formula."""
    return [
        f"{name}='\"{value.decode()}\"'" if isinstance(value, bytes) else f"{name}={value!r}"
        for name, value in attributes.items()
    ]
