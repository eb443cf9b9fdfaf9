"""Losses of several outputs, and of classes with weights, against the sums of their formulas."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import _sgd_fast

from skort.objective import (
    AbsoluteError,
    Hinge,
    LogLoss,
    Loss,
    ModifiedHuber,
    OneVsRestLogLoss,
    PoissonLoss,
    Quantile,
    SquaredError,
    SquaredHinge,
)
from skort.objective.combined import ClassWeighted, OutputLosses
from skort.objective.loss import CLASSIFICATION_LOSSES

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
        gradients.append(
            run_function(loss.gradient_function(WIDTHS[name]), "float64", *given) / WIDTHS[name]
        )
    given = run_function(losses.value_function(6), dtype, score, target)
    np.testing.assert_allclose(
        given, sum(values), rtol=rtol, atol=1e-6 if dtype == "float32" else 1e-14
    )
    given = run_function(losses.gradient_function(6), dtype, score, target)
    np.testing.assert_allclose(
        given, np.hstack(gradients), rtol=rtol, atol=1e-6 if dtype == "float32" else 1e-14
    )
    assert losses.weight_scale(6) == 1.0


def test_each_output_has_its_own_link(rng, run_function):
    score = rng.normal(size=(5, 6))
    expected = np.hstack([score[:, :3], np.exp(score[:, 3:])])
    given = run_function(OutputLosses(LOSSES, WIDTHS).inverse_link_function(6), "float64", score)
    np.testing.assert_allclose(given, expected, rtol=1e-12)
    assert (
        OutputLosses({"a": SquaredError(), "b": AbsoluteError()}, WIDTHS).inverse_link_function(3)
        is None
    )


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


WEIGHTS = np.array([0.3, 1.0, 1e-9])
DTYPES = {"float32": {"rtol": 5e-6, "atol": 5e-7}, "float64": {"rtol": 1e-12, "atol": 1e-14}}


def data(rng):
    """Return scores of three classes and one-hot targets."""
    return 2 * rng.normal(size=(30, 3)), np.eye(3)[np.arange(30) % 3]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "loss, reference",
    [(Hinge(), _sgd_fast.Hinge(1.0)), (SquaredHinge(), _sgd_fast.SquaredHinge(1.0))],
)
def test_positives_count_as_often_as_their_class_says_and_all_others_once(
    loss, reference, dtype, rng, run_function
):
    score, target = data(rng)
    weighted = ClassWeighted(loss, WEIGHTS)
    counts = np.where(target == 1, WEIGHTS, 1.0)
    pairs = list(zip(score.ravel(), (2 * target - 1).ravel(), strict=True))
    for function, of_pair in (
        (weighted.value_function(3), reference.py_loss),
        (weighted.gradient_function(3), reference.py_dloss),
    ):
        expected = counts * np.reshape([of_pair(s, y) for s, y in pairs], score.shape)
        np.testing.assert_allclose(
            run_function(function, dtype, score, target), expected, **DTYPES[dtype]
        )


def test_weights_of_one_change_nothing(rng, run_function):
    score, target = data(rng)
    for loss in (ModifiedHuber(), OneVsRestLogLoss()):
        weighted = ClassWeighted(loss, np.ones(3))
        for name in ("value_function", "gradient_function"):
            ours, theirs = (
                run_function(getattr(some, name)(3), "float64", score, target)
                for some in (weighted, loss)
            )
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
    np.testing.assert_allclose(
        run_function(function, dtype, score), expected, rtol=1e-6, atol=1e-30
    )


def test_the_curvature_is_that_of_the_class_that_counts_most():
    assert ClassWeighted(SquaredHinge(), np.array([0.3, 2.5])).curvature(
        2
    ) == 2.5 * SquaredHinge().curvature(2)
    assert ClassWeighted(SquaredHinge(), np.array([0.3, 0.5])).curvature(
        2
    ) == SquaredHinge().curvature(2)
    assert ClassWeighted(Hinge(), WEIGHTS).curvature(3) is None
