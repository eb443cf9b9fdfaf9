r"""
The gradient of each ONNX operator, as ONNX text.

A rule gives the vector-Jacobian product of one node for one of its inputs, x. It is a function; the names of its inputs
say what they are:

- `x`: that input; `a`, `b`, `c`: the first three inputs of the node; `x0`, `x1`, ...: all its inputs;
- `y`: its output; `dy`: the derivative of the objective with respect to y (`dy0`, `dy1`, ... for several outputs).

Its output is the derivative of the objective with respect to x. If x is broadcast, that derivative has the shape of y;
the walk then sums it to the shape of x. Shapes are known, so they are constants in the text.
"""

from skort.graphs.gradient.arrays import ARRAYS
from skort.graphs.gradient.elementwise import ELEMENTWISE

__all__ = ["FLOAT32_ONLY", "RULES"]

#: The rules by operator.
RULES = {**ELEMENTWISE, **ARRAYS}
#: ONNX Runtime lacks a float64 kernel of these operators, or of an operator in their rule.
FLOAT32_ONLY = frozenset({"Cos", "Elu", "Erf", "Sin", "Softplus"})
