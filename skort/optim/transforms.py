"""
The transformations around an optimizer: clipping, weight decay,
the terms of the penalty, averaging.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from skort.common.blas import one_blas_thread
from skort.common.formulas import function_text
from skort.objective.penalties import soft_threshold
from skort.optim.optimizers import State

#: (learning rate, state) -> length, as `Optimizer.step_length`.
StepLength: TypeAlias = Callable[[float, State], float | np.ndarray]


# The mean and the number of updates in a state: of the weights from an update on, or of recent ones.
_AVERAGE = "average_mean", "average_n_updates"
_RECENT = "recent_mean", "recent_n_updates"


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


class Decorrelation(Transformation):
    """
    Multiplies the gradient by the coefficients of each output by a symmetric matrix, with a row and
    a column for each column of X.
    """

    def __init__(self, matrix: np.ndarray, *, transposed: bool):
        self._matrix = matrix
        self._transposed = transposed
        self.constants: dict[str, np.ndarray] = {"skort_decorrelation": matrix}

    def start(self, n_coefficients: int, n_others: int, dtype: Any) -> State:
        """Make room for a changed gradient."""
        self._n_coefficients = n_coefficients
        self._changed = np.zeros(n_coefficients + n_others, dtype)
        self._shape = (-1, len(self._matrix)) if self._transposed else (len(self._matrix), -1)
        factors = "part, matrix" if self._transposed else "matrix, part"
        self.onnx_before: str = function_text(
            "decorrelated (gradient, skort_decorrelation) => (next_gradient)",
            f"""
            matrix = Identity(skort_decorrelation)
            part = Reshape(Slice(gradient, [0], [{n_coefficients}]), {list(self._shape)})
            others = Slice(gradient, [{n_coefficients}], [{n_coefficients + n_others}])
            next_gradient = Concat(Reshape(MatMul({factors}), [-1]), others, axis=0)
            """,
        )
        return {}

    def before(
        self,
        weights: np.ndarray,
        gradient: np.ndarray,
        eta: float,
        state: State,
        scratch: np.ndarray,
    ) -> np.ndarray:
        """Multiply the gradient."""
        return self._multiplied(gradient)

    def after_step(self, weights: np.ndarray, others: np.ndarray) -> np.ndarray:
        """
        Return the weights that follow `weights`, where a step of the gradient as it is has made
        `others` of them.
        """
        return weights + self._multiplied(others - weights)

    def _multiplied(self, vector):
        """Return the changed gradient, or a changed step, in an array that the next one overwrites."""
        changed = self._changed
        changed[self._n_coefficients :] = vector[self._n_coefficients :]
        given, made = (
            each[: self._n_coefficients].reshape(self._shape) for each in (vector, changed)
        )
        left, right = (given, self._matrix) if self._transposed else (self._matrix, given)
        with one_blas_thread(self._matrix.size * given.size):
            np.matmul(left, right, out=made)
        return changed


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


def with_parts_of(state: State, current: State) -> State:
    """
    Return a state with or without the debts of an l1 term and the mean of recent weights, as
    `current`, the state of the training, has them.
    """
    # They come and go in a stream. A mean that comes begins anew.
    names = {_POSITIVE, _NEGATIVE, *_RECENT}
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


# The k-th weights of a `Recent` mean count k^3, so that about the last quarter of them counts.
_POWER = 3


class Recent(NamedTuple):
    """The mean of the weights after about the last quarter of all updates, and at most so many."""

    n_updates: int


class Averaging(Transformation):
    """
    Replaces the result by a mean, in float64, of the weights after each update: of all from a number
    on, as SGD's average, or of `Recent` ones.
    """

    # The mean moves by a share of the way to the weights after each update: by 1 / k to the k-th,
    # which makes them count the same, or by 1 / ((k + 3) / 4), which makes the k-th count about k^3.
    # So the state of a recent mean has not the number of all updates, k, but that of which it is the
    # mean, (k + 3) / 4, and its update takes less time.

    def __init__(self, average: int | Recent):
        self._is_recent = isinstance(average, Recent)
        #: The names of the mean and of the number of updates in a state.
        self.names: tuple[str, str] = _RECENT if self._is_recent else _AVERAGE
        self._mean, self._n_updates = self.names

        if isinstance(average, Recent):
            self._none, self._each = _n_recent(0), _n_recent(1) - _n_recent(0)
            self._before, self._most = 0, float(average.n_updates)
        else:
            self._none, self._each = np.array([0]), np.array([1])
            self._before, self._most = int(average) - 1, math.inf

        self.onnx_after: str = _text(*self.names, is_recent=self._is_recent)
        self.constants: dict[str, np.ndarray] = {
            "skort_each": self._each,
            "skort_most": np.array(self._most),
        }
        if not self._is_recent:
            self.constants["skort_before"] = np.array(float(self._before))
            self.constants["skort_none"] = np.array(0.0)

    def start(self, n_coefficients: int, n_others: int, dtype: Any) -> State:
        """Remember the number of updates and the mean, which is zero until it begins."""
        return {
            self._n_updates: self._none.copy(),
            self._mean: np.zeros(n_coefficients + n_others),
        }

    def after(
        self,
        weights: np.ndarray,
        eta: float,
        state: State,
        scratch: np.ndarray,
        step_length: StepLength,
    ) -> None:
        """Count one more update, and move the mean to its weights if they count."""
        if self.count(state):
            self.move(weights, state)

    def count(self, state: State) -> bool:
        """Count one more update. Return whether its weights count in the mean."""
        state[self._n_updates] += self._each
        return self.has_begun(state)

    def has_begun(self, state: State) -> bool:
        """Return whether the weights after the last update count in the mean."""
        return self._n_counted(state) >= 1

    def move(self, weights: np.ndarray, state: State) -> None:
        """Move the mean to the weights after the last update."""
        mean = state[self._mean]
        mean += self.share(state) * (weights - mean)

    def share(self, state: State) -> float:
        """Return the share of the way to the weights that the mean moves after the last update."""
        return 1 / min(self._n_counted(state), self._most) if self.has_begun(state) else 0.0

    def _n_counted(self, state):
        """Return the number of updates whose weights count in the mean."""
        return state[self._n_updates].item() - self._before

    def mean(self, weights: np.ndarray, state: State) -> np.ndarray:
        """
        Return the mean in the dtype of the weights after the last update, or these if it has not
        begun. Recent weights that an l1 term holds at zero have the mean zero.
        """
        mean = self.held(weights, state).astype(weights.dtype)
        if self._is_recent:
            mean[weights == 0] = 0
        return mean

    def held(self, weights: np.ndarray, state: State) -> np.ndarray:
        """Return the mean as the state has it, or the weights if it has not begun."""
        return state[self._mean] if self.has_begun(state) else weights


def _text(mean, n_updates, *, is_recent):
    """Return the ONNX function of an update of a mean, with the names of its arrays."""
    constants = "skort_each, skort_most"
    n_counted = f"n_counted = Min(next_{n_updates}, skort_most)"
    if not is_recent:
        constants += ", skort_before, skort_none"
        # Divided by the most, which is infinite, the mean does not move until it begins.
        n_counted = f"""
        n_later = Cast(next_{n_updates}, to=11) - skort_before
        n_counted = Where(n_later <= skort_none, skort_most, n_later)
        """

    return function_text(
        (
            f"averaged ({mean}, {n_updates}, weights, {constants}) => "
            f"(next_{mean}, next_{n_updates})"
        ),
        f"""
        next_{n_updates} = {n_updates} + skort_each
        {n_counted}
        next_{mean} = {mean} + (Cast(weights, to=11) - {mean}) / n_counted
        """,
    )


def _n_recent(n_updates):
    """Return of how many updates a mean of recent weights is after so many."""
    return np.array([(n_updates + _POWER) / (_POWER + 1)])


def with_recent_mean(state: State, n_updates: int) -> State:
    """Return a state whose weights are the mean after so many updates."""
    mean = state["weights"].astype(np.float64), _n_recent(n_updates)
    return {**state, **dict(zip(_RECENT, mean, strict=True))}
