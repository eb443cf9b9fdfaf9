"""The gradient of a custom penalty beside finite differences of its value, before a training."""

import re

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor
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
