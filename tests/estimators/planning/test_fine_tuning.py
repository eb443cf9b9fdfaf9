"""Where a fitted network begins on new rows, and what is said where that does not help."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_friedman1, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.exceptions import DivergedError
from skort.schedules import Constant, Warmup

DIGITS, LABELS = load_digits(return_X_y=True)
OLD, NEW, TEST = slice(0, 500), slice(500, 1000), slice(1000, None)


@pytest.fixture(scope="module")
def network():
    return MLPClassifier((32, 16), max_iter=300, random_state=0).fit(DIGITS[OLD], LABELS[OLD])


def tuned(network, X, y, **parameters):
    return OrtSGDClassifier(FrozenEstimator(network), **{"random_state": 0, **parameters}).fit(X, y)


def loss_of(network, X, y, weights=None):
    """Return the loss of a fitted network, and that of the best constant prediction."""
    shares = np.bincount(y, weights) / (len(y) if weights is None else weights.sum())
    return log_loss(y, network.predict_proba(X), sample_weight=weights), -(
        shares * np.log(shares)
    ).sum()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_file_has_the_rate_of_a_fitted_network_if_it_knows_the_rows(network):
    file = tuned(network, DIGITS[OLD], LABELS[OLD], eta0=1e-12, max_iter=1).onnx_
    for X, y, rate in ((DIGITS[NEW], LABELS[NEW], 0.001), (DIGITS[::-1][NEW], LABELS[NEW], 0.02)):
        loss, constant = loss_of(network, X, y)
        assert (loss < constant / 2) == (rate == 0.001)
        model = OrtSGDClassifier(file, max_iter=1, random_state=0).fit(X, y)
        because = model.plan_.decisions["first rate"].because
        assert because.startswith(
            f"{rate / 0.02:.2g} times the rate of a new network of few weights: this one has "
        )

    X, y = DIGITS[NEW], LABELS[NEW]
    assert tuned(network, X, y, early_stopping=False).eta0_ == pytest.approx(0.001)
    # A number is the rate itself.
    assert tuned(network, X, y, eta0=0.0003).eta0_ == pytest.approx(0.0003)


@pytest.mark.parametrize("parameters", [{"eta0": 0.01}, {"early_stopping": False}], ids=str)
def test_a_classifier_that_is_worse_than_a_constant_is_told_before_its_training(
    network, parameters
):
    rows = -DIGITS[NEW], LABELS[NEW]
    with pytest.warns(UserWarning, match="the fitted model is worse than a constant") as caught:
        model = tuned(network, *rows, **parameters)
    loss, constant = loss_of(network, *rows)
    assert str(caught[0].message).endswith(
        f"its loss is {loss:.4g}, that of the best constant {constant:.4g}. Training begins from its "
        "weights all the same. Check that X and y have the columns, units and labels of the rows "
        "that it was fitted on."
    )
    assert model.plan_.decisions["weights"].value == "fitted ones"


@pytest.mark.parametrize("activation", ["logistic", "relu"])
def test_a_regressor_of_other_units_ends_at_new_weights(activation):
    X, y = make_regression(101, 4, n_targets=2, noise=5, random_state=0)
    inner = MLPRegressor(
        hidden_layer_sizes=(7,), activation=activation, max_iter=200, alpha=0.1, random_state=0
    )
    with pytest.warns(ConvergenceWarning):
        fitted = make_pipeline(StandardScaler(), inner).fit(X, y)
    with pytest.warns(UserWarning, match="New weights are better .* units and labels"):
        model = OrtSGDRegressor(FrozenEstimator(fitted), random_state=5).fit(X + 3, 100 * y + 5000)
    assert model.plan_.decisions["weights"].value == "new ones"
    new = make_pipeline(FrozenEstimator(fitted[0]), clone(inner))
    same = OrtSGDRegressor(new, random_state=5).fit(X + 3, 100 * y + 5000)
    assert model.loss_ == pytest.approx(same.loss_, rel=0.5)
    assert model.eta0_ == same.eta0_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("parameters", [{"warm_start": True}, {"trainable": "*1"}], ids=str)
def test_weights_that_are_to_stay_are_warned_of_alone(network, parameters):
    with pytest.warns(UserWarning, match="Training begins from its weights all the same"):
        model = tuned(network, -DIGITS[NEW], LABELS[NEW], eta0=1e-12, max_iter=1, **parameters)
    np.testing.assert_allclose(
        model.predict_proba(DIGITS), network.predict_proba(DIGITS), atol=1e-5
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_nothing_is_said_of_a_file_whose_weights_may_be_initial_ones(network):
    file = tuned(network, DIGITS[NEW], LABELS[NEW], max_iter=1).onnx_
    model = OrtSGDClassifier(file, eta0=1e-12, max_iter=1, random_state=0).fit(
        -DIGITS[NEW], LABELS[NEW]
    )
    np.testing.assert_allclose(
        model.weights_["coefficient1"], network.coefs_[1], rtol=1e-2, atol=1e-2
    )


def noisy_rows(n_rows, effect, seed):
    """Return rows with a quarter of wrong labels, where a column has an effect of either sign."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n_rows, 10)) * np.arange(1, 11)
    label = X[:, 0] + effect * X[:, 1] / 2 > 0
    return X, np.where(rng.random_sample(n_rows) < 0.25, ~label, label).astype(int)


@pytest.mark.filterwarnings("ignore:On these rows, the fitted model is worse than a constant")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_plan_of_a_warm_start_is_that_of_a_new_network():
    (X, y), changed = noisy_rows(1000, 1, 0), noisy_rows(300, -1, 1)
    new = OrtSGDClassifier(MLPClassifier((60,)), max_iter=20, random_state=0).fit(*changed)
    warm = OrtSGDClassifier(MLPClassifier((60,)), max_iter=20, random_state=0).fit(X, y)
    frozen = tuned(warm.to_sklearn(), *changed, max_iter=20, early_stopping=False)
    warm.set_params(warm_start=True).fit(*changed)

    plan, of_new = (model.plan_.decisions for model in (warm, new))
    assert plan["weights"].value == "fitted ones"
    assert plan["first rate"].because.startswith("1 times the rate of a new network: this one")
    for matter in ("optimizer", "learning rate", "epochs"):
        assert str(plan[matter]) == str(of_new[matter])
    scales = plan["scaling"].value
    np.testing.assert_array_equal(scales.scale, of_new["scaling"].value.scale)
    assert scales.relevance[:2].min() > scales.relevance[2:].max() == pytest.approx(0.98, abs=0.01)
    assert frozen.plan_.decisions["scaling"].value.relevance is None
    # 660 weights for 300 rows multiply the decay by 1.1, and the noise by 2.
    decay = warm.optimizer_.weight_decay / frozen.optimizer_.weight_decay
    assert decay == pytest.approx(2.28, abs=0.02)


def test_a_warm_start_on_noisy_rows_of_another_kind_is_as_good_as_a_new_network():
    (X, y), changed, test = noisy_rows(2000, 1, 0), noisy_rows(300, -1, 1), noisy_rows(4000, -1, 2)
    model = OrtSGDClassifier(MLPClassifier((24,)), random_state=0)
    new = clone(model).fit(*changed)
    warm = model.fit(X, y).set_params(warm_start=True).fit(*changed)
    of_new, of_warm = (log_loss(test[1], each.predict_proba(test[0])) for each in (new, warm))
    assert of_new < 0.69
    assert of_warm < 1.02 * of_new


def test_a_training_that_ends_above_the_fitted_weights_keeps_them(network):
    rows = DIGITS[NEW], LABELS[NEW]
    with pytest.warns(
        ConvergenceWarning, match="above that of the initial weights, which it keeps"
    ):
        model = tuned(network, *rows, eta0=2.0, max_iter=3, learning_rate="constant")
    np.testing.assert_array_equal(model.predict(rows[0]), network.predict(rows[0]))
    np.testing.assert_allclose(model.weights_["coefficient1"], network.coefs_[1], rtol=1e-6)


def test_a_network_that_says_no_more_than_a_constant_says_so_when_it_begins_and_ends(network):
    # Intercepts do not mend what is wrong.
    changed = {"trainable": "intercepts1", "max_iter": 20, "early_stopping": False}
    rows = -DIGITS[NEW], LABELS[NEW]
    with pytest.warns(UserWarning) as caught:
        tuned(network, *rows, **changed)
    begins, ends = (str(warning.message) for warning in caught)
    assert begins.startswith("On these rows, the fitted model is worse than a constant prediction")
    assert ends.startswith("The training ended no better than a constant prediction: its loss is")

    # Nobody knows beforehand whether the weights of a file are fitted ones.
    file = tuned(network, DIGITS[NEW], LABELS[NEW], max_iter=1, early_stopping=False).onnx_
    with pytest.warns(
        ConvergenceWarning,
        match="no better than a constant prediction: its loss is .* these rows: train a new one. "
        "A larger eta0 or max_iter changes its weights more.$",
    ) as caught:
        OrtSGDClassifier(file, random_state=0, **changed).fit(*rows)
    assert len(caught) == 1


@pytest.mark.filterwarnings("ignore:lbfgs failed:sklearn.exceptions.ConvergenceWarning")
def test_a_stream_of_unchanged_rows_destroys_no_regressor():
    # One update of few rows at the minimum would hide a rate at which the next ones diverge.
    X, y = make_regression(600, 8, noise=5, random_state=0)
    fitted = MLPRegressor(
        hidden_layer_sizes=(32,), solver="lbfgs", max_iter=500, random_state=0
    ).fit(X[:300], y[:300])
    stream = OrtSGDRegressor(FrozenEstimator(fitted), random_state=0)
    for start in range(300, 500, 20):
        stream.partial_fit(X[start : start + 20], y[start : start + 20])
    assert stream.score(X[500:], y[500:]) > fitted.score(X[500:], y[500:]) - 0.01


@pytest.fixture(scope="module")
def curve():
    """Rows, and a network that was fitted on the first 300 of them."""
    X, y = make_friedman1(900, 8, noise=0.5, random_state=0)
    X, y = (X - 0.5) * 12**0.5, (y - y.mean()) / y.std()
    return (
        X,
        y,
        MLPRegressor(hidden_layer_sizes=(32,), alpha=0.01, max_iter=2000, random_state=0).fit(
            X[:300], y[:300]
        ),
    )


@pytest.mark.parametrize("size", [20, 100])
def test_a_stream_of_unchanged_rows_loses_nothing(network, size):
    stream = OrtSGDClassifier(FrozenEstimator(network), random_state=0)
    for start in range(500, 1000, size):
        stream.partial_fit(DIGITS[start : start + size], LABELS[start : start + size])
        assert (
            stream.score(DIGITS[TEST], LABELS[TEST])
            > network.score(DIGITS[TEST], LABELS[TEST]) - 0.02
        )


@pytest.mark.parametrize("optimizer", ["auto", "sgd"])
@pytest.mark.parametrize("size", [1, 3])
def test_a_stream_of_single_rows_loses_nothing(network, optimizer, size):
    stream = OrtSGDClassifier(FrozenEstimator(network), optimizer=optimizer, random_state=0)
    for start in range(500, 500 + 200 * size, size):
        stream.partial_fit(DIGITS[start : start + size], LABELS[start : start + size])
    test = slice(1100, None)
    assert (
        stream.score(DIGITS[test], LABELS[test]) > network.score(DIGITS[test], LABELS[test]) - 0.02
    )


@pytest.mark.parametrize("optimizer", ["auto", "sgd"])
def test_a_stream_of_single_rows_destroys_no_regressor(curve, optimizer):
    X, y, fitted = curve
    known = fitted.score(X[700:], y[700:])
    stream = OrtSGDRegressor(FrozenEstimator(fitted), optimizer=optimizer, random_state=0)
    for start in range(300, 500):
        stream.partial_fit(X[start : start + 1], y[start : start + 1])
    assert stream.score(X[700:], y[700:]) > known - 0.02


@pytest.mark.parametrize("optimizer", ["auto", "sgd"])
def test_a_stream_may_reuse_its_arrays(network, optimizer):
    frozen, buffer, labels = FrozenEstimator(network), np.empty((5, 64)), np.empty(5, int)
    fresh, reused = (
        OrtSGDClassifier(frozen, optimizer=optimizer, random_state=0) for _ in range(2)
    )
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


@pytest.fixture(scope="module")
def fitted_estimator(curve):
    X, y, _ = curve
    return OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(32,)), random_state=0).fit(
        X[:403], y[:403]
    )


def test_a_stream_after_a_fit_tells_once_of_another_sign(curve, fitted_estimator):
    X, y, _ = curve
    model = copy.deepcopy(fitted_estimator)
    rows = X[403:700], -y[403:700]
    loss = np.mean((model.predict(rows[0]) - rows[1]) ** 2) / 2
    begun = "the best constant .* Training begins from its weights all the same"
    with pytest.warns(UserWarning, match=begun) as caught:
        model.partial_fit(*rows)
    assert f"its loss is {loss:.4g}, that of the best constant {np.var(rows[1]) / 2:.4g}." in str(
        caught[0].message
    )
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(*rows)


def test_of_a_unit_that_is_far_away_one_warning_tells(curve, fitted_estimator):
    X, y, _ = curve
    with pytest.warns(UserWarning, match="y is .* standard deviations away") as caught:
        copy.deepcopy(fitted_estimator).partial_fit(X[403:], 300 * y[403:] + 1000)
    assert len(caught) == 1
    with pytest.warns(UserWarning, match="y has values .* times smaller") as caught:
        copy.deepcopy(fitted_estimator).partial_fit(X[403:], y[403:] / 1000)
    assert len(caught) == 1


def test_a_stream_after_a_fit_tells_of_swapped_labels():
    y = LABELS > 4
    model = OrtSGDClassifier(MLPClassifier((16,)), random_state=0).fit(DIGITS[OLD], y[OLD])
    same = copy.deepcopy(model)
    with pytest.warns(UserWarning, match="worse than a constant .* columns, units and labels"):
        model.partial_fit(DIGITS[NEW], ~y[NEW])
    # Warnings are errors: like rows have none.
    copy.deepcopy(same).partial_fit(DIGITS[NEW], y[NEW])
    rows = 500 + np.flatnonzero(y[NEW])
    with pytest.warns(UserWarning, match="^y has no row of the class False") as caught:
        same.partial_fit(DIGITS[rows], y[rows])
    assert len(caught) == 1


@pytest.mark.parametrize("size", [1, 3, 20, 99])
def test_nothing_is_said_of_a_stream_of_like_rows_after_a_fit(curve, fitted_estimator, size):
    X, y, _ = curve
    for start in range(403, 403 + 5 * size, size):
        # Each call is the first one after the fit.
        model = copy.deepcopy(fitted_estimator)
        model.partial_fit(X[start : start + size], y[start : start + size])


@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant")
def test_nothing_is_said_where_a_short_fit_goes_on_with_its_rows(curve):
    X, y, _ = curve
    inner = MLPRegressor(hidden_layer_sizes=(32,))
    model = OrtSGDRegressor(inner, eta0=1e-4, max_iter=1, random_state=0).fit(X, y)
    assert model.score(X, y) < -0.1
    model.partial_fit(X, y)


def test_nothing_is_said_of_few_rows_whose_own_mean_is_better_by_chance():
    # Of 20 rows, the mean takes a twentieth of the variance: more than there is to know.
    X = np.random.RandomState(0).normal(size=(1403, 5))
    y = 0.2 * X[:, 0] + np.random.RandomState(1).normal(size=1403)
    inner = MLPRegressor(hidden_layer_sizes=(16,))
    fitted = OrtSGDRegressor(inner, random_state=0).fit(X[:1003], y[:1003])
    are_worse = []
    for start in range(1003, 1403, 20):
        rows = slice(start, start + 20)
        are_worse.append(np.mean((fitted.predict(X[rows]) - y[rows]) ** 2) > np.var(y[rows]))
        copy.deepcopy(fitted).partial_fit(X[rows], y[rows])
    assert sum(are_worse) > 5


@pytest.mark.filterwarnings("ignore:The fitted weights stay")
@pytest.mark.parametrize("n_rows", [20, 50, 100])
def test_a_fit_of_few_unchanged_rows_loses_nothing(network, n_rows):
    model = tuned(network, DIGITS[500 : 500 + n_rows], LABELS[500 : 500 + n_rows])
    assert (
        model.score(DIGITS[TEST], LABELS[TEST]) > network.score(DIGITS[TEST], LABELS[TEST]) - 0.03
    )


def noisy(n_rows, seed, *, is_classifier):
    """Return rows whose noise a network can learn."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n_rows, 12))
    y = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(0, 1, n_rows)
    return X, (y > 0).astype(int) if is_classifier else y


@pytest.mark.filterwarnings("ignore:The fitted weights stay")
@pytest.mark.parametrize("is_classifier", [False, True])
def test_few_noisy_rows_like_many_old_ones_lose_little(is_classifier):
    network, estimator = (
        (MLPClassifier((50,)), OrtSGDClassifier)
        if is_classifier
        else (MLPRegressor(hidden_layer_sizes=(50,)), OrtSGDRegressor)
    )
    lost = []
    for seed in range(3):
        X, y = noisy(5303, seed, is_classifier=is_classifier)
        old = estimator(network, random_state=seed).fit(X[:3001], y[:3001])
        frozen = FrozenEstimator(old.to_sklearn())
        new, test = slice(3001, 3303), slice(3303, None)
        scores = [
            estimator(frozen, random_state=seed, early_stopping=stops)
            .fit(X[new], y[new])
            .score(X[test], y[test])
            for stops in ("auto", False)
        ]
        lost.append(old.score(X[test], y[test]) - np.array(scores))

    of_auto, of_last = np.transpose(lost)
    assert of_auto.mean() < 0.005
    assert of_auto.mean() < of_last.mean()


@pytest.mark.parametrize(("last_rate", "stays"), [(0.002, False), (0.1, False), (3.0, True)])
def test_the_lowest_validation_loss_comes_back_wherever_the_objective_ends(last_rate, stays):
    X, y = noisy(803, 0, is_classifier=False)
    old = MLPRegressor(hidden_layer_sizes=(16,), max_iter=300, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        old.fit(X[:400], y[:400])

    # The rate grows from epoch to epoch.
    model = OrtSGDRegressor(
        FrozenEstimator(old),
        learning_rate=Warmup(Constant(last_rate), 28),
        max_iter=14,
        tol=None,
        early_stopping=True,
        random_state=0,
    )
    X_val, y_val = X[603:], y[603:]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X[400:603], y[400:603], X_val=X_val, y_val=y_val)

    before, after = (np.mean((each.predict(X_val) - y_val) ** 2) / 2 for each in (old, model))
    lowest = -max(model.validation_scores_)
    assert after == pytest.approx(before if stays else lowest, rel=1e-5)
    assert (before < lowest) == stays
    # The last epoch is above the start.
    assert (model.history_["objective"][-1] > model.history_["objective"][0]) == (last_rate > 0.01)
    assert [w.category for w in caught] == [ConvergenceWarning] * stays


def test_weights_that_no_epoch_beats_on_held_out_rows_stay_and_are_told():
    X, y = noisy(6303, 0, is_classifier=False)
    network = MLPRegressor(hidden_layer_sizes=(50,))
    old = OrtSGDRegressor(network, random_state=0).fit(X[:3001], y[:3001])
    frozen = FrozenEstimator(old.to_sklearn())
    model = OrtSGDRegressor(frozen, early_stopping=True, random_state=0)
    held_out = X[3303:3403], old.predict(X[3303:3403])
    with pytest.warns(ConvergenceWarning, match="The fitted weights stay: the trained ones"):
        model.fit(X[3001:3303], y[3001:3303], X_val=held_out[0], y_val=held_out[1])
    assert model.plan_.decisions["kept"].value == "the fitted weights"
    np.testing.assert_allclose(model.predict(X), old.predict(X), atol=1e-5)


def test_rows_are_held_out_where_a_class_has_one(network):
    rows = [*range(500, 620), 620 + int(np.flatnonzero(LABELS[620:] == 3)[0])]
    others = [row for row in rows[:-1] if LABELS[row] != 3]
    rows = [*others, rows[-1]]
    model = tuned(network, DIGITS[rows], LABELS[rows], early_stopping=True)
    assert "validation" in model.plan_.decisions
    assert len(model.classes_) == 10


@pytest.mark.parametrize("parameters", [{}, {"early_stopping": True}, {"eta0": 0.001}], ids=str)
def test_the_score_of_the_old_network_stands_beside_that_of_the_new_one(
    network, parameters, capsys
):
    test = DIGITS[TEST][:201], LABELS[TEST][:201]
    rows = DIGITS[NEW], LABELS[NEW]
    model = OrtSGDClassifier(FrozenEstimator(network), random_state=0, verbose=1, **parameters)
    model.fit(*rows, X_val=test[0], y_val=test[1])
    old, new = (-log_loss(test[1], each.predict_proba(test[0])) for each in (network, model))
    assert model.initial_validation_score_ == pytest.approx(old, rel=1e-4)
    assert max(model.validation_scores_) > old
    told = f"its score is {old:.4g} with the fitted weights, and {new:.4g} now"
    assert f"Validation set: {told}.\n" in capsys.readouterr().out
    if "early_stopping" in parameters:
        assert max(model.validation_scores_) == model.best_validation_score_
        assert model.plan_.decisions["kept"].because.endswith(told)

    # Files keep it.
    assert pickle.loads(pickle.dumps(model)).initial_validation_score_ == pytest.approx(old, 1e-4)


def test_only_fitted_weights_have_a_score_before_the_training(network):
    test = DIGITS[TEST][:201], LABELS[TEST][:201]
    rows = DIGITS[NEW], LABELS[NEW]
    tuning = OrtSGDClassifier(
        FrozenEstimator(network), scoring="accuracy", early_stopping=False, random_state=0
    ).fit(*rows, X_val=test[0], y_val=test[1])
    assert tuning.initial_validation_score_ == network.score(*test)
    # A call of `partial_fit` has no validation set.
    assert tuning.partial_fit(*rows).initial_validation_score_ is None

    new = OrtSGDClassifier(MLPClassifier((5,)), early_stopping=True, max_iter=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert new.fit(*rows).initial_validation_score_ is None
        again = new.set_params(warm_start=True).fit(*rows, X_val=test[0], y_val=test[1])
    assert again.initial_validation_score_ is not None
    assert tuned(network, *rows, early_stopping=False).initial_validation_score_ is None


def test_a_score_ends_the_tuning_of_a_fitted_network(network):
    model = tuned(network, DIGITS[NEW], LABELS[NEW], scoring="accuracy", early_stopping=True)
    held_out = model.validation_scores_
    assert max(held_out) == model.best_validation_score_
    # A tenth of 500 rows: accuracies of fiftieths.
    np.testing.assert_allclose(np.array(held_out) * 50 % 1, 0, atol=1e-9)


def test_rows_of_one_class_have_the_least_rate_and_are_told():
    is_low = LABELS < 5
    network = MLPClassifier((16,), max_iter=300, random_state=0).fit(DIGITS[:900], is_low[:900])
    rows = np.flatnonzero(is_low[900:1000]) + 900
    with pytest.warns(UserWarning, match="^y has no row of the class False, which the fitted"):
        model = tuned(network, DIGITS[rows], is_low[rows], early_stopping=False)
    assert model.eta0_ == pytest.approx(0.001)


@pytest.mark.parametrize("n_rows", [5, 11, 19, 22])
def test_few_rows_of_the_same_kind_warn_of_nothing_worse_than_a_constant(network, n_rows):
    with warnings.catch_warnings():
        # Where rows are held out, the fitted weights may stay.
        warnings.filterwarnings("ignore", message="The fitted weights stay")
        model = tuned(network, DIGITS[NEW][:n_rows], LABELS[NEW][:n_rows])
    assert model.plan_.decisions["weights"].value == "fitted ones"
    assert model.score(DIGITS[1000:], LABELS[1000:]) > 0.9 * network.score(
        DIGITS[1000:], LABELS[1000:]
    )


def test_rows_of_which_a_network_knows_no_more_than_their_mean_may_say_nothing_against_it():
    # The network knows little, and of these 20 rows no more than their mean does.
    X = np.random.RandomState(2).normal(size=(1023, 5))
    y = 0.2 * X[:, 0] + np.random.RandomState(3).normal(size=1023)
    network = MLPRegressor(hidden_layer_sizes=(16,), early_stopping=True, random_state=0)
    network.fit(X[:1003], y[:1003])
    tuning = OrtSGDRegressor(FrozenEstimator(network), eta0=1e-12, max_iter=1, random_state=0)
    # Warnings are errors: nothing is said.
    model = tuning.fit(X[1003:], y[1003:])
    assert model.loss_ > 0.99 * np.var(y[1003:]) / 2


def test_rows_that_are_worse_than_a_constant_by_chance_keep_the_weights():
    # The network says x. One row of nine is far from that, and hides that the others are near.
    X, y = np.linspace(-1, 1, 9)[:, None], np.linspace(-1, 1, 9)
    network = MLPRegressor(hidden_layer_sizes=(2,), max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning):
        network.fit(X, y)
    network.coefs_ = [np.array([[1.0, -1.0]]), np.array([[1.0], [-1.0]])]
    network.intercepts_ = [np.zeros(2), np.zeros(1)]
    y[4] = 10
    gains = 0.5 * ((X[:, 0] - y) ** 2 - (y.mean() - y) ** 2)
    assert 0 < gains.sum() < 2 * np.sqrt(gains @ gains)

    # Warnings are errors: nothing is said.
    tuning = OrtSGDRegressor(FrozenEstimator(network), max_iter=1, eta0=1e-9, random_state=0)
    model = tuning.fit(X, y)
    assert model.plan_.decisions["weights"].value == "fitted ones"
    np.testing.assert_allclose(model.predict(X), X[:, 0], atol=1e-6)


@pytest.mark.filterwarnings("ignore:The fitted weights stay")
@pytest.mark.parametrize("n_rows", [2, 4])
def test_a_few_rows_do_not_tell_that_a_network_has_learned_nothing(n_rows):
    X, y = make_friedman1(400, noise=3.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network = MLPRegressor(hidden_layer_sizes=(32,), max_iter=500, random_state=0)
        network.fit(X[:300], y[:300])

    n_worse = 0
    for first in range(300, 340, n_rows):
        rows = slice(first, first + n_rows)
        n_worse += np.mean((network.predict(X[rows]) - y[rows]) ** 2) > np.var(y[rows])
        model = OrtSGDRegressor(FrozenEstimator(network), random_state=0).fit(X[rows], y[rows])
        assert model.plan_.decisions["weights"].value == "fitted ones"
        assert model.score(X[340:], y[340:]) > network.score(X[340:], y[340:]) - 0.02
    assert n_worse > 2


def test_a_fit_of_what_a_network_knows_says_that_the_fitted_weights_stay():
    # The sign of a number is the least that a network can learn.
    X = np.random.RandomState(0).normal(size=(200, 1))
    y = X[:, 0] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network = MLPClassifier((5,), max_iter=2000, random_state=0).fit(X, y)

    for stops, measure in ((True, "loss on the validation set"), (False, "objective on these")):
        with pytest.warns(ConvergenceWarning, match=f"^The fitted weights stay: .* {measure}"):
            model = tuned(network, X, y, early_stopping=stops)
        np.testing.assert_allclose(model.weights_["coefficient1"], network.coefs_[1], rtol=1e-6)


@pytest.fixture(scope="module")
def prices():
    """Rows whose y is about 150, and a network that was fitted on them."""
    X, y = make_regression(101, 4, n_informative=4, noise=5, random_state=0)
    y = y / np.std(y) * 20 + 150
    network = MLPRegressor(hidden_layer_sizes=(7,), solver="lbfgs", max_iter=5000, random_state=0)
    return X, y, network.fit(X, y)


def test_a_network_of_another_link_begins_with_new_weights(prices):
    X, y, network = prices
    # Its scores are logarithms now: exp(150) is no float32.
    with pytest.warns(UserWarning, match="New weights are better than the fitted ones"):
        model = OrtSGDRegressor(FrozenEstimator(network), loss="poisson", random_state=0).fit(X, y)
    assert model.plan_.decisions["weights"].value == "new ones"
    assert model.score(X, y) > 0.1


@pytest.mark.parametrize("is_linear", [True, False])
@pytest.mark.parametrize("optimizer", ["auto", "adam"])
def test_fitted_weights_without_a_finite_loss_are_the_cause_of_an_error(
    prices, is_linear, optimizer
):
    X, y, network = prices
    inside = None if is_linear else clone(network).set_params(solver="adam")
    model = OrtSGDRegressor(inside, warm_start=True, optimizer=optimizer, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    cause = "PoissonLoss of the weights that the training began at is inf .* Set the loss back"
    with pytest.raises(DivergedError, match=cause) as caught:
        model.set_params(loss="poisson").fit(X, y)
    assert "eta0" not in str(caught.value)


def test_a_validation_set_in_other_units_is_told(prices):
    X, y, network = prices
    tuning = OrtSGDRegressor(FrozenEstimator(network), early_stopping=True, random_state=0)
    with pytest.warns(ConvergenceWarning, match="the loss of the validation set is .* at best"):
        tuning.fit(X, y, X_val=X[:41], y_val=y[:41] / 1000)


@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant")
def test_a_warm_start_that_has_learned_little_yet_is_not_told_to_train_another_model(prices):
    X, y, _ = prices
    inside = MLPRegressor(hidden_layer_sizes=(7,))
    model = OrtSGDRegressor(inside, warm_start=True, max_iter=1, random_state=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="do not help yet: increase max_iter, or begin"):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("changed", "theirs", "ours"),
    [
        ({"n_features": 3}, "4 features", "3 features"),
        ({"labels": 3}, r"the classes \[0, 1\]", r"the classes \[0, 1, 2\]"),
        ({"hidden": 7}, "weights of the shapes .*5", "weights of the shapes .*7"),
    ],
)
def test_a_warm_start_of_another_form_says_what_is_different(prices, changed, theirs, ours):
    X, y, _ = prices
    labels = np.arange(len(y))
    model = OrtSGDClassifier(MLPClassifier((5,)), warm_start=True, max_iter=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, labels % 2)
    model.set_params(estimator__hidden_layer_sizes=(changed.get("hidden", 5),))
    with pytest.raises(ValueError, match=f"that fit had {theirs}.*, and this one has {ours}"):
        model.fit(X[:, : changed.get("n_features", 4)], labels % changed.get("labels", 2))
