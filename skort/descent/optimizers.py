"""
Optimizers: how a gradient changes the weights.

An optimizer holds its parameters only. What it remembers from one update to the next is in arrays that the caller
keeps, so that one instance serves any number of trainings, and a training goes on from saved arrays.
"""

from typing import Protocol

import numpy as np
from sklearn.base import BaseEstimator

__all__ = ["OPTIMIZERS", "SGD", "Optimizer"]


class Optimizer(Protocol):
    """What a solver needs of an optimizer. All weights are one vector: the coefficients, then the intercepts."""

    def start(self, n_coefficients: int, n_intercepts: int, dtype: np.dtype) -> dict[str, np.ndarray]:
        """
        Return the state before the first update.

        Parameters
        ----------
        n_coefficients : int
            Number of weights that multiply inputs.
        n_intercepts : int
            Number of weights that are added.
        dtype : dtype
            Of the weights.

        Returns
        -------
        state : dict of str to ndarray
            All that is remembered from one update to the next.
        """

    def update(self, weights, gradient, eta: float, state, scratch) -> None:
        """
        Make one update in place.

        Parameters
        ----------
        weights : ndarray of shape (n_weights,)
            Overwritten by the new weights.
        gradient : ndarray of shape (n_weights,)
            Left as it is.
        eta : float
            Learning rate.
        state : dict of str to ndarray
            As from `start`; its arrays are changed in place.
        scratch : ndarray of shape (n_weights,)
            Overwritten.
        """


class SGD(BaseEstimator):
    r"""
    Stochastic gradient descent.

    .. math:: w \leftarrow w - \eta g

    as in `sklearn.linear_model.SGDRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.descent.optimizers import SGD
    >>> weights, gradient = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    >>> SGD().update(weights, gradient, 0.1, state={}, scratch=np.empty(2))
    >>> weights
    array([0., 0.])
    """

    def start(self, n_coefficients, n_intercepts, dtype):
        """Return the state before the first update: there is none."""
        return {}

    def update(self, weights, gradient, eta, state, scratch):
        """Make one update in place."""
        np.multiply(gradient, eta, out=scratch)
        np.subtract(weights, scratch, out=weights)


#: The optimizers by name.
OPTIMIZERS = {"sgd": SGD}
