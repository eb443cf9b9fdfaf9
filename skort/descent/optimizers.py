"""Optimizers: how a gradient changes the weights."""

import numpy as np
from sklearn.base import BaseEstimator

__all__ = ["OPTIMIZERS", "SGD"]


class SGD(BaseEstimator):
    r"""
    Stochastic gradient descent: :math:`w \leftarrow w - \eta g`.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.descent.optimizers import SGD
    >>> weights, gradient = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    >>> SGD().update(weights, gradient, eta=0.1)
    >>> weights
    array([0., 0.])
    """

    def update(self, weights, gradient, eta):
        """
        Make one update in place.

        Parameters
        ----------
        weights : ndarray of shape (n_weights,)
            Overwritten by the new weights.
        gradient : ndarray of shape (n_weights,)
            Overwritten by the step that was made.
        eta : float
            Learning rate.
        """
        np.multiply(gradient, eta, out=gradient)
        np.subtract(weights, gradient, out=weights)


#: The optimizers by name.
OPTIMIZERS = {"sgd": SGD}
