"""
The transformations around an optimizer: clipping, weight decay,
the terms of the penalty, averaging.
"""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from skort.common.blas import one_blas_thread
from skort.common.formulas import function_text
from skort.objective.penalties import soft_threshold
from skort.optim.optimizers import State

#: (learning rate, state) -> length, as `Optimizer.step_length`.
StepLength: TypeAlias = Callable[[float, State], float | np.ndarray]


class Transformation:
    """
    A part of an update before the optimizer, after it, or both, in numpy and as ONNX. This base
    does nothing.
    """

    #: The parts as ONNX functions of "weights", "gradient", "eta", "length", arrays of the state,
    #: and `constants`. An output `next_x` replaces the value x.
    onnx_before: str | None = None
    onnx_after: str | None = None
    #: The other arrays that they take. Their names begin with "skort_".
    constants: dict[str, np.ndarray] = {}

    def start(self, n_coefficients: int, n_others: int, dtype: Any) -> State:
        """Return the memory before the first update."""
        return {}

    def before(
        self,
        weights: np.ndarray,
        gradient: np.ndarray,
        eta: float,
        state: State,
        scratch: np.ndarray,
    ) -> np.ndarray:
        """
        Return the gradient for the optimizer. This may change the weights in place, but not the
        gradient.
        """
        return gradient

    def after(
        self,
        weights: np.ndarray,
        eta: float,
        state: State,
        scratch: np.ndarray,
        step_length: StepLength,
    ) -> None:
        """Change the weights after the optimizer, in place."""


def norm(gradient: np.ndarray) -> float:
    """Return the Euclidean norm of a vector."""
    # In float64, no square of a float32 overflows.
    gradient = gradient.astype(np.float64)
    with one_blas_thread(gradient.size):
        return math.sqrt(gradient @ gradient)


def clipped(gradient: np.ndarray, max_norm: float, out: np.ndarray) -> np.ndarray:
    """
    Return g min(1, max_norm / |g|): g itself, or `out`. torch's `clip_grad_norm_` adds 1e-6 to the
    norm.
    """
    length = norm(gradient)
    return gradient if length <= max_norm else np.multiply(gradient, max_norm / length, out=out)


class Clipping(Transformation):
    """Shortens a gradient that is too long: see `clipped`."""

    onnx_before: str = function_text(
        "clipped (gradient, skort_max_norm) => (next_gradient)",
        """
        wide = Cast(gradient, to=11)
        ratio = skort_max_norm / Sqrt(ReduceSum(wide * wide, keepdims=1))
        factor = Min(ConstantOfShape([1], value="double[1] {1}"), ratio)
        next_gradient = gradient * CastLike(factor, gradient)
        """,
    )

    def __init__(self, max_norm: float):
        self._max_norm = float(max_norm)
        self.constants: dict[str, np.ndarray] = {"skort_max_norm": np.array([self._max_norm])}

    def start(self, n_coefficients: int, n_others: int, dtype: Any) -> State:
        """Make room for a clipped gradient."""
        self._clipped = np.zeros(n_coefficients + n_others, dtype)
        return {}

    def before(
        self,
        weights: np.ndarray,
        gradient: np.ndarray,
        eta: float,
        state: State,
        scratch: np.ndarray,
    ) -> np.ndarray:
        """Clip the gradient."""
        return clipped(gradient, self._max_norm, self._clipped)


class WeightDecay(Transformation):
    """
    Coefficients w, never intercepts, become (1 - eta weight_decay) w before each update,
    as in torch's AdamW.
    """

    # Loshchilov and Hutter (arXiv:1711.05101). An l2 penalty is part of the gradient.

    onnx_before: str = function_text(
        "decayed (weights, eta, skort_decays) => (next_weights)",
        "next_weights = weights * (1 - eta * skort_decays)",
    )

    def __init__(self, weight_decay: float):
        self._weight_decay = float(weight_decay)

    def start(self, n_coefficients: int, n_others: int, dtype: Any) -> State:
        """Remember the number of coefficients."""
        decays = np.repeat([self._weight_decay, 0.0], [n_coefficients, n_others])
        self.constants: dict[str, np.ndarray] = {"skort_decays": decays.astype(dtype)}
        return {"n_coefficients": np.array([n_coefficients])}

    def before(
        self,
        weights: np.ndarray,
        gradient: np.ndarray,
        eta: float,
        state: State,
        scratch: np.ndarray,
    ) -> np.ndarray:
        """Shrink the coefficients."""
        coefficients = weights[: int(state["n_coefficients"][0])]
        np.multiply(coefficients, 1 - eta * self._weight_decay, out=coefficients)
        return gradient


#: The arrays of the state: the debt of a positive weight, and that of a negative one.
_POSITIVE, _NEGATIVE = "l1_owed_if_positive", "l1_owed_if_negative"

_PAID = """
more = skort_l1_strengths * length
most = more * n_steps
positive = Min(l1_owed_if_positive + more, most)
negative = Min(l1_owed_if_negative + more, most)
next_weights = Max(weights - positive, 0) + Min(weights + negative, 0)
next_l1_owed_if_positive = positive - weights + next_weights
next_l1_owed_if_negative = negative + weights - next_weights
"""


def with_owed(state: State, current: State) -> State:
    """
    Return a state with or without the debts of an l1 term, as `current`, the state of the training,
    has them.
    """
    names = {_POSITIVE, _NEGATIVE}
    nothing = {name: np.zeros_like(current[name]) for name in names & current.keys()}
    return nothing | {
        name: array for name, array in state.items() if name not in names or name in current
    }


class AccumulatedL1(Transformation):
    """Moves each weight towards zero after the update, by its whole debt of the l1 term's penalty."""

    # With the strength a, l = length a, n = `n_steps`, and p and m, what a positive and a
    # negative weight owes:
    #     p <- min(p + l, n l),  m <- min(m + l, n l),  w' = max(0, w - p) + min(0, w + m)
    #     p <- p + w' - w,  m <- m - w' + w,  w <- w'
    # A weight that reached zero before it had paid its penalty pays the rest when noise lifts it,
    # so that it stays at zero in mini-batches, too. It is the accumulated penalty p = u + q, m =
    # u - q of Tsuruoka, Tsujii and Ananiadou (ACL 2009), as in SGDClassifier, in vectors that keep
    # all digits. There nothing bounds what a weight at zero owes; here it is at most the penalty of
    # n steps: for one batch an epoch, this is the proximal gradient step.

    def __init__(self, strengths: np.ndarray, n_steps: int):
        self._strengths = strengths
        self._n_steps = float(n_steps)
        signature = (
            "paid (weights, length, l1_owed_if_positive, l1_owed_if_negative, skort_l1_strengths) "
            "=> (next_weights, next_l1_owed_if_positive, next_l1_owed_if_negative)"
        )
        self.onnx_after: str = function_text(signature, _PAID, n_steps=self._n_steps)
        self.constants: dict[str, np.ndarray] = {"skort_l1_strengths": strengths}

    def start(self, n_coefficients: int, n_others: int, dtype: Any) -> State:
        """Owe nothing."""
        n_weights = n_coefficients + n_others
        self._more = np.empty(n_weights, dtype)
        self._most = np.empty(n_weights, dtype)
        return {name: np.zeros(n_weights, dtype) for name in (_POSITIVE, _NEGATIVE)}

    def after(
        self,
        weights: np.ndarray,
        eta: float,
        state: State,
        scratch: np.ndarray,
        step_length: StepLength,
    ) -> None:
        """Pay what is owed."""
        positive = state[_POSITIVE]
        negative = state[_NEGATIVE]
        np.multiply(self._strengths, step_length(eta, state), out=self._more)
        np.multiply(self._more, self._n_steps, out=self._most)

        for owed in (positive, negative):
            np.add(owed, self._more, out=owed)
            np.minimum(owed, self._most, out=owed)

        before = self._more
        np.copyto(before, weights)
        soft_threshold(weights, positive, negative, scratch)
        np.subtract(positive, before, out=positive)
        np.add(positive, weights, out=positive)
        np.add(negative, before, out=negative)
        np.subtract(negative, weights, out=negative)


class ImplicitL2(Transformation):
    """
    Makes the step of a stiff l2 term implicit. Its strength b is part of the gradient g + b w, and
    an explicit step would overshoot zero.
    """

    # If gain eta b <= 1 at the largest learning rate, nothing changes. Otherwise the term leaves
    # the gradient, and the weight after the step solves it: w <- update(w, g, eta) / (1 + length
    # b). Both ways rest where g + b w = 0, but from gain eta b = 2 on, explicit steps alone
    # diverge. When the rate falls, a weight keeps its kind of steps: its velocity is of the whole
    # gradient or of its rest.

    onnx_before: str = function_text(
        "remaining (weights, gradient, eta, skort_l2_strengths, skort_l2_reach, skort_l2_rate) => "
        "(next_gradient, skort_stiff)",
        """
        is_stiff = Greater(skort_l2_reach * Max(eta, skort_l2_rate), 1)
        skort_stiff = Where(is_stiff, skort_l2_strengths, 0)
        next_gradient = gradient - skort_stiff * weights
        """,
    )
    onnx_after: str = function_text(
        "shrunk (weights, length, skort_stiff) => (next_weights)",
        "next_weights = weights / (skort_stiff * length + 1)",
    )

    def __init__(self, strengths: np.ndarray, gain: float, largest_rate: float = 0.0):
        self._strengths = strengths
        self._reach = strengths * float(gain)
        self._largest_rate = float(largest_rate)
        rate = np.asarray(self._largest_rate, strengths.dtype)
        self.constants: dict[str, np.ndarray] = {
            "skort_l2_strengths": strengths,
            "skort_l2_reach": self._reach,
            "skort_l2_rate": rate,
        }

    def start(self, n_coefficients: int, n_others: int, dtype: Any) -> State:
        """Make room for the rest of the gradient."""
        self._is_any_stiff = False
        #: The strengths of the stiff terms, and 0 for all others, if any is stiff.
        self.stiff: np.ndarray = np.empty(n_coefficients + n_others, dtype)
        self._remaining = np.empty(n_coefficients + n_others, dtype)
        return {}

    def before(
        self,
        weights: np.ndarray,
        gradient: np.ndarray,
        eta: float,
        state: State,
        scratch: np.ndarray,
    ) -> np.ndarray:
        """Take the stiff terms out of the gradient."""
        if not self.is_any_stiff(eta, scratch):
            return gradient

        np.multiply(self.stiff, weights, out=scratch)
        return np.subtract(gradient, scratch, out=self._remaining)

    def after(
        self,
        weights: np.ndarray,
        eta: float,
        state: State,
        scratch: np.ndarray,
        step_length: StepLength,
    ) -> None:
        """Make the implicit steps."""
        if self._is_any_stiff:
            np.multiply(self.stiff, step_length(eta, state), out=scratch)
            np.add(scratch, 1, out=scratch)
            np.divide(weights, scratch, out=weights)

    def is_any_stiff(self, eta: float, scratch: np.ndarray) -> bool:
        """Return whether any term is stiff at a rate. If so, `stiff` has their strengths."""
        np.multiply(self._reach, max(eta, self._largest_rate), out=scratch)
        is_stiff = scratch > 1
        self._is_any_stiff = bool(is_stiff.any())
        if self._is_any_stiff:
            np.multiply(self._strengths, is_stiff, out=self.stiff)
        return self._is_any_stiff


_N_UPDATES = "average_n_updates"
_SUM = "average_sum"


class Averaging(Transformation):
    """
    Replaces the result by the mean, in float64, of the weights after each update from number
    `first` on, as SGD's average.
    """

    onnx_after: str = function_text(
        (
            "averaged (average_sum, average_n_updates, weights, skort_first) => (next_average_sum, "
            "next_average_n_updates)"
        ),
        """
        next_average_n_updates = average_n_updates + [1]
        counts = GreaterOrEqual(next_average_n_updates, skort_first)
        next_average_sum = Where(counts, average_sum + Cast(weights, to=11), average_sum)
        """,
    )

    def __init__(self, first: int):
        self._first = int(first)
        self.constants: dict[str, np.ndarray] = {"skort_first": np.array([self._first])}

    def start(self, n_coefficients: int, n_others: int, dtype: Any) -> State:
        """Remember the number of updates and the sum."""
        return {_N_UPDATES: np.zeros(1, np.int64), _SUM: np.zeros(n_coefficients + n_others)}

    def after(
        self,
        weights: np.ndarray,
        eta: float,
        state: State,
        scratch: np.ndarray,
        step_length: StepLength,
    ) -> None:
        """Count one more update, and add its weights."""
        if self.count(state):
            self.add(weights, state)

    def count(self, state: State) -> bool:
        """Count one more update. Return whether its weights count in the mean."""
        state[_N_UPDATES][0] += 1
        return self._first <= state[_N_UPDATES][0]

    def add(self, weights: np.ndarray, state: State) -> None:
        """Add the weights after an update."""
        state[_SUM] += weights

    def mean(self, state: State) -> np.ndarray | None:
        """Return the mean in float64, or None if it has not begun."""
        n = int(state[_N_UPDATES][0]) - self._first + 1
        return state[_SUM] / n if n > 0 else None
