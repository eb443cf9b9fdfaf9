"""The l2 term of a penalty, where it is so strong that an explicit step would overshoot."""

import numpy as np

__all__ = ["ImplicitL2"]

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


class ImplicitL2:
    r"""
    A rule whose l2 term is taken at the weight after the step, where the step would overshoot zero.

    The gradient that it gets, :math:`g + b w`, has the l2 term of strength b. While :math:`gain \cdot \eta \cdot b \le
    1`, with the largest learning rate :math:`\eta` of the training, this is the rule inside: with `SGD`

    .. math:: w \leftarrow w - \eta (g + b w)

    Otherwise, the term is taken out of the gradient, and solved for the weight after the step

    .. math:: w \leftarrow \frac{rule(w, g, \eta)}{1 + length \cdot b}

    Both rest where :math:`g + b w = 0`, whatever the learning rates; the explicit step alone diverges from :math:`gain
    \cdot \eta \cdot b = 2` on. Each weight has its own strength. With momentum, a weight keeps its kind of steps where
    the learning rate falls, since a velocity holds either all of the gradient or what is left of it.

    Parameters
    ----------
    rule : Rule
    strengths : ndarray of shape (n_weights,)
        b, not negative.
    gain : float
        The limit of length / eta, see `Optimizer.step_length`.
    largest_rate : float, default=0.0
        A learning rate that counts as one of the training, before it comes.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.optim.optimizers import SGD
    >>> from skort.optim.transforms.base import OptimizerRule
    >>> from skort.optim.transforms.implicit_l2 import ImplicitL2
    >>> b, g = np.array([1.0, 30.0]), 5.0
    >>> rule, weights = ImplicitL2(OptimizerRule(SGD()), b, gain=1.0), np.array([1.0, 1.0])
    >>> rule.update(weights, g + b * weights, 0.1, rule.start(2, 0, weights.dtype), scratch=np.empty(2))
    >>> weights
    array([0.4  , 0.125])
    """

    def __init__(self, rule, strengths: np.ndarray, gain: float, largest_rate: float = 0.0):
        self._rule, self._strengths, self._gain = rule, strengths, float(gain)
        self._largest_rate = float(largest_rate)
        self.step_length, self.result = rule.step_length, rule.result

    def start(self, n_coefficients, n_others, dtype):
        """Return the state before the first update: that of the rule inside."""
        self._reach = self._strengths * self._gain
        self._stiff, self._remaining = (np.empty(n_coefficients + n_others, dtype) for _ in range(2))
        return self._rule.start(n_coefficients, n_others, dtype)

    def update(self, weights, gradient, eta, state, scratch):
        """Make one update in place."""
        np.multiply(self._reach, max(eta, self._largest_rate), out=scratch)
        is_stiff = scratch > 1
        if not is_stiff.any():
            return self._rule.update(weights, gradient, eta, state, scratch)
        np.multiply(self._strengths, is_stiff, out=self._stiff)
        np.multiply(self._stiff, weights, out=scratch)
        np.subtract(gradient, scratch, out=self._remaining)
        self._rule.update(weights, self._remaining, eta, state, scratch)
        np.multiply(self._stiff, self._rule.step_length(eta, state), out=scratch)
        np.add(scratch, 1, out=scratch)
        np.divide(weights, scratch, out=weights)

    def add_nodes(self, fragment, names):
        """Add the nodes of one update."""
        fragment.constant("skort_l2_reach", self._strengths * self._gain)
        fragment.constant("skort_l2_strengths", self._strengths)
        fragment.constant("skort_l2_rate", np.asarray(self._largest_rate, self._strengths.dtype))
        parameters = ["skort_l2_strengths", "skort_l2_reach", "skort_l2_rate"]
        inputs = [*(names[name] for name in ("weights", "gradient", "eta")), *parameters]
        fragment.call(_REMAINING, inputs, ["skort_l2_remaining", "skort_l2_stiff"])
        results = self._rule.add_nodes(fragment, {**names, "gradient": "skort_l2_remaining"})
        fragment.call(_SHRUNK, [results["weights"], results["length"], "skort_l2_stiff"], ["skort_l2_shrunk"])
        return results | {"weights": "skort_l2_shrunk"}
