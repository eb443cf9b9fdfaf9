"""Stochastic gradient descent."""

import numpy as np
from numpy.typing import DTypeLike

from skort.common.formulas import function_text
from skort.optim.optimizers.protocol import (
    LinearUpdate,
    NamedOptimizer,
    OptimizerTags,
    State,
    update_signature,
)

_SGD = """
next_weights = weights - gradient * eta
length = eta
"""


class SGD(NamedOptimizer, name="sgd"):
    r"""
    Stochastic gradient descent.

    .. math:: w \leftarrow w - \eta g

    as in `sklearn.linear_model.SGDRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.optimizers import SGD
    >>> weights, gradient = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    >>> SGD().update(weights, gradient, 0.1, state={}, scratch=np.empty(2))
    >>> weights
    array([0., 0.])
    """

    #: The limit of `step_length` for a constant learning rate of one.
    gain: float = 1.0

    def start(self, n_coefficients: int, n_others: int, dtype: DTypeLike) -> State:
        """Return the state before the first update: there is none."""
        return {}

    def update(
        self,
        weights: np.ndarray,
        gradient: np.ndarray,
        eta: float,
        state: State,
        scratch: np.ndarray,
    ) -> None:
        """Make one update in place."""
        np.multiply(gradient, eta, out=scratch)
        np.subtract(weights, scratch, out=weights)

    def step_length(self, eta: float, state: State) -> float:
        """Return `eta`."""
        return eta

    @property
    def tags(self) -> OptimizerTags:
        """The traits of the optimizer."""
        return OptimizerTags(
            gain=self.gain,
            memory=min(self.gain, 1e3),
            linear=LinearUpdate(),
            runtime="SGD",
            is_elementwise=True,
        )

    def onnx_update(self) -> str:
        """Return the update as ONNX."""
        return function_text(update_signature("sgd"), _SGD)
