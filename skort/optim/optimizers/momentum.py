"""Gradient descent with a velocity."""

import operator
import sys
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from skort.common.formulas import function_text
from skort.common.sklearn_private import Interval
from skort.optim.optimizers.protocol import (
    LinearUpdate,
    NamedOptimizer,
    OptimizerTags,
    State,
    update_signature,
)


class MomentumState(NamedTuple):
    """The memory of `Momentum`: the arrays of its state, by name."""

    #: The last step of each weight, of shape (n_weights,).
    velocity: np.ndarray
    #: The last step of a weight whose gradient is always minus one, of shape (1,).
    unit_velocity: np.ndarray


# A state has arrays of others, too. This takes a tenth of a microsecond, and a named tuple four
# times as long.
_memory = operator.itemgetter(*MomentumState._fields)


_VELOCITIES = """
step = gradient * eta
next_velocity = velocity * momentum - step
next_unit_velocity = unit_velocity * momentum + eta
"""
_BEHIND = """
next_weights = weights + next_velocity
length = next_unit_velocity
"""
_AHEAD = """
next_weights = weights - step + next_velocity * momentum
length = next_unit_velocity * momentum + eta
"""


@dataclass(eq=False, repr=False, kw_only=True)
class Momentum(NamedOptimizer, name="momentum"):
    r"""
    Gradient descent with a velocity.

    .. math:: v \leftarrow \mu v - \eta g, \qquad w \leftarrow w + v

    with :math:`v = 0` before the first update, as in
    `sklearn.neural_network.MLPRegressor(solver="sgd", nesterovs_momentum=False)`. The steps of an
    l1 term have the length :math:`l \leftarrow \mu l + \eta`. A subclass that overrides `update`
    has to update this length, too: `unit_velocity` in the state.

    Parameters
    ----------
    momentum : float, default=0.9
        :math:`\mu`, between 0 and 1. With 0.9 a constant gradient moves the weights ten times as
        far as with `SGD`.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.optimizers import Momentum
    >>> optimizer = Momentum(momentum=0.5)
    >>> weights, gradient = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    >>> state = optimizer.start(1, 1, weights.dtype)
    >>> for _ in range(2):
    ...     optimizer.update(weights, gradient, 0.1, state, scratch=np.empty(2))
    >>> weights
    array([-1.5, -3. ])
    """

    _parameter_constraints = {"momentum": [Interval(Real, 0, 1, closed="both")]}
    #: Whether the weights look one step ahead of the velocity.
    _is_ahead: ClassVar[bool] = False
    momentum: float = 0.9

    def start(self, n_coefficients: int, n_others: int, dtype: DTypeLike) -> State:
        """Return the state before the first update: both velocities are zero."""
        return MomentumState(
            velocity=np.zeros(n_coefficients + n_others, dtype),
            unit_velocity=np.zeros(1, dtype),
        )._asdict()

    def update(
        self,
        weights: np.ndarray,
        gradient: np.ndarray,
        eta: float,
        state: State,
        scratch: np.ndarray,
    ) -> None:
        """Make one update in place."""
        velocity, unit_velocity = _memory(state)
        momentum = float(self.momentum)

        # v <- momentum v - eta g
        np.multiply(velocity, momentum, out=velocity)
        np.multiply(gradient, eta, out=scratch)
        np.subtract(velocity, scratch, out=velocity)
        unit_velocity[0] = float(unit_velocity[0]) * momentum + eta

        # w <- w + v, and Nesterov's w <- w + momentum v - eta g
        if self._is_ahead:
            np.subtract(weights, scratch, out=weights)
            velocity = np.multiply(velocity, momentum, out=scratch)
        np.add(weights, velocity, out=weights)

    def step_length(self, eta: float, state: State) -> float:
        """Return how far the last update moved a weight whose gradient is always minus one."""
        _, unit_velocity = _memory(state)
        last_step = float(unit_velocity[0])
        return float(self.momentum) * last_step + eta if self._is_ahead else last_step

    @property
    def gain(self) -> float:
        """The limit of `step_length` for a constant learning rate of one, 1 / (1 - `momentum`)."""
        return 1 / max(1 - float(self.momentum), sys.float_info.epsilon)

    @property
    def tags(self) -> OptimizerTags:
        """The traits of the optimizer."""
        return OptimizerTags(
            gain=self.gain,
            memory=min(self.gain, 1e3),
            linear=LinearUpdate(float(self.momentum), self._is_ahead),
            is_elementwise=True,
        )

    def onnx_update(self) -> str:
        """Return the update as ONNX."""
        name, end = ("nesterov", _AHEAD) if self._is_ahead else ("momentum", _BEHIND)
        signature = update_signature(name, MomentumState._fields)
        return function_text(signature, _VELOCITIES + end, momentum=float(self.momentum))
