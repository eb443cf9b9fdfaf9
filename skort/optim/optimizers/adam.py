"""Adam, and AdamW with a weight decay."""

import math
import operator
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from skort.common.formulas import function_text
from skort.common.sklearn_private import Interval
from skort.optim.optimizers.protocol import NamedOptimizer, OptimizerTags, State, update_signature


class AdamState(NamedTuple):
    """The memory of `Adam`: the arrays of its state, by name."""

    #: The running mean of each weight's gradients, of shape (n_weights,).
    first_moment: np.ndarray
    #: That of their squares, of shape (n_weights,).
    second_moment: np.ndarray
    #: The number of updates, of shape (1,).
    n_updates: np.ndarray


# A state has arrays of others, too. This takes a tenth of a microsecond, and a named tuple four
# times as long.
_memory = operator.itemgetter(*AdamState._fields)


# Constants take the dtype of the weights. ConstantOfShape stays double, and the correction is
# computed in float64.
_ADAM = """
size = [1]
unit = ConstantOfShape(size, value="double[1] {1}")
beta_1 = ConstantOfShape(size, value="double[1] {%r}")
beta_2 = ConstantOfShape(size, value="double[1] {%r}")
next_n_updates = n_updates + size
t = Cast(next_n_updates, to=11)
correction = Sqrt(unit - Pow(beta_2, t)) / (unit - Pow(beta_1, t))
corrected = CastLike(Cast(eta, to=11) * correction, weights)
next_first_moment = first_moment + (gradient - first_moment) * part_1
next_second_moment = second_moment * kept_2 + gradient * gradient * part_2
divisor = Sqrt(next_second_moment) + epsilon
next_weights = weights - next_first_moment / divisor * corrected
length = corrected / divisor
"""


@dataclass(eq=False, repr=False, kw_only=True)
class Adam(NamedOptimizer, name="adam"):
    r"""
    Adam: updates follow a running mean of the gradients,
    and are about as long as the learning rate.

    .. math::

        m &\leftarrow \beta_1 m + (1 - \beta_1) g, \qquad v \leftarrow \beta_2 v + (1 - \beta_2) g^2

        w &\leftarrow w - \eta \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t} \frac{m}{\sqrt{v} + \epsilon}

    in the t-th update, with :math:`m = v = 0` before the first, as in
    `sklearn.neural_network.MLPRegressor` and at the end of section 2 of Kingma and Ba
    (arXiv:1412.6980). With a weight decay :math:`\lambda`, a training shrinks the coefficients
    (never intercepts) before each update, :math:`w \leftarrow (1 - \eta \lambda) w`, as in
    `torch.optim.AdamW`.

    Parameters
    ----------
    beta_1 : float, default=0.9
        :math:`\beta_1`, at least 0 and below 1.
    beta_2 : float, default=0.999
        :math:`\beta_2`, at least 0 and below 1.
    epsilon : float, default=1e-8
        :math:`\epsilon`, at least the smallest normal number of float32.
    weight_decay : float, default=0.0
        :math:`\lambda`, not negative.
    lazy : bool, default=False
        For sparse rows of about 100,000 columns and more. True: an update changes only those
        weights of the first layer whose columns have values in the batch; the moments of the others
        do not decay. With an l1 term, `average`, `max_grad_norm` or a weight decay, and with dense
        batches, it is the same as False.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.optimizers import Adam
    >>> weights, gradient = np.array([1.0, 2.0]), np.array([10.0, -0.02])
    >>> Adam().update(
    ...     weights, gradient, 0.1, Adam().start(1, 1, weights.dtype), scratch=np.empty(2)
    ... )
    >>> weights.round(4)
    array([0.9, 2.1])
    """

    _parameter_constraints = {
        "beta_1": [Interval(Real, 0, 1, closed="left")],
        "beta_2": [Interval(Real, 0, 1, closed="left")],
        # If epsilon is zero in float32, a gradient that was always zero leads to a
        # division by zero.
        "epsilon": [Interval(Real, float(np.finfo(np.float32).tiny), None, closed="left")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "lazy": ["boolean"],
    }

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    lazy: bool = False

    def start(self, n_coefficients: int, n_others: int, dtype: DTypeLike) -> State:
        """Return the state before the first update: both moments and the number of updates."""
        n_weights = n_coefficients + n_others
        return AdamState(
            first_moment=np.zeros(n_weights, dtype),
            second_moment=np.zeros(n_weights, dtype),
            n_updates=np.zeros(1, np.int64),
        )._asdict()

    def corrected(self, eta: float, state: State) -> float:
        """
        Count one more update; return `eta` times the correction
        for moments that began at zero.
        """
        n_updates = state["n_updates"]
        n_updates[0] += 1
        return self._corrected(eta, n_updates)

    def _corrected(self, eta, n_updates):
        t = int(n_updates[0])
        return eta * math.sqrt(1 - float(self.beta_2) ** t) / (1 - float(self.beta_1) ** t)

    def update(
        self,
        weights: np.ndarray,
        gradient: np.ndarray,
        eta: float,
        state: State,
        scratch: np.ndarray,
    ) -> None:
        """Make one update in place."""
        first, second, _ = _memory(state)
        beta_1 = float(self.beta_1)
        beta_2 = float(self.beta_2)

        # m <- m + (1 - beta_1) (g - m)
        np.subtract(gradient, first, out=scratch)
        np.multiply(scratch, 1 - beta_1, out=scratch)
        np.add(first, scratch, out=first)

        # v <- beta_2 v + (1 - beta_2) g^2
        np.multiply(gradient, gradient, out=scratch)
        np.multiply(scratch, 1 - beta_2, out=scratch)
        np.multiply(second, beta_2, out=second)
        np.add(second, scratch, out=second)

        # w <- w - corrected eta m / (sqrt(v) + epsilon)
        np.sqrt(second, out=scratch)
        np.add(scratch, float(self.epsilon), out=scratch)
        np.divide(first, scratch, out=scratch)
        np.multiply(scratch, self.corrected(eta, state), out=scratch)
        np.subtract(weights, scratch, out=weights)

    def step_length(self, eta: float, state: State) -> np.ndarray:
        """Return the factor of the first moment, one for each weight."""
        _, second, n_updates = _memory(state)
        return self._corrected(eta, n_updates) / (np.sqrt(second) + float(self.epsilon))

    @property
    def tags(self) -> OptimizerTags:
        """The traits of the optimizer: there is no gain, since it bounds its steps itself."""
        return OptimizerTags(
            memory=1 / max(1 - float(self.beta_1), 1e-3),
            weight_decay=float(self.weight_decay),
            first_rates=(1e-2, 2e-2, 1e-2),
            runtime="AdamW",
            is_elementwise=True,
            is_lazy=bool(self.lazy),
        )

    def onnx_update(self) -> str:
        """Return the update as ONNX."""
        beta_1 = float(self.beta_1)
        beta_2 = float(self.beta_2)
        numbers = {
            "part_1": 1 - beta_1,
            "part_2": 1 - beta_2,
            "kept_2": beta_2,
            "epsilon": float(self.epsilon),
        }
        signature = update_signature("adam", AdamState._fields)

        return function_text(signature, _ADAM % (beta_1, beta_2), **numbers)
