"""
Optimizers as skort sees them: their methods, those of solvers that run them as ONNX, and their
traits.
"""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from skort.common.component import Component

#: The optimizers by name: each class gives its own.
OPTIMIZERS: dict[str, type["NamedOptimizer"]] = {}

#: The arrays that an optimizer remembers between updates, by name.
State: TypeAlias = dict[str, np.ndarray]


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

    __module__: str = "skort.optimizers"

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

    def update(
        self,
        weights: np.ndarray,
        gradient: np.ndarray,
        eta: float,
        state: State,
        scratch: np.ndarray,
    ) -> None:
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
        Return how far the last update moved a weight whose gradient is one in all updates. It is
        one number, or one for each weight.

        A part of a penalty that is not in the gradient, such as l1, moves the weights by this
        length. Sum the learning rates in it as the update sums the gradients: then a weight stays
        in balance when the learning rate changes.

        Parameters
        ----------
        eta : float
            Learning rate of the last update.
        state : dict of str to ndarray
            As `update` left it.
        """


class OnnxOptimizer(Optimizer, Protocol):
    """An optimizer that solver "graph" can use: it has the same update as an ONNX function."""

    __module__: str = "skort.optimizers"

    def onnx_update(self) -> str:
        """
        Return the ONNX function `(weights, gradient, eta, ...) => (next_weights, length, ...)`.

        The other inputs are arrays of the state, by name. The other outputs are the arrays that an
        update changes, by name with the prefix `next_`. `eta` is a scalar, and `length` is the
        result of `step_length` after the update. A subclass that overrides `update` or
        `step_length` has to override this method, too.
        """


def update_signature(name: str, memory: Iterable[str] = ()) -> str:
    """
    Return the signature of the ONNX function of an optimizer, whose update changes all arrays of
    its memory.

    Parameters
    ----------
    name : str
        The name of the function.
    memory : iterable of str, default=()
        The names of the arrays in the state.

    Examples
    --------
    >>> from skort.optim.optimizers.protocol import update_signature
    >>> update_signature("momentum", ["velocity"])
    'momentum (weights, gradient, eta, velocity) => (next_weights, length, next_velocity)'
    """
    inputs = ["weights", "gradient", "eta", *memory]
    results = ["next_weights", "length", *(f"next_{array}" for array in memory)]
    return f"{name} ({', '.join(inputs)}) => ({', '.join(results)})"


class LinearUpdate(NamedTuple):
    """An update that is a linear recurrence: the one of `Momentum`, or the one of `Nesterov`."""

    momentum: float = 0.0
    is_ahead: bool = False


class OptimizerTags(NamedTuple):
    """
    The traits of an optimizer, like those of an estimator from `sklearn.utils.get_tags`. By default
    there are none.
    """

    #: The limit of `step_length` for a constant learning rate of one. None: there is none, or it is
    #: not known.
    gain: float | None = None
    #: The number of updates, about, in which a gradient counts.
    memory: float = 1.0
    #: The rate at which coefficients shrink beside the update.
    weight_decay: float = 0.0
    #: The learning rates of `eta0="auto"` for a linear model, a network and a network in a stream,
    #: if there is no gain.
    first_rates: tuple[float, float, float] = (1e-2, 1e-2, 1e-2)
    #: None: the update is no such recurrence.
    linear: LinearUpdate | None = None
    #: The name of ONNX Runtime's own update that is the same, or None.
    runtime: Literal["SGD", "AdamW"] | None = None
    #: Whether the update of a weight depends on its own gradients alone.
    is_elementwise: bool = False
    #: Whether weights without a gradient may stay as they are.
    is_lazy: bool = False
    #: Whether the optimizer has a method `minimise`, which makes all updates of a fit from the
    #: gradient over all rows.
    is_full: bool = False


class NamedOptimizer(Component):
    """
    An optimizer that declares its traits;
    with a name, it is a value of the parameter `optimizer`.
    """

    _without_name = "The learning rate is eta0 of the estimator."

    def __init_subclass__(cls, *, name: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if name is not None:
            OPTIMIZERS[name] = cls
            cls.__module__ = "skort.optimizers"

    @property
    def tags(self) -> OptimizerTags:
        """The traits of the optimizer."""
        return OptimizerTags()


def optimizer_tags(optimizer: Any) -> OptimizerTags:
    """
    Return the traits of an optimizer. A subclass inherits those of the size of its steps, but not
    those of its update.
    """
    if not isinstance(optimizer, NamedOptimizer):
        return OptimizerTags()

    tags = optimizer.tags
    if "tags" in vars(type(optimizer)):
        return tags

    # The class declares no tags of its own: it may have another update.
    return tags._replace(linear=None, runtime=None, is_elementwise=False, is_lazy=False)
