"""Each loss: value and gradient against scikit-learn's, closed forms and finite differences."""

import numpy as np
import pytest
from sklearn._loss import HalfBinomialLoss, HalfMultinomialLoss, HalfSquaredError

from skort.objective.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, LogLoss, SquaredError

LOSSES = REGRESSION_LOSSES | CLASSIFICATION_LOSSES

DTYPES = ["float32", "float64"]
# From rounding to underflow of the other class's probability.
EXTREME = np.array([0.0, 1e-4, 1.0, -1.0, 20.0, -20.0, 100.0, -100.0, 1e4, -1e4])


def case(name, n_outputs, rng):
    """Return scores and targets of 12 rows, and scikit-learn's value and gradient."""
    score = rng.normal(size=(12, n_outputs))
    if name == "squared_error":
        target = rng.normal(size=(12, n_outputs))
        value, gradient = np.empty_like(score), np.empty_like(score)
        for k in range(n_outputs):
            y, s = target[:, k].copy(), score[:, k].copy()
            value[:, k], gradient[:, k] = HalfSquaredError().loss_gradient(y, s)
        return score, target, value, gradient
    if n_outputs == 1:
        codes = rng.integers(0, 2, 12).astype(float)
        value, gradient = HalfBinomialLoss().loss_gradient(codes, score.ravel())
        return score, codes[:, None], value[:, None], gradient[:, None]
    codes = rng.integers(0, n_outputs, 12)
    value, gradient = HalfMultinomialLoss(n_classes=n_outputs).loss_gradient(codes.astype(float), score)
    return score, np.eye(n_outputs)[codes], value[:, None], gradient


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("name", sorted(LOSSES))
def test_value_and_gradient_are_scikit_learns(name, n_outputs, dtype, rng, run_function):
    loss = LOSSES[name]()
    score, target, value, gradient = case(name, n_outputs, rng)
    tolerance = {"rtol": 2e-5, "atol": 1e-6} if dtype == "float32" else {"rtol": 1e-12, "atol": 1e-14}
    np.testing.assert_allclose(run_function(loss.value(n_outputs), dtype, score, target), value, **tolerance)
    np.testing.assert_allclose(run_function(loss.gradient(n_outputs), dtype, score, target), gradient, **tolerance)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("name", sorted(LOSSES))
def test_gradient_is_the_finite_difference_of_the_value(name, n_outputs, rng, run_function):
    loss = LOSSES[name]()
    score, target, *_ = case(name, n_outputs, rng)
    gradient = run_function(loss.gradient(n_outputs), "float64", score, target)
    h = 1e-6
    for k in range(n_outputs):
        step = h * np.eye(n_outputs)[k]
        up = run_function(loss.value(n_outputs), "float64", score + step, target).sum(axis=1)
        down = run_function(loss.value(n_outputs), "float64", score - step, target).sum(axis=1)
        np.testing.assert_allclose((up - down) / (2 * h), gradient[:, k], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_log_loss_of_extreme_scores(label, dtype, run_function):
    score = EXTREME[:, None]
    target = np.full_like(score, label)
    exact = np.logaddexp(0, score) - label * score
    value = run_function(LogLoss().value(1), dtype, score, target)
    # Half a unit in the last place of log(2) is the absolute error where the loss itself is smaller.
    np.testing.assert_allclose(value, exact, rtol=1e-6, atol=1e-7)
    probability = 1 / (1 + np.exp(-np.clip(score, -700, 700)))
    gradient = run_function(LogLoss().gradient(1), dtype, score, target)
    np.testing.assert_allclose(gradient, probability - label, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
def test_multinomial_log_loss_of_extreme_scores(dtype, run_function):
    score = np.stack([EXTREME, -EXTREME, np.zeros_like(EXTREME)], axis=1)
    target = np.tile([1.0, 0.0, 0.0], (len(EXTREME), 1))
    exact = np.logaddexp.reduce(score, axis=1) - score[:, 0]
    np.testing.assert_allclose(
        run_function(LogLoss().value(3), dtype, score, target).ravel(), exact, rtol=1e-6, atol=1e-6
    )


def test_which_losses_are_a_mean_over_the_outputs():
    assert SquaredError().elementwise
    assert not LogLoss().elementwise
