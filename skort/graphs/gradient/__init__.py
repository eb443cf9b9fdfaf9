"""
Reverse-mode differentiation of ONNX graphs into standard operators:
the walk, and one rule per operator.

A rule is a formula for dx, the vector-Jacobian product of one node for one of its inputs, x, such
as `dx = dy * y`. The names in a formula mean:

- `x`: that input; `a`, `b`, `c`: the first three inputs of the node; `x0`, `x1`, ...:
  all its inputs;
- `y`: its output; `dy`: the derivative of the objective with respect to y (`y0`, `dy0`, `y1`,
  `dy1`, ... for several outputs).

`dx` is the derivative of the objective with respect to x. If x is broadcast, that derivative has
the shape of y; the walk then sums it to the shape of x. Shapes are known, so they are constants
in the formula.
"""
