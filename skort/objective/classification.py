"""
Losses of classification, by scikit-learn's names and formulas.

Two classes have one score and the target 0 or 1. More classes have one score each and a one-hot target.
"""

from skort.objective.loss import TextLoss

__all__ = ["Hinge", "ModifiedHuber", "PerceptronLoss", "SquaredHinge"]


class ClassificationLoss(TextLoss):
    """A loss of the score of each class, of which the objective is the sum."""

    estimator_types = ("classifier",)
    one_against_rest = True

    def weight_scale(self, n_outputs: int) -> float:
        """Return 1: the losses of several scores are summed, as if each were trained alone on the same rows."""
        return 1.0


_MARGIN = """\
    doubled = Mul (two, target)
    y = Sub (doubled, one)
    z = Mul (y, score)
"""


class Hinge(ClassificationLoss, name="hinge"):
    r"""
    The hinge loss of a linear support vector machine.

    With :math:`y = 2 \, target - 1 \in \{-1, 1\}` and :math:`z = y s`, for every score :math:`s`,

    .. math:: loss = \max(0, 1 - z), \qquad
        \frac{\partial loss}{\partial s} = \begin{cases} -y & z \le 1 \\ 0 & z > 1 \end{cases}

    as in `sklearn.linear_model.SGDClassifier(loss="hinge")`. Several classes are trained one against the rest: the
    losses of their scores are added up. So each class is a problem of two classes, as in `SGDClassifier`.

    Examples
    --------
    >>> from skort import OrtSGDClassifier
    >>> model = OrtSGDClassifier(loss="hinge").fit([[-1.0], [-2.0], [1.0], [3.0]], [0, 0, 1, 1])
    >>> model.predict([[-1.0], [1.0]]), hasattr(model, "predict_proba")
    (array([0, 1]), False)
    """

    typical_curvature = 1.0
    _given = f"""\
{_MARGIN}    violated = LessOrEqual (z, one)
"""
    _value = """\
hinge (score, target) => (loss) {
    missing = Sub (one, z)
    loss = Where (violated, missing, zero)
}"""
    _gradient = """\
hinge_gradient (score, target) => (gradient) {
    minus_y = Neg (y)
    gradient = Where (violated, minus_y, zero)
}"""


class SquaredHinge(ClassificationLoss, name="squared_hinge"):
    r"""
    The squared hinge loss, as in `sklearn.svm.LinearSVC`.

    With :math:`y = 2 \, target - 1 \in \{-1, 1\}` and :math:`z = y s`, for every score :math:`s`,

    .. math:: loss = \max(0, 1 - z)^2, \qquad \frac{\partial loss}{\partial s} = -2 y \max(0, 1 - z)

    as in `sklearn.linear_model.SGDClassifier(loss="squared_hinge")`; several classes as in `Hinge`.

    Examples
    --------
    >>> from skort import OrtSGDClassifier
    >>> OrtSGDClassifier(loss="squared_hinge").fit([[-1.0], [1.0]], [0, 1]).predict([[-2.0], [2.0]])
    array([0, 1])
    """

    _curvature = 2.0
    _given = f"""\
{_MARGIN}    missing = Sub (one, z)
    positive = Relu (missing)
"""
    _value = """\
squared_hinge (score, target) => (loss) {
    loss = Mul (positive, positive)
}"""
    _gradient = """\
squared_hinge_gradient (score, target) => (gradient) {
    signed = Mul (y, positive)
    minus_two = Neg (two)
    gradient = Mul (minus_two, signed)
}"""


class ModifiedHuber(ClassificationLoss, name="modified_huber"):
    r"""
    The squared hinge loss, linear for scores far on the wrong side: outliers pull less, and there are probabilities.

    With :math:`y = 2 \, target - 1 \in \{-1, 1\}` and :math:`z = y s`, for every score :math:`s`,

    .. math:: loss = \begin{cases} \max(0, 1 - z)^2 & z \ge -1 \\ -4 z & z < -1 \end{cases}, \qquad
        \frac{\partial loss}{\partial s} = -2 y \min(2, \max(0, 1 - z))

    as in `sklearn.linear_model.SGDClassifier(loss="modified_huber")`. The probability of a class is
    :math:`(\max(-1, \min(s, 1)) + 1) / 2`. With several classes it is divided by the sum over them; if that is zero,
    all probabilities are equal. Several classes are trained as in `Hinge`.

    References
    ----------
    Zadrozny and Elkan, Transforming classifier scores into accurate multiclass probability estimates, KDD 2002.

    Examples
    --------
    >>> from skort import OrtSGDClassifier
    >>> model = OrtSGDClassifier(loss="modified_huber", alpha=0).fit([[-1.0], [1.0]], [0, 1])
    >>> model.predict_proba([[-2.0], [0.0]]).round(2)
    array([[1. , 0. ],
           [0.5, 0.5]])
    """

    _curvature = 2.0
    # With m = max(0, 1 - z) and c = min(2, m), c (2 m - c) is m^2 up to m = 2, and 4 m - 4 beyond. Differentiated
    # operator by operator it gives 2 c for every m.
    _given = f"""\
{_MARGIN}    missing = Sub (one, z)
    positive = Relu (missing)
    clipped = Min (positive, two)
"""
    _value = """\
modified_huber (score, target) => (loss) {
    double_positive = Mul (two, positive)
    rest = Sub (double_positive, clipped)
    loss = Mul (clipped, rest)
}"""
    _gradient = """\
modified_huber_gradient (score, target) => (gradient) {
    signed = Mul (y, clipped)
    minus_two = Neg (two)
    gradient = Mul (minus_two, signed)
}"""

    def inverse_link_function(self, n_outputs: int) -> str:
        """Return the clipped scores as probabilities, `(score) => (probabilities)`."""
        if n_outputs == 1:
            return """\
clipped_score (score) => (probabilities) {
    half = Constant <value = float {0.5}> ()
    one = Constant <value = float {1}> ()
    minus_one = Neg (one)
    clipped = Clip (score, minus_one, one)
    half_clipped = Mul (half, clipped)
    first = Sub (half, half_clipped)
    second = Add (half, half_clipped)
    probabilities = Concat <axis = 1> (first, second)
}"""
        return """\
clipped_scores (score) => (probabilities) {
    zero = Constant <value = float {0}> ()
    half = Constant <value = float {0.5}> ()
    one = Constant <value = float {1}> ()
    columns = Constant <value = int64[1] {1}> ()
    minus_one = Neg (one)
    clipped = Clip (score, minus_one, one)
    half_clipped = Mul (half, clipped)
    share = Add (half, half_clipped)
    share_sum = ReduceSum <keepdims = 1> (share, columns)
    none = Equal (share_sum, zero)
    part = Where (none, one, share)
    part_sum = ReduceSum <keepdims = 1> (part, columns)
    probabilities = Div (part, part_sum)
}"""


class PerceptronLoss(ClassificationLoss, name="perceptron"):
    r"""
    The loss of the perceptron: scores on the wrong side cost their distance from zero.

    With :math:`y = 2 \, target - 1 \in \{-1, 1\}` and :math:`z = y s`, for every score :math:`s`,

    .. math:: loss = \max(0, -z), \qquad
        \frac{\partial loss}{\partial s} = \begin{cases} -y & z \le 0 \\ 0 & z > 0 \end{cases}

    as in `sklearn.linear_model.SGDClassifier(loss="perceptron")`; several classes as in `Hinge`. The loss is smallest,
    zero, if all weights are zero. So a training is not compared with its initial weights.

    Examples
    --------
    >>> from skort import OrtSGDClassifier
    >>> OrtSGDClassifier(loss="perceptron").fit([[-1.0], [1.0]], [0, 1]).predict([[-2.0], [2.0]])
    array([0, 1])
    """

    is_least_at_zero = True
    typical_curvature = 1.0
    _given = f"""\
{_MARGIN}    wrong = LessOrEqual (z, zero)
"""
    _value = """\
perceptron (score, target) => (loss) {
    minus_z = Neg (z)
    loss = Where (wrong, minus_z, zero)
}"""
    _gradient = """\
perceptron_gradient (score, target) => (gradient) {
    minus_y = Neg (y)
    gradient = Where (wrong, minus_y, zero)
}"""
