"""The l2 term of a penalty, where it is so strong that an explicit step would overshoot."""

import numpy as np

__all__ = ["ImplicitL2"]

_STIFF = """\
stiff (weights, gradient, eta, strengths, reach) => (remaining, divisor) {
    one = Constant <value = float {1}> ()
    zero = Constant <value = float {0}> ()
    ratio = Mul (reach, eta)
    is_stiff = Greater (ratio, one)
    stiff_strengths = Where (is_stiff, strengths, zero)
    stiff_gradient = Mul (stiff_strengths, weights)
    remaining = Sub (gradient, stiff_gradient)
    stiff_ratio = Where (is_stiff, ratio, zero)
    divisor = Add (stiff_ratio, one)
}"""


class ImplicitL2:
    r"""
    A rule whose l2 term is taken at the weight after the step, where the step would overshoot zero.

    The gradient that it gets, :math:`g + b w`, has the l2 term of strength b. While :math:`length \cdot b \le 1`,
    this is the rule inside: with `SGD`

    .. math:: w \leftarrow w - \eta (g + b w)

    For larger steps, the term is taken out of the gradient, and solved for the weight after the step

    .. math:: w \leftarrow \frac{rule(w, g, \eta)}{1 + length \cdot b}

    Both rest where :math:`g + b w = 0`; the explicit step alone diverges from :math:`length \cdot b = 2` on. Each
    weight has its own strength, and where the learning rate falls its steps become explicit. With momentum,
    :math:`length = \eta / (1 - \mu)`.

    Parameters
    ----------
    rule : Rule
    strengths : ndarray of shape (n_weights,)
        b, not negative.
    gain : float
        length / eta, see `Optimizer.step_length`.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.descent.optimizers import SGD
    >>> from skort.descent.transforms.base import OptimizerRule
    >>> from skort.descent.transforms.implicit_l2 import ImplicitL2
    >>> b, g = np.array([1.0, 30.0]), 5.0
    >>> rule, weights = ImplicitL2(OptimizerRule(SGD()), b, gain=1.0), np.array([1.0, 1.0])
    >>> rule.update(weights, g + b * weights, 0.1, rule.start(2, 0, weights.dtype), scratch=np.empty(2))
    >>> weights
    array([0.4  , 0.125])
    """

    def __init__(self, rule, strengths: np.ndarray, gain: float):
        self._rule, self._strengths, self._gain = rule, strengths, float(gain)
        self.step_length, self.result = rule.step_length, rule.result

    def start(self, n_coefficients, n_others, dtype):
        """Return the state before the first update: that of the rule inside."""
        self._reach = self._strengths * self._gain
        self._ratio, self._remaining = (np.empty(n_coefficients + n_others, dtype) for _ in range(2))
        return self._rule.start(n_coefficients, n_others, dtype)

    def update(self, weights, gradient, eta, state, scratch):
        """Make one update in place."""
        np.multiply(self._reach, eta, out=self._ratio)
        is_stiff = self._ratio > 1
        if not is_stiff.any():
            return self._rule.update(weights, gradient, eta, state, scratch)
        np.multiply(self._strengths, weights, out=scratch)
        np.multiply(scratch, is_stiff, out=scratch)
        np.subtract(gradient, scratch, out=self._remaining)
        self._rule.update(weights, self._remaining, eta, state, scratch)
        np.add(self._ratio, 1, out=self._ratio)
        np.divide(weights, self._ratio, out=weights, where=is_stiff)

    def add_nodes(self, fragment, names):
        """Add the nodes of one update."""
        fragment.constant("skort_l2_reach", self._strengths * self._gain)
        fragment.constant("skort_l2_strengths", self._strengths)
        inputs = [*(names[name] for name in ("weights", "gradient", "eta")), "skort_l2_strengths", "skort_l2_reach"]
        fragment.call(_STIFF, inputs, ["skort_l2_remaining", "skort_l2_divisor"])
        results = self._rule.add_nodes(fragment, {**names, "gradient": "skort_l2_remaining"})
        fragment.node("Div", [results["weights"], "skort_l2_divisor"], ["skort_l2_shrunk"])
        return results | {"weights": "skort_l2_shrunk"}
