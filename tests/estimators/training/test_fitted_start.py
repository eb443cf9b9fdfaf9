"""Where a fitted network begins on new rows, and what is said where that does not help."""

import copy
import pickle
from collections import namedtuple

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits, make_friedman1, make_regression
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
        start = original(*arguments)
        found.append(FittedStart(*start))
        return start

    monkeypatch.setattr(fitting, "fitted_start", seen)
    return found


FittedStart = namedtuple("FittedStart", ["model", "share", "constant_loss"])
GAINS = [1.0, *(2.0 ** (sign * k) for k in range(1, 11) for sign in (-1, 1))]


def with_gain(network, gain):
    other = copy.deepcopy(network)
    other.coefs_[0] = gain * network.coefs_[0]
    return other


def least_loss(network, X, y, weights=None):
    """Return the least loss, and its gain, each a twentieth below those of gains nearer to one."""
    least, best = log_loss(y, network.predict_proba(X), sample_weight=weights), 1.0
    for gain in GAINS:
        loss = log_loss(y, with_gain(network, gain).predict_proba(X), sample_weight=weights)
        least, best = (loss, gain) if loss < 0.95 * least else (least, best)
    return least, best


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
    loss, _ = least_loss(network, DIGITS[NEW], LABELS[NEW], weights)
    assert start.share == pytest.approx(loss / start.constant_loss, rel=1e-4)
    # It knows its own rows, and begins with its own weights.
    tuned(network, DIGITS[OLD], LABELS[OLD], max_iter=1)
    assert starts[1].share < 0.1
    np.testing.assert_allclose(starts[1].model.weights()["coefficient"], network.coefs_[0], rtol=1e-5, atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("factor", [-1, 1 / 40, 1000])
def test_a_network_begins_in_the_units_of_X_in_which_its_loss_is_least(network, starts, factor):
    X = factor * DIGITS[NEW]
    tuned(network, X, LABELS[NEW], standardize=False, max_iter=1)
    loss, gain = least_loss(network, X, LABELS[NEW])
    assert gain < 1 if abs(factor) >= 1 else gain > 1
    assert starts[0].share == pytest.approx(min(1.0, loss / starts[0].constant_loss), rel=1e-4)
    weights = starts[0].model.weights()
    np.testing.assert_allclose(weights["coefficient"], gain * network.coefs_[0], rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(weights["coefficient1"], network.coefs_[1], rtol=1e-5)
    # A rate of the user's is one for the weights as they are.
    tuned(network, X, LABELS[NEW], standardize=False, max_iter=1, eta0=1e-9)
    np.testing.assert_allclose(starts[1].model.weights()["coefficient"], network.coefs_[0], rtol=1e-6, atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("unit, shift", [(16, 3), (-1, 0), (1, 5e3)])
@pytest.mark.parametrize("standardize", ["auto", False])
def test_scores_of_a_regressor_begin_on_the_line_that_fits_y_best(starts, unit, shift, standardize):
    X, y = make_regression(100, 4, n_targets=2, noise=5, random_state=0)
    y, weights = y / 50, np.random.RandomState(0).uniform(1, 3, 100)
    network = MLPRegressor(hidden_layer_sizes=(16,), solver="lbfgs", max_iter=100, random_state=0).fit(X, y)
    model = OrtSGDRegressor(FrozenEstimator(network), random_state=0, max_iter=1, standardize=standardize)
    changed = unit * y + shift
    model.fit(X, changed, sample_weight=weights)
    scores = network.predict(X)
    lines = [np.polyval(np.polyfit(scores[:, j], changed[:, j], 1, w=np.sqrt(weights)), scores[:, j]) for j in (0, 1)]
    loss = np.average((np.transpose(lines) - changed) ** 2, axis=0, weights=weights).mean() / 2
    assert starts[0].share * starts[0].constant_loss == pytest.approx(loss, rel=1e-2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:lbfgs failed:sklearn.exceptions.ConvergenceWarning")
def test_a_regressor_is_compared_with_the_mean(starts):
    X, y = DIGITS[:300], LABELS[:300] * 3.0 + 100
    network = MLPRegressor(hidden_layer_sizes=(16,), solver="lbfgs", random_state=0).fit(X, y)
    OrtSGDRegressor(FrozenEstimator(network), max_iter=1, random_state=0).fit(X, y)
    assert starts[0].constant_loss == pytest.approx(y.var() / 2, rel=1e-4)
    loss = ((network.predict(X) - y) ** 2).mean() / 2
    assert starts[0].share == pytest.approx(loss / starts[0].constant_loss, rel=1e-3)
    assert starts[0].share < 0.3


def test_linear_and_drawn_models_begin_as_ever(starts):
    rows = DIGITS[OLD], LABELS[OLD]
    with pytest.warns(ConvergenceWarning):
        tuned(LogisticRegression(max_iter=20).fit(*rows), *rows, max_iter=2)
    OrtSGDClassifier(MLPClassifier((4,)), random_state=0, max_iter=2, tol=None).fit(*rows)
    assert starts == []


@pytest.mark.parametrize("factor", [16, 1 / 16, 1000])
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


@pytest.fixture(scope="module")
def curve():
    """Rows, and a network that was fitted on the first 300 of them."""
    X, y = make_friedman1(900, 8, noise=0.5, random_state=0)
    X, y = (X - 0.5) * 12**0.5, (y - y.mean()) / y.std()
    return X, y, MLPRegressor(hidden_layer_sizes=(32,), alpha=0.01, max_iter=2000, random_state=0).fit(X[:300], y[:300])


@pytest.mark.parametrize("of_X, unit, shift", [(16, 100, 5000), (16, 1, 0), (1 / 16, 1, 0), (1, 16, 0), (1, 1, 0)])
def test_a_stream_in_other_units_destroys_no_regressor(curve, of_X, unit, shift):
    X, y, fitted = curve
    X, known = of_X * X, fitted.score(X[700:], y[700:])
    y = unit * y + shift
    stream = OrtSGDRegressor(FrozenEstimator(fitted), random_state=0)
    for start in range(300, 500, 20):
        stream.partial_fit(X[start : start + 20], y[start : start + 20])
        assert stream.score(X[700:], y[700:]) > known - 0.05


@pytest.mark.parametrize("of_X, unit, shift", [(16, 100, 5000), (1, 16, 0), (1, -1, 3)])
def test_a_regressor_learns_from_rows_in_other_units_what_it_learns_from_those_as_they_were(curve, of_X, unit, shift):
    X, y, fitted = curve
    scores = []
    for rows, target in ((X, y), (of_X * X, unit * y + shift)):
        model = OrtSGDRegressor(FrozenEstimator(fitted), random_state=0).fit(rows[300:700], target[300:700])
        scores.append(model.score(rows[700:], target[700:]))
    assert scores[0] > fitted.score(X[700:], y[700:])
    assert scores[1] > scores[0] - 0.02


@pytest.mark.parametrize("size", [20, 100])
def test_a_stream_of_unchanged_rows_loses_nothing(network, size):
    stream = OrtSGDClassifier(FrozenEstimator(network), random_state=0)
    for start in range(500, 1000, size):
        stream.partial_fit(DIGITS[start : start + size], LABELS[start : start + size])
        assert stream.score(DIGITS[TEST], LABELS[TEST]) > network.score(DIGITS[TEST], LABELS[TEST]) - 0.02


@pytest.mark.parametrize("optimizer", ["auto", "sgd"])
@pytest.mark.parametrize("size, factor", [(1, 1), (1, 16), (3, 1)])
def test_a_stream_of_single_rows_loses_nothing(network, optimizer, size, factor):
    stream = OrtSGDClassifier(FrozenEstimator(network), optimizer=optimizer, random_state=0)
    for start in range(500, 500 + 200 * size, size):
        stream.partial_fit(factor * DIGITS[start : start + size], LABELS[start : start + size])
    test = slice(1100, None)
    assert stream.score(factor * DIGITS[test], LABELS[test]) > network.score(DIGITS[test], LABELS[test]) - 0.02


@pytest.mark.parametrize("optimizer", ["auto", "sgd"])
@pytest.mark.parametrize("of_X, unit, shift", [(1, 1, 0), (16, 1, 0), (1, 100, 5000)])
def test_a_stream_of_single_rows_destroys_no_regressor(curve, optimizer, of_X, unit, shift):
    X, y, fitted = curve
    X, known = of_X * X, fitted.score(X[700:], y[700:])
    y = unit * y + shift
    stream = OrtSGDRegressor(FrozenEstimator(fitted), optimizer=optimizer, random_state=0)
    for start in range(300, 500):
        stream.partial_fit(X[start : start + 1], y[start : start + 1])
    assert stream.score(X[700:], y[700:]) > known - 0.02


def test_twenty_rows_choose_the_rate_of_a_stream(curve, starts):
    X, y, fitted = curve
    stream = OrtSGDRegressor(FrozenEstimator(fitted), random_state=0)
    for start in range(300, 322):
        # A copy goes on to the same bytes.
        stream = pickle.loads(pickle.dumps(stream))
        stream.partial_fit(X[start : start + 1], y[start : start + 1])
    (start,) = starts
    rate = 0.01 * start.share**2
    etas = [*(0.01 * 1e-8 * k / 20 for k in range(1, 20)), rate, rate / 20, rate / 20]
    np.testing.assert_allclose(stream.history_["eta"], etas, rtol=1e-6)
    assert (stream.n_iter_, stream.t_) == (22, 22)
    variables = stream._result.state.standardization
    np.testing.assert_allclose(variables.mean, X[300:320].mean(axis=0), rtol=1e-12)
    assert variables.target_scale == pytest.approx(y[300:320].std())
    assert stream._result.state.first_rows is None


def test_the_first_rows_of_a_stream_may_be_sparse_and_have_weights(network):
    X, weights = scipy.sparse.csr_matrix(DIGITS[500:520]), np.linspace(1, 3, 20)
    models = []
    for first in (7, 20):
        stream = OrtSGDClassifier(FrozenEstimator(network), penalty=None, random_state=0)
        for part in (slice(0, first), slice(first, 20)):
            if LABELS[500:520][part].size:
                stream.partial_fit(X[part], LABELS[500:520][part], sample_weight=weights[part])
        models.append(stream)
    # The first seven have nearly no effect until the others come.
    for name, weight in models[1].weights_.items():
        np.testing.assert_allclose(models[0].weights_[name], weight, atol=2e-4)
    assert models[0].history_["eta"][1] == pytest.approx(models[1].history_["eta"][0], rel=1e-2)


@pytest.mark.parametrize("optimizer", ["auto", "sgd"])
def test_a_stream_may_reuse_its_arrays(network, optimizer):
    frozen, buffer, labels = FrozenEstimator(network), np.empty((5, 64)), np.empty(5, int)
    fresh, reused = (OrtSGDClassifier(frozen, optimizer=optimizer, random_state=0) for _ in range(2))
    for begin in range(500, 550, 5):
        rows = slice(begin, begin + 5)
        buffer[...], labels[...] = DIGITS[rows], LABELS[rows]
        fresh.partial_fit(DIGITS[rows], LABELS[rows])
        reused.partial_fit(buffer, labels)
    for name, weights in fresh.weights_.items():
        np.testing.assert_array_equal(reused.weights_[name], weights)


@pytest.mark.parametrize("optimizer", ["auto", "sgd"])
@pytest.mark.parametrize("size", [6, 24])
def test_a_stream_that_begins_with_one_class_waits_for_another(optimizer, size):
    y = (LABELS > 4).astype(int)
    network = MLPClassifier((16,), max_iter=300, random_state=0).fit(DIGITS[OLD], y[OLD])
    before = network.score(DIGITS[TEST], y[TEST])
    model = OrtSGDClassifier(FrozenEstimator(network), optimizer=optimizer, random_state=0)
    of_one = 500 + np.flatnonzero(y[NEW] == 1)[:48]
    for begin in range(0, 48, size):
        model.partial_fit(DIGITS[of_one[begin : begin + size]], y[of_one[begin : begin + size]])
    assert model.score(DIGITS[TEST], y[TEST]) >= before - 0.01
    for begin in range(600, 1000, 20):
        model.partial_fit(DIGITS[begin : begin + 20], y[begin : begin + 20])
    assert model.score(DIGITS[TEST], y[TEST]) >= before - 0.02
    assert model.eta0_ > 0


@pytest.mark.parametrize("n_rows", [20, 50, 100])
def test_a_fit_of_few_unchanged_rows_loses_nothing(network, n_rows):
    model = tuned(network, DIGITS[500 : 500 + n_rows], LABELS[500 : 500 + n_rows])
    assert model.score(DIGITS[TEST], LABELS[TEST]) > network.score(DIGITS[TEST], LABELS[TEST]) - 0.03


@pytest.mark.parametrize("factor", [64, 256])
def test_early_stopping_in_other_units_costs_no_more_than_in_these(network, factor):
    rows, test = (factor * DIGITS[NEW], LABELS[NEW]), (factor * DIGITS[TEST], LABELS[TEST])
    assert tuned(network, *rows, early_stopping=True).score(*test) > tuned(network, *rows).score(*test) - 0.03
