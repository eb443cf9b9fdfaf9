"""
Losses of regression whose score is the logarithm of the prediction.

The names and formulas are those of scikit-learn.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from skort.common.sklearn_private import Interval
from skort.objective.loss import FunctionSource, InUnits
from skort.objective.regression import RegressionLoss

__all__ = ["GammaLoss", "PoissonLoss", "TweedieLoss"]


class _LogLink(RegressionLoss):
    needs_positive_target = True
    typical_curvature: ClassVar[float | None] = 1.0
    _link = "prediction = Exp(score)"
    power: float

    def check_target(self, target: np.ndarray) -> None:
        """Raise a ValueError for targets outside the range of the distribution."""
        wanted = "y > 0" if self.power >= 2 else "y >= 0"
        if self.power >= 1 and ((target <= 0) if self.power >= 2 else (target < 0)).any():
            loss = f'"{self.name}"' if self.name else f"{type(self).__name__}(power={self.power})"
            least = np.min(target)
            other = "skort.objective.TweedieLoss(power=1.5), which takes zeros"
            other = other if least == 0 else 'another loss, such as "squared_error"'
            raise ValueError(
                f"loss={loss} needs {wanted}, and the smallest y is {least:.4g}. Use {other}."
            )

    def in_units(self, scale: float) -> InUnits:
        """Return the loss of y / scale and score - log(scale)."""
        offset = math.log(scale) if self.power == 2 else 0.0
        by_mean = -scale * math.log(scale) if self.power == 1 else 0.0
        loss = _LIMITS[self.power]() if self.power in _LIMITS else TweedieLoss(self.power)
        return InUnits(loss, scale ** (2 - float(self.power)), offset, offset_by_mean=by_mean)


class PoissonLoss(_LogLink, name="poisson"):
    r"""
    Half the Poisson deviance of counts, up to a constant;
    the score is the logarithm of the prediction.

    .. math:: loss(y, s) = e^s - y s, \qquad \frac{\partial loss}{\partial s} = e^s - y, \qquad prediction = e^s

    as `HalfPoissonLoss` in `sklearn._loss` and `sklearn.linear_model.PoissonRegressor`. y
    is not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from skort import OrtSGDRegressor
    >>> X, y = np.zeros((4, 1)), [0, 1, 2, 5]
    >>> OrtSGDRegressor(loss="poisson", eta0=0.2, max_iter=300, tol=None).fit(X, y).predict(
    ...     X[:1]
    ... ).round(2)
    array([2.])
    """

    power: int = 1
    _formula = """
    loss = Exp(score) - target * score
    gradient = Exp(score) - target
    curvature = Exp(score)
    """


class GammaLoss(_LogLink, name="gamma"):
    r"""
    Half the gamma deviance of positive amounts, up to a constant;
    the score is the logarithm of the prediction.

    .. math:: loss(y, s) = s + y e^{-s}, \qquad \frac{\partial loss}{\partial s} = 1 - y e^{-s}, \qquad prediction = e^s

    as `HalfGammaLoss` in `sklearn._loss` and `sklearn.linear_model.GammaRegressor`. y is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from skort import OrtSGDRegressor
    >>> X, y = np.zeros((4, 1)), [1, 1, 2, 4]
    >>> OrtSGDRegressor(loss="gamma", eta0=0.2, max_iter=300, tol=None).fit(X, y).predict(
    ...     X[:1]
    ... ).round(2)
    array([2.])
    """

    power: int = 2
    _formula = """
    ratio = target * Exp(-score)
    loss = score + ratio
    gradient = 1 - ratio
    curvature = target * Exp(-score)
    """


_LIMITS: dict[float, type[_LogLink]] = {1: PoissonLoss, 2: GammaLoss}


@dataclass(eq=False, repr=False)
class TweedieLoss(_LogLink):
    r"""
    Half the Tweedie deviance, up to a constant; the score is the logarithm of the prediction.

    .. math:: loss(y, s) = \frac{e^{(2 - p) s}}{2 - p} - y \frac{e^{(1 - p) s}}{1 - p}, \qquad
        \frac{\partial loss}{\partial s} = e^{(2 - p) s} - y e^{(1 - p) s}, \qquad prediction = e^s

    with :math:`p` = `power`, as `HalfTweedieLoss` in `sklearn._loss` and
    `sklearn.linear_model.TweedieRegressor(link="log")`. The limits :math:`p = 1` and :math:`p = 2`
    are `PoissonLoss` and `GammaLoss`.

    Parameters
    ----------
    power : float, default=1.5
        The power :math:`p`. The variance of y is proportional to :math:`mean^p`. The distribution
        is normal for 0, Poisson for 1, compound Poisson-gamma between 1 and 2, gamma for 2 and
        inverse Gaussian for 3. There is none between 0 and 1. y must not be negative if `power` is
        at least 1, and must be positive if `power` is at least 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skort import OrtSGDRegressor
    >>> from skort.objective import TweedieLoss
    >>> X, y = np.zeros((4, 1)), [0, 0, 3, 5]
    >>> model = OrtSGDRegressor(loss=TweedieLoss(power=1.5), eta0=0.2, max_iter=300, tol=None)
    >>> model.fit(X, y).predict(X[:1]).round(2)
    array([2.])
    """

    __module__ = "skort.objective"
    _parameter_constraints = {
        "power": [Interval(Real, None, 0, closed="right"), Interval(Real, 1, None, closed="left")]
    }
    power: float = 1.5
    _formula = """
    mean_power = Exp(two_minus_power * score)
    target_power = target * Exp(one_minus_power * score)
    loss = mean_power / two_minus_power - target_power / one_minus_power
    gradient = mean_power - target_power
    curvature = two_minus_power * mean_power - one_minus_power * target_power
    """

    @property
    def needs_positive_target(self) -> bool:  # type: ignore[override]
        """Whether the distribution has no negative values."""
        return self.power > 0

    def value_function(self, n_outputs: int) -> FunctionSource:
        """Return the ONNX function `(score, target) => (loss)`."""
        limit = _LIMITS.get(self.power)
        return (
            super().value_function(n_outputs)
            if limit is None
            else limit().value_function(n_outputs)
        )

    def curvature_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return the ONNX function `(score, target) => (curvature)`."""
        limit = _LIMITS.get(self.power)
        return (
            super().curvature_function(n_outputs)
            if limit is None
            else limit().curvature_function(n_outputs)
        )

    def _constants(self):
        return {"two_minus_power": 2 - float(self.power), "one_minus_power": 1 - float(self.power)}
