"""Huber's loss with a scale that is trained with the model, as in scikit-learn's HuberRegressor."""

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from skort.objective.loss import InUnits
from skort.objective.regression import RegressionLoss

_LARGEST = float(np.finfo(np.float32).max)
_SCALE = "skort_loss/scale"


class ConcomitantHuber(RegressionLoss):
    r"""
    Huber's loss of residuals over their scale, and the scale, which is trained with the model.

    With :math:`z = (s - y) / \sigma`

    .. math:: loss(y, s) = \sigma + \sigma H(z), \qquad
        H(z) = \begin{cases} z^2 & |z| \le \epsilon \\ 2 \epsilon |z| - \epsilon^2 & |z| > \epsilon \end{cases}

    .. math:: \frac{\partial loss}{\partial s} = 2 c, \qquad \frac{\partial loss}{\partial \sigma} = 1 - c^2, \qquad
        c = \max(-\epsilon, \min(z, \epsilon))

    as in `sklearn.linear_model.HuberRegressor`, whose `scale_` is :math:`\sigma`. `epsilon` does not depend on the
    units of y, and the loss is convex in score and scale together. Each output has a scale of its own. The trained
    number may have either sign, and its absolute value is :math:`\sigma`. So no step leads to a negative scale.

    Parameters
    ----------
    epsilon : float, default=1.35
        Distance from y, in units of :math:`\sigma`, from which on the loss is linear; positive.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import HuberRegressor
    >>> from skort import OrtSGDRegressor
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> y = X.ravel() + 0.1 * np.cos(np.arange(50))
    >>> model = OrtSGDRegressor(HuberRegressor(), tol=1e-8, dtype="float64", random_state=0).fit(X, y)
    >>> print(f"{model.scale_:.3f} {HuberRegressor().fit(X, y).scale_:.3f}")
    0.069 0.069
    """

    __module__ = "skort.objective"
    shared_parameters = ("epsilon",)
    weight_names = (_SCALE,)
    is_robust = True
    typical_curvature = 1.0
    _parameter_constraints = {"epsilon": [Interval(Real, 0, _LARGEST, closed="right")]}
    # The clipped residual c of the value is z within epsilon: differentiated operator by operator it gives 2 c for
    # every z, and 1 - c^2 by the scale. As in HuberRegressor, a residual of zero is divided by the smallest scale.
    _given = """\
    minus_epsilon = Neg (epsilon)
    smallest = Constant <value = float {2.220446049250313e-15}> ()
    distance = Abs (scale)
    sigma = Add (distance, smallest)
    residual = Sub (score, target)
    z = Div (residual, sigma)
    below = Min (z, epsilon)
    clipped = Max (below, minus_epsilon)
"""
    _value = """\
concomitant_huber (score, target, scale) => (loss) {
    twice = Add (residual, residual)
    reach = Mul (clipped, sigma)
    rest = Sub (twice, reach)
    bent = Mul (clipped, rest)
    loss = Add (sigma, bent)
}"""
    _gradient = """\
concomitant_huber_gradient (score, target, scale) => (gradient, scale_gradient) {
    gradient = Mul (two, clipped)
    square = Mul (clipped, clipped)
    by_sigma = Sub (one, square)
    sign = Sign (scale)
    scale_gradient = Mul (sign, by_sigma)
}"""

    def __init__(self, epsilon: float = 1.35):
        self.epsilon = epsilon

    def initial_weights(self, target, sample_weight=None, model=None) -> dict[str, np.ndarray]:
        """Return the scales of a fitted HuberRegressor, or the median distance of y from its median, or 1."""
        # It has the unit of y, and outliers hardly change it. From 1, scikit-learn's start, 1000 is many steps away.
        scale = getattr(model, "scale_", None)
        if scale is not None:
            return {_SCALE: np.full(target.shape[1], float(scale))}
        rows = target if sample_weight is None else target[sample_weight > 0]
        distances = np.median(np.abs(rows - np.median(rows, axis=0)), axis=0)
        return {_SCALE: np.where(distances > 0, distances, 1.0)}

    def in_units(self, scale: float) -> InUnits:
        """Return the loss of targets and scores that are divided by a number: itself, times the number."""
        return InUnits(self, scale)

    def fitted_attributes(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return `scale_`, the scale of each output."""
        return {"scale_": np.abs(weights[_SCALE])}
