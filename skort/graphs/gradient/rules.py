r"""
The gradient of each ONNX operator, as ONNX text.

A rule gives the vector-Jacobian product of one node by one of its inputs: a function whose inputs are, by their names,

- `x`: the input that is differentiated by; `a`, `b`, `c`: the first three inputs; `x0`, `x1`, ...: all inputs;
- `y`: the output; `dy`: the derivative of the objective by it (`dy0`, `dy1`, ... where there are several outputs);

and whose output is the derivative of the objective by `x`. Where inputs are broadcast it has the shape of the output,
and is summed to the shape of `x` afterwards. Shapes are known, so they are constants in the text.
"""

from skort.graphs.gradient.arrays import ARRAYS
from skort.graphs.gradient.elementwise import ELEMENTWISE

__all__ = ["FLOAT32_ONLY", "RULES"]

#: The rules by operator.
RULES = {**ELEMENTWISE, **ARRAYS}
#: Those that ONNX Runtime has no float64 kernel of, or of what their rule needs.
FLOAT32_ONLY = frozenset({"Cos", "Elu", "Erf", "Sin", "Softplus"})
