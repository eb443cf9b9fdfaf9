"""
Penalties of the weights that multiply inputs.

A penalty is its value and its gradient by one weight, both ONNX functions of that weight, written as text.
"""

from typing import Protocol

from sklearn.base import BaseEstimator

__all__ = ["L2", "PENALTIES", "Penalty"]


class Penalty(Protocol):
    """What the solvers need of a penalty."""

    def value(self) -> str:
        """Return the ONNX function `(weight) => (penalty)`, a scalar."""

    def gradient(self) -> str:
        """Return the ONNX function `(weight) => (gradient)`: the derivative of `value` by `weight`."""


class L2(BaseEstimator):
    r"""
    The squared Euclidean norm.

    .. math:: penalty(w) = \frac{\alpha}{2} \sum_j w_j^2, \qquad \frac{\partial penalty}{\partial w} = \alpha w

    as in `sklearn.linear_model.SGDRegressor(penalty="l2")`.

    Parameters
    ----------
    alpha : float, default=1e-4
        Strength, not negative.

    Examples
    --------
    >>> from skort.objective.penalties import L2
    >>> print(L2(alpha=0.5).gradient())
    l2_gradient (weight) => (gradient) {
        alpha = Constant <value = float {0.5}> ()
        gradient = Mul (alpha, weight)
    }
    """

    def __init__(self, alpha=1e-4):
        self.alpha = alpha

    def value(self):
        """Return the ONNX function `(weight) => (penalty)`."""
        return """\
l2 (weight) => (penalty) {
    alpha = Constant <value = float {%r}> ()
    half = Constant <value = float {0.5}> ()
    half_alpha = Mul (half, alpha)
    square = Mul (weight, weight)
    sum = ReduceSum <keepdims = 0> (square)
    penalty = Mul (half_alpha, sum)
}""" % float(self.alpha)

    def gradient(self):
        """Return the ONNX function `(weight) => (gradient)`."""
        return """\
l2_gradient (weight) => (gradient) {
    alpha = Constant <value = float {%r}> ()
    gradient = Mul (alpha, weight)
}""" % float(self.alpha)


#: The penalties by name.
PENALTIES = {"l2": L2}
