"""
Losses of regression, by scikit-learn's names and formulas.

All are elementwise: the loss of a row is the mean over its outputs. At a kink the gradient is zero.
"""

from numbers import Real

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval

from skort.objective.loss import InUnits, TextLoss

__all__ = [
    "AbsoluteError",
    "ElasticLoss",
    "EpsilonInsensitive",
    "Huber",
    "Quantile",
    "SquaredEpsilonInsensitive",
    "SquaredError",
]

_LARGEST = float(np.finfo(np.float32).max)
_NOT_NEGATIVE = [Interval(Real, 0, _LARGEST, closed="both")]


class RegressionLoss(TextLoss):
    """A loss of each output; the loss of a row is the mean over its outputs."""

    estimator_types = ("regressor",)
    has_units = True
    #: The power of a common factor of y and score by which the loss grows.
    _degree = 1

    def weight_scale(self, n_outputs: int) -> float:
        """Return 1 / `n_outputs`: the loss is the mean over the outputs."""
        return 1.0 / n_outputs

    def in_units(self, scale: float) -> InUnits:
        r"""
        Return the loss of targets and scores that are divided by a number.

        .. math:: loss(y, s) = unit \cdot loss'(y / scale, s / scale)

        Where the score is the logarithm of the prediction, :math:`s - \log scale` takes the place of :math:`s / scale`.
        """
        loss = clone(self)
        if "epsilon" in self.get_params():
            loss.set_params(epsilon=min(self.epsilon / scale, _LARGEST))
        return InUnits(loss, scale**self._degree)


class SquaredError(RegressionLoss, name="squared_error"):
    r"""
    Half the squared error: the score follows the mean of y.

    .. math:: loss(y, s) = \frac{1}{2} (s - y)^2, \qquad \frac{\partial loss}{\partial s} = s - y

    as in `sklearn.linear_model.SGDRegressor(loss="squared_error")`.

    Examples
    --------
    >>> from skort.objective import SquaredError
    >>> print(SquaredError().gradient_function(1))
    squared_error_gradient (score, target) => (gradient) {
        gradient = Sub (score, target)
    }
    """

    _curvature = 1.0
    _degree = 2
    _value = """\
squared_error (score, target) => (loss) {
    residual = Sub (score, target)
    square = Mul (residual, residual)
    loss = Mul (half, square)
}"""
    _gradient = """\
squared_error_gradient (score, target) => (gradient) {
    gradient = Sub (score, target)
}"""


class AbsoluteError(RegressionLoss, name="absolute_error"):
    r"""
    The absolute error: the score follows the median of y, and outliers pull no more than others.

    .. math:: loss(y, s) = |s - y|, \qquad \frac{\partial loss}{\partial s} = sign(s - y)

    as `AbsoluteError` in `sklearn._loss`, but with the gradient 0 where :math:`s = y`.

    Examples
    --------
    >>> from skort.objective import AbsoluteError
    >>> print(AbsoluteError().gradient_function(1))
    absolute_error_gradient (score, target) => (gradient) {
        residual = Sub (score, target)
        gradient = Sign (residual)
    }
    """

    is_robust = True
    typical_curvature = 1.0
    _value = """\
absolute_error (score, target) => (loss) {
    residual = Sub (score, target)
    loss = Abs (residual)
}"""
    _gradient = """\
absolute_error_gradient (score, target) => (gradient) {
    residual = Sub (score, target)
    gradient = Sign (residual)
}"""


class Huber(RegressionLoss, name="huber"):
    r"""
    Squared error within a distance of `epsilon` from y, linear beyond it.

    With :math:`r = s - y`

    .. math:: loss(y, s) = \begin{cases} \frac{1}{2} r^2 & |r| \le \epsilon \\
        \epsilon |r| - \frac{1}{2} \epsilon^2 & |r| > \epsilon \end{cases}, \qquad
        \frac{\partial loss}{\partial s} = \max(-\epsilon, \min(r, \epsilon))

    as in `sklearn.linear_model.SGDRegressor(loss="huber")`.

    Parameters
    ----------
    epsilon : float, default=0.1
        The distance beyond which the loss is linear; positive, in units of y.

    Examples
    --------
    >>> from skort import OrtSGDRegressor
    >>> from skort.objective import Huber
    >>> OrtSGDRegressor(loss=Huber(epsilon=2)).get_params()["loss__epsilon"]
    2
    """

    is_robust = True
    shared_parameters = ("epsilon",)
    _parameter_constraints = {"epsilon": [Interval(Real, 0, _LARGEST, closed="right")]}
    _curvature = 1.0
    _degree = 2
    # c (r - c / 2), where c is r clipped to [-epsilon, epsilon]. Differentiated operator by operator it gives c for
    # every r.
    _given = """\
    minus_epsilon = Neg (epsilon)
    residual = Sub (score, target)
    below = Min (residual, epsilon)
"""
    _value = """\
huber (score, target) => (loss) {
    clipped = Max (below, minus_epsilon)
    half_clipped = Mul (half, clipped)
    rest = Sub (residual, half_clipped)
    loss = Mul (clipped, rest)
}"""
    _gradient = """\
huber_gradient (score, target) => (gradient) {
    gradient = Max (below, minus_epsilon)
}"""

    def __init__(self, epsilon: float = 0.1):
        self.epsilon = epsilon

    def in_units(self, scale: float) -> InUnits:
        """Return the loss of targets and scores that are divided by a number, see `RegressionLoss.in_units`."""
        # Where epsilon is small, its weight makes it a loss of absolute residuals, whose gradient does not vanish.
        epsilon = min(self.epsilon / scale, _LARGEST)
        slope = max(min(1.0, epsilon), 1e-30)
        return InUnits(Huber(epsilon), scale**2 * slope, weight=1 / slope)


class EpsilonInsensitive(RegressionLoss, name="epsilon_insensitive"):
    r"""
    The absolute error beyond a distance of `epsilon`, as in support vector regression.

    .. math:: loss(y, s) = \max(0, |s - y| - \epsilon), \qquad
        \frac{\partial loss}{\partial s} = \begin{cases} sign(s - y) & |s - y| > \epsilon \\ 0 & otherwise \end{cases}

    as in `sklearn.linear_model.SGDRegressor(loss="epsilon_insensitive")`.

    Parameters
    ----------
    epsilon : float, default=0.1
        The distance within which an error costs nothing; not negative, in units of y.

    Examples
    --------
    >>> from skort.objective import EpsilonInsensitive
    >>> EpsilonInsensitive(epsilon=0.5)
    EpsilonInsensitive(epsilon=0.5)
    """

    is_robust = True
    shared_parameters = ("epsilon",)
    _parameter_constraints = {"epsilon": _NOT_NEGATIVE}
    typical_curvature = 1.0
    _given = """\
    residual = Sub (score, target)
    distance = Abs (residual)
    beyond = Sub (distance, epsilon)
    excess = Relu (beyond)
"""
    _value = """\
epsilon_insensitive (score, target) => (loss) {
    loss = Identity (excess)
}"""
    _gradient = """\
epsilon_insensitive_gradient (score, target) => (gradient) {
    direction = Sign (residual)
    counted = Sign (excess)
    gradient = Mul (direction, counted)
}"""

    def __init__(self, epsilon: float = 0.1):
        self.epsilon = epsilon


class SquaredEpsilonInsensitive(EpsilonInsensitive, name="squared_epsilon_insensitive"):
    r"""
    The squared error beyond a distance of `epsilon`, as in support vector regression.

    .. math:: loss(y, s) = \max(0, |s - y| - \epsilon)^2, \qquad
        \frac{\partial loss}{\partial s} = 2 \max(0, |s - y| - \epsilon) \, sign(s - y)

    as in `sklearn.linear_model.SGDRegressor(loss="squared_epsilon_insensitive")`.

    Parameters
    ----------
    epsilon : float, default=0.1
        The distance within which an error costs nothing; not negative, in units of y.

    Examples
    --------
    >>> from skort.objective import SquaredEpsilonInsensitive
    >>> SquaredEpsilonInsensitive(epsilon=0.5)
    SquaredEpsilonInsensitive(epsilon=0.5)
    """

    is_robust = False
    _curvature = 2.0
    _degree = 2
    _value = """\
squared_epsilon_insensitive (score, target) => (loss) {
    loss = Mul (excess, excess)
}"""
    _gradient = """\
squared_epsilon_insensitive_gradient (score, target) => (gradient) {
    direction = Sign (residual)
    signed = Mul (direction, excess)
    gradient = Mul (two, signed)
}"""


class Quantile(RegressionLoss, name="quantile"):
    r"""
    The pinball loss: the score follows a quantile of y.

    .. math:: loss(y, s) = q \max(0, y - s) + (1 - q) \max(0, s - y), \qquad
        \frac{\partial loss}{\partial s} = \begin{cases} -q & s < y \\ 1 - q & s > y \end{cases}

    as in `sklearn.linear_model.QuantileRegressor`, but with the gradient 0 where :math:`s = y`.

    Parameters
    ----------
    quantile : float, default=0.5
        :math:`q`, between 0 and 1, both excluded. 0.5 is the median.

    Examples
    --------
    >>> from skort.objective import Quantile
    >>> Quantile(quantile=0.9)
    Quantile(quantile=0.9)
    """

    is_robust = True
    shared_parameters = ("quantile",)
    typical_curvature = 1.0
    _parameter_constraints = {"quantile": [Interval(Real, 0, 1, closed="neither")]}
    _given = """\
    rest = Sub (one, quantile)
    above = Sub (score, target)
    below = Neg (above)
    over = Relu (above)
    under = Relu (below)
"""
    _value = """\
quantile (score, target) => (loss) {
    over_loss = Mul (rest, over)
    under_loss = Mul (quantile, under)
    loss = Add (over_loss, under_loss)
}"""
    _gradient = """\
quantile_gradient (score, target) => (gradient) {
    is_over = Sign (over)
    is_under = Sign (under)
    up = Mul (rest, is_over)
    down = Mul (quantile, is_under)
    gradient = Sub (up, down)
}"""

    def __init__(self, quantile: float = 0.5):
        self.quantile = quantile


class ElasticLoss(RegressionLoss):
    r"""
    A sum of absolute and squared error: the score estimates a value between the median and the mean of y.

    .. math:: loss(y, s) = a |s - y| + \frac{b}{2} (s - y)^2, \qquad
        \frac{\partial loss}{\partial s} = a \, sign(s - y) + b (s - y)

    with :math:`a` = `l1_weight` and :math:`b` = `l2_weight`: :math:`a` times `AbsoluteError` plus :math:`b` times
    `SquaredError`.

    Parameters
    ----------
    l1_weight, l2_weight : float, default=0.5
        Not negative.

    Examples
    --------
    >>> from skort import OrtSGDRegressor
    >>> from skort.objective import ElasticLoss
    >>> OrtSGDRegressor(loss=ElasticLoss(l1_weight=0.1, l2_weight=0.9))
    OrtSGDRegressor(loss=ElasticLoss(l1_weight=0.1, l2_weight=0.9))
    """

    __module__ = "skort.objective"
    typical_curvature = 1.0
    _parameter_constraints = {"l1_weight": _NOT_NEGATIVE, "l2_weight": _NOT_NEGATIVE}
    _value = """\
elastic (score, target) => (loss) {
    residual = Sub (score, target)
    distance = Abs (residual)
    absolute = Mul (l1_weight, distance)
    square = Mul (residual, residual)
    half_square = Mul (half, square)
    squared = Mul (l2_weight, half_square)
    loss = Add (absolute, squared)
}"""
    _gradient = """\
elastic_gradient (score, target) => (gradient) {
    residual = Sub (score, target)
    direction = Sign (residual)
    absolute = Mul (l1_weight, direction)
    squared = Mul (l2_weight, residual)
    gradient = Add (absolute, squared)
}"""

    def __init__(self, l1_weight: float = 0.5, l2_weight: float = 0.5):
        self.l1_weight = l1_weight
        self.l2_weight = l2_weight

    def in_units(self, scale: float) -> InUnits:
        """Return the loss of targets and scores that are divided by a number, see `RegressionLoss.in_units`."""
        l1_weight = min(self.l1_weight / scale, _LARGEST)
        # The larger term has the weight one.
        largest = max(l1_weight, self.l2_weight) or 1.0
        return InUnits(ElasticLoss(l1_weight / largest, self.l2_weight / largest), scale**2 * largest)

    def curvature(self, n_outputs: int) -> float | None:
        """Return the largest second derivative by the score, but at the kink."""
        return self.l2_weight or None
