"""Optimizers: how a gradient changes the weights. The caller keeps the arrays that an optimizer remembers."""

import contextlib
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from skort.common.component import Component
from skort.common.formulas import function_text
from skort.common.user_warning import warn_user

__all__ = ["LBFGS", "SGD", "Adam", "Momentum", "Nesterov", "OnnxOptimizer", "Optimizer"]

#: The arrays that an optimizer remembers from one update to the next, by name.
State: TypeAlias = dict[str, np.ndarray]

#: The optimizers by name: each class gives its own.
OPTIMIZERS: dict[str, type["NamedOptimizer"]] = {}


class Optimizer(Protocol):
    """
    The methods of an optimizer. All weights are one vector: the coefficients, then the others.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.optimizers import SGD
    >>> class Signs(SGD):
    ...     def update(self, weights, gradient, eta, state, scratch):
    ...         weights -= eta * np.sign(gradient)
    >>> weights = np.array([1.0, -2.0])
    >>> Signs().update(weights, np.array([5.0, -0.1]), eta=0.5, state={}, scratch=np.empty(2))
    >>> weights
    array([ 0.5, -1.5])
    """

    def start(self, n_coefficients: int, n_others: int, dtype: DTypeLike) -> State:
        """
        Return the state before the first update: all arrays that an update reads, by name.

        Parameters
        ----------
        n_coefficients, n_others : int
            Number of weights that multiply inputs, and of others, such as intercepts.
        dtype : dtype
            The dtype of the weights.
        """

    def update(self, weights: np.ndarray, gradient: np.ndarray, eta: float, state: State, scratch: np.ndarray) -> None:
        """
        Make one update in place.

        Parameters
        ----------
        weights, gradient : ndarray of shape (n_weights,)
            The new weights overwrite the old ones; the gradient is not changed.
        eta : float
            Learning rate.
        state : dict of str to ndarray
            From `start`; its arrays are changed in place.
        scratch : ndarray of shape (n_weights,)
            Memory for intermediate results.
        """

    def step_length(self, eta: float, state: State) -> float | np.ndarray:
        """
        Return how far the last update moves a weight whose gradient is one in all updates: one number, or one a weight.

        Such steps are made for the parts of a penalty that are not in the gradient. A weight stays at its balance where
        the learning rate changes if this length sums the learning rates as the update sums gradients.

        Parameters
        ----------
        eta : float
            Learning rate of the last update.
        state : dict of str to ndarray
            As `update` left it.
        """


class OnnxOptimizer(Optimizer, Protocol):
    """An optimizer that solver "graph" can use: it has the same update as an ONNX function."""

    def onnx_update(self) -> str:
        """
        Return the ONNX function `(weights, gradient, eta, ...) => (next_weights, length, ...)`.

        The other inputs are arrays of the state, by name. The other outputs are the arrays that an update changes, by
        name with the prefix `next_`. `eta` is a scalar, and `length` is the result of `step_length` after the update. A
        subclass that overrides `update` or `step_length` has to override this method, too.
        """


class LinearUpdate(NamedTuple):
    """An update that is a linear recurrence: that of `Momentum`, or that of `Nesterov`."""

    momentum: float = 0.0
    is_ahead: bool = False


class OptimizerTags(NamedTuple):
    """What is known of an optimizer, as `sklearn.utils.get_tags` says it of an estimator; by default nothing."""

    #: The limit of `step_length` for a constant learning rate of one; None: there is none, or it is not known.
    gain: float | None = None
    #: About how many updates a gradient counts in.
    memory: float = 1.0
    #: How fast coefficients shrink beside the update.
    weight_decay: float = 0.0
    #: The learning rates of `eta0="auto"` for a linear model, a network and its stream, where there is no gain.
    first_rates: tuple[float, float, float] = (1e-2, 1e-2, 1e-2)
    #: None where the update is no such recurrence.
    linear: LinearUpdate | None = None
    #: ONNX Runtime's own update that is the same; None: it has none.
    runtime: Literal["SGD", "AdamW"] | None = None
    #: Whether a weight's update depends on its own gradients alone.
    is_elementwise: bool = False
    #: Whether weights without a gradient may be left as they are.
    is_lazy: bool = False
    #: Whether it has a method `minimise`, which makes the updates of a fit itself, from the gradient over all rows.
    is_full: bool = False


class NamedOptimizer(Component):
    """An optimizer that says what it is; with a name, it is a value of the parameter `optimizer`."""

    def __init_subclass__(cls, *, name: str | None = None, **options: Any):
        super().__init_subclass__(**options)
        if name is not None:
            OPTIMIZERS[name], cls.__module__ = cls, "skort.optimizers"

    @property
    def tags(self) -> OptimizerTags:
        """What is known of the optimizer."""
        return OptimizerTags()


def optimizer_tags(optimizer: Any) -> OptimizerTags:
    """Return what is known of an optimizer; less of a subclass without tags of its own: its update may be another."""
    if not isinstance(optimizer, NamedOptimizer):
        return OptimizerTags()
    tags = optimizer.tags
    if "tags" in vars(type(optimizer)):
        return tags
    return tags._replace(linear=None, runtime=None, is_elementwise=False, is_lazy=False)


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
    gain = 1.0

    def start(self, n_coefficients: int, n_others: int, dtype: DTypeLike) -> State:
        """Return the state before the first update: there is none."""
        return {}

    def update(self, weights: np.ndarray, gradient: np.ndarray, eta: float, state: State, scratch: np.ndarray) -> None:
        """Make one update in place."""
        np.multiply(gradient, eta, out=scratch)
        np.subtract(weights, scratch, out=weights)

    def step_length(self, eta: float, state: State) -> float:
        """Return `eta`."""
        return eta

    @property
    def tags(self) -> OptimizerTags:
        """What is known of the optimizer."""
        return OptimizerTags(self.gain, min(self.gain, 1e3), linear=LinearUpdate(), runtime="SGD", is_elementwise=True)

    def onnx_update(self) -> str:
        """Return the update as ONNX."""
        formula = "next_weights = weights - gradient * eta\nlength = eta"
        return function_text("sgd (weights, gradient, eta) => (next_weights, length)", formula)


_MOMENTUM = """
step = gradient * eta
next_velocity = velocity * momentum - step
next_unit_velocity = unit_velocity * momentum + eta
next_weights = %s
length = %s
"""


@dataclass(eq=False, repr=False)
class Momentum(NamedOptimizer, name="momentum"):
    r"""
    Gradient descent with a velocity.

    .. math:: v \leftarrow \mu v - \eta g, \qquad w \leftarrow w + v

    with :math:`v = 0` before the first update, as in `sklearn.neural_network.MLPRegressor(solver="sgd",
    nesterovs_momentum=False)`. The steps of an l1 term have the length :math:`l \leftarrow \mu l + \eta`. A subclass
    that overrides `update` has to update this length, too: `unit_velocity` in the state.

    Parameters
    ----------
    momentum : float, default=0.9
        :math:`\mu`, between 0 and 1. With 0.9 a constant gradient moves the weights ten times as far as with `SGD`.

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
        """Return the state before the first update: no velocity, nor any of a weight whose gradient is minus one."""
        return {"velocity": np.zeros(n_coefficients + n_others, dtype), "unit_velocity": np.zeros(1, dtype)}

    def update(self, weights: np.ndarray, gradient: np.ndarray, eta: float, state: State, scratch: np.ndarray) -> None:
        """Make one update in place."""
        velocity, unit_velocity, momentum = state["velocity"], state["unit_velocity"], float(self.momentum)
        np.multiply(velocity, momentum, out=velocity)
        np.multiply(gradient, eta, out=scratch)
        np.subtract(velocity, scratch, out=velocity)
        unit_velocity[0] = float(unit_velocity[0]) * momentum + eta
        if self._is_ahead:
            np.subtract(weights, scratch, out=weights)
            velocity = np.multiply(velocity, momentum, out=scratch)
        np.add(weights, velocity, out=weights)

    def step_length(self, eta: float, state: State) -> float:
        """Return how far the last update moved a weight whose gradient is always minus one."""
        unit_velocity = float(state["unit_velocity"][0])
        return float(self.momentum) * unit_velocity + eta if self._is_ahead else unit_velocity

    @property
    def gain(self) -> float:
        """The limit of `step_length` for a constant learning rate of one, 1 / (1 - `momentum`)."""
        return 1 / max(1 - float(self.momentum), sys.float_info.epsilon)

    @property
    def tags(self) -> OptimizerTags:
        """What is known of the optimizer."""
        linear = LinearUpdate(float(self.momentum), self._is_ahead)
        return OptimizerTags(self.gain, min(self.gain, 1e3), linear=linear, is_elementwise=True)

    def onnx_update(self) -> str:
        """Return the update as ONNX."""
        ends = "weights + next_velocity", "next_unit_velocity"
        if self._is_ahead:
            ends = "weights - step + next_velocity * momentum", "next_unit_velocity * momentum + eta"
        signature = (
            f"{'nesterov' if self._is_ahead else 'momentum'} (weights, gradient, eta, velocity, unit_velocity) => "
            "(next_weights, length, next_velocity, next_unit_velocity)"
        )
        return function_text(signature, _MOMENTUM % ends, momentum=float(self.momentum))


class Nesterov(Momentum, name="nesterov"):
    r"""
    Gradient descent with Nesterov's momentum: the weights look one step ahead of the velocity.

    .. math:: v \leftarrow \mu v - \eta g, \qquad w \leftarrow w + \mu v - \eta g

    with :math:`v = 0` before the first update, as in
    `sklearn.neural_network.MLPRegressor(solver="sgd", nesterovs_momentum=True)`. The steps of an l1 term have the
    length :math:`\mu l + \eta`, with l as in `Momentum`.

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
    >>> optimizer.update(weights, gradient, 0.1, optimizer.start(1, 1, weights.dtype), scratch=np.empty(2))
    >>> weights
    array([-0.5, -1. ])
    """

    _is_ahead = True
    # Its own, which `optimizer_tags` asks for.
    tags = Momentum.tags


# Constants take the dtype of the weights. ConstantOfShape stays double, and the correction is computed in float64.
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


@dataclass(eq=False, repr=False)
class Adam(NamedOptimizer, name="adam"):
    r"""
    Adam: updates follow a running mean of the gradients, and are about as long as the learning rate.

    .. math::

        m &\leftarrow \beta_1 m + (1 - \beta_1) g, \qquad v \leftarrow \beta_2 v + (1 - \beta_2) g^2

        w &\leftarrow w - \eta \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t} \frac{m}{\sqrt{v} + \epsilon}

    in the t-th update, with :math:`m = v = 0` before the first, as in `sklearn.neural_network.MLPRegressor` and at the
    end of section 2 of Kingma and Ba (arXiv:1412.6980). With a weight decay :math:`\lambda`, a training shrinks the
    coefficients (never intercepts) before each update, :math:`w \leftarrow (1 - \eta \lambda) w`, as in
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
        For sparse rows of about 100,000 columns and more. True: an update changes only those weights of the first layer
        whose columns have values in the batch; the moments of the others do not decay. With an l1 term, `average`,
        `max_grad_norm` or a weight decay, and with dense batches, it is the same as False.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.optimizers import Adam
    >>> weights, gradient = np.array([1.0, 2.0]), np.array([10.0, -0.02])
    >>> Adam().update(weights, gradient, 0.1, Adam().start(1, 1, weights.dtype), scratch=np.empty(2))
    >>> weights.round(4)
    array([0.9, 2.1])
    """

    _parameter_constraints = {
        "beta_1": [Interval(Real, 0, 1, closed="left")],
        "beta_2": [Interval(Real, 0, 1, closed="left")],
        # If epsilon is zero in float32, a gradient that was always zero leads to a division by zero.
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
        moments = {name: np.zeros(n_coefficients + n_others, dtype) for name in ("first_moment", "second_moment")}
        return {**moments, "n_updates": np.zeros(1, np.int64)}

    def corrected(self, eta: float, state: State) -> float:
        """Count one more update; return `eta` times the correction for moments that began at zero."""
        state["n_updates"][0] += 1
        return self._correction(eta, state)

    def _correction(self, eta: float, state: State) -> float:
        t = int(state["n_updates"][0])
        return eta * math.sqrt(1 - float(self.beta_2) ** t) / (1 - float(self.beta_1) ** t)

    def update(self, weights: np.ndarray, gradient: np.ndarray, eta: float, state: State, scratch: np.ndarray) -> None:
        """Make one update in place."""
        first, second = state["first_moment"], state["second_moment"]
        beta_1, beta_2 = float(self.beta_1), float(self.beta_2)
        np.subtract(gradient, first, out=scratch)
        np.multiply(scratch, 1 - beta_1, out=scratch)
        np.add(first, scratch, out=first)
        np.multiply(gradient, gradient, out=scratch)
        np.multiply(scratch, 1 - beta_2, out=scratch)
        np.multiply(second, beta_2, out=second)
        np.add(second, scratch, out=second)
        np.sqrt(second, out=scratch)
        np.add(scratch, float(self.epsilon), out=scratch)
        np.divide(first, scratch, out=scratch)
        np.multiply(scratch, self.corrected(eta, state), out=scratch)
        np.subtract(weights, scratch, out=weights)

    def step_length(self, eta: float, state: State) -> np.ndarray:
        """Return the factor of the first moment, one for each weight."""
        return self._correction(eta, state) / (np.sqrt(state["second_moment"]) + float(self.epsilon))

    @property
    def tags(self) -> OptimizerTags:
        """What is known of the optimizer: there is no gain, since it bounds its steps itself."""
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
        beta_1, beta_2 = float(self.beta_1), float(self.beta_2)
        numbers = {"part_1": 1 - beta_1, "part_2": 1 - beta_2, "kept_2": beta_2, "epsilon": float(self.epsilon)}
        signature = (
            "adam (weights, gradient, eta, first_moment, second_moment, n_updates) => "
            "(next_weights, length, next_first_moment, next_second_moment, next_n_updates)"
        )
        return function_text(signature, _ADAM % (beta_1, beta_2), **numbers)


# A gradient, of standardized columns, that is no gradient of a minimum: at kinks of relu it ends at up to 4e-3.
_NOT_FLAT = 2e-2


@dataclass(eq=False, repr=False)
class LBFGS(SGD, name="lbfgs"):
    r"""
    Limited-memory BFGS over all rows: the exact minimum of a smooth objective, in few iterations.

    .. math:: w \leftarrow w - t \, H \nabla J(w)

    with an approximation H of the inverse second derivatives, from the last changes of weights and gradients, and a
    step t from a line search: `scipy.optimize.minimize(method="L-BFGS-B")`, as in `LogisticRegression` and
    `MLPClassifier(solver="lbfgs")`. It is for `fit` alone, where an iteration is an epoch of one update. Steps of a
    solver, as of `SGD` at a learning rate of zero, compute the gradient for it.

    Parameters
    ----------
    history_size : int, default=10
        The number of changes that it remembers.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from skort import OrtSGDRegressor
    >>> from skort.optimizers import LBFGS
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OrtSGDRegressor(Ridge(), optimizer=LBFGS(), dtype="float64").fit(X, y)
    >>> bool(abs(model.coef_ - Ridge().fit(X, y).coef_).max() < 1e-3)
    True
    """

    _parameter_constraints = {"history_size": [Interval(Integral, 1, None, closed="left")]}
    history_size: int = 10

    @property
    def tags(self) -> OptimizerTags:
        """What is known of the optimizer."""
        return OptimizerTags(is_full=True)

    def tolerances(self, tol: float | None, dtype: DTypeLike, *, is_exact: bool) -> tuple[float, float, float]:
        """Return what ends `minimise`: a gradient's largest entry, no fall, and a fall that may be rounding."""
        # Kinks of a network let it fall by next to nothing for ever: its bound is scipy's default.
        ftol, rounding = (1e-9, 1e-6) if dtype == np.float32 else (1e-15 if is_exact else 2.2e-9, 1e-14)
        return (0.0, 0.0, rounding) if tol is None else (float(tol), ftol, rounding)

    def minimise(
        self,
        evaluate: Callable[[np.ndarray], tuple[float, np.ndarray]],
        weights: np.ndarray,
        tolerances: tuple[float, float, float],
        max_iter: int,
        after: Callable[[np.ndarray], bool],
    ) -> str | None:
        """Minimise a function with its gradient; return why it ended, None for `max_iter` or a true `after`."""
        gtol, ftol, rounding = tolerances
        is_ended = False
        # Vector, value and gradient of the last trial, and of the last iteration.
        last: Any = None
        reached: Any = None

        def trial(vector):
            nonlocal last, reached
            value, gradient = evaluate(vector)
            if reached is not None and not math.isfinite(value):
                # The line search goes back as far as such a value asks for.
                return reached[1] + 10 * (abs(reached[1]) + 1), np.zeros_like(gradient)
            if reached is not None and abs(value - reached[1]) <= rounding * abs(reached[1]):
                # Of so small a step, the gradients know the difference better.
                value = reached[1] + 0.5 * float((gradient + reached[2]) @ (vector - reached[0]))
            last = vector.copy(), value, gradient
            reached = reached or last
            return value, gradient

        def callback(vector):
            nonlocal reached, is_ended
            reached, is_ended = last, after(vector)
            if is_ended:
                raise StopIteration

        options = {"maxcor": self.history_size, "maxiter": max_iter, "maxfun": math.inf, "gtol": gtol, "ftol": ftol}
        with contextlib.suppress(StopIteration):  # It passes through scipy 1.10.
            end = minimize(trial, weights, jac=True, method="L-BFGS-B", callback=callback, options=options)
        return None if is_ended or end.status == 1 else _ending(float(np.max(np.abs(end.jac))), gtol)


def _ending(largest, gtol):
    """Return why a minimisation ended at a gradient of this largest entry; warn where that is no minimum."""
    if largest <= gtol:
        return f"The largest entry of the gradient, {largest:.2g}, is not above tol={gtol:.2g}."
    if largest > _NOT_FLAT:
        warn_user(
            f"L-BFGS found no smaller objective, but the largest entry of the gradient is {largest:.2g}: the "
            'objective is too large for what float32 can tell (use dtype="float64"), it has a kink, or the gradient of '
            'a custom part is wrong. Mend it, or use another optimizer, such as "adam".',
            ConvergenceWarning,
        )
    return f"The objective no longer fell: the largest entry of the gradient is {largest:.2g}."
