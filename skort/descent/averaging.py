"""Averaged stochastic gradient descent: the mean of the weights over the updates."""

import numpy as np

__all__ = ["Average"]


class Average:
    r"""
    The mean of the weights after each update, from a given update on.

    .. math:: \bar w_t = \frac{1}{t - t_0 + 1} \sum_{s = t_0}^{t} w_s, \qquad t \ge t_0

    as in `sklearn.linear_model.SGDRegressor(average=t_0)`. The sum is in float64, whatever the weights are.

    Parameters
    ----------
    first : bool or int
        :math:`t_0`, the first update whose weights count; True is 1. False or 0: no mean.
    n_weights : int

    Examples
    --------
    >>> import numpy as np
    >>> from skort.descent.averaging import Average
    >>> average = Average(2, n_weights=1)
    >>> for weight in (10.0, 20.0, 30.0):
    ...     if average.count():
    ...         average.add(np.array([weight]))
    >>> average.mean(np.array([30.0]))
    array([25.])
    """

    def __init__(self, first, n_weights):
        self._first = int(first)
        self._n_updates = np.zeros(1, np.int64)
        self._sum = np.zeros(n_weights if first else 0)

    def count(self):
        """Count one more update, where there is a mean; return whether its weights are to be added."""
        if not self._first:
            return False
        self._n_updates[0] += 1
        return self._first <= self._n_updates[0]

    def add(self, weights):
        """Add the weights after an update."""
        self._sum += weights

    def mean(self, weights):
        """Return the mean as a new vector; a copy of `weights`, those after the last update, where it has not begun."""
        n = int(self._n_updates[0]) - self._first + 1
        return (self._sum / n).astype(weights.dtype) if self._first and n > 0 else weights.copy()

    def arrays(self):
        """Return the arrays that hold everything, by name; what is written into them counts."""
        return {"n_updates": self._n_updates, "weight_sum": self._sum}
