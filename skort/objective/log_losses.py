"""The log-loss, by scikit-learn's formulas: of one score, of several, and of several labels."""

from skort.objective.classification import ClassificationLoss

__all__ = ["LogLoss", "OneVsRestLogLoss"]


class LogLoss(ClassificationLoss, name="log_loss"):
    r"""
    The log-loss, of the sigmoid of one score or the softmax of several.

    With one score :math:`s` and a target :math:`y \in \{0, 1\}`

    .. math:: loss(y, s) = \log(1 + e^s) - y s, \qquad
        \frac{\partial loss}{\partial s} = p - y, \quad p = \frac{1}{1 + e^{-s}},

    and with one score for each class and a one-hot target

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
    is_logistic = True

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

    def for_labels(self) -> "MultiLabelLogLoss":
        """Return the log-loss of each label."""
        return MultiLabelLogLoss()

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
    The log-loss of one sigmoid for each class: each class is trained against the rest.

    Two classes are trained as in `LogLoss`. With one score :math:`s_k` for each class and a one-hot target, the loss is
    the sum over the classes,

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

    __module__ = "skort.objective"
    one_against_rest = True

    def value_function(self, n_outputs: int) -> str:
        """Return the ONNX function `(score, target) => (loss)`."""
        return super().value_function(1)

    def gradient_function(self, n_outputs: int) -> str:
        """Return the ONNX function `(score, target) => (gradient)`."""
        return super().gradient_function(1)

    def curvature(self, n_outputs: int) -> float:
        """Return the largest second derivative of a row's loss by its score."""
        return super().curvature(1)

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


class MultiLabelLogLoss(OneVsRestLogLoss):
    r"""
    The log-loss of several labels, each of which a row may have, as in `sklearn.neural_network.MLPClassifier`.

    The formula is that of `OneVsRestLogLoss`, but :math:`y` may have several ones, and p is the sigmoid of each score.
    """

    def inverse_link_function(self, n_outputs):
        """Return the sigmoid of each score, `(score) => (probabilities)`."""
        return """\
sigmoid_of_each (score) => (probabilities) {
    rounded = Sigmoid (score)
    one = Constant <value = float {1}> ()
    probabilities = Min (rounded, one)
}"""
