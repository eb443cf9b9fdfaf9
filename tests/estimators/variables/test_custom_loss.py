"""What is said of a custom loss: its operator, its gradient, its lower bound, where it is none."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.variables.custom_loss import fault_of
from skort.exceptions import DivergedError, NotTrainableError
from skort.objective import Huber, Loss, SquaredError, WeightedSum
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
    with pytest.raises(ValueError, match=r"The loss 'log_ratio' is nan at the score") as caught:
        OrtSGDRegressor(inside, loss=Loss(value), random_state=0, **parameters).fit(X, Y)
    text = str(caught.value)
    score, target = map(float, re.search(r"score (\S+), for the target (\S+),", text).groups())
    assert score < target
    assert "Give eta0" not in text and "Lower eta0" not in text


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
