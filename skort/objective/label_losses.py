"""
Losses of regression on the labels -1 and 1, as `sklearn.linear_model.SGDClassifier` has them.

Targets are those of all classification losses: 0 or 1 for two classes, one-hot for more.
"""

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from skort.objective.classification import ClassificationLoss

__all__ = ["LabelEpsilonInsensitive", "LabelHuber", "LabelSquaredEpsilonInsensitive", "LabelSquaredError"]

_LARGEST = float(np.finfo(np.float32).max)

_RESIDUAL = """\
    one = Constant <value = float {1}> ()
    two = Constant <value = float {2}> ()
    doubled = Mul (two, target)
    y = Sub (doubled, one)
    residual = Sub (score, y)
"""


class LabelSquaredError(ClassificationLoss, name="squared_error"):
    r"""
    Half the squared distance of the score from the label: least squares classification.

    With :math:`y = 2 \, target - 1 \in \{-1, 1\}`, for every score :math:`s`,

    .. math:: loss = \frac{1}{2} (s - y)^2, \qquad \frac{\partial loss}{\partial s} = s - y

    as in `sklearn.linear_model.SGDClassifier(loss="squared_error")` and `sklearn.linear_model.RidgeClassifier`;
    several classes as in `Hinge`.

    Examples
    --------
    >>> from skort import OrtSGDClassifier
    >>> from skort.objective import LabelSquaredError
    >>> OrtSGDClassifier(loss=LabelSquaredError()).fit([[-1.0], [1.0]], [0, 1]).predict([[-2.0], [2.0]])
    array([0, 1])
    """

    _curvature = 1.0
    _value = f"""\
label_squared_error (score, target) => (loss) {{
    half = Constant <value = float {{0.5}}> ()
{_RESIDUAL}    square = Mul (residual, residual)
    loss = Mul (half, square)
}}"""
    _gradient = f"""\
label_squared_error_gradient (score, target) => (gradient) {{
{_RESIDUAL}    gradient = Identity (residual)
}}"""


class LabelHuber(ClassificationLoss, name="huber"):
    r"""
    The Huber loss of the distance of the score from the label.

    With :math:`y = 2 \, target - 1 \in \{-1, 1\}` and :math:`r = s - y`, for every score :math:`s`,

    .. math:: loss = \begin{cases} \frac{1}{2} r^2 & |r| \le \epsilon \\
        \epsilon |r| - \frac{1}{2} \epsilon^2 & |r| > \epsilon \end{cases}, \qquad
        \frac{\partial loss}{\partial s} = \max(-\epsilon, \min(r, \epsilon))

    as in `sklearn.linear_model.SGDClassifier(loss="huber")`; several classes as in `Hinge`.

    Parameters
    ----------
    epsilon : float, default=0.1
        Distance from which on the loss is linear, positive.

    Examples
    --------
    >>> from skort.objective import LabelHuber
    >>> LabelHuber(epsilon=0.5)
    LabelHuber(epsilon=0.5)
    """

    shared_parameters = ("epsilon",)
    _parameter_constraints = {"epsilon": [Interval(Real, 0, _LARGEST, closed="right")]}
    _curvature = 1.0
    # c (r - c / 2) with r clipped to c: differentiated as it stands it gives c for every r.
    _clipped = f"""\
    epsilon = Constant <value = float {{%(epsilon)r}}> ()
    minus_epsilon = Neg (epsilon)
{_RESIDUAL}    below = Min (residual, epsilon)
"""
    _value = f"""\
label_huber (score, target) => (loss) {{
    half = Constant <value = float {{0.5}}> ()
{_clipped}    clipped = Max (below, minus_epsilon)
    half_clipped = Mul (half, clipped)
    rest = Sub (residual, half_clipped)
    loss = Mul (clipped, rest)
}}"""
    _gradient = f"""\
label_huber_gradient (score, target) => (gradient) {{
{_clipped}    gradient = Max (below, minus_epsilon)
}}"""

    def __init__(self, epsilon=0.1):
        self.epsilon = epsilon


_EXCESS = f"""\
    epsilon = Constant <value = float {{%(epsilon)r}}> ()
{_RESIDUAL}    distance = Abs (residual)
    beyond = Sub (distance, epsilon)
    excess = Relu (beyond)
"""


class LabelEpsilonInsensitive(ClassificationLoss, name="epsilon_insensitive"):
    r"""
    The distance of the score from the label, beyond `epsilon`.

    With :math:`y = 2 \, target - 1 \in \{-1, 1\}`, for every score :math:`s`,

    .. math:: loss = \max(0, |s - y| - \epsilon), \qquad
        \frac{\partial loss}{\partial s} = \begin{cases} sign(s - y) & |s - y| > \epsilon \\ 0 & otherwise \end{cases}

    as in `sklearn.linear_model.SGDClassifier(loss="epsilon_insensitive")`; several classes as in `Hinge`.

    Parameters
    ----------
    epsilon : float, default=0.1
        Distance that costs nothing, not negative.

    Examples
    --------
    >>> from skort.objective import LabelEpsilonInsensitive
    >>> LabelEpsilonInsensitive(epsilon=0.5)
    LabelEpsilonInsensitive(epsilon=0.5)
    """

    shared_parameters = ("epsilon",)
    _parameter_constraints = {"epsilon": [Interval(Real, 0, _LARGEST, closed="both")]}
    typical_curvature = 1.0
    _value = f"""\
label_epsilon_insensitive (score, target) => (loss) {{
{_EXCESS}    loss = Identity (excess)
}}"""
    _gradient = f"""\
label_epsilon_insensitive_gradient (score, target) => (gradient) {{
{_EXCESS}    direction = Sign (residual)
    counted = Sign (excess)
    gradient = Mul (direction, counted)
}}"""

    def __init__(self, epsilon=0.1):
        self.epsilon = epsilon


class LabelSquaredEpsilonInsensitive(LabelEpsilonInsensitive, name="squared_epsilon_insensitive"):
    r"""
    The squared distance of the score from the label, beyond `epsilon`.

    With :math:`y = 2 \, target - 1 \in \{-1, 1\}`, for every score :math:`s`,

    .. math:: loss = \max(0, |s - y| - \epsilon)^2, \qquad
        \frac{\partial loss}{\partial s} = 2 \max(0, |s - y| - \epsilon) \, sign(s - y)

    as in `sklearn.linear_model.SGDClassifier(loss="squared_epsilon_insensitive")`; several classes as in `Hinge`.

    Parameters
    ----------
    epsilon : float, default=0.1
        Distance that costs nothing, not negative.

    Examples
    --------
    >>> from skort.objective import LabelSquaredEpsilonInsensitive
    >>> LabelSquaredEpsilonInsensitive(epsilon=0.5)
    LabelSquaredEpsilonInsensitive(epsilon=0.5)
    """

    _curvature = 2.0
    _value = f"""\
label_squared_epsilon_insensitive (score, target) => (loss) {{
{_EXCESS}    loss = Mul (excess, excess)
}}"""
    _gradient = f"""\
label_squared_epsilon_insensitive_gradient (score, target) => (gradient) {{
{_EXCESS}    direction = Sign (residual)
    signed = Mul (direction, excess)
    gradient = Mul (two, signed)
}}"""
