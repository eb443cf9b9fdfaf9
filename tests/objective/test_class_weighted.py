"""Losses of several classes, each against the rest: class weights of the positives, and the log-loss of sigmoids."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import _sgd_fast

from skort.objective import Hinge, LogLoss, Loss, ModifiedHuber, OneVsRestLogLoss, SquaredError, SquaredHinge
from skort.objective.class_weighted import ClassWeighted
from skort.objective.losses import CLASSIFICATION_LOSSES

WEIGHTS = np.array([0.3, 1.0, 1e-9])
DTYPES = {"float32": {"rtol": 2e-6, "atol": 1e-7}, "float64": {"rtol": 1e-12, "atol": 1e-14}}


def data(rng):
    """Return scores of three classes and one-hot targets."""
    return 2 * rng.normal(size=(30, 3)), np.eye(3)[np.arange(30) % 3]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "loss, reference", [(Hinge(), _sgd_fast.Hinge(1.0)), (SquaredHinge(), _sgd_fast.SquaredHinge(1.0))]
)
def test_positives_count_as_often_as_their_class_says_and_all_others_once(loss, reference, dtype, rng, run_function):
    score, target = data(rng)
    weighted = ClassWeighted(loss, WEIGHTS)
    counts = np.where(target == 1, WEIGHTS, 1.0)
    pairs = list(zip(score.ravel(), (2 * target - 1).ravel(), strict=True))
    for function, of_pair in (
        (weighted.value_function(3), reference.py_loss),
        (weighted.gradient_function(3), reference.py_dloss),
    ):
        expected = counts * np.reshape([of_pair(s, y) for s, y in pairs], score.shape)
        np.testing.assert_allclose(run_function(function, dtype, score, target), expected, **DTYPES[dtype])


def test_weights_of_one_change_nothing(rng, run_function):
    score, target = data(rng)
    for loss in (ModifiedHuber(), OneVsRestLogLoss()):
        weighted = ClassWeighted(loss, np.ones(3))
        for name in ("value_function", "gradient_function"):
            ours, theirs = (run_function(getattr(some, name)(3), "float64", score, target) for some in (weighted, loss))
            np.testing.assert_array_equal(ours, theirs)
        assert weighted.weight_scale(3) == loss.weight_scale(3) == 1
        assert weighted.inverse_link_function(3) == loss.inverse_link_function(3)
        assert weighted.estimator_types == ("classifier",)


def test_all_losses_but_the_softmax_are_of_one_class_against_the_rest():
    against_rest = {name for name, loss in CLASSIFICATION_LOSSES.items() if loss().one_against_rest}
    assert against_rest == set(CLASSIFICATION_LOSSES) - {"log_loss"}
    assert OneVsRestLogLoss().one_against_rest
    assert not SquaredError().one_against_rest and not Loss("").one_against_rest


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_against_rest_the_log_loss_is_the_sum_of_the_binary_ones(dtype, rng, run_function):
    score, target = data(rng)
    loss = OneVsRestLogLoss()
    value = run_function(loss.value_function(3), dtype, score, target)
    np.testing.assert_allclose(value, np.logaddexp(0, (1 - 2 * target) * score), **DTYPES[dtype])
    gradient = run_function(loss.gradient_function(3), dtype, score, target)
    np.testing.assert_allclose(gradient, expit(score) - target, **DTYPES[dtype])
    probabilities = run_function(loss.inverse_link_function(3), dtype, score)
    shares = expit(score) / expit(score).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities, shares, **DTYPES[dtype])


def test_two_classes_have_one_score_and_one_sigmoid():
    for name in ("value_function", "gradient_function", "inverse_link_function"):
        assert getattr(OneVsRestLogLoss(), name)(1) == getattr(LogLoss(), name)(1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_probabilities_exist_where_all_sigmoids_underflow(dtype, run_function):
    function = OneVsRestLogLoss().inverse_link_function(3)
    score = np.array([[-1000.0, -1000.0, -1001.0], [1000.0, -1000.0, 1000.0]])
    shares = np.array([1.0, 1.0, np.exp(-1)])
    expected = [shares / shares.sum(), [0.5, 0.0, 0.5]]
    np.testing.assert_allclose(run_function(function, dtype, score), expected, rtol=1e-6, atol=1e-30)


def test_the_curvature_is_that_of_the_class_that_counts_most():
    assert ClassWeighted(SquaredHinge(), np.array([0.3, 2.5])).curvature(2) == 2.5 * SquaredHinge().curvature(2)
    assert ClassWeighted(SquaredHinge(), np.array([0.3, 0.5])).curvature(2) == SquaredHinge().curvature(2)
    assert ClassWeighted(Hinge(), WEIGHTS).curvature(3) is None
