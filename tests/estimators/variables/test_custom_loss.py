"""What is said of a custom loss: its operator, its gradient, its lower bound, where it is none."""

import re
import warnings

import numpy as np
import onnx.parser
import pytest
from own_losses import GAUSSIAN
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import PoissonRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.variables.custom_loss import fault_at_scores, fault_of
from skort.estimators.variables.score_losses import ScoreLosses
from skort.exceptions import DivergedError, NotTrainableError
from skort.objective import Huber, LogLoss, Loss, SquaredError, WeightedSum
from skort.objective.custom import parsed, used_inputs

rng = np.random.default_rng(0)
X = rng.normal(size=(83, 3))
Y = X @ [1.0, 2.0, 3.0] + 0.3 * rng.normal(size=83)
LABELS = np.where(Y > 2, 2, (Y > 0).astype(int))

SQUARE = """
square (score, target) => (loss) {
    half = Constant <value = float {0.5}> ()
    residual = Sub (score, target)
    product = Mul (residual, residual)
    loss = Mul (half, product)
}"""
RESIDUAL = "slope (score, target) => (gradient) { gradient = Sub (score, target) }"
OPPOSITE = "slope (score, target) => (gradient) { gradient = Sub (target, score) }"
PRODUCT = "product (score, target) => (loss) { loss = Mul (score, target) }"
FAR_BELOW_ZERO = """
far (score, target) => (loss) {
    million = Constant <value = float {1000000.0}> ()
    residual = Sub (score, target)
    distance = Abs (residual)
    loss = Sub (distance, million)
}"""
# The loss of an exponential family: a function of the score, less score times target.
OF_FAMILY = """
family (score, target) => (loss) {{
    normaliser = {} (score)
    linear = Mul (target, score)
    loss = Sub (normaliser, linear)
}}"""
LOGISTIC = OF_FAMILY.format("Softplus")
COUNTS = OF_FAMILY.format("Exp")
AGAINST_TARGET = """
against (score, target) => (loss) {
    one = Constant <value = float {1.0}> ()
    two = Constant <value = float {2.0}> ()
    double = Mul (two, target)
    sign = Sub (double, one)
    loss = Mul (sign, score)
}"""

# The square of the distance of the score from a line of the target.
TO_LINE = """
to_line (score, target) => (loss) {{
    slope = Constant <value = float {{{}}}> ()
    first = Constant <value = float {{{}}}> ()
    product = Mul (slope, target)
    aim = Add (product, first)
    residual = Sub (score, aim)
    loss = Mul (residual, residual)
}}"""
HINGE = """
hinge (score, target) => (loss) {
    one = Constant <value = float {1}> ()
    two = Constant <value = float {2}> ()
    double = Mul (two, target)
    sign = Sub (double, one)
    margin = Mul (sign, score)
    short = Sub (one, margin)
    loss = Relu (short)
}"""


def column(y):
    return np.asarray(y, float)[:, None]


@pytest.mark.parametrize(
    "loss, target",
    [
        (Loss(SQUARE), column(Y)),
        (Loss(SQUARE, RESIDUAL), column(Y)),
        (Loss(SQUARE, RESIDUAL), np.column_stack([Y, 1e-6 * Y, 1e6 + Y])),
        (Loss(FAR_BELOW_ZERO), column(Y)),
        (Loss(FAR_BELOW_ZERO), column(1e-6 * Y)),
        (Loss(COUNTS), column(rng.poisson(3, 83))),
        (Loss(COUNTS), column(np.zeros(83))),
        (Loss(LOGISTIC), column(LABELS > 0)),
        # One class of six rows in seven: the target's mean and deviation are above one in all.
        (Loss(LOGISTIC), column(np.arange(83) % 7 > 0)),
        (Loss(LOGISTIC), np.eye(3)[LABELS]),
        (Huber(), column(Y)),
    ],
)
def test_a_loss_that_is_right_has_no_fault(loss, target):
    assert fault_of(loss, target) == ""


@pytest.mark.parametrize("optimizer", ["auto", "lbfgs", "adam"])
@pytest.mark.parametrize("inside", [None, MLPRegressor(hidden_layer_sizes=(3,))])
def test_a_gradient_of_the_wrong_sign_is_named_with_its_error(optimizer, inside):
    loss = Loss(SQUARE, OPPOSITE)
    model = OrtSGDRegressor(inside, loss=loss, optimizer=optimizer, max_iter=60, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, Y)
        except DivergedError as error:
            assert "not the derivative" in str(error)
    found = re.search(NOT_THE_DERIVATIVE, str(caught[0].message))
    score, target, given, difference = map(float, found.groups())
    # The derivative is r, and the function gives -r.
    assert difference == pytest.approx(score - target, rel=1e-2)
    assert given == pytest.approx(target - score, rel=1e-2)


NOT_THE_DERIVATIVE = (
    "^The loss 'square' has a gradient that is not the derivative of its value: at the score "
    r"(\S+), for the target (\S+), it is (\S+), and a finite difference of the value is (\S+)\. "
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("factor", [0.0, 0.7, 2.0, 10.0])
@pytest.mark.parametrize("train", [OrtSGDRegressor.fit, OrtSGDRegressor.partial_fit])
def test_a_gradient_that_is_off_by_a_factor_is_named_though_the_training_ends_well(train, factor):
    slope = RESIDUAL.replace("gradient = Sub", "residual = Sub").replace(
        "}",
        f"""factor = Constant <value = float {{{factor}}}> ()
            gradient = Mul (factor, residual) }}""",
    )
    model = OrtSGDRegressor(loss=Loss(SQUARE, slope), random_state=0)
    with pytest.warns(UserWarning, match=NOT_THE_DERIVATIVE) as caught:
        train(model, X, Y)
    score, target, given, difference = map(
        float, re.search(NOT_THE_DERIVATIVE, str(caught[0].message)).groups()
    )
    assert difference == pytest.approx(score - target, rel=1e-2)
    assert given == pytest.approx(factor * (score - target), rel=1e-2)


def test_a_gradient_that_is_wrong_on_one_side_is_named_by_a_score_there():
    # 4 r^2 above the target, r^2 below it, and the gradient of r^2 on both sides.
    value = """
        asymmetric (score, target) => (loss) {
            zero = Constant <value = float {0}> ()
            four = Constant <value = float {4}> ()
            one = Constant <value = float {1}> ()
            residual = Sub (score, target)
            is_below = Less (residual, zero)
            weight = Where (is_below, one, four)
            square = Mul (residual, residual)
            loss = Mul (weight, square)
        }"""
    slope = """
        slope (score, target) => (gradient) {
            residual = Sub (score, target)
            gradient = Add (residual, residual)
        }"""
    with pytest.warns(UserWarning, match="has a gradient that is not the derivative") as caught:
        OrtSGDRegressor(loss=Loss(value, slope), random_state=0).fit(X, 1000 * Y)
    text = str(caught[0].message)
    score, target, given, difference = map(float, re.findall(r"-?\d[\d.e+]*\d", text))
    assert score > target
    assert difference == pytest.approx(4 * given, rel=1e-2)
    assert given == pytest.approx(2 * (score - target), rel=1e-2)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_wrong_column_of_a_gradient_is_named(is_first):
    factors = (3.0, 1.0) if is_first else (1.0, 3.0)
    slope = f"""
        slope (score, target) => (gradient) {{
            factors = Constant <value = float[2] {{{factors[0]}, {factors[1]}}}> ()
            residual = Sub (score, target)
            gradient = Mul (residual, factors)
        }}"""
    with pytest.warns(UserWarning, match=f"of column {0 if is_first else 1}, for the target"):
        OrtSGDRegressor(loss=Loss(SQUARE, slope), random_state=0).fit(X, np.column_stack([Y, -Y]))


def test_a_loss_without_a_lower_bound_is_named():
    # y = -3 has the loss -3 s: 1,000 standard deviations away, -3 (-3 + 1000 * 4) = -11,991.
    found = fault_of(Loss(PRODUCT), column([5.0, -3.0, 5.0, -3.0]))
    assert "'product' seems to have no lower bound: for the target -3, it is -1.2e+04 at a" in found
    assert "score 1,000 standard deviations away, and -1.2e+06 at 100,000" in found

    no_bound = "^The loss '.*' seems to have no lower bound"
    with (
        pytest.warns(UserWarning, match=no_bound),
        pytest.raises(ValueError, match=no_bound),
    ):
        OrtSGDRegressor(loss=Loss(PRODUCT)).fit(X, Y)
    still = r"still falling, .* The loss '.*' seems to have no lower bound"
    options = {"eta0": 0.1, "max_iter": 30, "random_state": 0}
    with (
        pytest.warns(UserWarning, match=no_bound),
        pytest.warns(ConvergenceWarning, match=still),
    ):
        OrtSGDRegressor(loss=Loss(PRODUCT), **options).fit(X, Y)
    with (
        pytest.warns(UserWarning, match=no_bound),
        pytest.warns(ConvergenceWarning, match=still),
    ):
        OrtSGDClassifier(loss=Loss(AGAINST_TARGET), **options).fit(X, LABELS > 0)


@pytest.mark.parametrize("inside", [None, MLPRegressor(hidden_layer_sizes=(3,))])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_a_loss_that_falls_slowly_without_end_is_named_before_its_training_ends(inside, scale):
    # -log(1 + r^2), r in standard deviations: at 1,000 and 100,000 of them about -2 log(r).
    value = f"""
        minus_log (score, target) => (loss) {{
            one = Constant <value = float {{1}}> ()
            scale = Constant <value = float {{{scale * np.std(Y)}}}> ()
            residual = Sub (score, target)
            ratio = Div (residual, scale)
            square = Mul (ratio, ratio)
            sum = Add (one, square)
            log = Log (sum)
            loss = Neg (log)
        }}"""
    model = OrtSGDRegressor(inside, loss=Loss(value), max_iter=20, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, scale * Y)
    text = str(caught[0].message)
    assert text.startswith("The loss 'minus_log' seems to have no lower bound")
    far, farther = (-2 * np.log(d + 0.9) for d in (1e3, 1e5))
    assert f"it is {far:.3g} at a score 1,000" in text
    assert f"and {farther:.3g} at 100,000" in text
    assert not any("above its optimum" in str(each.message) for each in caught)


@pytest.mark.parametrize(
    "value",
    [
        # 1 - exp(-r^2): it levels off.
        """welsch (score, target) => (loss) {
            one = Constant <value = float {1}> ()
            residual = Sub (score, target)
            square = Mul (residual, residual)
            minus = Neg (square)
            bump = Exp (minus)
            loss = Sub (one, bump)
        }""",
        # The density of a normal distribution whose mean and log(variance) are two scores.
        """normal (score, target) => (loss) {
            split = Constant <value = int64[2] {1, 1}> ()
            half = Constant <value = float {0.5}> ()
            mean, log_variance = Split <axis = 1> (score, split)
            y, unused = Split <axis = 1> (target, split)
            residual = Sub (y, mean)
            square = Mul (residual, residual)
            minus = Neg (log_variance)
            precision = Exp (minus)
            ratio = Mul (square, precision)
            sum = Add (ratio, log_variance)
            loss = Mul (half, sum)
        }""",
    ],
)
def test_a_loss_that_levels_off_or_has_a_pole_at_the_target_has_no_fault(value):
    target = column(Y) if "welsch" in value else np.column_stack([Y, Y])
    assert fault_of(Loss(value), target) == ""


def test_a_likelihood_without_its_minus_is_named():
    # log(sigmoid(s)) of a first class is log(0) far below zero.
    value = """
        likelihood (score, target) => (loss) {
            probability = Sigmoid (score)
            log = Log (probability)
            loss = Mul (log, target)
        }"""
    found = fault_of(Loss(value), column(LABELS > 0))
    assert "no lower bound: for the target 1, it is -inf at a score 1,000" in found


@pytest.mark.parametrize("parameters", [{}, {"eta0": 0.01}, {"optimizer": "lbfgs"}], ids=str)
@pytest.mark.parametrize("inside", [None, MLPRegressor(hidden_layer_sizes=(3,))])
def test_a_loss_that_is_no_number_is_named_with_a_score(inside, parameters):
    # log(r) is none at scores below the target.
    value = """
        log_ratio (score, target) => (loss) {
            residual = Sub (score, target)
            loss = Log (residual)
        }"""
    with (
        pytest.warns(UserWarning, match="^The loss 'log_ratio' is nan in float32 at the score"),
        pytest.raises(ValueError, match=r"The loss 'log_ratio' is nan at the score") as caught,
    ):
        OrtSGDRegressor(inside, loss=Loss(value), random_state=0, **parameters).fit(X, Y)
    text = str(caught.value)
    score, target = map(float, re.search(r"score (\S+), for the target (\S+),", text).groups())
    assert score < target
    assert "Give eta0" not in text and "Lower eta0" not in text


# -(t q^2 log p + (1 - t) p^2 log q) with p = sigmoid(s), q = 1 - p: the focal loss of textbooks.
FOCAL = """
focal (score, target) => (loss) {
    one = Constant <value = float {1}> ()
    p = Sigmoid (score)
    q = Sub (one, p)
    log_p = Log (p)
    log_q = Log (q)
    p2 = Mul (p, p)
    q2 = Mul (q, q)
    of_second = Mul (q2, log_p)
    of_first = Mul (p2, log_q)
    second = Mul (target, of_second)
    is_first = Sub (one, target)
    first = Mul (is_first, of_first)
    sum = Add (first, second)
    loss = Neg (sum)
}"""
# The same by Softplus: -log p = softplus(-s), -log q = softplus(s).
STABLE_FOCAL = FOCAL.replace(
    "q = Sub (one, p)", "minus = Neg (score)  q = Sigmoid (minus)  f = Softplus (minus)"
).replace("Log (p)", "Neg (f)")
STABLE_FOCAL = STABLE_FOCAL.replace("log_q = Log (q)", "g = Softplus (score)  log_q = Neg (g)")
# The cross entropy of a softmax, whose log is that of a probability.
OF_SOFTMAX = """
entropy (score, target) => (loss) {
    columns = Constant <value = int64[1] {1}> ()
    p = Softmax <axis = 1> (score)
    log_p = Log (p)
    likelihood = Mul (target, log_p)
    sum = ReduceSum <keepdims = 1> (likelihood, columns)
    loss = Neg (sum)
}"""
# log(1 + exp(-z)) with z = (2 t - 1) s.
BY_EXP = """
logistic (score, target) => (loss) {
    one = Constant <value = float {1}> ()
    two = Constant <value = float {2}> ()
    double = Mul (two, target)
    sign = Sub (one, double)
    minus = Mul (sign, score)
    exp = Exp (minus)
    sum = Add (one, exp)
    loss = Log (sum)
}"""
# exp(-z): AdaBoost's.
OF_BOOSTING = BY_EXP.replace("sum = Add (one, exp)", "").replace("Log (sum)", "Mul (one, exp)")
SOFTPLUS = (
    "Softplus(-score) is -Log(Sigmoid(score)) at any score, and Softplus(score) is "
    "-Log(1 - Sigmoid(score)) and Log(1 + Exp(score))."
)
DIVERGES = "A training that reaches such a score diverges, or begins again at a smaller rate. "


@pytest.mark.parametrize(
    ("value", "y", "dtype", "what", "cure"),
    [
        # In float32, 1 - sigmoid(s) is 0 from about s = 17, and 0 log(0) is no number: target 1 there.
        (
            FOCAL,
            LABELS > 0,
            "float32",
            "nan in float32 at the score 20, for the target 1",
            SOFTPLUS,
        ),
        # In float64, from 37.
        (
            FOCAL,
            LABELS > 0,
            "float64",
            "nan in float64 at the score 50, for the target 1",
            SOFTPLUS,
        ),
        (
            FOCAL,
            LABELS,
            "float32",
            "nan in float32 at the score 20 of a class, for a row of this class",
            SOFTPLUS,
        ),
        # 1 / p is infinite at p = exp(-100), if that is not 0 itself. exp(89) is infinite.
        (
            OF_SOFTMAX,
            LABELS,
            "float32",
            "inf in float32 at the score 100 of a class, for a row of another class",
            "LogSoftmax is Log of Softmax at any score.",
        ),
        (
            BY_EXP,
            LABELS > 0,
            "float32",
            "inf in float32 at the score 100, for the target 0",
            SOFTPLUS,
        ),
        (
            OF_BOOSTING,
            LABELS > 0,
            "float32",
            "inf in float32 at the score 100, for the target 0",
            "Bound what Exp, Log, Pow, Sqrt or Div get, as by Clip.",
        ),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_loss_that_is_no_number_at_a_large_score_is_named_before_its_training(
    method, value, y, dtype, what, cure
):
    model = OrtSGDClassifier(loss=Loss(value), dtype=dtype, random_state=0)
    classes = {"classes": np.unique(y)} if method == "partial_fit" else {}
    name = parsed("loss: value", value).name
    with pytest.warns(UserWarning) as caught:
        getattr(model, method)(X, y, **classes)
    text = str(caught[0].message).replace("has a gradient of", "is")
    assert text == f"The loss {name!r} is {what}. {DIVERGES}{cure}"
    assert len(caught) == 1
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (BY_EXP, "float64"),
        (OF_BOOSTING, "float64"),
        (STABLE_FOCAL, "float32"),
        (STABLE_FOCAL, "float64"),
        (LOGISTIC, "float32"),
        (HINGE, "float32"),
    ],
    ids=["by_exp", "boosting", "focal", "focal64", "logistic", "hinge"],
)
def test_a_loss_that_is_a_number_at_large_scores_is_not_named(value, dtype):
    # Warnings are errors.
    y = LABELS > 0
    model = OrtSGDClassifier(loss=Loss(value), dtype=dtype, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9


def test_the_stable_form_that_the_message_names_has_the_same_values():
    score = np.linspace(-9, 9, 37)[:, None]
    for target in (np.zeros_like(score), np.ones_like(score)):
        textbook, stable = (
            ScoreLosses(Loss(value), 1).of_rows(score, target) for value in (FOCAL, STABLE_FOCAL)
        )
        sign = 1 - 2 * target[:, 0]
        z = sign * score[:, 0]
        assert stable == pytest.approx(np.logaddexp(0, z) / (1 + np.exp(-z)) ** 2, rel=1e-4)
        assert stable == pytest.approx(textbook, rel=1e-2, abs=1e-5)


@pytest.mark.parametrize("share", [0.3, 0.0])
def test_a_part_of_a_sum_is_tried_if_it_counts(share):
    loss = WeightedSum([(1 - share, LogLoss()), (share, Loss(FOCAL))])
    found = fault_at_scores(loss, column(LABELS > 0), linear_graph(1), is_classifier=True)
    start = "The loss 'focal' is nan in float32 at the score 20, for the target 1."
    assert found.startswith(start) if share else found == ""


def test_of_many_classes_some_are_tried():
    found = fault_at_scores(Loss(FOCAL), np.eye(500), linear_graph(1), is_classifier=True)
    assert "at the score 20 of a class, for a row of this class" in found


@pytest.mark.parametrize("gradient", [None, "given"])
def test_a_gradient_that_is_no_number_at_a_large_score_is_named(gradient):
    # 1 / (1 + exp(z)) is 0 at z = 100 in float32, and its derivative is -inf / inf.
    to_sum = """
            one = Constant <value = float {1}> ()
            two = Constant <value = float {2}> ()
            double = Mul (two, target)
            sign = Sub (double, one)
            z = Mul (sign, score)
            exp = Exp (z)
            sum = Add (one, exp)"""
    value = f"""
        sigmoid (score, target) => (loss) {{{to_sum}
            loss = Div (one, sum)
        }}"""
    slope = f"""
        slope (score, target) => (gradient) {{{to_sum}
            square = Mul (sum, sum)
            ratio = Div (exp, square)
            minus = Neg (ratio)
            gradient = Mul (sign, minus)
        }}"""
    loss = Loss(value, slope if gradient else None)
    found = fault_at_scores(loss, column(LABELS > 0), linear_graph(1), is_classifier=True)
    assert found.startswith("The loss 'sigmoid' has a gradient of nan in float32 at the score 100")


def linear_graph(n_outputs):
    y = np.column_stack([Y] * n_outputs)
    model = OrtSGDRegressor(optimizer="sgd", max_iter=1, tol=None).fit(X, y if n_outputs > 1 else Y)
    return model._result.model.score_graph


@pytest.mark.parametrize(
    ("values", "y", "what"),
    [
        # Scores of y are from -3 to 3 standard deviations: log(y) of them, and exp(60 y).
        ("loss = Log (score)", Y, "nan"),
        ("loss = Log (score)", 10 + Y / np.std(Y), ""),
        (
            "sixty = Constant <value = float {60}> ()\n a = Mul (sixty, r)\n loss = Exp (a)",
            Y,
            "inf",
        ),
        ("loss = Exp (r)", Y, ""),
        # The gradient of |r| by its root is 0 / 0 where a score is its target.
        ("square = Mul (r, r)\n loss = Sqrt (square)", (Y > 0).astype(float), ""),
    ],
)
def test_a_regression_is_tried_at_scores_near_y(values, y, what):
    loss = Loss(f"own (score, target) => (loss) {{ r = Sub (score, target)\n {values} }}")
    found = fault_at_scores(loss, column(y), linear_graph(1), is_classifier=False)
    assert found.startswith(f"The loss 'own' is {what} in float32 at the score" if what else "")
    assert bool(found) == bool(what)


EXP_LINK = "link (score) => (prediction) { prediction = Exp (score) }"
LOG_OF_LINK = """
own (score, target) => (loss) {{
    prediction = {} (score)
    log = Log (prediction)
    r = Sub (log, target)
    loss = Mul (r, r)
}}"""


@pytest.mark.parametrize(
    ("value", "link", "found"),
    [
        # y is in thousands, and the score its logarithm: exp(10) and exp(20) are numbers.
        (COUNTS, EXP_LINK, ""),
        # Gamma's canonical link is 1 / s: its score is positive.
        (
            "gamma (score, target) => (loss) { a = Mul (target, score)\n b = Log (score)\n loss = Sub (a, b) }",
            "link (score) => (prediction) { prediction = Reciprocal (score) }",
            "",
        ),
        # sigmoid(-20) is 0 in ONNX Runtime's float32.
        (
            LOG_OF_LINK.format("Sigmoid"),
            "link (score) => (prediction) { prediction = Sigmoid (score) }",
            "The loss 'own' is inf in float32 at the score -20, for the target 1000.",
        ),
    ],
)
def test_a_score_behind_a_link_is_tried_as_a_logarithm(value, link, found):
    y = np.linspace(1e3, 5e3, 83)
    loss = Loss(value, inverse_link=link)
    text = fault_at_scores(loss, column(y), linear_graph(1), is_classifier=False)
    assert text.startswith(found) and bool(text) == bool(found)


def test_a_loss_with_a_link_begins_near_the_score_zero():
    # exp(5000) is infinite, but no model begins at the score 5000.
    assert fault_of(Loss(COUNTS, inverse_link=EXP_LINK), column(np.linspace(1e3, 5e3, 83))) == ""


def test_a_model_that_bounds_its_score_is_not_tried_at_others():
    bounded = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        positive (float[N, 3] X) => (float[N, 1] score) <float[3, 1] coef = {0, 0, 0}> {
            linear = MatMul (X, coef)
            score = Exp (linear)
        }""")
    log_loss = """
        logs (score, target) => (loss) {
            a = Log (score)
            b = Log (target)
            r = Sub (a, b)
            loss = Mul (r, r)
        }"""
    y = np.exp(X @ [0.3, 0.2, 0.1])
    # Warnings are errors. The least squares of logs are X @ coef.
    options = {"optimizer": "adam", "eta0": 0.05, "max_iter": 300, "tol": None, "random_state": 0}
    model = OrtSGDRegressor(bounded, loss=Loss(log_loss), **options).fit(X, y)
    assert model.weights_["coef"].ravel() == pytest.approx([0.3, 0.2, 0.1], abs=1e-2)


def test_a_training_that_a_textbook_loss_ruins_names_the_loss():
    # Scores of 100 and more begin the training.
    y = LABELS > 0
    network = MLPClassifier(hidden_layer_sizes=(8,))
    model = OrtSGDClassifier(network, loss=Loss(FOCAL), eta0=3.0, optimizer="adam", random_state=0)
    with (
        pytest.warns(UserWarning, match="^The loss 'focal' is nan in float32"),
        pytest.raises(DivergedError, match=r"rate of 3\. The loss 'focal' is nan in float32 at"),
    ):
        model.fit(X, y)


def test_only_a_loss_without_a_lower_bound_is_told_of_a_penalty():
    log = Loss(
        "log (score, target) => (loss) { r = Sub (score, target)  a = Abs (r)  n = Neg (a)"
        "  loss = Log (n) }"
    )
    with (
        pytest.raises(ValueError, match=r"^The loss 'log' .* Log, Sqrt, .* get in the value\.$"),
        pytest.warns(UserWarning, match="The loss 'log' is nan in float32"),
    ):
        OrtSGDRegressor(loss=log).fit(X[:80], X[:80, 0])
    line = Loss("line (score, target) => (loss) { loss = Sub (score, target) }")
    end = r"unless a penalty bounds it\. If one does, give eta0 a number\.$"
    with (
        pytest.raises(ValueError, match=rf"^The loss 'line' seems to have no lower bound.*{end}"),
        pytest.warns(UserWarning, match="The loss 'line' seems to have no lower bound"),
    ):
        OrtSGDRegressor(loss=line).fit(X[:80], X[:80, 0])


def test_a_divergence_at_a_rate_of_skort_does_not_say_to_lower_eta0():
    # sqrt((s - 0.02) (s - 0.2)) is no number between 0.02 and 0.2, which all large scores pass.
    value = """
        hole (score, target) => (loss) {
            low = Constant <value = float {0.02}> ()
            high = Constant <value = float {0.2}> ()
            zero = Constant <value = float {0}> ()
            above_low = Sub (score, low)
            above_high = Sub (score, high)
            product = Mul (above_low, above_high)
            root = Sqrt (product)
            nothing = Mul (zero, root)
            normaliser = Softplus (score)
            linear = Mul (target, score)
            logistic = Sub (normaliser, linear)
            loss = Add (nothing, logistic)
        }"""
    y = X[:80, 0] > np.median(X[:80, 0])
    end = (
        r"Check that the loss and its gradient are numbers at all scores, or give eta0 a number "
        r"below this rate\.$"
    )
    with pytest.raises(DivergedError, match=end):
        OrtSGDClassifier(loss=Loss(value), random_state=0).fit(X[:80], y)
    with pytest.raises(DivergedError, match=r"a learning rate of 1\. Lower eta0\.$"):
        OrtSGDClassifier(loss=Loss(value), eta0=1.0, random_state=0).fit(X[:80], y)


@pytest.mark.parametrize("standardize", ["auto", False])
def test_a_divergence_by_a_large_y_of_a_loss_with_a_link_names_what_cures_it(standardize):
    loss = Loss(COUNTS, inverse_link=EXP_LINK)
    counts = 1000.0 * np.random.default_rng(0).poisson(np.exp(1 + 0.5 * X[:, 0]))
    end = (
        r'y has values of up to 1.5e\+04\. Divide y by 2e\+04, use optimizer="lbfgs" if the loss is smooth, '
        r"or check that the loss and its gradient are numbers at all scores, or give eta0 a number "
        r"below this rate\.$"
    )
    model = OrtSGDRegressor(loss=loss, standardize=standardize, random_state=0)
    with pytest.raises(DivergedError, match=end):
        model.fit(X, counts)

    # Both cures end at scikit-learn's optimum.
    of_scikit_learn = PoissonRegressor(alpha=0, tol=1e-8).fit(X, counts).coef_
    model.fit(X, counts / 2e4)
    np.testing.assert_allclose(model.coef_, of_scikit_learn, atol=0.02)
    model.set_params(optimizer="lbfgs").fit(X, counts)
    np.testing.assert_allclose(model.coef_, of_scikit_learn, atol=1e-3)


@pytest.mark.filterwarnings("ignore:partial_fit. column . of X is")
def test_a_divergence_of_a_stream_at_a_rate_of_skort_names_the_data():
    counts = rng.poisson(np.exp(0.5 * X[:, 0]))
    model = OrtSGDRegressor(loss="poisson", random_state=0).partial_fit(X, counts)
    end = (
        r"Check column . of X, far from the rows that the stream began with, or give eta0 a number "
        r"below this rate\.$"
    )
    with pytest.raises(DivergedError, match=end):
        model.partial_fit(1e4 * X, counts)


@pytest.mark.filterwarnings("ignore:The loss 'rounded' seems to have no lower bound")
def test_an_operator_without_a_gradient_is_named_before_a_rate_is_asked_for():
    rounded = """
        rounded (score, target) => (loss) {
            whole = Round (score)
            loss = Mul (whole, target)
        }"""
    for fit in (OrtSGDRegressor.fit, OrtSGDRegressor.partial_fit):
        with pytest.raises(NotTrainableError, match=r"no gradient goes through the operator Round"):
            fit(OrtSGDRegressor(loss=Loss(rounded)), X, 0.01 * Y)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("first", "cure"), [(0, "use 2 . target - 1 in place of target"), (1, "check its sign")]
)
def test_a_loss_whose_first_class_has_no_negative_score_is_named(method, first, cure):
    # The aims are the scores 0 and 1, or 1 and -1.
    value = TO_LINE.format(1 - 3 * first, first)
    model = OrtSGDClassifier(loss=Loss(value), eta0=0.01, max_iter=3, tol=None, random_state=0)
    classes = {"classes": [False, True]} if method == "partial_fit" else {}
    match = f"^The loss 'to_line' is least at the score {first} for the first class, .*: {cure}.$"
    with pytest.warns(UserWarning, match=match):
        getattr(model, method)(X, LABELS > 0, **classes)


OF_PARTS = """
of_parts (score, target) => (loss) {{
    one = Constant <value = float {{1}}> ()
    other = Sub (one, target)
    product = Mul (score, target)
    opposite = Neg (product)
    short = Sub (one, product)
    hinge = Relu (short)
    logistic = Softplus (score)
    loss = {}
}}"""
ADD_FIRST = (
    "small: in a loss of the margin, use 2 * target - 1 in place of target; to another loss, add a "
    "term with 1 - target."
)


@pytest.mark.parametrize("y", [LABELS > 0, LABELS], ids=["two classes", "three"])
@pytest.mark.parametrize(
    ("last", "target", "end"),
    [
        ("Exp (opposite)", 0, ADD_FIRST),
        ("Softplus (opposite)", 0, ADD_FIRST),
        ("Identity (hinge)", 0, ADD_FIRST),
        ("Mul (hinge, hinge)", 0, ADD_FIRST),
        ("Mul (logistic, other)", 1, "large: add a term with target."),
    ],
)
def test_a_loss_that_no_score_changes_for_one_target_is_named(last, target, end, y):
    model = OrtSGDClassifier(
        loss=Loss(OF_PARTS.format(last)), eta0=0.01, max_iter=3, tol=None, random_state=0
    )
    text = (
        f"The loss 'of_parts' is the same at all scores where the target is {target}, so that "
        f"nothing makes such a score {end}"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(text)}$"):
        model.fit(X, y)


@pytest.mark.parametrize(
    "value", [LOGISTIC, HINGE, TO_LINE.format(2, -1)], ids=["logistic", "hinge", "signs"]
)
def test_a_loss_for_targets_0_and_1_whose_first_class_has_negative_scores_has_no_fault(value):
    # Warnings are errors.
    y = (LABELS > 0).astype(int)
    model = OrtSGDClassifier(loss=Loss(value), random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9


def test_a_regressor_and_several_classes_may_have_their_targets_as_scores():
    OrtSGDRegressor(loss=Loss(SQUARE), random_state=0).fit(X, LABELS > 0)
    OrtSGDClassifier(loss=Loss(SQUARE), random_state=0).fit(X, LABELS)


@pytest.mark.parametrize("train", [OrtSGDRegressor.fit, OrtSGDRegressor.partial_fit])
@pytest.mark.parametrize("inner", [None, MLPRegressor(hidden_layer_sizes=(5,))])
@pytest.mark.parametrize(
    ("inputs", "body", "message"),
    [
        ("score, target", "loss = Mul (target, target)", "its value does not use the score."),
        ("score, target", "loss = Mul (score, score)", "its value does not use the target."),
        # The target goes into a result that is not used.
        (
            "score, target",
            "d = Sub (score, target)\n loss = Mul (score, score)",
            "its value does not use the target.",
        ),
        (
            "score, target, weight",
            "d = Sub (score, target)\n loss = Mul (d, d)",
            "value takes weight and does not use it. Multiply the loss by it, or leave this input "
            "out: skort then multiplies.",
        ),
    ],
)
def test_an_input_that_is_not_used_is_refused(train, inner, inputs, body, message):
    loss = Loss(f"without ({inputs}) => (loss) {{ {body} }}")
    with pytest.raises(NotTrainableError, match=f"^loss: {message}"):
        train(OrtSGDRegressor(inner, loss=loss), X, Y)


def test_an_input_may_be_used_in_a_branch():
    loss = Loss(
        """
        branched (score, target) => (loss) {
            always = Constant <value = bool {1}> ()
            loss = If (always) <
                then_branch = near () => (float[n, m] square) {
                    residual = Sub (score, target)
                    square = Mul (residual, residual)
                },
                else_branch = far () => (float[n, m] score_alone) { score_alone = Abs (score) }
            >
        }"""
    )
    assert used_inputs(parsed("loss: value", loss.value)) == {"score", "target"}


def test_a_part_of_a_sum_needs_no_target():
    shrink = Loss("shrink (score, target) => (loss) { loss = Mul (score, score) }")
    model = OrtSGDRegressor(
        loss=WeightedSum([(0.5, SquaredError()), (0.5, shrink)]), standardize=False, tol=1e-7
    )
    # The constant c of least (c - y)^2 / 4 + c^2 / 2.
    model.fit(np.zeros((2, 1)), [3.0, 6.0])
    assert model.intercept_ == pytest.approx(1.5, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("f (y_pred, y_true) => (loss) { r = Sub (y_pred, y_true) loss = Mul (r, r) }", "target"),
        (
            "f (score, target) => (loss) { r = Sub (score, target) los = Mul (r, r) }",
            "No line computes the output loss. Did you mean los?",
        ),
        (
            "f (score, target) => (loss) { r = Sub (score, targt) loss = Mul (r, r) }",
            "Did you mean target",
        ),
    ],
)
def test_a_wrong_name_is_told_before_a_target_that_is_not_used(text, match):
    with pytest.raises(ValueError, match=f"loss: value .*{re.escape(match)}"):
        OrtSGDRegressor(loss=Loss(text)).fit(X, Y)


@pytest.mark.parametrize("options", [{}, {"max_iter": 30}, {"eta0": 0.1, "max_iter": 30}])
def test_a_loss_whose_gradient_is_zero_is_told(options):
    steps = Loss(
        "steps (score, target) => (loss) { d = Sub (score, target) s = Mul (d, d) loss = Sign (s) }"
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = OrtSGDRegressor(loss=steps, random_state=0, **options).fit(X, Y)
    assert not model.coef_.any()
    # Each warning says so, and none has a cure that changes nothing.
    messages = [str(each.message) for each in caught]
    told = "'steps' has a gradient of zero at all scores, so that nothing is trained"
    assert len(messages) > 1 and all(told in each for each in messages)
    assert not any(re.search("Round|eta0|alpha|Check whether", each) for each in messages)


def test_a_loss_that_is_flat_near_the_target_has_a_gradient():
    wide = Loss(
        "wide (score, target) => (loss) { width = Constant <value = float {30.0}> () "
        "d = Sub (score, target) a = Abs (d) b = Sub (a, width) loss = Relu (b) }"
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        OrtSGDRegressor(loss=wide, eta0=0.01, random_state=0).fit(X, Y)
    assert not any("gradient of zero" in str(each.message) for each in caught)


def test_an_operator_without_a_gradient_is_written_with_others():
    log_cosh = (
        "log_cosh (score, target) => (loss) { d = Sub (score, target) c = Cosh (d) loss = Log (c) }"
    )
    with pytest.raises(NotTrainableError, match=r"Log\(Cosh\(d\)\) is d \+ Softplus\(-2 \* d\)"):
        OrtSGDRegressor(loss=Loss(log_cosh)).fit(X, Y)

    written = Loss(
        "log_cosh (score, target) => (loss) { two = Constant <value = float {-2.0}> () "
        "log2 = Constant <value = float {0.6931472}> () d = Sub (score, target) "
        "e = Mul (d, two) s = Softplus (e) t = Add (d, s) loss = Sub (t, log2) }"
    )
    model = OrtSGDRegressor(loss=written, penalty=None, random_state=0).fit(X, Y)
    residuals = model.predict(X) - Y
    # It is least where the mean of the gradients is zero.
    np.testing.assert_allclose(X.T @ np.tanh(residuals) / len(X), 0, atol=1e-3)
    assert model.loss_ == pytest.approx(np.log(np.cosh(residuals)).mean(), rel=1e-4)


@pytest.mark.parametrize("unread", [0.0, 1.0])
@pytest.mark.parametrize("size", [0.01, 300.0, 1e5])
@pytest.mark.parametrize(
    "inside", [None, MLPRegressor(hidden_layer_sizes=(20,))], ids=["linear", "network"]
)
def test_a_gaussian_ends_at_its_optimum_in_any_unit(inside, size, unread):
    seeded = np.random.default_rng(2)
    X = seeded.uniform(-2, 2, size=(1000, 2))
    logarithm = 0.4 * X[:, 0] - 0.5
    y = size * (2 * X[:, 0] - X[:, 1] + 1 + np.exp(logarithm) * seeded.normal(size=1000))
    both = np.column_stack([y, unread * y])
    model = OrtSGDRegressor(inside, loss=Loss(GAUSSIAN), alpha=0, random_state=0).fit(X, both)
    mean, found = model.predict(X).T
    likelihood = (0.5 * ((mean - y) * np.exp(-found)) ** 2 + found).mean() - np.log(size)
    true = (2 * X[:, 0] - X[:, 1] + 1) * size
    of_true = (0.5 * ((true - y) / size * np.exp(-logarithm)) ** 2 + logarithm).mean()
    assert of_true - 0.03 < likelihood < of_true + 0.01


@pytest.mark.parametrize(
    "estimator, y, message",
    [
        (OrtSGDRegressor(), Y, "one column, as y has. Give y with 2 columns."),
        (OrtSGDClassifier(), Y > 0, "one column, as a classifier of 2 classes trains. Use a regr"),
    ],
    ids=["regressor", "classifier"],
)
def test_a_column_that_the_score_lacks_is_named(estimator, y, message):
    estimator.set_params(loss=Loss(GAUSSIAN))
    beginning = "loss: it reads column 1 of score or target, which have "
    with pytest.raises(NotTrainableError, match=re.escape(beginning + message)):
        estimator.fit(X, y)
