"""Losses of several outputs against the sums of their formulas."""

import numpy as np
import pytest
from sklearn.base import clone

from skort.objective import AbsoluteError, Loss, PoissonLoss, Quantile, SquaredError
from skort.objective.output_losses import OutputLosses

LOSSES = {"a": SquaredError(), "b": Quantile(0.25), "c": PoissonLoss()}
WIDTHS = {"a": 2, "b": 1, "c": 3}
# A row has one value, whatever the columns are.
ROW = """\
row (score, target) => (loss) {
    columns = Constant <value = int64[1] {1}> ()
    residual = Sub (score, target)
    square = Mul (residual, residual)
    loss = ReduceSum <keepdims = 1> (square, columns)
}"""


def parts(array):
    return dict(zip(WIDTHS, np.split(array, [2, 3], axis=1), strict=True))


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-12)])
def test_value_and_gradient_are_those_of_the_outputs(dtype, rtol, rng, run_function):
    losses, (score, target) = OutputLosses(LOSSES, WIDTHS), rng.normal(size=(2, 9, 6))
    values, gradients = [], []
    for name, loss in LOSSES.items():
        given = parts(score)[name], parts(target)[name]
        value = run_function(loss.value_function(WIDTHS[name]), "float64", *given)
        values.append(value.mean(axis=1, keepdims=True))
        gradients.append(run_function(loss.gradient_function(WIDTHS[name]), "float64", *given) / WIDTHS[name])
    given = run_function(losses.value_function(6), dtype, score, target)
    np.testing.assert_allclose(given, sum(values), rtol=rtol, atol=1e-6 if dtype == "float32" else 1e-14)
    given = run_function(losses.gradient_function(6), dtype, score, target)
    np.testing.assert_allclose(given, np.hstack(gradients), rtol=rtol, atol=1e-6 if dtype == "float32" else 1e-14)
    assert losses.weight_scale(6) == 1.0


def test_each_output_has_its_own_link(rng, run_function):
    score = rng.normal(size=(5, 6))
    expected = np.hstack([score[:, :3], np.exp(score[:, 3:])])
    given = run_function(OutputLosses(LOSSES, WIDTHS).inverse_link_function(6), "float64", score)
    np.testing.assert_allclose(given, expected, rtol=1e-12)
    assert OutputLosses({"a": SquaredError(), "b": AbsoluteError()}, WIDTHS).inverse_link_function(3) is None


def test_a_loss_of_the_users_gives_a_row_one_value(rng, run_function):
    losses = OutputLosses({"a": Loss(ROW), "b": SquaredError()}, {"a": 2, "b": 1})
    score, target = rng.normal(size=(2, 9, 3))
    residual = score - target
    expected = (residual[:, :2] ** 2).sum(axis=1) + residual[:, 2] ** 2 / 2
    given = run_function(losses.value_function(3), "float64", score, target)
    np.testing.assert_allclose(given.ravel(), expected, rtol=1e-12)
    assert losses.gradient_function(3) is None


def test_targets_are_checked_by_output():
    losses = OutputLosses(LOSSES, WIDTHS)
    losses.check_target(np.ones((2, 6)))
    with pytest.raises(ValueError, match="output 'c': "):
        losses.check_target(np.array([[1.0, 1, 1, 1, 1, -1]]))
    assert clone(losses).get_params(deep=False).keys() == {"losses", "widths"}
