"""
Losses of regression.

The loss of a row is the mean over its outputs. The gradient at a kink is zero.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from skort.common.component import parameter_names
from skort.common.sklearn_private import Interval
from skort.objective.loss import FormulaLoss, InUnits

__all__ = [
    "AbsoluteError",
    "ConcomitantHuber",
    "ElasticLoss",
    "EpsilonInsensitive",
    "Huber",
    "Quantile",
    "SquaredEpsilonInsensitive",
    "SquaredError",
]

_LARGEST = 1e38
_NOT_NEGATIVE = [Interval(Real, 0, _LARGEST, closed="both")]
_SCALE = "skort_loss/scale"


class RegressionLoss(FormulaLoss):
    """A loss of each output; the loss of a row is the mean over its outputs."""

    estimator_types: ClassVar[tuple[str, ...]] = ("regressor",)
    has_units = True
    #: The power d: a common factor c of y and score multiplies the loss by c^d.
    _degree = 1

    def weight_scale(self, n_outputs: int) -> float:
        """Return 1 / `n_outputs`: the loss is the mean over the outputs."""
        return 1.0 / n_outputs

    def in_units(self, scale: float) -> InUnits:
        """
        Return the loss of y / scale and score / scale.

        If the score is a logarithm, return the loss of y / scale and score - log(scale).
        """
        degree = self._degree
        if "epsilon" not in parameter_names(type(self)):  # type: ignore[arg-type]  # classes are hashable
            return InUnits(self, scale**degree)

        epsilon = min(self.get_params()["epsilon"] / scale, _LARGEST)
        loss = clone(self).set_params(epsilon=epsilon)
        # A bounded gradient vanishes with epsilon^(d - 1). The weight makes up for it.
        slope = max(min(1.0, epsilon) ** max(degree - 1, 0), 1e-30) if self.is_robust else 1.0
        return InUnits(loss, scale**degree * slope, weight=1 / slope)


class SquaredError(RegressionLoss, name="squared_error"):
    r"""
    Half the squared error: the score follows the mean of y.

    .. math:: loss(y, s) = \frac{1}{2} (s - y)^2, \qquad \frac{\partial loss}{\partial s} = s - y

    as in `sklearn.linear_model.SGDRegressor(loss="squared_error")`.

    Examples
    --------
    >>> from skort.objective import SquaredError
    >>> print(SquaredError().gradient_function(1))
    gradient (score, target) => (gradient) {
        gradient = Sub (score, target)
    }
    """

    _curvature = 1.0
    _degree = 2
    _formula = """
    residual = score - target
    square = residual * residual
    loss = 0.5 * square
    gradient = score - target
    """


class AbsoluteError(RegressionLoss, name="absolute_error"):
    r"""
    The absolute error: the score follows the median of y, and outliers pull no more than others.

    .. math:: loss(y, s) = |s - y|, \qquad \frac{\partial loss}{\partial s} = sign(s - y)

    as `AbsoluteError` in `sklearn._loss`, but with the gradient 0 where :math:`s = y`.

    Examples
    --------
    >>> from skort.objective import AbsoluteError
    >>> print(AbsoluteError().gradient_function(1))
    gradient (score, target) => (gradient) {
        residual = Sub (score, target)
        gradient = Sign (residual)
    }
    """

    is_robust = True
    typical_curvature: ClassVar[float | None] = 1.0
    smooth_instead: ClassVar[str | None] = "huber"
    _formula = """
    residual = score - target
    loss = Abs(residual)
    gradient = Sign(residual)
    """


@dataclass(eq=False, repr=False)
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
    shared_parameters: ClassVar[tuple[str, ...]] = ("epsilon",)
    _parameter_constraints = {"epsilon": [Interval(Real, 0, _LARGEST, closed="right")]}
    epsilon: float = 0.1
    _curvature = 1.0
    _degree = 2
    # c (r - c / 2), where c is r clipped to [-epsilon, epsilon]. Differentiated operator by
    # operator it gives c for every r.
    _formula = """
    residual = score - target
    clipped = Max(Min(residual, epsilon), -epsilon)
    loss = clipped * (residual - 0.5 * clipped)
    gradient = Identity(clipped)
    curvature = Where(Abs(residual) <= epsilon, 1, 0)
    """


@dataclass(eq=False, repr=False)
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
    shared_parameters: ClassVar[tuple[str, ...]] = ("epsilon",)
    _parameter_constraints = {"epsilon": _NOT_NEGATIVE}
    epsilon: float = 0.1
    typical_curvature: ClassVar[float | None] = 1.0
    smooth_instead: ClassVar[str | None] = "squared_epsilon_insensitive"
    _formula = """
    residual = score - target
    excess = Relu(Abs(residual) - epsilon)
    loss = Identity(excess)
    gradient = Sign(residual) * Sign(excess)
    """


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
    smooth_instead: ClassVar[str | None] = None
    _curvature = 2.0
    _degree = 2
    _formula = """
    residual = score - target
    excess = Relu(Abs(residual) - epsilon)
    loss = excess * excess
    gradient = 2 * (Sign(residual) * excess)
    """


@dataclass(eq=False, repr=False)
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
    shared_parameters: ClassVar[tuple[str, ...]] = ("quantile",)
    smooth_instead: ClassVar[str | None] = "huber"
    _parameter_constraints = {"quantile": [Interval(Real, 0, 1, closed="neither")]}
    quantile: float = 0.5
    _formula = """
    rest = 1 - quantile
    above = score - target
    over = Relu(above)
    under = Relu(-above)
    loss = rest * over + quantile * under
    gradient = rest * Sign(over) - quantile * Sign(under)
    """

    @property
    def typical_curvature(self) -> float:  # type: ignore[override]
        """Twice the standard deviation of the gradient: one at the median, less elsewhere."""
        return 2 * math.sqrt(self.quantile * (1 - self.quantile))


@dataclass(eq=False, repr=False)
class ElasticLoss(RegressionLoss):
    r"""
    A sum of absolute and squared error:
    the score estimates a value between the median and the mean of y.

    .. math:: loss(y, s) = a |s - y| + \frac{b}{2} (s - y)^2, \qquad
        \frac{\partial loss}{\partial s} = a \, sign(s - y) + b (s - y)

    with :math:`a` = `l1_weight` and :math:`b` = `l2_weight`.

    Parameters
    ----------
    l1_weight, l2_weight : float, default=0.5
        The factors of `AbsoluteError` and `SquaredError`; not negative.

    Examples
    --------
    >>> from skort import OrtSGDRegressor
    >>> from skort.objective import ElasticLoss
    >>> OrtSGDRegressor(loss=ElasticLoss(l1_weight=0.1, l2_weight=0.9))
    OrtSGDRegressor(loss=ElasticLoss(l1_weight=0.1, l2_weight=0.9))
    """

    __module__ = "skort.objective"
    typical_curvature: ClassVar[float | None] = 1.0
    _parameter_constraints = {"l1_weight": _NOT_NEGATIVE, "l2_weight": _NOT_NEGATIVE}
    l1_weight: float = 0.5
    l2_weight: float = 0.5
    _formula = """
    residual = score - target
    loss = l1_weight * Abs(residual) + l2_weight * (0.5 * (residual * residual))
    gradient = l1_weight * Sign(residual) + l2_weight * residual
    """

    @property
    def smooth_instead(self) -> str | None:  # type: ignore[override]
        """The name of a loss without the kink of the absolute error, or None without kink."""
        return "huber" if self.l1_weight else None

    def in_units(self, scale: float) -> InUnits:
        """
        Return the loss of targets and scores that are divided by a number, see
        `RegressionLoss.in_units`.
        """
        l1_weight = min(self.l1_weight / scale, _LARGEST)
        # The larger weight becomes one.
        largest = max(l1_weight, self.l2_weight) or 1.0
        return InUnits(
            ElasticLoss(l1_weight / largest, self.l2_weight / largest), scale**2 * largest
        )

    def curvature(self, n_outputs: int) -> float | None:
        """Return the second derivative by the score away from the kink, or None if it is zero."""
        return self.l2_weight or None


@dataclass(eq=False, repr=False)
class ConcomitantHuber(RegressionLoss):
    r"""
    Huber's loss of residuals divided by a scale, which is trained with the model.

    With :math:`z = (s - y) / \sigma`

    .. math:: loss(y, s) = \sigma + \sigma H(z), \qquad
        H(z) = \begin{cases} z^2 & |z| \le \epsilon \\ 2 \epsilon |z| - \epsilon^2 & |z| > \epsilon \end{cases}

    .. math:: \frac{\partial loss}{\partial s} = 2 c, \qquad \frac{\partial loss}{\partial \sigma} = 1 - c^2, \qquad
        c = \max(-\epsilon, \min(z, \epsilon))

    as in `sklearn.linear_model.HuberRegressor`, whose `scale_` is :math:`\sigma`. The loss is
    convex in score and scale together. Each output has a scale of its own: the absolute value of a
    trained number.

    Parameters
    ----------
    epsilon : float, default=1.35
        The distance from y, in units of :math:`\sigma`, beyond which the loss is linear; positive.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import HuberRegressor
    >>> from skort import OrtSGDRegressor
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> y = X.ravel() + 0.1 * np.cos(np.arange(50))
    >>> model = OrtSGDRegressor(HuberRegressor(), tol=1e-8, dtype="float64", random_state=0).fit(
    ...     X, y
    ... )
    >>> print(f"{model.scale_:.3f} {HuberRegressor().fit(X, y).scale_:.3f}")
    0.069 0.069
    """

    __module__ = "skort.objective"
    shared_parameters: ClassVar[tuple[str, ...]] = ("epsilon",)
    weight_names: ClassVar[tuple[str, ...]] = (_SCALE,)
    is_robust = True
    typical_curvature: ClassVar[float | None] = 1.0
    _parameter_constraints = {"epsilon": [Interval(Real, 0, _LARGEST, closed="right")]}
    epsilon: float = 1.35
    _signatures = (
        "concomitant_huber (score, target, scale) => (loss)",
        "concomitant_huber_gradient (score, target, scale) => (gradient, scale_gradient)",
    )
    # Differentiated operator by operator, the value gives 2 c by the score and 1 - c^2 by the
    # scale, for every z. The summand of sigma is the smallest scale, as in HuberRegressor: a
    # residual of zero is never divided by zero.
    _formula = """
    sigma = Abs(scale) + 2.220446049250313e-15
    residual = score - target
    clipped = Max(Min(residual / sigma, epsilon), -epsilon)
    loss = sigma + clipped * (residual + residual - clipped * sigma)
    gradient = 2 * clipped
    scale_gradient = Sign(scale) * (1 - clipped * clipped)
    """

    def initial_weights(self, target: np.ndarray, model: Any = None) -> dict[str, np.ndarray]:
        """Return the scale of a fitted HuberRegressor, or y's median distance from its median."""
        # The median distance has the unit of y, and outliers hardly change it. scikit-learn starts
        # at 1, from where the training would need many steps to a scale of 1000.
        scale = getattr(model, "scale_", None)
        if scale is not None:
            return {_SCALE: np.full(target.shape[1], float(scale))}

        distances = np.median(np.abs(target - np.median(target, axis=0)), axis=0)
        return {_SCALE: np.where(distances > 0, distances, 1.0)}

    def in_units(self, scale: float) -> InUnits:
        """Return the loss of targets and scores divided by a number: this loss, with it as unit."""
        return InUnits(self, scale)

    def fitted_attributes(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return `scale_`, the scale of each output."""
        return {"scale_": np.abs(weights[_SCALE])}
