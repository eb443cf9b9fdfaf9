"""
Losses of classification.

Two classes have one score and a target of 0 or 1. More classes have one score each and one-hot
targets.
"""

import math
from typing import ClassVar

from skort.objective.loss import FormulaLoss, FunctionSource
from skort.objective.regression import (
    EpsilonInsensitive,
    Huber,
    SquaredEpsilonInsensitive,
    SquaredError,
)

__all__ = [
    "Hinge",
    "LabelEpsilonInsensitive",
    "LabelHuber",
    "LabelSquaredEpsilonInsensitive",
    "LabelSquaredError",
    "LogLoss",
    "ModifiedHuber",
    "OneVsRestLogLoss",
    "PerceptronLoss",
    "SquaredHinge",
]


class ClassificationLoss(FormulaLoss):
    """A loss of the score of each class. The objective sums the losses over the classes."""

    estimator_types: ClassVar[tuple[str, ...]] = ("classifier",)
    one_against_rest = True

    def weight_scale(self, n_outputs: int) -> float:
        """Return 1: the losses of several scores are summed, as in separate trainings."""
        return 1.0


class LogLoss(ClassificationLoss, name="log_loss"):
    r"""
    The log-loss of the sigmoid of one score, or of the softmax of several scores.

    With one score :math:`s` and a target :math:`y \in \{0, 1\}`

    .. math:: loss(y, s) = \log(1 + e^s) - y s, \qquad
        \frac{\partial loss}{\partial s} = p - y, \quad p = \frac{1}{1 + e^{-s}},

    and with one score for each class and a one-hot target

    .. math:: loss(y, s) = -\sum_k y_k \log p_k, \qquad
        \frac{\partial loss}{\partial s_k} = p_k - y_k, \quad p_k = \frac{e^{s_k}}{\sum_j e^{s_j}}

    as `HalfBinomialLoss` and `HalfMultinomialLoss` in `sklearn._loss`; :math:`p` are the
    probabilities. The value is computed from the raw score and is finite for every finite score.

    Examples
    --------
    >>> from skort.objective import LogLoss
    >>> print(LogLoss().gradient_function(1))
    gradient (score, target) => (gradient) {
        probability = Sigmoid (score)
        gradient = Sub (probability, target)
    }
    """

    one_against_rest = False
    # The softmax of several scores is not.
    is_elementwise = False
    is_logistic = True

    # log(1 + e^s) = m + log(e^-m + e^(s-m)) with m = max(s, 0). Differentiated operator by
    # operator, this gives the sigmoid for every s, as the part through m cancels. The shorter
    # max(s, 0) + log(1 + e^-|s|) does not give it at s = 0, where all linear models start.
    _formula = """
    m = Max(score, 0)
    softplus = m + Log(Exp(-m) + Exp(score - m))
    loss = softplus - target * score
    probability = Sigmoid(score)
    gradient = probability - target
    curvature = probability * (1 - probability)
    """
    # ONNX Runtime computes LogSoftmax once for both, and Exp faster than Softmax.
    _formula_of_several: str | None = """
    loss = -ReduceSum(target * LogSoftmax(score, axis=1), [1], keepdims=1)
    gradient = Exp(LogSoftmax(score, axis=1)) - target
    probability = Softmax(score, axis=1)
    curvature = probability * (1 - probability)
    """

    # ONNX Runtime's sigmoid of a large score exceeds one by a rounding error. Exported models have
    # the names below.
    _link = """
    minus_score = -score
    scores = Concat(minus_score, score, axis=1)
    rounded = Sigmoid(scores)
    one = 1
    prediction = Min(rounded, one)
    """
    _link_of_several = "prediction = Softmax(score, axis=1)"

    def for_labels(self) -> "MultiLabelLogLoss":
        """Return the log-loss for a multi-label y."""
        return MultiLabelLogLoss()

    def softmax_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return the ONNX function `(score, target) => (probability)` of several scores, or None."""
        return None if self.is_elementwise or n_outputs == 1 else self._function(3, n_outputs)

    def curvature(self, n_outputs: int) -> float:
        """Return a bound of the second derivative: 1/4 for the sigmoid, 1/2 for the softmax."""
        # Böhning, Multinomial logistic regression algorithm, Ann. Inst. Stat. Math. 44, 1992.
        return 0.25 if n_outputs == 1 else 0.5

    def usual_curvature(self, n_outputs: int) -> float:
        """Return half the bound for sigmoids, and the root of 1 / (8 n) for the softmax."""
        # Most rows of a training are far from the score of the bound.
        is_softmax = not self.is_elementwise and n_outputs > 1
        return math.sqrt(1 / (8 * n_outputs)) if is_softmax else 0.5 * self.curvature(n_outputs)


class OneVsRestLogLoss(LogLoss):
    r"""
    The log-loss of one sigmoid for each class: each class is trained against the rest.

    Two classes are trained as in `LogLoss`. With one score :math:`s_k` for each class and a one-hot
    target, the loss is the sum over the classes,

    .. math:: loss(y, s) = \sum_k \log(1 + e^{s_k}) - y_k s_k, \qquad
        \frac{\partial loss}{\partial s_k} = \sigma(s_k) - y_k, \quad \sigma(s) = \frac{1}{1 + e^{-s}}

    as in `sklearn.linear_model.SGDClassifier(loss="log_loss")`, and in
    `LogisticRegression(solver="liblinear")` until scikit-learn 1.7. The probability of a class is
    :math:`\sigma(s_k) / \sum_j \sigma(s_j)`.

    Examples
    --------
    >>> from skort import OrtSGDClassifier
    >>> from skort.objective import OneVsRestLogLoss
    >>> model = OrtSGDClassifier(loss=OneVsRestLogLoss(), eta0=0.5, random_state=0)
    >>> model.fit([[-4.0, 1.0], [0.0, -4.0], [4.0, 1.0]], [0, 1, 2]).predict(
    ...     [[-2.0, 1.0], [2.0, 1.0]]
    ... )
    array([0, 2])
    """

    __module__ = "skort.objective"
    one_against_rest = True
    is_elementwise = True

    _formula_of_several = None
    # The softmax of logarithms does not divide zero by zero, even if all sigmoids underflow.
    _link_of_several = """
    zero = 0
    one = 1
    distance = Abs(score)
    minus_distance = -distance
    small = Exp(minus_distance)
    sum = one + small
    log_sum = Log(sum)
    below = Min(score, zero)
    log_sigmoid = below - log_sum
    prediction = Softmax(log_sigmoid, axis=1)
    """

    def curvature(self, n_outputs: int) -> float:
        """Return the largest second derivative of a row's loss by its score."""
        return super().curvature(1)


class MultiLabelLogLoss(OneVsRestLogLoss):
    """
    The `OneVsRestLogLoss` for a multi-label y.

    The probability of a label is the sigmoid of its score.
    """

    _link = _link_of_several = """
    rounded = Sigmoid(score)
    one = 1
    prediction = Min(rounded, one)
    """


class Hinge(ClassificationLoss, name="hinge"):
    r"""
    The hinge loss of a linear support vector machine.

    With :math:`y = 2 \, target - 1 \in \{-1, 1\}` and :math:`z = y s`, for every score :math:`s`,

    .. math:: loss = \max(0, 1 - z), \qquad
        \frac{\partial loss}{\partial s} = \begin{cases} -y & z \le 1 \\ 0 & z > 1 \end{cases}

    as in `sklearn.linear_model.SGDClassifier(loss="hinge")`. Several classes are trained one
    against the rest: the losses of their scores are added up. So each class is a problem of two
    classes, as in `SGDClassifier`.

    Examples
    --------
    >>> from skort import OrtSGDClassifier
    >>> model = OrtSGDClassifier(loss="hinge").fit([[-1.0], [-2.0], [1.0], [3.0]], [0, 0, 1, 1])
    >>> model.predict([[-1.0], [1.0]]), hasattr(model, "predict_proba")
    (array([0, 1]), False)
    """

    typical_curvature: ClassVar[float | None] = 1.0
    smooth_instead: ClassVar[str | None] = "squared_hinge"
    _formula = """
    y = 2 * target - 1
    z = y * score
    loss = Where(z <= 1, 1 - z, 0)
    gradient = Where(z <= 1, -y, 0)
    """


class SquaredHinge(ClassificationLoss, name="squared_hinge"):
    r"""
    The squared hinge loss, as in `sklearn.svm.LinearSVC`.

    .. math:: loss = \max(0, 1 - z)^2, \qquad \frac{\partial loss}{\partial s} = -2 y \max(0, 1 - z)

    as in `sklearn.linear_model.SGDClassifier(loss="squared_hinge")`; y, z and several classes are
    as in `Hinge`.

    Examples
    --------
    >>> from skort import OrtSGDClassifier
    >>> OrtSGDClassifier(loss="squared_hinge").fit([[-1.0], [1.0]], [0, 1]).predict([[-2.0], [2.0]])
    array([0, 1])
    """

    _curvature = 2.0
    _formula = """
    y = 2 * target - 1
    positive = Relu(1 - y * score)
    loss = positive * positive
    gradient = -2 * (y * positive)
    curvature = Where(positive <= 0, 0, 2)
    """


class ModifiedHuber(ClassificationLoss, name="modified_huber"):
    r"""
    The squared hinge loss, but linear far on the wrong side: robust, and with probabilities.

    .. math:: loss = \begin{cases} \max(0, 1 - z)^2 & z \ge -1 \\ -4 z & z < -1 \end{cases}, \qquad
        \frac{\partial loss}{\partial s} = -2 y \min(2, \max(0, 1 - z))

    as in `sklearn.linear_model.SGDClassifier(loss="modified_huber")`. The probability of a class is
    :math:`(\max(-1, \min(s, 1)) + 1) / 2` (Zadrozny and Elkan, KDD 2002). With several classes it
    is divided by the sum over them; if that is zero, all probabilities are equal. y, z and several
    classes are as in `Hinge`.

    Examples
    --------
    >>> from skort import OrtSGDClassifier
    >>> model = OrtSGDClassifier(loss="modified_huber", alpha=0).fit([[-1.0], [1.0]], [0, 1])
    >>> model.predict_proba([[-2.0], [0.0]]).round(2)
    array([[1. , 0. ],
           [0.5, 0.5]])
    """

    _curvature = 2.0
    # With m = max(0, 1 - z) and c = min(2, m), c (2 m - c) is m^2 up to m = 2, and 4 m - 4 beyond.
    # Differentiated operator by operator it gives 2 c for every m.
    _formula = """
    y = 2 * target - 1
    positive = Relu(1 - y * score)
    clipped = Min(positive, 2)
    loss = clipped * (2 * positive - clipped)
    gradient = -2 * (y * clipped)
    curvature = Where(positive * (2 - clipped) <= 0, 0, 2)
    """

    _link = """
    half = 0.5
    one = 1
    minus_one = -one
    clipped = Clip(score, minus_one, one)
    half_clipped = half * clipped
    first = half - half_clipped
    second = half + half_clipped
    prediction = Concat(first, second, axis=1)
    """
    _link_of_several = """
    zero = 0
    half = 0.5
    one = 1
    columns = [1]
    minus_one = -one
    clipped = Clip(score, minus_one, one)
    half_clipped = half * clipped
    share = half + half_clipped
    share_sum = ReduceSum(share, columns, keepdims=1)
    none = share_sum == zero
    part = Where(none, one, share)
    part_sum = ReduceSum(part, columns, keepdims=1)
    prediction = part / part_sum
    """


class PerceptronLoss(ClassificationLoss, name="perceptron"):
    r"""
    The loss of the perceptron: scores on the wrong side cost their distance from zero.

    .. math:: loss = \max(0, -z), \qquad
        \frac{\partial loss}{\partial s} = \begin{cases} -y & z \le 0 \\ 0 & z > 0 \end{cases}

    as in `sklearn.linear_model.SGDClassifier(loss="perceptron")`; y, z and several classes are as
    in `Hinge`. If all weights are zero, the loss is zero, its smallest value. So `fit` does not
    warn if the training ends no better than it began.

    Examples
    --------
    >>> from skort import OrtSGDClassifier
    >>> OrtSGDClassifier(loss="perceptron").fit([[-1.0], [1.0]], [0, 1]).predict([[-2.0], [2.0]])
    array([0, 1])
    """

    is_least_at_zero = True
    typical_curvature: ClassVar[float | None] = 1.0
    smooth_instead: ClassVar[str | None] = "squared_hinge"
    _formula = """
    y = 2 * target - 1
    z = y * score
    loss = Where(z <= 0, -z, 0)
    gradient = Where(z <= 0, -y, 0)
    """


class _OfLabels(ClassificationLoss):
    """A mixin for a regression loss: the target of the loss is the label y."""

    has_units = False
    is_robust = False

    def _formula_of(self, n_outputs):
        return (
            "    y = 2 * target - "
            f"1{super()._formula_of(n_outputs).replace('score - target', 'score - y')}"
        )


class LabelSquaredError(_OfLabels, SquaredError, name="squared_error"):
    r"""
    Half the squared distance of the score from the label: `SquaredError` of
    :math:`y = 2 \, target - 1 \in \{-1, 1\}`.

    It is least squares classification, as in
    `sklearn.linear_model.SGDClassifier(loss="squared_error")` and
    `sklearn.linear_model.RidgeClassifier`. Several classes are trained as in `Hinge`.

    Examples
    --------
    >>> from skort import OrtSGDClassifier
    >>> from skort.objective import LabelSquaredError
    >>> OrtSGDClassifier(loss=LabelSquaredError()).fit([[-1.0], [1.0]], [0, 1]).predict(
    ...     [[-2.0], [2.0]]
    ... )
    array([0, 1])
    """


class LabelHuber(_OfLabels, Huber, name="huber"):
    r"""
    The `Huber` loss of the distance of the score from the label
    :math:`y = 2 \, target - 1 \in \{-1, 1\}`.

    It is the loss of `sklearn.linear_model.SGDClassifier(loss="huber")`. Several classes are
    trained as in `Hinge`.

    Parameters
    ----------
    epsilon : float, default=0.1
        The distance from the label beyond which the loss is linear; positive.

    Examples
    --------
    >>> from skort.objective import LabelHuber
    >>> LabelHuber(epsilon=0.5)
    LabelHuber(epsilon=0.5)
    """


class LabelEpsilonInsensitive(_OfLabels, EpsilonInsensitive, name="epsilon_insensitive"):
    r"""
    `EpsilonInsensitive` of the label:
    the distance from :math:`y = 2 \, target - 1 \in \{-1, 1\}` beyond `epsilon`.

    It is the loss of `sklearn.linear_model.SGDClassifier(loss="epsilon_insensitive")`. Several
    classes are trained as in `Hinge`.

    Parameters
    ----------
    epsilon : float, default=0.1
        The distance from the label within which the loss is zero; not negative.

    Examples
    --------
    >>> from skort.objective import LabelEpsilonInsensitive
    >>> LabelEpsilonInsensitive(epsilon=0.5)
    LabelEpsilonInsensitive(epsilon=0.5)
    """


class LabelSquaredEpsilonInsensitive(
    _OfLabels, SquaredEpsilonInsensitive, name="squared_epsilon_insensitive"
):
    r"""
    `SquaredEpsilonInsensitive` of the label :math:`y = 2 \, target - 1 \in \{-1, 1\}`.

    It is the loss of `sklearn.linear_model.SGDClassifier(loss="squared_epsilon_insensitive")`.
    Several classes are trained as in `Hinge`.

    Parameters
    ----------
    epsilon : float, default=0.1
        The distance from the label within which the loss is zero; not negative.

    Examples
    --------
    >>> from skort.objective import LabelSquaredEpsilonInsensitive
    >>> LabelSquaredEpsilonInsensitive(epsilon=0.5)
    LabelSquaredEpsilonInsensitive(epsilon=0.5)
    """
