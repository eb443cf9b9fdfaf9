"""Penalties a |w|_1 + b / 2 |w|^2 of weights, with the strengths a and b for each weight."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from skort.common.component import Component, with_defaults
from skort.common.sklearn_private import Interval

if TYPE_CHECKING:
    from skort.objective.custom import CustomTerm

#: The largest strength of a penalty: float32 holds little more.
LARGEST_STRENGTH: float = 1e38
_STRENGTHS = Interval(Real, 0, LARGEST_STRENGTH, closed="both")
_ALPHA = [_STRENGTHS, dict, "array-like"]


class Strength(NamedTuple):
    """
    The strengths of the two terms for one weight.

    Arrays broadcast to the shape of the weight.
    """

    l1: float | np.ndarray
    l2: float | np.ndarray


class WeightPenalty:
    """
    A penalty of weights as estimators and solvers see it;
    each attribute is that of most penalties.
    """

    #: Parameters that the estimators have, too. A penalty given by its name takes their values.
    shared_parameters: ClassVar[tuple[str, ...]] = ()
    #: The strength, if it is one number for all weights or one for each.
    alpha: Any = 0.0
    #: The strength of the penalty on intercepts, as `alpha`; None: they have no penalty.
    intercepts: Any = None
    #: Whether the strengths hold for standardized columns of X and y, whatever the
    #: units of the data.
    is_unit_free: bool = False
    #: Whether the penalty has `custom_terms`.
    is_custom: bool = False
    #: Whether it compares the weights with those before the training.
    takes_start: bool = False

    def strengths(self, names: tuple[str, ...]) -> dict[str, Strength]:
        """
        Return the strengths of the weights `names`, none of which is an intercept, by name;
        none: no penalty.
        """
        return {}

    def has_l1(self, names: tuple[str, ...]) -> bool:
        """Return whether the penalty of the weights `names` has an l1 term: it has a kink."""
        return any(is_any(strength.l1) for strength in self.strengths(names).values())

    def intercept_strengths(self, names: tuple[str, ...]) -> dict[str, Strength]:
        """Return the strengths of the intercepts `names`, by name; none: no penalty."""
        return {}

    def custom_terms(
        self, coefficients: tuple[str, ...], intercepts: tuple[str, ...]
    ) -> dict[str, "CustomTerm"]:
        """Return the terms of a custom penalty, by the names of the weights that have it."""
        return {}


def as_penalty(value: Any) -> WeightPenalty | None:
    """
    Return a user's penalty with every attribute of a `WeightPenalty`;
    None for an object that is no penalty.
    """
    return with_defaults(value, WeightPenalty, "strengths")


@dataclass(eq=False, repr=False)
class _Norms(Component, WeightPenalty):
    """
    A penalty with one strength for all weights or one for each;
    `l1_ratio` is the share of the l1 term.
    """

    shared_parameters: ClassVar[tuple[str, ...]] = ("alpha",)
    _parameter_constraints = {"alpha": _ALPHA}
    alpha: Any = 1e-4
    l1_ratio = 0.0

    def strengths(self, names: tuple[str, ...]) -> dict[str, Strength]:
        """Return the strengths of the weights `names` that have a penalty, by name."""
        return _strengths(self.alpha, self.l1_ratio, names)

    def intercept_strengths(self, names: tuple[str, ...]) -> dict[str, Strength]:
        """Return the strengths of the intercepts `names` that have a penalty, by name."""
        if self.intercepts is None:
            return {}
        return _strengths(self.intercepts, self.l1_ratio, names, "intercepts")


class L1(_Norms):
    r"""
    The sum of the absolute weights, which makes many of them zero.

    .. math:: penalty(w) = \alpha \sum_j |w_j|

    as in `sklearn.linear_model.SGDRegressor(penalty="l1")`. Weights become exactly zero, even in
    mini-batches: a weight that reaches zero keeps the rest of its penalty for later updates
    (Tsuruoka, Tsujii and Ananiadou, ACL 2009). It keeps at most the penalty of one epoch; in
    `partial_fit`, the penalty of 131,072 rows. With `average=True`, the mean of a weight is zero only if the
    weight was zero after each update.

    Parameters
    ----------
    alpha : float, array-like or dict, default=1e-4
        Strength of the penalty, as for `ElasticPenalty`.

    Examples
    --------
    >>> from skort.objective import L1
    >>> L1(alpha=0.5).strengths(("coef",))
    {'coef': Strength(l1=0.5, l2=0.0)}
    """

    __module__ = "skort.objective"
    l1_ratio: float = 1.0


class L2(_Norms):
    r"""
    Half the squared Euclidean norm, which keeps weights small.

    .. math:: penalty(w) = \frac{\alpha}{2} \sum_j w_j^2, \qquad \frac{\partial penalty}{\partial w} = \alpha w

    as in `sklearn.linear_model.SGDRegressor(penalty="l2")`. If the largest learning rate times
    :math:`\alpha` is at most 1, the penalty is part of the gradient. Otherwise, such a step would
    jump over zero. So skort makes an implicit step, which is stable:
    :math:`w \leftarrow (w - \eta g) / (1 + \eta \alpha)`.

    Parameters
    ----------
    alpha : float, array-like or dict, default=1e-4
        Strength of the penalty, as for `ElasticPenalty`.

    Examples
    --------
    >>> from skort.objective import L2
    >>> L2(alpha=0.5).strengths(("coef",))
    {'coef': Strength(l1=0.0, l2=0.5)}
    """

    __module__ = "skort.objective"
    l1_ratio: float = 0.0


@dataclass(eq=False, repr=False)
class ElasticPenalty(_Norms):
    r"""
    An l1 and an l2 penalty, with one strength for all weights or one for each.

    .. math:: penalty(w) = \alpha \left( \rho \sum_j |w_j| + \frac{1 - \rho}{2} \sum_j w_j^2 \right)

    with :math:`\rho` = `l1_ratio`, as in `sklearn.linear_model.SGDRegressor(penalty="elasticnet")`.
    The first sum makes exact zeros, as `L1` does.

    Parameters
    ----------
    alpha : float, array-like or dict, default=1e-4
        Strength of the penalty, not negative. An array is broadcast to the shape of each weight in
        `weights_`. A dict maps names of weights, or patterns such as ``"coefficient*"``, to
        strengths. The last entry that matches a weight counts. A weight without an entry has no
        penalty.
    l1_ratio : float, array-like or dict, default=0.15
        The share of l1, from 0 (l2 only) to 1 (l1 only). An array or a dict works as for `alpha`,
        but every weight with a strength needs an entry of the dict.
    intercepts : float, array-like or dict, default=None
        Strength of the penalty on intercepts. With None, they have no penalty. With a penalty on
        intercepts, the training does not subtract the means of X and y, see `standardize`.

    Examples
    --------
    >>> from skort.objective import ElasticPenalty
    >>> penalty = ElasticPenalty(
    ...     0.5, l1_ratio={"coefficient": 0, "*1": 1, "intercept*": 0}, intercepts=0.25
    ... )
    >>> penalty.strengths(("coefficient", "coefficient1"))
    {'coefficient': Strength(l1=0.0, l2=0.5), 'coefficient1': Strength(l1=0.5, l2=0.0)}
    >>> penalty.intercept_strengths(("intercept",))
    {'intercept': Strength(l1=0.0, l2=0.25)}
    """

    __module__ = "skort.objective"
    shared_parameters: ClassVar[tuple[str, ...]] = ("alpha", "l1_ratio")
    _parameter_constraints = {
        "alpha": _ALPHA,
        "l1_ratio": [Interval(Real, 0, 1, closed="both"), dict, "array-like"],
        "intercepts": [*_ALPHA, None],
    }
    l1_ratio: Any = 0.15
    intercepts: Any = None


class ModelPenalty(WeightPenalty):
    """The penalty of a model inside an estimator, if one number is not enough to describe it."""

    def __init__(self, coefficients: Strength, intercepts: Strength | None = None):
        self.coefficients = coefficients
        self.intercepts = intercepts

    def __repr__(self) -> str:
        terms = _in_words(self.coefficients)
        if self.intercepts is not None:
            terms += f"; of intercepts: {_in_words(self.intercepts)}"
        return f"{type(self).__name__}({terms})"

    def strengths(self, names: tuple[str, ...]) -> dict[str, Strength]:
        """Return the strengths of the weights `names`, by name: all have the same."""
        return dict.fromkeys(names, self.coefficients)

    def intercept_strengths(self, names: tuple[str, ...]) -> dict[str, Strength]:
        """
        Return the strengths of the intercepts `names`, by name:
        all have the same, or none has a penalty.
        """
        return {} if self.intercepts is None else dict.fromkeys(names, self.intercepts)


def _in_words(strength):
    """Return strengths of three digits; of those that differ, the least and the largest."""
    ends = {name: (np.min(part), np.max(part)) for name, part in strength._asdict().items()}
    return ", ".join(
        f"{name}={least:.3g}" if least == most else f"{name}={least:.3g} to {most:.3g}"
        for name, (least, most) in ends.items()
        if most > 0
    )


class UnitFreeL2(L2):
    """`L2` on the weights of standardised columns of X and y."""

    is_unit_free = True


class RescaledPenalty(WeightPenalty):
    """A penalty of multiples of the weights, see `rescaled`."""

    def __init__(self, penalty: WeightPenalty, factors: dict[str, float | np.ndarray], unit: float):
        self._penalty = penalty
        self._factors = factors
        self._unit = unit

    def __repr__(self) -> str:
        return repr(self._penalty)

    def strengths(self, names: tuple[str, ...]) -> dict[str, Strength]:
        """Return the strengths of the weights `names` that have a penalty, by name."""
        return self._rescaled(checked_strengths(self._penalty, names))

    def intercept_strengths(self, names: tuple[str, ...]) -> dict[str, Strength]:
        """Return the strengths of the intercepts `names` that have a penalty, by name."""
        return self._rescaled(self._penalty.intercept_strengths(names))

    def custom_terms(
        self, coefficients: tuple[str, ...], intercepts: tuple[str, ...]
    ) -> dict[str, "CustomTerm"]:
        """Return the terms of a custom penalty, by name."""
        terms = self._penalty.custom_terms(coefficients, intercepts)
        return {
            name: term._replace(strength=term.strength / self._unit, factor=self._factor(name))
            for name, term in terms.items()
        }

    def _rescaled(self, strengths):
        """
        Return strengths for v of a penalty of w = factor v:
        l1 |w| + l2 / 2 w^2, divided by the unit.
        """
        rescaled = {}
        for name, (l1, l2) in strengths.items():
            factor = self._factor(name)
            rescaled[name] = Strength(l1 * (factor / self._unit), l2 * (factor**2 / self._unit))
        return rescaled

    def _factor(self, name):
        return self._factors.get(name, 1.0)


def rescaled(
    penalty: WeightPenalty | None, factors: dict[str, float | np.ndarray], unit: float
) -> WeightPenalty | None:
    """Return a penalty of weights w = factor v as a penalty of v, divided by a unit."""
    if penalty is None or penalty.is_unit_free:
        return penalty
    return RescaledPenalty(penalty, factors, unit)


def checked_strengths(penalty: WeightPenalty, names: tuple[str, ...]) -> dict[str, Strength]:
    """Return the strengths of the weights `names`; raise a ValueError for any other weight."""
    strengths = penalty.strengths(names)
    for name in strengths:
        if name not in names:
            raise _no_such_weight(type(penalty).__name__, name, names)
    return strengths


def _strengths(alpha, l1_ratio, names, parameter="alpha"):
    """
    Return the strengths of the weights `names` that have a penalty;
    `parameter` is what errors call `alpha`.
    """
    strengths = {}
    for name, strength in _by_name(alpha, names, parameter).items():
        if is_any(strength):
            ratio = _ratio(l1_ratio, name)
            strengths[name] = Strength(l1=strength * ratio, l2=strength * (1 - ratio))

    return strengths


def is_any(values: Any) -> bool:
    """Return whether a number, or any number of an array, is not zero. Faster than `np.any`."""
    return bool(values) if isinstance(values, (bool, float)) else bool(np.any(values))


def _by_name(values, names, parameter):
    """Return the strengths by the names of the weights: one for all, or one for each pattern."""
    if not isinstance(values, dict):
        return dict.fromkeys(names, _checked(values, parameter))

    by_name = {}
    for pattern, value in values.items():
        checked = _checked(value, f"{parameter}[{pattern!r}]")
        by_name.update(dict.fromkeys(matching(parameter, pattern, names), checked))

    return by_name


def matching(parameter: str, patterns: Any, names: Sequence[str]) -> list[str]:
    """Return the names that match one of the patterns; a ValueError if a pattern matches none."""
    found: set[str] = set()
    for pattern in patterns if isinstance(patterns, (list, tuple)) else [patterns]:
        matched = [name for name in names if fnmatchcase(name, str(pattern))]
        if not matched:
            raise _no_such_weight(parameter, pattern, names)
        found.update(matched)

    return [name for name in names if name in found]


def _ratio(l1_ratio, name):
    """Return the share of the l1 term in the penalty of a weight."""
    if isinstance(l1_ratio, dict):
        matching = [ratio for pattern, ratio in l1_ratio.items() if fnmatchcase(name, str(pattern))]
        if not matching:
            raise ValueError(
                f"penalty: l1_ratio has no entry that matches {name!r}, which has a penalty."
            )

        l1_ratio = matching[-1]

    return _checked(l1_ratio, "l1_ratio", most=1.0)


def _no_such_weight(what, name, names):
    """Return the error for a penalty of a weight that is not among `names`."""
    listed = (
        f"it can name the weights {', '.join(names)}"
        if names
        else "no trained weight can have a penalty"
    )
    return ValueError(f"penalty: {what} names {name!r}, but {listed}.")


def _checked(value, name, most=_STRENGTHS.right):
    """Return a strength or ratio as a float or an array of floats; raise an error for a bad one."""
    if type(value) is float and 0 <= value <= most:
        return value

    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or not np.all((array >= 0) & (array <= most)):
        what = "between 0 and 1" if most == 1 else "a number >= 0"
        raise ValueError(f"penalty: {name} must be {what}, got {value!r}.")

    return array.astype(np.float64) if array.ndim else float(array)


def soft_threshold(
    weight: np.ndarray,
    positive: float | np.ndarray,
    negative: float | np.ndarray,
    scratch: np.ndarray,
) -> None:
    r"""
    Move weights towards zero in place, and not beyond it.

    .. math:: w \leftarrow \max(0, w - \tau_+) + \min(0, w + \tau_-)

    A gradient step :math:`w - \eta g` along the smooth part of an objective, followed by this move
    with :math:`\tau_+ = \tau_- = \eta a`, is a proximal gradient step of the objective plus
    :math:`a \lVert w \rVert_1` (Duchi and Singer, JMLR 10, 2009). For another optimizer,
    :math:`\eta` is the distance by which a constant gradient of one moves the weight (Yun, Lozano
    and Yang, NeurIPS 2021). With momentum, it is :math:`\eta / (1 - \mu)`.

    Parameters
    ----------
    weight : ndarray
        The weights. The result overwrites them.
    positive, negative : float or ndarray
        The distance :math:`\tau_+` for positive weights and :math:`\tau_-` for negative ones, at
        least 0. Arrays have the shape of `weight`.
    scratch : ndarray
        An array of the shape and dtype of `weight`. It is overwritten.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.objective.penalties import soft_threshold
    >>> weight = np.array([-2.0, -0.5, 0.0, 1.0, 3.0])
    >>> soft_threshold(weight, 1.0, 1.0, np.empty(5))
    >>> weight
    array([-1.,  0.,  0.,  0.,  2.])
    """
    np.subtract(weight, positive, out=scratch)
    np.maximum(scratch, 0, out=scratch)
    np.add(weight, negative, out=weight)
    np.minimum(weight, 0, out=weight)
    np.add(weight, scratch, out=weight)


#: The penalties by name: the values of the estimators' parameter `penalty`.
PENALTIES: dict[str, type[_Norms]] = {"l1": L1, "l2": L2, "elasticnet": ElasticPenalty}
