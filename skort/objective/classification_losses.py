"""
Losses of classification, by scikit-learn's names and formulas.

Two classes have one score and the target 0 or 1. More classes have one score each and a one-hot target.
"""

from skort.objective.base import TextLoss

__all__ = [
    "ClassificationLoss",
    "Hinge",
    "LogLoss",
    "ModifiedHuber",
    "MultiLabelLogLoss",
    "OneVsRestLogLoss",
    "PerceptronLoss",
    "SquaredHinge",
]


class ClassificationLoss(TextLoss):
    """A loss of the score of each class, of which the objective is the sum."""

    estimator_types = ("classifier",)
    one_against_rest = True

    def weight_scale(self, n_outputs: int) -> float:
        """Return 1: the losses of several scores are summed, as if each were trained alone on the same rows."""
        return 1.0


class LogLoss(ClassificationLoss):
    r"""
    The log-loss, of the sigmoid of one score or the softmax of several.

    With one score :math:`s` and a target :math:`y \in \{0, 1\}`

    .. math:: loss(y, s) = \log(1 + e^s) - y s, \qquad
        \frac{\partial loss}{\partial s} = p - y, \quad p = \frac{1}{1 + e^{-s}},

    and with one score a class and a one-hot target

    .. math:: loss(y, s) = -\sum_k y_k \log p_k, \qquad
        \frac{\partial loss}{\partial s_k} = p_k - y_k, \quad p_k = \frac{e^{s_k}}{\sum_j e^{s_j}}

    as `HalfBinomialLoss` and `HalfMultinomialLoss` in `sklearn._loss`; :math:`p` are the probabilities. The value is
    computed from the raw score and is finite for every finite score.

    References
    ----------
    .. [1] Böhning, D., Multinomial logistic regression algorithm, Annals of the Institute of Statistical Mathematics
       44, 1992.

    Examples
    --------
    >>> from skort.objective import LogLoss
    >>> print(LogLoss().gradient_function(1))
    log_loss_gradient (score, target) => (gradient) {
        probability = Sigmoid (score)
        gradient = Sub (probability, target)
    }
    """

    one_against_rest = False

    def value_function(self, n_outputs: int) -> str:
        """Return the ONNX function `(score, target) => (loss)`."""
        # log(1 + e^s) = m + log(e^-m + e^(s-m)) with m = max(s, 0). Differentiated operator by operator, this gives the
        # sigmoid for every s, as the part through m cancels. The shorter max(s, 0) + log(1 + e^-|s|) does not give
        # it at s = 0, where all linear models start.
        if n_outputs == 1:
            return """\
log_loss (score, target) => (loss) {
    zero = Constant <value = float {0}> ()
    m = Max (score, zero)
    minus_m = Neg (m)
    left = Exp (minus_m)
    shifted = Sub (score, m)
    right = Exp (shifted)
    sum = Add (left, right)
    log_sum = Log (sum)
    softplus = Add (m, log_sum)
    linear = Mul (target, score)
    loss = Sub (softplus, linear)
}"""
        return """\
multinomial_log_loss (score, target) => (loss) {
    log_probability = LogSoftmax <axis = 1> (score)
    chosen = Mul (target, log_probability)
    columns = Constant <value = int64[1] {1}> ()
    log_likelihood = ReduceSum <keepdims = 1> (chosen, columns)
    loss = Neg (log_likelihood)
}"""

    def gradient_function(self, n_outputs: int) -> str:
        """Return the ONNX function `(score, target) => (gradient)`."""
        if n_outputs == 1:
            return """\
log_loss_gradient (score, target) => (gradient) {
    probability = Sigmoid (score)
    gradient = Sub (probability, target)
}"""
        return """\
multinomial_log_loss_gradient (score, target) => (gradient) {
    probability = Softmax <axis = 1> (score)
    gradient = Sub (probability, target)
}"""

    def curvature(self, n_outputs: int) -> float:
        """Return the largest second derivative by the score: 1/4 of the sigmoid, at most 1/2 of the softmax [1]_."""
        return 0.25 if n_outputs == 1 else 0.5

    def inverse_link_function(self, n_outputs: int) -> str:
        """Return sigmoid or softmax, `(score) => (probabilities)`."""
        # ONNX Runtime's sigmoid of a large score is one rounding above one.
        if n_outputs == 1:
            return """\
sigmoid (score) => (probabilities) {
    minus_score = Neg (score)
    scores = Concat <axis = 1> (minus_score, score)
    rounded = Sigmoid (scores)
    one = Constant <value = float {1}> ()
    probabilities = Min (rounded, one)
}"""
        return """\
softmax (score) => (probabilities) {
    probabilities = Softmax <axis = 1> (score)
}"""


class OneVsRestLogLoss(LogLoss):
    r"""
    The log-loss of one sigmoid a class: each class is trained against the rest.

    Two classes as in `LogLoss`. With one score :math:`s_k` a class and a one-hot target, summed over the classes,

    .. math:: loss(y, s) = \sum_k \log(1 + e^{s_k}) - y_k s_k, \qquad
        \frac{\partial loss}{\partial s_k} = \sigma(s_k) - y_k, \quad \sigma(s) = \frac{1}{1 + e^{-s}}

    as in `sklearn.linear_model.SGDClassifier(loss="log_loss")`, and in `LogisticRegression(solver="liblinear")` until
    scikit-learn 1.7. The probability of a class is :math:`\sigma(s_k) / \sum_j \sigma(s_j)`.

    Examples
    --------
    >>> from skort import OrtSGDClassifier
    >>> from skort.objective import OneVsRestLogLoss
    >>> model = OrtSGDClassifier(loss=OneVsRestLogLoss(), eta0=0.5, random_state=0)
    >>> model.fit([[-4.0, 1.0], [0.0, -4.0], [4.0, 1.0]], [0, 1, 2]).predict([[-2.0, 1.0], [2.0, 1.0]])
    array([0, 2])
    """

    one_against_rest = True

    def value_function(self, n_outputs: int) -> str:
        """Return the ONNX function `(score, target) => (loss)`."""
        return super().value_function(1)

    def gradient_function(self, n_outputs: int) -> str:
        """Return the ONNX function `(score, target) => (gradient)`."""
        return super().gradient_function(1)

    def curvature(self, n_outputs: int) -> float:
        """Return the largest second derivative of a row's loss by its score."""
        return 0.25

    def inverse_link_function(self, n_outputs: int) -> str:
        """Return the sigmoids divided by their sum, `(score) => (probabilities)`."""
        if n_outputs == 1:
            return super().inverse_link_function(1)
        # The softmax of the logarithms is the same, and no division of zero by zero where all sigmoids underflow.
        return """\
normalized_sigmoids (score) => (probabilities) {
    zero = Constant <value = float {0}> ()
    one = Constant <value = float {1}> ()
    distance = Abs (score)
    minus_distance = Neg (distance)
    small = Exp (minus_distance)
    sum = Add (one, small)
    log_sum = Log (sum)
    below = Min (score, zero)
    log_sigmoid = Sub (below, log_sum)
    probabilities = Softmax <axis = 1> (log_sigmoid)
}"""


class MultiLabelLogLoss(ClassificationLoss):
    r"""
    The log-loss of several labels, each of which a row may have: of one sigmoid a label.

    With one score :math:`s_k` and one target :math:`y_k \in \{0, 1\}` a label, summed over the labels,

    .. math:: loss(y, s) = \sum_k \log(1 + e^{s_k}) - y_k s_k, \qquad
        \frac{\partial loss}{\partial s_k} = p_k - y_k, \quad p_k = \frac{1}{1 + e^{-s_k}}

    as in `sklearn.neural_network.MLPClassifier`. `LogLoss` becomes this one where y has several columns.

    Examples
    --------
    >>> from skort.objective.classification_losses import MultiLabelLogLoss
    >>> print(MultiLabelLogLoss().inverse_link_function(3))
    sigmoid_of_each (score) => (probabilities) {
        rounded = Sigmoid (score)
        one = Constant <value = float {1}> ()
        probabilities = Min (rounded, one)
    }
    """

    def value_function(self, n_outputs):
        """Return the ONNX function `(score, target) => (loss)`."""
        return LogLoss().value_function(1)

    def gradient_function(self, n_outputs):
        """Return the ONNX function `(score, target) => (gradient)`."""
        return LogLoss().gradient_function(1)

    def curvature(self, n_outputs: int) -> float:
        """Return the largest second derivative of a row's loss by its score."""
        return 0.25

    def inverse_link_function(self, n_outputs):
        """Return the sigmoid of each score, `(score) => (probabilities)`."""
        return """\
sigmoid_of_each (score) => (probabilities) {
    rounded = Sigmoid (score)
    one = Constant <value = float {1}> ()
    probabilities = Min (rounded, one)
}"""


_MARGIN = """\
    zero = Constant <value = float {0}> ()
    one = Constant <value = float {1}> ()
    two = Constant <value = float {2}> ()
    doubled = Mul (two, target)
    y = Sub (doubled, one)
    z = Mul (y, score)
"""


class Hinge(ClassificationLoss):
    r"""
    The hinge loss of a linear support vector machine.

    With :math:`y = 2 \, target - 1 \in \{-1, 1\}` and :math:`z = y s`, for every score :math:`s`,

    .. math:: loss = \max(0, 1 - z), \qquad
        \frac{\partial loss}{\partial s} = \begin{cases} -y & z \le 1 \\ 0 & z > 1 \end{cases}

    as in `sklearn.linear_model.SGDClassifier(loss="hinge")`. Several classes are trained one against the rest: the
    losses of their scores are summed, so that each column is the binary problem that `SGDClassifier` trains alone.

    Examples
    --------
    >>> from skort import OrtSGDClassifier
    >>> model = OrtSGDClassifier(loss="hinge").fit([[-1.0], [-2.0], [1.0], [3.0]], [0, 0, 1, 1])
    >>> model.predict([[-1.0], [1.0]]), hasattr(model, "predict_proba")
    (array([0, 1]), False)
    """

    _value = f"""\
hinge (score, target) => (loss) {{
{_MARGIN}    missing = Sub (one, z)
    violated = LessOrEqual (z, one)
    loss = Where (violated, missing, zero)
}}"""
    _gradient = f"""\
hinge_gradient (score, target) => (gradient) {{
{_MARGIN}    violated = LessOrEqual (z, one)
    minus_y = Neg (y)
    gradient = Where (violated, minus_y, zero)
}}"""


class SquaredHinge(ClassificationLoss):
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

    _value = f"""\
squared_hinge (score, target) => (loss) {{
{_MARGIN}    missing = Sub (one, z)
    positive = Relu (missing)
    loss = Mul (positive, positive)
}}"""
    _gradient = f"""\
squared_hinge_gradient (score, target) => (gradient) {{
{_MARGIN}    missing = Sub (one, z)
    positive = Relu (missing)
    signed = Mul (y, positive)
    minus_two = Neg (two)
    gradient = Mul (minus_two, signed)
}}"""

    def curvature(self, n_outputs: int) -> float:
        """Return the largest second derivative of a row's loss by its score."""
        return 2.0


class ModifiedHuber(ClassificationLoss):
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
           [0.5, 0.5]], dtype=float32)
    """

    # With m = max(0, 1 - z) and c = min(2, m), c (2 m - c) is m^2 up to m = 2, and 4 m - 4 beyond. Differentiated
    # operator by operator it gives 2 c for every m.
    _clipped = f"""\
{_MARGIN}    missing = Sub (one, z)
    positive = Relu (missing)
    clipped = Min (positive, two)
"""
    _value = f"""\
modified_huber (score, target) => (loss) {{
{_clipped}    double_positive = Mul (two, positive)
    rest = Sub (double_positive, clipped)
    loss = Mul (clipped, rest)
}}"""
    _gradient = f"""\
modified_huber_gradient (score, target) => (gradient) {{
{_clipped}    signed = Mul (y, clipped)
    minus_two = Neg (two)
    gradient = Mul (minus_two, signed)
}}"""

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

    def curvature(self, n_outputs: int) -> float:
        """Return the largest second derivative of a row's loss by its score."""
        return 2.0


class PerceptronLoss(ClassificationLoss):
    r"""
    The loss of the perceptron: scores on the wrong side cost their distance from zero.

    With :math:`y = 2 \, target - 1 \in \{-1, 1\}` and :math:`z = y s`, for every score :math:`s`,

    .. math:: loss = \max(0, -z), \qquad
        \frac{\partial loss}{\partial s} = \begin{cases} -y & z \le 0 \\ 0 & z > 0 \end{cases}

    as in `sklearn.linear_model.SGDClassifier(loss="perceptron")`; several classes as in `Hinge`. Scores of zero have
    the least value of all, and say nothing: no training is compared with them.

    Examples
    --------
    >>> from skort import OrtSGDClassifier
    >>> OrtSGDClassifier(loss="perceptron").fit([[-1.0], [1.0]], [0, 1]).predict([[-2.0], [2.0]])
    array([0, 1])
    """

    is_least_at_zero = True
    _value = f"""\
perceptron (score, target) => (loss) {{
{_MARGIN}    wrong = LessOrEqual (z, zero)
    minus_z = Neg (z)
    loss = Where (wrong, minus_z, zero)
}}"""
    _gradient = f"""\
perceptron_gradient (score, target) => (gradient) {{
{_MARGIN}    wrong = LessOrEqual (z, zero)
    minus_y = Neg (y)
    gradient = Where (wrong, minus_y, zero)
}}"""
