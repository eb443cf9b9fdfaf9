"""The l1 term of a penalty: a proximal step after every update."""

import numpy as np

from skort.objective.penalties import soft_threshold, soft_threshold_text

__all__ = ["SoftThresholded"]


class SoftThresholded:
    r"""
    A rule that moves each weight towards zero after the update, by its strength times the length of the step.

    .. math:: w \leftarrow soft\_threshold(rule(w, g, \eta), \, length \cdot a)

    so that weights become exactly zero: the l1 term is no part of the gradient. See `skort.objective.penalties`.

    Parameters
    ----------
    rule : Rule
    strengths : ndarray of shape (n_weights,)
        a, not negative.
    """

    def __init__(self, rule, strengths: np.ndarray):
        self._rule, self._strengths = rule, strengths
        self.start, self.step_length, self.result = rule.start, rule.step_length, rule.result

    def update(self, weights, gradient, eta, state, scratch):
        """Make one update in place."""
        self._rule.update(weights, gradient, eta, state, scratch)
        soft_threshold(weights, self._rule.step_length(eta, state) * self._strengths, scratch)

    def add_nodes(self, fragment, names):
        """Add the nodes of one update."""
        results = self._rule.add_nodes(fragment, names)
        fragment.constant("skort_l1_strengths", self._strengths)
        fragment.node("Mul", [results["length"], "skort_l1_strengths"], ["skort_threshold"])
        fragment.call(soft_threshold_text(), [results["weights"], "skort_threshold"], ["skort_thresholded"])
        return results | {"weights": "skort_thresholded"}
