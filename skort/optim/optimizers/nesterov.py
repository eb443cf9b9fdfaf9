"""Gradient descent with Nesterov's momentum."""

from skort.optim.optimizers.momentum import Momentum
from skort.optim.optimizers.protocol import OptimizerTags


class Nesterov(Momentum, name="nesterov"):
    r"""
    Gradient descent with Nesterov's momentum: the weights look one step ahead of the velocity.

    .. math:: v \leftarrow \mu v - \eta g, \qquad w \leftarrow w + \mu v - \eta g

    with :math:`v = 0` before the first update, as in
    `sklearn.neural_network.MLPRegressor(solver="sgd", nesterovs_momentum=True)`. The steps of an l1
    term have the length :math:`\mu l + \eta`, with l as in `Momentum`.

    Parameters
    ----------
    momentum : float, default=0.9
        :math:`\mu`, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.optimizers import Nesterov
    >>> optimizer = Nesterov(momentum=0.5)
    >>> weights, gradient = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    >>> optimizer.update(
    ...     weights, gradient, 0.1, optimizer.start(1, 1, weights.dtype), scratch=np.empty(2)
    ... )
    >>> weights
    array([-0.5, -1. ])
    """

    _is_ahead = True

    # `optimizer_tags` asks for tags of the class itself: those of `Momentum` hold here, too.
    @property
    def tags(self) -> OptimizerTags:
        """The traits of the optimizer."""
        return super().tags
