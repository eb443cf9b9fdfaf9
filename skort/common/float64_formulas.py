"""Operators that ONNX Runtime computes in float32 only, written with others for float64."""

import onnx
from onnx import helper

from skort.common.formulas import function_text

# Parts of x above and below zero. Their slopes at zero are 1/2, so that a sum of both has no kink.
_PARTS = "above = (x + Abs(x)) / 2\nbelow = (x - Abs(x)) / 2\n"
# Operator -> the formula of y by x and the attributes, and the values of those left out.
_FORMULAS: dict[str, tuple[str, dict[str, float]]] = {
    "Celu": (_PARTS + "y = above + {alpha} * (Exp(below / {alpha}) - 1)", {"alpha": 1.0}),
    "Elu": (_PARTS + "y = above + {alpha} * (Exp(below) - 1)", {"alpha": 1.0}),
    "HardSigmoid": (
        "y = Max(0, Min(1, {alpha} * x + {beta}))",
        {"alpha": 0.2, "beta": 0.5},
    ),
    "HardSwish": ("y = x * Max(0, Min(1, x / 6 + 0.5))", {}),
    "Selu": (
        _PARTS + "y = {gamma} * (above + {alpha} * (Exp(below) - 1))",
        {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    ),
    "Softplus": (_PARTS + "y = above + Log(1 + Exp(below - above))", {}),
}


def float64_function(node: onnx.NodeProto) -> str | None:
    """Return the text of a function that does in float64 what a node does in float32, or None."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in _FORMULAS:
        return None

    formula, attributes = _FORMULAS[node.op_type]
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    values = {name: repr(float(value)) for name, value in (attributes | given).items()}
    return function_text(f"{node.op_type} (x) => (y)", formula.format(**values))
