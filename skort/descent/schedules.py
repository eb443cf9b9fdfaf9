"""Learning rates: functions of the number of the update, by scikit-learn's names and formulas."""

from sklearn.base import BaseEstimator

__all__ = ["SCHEDULES", "Constant", "InvScaling"]


class Constant(BaseEstimator):
    r"""
    The same learning rate for all updates: :math:`\eta(t) = \eta_0`.

    Parameters
    ----------
    eta0 : float, default=0.01

    Examples
    --------
    >>> from skort.descent.schedules import Constant
    >>> [Constant(eta0=0.1)(t) for t in (1, 2, 100)]
    [0.1, 0.1, 0.1]
    """

    def __init__(self, eta0=0.01):
        self.eta0 = eta0

    def __call__(self, t):
        """Return the learning rate of update number `t`, counted from 1."""
        return self.eta0


class InvScaling(BaseEstimator):
    r"""
    A learning rate that falls with a power of the update's number: :math:`\eta(t) = \eta_0 / t^{power\_t}`.

    The formula is that of `sklearn.linear_model.SGDRegressor(learning_rate="invscaling")`, where t counts updates too.

    Parameters
    ----------
    eta0 : float, default=0.01
    power_t : float, default=0.25

    Examples
    --------
    >>> from skort.descent.schedules import InvScaling
    >>> [InvScaling(eta0=0.1, power_t=0.5)(t) for t in (1, 4, 16)]
    [0.1, 0.05, 0.025]
    """

    def __init__(self, eta0=0.01, power_t=0.25):
        self.eta0 = eta0
        self.power_t = power_t

    def __call__(self, t):
        """Return the learning rate of update number `t`, counted from 1."""
        return self.eta0 * float(t) ** -self.power_t


#: The schedules by name.
SCHEDULES = {"constant": Constant, "invscaling": InvScaling}
