"""What an update of the weights is made of: an optimizer, and the transforms around it."""

from dataclasses import dataclass

import numpy as np

from skort.descent.optimizers import Adam, OnnxOptimizer, Optimizer
from skort.descent.transforms.averaging import Averaged
from skort.descent.transforms.base import OptimizerRule, Rule
from skort.descent.transforms.clipping import Clipped
from skort.descent.transforms.decay import Decayed
from skort.descent.transforms.soft_threshold import SoftThresholded

__all__ = ["Update"]


@dataclass(frozen=True)
class Update:
    """
    How a gradient changes the weights.

    Parameters
    ----------
    optimizer : Optimizer
    max_grad_norm : float or None, default=None
        A gradient whose Euclidean norm is larger is shortened to this norm.
    average : bool or int, default=False
        The first update whose weights count in the mean that is the result; True is 1. False or 0: no mean.
    """

    optimizer: Optimizer | OnnxOptimizer
    max_grad_norm: float | None = None
    average: bool | int = False

    @property
    def weight_decay(self) -> float:
        """How fast coefficients shrink beside the optimizer's update: the parameter of `Adam`."""
        return float(self.optimizer.weight_decay) if isinstance(self.optimizer, Adam) else 0.0

    def rule(self, l1_strengths: np.ndarray | None = None) -> Rule:
        """
        Return the optimizer and its transforms as one rule: decay, clip, optimize, threshold, average.

        Parameters
        ----------
        l1_strengths : ndarray of shape (n_weights,) or None, default=None
            The strength of the l1 term of the penalty for each weight.

        Examples
        --------
        >>> import numpy as np
        >>> from skort.descent.optimizers import SGD
        >>> from skort.descent.update import Update
        >>> rule = Update(SGD(), max_grad_norm=5.0).rule(l1_strengths=np.array([0.0, 10.0]))
        >>> weights = np.array([1.0, 3.0])
        >>> rule.update(weights, np.array([30.0, 40.0]), 0.1, rule.start(2, 0, weights.dtype), scratch=np.empty(2))
        >>> weights
        array([0.7, 1.6])
        """
        rule: Rule = OptimizerRule(self.optimizer)
        if self.max_grad_norm is not None:
            rule = Clipped(rule, self.max_grad_norm)
        if self.weight_decay > 0:
            rule = Decayed(rule, self.weight_decay)
        if l1_strengths is not None:
            rule = SoftThresholded(rule, l1_strengths)
        return Averaged(rule, self.average) if self.average else rule
