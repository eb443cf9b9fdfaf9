"""The gradients of elementwise operators, and of softmax."""

import numpy as np
import onnx
from numpy.typing import DTypeLike

from skort.graphs.gradient.applied import Rule, each, texts

#: ONNX Runtime lacks a float64 kernel of these operators, or of an operator in their rule.
FLOAT32_ONLY = frozenset({"Cos", "Elu", "Erf", "Sin", "Softplus"})


def _slope(of, *lines):
    """Return the rule dx = dy slope of an operator with one input; the lines compute the slope from x, y or both."""
    body = "\n    ".join(lines)
    return each(f"slope_gradient ({of}, dy) => (dx) {{\n    {body}\n    dx = Mul (dy, slope)\n}}")


def _less_below_zero(slope, alpha):
    """Return the rule dx = dy where x > 0, otherwise dy slope, of an operator with an attribute alpha."""
    return lambda applied, i: (
        f"""
less_below_zero_gradient (x, y, dy) => (dx) {{
    zero = Constant <value = float {{0}}> ()
    alpha = Constant <value = float {{{float(applied.attribute("alpha", alpha))!r}}}> ()
    positive = Greater (x, zero)
    slope = {slope}
    less = Mul (slope, dy)
    dx = Where (positive, dy, less)
}}"""
    )


def _cast(applied, i):
    # dx = dy, in the type of x; between floats
    if applied.attribute("to") not in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE):
        return None
    return "cast_gradient (x, dy) => (dx) { dx = CastLike (dy, x) }"


def _along_axis(text):
    return lambda applied, i: text % {"axis": applied.axis(-1)}


def relu_gradient(dtype: DTypeLike) -> str:
    """Return the function `(dy, y) => (dx)` of Relu: dx = dy where y > 0, otherwise 0."""
    # The slope is min(1, y times the largest float32), which takes half the time of a comparison and a Cast. In float32
    # the operator HardSigmoid does both.
    if dtype == np.float32:
        slope = "slope = HardSigmoid <alpha = 3.4028234e38, beta = 0.0> (y)"
    else:
        slope = """largest = Constant <value = float {3.4028234e38}> ()
    one = Constant <value = float {1}> ()
    steep = Mul (largest, y)
    slope = Min (steep, one)"""
    return f"""
relu_gradient (dy, y) => (dx) {{
    {slope}
    dx = Mul (dy, slope)
}}"""


def _extreme(applied, i):
    # y = one of n inputs: dx = dy where it is x, in equal parts where it is several
    inputs = range(len(applied.node.input))
    comparisons = "\n".join(f"    is_{k} = Equal (x{k}, y)\n    count_{k} = CastLike (is_{k}, y)" for k in inputs)
    return f"""
extreme_gradient ({", ".join(f"x{k}" for k in inputs)}, y, dy) => (dx) {{
    zero = Constant <value = float {{0}}> ()
{comparisons}
    count = Sum ({", ".join(f"count_{k}" for k in inputs)})
    part = Div (dy, count)
    dx = Where (is_{i}, part, zero)
}}"""


# dx = dy
_PASSED = "passed_gradient (dy) => (dx) { dx = Identity (dy) }"
# y = -x: dx = -dy
_NEGATED = "negated_gradient (dy) => (dx) { dx = Neg (dy) }"
#: The rules by operator.
ELEMENTWISE: dict[str, Rule] = {
    # y = a + b: da = dy, db = dy
    "Add": each(_PASSED),
    "Sum": each(_PASSED),
    # y = a - b: da = dy, db = -dy
    "Sub": texts(_PASSED, _NEGATED),
    # y = a b: da = dy b, db = dy a
    "Mul": texts(
        "mul_gradient (b, dy) => (da) { da = Mul (dy, b) }", "mul_gradient (a, dy) => (db) { db = Mul (dy, a) }"
    ),
    # y = a / b: da = dy / b, db = -dy y / b
    "Div": texts(
        "div_gradient (b, dy) => (da) { da = Div (dy, b) }",
        """
div_gradient (b, y, dy) => (db) {
    ratio = Div (y, b)
    slope = Neg (ratio)
    db = Mul (dy, slope)
}""",
    ),
    "Neg": each(_NEGATED),
    # y = 1 / x: dx = -dy y^2
    "Reciprocal": _slope("y", "square = Mul (y, y)", "slope = Neg (square)"),
    # y = |x|: dx = dy sign(x)
    "Abs": _slope("x", "slope = Sign (x)"),
    # y = e^x: dx = dy y
    "Exp": each("exp_gradient (y, dy) => (dx) { dx = Mul (dy, y) }"),
    # y = log x: dx = dy / x
    "Log": each("log_gradient (x, dy) => (dx) { dx = Div (dy, x) }"),
    # y = sqrt x: dx = dy / (2 y)
    "Sqrt": each("""
sqrt_gradient (y, dy) => (dx) {
    twice = Add (y, y)
    dx = Div (dy, twice)
}"""),
    # y = a^b: da = dy b a^(b-1), 0 where b = 0
    "Pow": texts("""
pow_gradient (a, b, dy) => (da) {
    zero = Constant <value = float {0}> ()
    one = Constant <value = float {1}> ()
    exponent = CastLike (b, a)
    less = Sub (exponent, one)
    power = Pow (a, less)
    slope = Mul (exponent, power)
    constant = Equal (exponent, zero)
    finite = Where (constant, zero, slope)
    da = Mul (dy, finite)
}"""),
    # y = max(0, x): dx = dy where y > 0
    "Relu": lambda applied, i: relu_gradient(applied.dtype),
    # y = x where x > 0, otherwise alpha x: dx = dy, otherwise alpha dy
    "LeakyRelu": _less_below_zero("Identity (alpha)", 0.01),
    # y = x where x > 0, otherwise alpha (e^x - 1): dx = dy, otherwise dy (y + alpha)
    "Elu": _less_below_zero("Add (y, alpha)", 1.0),
    # y = log(1 + e^x): dx = dy / (1 + e^-x)
    "Softplus": _slope("x", "slope = Sigmoid (x)"),
    # y = 1 / (1 + e^-x): dx = dy y (1 - y)
    "Sigmoid": _slope("y", "one = Constant <value = float {1}> ()", "other = Sub (one, y)", "slope = Mul (y, other)"),
    # y = tanh x: dx = dy (1 - y^2)
    "Tanh": _slope("y", "one = Constant <value = float {1}> ()", "square = Mul (y, y)", "slope = Sub (one, square)"),
    # y = e^x / sum e^x: dx = y (dy - sum(dy y))
    "Softmax": _along_axis("""
softmax_gradient (y, dy) => (dx) {
    axis = Constant <value = int64[1] {%(axis)d}> ()
    product = Mul (dy, y)
    sum = ReduceSum <keepdims = 1> (product, axis)
    centred = Sub (dy, sum)
    dx = Mul (y, centred)
}"""),
    # y = x - log sum e^x: dx = dy - e^y sum(dy)
    "LogSoftmax": _along_axis("""
log_softmax_gradient (y, dy) => (dx) {
    axis = Constant <value = int64[1] {%(axis)d}> ()
    sum = ReduceSum <keepdims = 1> (dy, axis)
    probability = Exp (y)
    share = Mul (probability, sum)
    dx = Sub (dy, share)
}"""),
    # y = sin x: dx = dy cos x
    "Sin": _slope("x", "slope = Cos (x)"),
    # y = cos x: dx = -dy sin x
    "Cos": _slope("x", "sine = Sin (x)", "slope = Neg (sine)"),
    # y = erf x: dx = dy 2 / sqrt(pi) e^(-x^2)
    "Erf": _slope(
        "x",
        "scale = Constant <value = float {1.1283791670955126}> ()",
        "square = Mul (x, x)",
        "exponent = Neg (square)",
        "power = Exp (exponent)",
        "slope = Mul (scale, power)",
    ),
    "Max": _extreme,
    "Min": _extreme,
    # y = x between a lower and an upper bound, otherwise that bound: dx = dy where y = x
    "Clip": texts("""
clip_gradient (x, y, dy) => (dx) {
    zero = Constant <value = float {0}> ()
    inside = Equal (x, y)
    dx = Where (inside, dy, zero)
}"""),
    # y = b where a, otherwise c: db = dy where a, otherwise 0; dc = dy where not a, otherwise 0
    "Where": texts(
        None,
        """
where_gradient (a, dy) => (db) {
    zero = Constant <value = float {0}> ()
    db = Where (a, dy, zero)
}""",
        """
where_gradient (a, dy) => (dc) {
    zero = Constant <value = float {0}> ()
    dc = Where (a, zero, dy)
}""",
    ),
    "Identity": each(_PASSED),
    "Cast": _cast,
    "Expand": texts(_PASSED),
}
