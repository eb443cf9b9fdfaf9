"""The gradient of a custom penalty beside finite differences of its value, before a training."""

import re

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor
from skort.exceptions import DivergedError, NotTrainableError
from skort.objective import Penalty

SQUARE = """
    square (weight) => (penalty) {
        squares = Mul (weight, weight)
        penalty = ReduceSum <keepdims = 0> (squares)
    }"""
SLOPE = """
    slope (weight) => (gradient) {{
        factor = Constant <value = float {{{factor}}}> ()
        gradient = Mul (factor, weight)
    }}"""
# The derivative by the weight is that of PULL_SLOPE.
PULL = """
    pull (weight, start) => (penalty) {
        distance = Sub (weight, start)
        squares = Mul (distance, distance)
        penalty = ReduceSum <keepdims = 0> (squares)
    }"""
PULL_SLOPE = """
    slope (weight, start) => (gradient) {
        distance = Sub (weight, start)
        gradient = Add (distance, distance)
    }"""
NOT_THE_DERIVATIVE = (
    "^The penalty 'square' has a gradient that is not the derivative of its value: for the weight "
    r"(\w+)\[([\d, ]+)\] at (\S+), it is (\S+), and a finite difference of the value is (\S+)\. "
)
X = np.random.RandomState(0).normal(size=(43, 3))
Y = X @ [1.0, -2.0, 0.5]


@pytest.mark.parametrize("factor", [-2.0, 0.0, 1.0, 20.0])
@pytest.mark.parametrize("train", [OrtSGDRegressor.fit, OrtSGDRegressor.partial_fit])
@pytest.mark.parametrize("inner", [None, MLPRegressor(hidden_layer_sizes=(5,))])
def test_a_wrong_gradient_is_named_with_a_weight(inner, train, factor):
    penalty = Penalty(SQUARE, SLOPE.format(factor=factor), alpha=1e-3)
    model = OrtSGDRegressor(inner, penalty=penalty, random_state=0, tol=None, max_iter=3)
    with pytest.warns(UserWarning, match=NOT_THE_DERIVATIVE) as caught:
        train(model, X, Y)

    of_penalty = [each for each in caught if str(each.message).startswith("The penalty")]
    assert len(of_penalty) == 1
    found = re.search(NOT_THE_DERIVATIVE, str(of_penalty[0].message))
    name, place, *numbers = found.groups()
    weight, given, difference = map(float, numbers)
    assert name in model.weights_
    assert len(place.split(",")) == 2
    assert difference == pytest.approx(2 * weight, rel=1e-3)
    assert given == pytest.approx(factor * weight, rel=1e-3)


def test_one_wrong_element_is_named():
    # Only the last of three weights has a wrong derivative.
    slope = """
        slope (weight) => (gradient) {
            factors = Constant <value = float[3, 1] {2.0, 2.0, 3.0}> ()
            gradient = Mul (factors, weight)
        }"""
    model = OrtSGDRegressor(penalty=Penalty(SQUARE, slope, alpha=1e-3), random_state=0)
    with pytest.warns(UserWarning, match=r"weight coef\[2, 0\] at") as caught:
        model.fit(X, Y)
    found = re.search(NOT_THE_DERIVATIVE, str(caught[0].message))
    assert float(found[4]) == pytest.approx(1.5 * float(found[5]), rel=1e-3)


@pytest.mark.parametrize(
    ("value", "gradient"), [(SQUARE, SLOPE.format(factor=2.0)), (SQUARE, None), (PULL, PULL_SLOPE)]
)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_a_right_gradient_is_not(value, gradient, scale):
    # Warnings are errors.
    penalty = Penalty(value, gradient, alpha=1e-6)
    OrtSGDRegressor(penalty=penalty, eta0=0.1, random_state=0).fit(X, scale * Y)


def test_steps_may_have_any_gradient():
    # Between its steps the derivative is zero: the user chose that of the weights themselves.
    rounded = """
        rounded (weight) => (penalty) {
            size = Abs (weight)
            whole = Round (size)
            penalty = ReduceSum <keepdims = 0> (whole)
        }"""
    straight = "straight (weight) => (gradient) { gradient = Sign (weight) }"
    penalty = Penalty(rounded, straight, alpha=1e-4)
    OrtSGDRegressor(penalty=penalty, eta0=0.1, random_state=0).fit(X, Y)


def of(body, inputs="weight"):
    """Return the text of a penalty that ends with the sum of `terms`."""
    return f"""
    of ({inputs}) => (penalty) {{
        {body}
        penalty = ReduceSum <keepdims = 0> (terms)
    }}"""


NEGATIVE = of("squares = Mul (weight, weight)\n terms = Neg (squares)")
NO_LOWER_BOUND = (
    r"^The penalty 'of' seems to have no lower bound: it is (\S+) where the weight \w+ is (\S+) away "
    r"from its start, and (\S+) where it is (\S+) away\. Check its sign, unless the loss bounds it\.$"
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("inner", [None, MLPRegressor(hidden_layer_sizes=(5,))])
def test_a_penalty_that_falls_without_end_is_named(inner):
    penalty = Penalty(NEGATIVE, alpha=1e-6)
    model = OrtSGDRegressor(inner, penalty=penalty, random_state=0, max_iter=3)
    with pytest.warns(UserWarning, match=NO_LOWER_BOUND) as caught:
        model.fit(X, Y)

    of_penalty = [str(each.message) for each in caught if "penalty" in str(each.message)]
    assert len(of_penalty) == 1
    near, distance, far, farther = map(float, re.search(NO_LOWER_BOUND, of_penalty[0]).groups())
    # The negative sum of squares, of weights that are small beside the distance.
    n_weights = -near / distance**2
    assert far == pytest.approx(-n_weights * farther**2, rel=0.02)
    assert round(n_weights) in [weight.size for weight in model.weights_.values()]


@pytest.mark.parametrize(
    "body",
    [
        "terms = Abs (weight)",
        "terms = Exp (weight)",
        "squares = Mul (weight, weight)\n one = Constant <value = float {1}> ()\n"
        "more = Add (squares, one)\n terms = Reciprocal (more)",
    ],
)
def test_nothing_is_said_of_a_penalty_with_a_lower_bound(body):
    # Warnings are errors.
    OrtSGDRegressor(penalty=Penalty(of(body), alpha=1e-3), tol=None, max_iter=3).fit(X, Y)


@pytest.mark.parametrize(
    ("body", "alpha", "message"),
    [
        (
            "terms = Sqrt (weight)",
            1e-3,
            "'of' has a gradient that is no number where the weight coef is zero. It must be a "
            "number everywhere: change what Sqrt, Log, Pow or Div get in the value.$",
        ),
        (
            "terms = Mul (weight, weight)",
            1e3,
            "The custom penalty may be too strong: lower its alpha. Lower eta0.$",
        ),
    ],
)
def test_a_training_that_diverges_names_what_is_wrong_with_the_penalty(body, alpha, message):
    with pytest.raises(DivergedError, match=message):
        OrtSGDRegressor(penalty=Penalty(of(body), alpha=alpha), eta0=0.1).fit(X, Y)


@pytest.mark.parametrize("train", [OrtSGDRegressor.fit, OrtSGDRegressor.partial_fit])
def test_an_input_of_a_penalty_that_is_not_used_is_refused(train):
    of_start = of("terms = Mul (start, start)", "weight, start")
    of_weight = of("terms = Mul (weight, weight)", "weight, start")
    with pytest.raises(NotTrainableError, match="penalty: its value does not use the weight"):
        train(OrtSGDRegressor(penalty=Penalty(of_start)), X, Y)
    with pytest.raises(NotTrainableError, match="penalty: value takes start and does not use it"):
        train(OrtSGDRegressor(penalty=Penalty(of_weight)), X, Y)
