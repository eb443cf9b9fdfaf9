"""What is said of a custom loss whose training fails: its operator, its gradient, its lower bound."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.training.custom_loss import fault_of
from skort.exceptions import DivergedError, NotTrainableError
from skort.gradients import check_gradient
from skort.objective import Huber, Loss

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
    # The derivative is r, and -r is off by twice the largest one.
    assert check_gradient(loss, column(Y) + 1, column(Y)) == pytest.approx(2)
    model = OrtSGDRegressor(inside, loss=loss, optimizer=optimizer, max_iter=60, random_state=0)
    message = r"The gradient of the loss is not the derivative .*check_gradient\(loss, score, y\) returns 2,"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, Y)
        except DivergedError as error:
            caught.append(warnings.WarningMessage(error, ConvergenceWarning, "", 0))
    with pytest.raises(ConvergenceWarning, match=message):
        raise ConvergenceWarning(" ".join(str(each.message) for each in caught))


def test_a_loss_without_a_lower_bound_is_named():
    # y = -3 has the loss -3 s: 1,000 standard deviations away, -3 (-3 + 1000 * 4) = -11,991.
    found = fault_of(Loss(PRODUCT), column([5.0, -3.0, 5.0, -3.0]))
    assert "no lower bound: for one y, it is -1.2e+04 at a score 1,000 standard deviations" in found
    assert "away, and -1.2e+06 at 100,000" in found

    with pytest.raises(ValueError, match=r"^The loss seems to have no lower bound"):
        OrtSGDRegressor(loss=Loss(PRODUCT)).fit(X, Y)
    still = r"still falling, .* The loss seems to have no lower bound"
    with pytest.warns(ConvergenceWarning, match=still):
        OrtSGDRegressor(loss=Loss(PRODUCT), eta0=0.1, max_iter=30, random_state=0).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match=still):
        OrtSGDClassifier(loss=Loss(AGAINST_TARGET), eta0=0.1, max_iter=30, random_state=0).fit(
            X, LABELS > 0
        )


def test_an_operator_without_a_gradient_is_named_before_a_rate_is_asked_for():
    rounded = """
        rounded (score, target) => (loss) {
            whole = Round (score)
            loss = Mul (whole, target)
        }"""
    for fit in (OrtSGDRegressor.fit, OrtSGDRegressor.partial_fit):
        with pytest.raises(NotTrainableError, match=r"no gradient goes through the operator Round"):
            fit(OrtSGDRegressor(loss=Loss(rounded)), X, 0.01 * Y)
