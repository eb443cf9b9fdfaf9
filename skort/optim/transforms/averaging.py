"""Averaged stochastic gradient descent: the mean of the weights over the updates."""

import numpy as np

__all__ = ["Averaged"]

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


class Averaged:
    r"""
    A rule whose result is the mean of the weights after each update, from a given update on.

    .. math:: \bar w_t = \frac{1}{t - t_0 + 1} \sum_{s = t_0}^{t} w_s, \qquad t \ge t_0

    as in `sklearn.linear_model.SGDRegressor(average=t_0)`. The sum is in float64, whatever the weights are.

    Parameters
    ----------
    rule : Rule
    first : int
        :math:`t_0`, the first update whose weights count.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.optim.optimizers import SGD
    >>> from skort.optim.transforms.averaging import Averaged
    >>> from skort.optim.transforms.base import OptimizerRule
    >>> rule, weights = Averaged(OptimizerRule(SGD()), 2), np.array([0.0])
    >>> state = rule.start(1, 0, weights.dtype)
    >>> for _ in range(3):
    ...     rule.update(weights, np.array([-10.0]), 1.0, state, scratch=np.empty(1))
    >>> weights, rule.result(weights, state)
    (array([30.]), array([25.]))
    """

    def __init__(self, rule, first: int):
        self._rule, self._first = rule, int(first)
        self.step_length = rule.step_length

    def start(self, n_coefficients, n_others, dtype):
        """Return the state before the first update: that of the rule inside, the number of updates and the sum."""
        average = {_N_UPDATES: np.zeros(1, np.int64), _SUM: np.zeros(n_coefficients + n_others)}
        return self._rule.start(n_coefficients, n_others, dtype) | average

    def update(self, weights, gradient, eta, state, scratch):
        """Make one update in place."""
        self._rule.update(weights, gradient, eta, state, scratch)
        if self.count(state):
            self.add(weights, state)

    def count(self, state) -> bool:
        """Count one more update; return whether its weights count in the mean."""
        state[_N_UPDATES][0] += 1
        return self._first <= state[_N_UPDATES][0]

    def add(self, weights, state):
        """Add the weights that an update ended with."""
        state[_SUM] += weights

    def add_nodes(self, fragment, names):
        """Add the nodes of one update."""
        results = self._rule.add_nodes(fragment, names)
        added = {name: f"skort_added_{name}" for name in (_SUM, _N_UPDATES)}
        fragment.constant("skort_average_first", np.array([self._first]))
        inputs = [names[_SUM], names[_N_UPDATES], results["weights"], "skort_average_first"]
        fragment.call(_AVERAGED, inputs, list(added.values()))
        return results | added

    def result(self, weights, state):
        """Return the mean as a new vector; a copy of `weights`, those after the last update, where it has not begun."""
        n = int(state[_N_UPDATES][0]) - self._first + 1
        return (state[_SUM] / n).astype(weights.dtype) if n > 0 else self._rule.result(weights, state)
