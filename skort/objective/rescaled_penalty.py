"""A penalty of the weights of a model as one of other multiples of them."""

import numpy as np

from skort.objective.penalties import Strength, WeightPenalty, checked_strengths

__all__ = ["rescaled"]


class RescaledPenalty(WeightPenalty):
    """What `rescaled` returns."""

    def __init__(self, penalty: WeightPenalty, factors: dict[str, float | np.ndarray], unit: float):
        self._penalty, self._factors, self._unit = penalty, factors, unit

    def __repr__(self):
        return repr(self._penalty)

    def strengths(self, names):
        """Return the strengths of the weights `names` that have a penalty, by name."""
        return self._rescaled(checked_strengths(self._penalty, names))

    def intercept_strengths(self, names):
        """Return the same for intercepts."""
        return self._rescaled(self._penalty.intercept_strengths(names))

    def custom_terms(self, coefficients, intercepts):
        """Return the terms of an own penalty, by name."""
        of_model = self._penalty.custom_terms(coefficients, intercepts)
        return {
            name: term._replace(strength=term.strength / self._unit, factor=self._factors.get(name, 1.0))
            for name, term in of_model.items()
        }

    def _rescaled(self, strengths):
        factors, unit = self._factors, self._unit
        return {
            name: Strength(l1 * (factors.get(name, 1.0) / unit), l2 * (factors.get(name, 1.0) ** 2 / unit))
            for name, (l1, l2) in strengths.items()
        }


def rescaled(
    penalty: WeightPenalty | None, factors: dict[str, float | np.ndarray], unit: float
) -> WeightPenalty | None:
    r"""
    Return a penalty of weights :math:`w = factor \cdot v` as one of v, in an objective that is divided by a unit.

    .. math:: \frac{a |w|}{unit} = \frac{a \, factor}{unit} |v|, \qquad
        \frac{b}{2} \frac{w^2}{unit} = \frac{b \, factor^2}{unit} \frac{v^2}{2}

    An own penalty is computed of w itself, and divided by the unit.

    Parameters
    ----------
    penalty : WeightPenalty or None
        Of w. `UnitFreeL2` is of v already.
    factors : dict of str to float or ndarray
        Positive, by the names of weights; one where there is none.
    unit : float

    Examples
    --------
    >>> from skort.objective import L2
    >>> from skort.objective.rescaled_penalty import rescaled
    >>> rescaled(L2(alpha=0.5), {"coef": 10.0}, 4.0).strengths(("coef",))
    {'coef': Strength(l1=0.0, l2=12.5)}
    """
    if penalty is None or penalty.is_unit_free:
        return penalty
    return RescaledPenalty(penalty, factors, unit)
