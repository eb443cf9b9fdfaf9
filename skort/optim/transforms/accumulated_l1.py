"""The l1 term of a penalty: what is owed of it, taken after every update."""

import numpy as np

from skort.objective.penalties import soft_threshold, soft_threshold_text

__all__ = ["AccumulatedL1", "with_owed"]

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


def with_owed(state, current):
    """
    Return a state as one of a training whose penalty has, or has not, an l1 term.

    Parameters
    ----------
    state : dict of str to ndarray
    current : dict of str to ndarray
        That of the training which is to go on from `state`.

    Returns
    -------
    state : dict of str to ndarray
        With what is owed where `current` has it: nothing, if `state` does not say; otherwise without.
    """
    names = {_POSITIVE, _NEGATIVE}
    nothing = {name: np.zeros_like(current[name]) for name in names & current.keys()}
    return nothing | {name: array for name, array in state.items() if name not in names or name in current}


class AccumulatedL1:
    r"""
    A rule that moves each weight towards zero after the update, by all that it owes of the l1 term's penalty.

    With the strength a of a weight and the length of its step, after each update of the rule inside

    .. math::

        p &\leftarrow \min(p + length \cdot a, \, n \cdot length \cdot a), \qquad
        m \leftarrow \min(m + length \cdot a, \, n \cdot length \cdot a)

        w' &= \max(0, w - p) + \min(0, w + m)

        p &\leftarrow p + w' - w, \qquad m \leftarrow m - w' + w, \qquad w \leftarrow w'

    A weight that reached zero before it had paid its penalty pays the rest when noise lifts it, so that it stays at
    zero in mini-batches, too. With :math:`p = u + q` and :math:`m = u - q` this is the accumulated penalty of [1]_, as
    in `sklearn.linear_model.SGDClassifier(penalty="l1")`; two vectors keep the digits that differences of their
    growing sums would lose. There nothing bounds what a weight at zero owes, and it comes back late. Here it owes at
    most the penalty of n steps, an epoch: for a single batch an epoch, this is the proximal gradient step.

    Parameters
    ----------
    rule : Rule
    strengths : ndarray of shape (n_weights,)
        a, not negative.
    n_steps : int
        n, at least 1.

    References
    ----------
    .. [1] Tsuruoka, Tsujii and Ananiadou, Stochastic gradient descent training for l1-regularized log-linear models
       with cumulative penalty, ACL 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.optim.optimizers import SGD
    >>> from skort.optim.transforms.accumulated_l1 import AccumulatedL1
    >>> from skort.optim.transforms.base import OptimizerRule
    >>> rule, weights = AccumulatedL1(OptimizerRule(SGD()), np.array([1.0]), n_steps=100), np.array([0.5])
    >>> state, seen = rule.start(1, 0, weights.dtype), []
    >>> for gradient in (4.5, 0.0, 0.0, -2.5, -2.5, -2.5):
    ...     rule.update(weights, np.array([gradient]), 0.1, state, scratch=np.empty(1))
    ...     seen.append(round(float(weights[0]), 3))
    >>> seen
    [0.0, 0.0, 0.0, 0.0, 0.05, 0.2]
    """

    def __init__(self, rule, strengths: np.ndarray, n_steps: int):
        self._rule, self._strengths, self._n_steps = rule, strengths, float(n_steps)
        self.step_length, self.result = rule.step_length, rule.result

    def start(self, n_coefficients, n_others, dtype):
        """Return the state before the first update: that of the rule inside, and nothing owed."""
        n_weights = n_coefficients + n_others
        self._more, self._most = np.empty(n_weights, dtype), np.empty(n_weights, dtype)
        owed = {name: np.zeros(n_weights, dtype) for name in (_POSITIVE, _NEGATIVE)}
        return self._rule.start(n_coefficients, n_others, dtype) | owed

    def update(self, weights, gradient, eta, state, scratch):
        """Make one update in place."""
        self._rule.update(weights, gradient, eta, state, scratch)
        positive, negative = state[_POSITIVE], state[_NEGATIVE]
        np.multiply(self._strengths, self._rule.step_length(eta, state), out=self._more)
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

    def add_nodes(self, fragment, names):
        """Add the nodes of one update."""
        results = self._rule.add_nodes(fragment, names)
        fragment.constant("skort_l1_strengths", self._strengths)
        inputs = [names[_POSITIVE], names[_NEGATIVE], results["length"], "skort_l1_strengths"]
        owed = ["skort_l1_positive", "skort_l1_negative"]
        fragment.call(_OWED % self._n_steps, inputs, owed)
        fragment.call(soft_threshold_text(), [results["weights"], *owed], ["skort_thresholded"])
        left = {name: f"skort_{name}_left" for name in (_POSITIVE, _NEGATIVE)}
        fragment.call(_PAID, [*owed, results["weights"], "skort_thresholded"], list(left.values()))
        return results | left | {"weights": "skort_thresholded"}
