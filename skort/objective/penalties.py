r"""
Penalties of the weights that multiply inputs.

A penalty says how strong the l1 and the l2 term of each weight are:

.. math:: penalty(w) = a \lVert w \rVert_1 + \frac{b}{2} \lVert w \rVert_2^2
"""

from fnmatch import fnmatchcase
from numbers import Real
from typing import NamedTuple, Protocol

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

__all__ = [
    "L1",
    "L2",
    "PENALTIES",
    "ElasticPenalty",
    "ModelPenalty",
    "Penalty",
    "Strength",
    "l1_text",
    "l1_vector_text",
    "l2_gradient_text",
    "l2_text",
    "l2_vector_text",
    "soft_threshold",
    "soft_threshold_text",
]

_STRENGTHS = Interval(Real, 0, float(np.finfo(np.float32).max), closed="both")
_ALPHA = [_STRENGTHS, dict]


class Strength(NamedTuple):
    """How strong the two terms of one weight's penalty are: numbers, or arrays that broadcast to the weight's shape."""

    l1: float
    l2: float


class Penalty(Protocol):
    """What the solvers need of a penalty."""

    def strengths(self, names: tuple[str, ...]) -> dict[str, Strength]:
        """Return the strengths of those of the weights `names` that have a penalty, by name."""


class _OneNorm(BaseEstimator):
    #: Parameters that the estimators have, too: a penalty that is given by its name gets theirs.
    shared_parameters = ("alpha",)
    _parameter_constraints = {"alpha": _ALPHA}

    def __init__(self, alpha=1e-4):
        self.alpha = alpha

    def strengths(self, names):
        """Return the strengths of the weights `names` that have a penalty, by name."""
        return _strengths(self.alpha, self._l1_ratio, names)


class L1(_OneNorm):
    r"""
    The sum of the absolute weights, which makes many of them zero.

    .. math:: penalty(w) = \alpha \sum_j |w_j|

    as in `sklearn.linear_model.SGDRegressor(penalty="l1")`. Weights become exactly zero, by
    `soft_threshold` after every update; solver "session" follows the subgradient :math:`\alpha \, sign(w)`, which
    leaves small numbers instead.

    Parameters
    ----------
    alpha : float or dict, default=1e-4
        Strength, not negative; or the strengths of some weights, as for `ElasticPenalty`.

    Examples
    --------
    >>> from skort.objective import L1
    >>> L1(alpha=0.5).strengths(("coef",))
    {'coef': Strength(l1=0.5, l2=0.0)}
    """

    _l1_ratio = 1.0


class L2(_OneNorm):
    r"""
    Half the squared Euclidean norm, which keeps weights small.

    .. math:: penalty(w) = \frac{\alpha}{2} \sum_j w_j^2, \qquad \frac{\partial penalty}{\partial w} = \alpha w

    as in `sklearn.linear_model.SGDRegressor(penalty="l2")`.

    Parameters
    ----------
    alpha : float or dict, default=1e-4
        Strength, not negative; or the strengths of some weights, as for `ElasticPenalty`.

    Examples
    --------
    >>> from skort.objective import L2
    >>> L2(alpha=0.5).strengths(("coef",))
    {'coef': Strength(l1=0.0, l2=0.5)}
    """

    _l1_ratio = 0.0


class ElasticPenalty(BaseEstimator):
    r"""
    Both norms, one strength for all weights or one each.

    .. math:: penalty(w) = \alpha \left( \rho \sum_j |w_j| + \frac{1 - \rho}{2} \sum_j w_j^2 \right)

    with :math:`\rho` = `l1_ratio`, as in `sklearn.linear_model.SGDRegressor(penalty="elasticnet")`. The first sum as in
    `L1`.

    Parameters
    ----------
    alpha : float or dict, default=1e-4
        Strength, not negative. A dict from the names of weights, or glob patterns such as ``"coefficient*"``, to their
        strengths: of the entries that match a weight the last one counts, a weight that none matches has no penalty.
        `weights_` of a fitted estimator shows the names; intercepts never have a penalty.
    l1_ratio : float, default=0.15
        Between 0, the squared norm alone, and 1, the absolute one alone.

    Examples
    --------
    >>> from skort.objective import ElasticPenalty
    >>> penalty = ElasticPenalty({"coefficient*": 1e-3, "coefficient1": 0.5}, l1_ratio=0)
    >>> penalty.strengths(("coefficient", "coefficient1"))
    {'coefficient': Strength(l1=0.0, l2=0.001), 'coefficient1': Strength(l1=0.0, l2=0.5)}
    """

    shared_parameters = ("alpha", "l1_ratio")
    _parameter_constraints = {"alpha": _ALPHA, "l1_ratio": [Interval(Real, 0, 1, closed="both")]}

    def __init__(self, alpha=1e-4, l1_ratio=0.15):
        self.alpha = alpha
        self.l1_ratio = l1_ratio

    def strengths(self, names):
        """Return the strengths of the weights `names` that have a penalty, by name."""
        return _strengths(self.alpha, float(self.l1_ratio), names)


class ModelPenalty:
    """
    The penalty of a model inside an estimator, where numbers for all coefficients do not say it.

    Parameters
    ----------
    coefficients : Strength
        Of each weight that multiplies inputs.
    intercepts : Strength or None
        Of each intercept, as in liblinear's models. None: they have no penalty.
    """

    def __init__(self, coefficients: Strength, intercepts: Strength | None = None):
        self.coefficients, self.intercepts = coefficients, intercepts

    def strengths(self, names):
        """Return the strengths of the weights `names` that have a penalty, by name."""
        return dict.fromkeys(names, self.coefficients)

    def intercept_strengths(self, names):
        """Return the same for intercepts."""
        return {} if self.intercepts is None else dict.fromkeys(names, self.intercepts)


def _strengths(alpha, l1_ratio, names):
    alphas = _alphas(alpha, names) if isinstance(alpha, dict) else dict.fromkeys(names, float(alpha))
    return {name: Strength(a * l1_ratio, a * (1 - l1_ratio)) for name, a in alphas.items() if a > 0}


def _alphas(by_pattern, names):
    """Return the strengths of the weights `names` that a pattern matches."""
    alphas = {}
    for pattern, value in by_pattern.items():
        if not _STRENGTHS.is_satisfied_by(value):
            raise ValueError(f"penalty: alpha[{pattern!r}] must be a number not negative, got {value!r}.")
        matched = [name for name in names if fnmatchcase(name, str(pattern))]
        if not matched:
            raise ValueError(f"penalty: alpha names {pattern!r}, but the weights it can be of are {', '.join(names)}.")
        alphas.update(dict.fromkeys(matched, float(value)))
    return alphas


def l1_text(strength):
    """Return the ONNX function `(weight) => (penalty)`: `strength` times the sum of the absolute weights."""
    return """\
l1 (weight) => (penalty) {
    strength = Constant <value = float {%r}> ()
    absolute = Abs (weight)
    sum = ReduceSum <keepdims = 0> (absolute)
    penalty = Mul (strength, sum)
}""" % float(strength)


def l2_text(strength):
    """Return the ONNX function `(weight) => (penalty)`: half `strength` times the sum of the squared weights."""
    return """\
l2 (weight) => (penalty) {
    strength = Constant <value = float {%r}> ()
    half = Constant <value = float {0.5}> ()
    half_strength = Mul (half, strength)
    square = Mul (weight, weight)
    sum = ReduceSum <keepdims = 0> (square)
    penalty = Mul (half_strength, sum)
}""" % float(strength)


def l2_gradient_text(strength):
    """Return the ONNX function `(weight) => (gradient)`: the derivative of `l2_text` by `weight`."""
    return """\
l2_gradient (weight) => (gradient) {
    strength = Constant <value = float {%r}> ()
    gradient = Mul (strength, weight)
}""" % float(strength)


def l1_vector_text():
    """Return the ONNX function `(weights, strengths) => (penalty)` of vectors, each weight with its own strength."""
    return """\
l1_vector (weights, strengths) => (penalty) {
    absolute = Abs (weights)
    products = Mul (strengths, absolute)
    penalty = ReduceSum <keepdims = 0> (products)
}"""


def l2_vector_text():
    """Return `(weights, strengths) => (penalty, gradient)` of vectors, each weight with its own strength."""
    return """\
l2_vector (weights, strengths) => (penalty, gradient) {
    half = Constant <value = float {0.5}> ()
    gradient = Mul (strengths, weights)
    products = Mul (gradient, weights)
    sum = ReduceSum <keepdims = 0> (products)
    penalty = Mul (half, sum)
}"""


def soft_threshold_text():
    """Return `soft_threshold` as the ONNX function `(weight, threshold) => (moved)`."""
    return """\
soft_threshold (weight, threshold) => (moved) {
    minus_threshold = Neg (threshold)
    below = Min (weight, threshold)
    inside = Max (below, minus_threshold)
    moved = Sub (weight, inside)
}"""


def soft_threshold(weight, threshold, scratch):
    r"""
    Move weights towards zero by `threshold`, those that are nearer to exactly zero, in place.

    .. math:: w \leftarrow sign(w) \max(0, |w| - \tau)

    After a gradient step :math:`w - \eta g` along the smooth part of an objective, :math:`\tau = \eta a` makes it a
    proximal gradient step of the objective plus :math:`a \lVert w \rVert_1`. After the step of another optimizer,
    :math:`\eta` is how far a constant gradient of one moves the weight: with momentum :math:`\eta / (1 - \mu)`, with
    Adam the factor of the first moment. A weight so rests where the gradient and :math:`a` balance, whatever the
    optimizer.

    Parameters
    ----------
    weight : ndarray
    threshold : float or ndarray
        Not negative; an array has the shape of `weight`.
    scratch : ndarray
        Of the same shape and dtype; overwritten.

    References
    ----------
    Duchi and Singer, Efficient online and batch learning using forward backward splitting, JMLR 10 (2009); for steps
    that differ by weight, Yun, Lozano and Yang, Adaptive proximal gradient methods for structured neural networks,
    NeurIPS 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.objective.penalties import soft_threshold
    >>> weight = np.array([-2.0, -0.5, 0.0, 1.0, 3.0])
    >>> soft_threshold(weight, 1.0, np.empty(5))
    >>> weight
    array([-1.,  0.,  0.,  0.,  2.])
    """
    # w minus w clipped to [-threshold, threshold]
    np.minimum(weight, threshold, out=scratch)
    np.maximum(scratch, -threshold, out=scratch)
    np.subtract(weight, scratch, out=weight)


#: The penalties by name: the values of the estimators' parameter `penalty`.
PENALTIES = {"l1": L1, "l2": L2, "elasticnet": ElasticPenalty}
