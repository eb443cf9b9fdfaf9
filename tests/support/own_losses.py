"""Losses of one's own that several test files train with."""

from dataclasses import dataclass

from skort.objective.regression import RegressionLoss

#: (score - target)^4
FOURTH = """\
fourth (score, target) => (loss) {
    residual = Sub (score, target)
    square = Mul (residual, residual)
    loss = Mul (square, square)
}"""
#: The largest |score - target| of a row
ROW = """\
row (score, target) => (loss) {
    residual = Sub (score, target)
    distance = Abs (residual)
    loss = ReduceMax <axes = [1], keepdims = 1> (distance)
}"""


@dataclass(eq=False, repr=False)
class Cauchy(RegressionLoss):
    """epsilon^2 / 2 log(1 + r^2 / epsilon^2)"""

    is_robust = True
    _degree = 2
    _curvature = 1.0
    epsilon: float = 0.1
    _formula = """
    residual = score - target
    ratio = residual / epsilon
    inner = 1 + ratio * ratio
    loss = 0.5 * (epsilon * epsilon) * Log(inner)
    gradient = residual / inner
    """


# Of the mean and of the logarithm of the standard deviation.
GAUSSIAN = """
gaussian (score, target) => (loss) {
    half = Constant <value = float {0.5}> ()
    first = Constant <value = int64[1] {0}> ()
    second = Constant <value = int64[1] {1}> ()
    mean = Gather <axis = 1> (score, first)
    y = Gather <axis = 1> (target, first)
    logarithm = Gather <axis = 1> (score, second)
    opposite = Neg (logarithm)
    precision = Exp (opposite)
    residual = Sub (mean, y)
    z = Mul (residual, precision)
    square = Mul (z, z)
    halves = Mul (half, square)
    loss = Add (halves, logarithm)
}"""
