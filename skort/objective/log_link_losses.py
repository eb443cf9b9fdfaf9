"""Losses of regression whose score is the logarithm of the prediction, by scikit-learn's names and formulas."""

import numpy as np

from skort.objective.regression_losses import RegressionLoss

__all__ = ["GammaLoss", "PoissonLoss"]

_EXP = """\
inverse_log (score) => (prediction) {
    prediction = Exp (score)
}"""


class PoissonLoss(RegressionLoss):
    r"""
    Half the Poisson deviance of counts, up to a constant; the score is the logarithm of the prediction.

    .. math:: loss(y, s) = e^s - y s, \qquad \frac{\partial loss}{\partial s} = e^s - y, \qquad prediction = e^s

    as `HalfPoissonLoss` in `sklearn._loss` and `sklearn.linear_model.PoissonRegressor`. y is not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from skort import OrtSGDRegressor
    >>> X, y = np.zeros((4, 1)), [0, 1, 2, 5]
    >>> OrtSGDRegressor(loss="poisson", eta0=0.2).fit(X, y).predict(X[:1]).round(2)
    array([2.])
    """

    _value = """\
poisson (score, target) => (loss) {
    prediction = Exp (score)
    linear = Mul (target, score)
    loss = Sub (prediction, linear)
}"""
    _gradient = """\
poisson_gradient (score, target) => (gradient) {
    prediction = Exp (score)
    gradient = Sub (prediction, target)
}"""

    def inverse_link_function(self, n_outputs: int) -> str:
        """Return the exponential, `(score) => (prediction)`."""
        return _EXP

    def check_target(self, target: np.ndarray) -> None:
        """Raise a ValueError for a negative target."""
        if (target < 0).any():
            raise ValueError('loss="poisson" takes y >= 0.')


class GammaLoss(RegressionLoss):
    r"""
    Half the gamma deviance of positive amounts, up to a constant; the score is the logarithm of the prediction.

    .. math:: loss(y, s) = s + y e^{-s}, \qquad \frac{\partial loss}{\partial s} = 1 - y e^{-s}, \qquad prediction = e^s

    as `HalfGammaLoss` in `sklearn._loss` and `sklearn.linear_model.GammaRegressor`. y is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from skort import OrtSGDRegressor
    >>> X, y = np.zeros((4, 1)), [1, 1, 2, 4]
    >>> OrtSGDRegressor(loss="gamma", eta0=0.2, tol=1e-6).fit(X, y).predict(X[:1]).round(2)
    array([2.])
    """

    _value = """\
gamma (score, target) => (loss) {
    minus_score = Neg (score)
    inverse = Exp (minus_score)
    ratio = Mul (target, inverse)
    loss = Add (score, ratio)
}"""
    _gradient = """\
gamma_gradient (score, target) => (gradient) {
    one = Constant <value = float {1}> ()
    minus_score = Neg (score)
    inverse = Exp (minus_score)
    ratio = Mul (target, inverse)
    gradient = Sub (one, ratio)
}"""

    def inverse_link_function(self, n_outputs: int) -> str:
        """Return the exponential, `(score) => (prediction)`."""
        return _EXP

    def check_target(self, target: np.ndarray) -> None:
        """Raise a ValueError for a target that is not positive."""
        if (target <= 0).any():
            raise ValueError('loss="gamma" takes y > 0.')
