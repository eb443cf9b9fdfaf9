"""Weight decay: coefficients shrink at every update, whatever the gradient."""

import numpy as np

__all__ = ["Decayed"]

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


class Decayed:
    r"""
    A rule whose coefficients, never intercepts, shrink before each update.

    .. math:: w \leftarrow (1 - \eta \lambda) w

    as in `torch.optim.AdamW` and in Loshchilov and Hutter (arXiv:1711.05101). An l2 penalty is part of the gradient;
    this is not.

    Parameters
    ----------
    rule : Rule
    weight_decay : float
        :math:`\lambda`, positive.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.optim.optimizers import SGD
    >>> from skort.optim.transforms.base import OptimizerRule
    >>> from skort.optim.transforms.decay import Decayed
    >>> rule, weights = Decayed(OptimizerRule(SGD()), 0.5), np.array([1.0, 2.0])
    >>> rule.update(weights, np.zeros(2), 0.1, rule.start(1, 1, weights.dtype), scratch=np.empty(2))
    >>> weights
    array([0.95, 2.  ])
    """

    def __init__(self, rule, weight_decay: float):
        self._rule, self._weight_decay = rule, float(weight_decay)
        self.step_length, self.result = rule.step_length, rule.result

    def start(self, n_coefficients, n_others, dtype):
        """Return the state before the first update: that of the rule inside and the number of coefficients."""
        state = self._rule.start(n_coefficients, n_others, dtype)
        return state | {"n_coefficients": np.array([n_coefficients])}

    def update(self, weights, gradient, eta, state, scratch):
        """Make one update in place."""
        coefficients = weights[: int(state["n_coefficients"][0])]
        np.multiply(coefficients, 1 - eta * self._weight_decay, out=coefficients)
        self._rule.update(weights, gradient, eta, state, scratch)

    def add_nodes(self, fragment, names):
        """Add the nodes of one update."""
        inputs = [names[name] for name in ("weights", "eta", "n_coefficients")]
        fragment.call(_DECAYED % self._weight_decay, inputs, ["skort_decayed"])
        return self._rule.add_nodes(fragment, {**names, "weights": "skort_decayed"})
