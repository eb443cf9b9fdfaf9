"""The gradients of elementwise operators, of softmax, and of normalizations."""

import numpy as np
import onnx
from numpy.typing import DTypeLike

from skort.common.formulas import function_text
from skort.graphs.gradient.applied import Rule, each, texts

#: ONNX Runtime lacks a float64 kernel of these operators, or of an operator in their rule.
FLOAT32_ONLY = frozenset(
    {
        *("Atan", "AveragePool", "Celu", "Conv", "Cos", "Elu", "Erf", "GlobalAveragePool"),
        *("HardSigmoid", "HardSwish", "InstanceNormalization", "ReduceL2", "ReduceProd", "Selu"),
        *("Sin", "Softplus"),
    }
)
#: Operators that small inputs make linear, and whose slope has a bound. Relu is as bent for small
#: inputs as for large.
CURVED = frozenset(
    {
        *("Atan", "Celu", "Elu", "Erf", "HardSigmoid", "HardSwish", "Sigmoid", "Sin", "Softplus"),
        "Tanh",
    }
)


def _less_below_zero(slope, alpha):
    """Return the rule of an operator with an attribute alpha: dx = dy if x > 0, else slope * dy."""
    return lambda applied, i: (
        f"""
        alpha = {float(applied.attribute("alpha", alpha))!r}
        dx = Where(Greater(x, 0), dy, {slope} * dy)"""
    )


def _selu(applied, i):
    # y = gamma x where x > 0, otherwise gamma alpha (e^x - 1)
    alpha = float(applied.attribute("alpha", 1.67326319217681884765625))
    gamma = float(applied.attribute("gamma", 1.05070102214813232421875))
    return f"dx = dy * Where(Greater(x, 0), {gamma!r}, y + {alpha * gamma!r})"


def _hard_sigmoid(applied, i):
    # y = alpha x + beta, but at least 0 and at most 1
    alpha = float(applied.attribute("alpha", 0.2))
    return f"dx = Where(Greater(y * (1 - y), 0), {alpha!r} * dy, 0)"


def _cast(applied, i):
    # Only casts between floats have a gradient.
    return (
        "dx = CastLike(dy, x)"
        if applied.attribute("to") in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
        else None
    )


def _along_axis(formula):
    return lambda applied, i: formula % {"axis": applied.axis(-1)}


def _relu(dtype):
    # The slope is 1 where y > 0, else 0. As min(1, y times the largest float32), it takes half the
    # time of a comparison and a Cast. In float32, the operator HardSigmoid computes it in one.
    if dtype == np.float32:
        return "dx = dy * HardSigmoid(y, alpha=3.4028234e38, beta=0.0)"
    return "dx = dy * Min(3.4028234e38 * y, 1)"


def relu_gradient(dtype: DTypeLike) -> str:
    """Return the function `(dy, y) => (dx)` of Relu: dx = dy where y > 0, otherwise 0."""
    return function_text("relu_gradient (dy, y) => (dx)", _relu(dtype))


def _extreme(applied, i):
    # y is one of n inputs, so dx is dy if y is x. Several inputs that equal y share dy equally.
    counts = ", ".join(f"CastLike(Equal(x{k}, y), y)" for k in range(len(applied.node.input)))
    return f"dx = Where(Equal(x{i}, y), dy / Sum({counts}), 0)"


def _layer_normalization(applied, i):
    # y = n b + c, n = (a - its mean) / sqrt(its variance + epsilon), both over the axes
    # from `axis` on
    if i == 2 or any(applied.node.output[1:]):
        return "dx = dy" if i == 2 else None

    axes = list(range(applied.axis(-1), len(applied.shape(0))))
    normalized = f"""
        centred = a - ReduceMean(a, axes={axes})
        inverse = 1 / Sqrt(ReduceMean(centred * centred, axes={axes}) + {applied.attribute("epsilon", 1e-5)!r})
        n = centred * inverse"""
    if i == 1:
        return f"{normalized}\n        dx = dy * n"

    return f"""{normalized}
        slope = dy * b
        dx = inverse * (slope - ReduceMean(slope, axes={axes}) - n * ReduceMean(slope * n, axes={axes}))"""


def _instance_normalization(applied, i):
    # y = n b + c, n = (a - its mean) / sqrt(its variance + epsilon), both over the axes after the
    # channels; b and c have a number for each channel
    shape = applied.shape(0)
    axes = list(range(2, len(shape)))
    if i == 2:
        return f"dx = ReduceSum(dy, {[0, *axes]}, keepdims=0)"

    normalized = f"""
        centred = a - ReduceMean(a, axes={axes})
        variance = ReduceMean(centred * centred, axes={axes})
        inverse = 1 / Sqrt(variance + {applied.attribute("epsilon", 1e-5)!r})
        n = centred * inverse"""
    if i == 1:
        return f"{normalized}\n        dx = ReduceSum(dy * n, {[0, *axes]}, keepdims=0)"

    return f"""{normalized}
        slope = dy * Reshape(b, {[shape[1], *[1] * len(axes)]})
        shift = ReduceMean(slope, axes={axes}) + n * ReduceMean(slope * n, axes={axes})
        dx = inverse * (slope - shift)"""


#: The rules by operator.
ELEMENTWISE: dict[str, Rule] = {
    "Add": each("dx = dy"),
    "Sum": each("dx = dy"),
    "Sub": texts("dx = dy", "dx = -dy"),
    "Mul": texts("dx = dy * b", "dx = dy * a"),
    "Div": texts("dx = dy / b", "dx = dy * -(y / b)"),
    "Neg": each("dx = -dy"),
    "Reciprocal": each("dx = dy * -(y * y)"),
    "Abs": each("dx = dy * Sign(x)"),
    "Exp": each("dx = dy * y"),
    "Log": each("dx = dy / x"),
    "Sqrt": each("dx = dy / (y + y)"),
    # The gradient by a only; it is 0 where b = 0.
    "Pow": texts("""
        exponent = CastLike(b, a)
        slope = exponent * Pow(a, exponent - 1)
        dx = dy * Where(Equal(exponent, 0), 0, slope)"""),
    "Relu": lambda applied, i: _relu(applied.dtype),
    # y = x where x > 0, otherwise alpha x
    "LeakyRelu": _less_below_zero("alpha", 0.01),
    # y = x where x > 0, otherwise alpha (e^x - 1)
    "Elu": _less_below_zero("(y + alpha)", 1.0),
    # y = x where x > 0, otherwise alpha (e^(x / alpha) - 1)
    "Celu": _less_below_zero("(y / alpha + 1)", 1.0),
    "Selu": _selu,
    # y = a where a > 0, otherwise a b
    "PRelu": texts(
        "dx = Where(Greater(a, 0), dy, dy * b)",
        "dx = Where(Greater(a, 0), 0, dy * a)",
    ),
    # y = x (x / 6 + 1 / 2) where -3 < x < 3, x above and 0 below
    "HardSwish": each("""
        outside = CastLike(Greater(x, 0), x)
        dx = dy * Where(Less(Abs(x), 3), x / 3 + 0.5, outside)"""),
    "HardSigmoid": _hard_sigmoid,
    # y = log(1 + e^x)
    "Softplus": each("dx = dy * Sigmoid(x)"),
    "Sigmoid": each("dx = dy * (y * (1 - y))"),
    "Tanh": each("dx = dy * (1 - y * y)"),
    "Softmax": _along_axis("dx = y * (dy - ReduceSum(dy * y, [%(axis)d], keepdims=1))"),
    "LogSoftmax": _along_axis("dx = dy - Exp(y) * ReduceSum(dy, [%(axis)d], keepdims=1)"),
    "LayerNormalization": _layer_normalization,
    "InstanceNormalization": _instance_normalization,
    "Sin": each("dx = dy * Cos(x)"),
    "Cos": each("dx = dy * -Sin(x)"),
    "Atan": each("dx = dy / (1 + x * x)"),
    # The slope is 0 everywhere: a weight before it learns only by another way.
    "Sign": each("dx = 0 * dy"),
    # The number is 2 / sqrt(pi).
    "Erf": each("dx = dy * (1.1283791670955126 * Exp(-(x * x)))"),
    "Max": _extreme,
    "Min": _extreme,
    "Clip": texts("dx = Where(Equal(x, y), dy, 0)"),
    "Where": texts(None, "dx = Where(a, dy, 0)", "dx = Where(a, 0, dy)"),
    "Identity": each("dx = dy"),
    "Cast": _cast,
    "Expand": texts("dx = dy"),
}
