"""Validation sets, early stopping, history and callbacks of the estimators."""

import math

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import _NotAnArray

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import EarlyStopping, EpochScoring
from skort.runtime.cache import forget

ESTIMATORS = [OrtSGDRegressor, OrtSGDClassifier]


def data(n=80, n_features=5, seed=0):
    """Return X and a y that both estimators take."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)


def short(estimator_class, inner=None, **options):
    return estimator_class(inner, **{"max_iter": 5, "tol": None, "random_state": 0, **options})


class Weights:
    """Keeps the weights of every epoch."""

    def __init__(self):
        self.weights = []

    def __deepcopy__(self, memo):
        return self

    def on_epoch_end(self, training):
        self.weights.append(training.weights())


def loss_score(estimator):
    """
    Return minus the log-loss of a classifier, or half the squared error:
    (model, X, y) -> number.
    """
    if isinstance(estimator, OrtSGDClassifier):
        return lambda model, X, y: -sklearn.metrics.log_loss(y, model.predict_proba(X))
    return lambda model, X, y: -sklearn.metrics.mean_squared_error(y, model.predict(X)) / 2


def is_at(model, trained):
    return all(np.array_equal(model.weights_[name], weight) for name, weight in trained.items())


def assert_same_weights(model, trained):
    assert trained
    for name, w in trained.items():
        np.testing.assert_array_equal(model.weights_[name], w)


# --- validation


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(
    "estimator, is_worse",
    [
        (OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(30,)), eta0=0.1), True),
        (
            OrtSGDRegressor(
                make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(30,))), eta0=0.1
            ),
            True,
        ),
        (OrtSGDClassifier(MLPClassifier((30,)), eta0=0.5), True),
        (OrtSGDClassifier(make_pipeline(StandardScaler(), LogisticRegression()), eta0=5.0), False),
    ],
)
def test_the_best_weights_are_restored_where_the_last_are_worse(solver, estimator, is_worse, own):
    X, y = data(120, seed=3)
    watched = Weights()
    estimator.set_params(
        solver=solver,
        early_stopping=True,
        callbacks=[watched],
        random_state=0,
        batch_size=8,
        validation_fraction=0.3,
        standardize=True,
    )
    # A network gets worse, and `tol` ends it.
    estimator.set_params(optimizer="sgd", learning_rate="adaptive", max_iter=1000)
    score = loss_score(estimator)
    X_val, y_val = data(50, seed=4)
    estimator.fit(X, y, **({"X_val": X_val, "y_val": y_val} if own else {}))
    scores = estimator.validation_scores_
    assert len(scores) == len(watched.weights) == estimator.n_iter_
    assert estimator.best_validation_score_ == max(scores)
    best = int(np.argmax(scores))
    # The last weights stay where they are worse by chance, as on a few rows that are held out.
    kept = (
        best
        if is_worse and own
        else next(k for k in (best, -1) if is_at(estimator, watched.weights[k]))
    )
    assert_same_weights(estimator, watched.weights[kept])
    if own:
        assert score(estimator, X_val, y_val) == pytest.approx(scores[kept], abs=1e-6)


def test_rows_that_are_held_out_are_not_trained_on():
    X, y = data(100)
    seen = []

    class Rows:
        def on_batch_end(self, training):
            real = training.step.batch.sample_weight.ravel() > 0
            seen.extend(training.step.batch.X[real, 0].tolist())

    options = {
        "early_stopping": True,
        "validation_fraction": 0.25,
        "callbacks": [Rows()],
        "batch_size": 10,
    }
    model = short(OrtSGDClassifier, max_iter=1, standardize=False, **options).fit(X, y)
    assert len(set(seen)) == len(seen) == 75
    held_out = ~np.isin(X[:, 0].astype(np.float32), np.array(seen, np.float32))
    assert loss_score(model)(model, X[held_out], y[held_out]) == pytest.approx(
        model.validation_scores_[0]
    )
    # Of each class the same part.
    assert np.bincount(y[held_out]).tolist() == pytest.approx((np.bincount(y) / 4).tolist(), abs=1)


def test_rows_of_weight_zero_are_not_held_out_and_weights_count_in_the_score():
    X, y = data(100, seed=2)
    weight = np.where(np.arange(100) % 2, np.arange(100) + 1.0, 0.0)
    seen = []

    def scorer(estimator, X, y, sample_weight):
        seen.append((X[:, 0], sample_weight))
        return estimator.score(X, y, sample_weight)

    short(OrtSGDClassifier, early_stopping=True, scoring=scorer, max_iter=1).fit(X, y, weight)
    for column, given in seen:
        np.testing.assert_array_equal(
            given, [weight[np.isclose(X[:, 0], x)].item() for x in column]
        )
        assert (given > 0).all()


def test_a_validation_set_alone_is_scored_and_stops_nothing():
    X, y = data()
    X_val, y_val = data(seed=1)
    model = short(OrtSGDClassifier, max_iter=9).fit(X, y, X_val=X_val, y_val=y_val)
    plain = short(OrtSGDClassifier, max_iter=9).fit(X, y)
    assert_same_weights(model, plain.weights_)
    assert len(model.validation_scores_) == 9
    assert model.validation_scores_[-1] == pytest.approx(loss_score(model)(model, X_val, y_val))
    assert plain.validation_scores_ is None
    assert plain.best_validation_score_ is None


@pytest.mark.parametrize(
    "scoring, metric",
    [
        (
            "neg_mean_absolute_error",
            lambda m, X, y: -sklearn.metrics.mean_absolute_error(y, m.predict(X)),
        ),
        ("f1", lambda m, X, y: sklearn.metrics.f1_score(y, m.predict(X))),
        ("roc_auc", lambda m, X, y: sklearn.metrics.roc_auc_score(y, m.decision_function(X))),
        (
            "neg_brier_score",
            lambda m, X, y: -sklearn.metrics.brier_score_loss(y, m.predict_proba(X)[:, 1]),
        ),
        (lambda m, X, y: -m.n_features_in_, lambda m, X, y: -5),
    ],
)
def test_scoring_by_name_or_callable(solver, scoring, metric):
    X, y = data()
    model = short(OrtSGDClassifier, scoring=scoring, solver=solver).fit(X, y, X_val=X, y_val=y)
    assert model.validation_scores_[-1] == pytest.approx(metric(model, X, y), abs=1e-6)


def test_scores_that_are_no_numbers_leave_the_last_weights():
    X, y = data()
    before = iter([0.0])
    # Scores that are no numbers are no improvement.
    options = {"learning_rate": "constant", "eta0": 0.1, "n_iter_no_change": 5}
    scored = short(
        OrtSGDClassifier, early_stopping=True, scoring=lambda *_: next(before, math.nan), **options
    )
    scored.fit(X, y, X_val=X, y_val=y)
    assert math.isnan(scored.best_validation_score_)
    assert_same_weights(scored, short(OrtSGDClassifier, **options).fit(X, y).weights_)


def test_predictions_that_are_not_finite_are_scored_nan():
    """The weights are about 1e3: at 1e37, the prediction is above the largest number of float32."""
    X = np.random.default_rng(0).normal(size=(300, 5))
    y = 1e3 * X.sum(axis=1)
    model = short(OrtSGDRegressor, early_stopping=True, scoring="r2")
    model.fit(X, y, X_val=np.full((2, 5), [[1e37], [1.0]]), y_val=[1.0, 2.0])
    assert model.n_iter_ == 5
    assert all(math.isnan(score) for score in model.validation_scores_)
    assert model.score(X, y) > 0.99


def test_a_start_that_diverges_begins_again():
    """Rows of 100 columns, one a step: the rate of a network is ten times too large."""
    X = np.random.default_rng(0).normal(size=(300, 100))
    network = MLPRegressor(hidden_layer_sizes=(20, 20), activation="identity")
    options = {
        "optimizer": "sgd",
        "eta0": "auto",
        "batch_size": 1,
        "early_stopping": True,
        "tol": None,
    }
    model = OrtSGDRegressor(network, max_iter=3, random_state=0, **options).fit(X, X.sum(axis=1))
    assert model.history_["restarts"][0] >= 1
    assert model.score(X, X.sum(axis=1)) > 0.8


def test_a_history_that_partial_fit_goes_on_with_is_a_table():
    X, y = data()
    model = (
        short(OrtSGDClassifier, early_stopping=True)
        .fit(X, y)
        .set_params(early_stopping=False)
        .partial_fit(X, y)
    )
    assert pd.DataFrame(model.history_).shape == (6, 6)
    assert model.best_validation_score_ == max(model.validation_scores_[:5])
    assert math.isnan(model.validation_scores_[5])


def test_several_outputs_and_data_frames_are_scored():
    X, _ = data()
    X = pd.DataFrame(X, columns=list("abcde"))
    Y = X[["a", "b"]].to_numpy() + 1
    pipeline = make_pipeline(StandardScaler(), LinearRegression())
    model = short(OrtSGDRegressor, pipeline, early_stopping=True, validation_fraction=0.5).fit(
        X, Y, X_val=X, y_val=Y
    )
    # The residuals are small differences of float32.
    assert model.validation_scores_[-1] == pytest.approx(loss_score(model)(model, X, Y), rel=1e-4)
    held_out = short(OrtSGDRegressor, pipeline, early_stopping=True, validation_fraction=0.5).fit(
        X, Y
    )
    assert len(held_out.validation_scores_) == 5


def test_scores_make_one_session(monkeypatch):
    import skort.runtime.sessions

    made = []
    make = skort.runtime.sessions.InferenceModel._make_session
    monkeypatch.setattr(
        skort.runtime.sessions.InferenceModel,
        "_make_session",
        lambda *args: made.append(args[0]) or make(*args),
    )
    X, y = data()
    forget()
    short(OrtSGDClassifier, early_stopping=True, scoring="roc_auc", max_iter=20).fit(X, y)
    assert len(made) == 1


X, Y = data(20)
BAD_VALIDATION = [
    ({}, {"X_val": X}, "X_val was given without y_val"),
    ({}, {"y_val": Y}, "y_val was given without X_val"),
    (
        {},
        {"X_val": X[:, :3], "y_val": Y},
        "X_val: X has 3 features, but .* is expecting 5 features",
    ),
    (
        {"scoring": lambda *_: 0.0},
        {"X_val": X[:, :3], "y_val": Y},
        "^X_val: X has 3 features, but .* is expecting 5 features",
    ),
    (
        {"callbacks": [EpochScoring(X[:, :3], Y)]},
        {},
        "^X of EpochScoring: X has 3 features, but .* is expecting 5 features",
    ),
    ({}, {"X_val": X[0], "y_val": Y[:5]}, "^X_val: Expected 2D array, got 1D array instead"),
    (
        {},
        {"X_val": np.full(X.shape, "a"), "y_val": Y},
        "^X_val: X has text in columns .* Encode X in the same way as all other rows",
    ),
    ({}, {"X_val": True, "y_val": Y}, "^X_val: Expected sequence or array-like"),
    (
        {},
        {"X_val": X, "y_val": np.c_[Y, Y]},
        "^y_val has another number of columns than y: 2, not 1",
    ),
    ({}, {"X_val": np.where(X > 1, np.nan, X), "y_val": Y}, "^X_val: Input X contains NaN"),
    (
        {},
        {"X_val": X, "y_val": Y[:-1]},
        rf"^X_val has {len(X)} rows, and y_val has {len(Y) - 1}\.$",
    ),
    (
        {"scoring": lambda *_: 0.0},
        {"X_val": X, "y_val": Y[:-1]},
        rf"^X_val has {len(X)} rows, and y_val has {len(Y) - 1}\.$",
    ),
    ({"scoring": "speed"}, {"X_val": X, "y_val": Y}, "'speed'"),
    ({"early_stopping": True, "validation_fraction": 0.05}, {}, "validation_fraction"),
    ({"early_stopping": True, "validation_fraction": 0.999}, {}, "validation_fraction=0.999"),
    ({"validation_fraction": 0.0}, {}, "'validation_fraction' parameter"),
    ({"validation_fraction": 1}, {}, "'validation_fraction' parameter"),
    ({"early_stopping": "yes"}, {}, "'early_stopping' parameter"),
    ({"scoring": 3}, {}, "'scoring' parameter"),
    ({"callbacks": "bar"}, {}, "'callbacks' parameter"),
    (
        {"callbacks": [3]},
        {},
        "callbacks: 3 is not a callback: it has none of the methods on_train_begin",
    ),
    (
        {"callbacks": [EarlyStopping]},
        {},
        r"EarlyStopping is a class: pass an instance, EarlyStopping\(\)",
    ),
    ({"callbacks": [EarlyStopping("accuracy")]}, {}, "monitor='accuracy' is not in the history"),
]


@pytest.mark.parametrize(
    "options, validation, message", BAD_VALIDATION, ids=[case[-1] for case in BAD_VALIDATION]
)
@pytest.mark.parametrize("estimator_class", ESTIMATORS)
def test_bad_validation_and_callbacks_are_named(estimator_class, options, validation, message):
    with pytest.raises(ValueError, match=message):
        short(estimator_class, **options).fit(X, Y, **validation)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_score_that_is_nan_for_these_rows_ends_the_training_after_an_epoch(early_stopping):
    X, y = data()
    of_one = X[y == 1], y[y == 1]
    model = short(OrtSGDClassifier, scoring="roc_auc", early_stopping=early_stopping)
    message = (
        r"^scoring='roc_auc' has no value for {}: it is nan before and after the first epoch\. All "
        r"these rows have the label 1: give rows of other labels, too\.$"
    )
    with pytest.raises(ValueError, match=message.format("X_val")):
        model.fit(X, y, X_val=of_one[0], y_val=of_one[1])
    assert model.n_iter_ == 1
    observed = short(OrtSGDClassifier, callbacks=[EpochScoring(*of_one, "roc_auc")])
    with pytest.raises(ValueError, match=message.format("X of EpochScoring")):
        observed.fit(X, y)
    with pytest.raises(ValueError, match=r"for X_val: .* Give other rows, or another scoring"):
        short(OrtSGDRegressor, scoring="r2").fit(X, y, X_val=X[:1], y_val=y[:1])


def test_a_score_may_be_nan_before_the_training():
    X, y = data()

    def correlation(model, X, y):
        prediction = model.predict(X)
        return np.corrcoef(prediction, y)[0, 1] if np.ptp(prediction) else np.nan

    model = short(OrtSGDRegressor, scoring=correlation).fit(X, y, X_val=X, y_val=y)
    assert model.validation_scores_[-1] == correlation(model, X, y)


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"loss": "hinge", "scoring": "neg_log_loss"},
            "scoring='neg_log_loss' cannot score .*OrtSGDClassifier.*predict_proba",
        ),
        (
            {"scoring": lambda *_: {"f1": 1.0}},
            "scoring=<function .* cannot score this model: .*dict",
        ),
    ],
)
def test_scoring_that_the_model_cannot_have_is_named(options, message):
    X, y = data()
    model = short(OrtSGDClassifier, **options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, X_val=X, y_val=y)
    assert not hasattr(model, "n_iter_")


def test_a_scorer_that_fails_does_so_before_the_training():
    model = short(OrtSGDClassifier, scoring="roc_auc").set_params(max_iter=1)
    X, y = data()[0], np.arange(80) % 3
    with pytest.raises(ValueError, match="multi"):
        model.fit(X, y, X_val=X, y_val=y)
    assert not hasattr(model, "n_iter_")


def test_early_stopping_ends_long_before_max_iter_without_a_warning(solver):
    X, y = load_digits(return_X_y=True)
    model = OrtSGDClassifier(
        MLPClassifier((50,)), solver=solver, early_stopping=True, random_state=0
    )
    model.fit(scale(X), y)
    assert model.n_iter_ < 300
    assert -0.25 < model.best_validation_score_ < 0
    # Ten epochs in a row without a loss smaller by tol.
    best = np.maximum.accumulate(model.validation_scores_)
    assert max(model.validation_scores_[-10:]) < best[-11] + 1e-4


def test_max_iter_warns_where_early_stopping_did_not_end_it():
    X, y = data()
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        short(OrtSGDClassifier, early_stopping=True, max_iter=2, tol=1e-4).fit(X, y)


# --- history


@pytest.mark.parametrize("estimator_class", ESTIMATORS)
@pytest.mark.parametrize("penalty", ["l2", None])
def test_history_is_what_its_formulas_say(solver, estimator_class, penalty):
    X, y = data(50)
    watched = Weights()
    options = {
        "solver": solver,
        "alpha": 0.1 if penalty else "auto",
        "penalty": penalty,
        "batch_size": 50,
        "eta0": 0.1,
        "power_t": 0.5,
    }
    options["standardize"] = False
    model = short(estimator_class, learning_rate="invscaling", callbacks=[watched], **options).fit(
        X, y
    )
    history = model.history_
    w, b = np.zeros(5), 0.0
    for epoch, weights in enumerate(watched.weights):
        score = X @ w + b
        if estimator_class is OrtSGDRegressor:
            loss, residual = np.mean((score - y) ** 2) / 2, score - y
        else:
            loss, residual = (
                np.mean(np.log1p(np.exp(score)) - y * score),
                1 / (1 + np.exp(-score)) - y,
            )
        alpha = 0.1 if penalty else 0.0
        gradient = np.append(X.T @ residual / 50 + alpha * w, residual.mean())
        assert history["loss"][epoch] == pytest.approx(loss, rel=1e-4)
        assert history["objective"][epoch] == pytest.approx(loss + alpha * w @ w / 2, rel=1e-4)
        assert history["gradient_norm"][epoch] == pytest.approx(np.linalg.norm(gradient), rel=1e-4)
        assert history["eta"][epoch] == pytest.approx(0.1 / math.sqrt(epoch + 1))
        w, b = weights["coef"].ravel().astype(float), weights["intercept"].item()
    assert model.loss_curve_ == history["objective"]
    assert model.loss_ == history["objective"][-1]
    assert 0 < sum(history["seconds"]) < 60
    assert pd.DataFrame(history).shape == (5, 5)


# --- callbacks


def test_callbacks_add_columns_and_stop(solver):
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X), scale(y)
    scoring = EpochScoring(X[300:], y[300:], "neg_mean_absolute_error", name="error")
    watched = Weights()
    stopping = EarlyStopping("error", patience=2, tol=1e-3)
    model = OrtSGDRegressor(
        solver=solver, callbacks=[scoring, stopping, watched], tol=None, random_state=0
    )
    model.fit(X[:300], y[:300])
    errors = model.history_["error"]
    assert model.n_iter_ == len(errors) < 1000
    assert_same_weights(model, watched.weights[int(np.argmax(errors))])
    error = -sklearn.metrics.mean_absolute_error(y[300:], model.predict(X[300:]))
    assert max(errors) == pytest.approx(error, rel=1e-5)


def test_the_models_that_callbacks_see_predict_like_the_fitted_one(solver):
    X, y = data()
    last = []

    class Predict:
        def on_epoch_end(self, training):
            last[:] = [training.model.predict_proba(training.prepare(X))]

    pipeline = make_pipeline(StandardScaler(), MLPClassifier((8,)))
    model = short(OrtSGDClassifier, pipeline, solver=solver, callbacks=[Predict()]).fit(X, y)
    np.testing.assert_allclose(last[0], model.predict_proba(X), rtol=1e-4)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("mine")])
@pytest.mark.parametrize("estimator_class", ESTIMATORS)
def test_an_interrupted_fit_is_the_fit_up_to_the_last_whole_epoch(solver, estimator_class, error):
    X, y = data()

    class Interrupt:
        def on_batch_end(self, training):
            if training.n_updates == 13:
                raise error

    options = {"batch_size": 20, "eta0": 0.1, "learning_rate": "constant"}
    model = short(estimator_class, solver=solver, callbacks=[Interrupt()], **options)
    if isinstance(error, KeyboardInterrupt):
        with pytest.warns(
            UserWarning, match="interrupted by the user: fitted up to the last whole epoch, 3"
        ) as record:
            model.fit(X, y)
        assert record[0].filename == __file__
    else:
        with pytest.raises(RuntimeError, match="mine"):
            model.fit(X, y)
    three = short(estimator_class, solver=solver, **options | {"max_iter": 3}).fit(X, y)
    assert model.n_iter_ == 3
    assert model.t_ == 12
    assert model.onnx_.SerializeToString() == three.onnx_.SerializeToString()
    model.set_params(callbacks=None)
    for _ in range(2):
        model.partial_fit(
            X, y, **({"classes": [0, 1]} if estimator_class is OrtSGDClassifier else {})
        )
    five = short(estimator_class, solver=solver, **options).fit(X, y)
    assert model.onnx_.SerializeToString() == five.onnx_.SerializeToString()


def test_a_callback_that_fails_in_the_first_epoch_changes_nothing():
    class Fail:
        def on_batch_end(self, training):
            raise RuntimeError("mine")

    X, y = data()
    model = short(OrtSGDRegressor).fit(X, y)
    before = model.onnx_
    with pytest.raises(RuntimeError, match="mine"):
        model.set_params(callbacks=[Fail()]).fit(X, y)
    assert model.onnx_ is before


@pytest.mark.parametrize("estimator_class", ESTIMATORS)
@pytest.mark.parametrize(
    "X_of", [_NotAnArray, np.ndarray.tolist, memoryview], ids=["array", "list", "memoryview"]
)
@pytest.mark.parametrize("weights_of", [_NotAnArray, list, tuple], ids=["array", "list", "tuple"])
def test_held_out_rows_are_the_same_of_anything_that_numpy_reads(estimator_class, X_of, weights_of):
    X, y = data()
    weight = np.linspace(0.5, 2.0, len(y))
    expected = short(estimator_class, early_stopping=True).fit(X, y, weight)
    model = short(estimator_class, early_stopping=True).fit(X_of(X), y, weights_of(weight))
    assert model.validation_scores_ == expected.validation_scores_
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_an_error_of_the_metric_names_the_scoring():
    """No row of the third class is held out; scikit-learn 1.6 says y_pred."""
    X, y = np.random.default_rng(0).normal(size=(102, 3)), np.repeat([0, 1, 2], [50, 50, 2])
    message = r"^scoring='neg_log_loss' cannot score this model: y_true and y_p(rob|red) contain"
    with pytest.raises(ValueError, match=message):
        OrtSGDClassifier(early_stopping=True, scoring="neg_log_loss", random_state=0).fit(X, y)
