"""Losses of regression on the labels -1 and 1, as `sklearn.linear_model.SGDClassifier` has them."""

from skort.objective.classification import ClassificationLoss
from skort.objective.regression import EpsilonInsensitive, Huber, SquaredEpsilonInsensitive, SquaredError

__all__ = ["LabelEpsilonInsensitive", "LabelHuber", "LabelSquaredEpsilonInsensitive", "LabelSquaredError"]

_LABEL = """\
    doubled = Mul (two, target)
    y = Sub (doubled, one)
"""


class _OfLabels(ClassificationLoss):
    """A loss of regression, the base class beside this one, whose target is the label y."""

    has_units = False
    is_robust = False

    def _nodes(self, nodes):
        return _LABEL + super()._nodes(nodes).replace("Sub (score, target)", "Sub (score, y)")


class LabelSquaredError(_OfLabels, SquaredError, name="squared_error"):
    r"""
    Half the squared distance of the score from the label: least squares classification.

    .. math:: y = 2 \, target - 1 \in \{-1, 1\}, \qquad loss = \frac{1}{2} (s - y)^2, \qquad
        \frac{\partial loss}{\partial s} = s - y

    as in `sklearn.linear_model.SGDClassifier(loss="squared_error")` and `sklearn.linear_model.RidgeClassifier`;
    several classes as in `Hinge`.

    Examples
    --------
    >>> from skort import OrtSGDClassifier
    >>> from skort.objective import LabelSquaredError
    >>> OrtSGDClassifier(loss=LabelSquaredError()).fit([[-1.0], [1.0]], [0, 1]).predict([[-2.0], [2.0]])
    array([0, 1])
    """


class LabelHuber(_OfLabels, Huber, name="huber"):
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


class LabelEpsilonInsensitive(_OfLabels, EpsilonInsensitive, name="epsilon_insensitive"):
    r"""
    The distance of the score from the label, beyond `epsilon`.

    .. math:: y = 2 \, target - 1 \in \{-1, 1\}, \qquad loss = \max(0, |s - y| - \epsilon), \qquad
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


class LabelSquaredEpsilonInsensitive(_OfLabels, SquaredEpsilonInsensitive, name="squared_epsilon_insensitive"):
    r"""
    The squared distance of the score from the label, beyond `epsilon`.

    .. math:: y = 2 \, target - 1 \in \{-1, 1\}, \qquad loss = \max(0, |s - y| - \epsilon)^2, \qquad
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
