"""Where a fitted network begins on new rows, and what is said where that does not help."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.training import fitting

DIGITS, LABELS = load_digits(return_X_y=True)
OLD, NEW, TEST = slice(0, 500), slice(500, 1000), slice(1000, None)


@pytest.fixture(scope="module")
def network():
    return MLPClassifier((32, 16), max_iter=300, random_state=0).fit(DIGITS[OLD], LABELS[OLD])


@pytest.fixture
def starts(monkeypatch):
    """Where trainings have begun."""
    found, original = [], fitting.fitted_start

    def seen(*arguments):
        found.append(original(*arguments))
        return found[-1]

    monkeypatch.setattr(fitting, "fitted_start", seen)
    return found


def with_factor(network, factor):
    scaled = MLPClassifier.__new__(MLPClassifier)
    vars(scaled).update(vars(network))
    scaled.coefs_ = [factor * coef for coef in network.coefs_]
    scaled.intercepts_ = [factor * intercept for intercept in network.intercepts_]
    return scaled


def tuned(network, X, y, **parameters):
    return OrtSGDClassifier(FrozenEstimator(network), **{"random_state": 0, **parameters}).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_loss_before_the_first_update_is_compared_with_that_of_the_shares_of_the_classes(network, starts):
    weights = np.random.RandomState(0).uniform(1, 3, 500)
    model = OrtSGDClassifier(FrozenEstimator(network), random_state=0, max_iter=1)
    model.fit(DIGITS[NEW], LABELS[NEW], sample_weight=weights)
    (start,) = starts
    shares = np.bincount(LABELS[NEW], weights) / weights.sum()
    assert start.constant_loss == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-5)
    loss = log_loss(LABELS[NEW], network.predict_proba(DIGITS[NEW]), sample_weight=weights)
    assert start.share == pytest.approx(loss / start.constant_loss, rel=1e-4)
    # It knows its own rows, and begins with its own weights.
    tuned(network, DIGITS[OLD], LABELS[OLD], max_iter=1)
    assert starts[1].share < 0.1
    np.testing.assert_allclose(starts[1].model.weights()["coefficient"], network.coefs_[0], rtol=1e-5, atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_sure_and_wrong_begins_with_smaller_weights(network, starts):
    X = -DIGITS[NEW]
    tuned(network, X, LABELS[NEW], standardize=False, max_iter=1)
    factors = [1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01]
    losses = [log_loss(LABELS[NEW], with_factor(network, factor).predict_proba(X)) for factor in factors]
    # The largest factor whose loss is nearly the least.
    best = np.flatnonzero(losses <= 1.02 * np.min(losses))[0]
    assert starts[0].share == 1.0 < best
    expected = with_factor(network, factors[best]).coefs_[1]
    np.testing.assert_allclose(starts[0].model.weights()["coefficient1"], expected, rtol=1e-5)
    # A rate of the user's is one for the weights as they are.
    tuned(network, X, LABELS[NEW], standardize=False, max_iter=1, eta0=1e-9)
    np.testing.assert_allclose(starts[1].model.weights()["coefficient1"], network.coefs_[1], rtol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_regressor_is_compared_with_the_mean(starts):
    X, y = DIGITS[:300], LABELS[:300] * 3.0 + 100
    network = MLPRegressor(hidden_layer_sizes=(8,), max_iter=200, random_state=0).fit(X, y)
    OrtSGDRegressor(FrozenEstimator(network), max_iter=1, random_state=0).fit(X, y)
    assert starts[0].constant_loss == pytest.approx(y.var() / 2, rel=1e-4)
    loss = ((network.predict(X) - y) ** 2).mean() / 2
    assert starts[0].share == pytest.approx(min(1.0, loss / starts[0].constant_loss), rel=1e-3)


def test_linear_and_drawn_models_begin_as_ever(starts):
    rows = DIGITS[OLD], LABELS[OLD]
    with pytest.warns(ConvergenceWarning):
        tuned(LogisticRegression(max_iter=20).fit(*rows), *rows, max_iter=2)
    OrtSGDClassifier(MLPClassifier((4,)), random_state=0, max_iter=2, tol=None).fit(*rows)
    assert starts == []


@pytest.mark.parametrize("factor", [16, 1 / 16])
def test_rows_in_other_units_destroy_nothing(network, factor):
    model = tuned(network, factor * DIGITS[NEW], LABELS[NEW])
    assert model.score(factor * DIGITS[TEST], LABELS[TEST]) > network.score(DIGITS[TEST], LABELS[TEST]) - 0.02


def test_a_training_that_ends_above_the_fitted_weights_keeps_them(network):
    rows = 16 * DIGITS[NEW], LABELS[NEW]
    with pytest.warns(ConvergenceWarning, match="above that of the initial weights, which it keeps"):
        model = tuned(network, *rows, eta0=2.0, max_iter=3, learning_rate="constant")
    np.testing.assert_array_equal(model.predict(rows[0]), network.predict(rows[0]))
    np.testing.assert_allclose(model.weights_["coefficient1"], network.coefs_[1], rtol=1e-6)


def test_a_network_that_says_no_more_than_a_constant_says_so(network):
    # Intercepts do not mend what is wrong.
    with pytest.warns(
        ConvergenceWarning, match="no better than a constant prediction: its loss is .* that of the best"
    ):
        tuned(network, -DIGITS[NEW], LABELS[NEW], trainable="intercepts1", max_iter=20)


@pytest.mark.filterwarnings("ignore:lbfgs failed:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("unit, shift", [(1, 0), (100, 5000)])
def test_a_stream_of_unchanged_rows_destroys_no_regressor(unit, shift):
    # One update of few rows at the minimum would hide a rate at which the next ones diverge.
    X, y = make_regression(600, 8, noise=5, random_state=0)
    y = unit * y + shift
    fitted = MLPRegressor(hidden_layer_sizes=(32,), solver="lbfgs", max_iter=500, random_state=0).fit(X[:300], y[:300])
    stream = OrtSGDRegressor(FrozenEstimator(fitted), random_state=0)
    for start in range(300, 500, 20):
        stream.partial_fit(X[start : start + 20], y[start : start + 20])
    assert stream.score(X[500:], y[500:]) > fitted.score(X[500:], y[500:]) - 0.01
