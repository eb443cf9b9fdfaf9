"""
What is put around an optimizer: clipping, weight decay, the terms of the penalty, averaging.

A transformation has a part before the optimizer's update, a part after it, or both, each in numpy and as ONNX.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from skort.objective.penalties import SOFT_THRESHOLD, soft_threshold
from skort.optim.optimizers import State

if TYPE_CHECKING:
    from skort.common.onnx_text import Fragment

#: What the results are called that hold "weights", "gradient", "eta" (a scalar), "length" and each array of the state.
Names: TypeAlias = dict[str, str]
#: Learning rate, state -> `Optimizer.step_length`.
StepLength: TypeAlias = Callable[[float, State], float | np.ndarray]


class Transformation:
    """A transformation that changes nothing: a subclass brings the parts that it has."""

    def start(self, n_coefficients: int, n_others: int, dtype: Any) -> State:
        """Return what it remembers, before the first update."""
        return {}

    def before(self, weights, gradient, eta: float, state: State, scratch):
        """Return the gradient that the optimizer gets; the weights may be changed in place, the gradient may not."""
        return gradient

    def after(self, weights, eta: float, state: State, scratch, step_length: StepLength) -> None:
        """Change the weights that the optimizer made, in place."""

    def add_before(self, fragment: "Fragment", names: Names) -> Names:
        """Add the nodes of `before`; return the names with those of its results."""
        return names

    def add_after(self, fragment: "Fragment", names: Names, results: Names) -> Names:
        """Add the nodes of `after`; return the results ("weights", "length", changed arrays) with its own."""
        return results


def norm(gradient: np.ndarray) -> float:
    """Return the Euclidean norm of a vector."""
    # In float64, where no square of a float32 overflows.
    gradient = gradient.astype(np.float64)
    return math.sqrt(gradient @ gradient)


def clipped(gradient: np.ndarray, max_norm: float, out: np.ndarray) -> np.ndarray:
    r"""
    Return a gradient, shortened in `out` where it is too long.

    .. math:: g \leftarrow g \min\left(1, \frac{max\_norm}{\lVert g \rVert_2}\right)

    over all weights together, as `torch.nn.utils.clip_grad_norm_` does but for the 1e-6 that it adds to the norm.
    """
    length = norm(gradient)
    return gradient if length <= max_norm else np.multiply(gradient, max_norm / length, out=out)


_CLIPPED = """\
clipped (gradient, max_norm) => (clipped) {
    size = Constant <value = int64[1] {1}> ()
    one = ConstantOfShape <value = double[1] {1}> (size)
    wide = Cast <to = 11> (gradient)
    square = Mul (wide, wide)
    sum = ReduceSum <keepdims = 1> (square)
    length = Sqrt (sum)
    ratio = Div (max_norm, length)
    factor = Min (one, ratio)
    short = CastLike (factor, gradient)
    clipped = Mul (gradient, short)
}"""


class Clipping(Transformation):
    """A gradient that is too long is shortened, see `clipped`."""

    def __init__(self, max_norm: float):
        self._max_norm = float(max_norm)

    def start(self, n_coefficients, n_others, dtype):
        """Make room for the clipped gradient."""
        self._clipped = np.zeros(n_coefficients + n_others, dtype)
        return {}

    def before(self, weights, gradient, eta, state, scratch):
        """Clip the gradient."""
        return clipped(gradient, self._max_norm, self._clipped)

    def add_before(self, fragment, names):
        """Add the nodes of `before`."""
        fragment.constant("skort_max_norm", np.array([self._max_norm]))
        fragment.call(_CLIPPED, [names["gradient"], "skort_max_norm"], ["skort_clipped"])
        return {**names, "gradient": "skort_clipped"}


_DECAYED = """\
decayed (weights, eta, n_coefficients) => (decayed) {
    begin = Constant <value = int64[1] {0}> ()
    end = Constant <value = int64[1] {9223372036854775807}> ()
    decay = Constant <value = float {%r}> ()
    whole = Constant <value = float {1}> ()
    lost = Mul (eta, decay)
    kept = Sub (whole, lost)
    coefficients = Slice (weights, begin, n_coefficients)
    others = Slice (weights, n_coefficients, end)
    shrunk = Mul (coefficients, kept)
    decayed = Concat <axis = 0> (shrunk, others)
}"""


class WeightDecay(Transformation):
    r"""
    Coefficients, never intercepts, shrink before each update, whatever the gradient.

    .. math:: w \leftarrow (1 - \eta \lambda) w

    as in `torch.optim.AdamW` and in Loshchilov and Hutter (arXiv:1711.05101). An l2 penalty is part of the gradient.
    """

    def __init__(self, weight_decay: float):
        self._weight_decay = float(weight_decay)

    def start(self, n_coefficients, n_others, dtype):
        """Remember the number of coefficients."""
        return {"n_coefficients": np.array([n_coefficients])}

    def before(self, weights, gradient, eta, state, scratch):
        """Shrink the coefficients."""
        coefficients = weights[: int(state["n_coefficients"][0])]
        np.multiply(coefficients, 1 - eta * self._weight_decay, out=coefficients)
        return gradient

    def add_before(self, fragment, names):
        """Add the nodes of `before`."""
        inputs = [names[name] for name in ("weights", "eta", "n_coefficients")]
        fragment.call(_DECAYED % self._weight_decay, inputs, ["skort_decayed"])
        return {**names, "weights": "skort_decayed"}


#: The state: what a positive weight, and what a negative one, would still have to pay.
_POSITIVE, _NEGATIVE = "l1_owed_if_positive", "l1_owed_if_negative"

_OWED = """\
owed (positive, negative, length, strengths) => (owed_if_positive, owed_if_negative) {
    n_steps = Constant <value = float {%r}> ()
    more = Mul (strengths, length)
    most = Mul (more, n_steps)
    more_positive = Add (positive, more)
    more_negative = Add (negative, more)
    owed_if_positive = Min (more_positive, most)
    owed_if_negative = Min (more_negative, most)
}"""
_PAID = """\
paid (positive, negative, before, after) => (next_positive, next_negative) {
    left_positive = Sub (positive, before)
    left_negative = Add (negative, before)
    next_positive = Add (left_positive, after)
    next_negative = Sub (left_negative, after)
}"""


def with_owed(state: State, current: State) -> State:
    """Return a state as that of a training with, or without, an l1 term: `current` is of the one that is to go on."""
    names = {_POSITIVE, _NEGATIVE}
    nothing = {name: np.zeros_like(current[name]) for name in names & current.keys()}
    return nothing | {name: array for name, array in state.items() if name not in names or name in current}


class AccumulatedL1(Transformation):
    r"""
    Each weight moves towards zero after the update, by all that it owes of the l1 term's penalty.

    With the strength a of a weight, :math:`l = length \cdot a`, and n, the number of steps of an epoch,

    .. math::
        p \leftarrow \min(p + l, n l), \; m \leftarrow \min(m + l, n l), \; w' = \max(0, w - p) + \min(0, w + m)

        p \leftarrow p + w' - w, \quad m \leftarrow m - w' + w, \quad w \leftarrow w'
    """

    # A weight that reached zero before it had paid its penalty pays the rest when noise lifts it, so that it stays at
    # zero in mini-batches, too. With p = u + q and m = u - q this is the accumulated penalty of Tsuruoka, Tsujii and
    # Ananiadou (ACL 2009), as in `sklearn.linear_model.SGDClassifier(penalty="l1")`; two vectors keep the digits that
    # differences of their growing sums would lose. There nothing bounds what a weight at zero owes, and it comes back
    # late. Here it owes at most the penalty of n steps: for one batch an epoch, this is the proximal gradient step.

    def __init__(self, strengths: np.ndarray, n_steps: int):
        self._strengths, self._n_steps = strengths, float(n_steps)

    def start(self, n_coefficients, n_others, dtype):
        """Owe nothing."""
        n_weights = n_coefficients + n_others
        self._more, self._most = np.empty(n_weights, dtype), np.empty(n_weights, dtype)
        return {name: np.zeros(n_weights, dtype) for name in (_POSITIVE, _NEGATIVE)}

    def after(self, weights, eta, state, scratch, step_length):
        """Pay what is owed."""
        positive, negative = state[_POSITIVE], state[_NEGATIVE]
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

    def add_after(self, fragment, names, results):
        """Add the nodes of `after`."""
        fragment.constant("skort_l1_strengths", self._strengths)
        inputs = [names[_POSITIVE], names[_NEGATIVE], results["length"], "skort_l1_strengths"]
        owed = ["skort_l1_positive", "skort_l1_negative"]
        fragment.call(_OWED % self._n_steps, inputs, owed)
        fragment.call(SOFT_THRESHOLD, [results["weights"], *owed], ["skort_thresholded"])
        left = {name: f"skort_{name}_left" for name in (_POSITIVE, _NEGATIVE)}
        fragment.call(_PAID, [*owed, results["weights"], "skort_thresholded"], list(left.values()))
        return results | left | {"weights": "skort_thresholded"}


_REMAINING = """\
remaining (weights, gradient, eta, strengths, reach, largest_rate) => (remaining, stiff_strengths) {
    one = Constant <value = float {1}> ()
    zero = Constant <value = float {0}> ()
    rate = Max (eta, largest_rate)
    ratio = Mul (reach, rate)
    is_stiff = Greater (ratio, one)
    stiff_strengths = Where (is_stiff, strengths, zero)
    stiff_gradient = Mul (stiff_strengths, weights)
    remaining = Sub (gradient, stiff_gradient)
}"""
_SHRUNK = """\
shrunk (weights, length, stiff_strengths) => (shrunk) {
    one = Constant <value = float {1}> ()
    ratio = Mul (stiff_strengths, length)
    divisor = Add (ratio, one)
    shrunk = Div (weights, divisor)
}"""


class ImplicitL2(Transformation):
    r"""
    The l2 term of strength b, part of the gradient :math:`g + b w`, where its explicit step would overshoot zero.

    While :math:`gain \cdot \eta \cdot b \le 1`, with the largest learning rate of the training, nothing changes.
    Otherwise the term is taken out of the gradient, and solved for the weight after the step:

    .. math:: w \leftarrow \frac{update(w, g, \eta)}{1 + length \cdot b}
    """

    # Both kinds of steps rest where g + b w = 0, whatever the learning rates; the explicit step alone diverges from
    # gain eta b = 2 on. Each weight has its own strength. With momentum, a weight keeps its kind of steps where the
    # learning rate falls, since a velocity holds either all of the gradient or what is left of it.

    def __init__(self, strengths: np.ndarray, gain: float, largest_rate: float = 0.0):
        self._strengths, self._gain, self._largest_rate = strengths, float(gain), float(largest_rate)

    def start(self, n_coefficients, n_others, dtype):
        """Make room for what is left of the gradient."""
        self._reach, self._is_any_stiff = self._strengths * self._gain, False
        self._stiff, self._remaining = (np.empty(n_coefficients + n_others, dtype) for _ in range(2))
        return {}

    def before(self, weights, gradient, eta, state, scratch):
        """Take stiff terms out of the gradient."""
        np.multiply(self._reach, max(eta, self._largest_rate), out=scratch)
        is_stiff = scratch > 1
        self._is_any_stiff = bool(is_stiff.any())
        if not self._is_any_stiff:
            return gradient
        np.multiply(self._strengths, is_stiff, out=self._stiff)
        np.multiply(self._stiff, weights, out=scratch)
        return np.subtract(gradient, scratch, out=self._remaining)

    def after(self, weights, eta, state, scratch, step_length):
        """Make the implicit steps."""
        if self._is_any_stiff:
            np.multiply(self._stiff, step_length(eta, state), out=scratch)
            np.add(scratch, 1, out=scratch)
            np.divide(weights, scratch, out=weights)

    def add_before(self, fragment, names):
        """Add the nodes of `before`."""
        fragment.constant("skort_l2_reach", self._strengths * self._gain)
        fragment.constant("skort_l2_strengths", self._strengths)
        fragment.constant("skort_l2_rate", np.asarray(self._largest_rate, self._strengths.dtype))
        parameters = ["skort_l2_strengths", "skort_l2_reach", "skort_l2_rate"]
        inputs = [*(names[name] for name in ("weights", "gradient", "eta")), *parameters]
        fragment.call(_REMAINING, inputs, ["skort_l2_remaining", "skort_l2_stiff"])
        return {**names, "gradient": "skort_l2_remaining"}

    def add_after(self, fragment, names, results):
        """Add the nodes of `after`."""
        fragment.call(_SHRUNK, [results["weights"], results["length"], "skort_l2_stiff"], ["skort_l2_shrunk"])
        return results | {"weights": "skort_l2_shrunk"}


_N_UPDATES, _SUM = "average_n_updates", "average_sum"

_AVERAGED = """\
averaged (sum, n_updates, weights, first) => (next_sum, next_n_updates) {
    one = Constant <value = int64[1] {1}> ()
    next_n_updates = Add (n_updates, one)
    counts = GreaterOrEqual (next_n_updates, first)
    precise = Cast <to = 11> (weights)
    more = Add (sum, precise)
    next_sum = Where (counts, more, sum)
}"""


class Averaging(Transformation):
    r"""
    The result is the mean of the weights after each update, from the update :math:`t_0` on.

    .. math:: \bar w_t = \frac{1}{t - t_0 + 1} \sum_{s = t_0}^{t} w_s, \qquad t \ge t_0

    as in `sklearn.linear_model.SGDRegressor(average=t_0)`. The sum is in float64, whatever the weights are.
    """

    def __init__(self, first: int):
        self._first = int(first)

    def start(self, n_coefficients, n_others, dtype):
        """Remember the number of updates and the sum."""
        return {_N_UPDATES: np.zeros(1, np.int64), _SUM: np.zeros(n_coefficients + n_others)}

    def after(self, weights, eta, state, scratch, step_length):
        """Add the weights."""
        if self.count(state):
            self.add(weights, state)

    def count(self, state: State) -> bool:
        """Count one more update; return whether its weights count in the mean."""
        state[_N_UPDATES][0] += 1
        return self._first <= state[_N_UPDATES][0]

    def add(self, weights: np.ndarray, state: State) -> None:
        """Add the weights that an update ended with."""
        state[_SUM] += weights

    def add_after(self, fragment, names, results):
        """Add the nodes of `after`."""
        added = {name: f"skort_added_{name}" for name in (_SUM, _N_UPDATES)}
        fragment.constant("skort_average_first", np.array([self._first]))
        inputs = [names[_SUM], names[_N_UPDATES], results["weights"], "skort_average_first"]
        fragment.call(_AVERAGED, inputs, list(added.values()))
        return results | added

    def mean(self, state: State) -> np.ndarray | None:
        """Return the mean in float64; None where it has not begun."""
        n = int(state[_N_UPDATES][0]) - self._first + 1
        return state[_SUM] / n if n > 0 else None
