"""The unit of a loss of one's own: twice its mean a standard deviation from the mean of y."""

import numpy as np
import pytest
from own_losses import GAUSSIAN, ROW

from skort.estimators.variables.score_losses import (
    best_constant_score,
    loss_unit,
    reads_together,
    score_units,
)
from skort.objective import AbsoluteError, Hinge, Loss, PoissonLoss, SquaredError
from skort.objective.loss import is_of_y

EXP = "exp (score) => (prediction) { prediction = Exp (score) }"
LEFT = """\
left (score, target, weight) => (loss) {
    residual = Sub (score, target)
    below = Relu (residual)
    loss = Mul (below, weight)
}"""


def body(lines):
    return Loss(f"own (score, target) => (loss) {{ residual = Sub (score, target)  {lines} }}")


@pytest.mark.parametrize(
    "loss, expected",
    [
        (SquaredError(), 9.0),
        (AbsoluteError(), 6.0),
        (Loss(ROW), 6.0),
        (Loss(LEFT), 3.0),
        (body("loss = Abs (residual)"), 6.0),
        # None of these is a unit: zero, negative, infinite, not a number.
        (body("loss = Mul (residual, score)"), 1.0),
        (body("distance = Abs (residual)  loss = Neg (distance)"), 1.0),
        (body("zero = Sub (residual, residual)  loss = Div (residual, zero)"), 1.0),
        (body("big = Mul (residual, residual)  huge = Exp (big)  loss = Exp (huge)"), 1.0),
        (body("loss = Sqrt (residual)"), 1.0),
    ],
)
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_it_is_twice_the_mean_loss_one_standard_deviation_off(loss, expected, n_outputs):
    mean = np.full(n_outputs, 50.0)
    assert loss_unit(loss, mean, mean, 3.0) == pytest.approx(expected, rel=1e-5)


def test_targets_beyond_float32_have_none():
    mean = np.array([1e300])
    assert loss_unit(body("loss = Abs (residual)"), mean, mean, 1e299) == 1.0


def test_only_a_loss_of_scores_in_units_of_y_needs_it():
    assert is_of_y(Loss(ROW), 2) and is_of_y(Hinge(), 1)
    assert not is_of_y(SquaredError(), 1) and not is_of_y(PoissonLoss(), 1)
    assert not is_of_y(Loss(ROW, inverse_link=EXP), 2)


def test_the_best_constant_of_a_mean_and_a_logarithm():
    mean, scale = np.array([50.0, 4.0]), np.array([300.0, 1.0])
    found = best_constant_score(Loss(GAUSSIAN), mean, scale)
    assert found.tolist() == [50.0, pytest.approx(np.log(300.0), abs=0.05)]


def test_a_loss_without_a_least_value_has_the_mean():
    falls = Loss("""
    falls (score, target) => (loss) {
        both = Constant <value = float[2, 1] {1, 1}> ()
        residual = Sub (target, score)
        loss = MatMul (residual, both)
    }""")
    assert best_constant_score(falls, np.ones(2), np.ones(2)).tolist() == [1.0, 1.0]


def test_a_score_has_units_of_the_columns_of_y_that_its_loss_reads():
    mean, scale = np.array([50.0, 4.0]), np.array([300.0, 7.0])
    units = score_units(Loss(GAUSSIAN), mean, scale)
    np.testing.assert_array_equal(units, [[50.0, 0.0], [300.0, 1.0]])
    np.testing.assert_array_equal(score_units(SquaredError(), mean, scale), [mean, scale])


def test_a_loss_of_one_column_reads_the_columns_together():
    assert reads_together(Loss(GAUSSIAN), 2)
    assert not reads_together(Loss(ROW), 1) and not reads_together(SquaredError(), 2)
