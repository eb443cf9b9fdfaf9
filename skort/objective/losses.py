"""
Losses of the raw score, by scikit-learn's names and formulas.

A loss is its value and its gradient by the raw score, both ONNX functions `(score, target)` written as text:
`score` has shape (n_samples, n_outputs), `target` the same.
"""

from typing import Protocol

from sklearn.base import BaseEstimator

__all__ = ["CLASSIFICATION_LOSSES", "REGRESSION_LOSSES", "LogLoss", "Loss", "SquaredError"]


class Loss(Protocol):
    """What the solvers need of a loss."""

    #: True: the value has one column an output, and the objective is their mean;
    #: False: the value is one column, whatever the number of outputs.
    elementwise: bool

    def value(self, n_outputs: int) -> str:
        """Return the ONNX function `(score, target) => (loss)`: differentiable, finite for every finite score."""

    def gradient(self, n_outputs: int) -> str:
        """Return the ONNX function `(score, target) => (gradient)`: the derivative of `value` by `score`."""


class SquaredError(BaseEstimator):
    r"""
    Half the squared error of a regression.

    .. math:: loss(y, s) = \frac{1}{2} (s - y)^2, \qquad \frac{\partial loss}{\partial s} = s - y

    as in `sklearn.linear_model.SGDRegressor(loss="squared_error")`.

    Examples
    --------
    >>> from skort.objective.losses import SquaredError
    >>> print(SquaredError().gradient(1))
    squared_error_gradient (score, target) => (gradient) {
        gradient = Sub (score, target)
    }
    """

    elementwise = True

    def value(self, n_outputs):
        """Return the ONNX function `(score, target) => (loss)`."""
        return """\
squared_error (score, target) => (loss) {
    half = Constant <value = float {0.5}> ()
    residual = Sub (score, target)
    square = Mul (residual, residual)
    loss = Mul (half, square)
}"""

    def gradient(self, n_outputs):
        """Return the ONNX function `(score, target) => (gradient)`."""
        return """\
squared_error_gradient (score, target) => (gradient) {
    gradient = Sub (score, target)
}"""


class LogLoss(BaseEstimator):
    r"""
    The log-loss of a classification, of the sigmoid of one score or the softmax of several.

    With one score :math:`s` and a target :math:`y \in \{0, 1\}`

    .. math:: loss(y, s) = \log(1 + e^s) - y s, \qquad
        \frac{\partial loss}{\partial s} = p - y, \quad p = \frac{1}{1 + e^{-s}},

    and with one score a class and a one-hot target

    .. math:: loss(y, s) = -\sum_k y_k \log p_k, \qquad
        \frac{\partial loss}{\partial s_k} = p_k - y_k, \quad p_k = \frac{e^{s_k}}{\sum_j e^{s_j}}

    as `HalfBinomialLoss` and `HalfMultinomialLoss` in `sklearn._loss`. The value is computed from the raw score and is
    finite for every finite score.

    Examples
    --------
    >>> from skort.objective.losses import LogLoss
    >>> print(LogLoss().gradient(1))
    log_loss_gradient (score, target) => (gradient) {
        probability = Sigmoid (score)
        gradient = Sub (probability, target)
    }
    """

    elementwise = False

    def value(self, n_outputs):
        """Return the ONNX function `(score, target) => (loss)`."""
        # log(1 + e^s) = m + log(e^-m + e^(s-m)) with m = max(s, 0). Differentiated as it stands, this gives the sigmoid
        # for every s: the part through m cancels. The shorter max(s, 0) + log(1 + e^-|s|) does not at s = 0, where all
        # linear models start.
        if n_outputs == 1:
            return """\
log_loss (score, target) => (loss) {
    zero = Constant <value = float {0}> ()
    m = Max (score, zero)
    minus_m = Neg (m)
    left = Exp (minus_m)
    shifted = Sub (score, m)
    right = Exp (shifted)
    sum = Add (left, right)
    log_sum = Log (sum)
    softplus = Add (m, log_sum)
    linear = Mul (target, score)
    loss = Sub (softplus, linear)
}"""
        return """\
multinomial_log_loss (score, target) => (loss) {
    log_probability = LogSoftmax <axis = 1> (score)
    chosen = Mul (target, log_probability)
    columns = Constant <value = int64[1] {1}> ()
    log_likelihood = ReduceSum <keepdims = 1> (chosen, columns)
    loss = Neg (log_likelihood)
}"""

    def gradient(self, n_outputs):
        """Return the ONNX function `(score, target) => (gradient)`."""
        if n_outputs == 1:
            return """\
log_loss_gradient (score, target) => (gradient) {
    probability = Sigmoid (score)
    gradient = Sub (probability, target)
}"""
        return """\
multinomial_log_loss_gradient (score, target) => (gradient) {
    probability = Softmax <axis = 1> (score)
    gradient = Sub (probability, target)
}"""


#: The losses by name.
REGRESSION_LOSSES = {"squared_error": SquaredError}
CLASSIFICATION_LOSSES = {"log_loss": LogLoss}
