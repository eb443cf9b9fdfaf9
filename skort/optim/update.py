"""What an update of the weights is made of: an optimizer, and the transforms around it."""

from dataclasses import dataclass

import numpy as np

from skort.optim.optimizers import SGD, Adam, Momentum, OnnxOptimizer, Optimizer
from skort.optim.transforms.accumulated_l1 import AccumulatedL1
from skort.optim.transforms.averaging import Averaged
from skort.optim.transforms.base import OptimizerRule, Rule
from skort.optim.transforms.clipping import Clipped
from skort.optim.transforms.decay import Decayed
from skort.optim.transforms.implicit_l2 import ImplicitL2

__all__ = ["MANY_ROWS", "Terms", "Update"]

#: Where it is not known how long an epoch is, weights owe at most the l1 penalty of so many rows.
MANY_ROWS = 131_072


@dataclass(frozen=True, eq=False)
class Terms:
    """
    What an update is to know of the penalty.

    Parameters
    ----------
    l1, l2 : ndarray of shape (n_weights,) or None, default=None
        The strength of each term of the penalty for each weight. The l2 term is part of the gradients that the rule
        gets, the l1 term is not.
    n_steps : int, default=1
        What a weight owes of the l1 term is at most the penalty of so many steps, see `AccumulatedL1`.
    """

    l1: np.ndarray | None = None
    l2: np.ndarray | None = None
    n_steps: int = 1


_NO_TERMS = Terms()


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
    largest_rate : float or None, default=None
        That no learning rate is above, see `skort.optim.schedules.largest_rate`. None: it is not known.
    """

    optimizer: Optimizer | OnnxOptimizer
    max_grad_norm: float | None = None
    average: bool | int = False
    largest_rate: float | None = None

    @property
    def weight_decay(self) -> float:
        """How fast coefficients shrink beside the optimizer's update: the parameter of `Adam`."""
        return float(self.optimizer.weight_decay) if isinstance(self.optimizer, Adam) else 0.0

    @property
    def memory(self) -> float:
        """About how many updates a gradient counts in: one without momentum, and where it is not known."""
        optimizer = self.optimizer
        if isinstance(optimizer, Adam):
            return 1 / max(1 - float(optimizer.beta_1), 1e-3)
        return min(float(getattr(optimizer, "gain", 1.0)), 1e3)

    def rule(self, terms: Terms = _NO_TERMS, innermost: Rule | None = None) -> Rule:
        """
        Return the optimizer and its transforms as one rule: decay, clip, optimize, the penalty's terms, average.

        Parameters
        ----------
        terms : Terms, default=Terms()
        innermost : Rule, default=None
            What takes the optimizer's place. None: `OptimizerRule`.

        Examples
        --------
        >>> import numpy as np
        >>> from skort.optim.optimizers import SGD
        >>> from skort.optim.update import Terms, Update
        >>> rule = Update(SGD(), max_grad_norm=5.0).rule(Terms(l1=np.array([0.0, 10.0])))
        >>> weights = np.array([1.0, 3.0])
        >>> rule.update(weights, np.array([30.0, 40.0]), 0.1, rule.start(2, 0, weights.dtype), scratch=np.empty(2))
        >>> weights
        array([0.7, 1.6])
        """
        rule: Rule = OptimizerRule(self.optimizer) if innermost is None else innermost
        if self.max_grad_norm is not None:
            rule = Clipped(rule, self.max_grad_norm)
        if self.weight_decay > 0:
            rule = Decayed(rule, self.weight_decay)
        if terms.l1 is not None:
            rule = AccumulatedL1(rule, terms.l1, terms.n_steps)
        # After the l1 term: the proximal step of both is the threshold, divided.
        if terms.l2 is not None and self.gain is not None and self.is_stiff(terms):
            rule = ImplicitL2(rule, terms.l2, self.gain, self.largest_rate or 0.0)
        return Averaged(rule, self.average) if self.average else rule

    def is_stiff(self, terms: Terms) -> bool:
        """Return whether the l2 term of any weight may need an implicit step, see `ImplicitL2`."""
        if terms.l2 is None or self.gain is None:
            return False
        return self.largest_rate is None or bool(np.max(terms.l2) * self.gain * self.largest_rate > 1)

    @property
    def gain(self) -> float | None:
        """The limit of a step's length at a constant learning rate of one, where there is one; None where not."""
        # Adam bounds its steps itself, and what other optimizers do is not known.
        if not isinstance(self.optimizer, (SGD, Momentum)):
            return None
        return self.optimizer.gain
