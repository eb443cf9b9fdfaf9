"""partial_fit and warm_start: going on is the same as not to have stopped."""

import copy
import itertools
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.covariance import ledoit_wolf
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_friedman1,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler, scale

import skort.solvers
from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import EarlyStopping
from skort.objective import ElasticPenalty
from skort.optim.schedules import Adaptive, Constant

MODELS = [
    (OrtSGDRegressor, None),
    (OrtSGDRegressor, MLPRegressor(hidden_layer_sizes=(8,))),
    (OrtSGDClassifier, None),
    (OrtSGDClassifier, MLPClassifier((8,))),
    (OrtSGDClassifier, make_pipeline(Normalizer(), LogisticRegression())),
]
# What the optimizer, the schedule, the averages and the order of the rows remember.
OPTIONS = [
    {"optimizer": "sgd", "learning_rate": "invscaling", "eta0": 0.2},
    {"optimizer": "adam", "learning_rate": "adaptive", "eta0": 0.02, "average": 7},
]


def data(n=80, seed=0):
    """Return X and a y that both estimators take."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)


def short(estimator_class, inner=None, **options):
    return estimator_class(
        inner, **{"max_iter": 5, "tol": None, "random_state": 0, "batch_size": 16, **options}
    )


def classes_of(estimator):
    return {"classes": [0, 1]} if isinstance(estimator, OrtSGDClassifier) else {}


def assert_same(first, second):
    """All that can be seen of two trainings is the same, to the last bit."""
    assert first.onnx_.SerializeToString() == second.onnx_.SerializeToString()
    assert first.t_ == second.t_
    assert first.n_iter_ == second.n_iter_
    for name in ("loss", "objective", "eta", "gradient_norm"):
        assert first.history_[name] == second.history_[name]


@pytest.mark.parametrize(
    "copied", [lambda model: model, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("estimator_class, inner", MODELS)
def test_epochs_one_by_one_are_the_epochs_of_fit(solver, estimator_class, inner, options, copied):
    X, y = data()
    # A stream cannot know that calls repeat their rows, nor that its first rows are all: the columns
    # of a network have the variance one.
    options = options | {"solver": solver, "n_total": len(X), "standardize": True}
    model = short(estimator_class, inner, **options)
    whole = short(estimator_class, inner, **options).fit(X, y)
    for _ in range(5):
        model = copied(model.partial_fit(X, y, **classes_of(model)))
    assert_same(model, whole)


@pytest.mark.parametrize("options", OPTIONS)
def test_partial_fit_goes_on_from_fit(solver, options):
    X, y = data()
    model = (
        short(OrtSGDClassifier, solver=solver, max_iter=3, **options)
        .fit(X, y)
        .partial_fit(X, y)
        .partial_fit(X, y)
    )
    assert_same(model, short(OrtSGDClassifier, solver=solver, **options).fit(X, y))
    assert model.loss_curve_ == model.history_["objective"]


def test_the_best_loss_is_that_of_all_epochs():
    X, y = data()
    model = short(OrtSGDRegressor).fit(X, y)
    for call in (model.partial_fit, model.partial_fit, model.fit, model.partial_fit):
        for factor in (1, 3):
            call(X, factor * y)
            assert model.best_loss_ == min(model.loss_curve_)


def test_there_is_no_best_loss_where_a_validation_set_decides():
    X, y = data()
    model = short(OrtSGDRegressor, early_stopping=True).fit(X, y)
    assert model.best_loss_ is None and model.best_validation_score_ == max(
        model.validation_scores_
    )
    model.set_params(early_stopping=False).partial_fit(X, y)
    assert model.best_loss_ == model.loss_curve_[-1]


@pytest.mark.parametrize("is_pickled", [False, True])
@pytest.mark.parametrize("estimator", [OrtSGDRegressor, OrtSGDClassifier])
def test_a_stream_goes_on_after_early_stopping(estimator, is_pickled):
    X, y = data()
    model = short(estimator, early_stopping=True).fit(X, y).set_params(early_stopping=False)
    if is_pickled:
        model = pickle.loads(pickle.dumps(model))
    before = model.coef_
    for _ in range(20):
        model.partial_fit(X, 1 - y)
    assert np.abs(model.coef_ - before).max() > 0.1
    assert model.score(X, 1 - y) > model.score(X, y)


@pytest.mark.filterwarnings("ignore:partial_fit. y is")
def test_a_stream_with_the_callback_early_stopping_drifts():
    X, y = data()
    stopping = EarlyStopping("objective", patience=1)
    model = short(OrtSGDRegressor, learning_rate="constant", callbacks=[stopping]).fit(X, y)
    for _ in range(20):
        model.partial_fit(X, y + 10)
    assert np.mean(model.predict(X)) == pytest.approx(np.mean(y) + 10, abs=1)


@pytest.mark.parametrize("sizes", [[20] * 6, [20, 7, 20, 7, 1, 33]])
def test_a_stream_that_was_pickled_is_the_stream(solver, sizes):
    X, y = data(sum(sizes))
    weight = np.linspace(1, 2, len(y))
    chunks = [slice(end - size, end) for size, end in zip(sizes, np.cumsum(sizes), strict=True)]
    stream, pickled = (
        short(OrtSGDClassifier, solver=solver, learning_rate="invscaling") for _ in range(2)
    )
    for rows in chunks:
        stream.partial_fit(X[rows], y[rows], classes=[0, 1], sample_weight=weight[rows])
        pickled.partial_fit(X[rows], y[rows], classes=[0, 1], sample_weight=weight[rows])
        pickled = pickle.loads(pickle.dumps(pickled))
    assert_same(stream, pickled)
    assert stream.n_iter_ == len(sizes)


def test_chunks_in_order_are_the_epoch_in_order(solver):
    X, y = data(64)
    # The first chunk alone would say what is standardized, and the learning rate.
    options = {
        "solver": solver,
        "shuffle": False,
        "learning_rate": "invscaling",
        "eta0": 0.01,
        "standardize": False,
    }
    stream = short(OrtSGDRegressor, **options)
    for start in range(0, 64, 32):
        stream.partial_fit(X[start : start + 32], y[start : start + 32])
    np.testing.assert_array_equal(
        stream.coef_, short(OrtSGDRegressor, max_iter=1, **options).fit(X, y).coef_
    )


@pytest.mark.parametrize("weight", [0.25, 8.0])
def test_weights_multiply_as_they_are(weight):
    X, y = data()
    options = {"learning_rate": "constant", "penalty": None}
    weighted, faster = (
        short(OrtSGDRegressor, eta0=0.01, **options),
        short(OrtSGDRegressor, eta0=0.01 * weight, **options),
    )
    for rows in (slice(0, 30), slice(30, 31), slice(31, 80)):
        weighted.partial_fit(
            X[rows], y[rows], sample_weight=np.full(rows.stop - rows.start, weight)
        )
        faster.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.coef_, faster.coef_, rtol=1e-5)


@pytest.mark.parametrize("size", [1, 40])
def test_class_weights_count_where_a_call_has_one_class(size):
    """As SGDClassifier: rows of class 1 make steps of nine times the length."""
    X, y = data()
    order = np.argsort(y, kind="stable") if size > 1 else np.arange(80)
    by_class, by_row, plain = (
        short(OrtSGDClassifier, eta0=0.05, **weights)
        for weights in ({"class_weight": {0: 1, 1: 9}}, {}, {})
    )
    for i in range(0, 80, size):
        rows = order[i : i + size]
        by_class.partial_fit(X[rows], y[rows], classes=[0, 1])
        by_row.partial_fit(X[rows], y[rows], classes=[0, 1], sample_weight=1.0 + 8 * y[rows])
        plain.partial_fit(X[rows], y[rows], classes=[0, 1])
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, rtol=1e-5)
    assert by_class.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.04


@pytest.mark.parametrize(("weight", "copies"), [(3.0, 3), (20.0, 15)])
def test_heavy_rows_of_a_call_are_rows_that_come_several_times(weight, copies):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(57, 6))
    y = (X[:, 0] > 0).astype(int)
    heavy, repeated = (
        OrtSGDClassifier(random_state=0, shuffle=False).partial_fit(X[:41], y[:41], classes=[0, 1])
        for _ in range(2)
    )
    rows, ones = X[41:], np.ones(16, dtype=int)
    heavy.partial_fit(rows, ones, sample_weight=np.full(16, weight))
    repeated.partial_fit(
        np.tile(rows, (copies, 1)),
        np.tile(ones, copies),
        sample_weight=np.full(copies * 16, weight / copies),
    )
    np.testing.assert_allclose(heavy.coef_, repeated.coef_, rtol=1e-5)
    assert heavy.t_ == repeated.t_ == 3 + copies
    assert heavy.loss_curve_[-1] == pytest.approx(copies * repeated.loss_curve_[-1], rel=1e-5)


@pytest.mark.parametrize(
    "weights",
    [{"sample_weight": np.zeros(80)}, {"class_weight": {0: 0, 1: 1}}],
    ids=["rows", "class"],
)
def test_a_call_without_a_row_that_counts_changes_nothing(weights):
    X, y = data()
    model = short(OrtSGDClassifier, class_weight=weights.pop("class_weight", None))
    model.partial_fit(X, y, classes=[0, 1])
    before = pickle.dumps(model)
    model.partial_fit(X, 0 * y, **weights)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("options", [{}, {"standardize": False, "eta0": 0.01}])
def test_a_first_call_without_a_row_that_counts_knows_the_classes_and_waits(options):
    X, y = data()
    model, other = (
        OrtSGDClassifier(random_state=0, batch_size=10, shuffle=False, **options) for _ in range(2)
    )
    model.partial_fit(X, 0 * y, classes=[0, 1], sample_weight=np.zeros(80))
    np.testing.assert_array_equal(model.predict_proba(X), np.full((80, 2), 0.5))
    model.partial_fit(X, y)
    other.partial_fit(X, y, classes=[0, 1])
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-6)


def test_a_stream_begins_at_the_largest_stable_rate():
    """
    Of batches of 16 rows of an endless stream, for half the squared error
    and columns of mean zero, scale one.
    """
    X, y = data(203)
    for size in (203, 1):
        model = OrtSGDRegressor(random_state=0)
        for i in range(0, 203, size):
            model.partial_fit(X[i : i + size], y[i : i + size])
            if model.t_:
                break
        if size > 1:
            assert model.eta0_ == pytest.approx(_stable(scale(X)), rel=1e-4)
    # The rate is that of a row, however many the first call has.
    assert model.history_["eta"][0] == pytest.approx(
        _stable(scale(X[:20])) / np.cbrt(1 + 19 / 5), rel=1e-4
    )


@pytest.mark.parametrize("average", ["auto", False])
@pytest.mark.parametrize("eta0", ["auto", 0.012, 10.0])
def test_each_batch_of_a_stream_has_the_rate_that_the_rows_before_it_leave(eta0, average):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(371, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=371)
    options = {"penalty": None, "standardize": False, "shuffle": False, "dtype": "float64"}
    model = OrtSGDRegressor(eta0=eta0, average=average, **options)
    # A number is the largest rate.
    most = np.inf if eta0 == "auto" else eta0
    stable = _stable(X[:23])
    weights, seen, etas, t = np.zeros(4), 0, [], 0
    mean = weights
    for rows in np.split(np.arange(371), [23, 24, 31]):
        model.partial_fit(X[rows], y[rows])
        for i in range(0, len(rows), 16):
            Z = np.column_stack([X, np.ones(371)])[rows[i : i + 16]]
            eta = min(most, stable / np.cbrt(1 + seen / 3))
            # The rate is that of a row, wherever it falls.
            weights = weights - eta * (Z @ weights - y[rows[i : i + 16]]) @ Z
            seen += len(Z)
            t += 1
            # The last quarter of all updates counts, and at most 20 rows for each column.
            share = max(4 / (t + 3), 1 / np.ceil(20 * 3 / 16)) if average == "auto" else 1
            mean = mean + share * (weights - mean)
        etas.append(eta)
    assert model.t_ == t == 2 + 1 + 1 + 22
    assert model.eta0_ == pytest.approx(min(most, stable))
    np.testing.assert_allclose(model.history_["eta"], etas, rtol=1e-9)
    np.testing.assert_allclose(model.coef_, mean[:3], rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, mean[3], rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("optimizer", ["sgd", "nesterov"])
def test_all_solvers_have_the_mean_of_recent_weights(solver, optimizer, form):
    if optimizer == "nesterov" and solver not in ("graph", "agent"):
        pytest.skip("it has no Nesterov")
    if form is not np.asarray and solver == "module":
        pytest.skip("it takes dense rows only")
    X, y = data(300)
    options = {"optimizer": optimizer, "standardize": False, "random_state": 0}
    model, other, last = (
        OrtSGDRegressor(**options, **more) for more in ({"solver": solver}, {}, {"average": False})
    )
    for i in range(0, 300, 50):
        # A copy goes on with the mean.
        model = pickle.loads(pickle.dumps(model)).partial_fit(form(X[i : i + 50]), y[i : i + 50])
        other.partial_fit(X[i : i + 50], y[i : i + 50])
        last.partial_fit(X[i : i + 50], y[i : i + 50])
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=2e-5)
    assert abs(other.coef_ - last.coef_).max() > 1e-3


@pytest.mark.parametrize(
    ("n_rows", "share"), [(30, 4 / (4 + 3)), (300, 4 / (31 + 3)), (900, 1 / 10)]
)
def test_the_weights_of_a_fit_begin_the_mean_of_its_stream(n_rows, share):
    """
    With calls of 10 rows, n rows are n / 10 updates, and 20 rows for each of 5 columns are 10.
    """
    X, y = data(1000)
    model = OrtSGDRegressor(random_state=0).fit(X[:n_rows], y[:n_rows])
    last = copy.deepcopy(model).set_params(average=False)
    fitted = model.coef_
    for each in (model, last):
        each.partial_fit(X[n_rows : n_rows + 10], y[n_rows : n_rows + 10])
    np.testing.assert_allclose(model.coef_, fitted + share * (last.coef_ - fitted), rtol=1e-5)


def test_a_schedule_that_is_given_later_ends_the_mean():
    X, y = data(300)
    model, last = (OrtSGDRegressor(average=given, random_state=0) for given in ("auto", False))
    for each in (model, last):
        each.partial_fit(X[:200], y[:200])
        each.set_params(learning_rate="constant").partial_fit(X[200:], y[200:])
    np.testing.assert_array_equal(model.coef_, last.coef_)
    assert "average" not in model.plan_.decisions


def test_a_schedule_that_is_left_out_again_begins_the_mean():
    X, y = data(300)
    options = {"learning_rate": "constant", "eta0": 1e-3, "random_state": 0}
    model, last = (OrtSGDRegressor(average=given, **options) for given in ("auto", False))
    for each in (model, last):
        each.partial_fit(X[:200], y[:200])
        each.set_params(learning_rate="auto").partial_fit(X[200:216], y[200:216])
    before = OrtSGDRegressor(**options).partial_fit(X[:200], y[:200]).coef_
    # 200 rows are 13 updates of 16 rows, and this is number 14.
    expected = before + (last.coef_ - before) * 4 / (14 + 3)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-4)


def test_recent_weights_that_a_penalty_holds_at_zero_are_zero():
    X, y = data(400)
    options = {"penalty": "l1", "alpha": 0.1, "random_state": 0}
    model, last = (OrtSGDRegressor(average=given, **options) for given in ("auto", False))
    for i in range(0, 400, 40):
        for each in (model, last):
            each.partial_fit(X[i : i + 40], y[i : i + 40])
        np.testing.assert_array_equal(model.coef_ == 0, last.coef_ == 0)
    assert (model.coef_ == 0).sum() == 4
    assert model.coef_[0] != last.coef_[0]


@pytest.mark.parametrize("n_classes", [2, 3, 12])
def test_a_log_loss_begins_at_the_rate_of_half_its_largest_curvature_or_less(n_classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(240, 3)), np.arange(240) % n_classes
    model = OrtSGDClassifier(penalty=None, standardize=False).partial_fit(
        X, y, classes=np.arange(n_classes)
    )
    curvature = 1 / 8 if n_classes == 2 else np.sqrt(1 / (8 * n_classes))
    assert model.eta0_ == pytest.approx(_stable(X) / curvature, rel=1e-5)


@pytest.mark.parametrize("size", [10, 200])
def test_a_stream_follows_weights_that_change(size):
    """The default is near the best fit to the rows since the change."""
    scores = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(4000, 10))
        old, new = rng.normal(size=(2, 10))
        y = np.where(np.arange(4000) < 1500, X @ old, X @ new) + rng.normal(size=4000)
        model = in_calls(OrtSGDRegressor(random_state=0), X[:3000], y[:3000], size)
        best = LinearRegression().fit(X[1500:3000], y[1500:3000])
        scores.append(best.score(X[3000:], y[3000:]) - model.score(X[3000:], y[3000:]))
    assert np.mean(scores) < 0.01


@pytest.mark.parametrize("sizes", [[60], [1], [3, 50], [41, 1]], ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"learning_rate": "constant"},
        {"learning_rate": "invscaling"},
        {"batch_size": 7},
        {"optimizer": "momentum"},
        {"standardize": False},
    ],
    ids=str,
)
def test_the_rate_of_a_stream_given_back_makes_the_same_stream(options, sizes):
    X, y = load_diabetes(return_X_y=True)

    def fitted(**parameters):
        model, i = OrtSGDRegressor(random_state=0, **options, **parameters), 0
        for size in itertools.cycle(sizes):
            model.partial_fit(X[i : i + size], y[i : i + size])
            i += size
            if i >= 200:
                return model

    found = fitted()
    given = fitted(eta0=found.eta0_)
    assert given.history_["eta"] == found.history_["eta"]
    assert given.t_ == found.t_
    np.testing.assert_array_equal(given.coef_, found.coef_)


def test_a_number_for_eta0_is_the_largest_rate_from_the_call_on_that_has_it():
    X, y = data(100)
    model = OrtSGDRegressor(random_state=0).partial_fit(X[:40], y[:40])
    stable = model.eta0_
    for i, (eta0, most) in enumerate([(1e-4, 1e-4), (10.0, 1.0), ("auto", 1.0)], start=2):
        rows = slice(20 * i, 20 * i + 20)
        model.set_params(eta0=eta0).partial_fit(X[rows], y[rows])
        seen = 20 * i + 16
        assert model.history_["eta"][-1] == pytest.approx(min(most, stable / np.cbrt(1 + seen / 5)))


def test_a_number_for_eta0_stays_when_its_schedule_is_left_out_again():
    X, y = data(100)
    model = OrtSGDRegressor(eta0=1e-3, random_state=0)
    for learning_rate in ("constant", "auto", "constant"):
        model.set_params(learning_rate=learning_rate).partial_fit(X, y)
    assert model.history_["eta"] == pytest.approx([1e-3] * 3)


@pytest.mark.parametrize("between", [{}, {"eta0": 0.002}], ids=str)
def test_a_rate_of_the_rows_falls_again_when_a_schedule_is_left_out_again(between):
    X, y = data(203)
    model = OrtSGDRegressor(random_state=0).partial_fit(X[:100], y[:100])
    stable = model.eta0_
    constant = {"learning_rate": "constant", **between}
    model.set_params(**constant).partial_fit(X[100:150], y[100:150])
    given = between.get("eta0", stable / 4)
    assert model.history_["eta"][-1] == pytest.approx(given)
    assert "average" not in model.plan_.decisions

    # The largest stable rate is that of the first rows, and not that of a call of one row.
    model.set_params(learning_rate="auto", eta0="auto").partial_fit(X[150:151], y[150:151])
    assert model.history_["eta"][-1] == pytest.approx(stable / np.cbrt(1 + 150 / 5))
    model.partial_fit(X[151:160], y[151:160])
    assert model.history_["eta"][-1] == pytest.approx(stable / np.cbrt(1 + 151 / 5))
    assert model.plan_.decisions["average"].value == "of recent weights"


def test_the_rate_after_a_fit_falls_again_when_a_schedule_is_left_out_again():
    X, y = data(203)
    model, other = (OrtSGDRegressor(random_state=0).fit(X[:100], y[:100]) for _ in range(2))
    model.partial_fit(X[100:110], y[100:110])
    stable = model.history_["eta"][-1] * np.cbrt(1 + 100 / 5)
    other.set_params(learning_rate="constant").partial_fit(X[100:110], y[100:110])
    assert other.history_["eta"][-1] == pytest.approx(stable / 4)
    other.set_params(learning_rate="auto").partial_fit(X[110:120], y[110:120])
    assert other.history_["eta"][-1] == pytest.approx(stable / np.cbrt(1 + 110 / 5))


def test_a_schedule_after_optimal_has_the_rate_of_the_rows():
    X, y = data(100)
    model = OrtSGDClassifier(random_state=0, learning_rate="optimal")
    model.partial_fit(X, y, classes=[0, 1]).set_params(learning_rate="constant").partial_fit(X, y)
    direct = OrtSGDClassifier(random_state=0, learning_rate="constant")
    direct.partial_fit(X, y, classes=[0, 1])
    # The rates of "optimal" are those of a batch, of 16 rows here.
    assert model.history_["eta"][-1] == pytest.approx(16 * direct.history_["eta"][0])


def test_a_call_has_the_largest_stable_rate_if_a_given_one_is_larger():
    X, y = data(203)
    model = OrtSGDRegressor(eta0=0.5, learning_rate="constant", random_state=0)
    model.partial_fit(X, y)
    assert model.history_["eta"] == pytest.approx([_stable(scale(X))], rel=1e-4)


def test_the_rate_is_constant_where_the_weights_were_fitted_or_the_schedule_is_given():
    X, y = data(203)
    largest = OrtSGDRegressor(random_state=0).partial_fit(X, y).eta0_
    frozen = FrozenEstimator(LinearRegression().fit(X, y))
    for model in (
        OrtSGDRegressor(frozen, random_state=0).partial_fit(X, y),
        OrtSGDRegressor(learning_rate="constant", random_state=0).partial_fit(X, y),
        OrtSGDRegressor(random_state=0)
        .partial_fit(X, y)
        .set_params(learning_rate="constant")
        .partial_fit(X, y),
    ):
        model.partial_fit(X[:50], y[:50])
        np.testing.assert_allclose(model.history_["eta"][-2:], [largest / 4] * 2, rtol=1e-3)
        assert "quarter" in model.plan_.decisions["first rate"].because


def _stable(X):
    """Return the largest stable rate of a row, in batches of 16 rows of an endless stream."""
    Z = np.column_stack([X, np.ones(len(X))])
    squares = (Z**2).sum(axis=1)
    norm = (squares**2).mean() / squares.mean()
    return 1 / (15 * np.linalg.eigvalsh(Z.T @ Z / len(X))[-1] + norm)


def correlated(n_rows=20, seed=0):
    """Return correlated columns and a y."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5)) @ rng.normal(size=(5, 5))
    return X, X @ [1.0, -2.0, 0.5, 0.0, 1.0] + rng.normal(size=n_rows)


def test_steps_are_multiplied_by_the_inverse_root_of_the_shrunk_covariance(solver):
    X, y = correlated()
    options = {"average": False, "shuffle": False, "penalty": None, "random_state": 0}
    model = OrtSGDRegressor(solver=solver, **options).partial_fit(X, y)

    Z, target = scale(X), scale(y)
    values, vectors = np.linalg.eigh(ledoit_wolf(Z, assume_centered=True)[0])
    matrix = vectors / np.sqrt(values) @ vectors.T
    assert model.eta0_ == pytest.approx(_stable(Z @ (vectors * values**-0.25)), rel=1e-3)
    coef, intercept = np.zeros(5), 0.0
    for rows, n_seen in ((slice(0, 16), 0), (slice(16, 20), 16)):
        eta = model.eta0_ / np.cbrt(1 + n_seen / 5)
        residual = Z[rows] @ coef + intercept - target[rows]
        coef = coef - eta * matrix @ Z[rows].T @ residual
        intercept -= eta * residual.sum()
    np.testing.assert_allclose(model.coef_ * X.std(axis=0) / y.std(), coef, rtol=1e-4, atol=1e-5)


def test_correlated_columns_that_separate_classes_are_learned_from_few_rows():
    """With steps as they are, the mean score is 0.78."""
    scores = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(800, 1)) + 0.2 * rng.normal(size=(800, 5))
        y = X @ [1.0, -1.0, 0.5, -0.5, 0.0] > 0
        model = OrtSGDClassifier(random_state=0)
        for rows in np.split(np.arange(400), 8):
            model.partial_fit(X[rows], y[rows], classes=[False, True])
        scores.append(model.score(X[400:], y[400:]))
    assert np.mean(scores) > 0.9


@pytest.mark.parametrize(
    "options",
    [{"penalty": "l1"}, {"alpha": 10.0}, {"learning_rate": "constant"}, {"standardize": False}],
    ids=str,
)
def test_steps_that_a_matrix_does_not_suit_are_as_they_are(options):
    X, y = correlated(100)
    model = OrtSGDRegressor(random_state=0, **options).partial_fit(X, y)
    used = model._result.state.standardization
    assert getattr(used, "decorrelation", None) is None
    assert "decorrelated)" not in str(model.plan_)


def test_an_l1_term_between_calls_ends_the_decorrelation():
    X, y = correlated(200)
    model = OrtSGDRegressor(random_state=0).partial_fit(X[:100], y[:100])
    assert model._result.state.standardization.decorrelation is not None
    scale_before = model._result.state.standardization.scale
    model.set_params(penalty="l1").partial_fit(X[100:], y[100:])
    used = model._result.state.standardization
    assert used.decorrelation is None
    np.testing.assert_array_equal(used.scale, scale_before)
    first = model.plan_.decisions["first rate"]
    rate = model._result.state.rate_scale
    assert rate == pytest.approx(_stable((X[100:] - used.mean) / used.scale), rel=1e-3)
    assert "largest rate" in first.because
    assert model.plan_.decisions["scaling"].value is used
    assert "decorrelated" not in str(model.plan_)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("columns", [[0], [1, 1]])
def test_the_plan_names_decorrelated_columns_only_where_there_are_two(columns):
    X, y = correlated(100)
    model = OrtSGDRegressor(random_state=0).partial_fit(X[:, columns], y)
    assert ("decorrelated" in str(model.plan_)) == (len(columns) == 2)


def test_a_twin_that_is_shifted_does_not_stop_a_stream():
    """With steps of any length in the direction in which the twins differed, the score is 0.71."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5))
    X[:, 1] = X[:, 0] + 0.01 * rng.normal(size=4000)
    X[2000:, 1] += 3
    y = X @ [1.0, -1.0, 0.5, 2.0, 1.0] + 0.5 * rng.normal(size=4000)
    y[2000:] = X[2000:] @ [1.0, 1.0, 1.0, -1.0, 0.0] + 0.5 * rng.normal(size=2000)
    model = OrtSGDRegressor(random_state=0).partial_fit(X[:2000], y[:2000])
    for rows in np.split(np.arange(2000, 3000), 20):
        model.partial_fit(X[rows], y[rows])
    assert model.score(X[3000:], y[3000:]) > 0.85


@pytest.mark.parametrize(("size", "large", "least"), [(100, 300, 0.95), (1000, 3302, -0.1)])
def test_a_large_row_does_not_ruin_a_stream(size, large, least):
    """It lowers the rate of its call. At the rate of the other rows, the least score is -8 or -10."""
    scores = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(4 * size, 5))
        y = X @ [1.0, -1.0, 0.5, 2.0, 0.0] + 0.1 * rng.normal(size=len(X))
        X[large] *= 40
        model = in_calls(OrtSGDRegressor(random_state=0), X, y, size)
        scores.append(model.score(X[: 3 * size], y[: 3 * size]))
    assert min(scores) > least


def test_a_solver_is_made_once_for_chunks_of_one_size(solver, monkeypatch):
    made = []
    make = skort.solvers.make_step
    monkeypatch.setattr(skort.solvers, "make_step", lambda *a, **k: made.append(1) or make(*a, **k))
    X, y = data()
    model = short(OrtSGDRegressor, solver=solver)
    for _ in range(5):
        model.partial_fit(X, y)
    assert len(made) == 1
    model.set_params(alpha=0.5).partial_fit(X, y)
    assert len(made) == 2
    model.partial_fit(X[:7], y[:7])
    assert len(made) == 3


def test_shallow_copies_do_not_share_a_solver(solver):
    X, y = data()
    model, alone = (
        short(OrtSGDRegressor, solver=solver, shuffle=False).partial_fit(X, y) for _ in range(2)
    )
    copied = copy.copy(model)
    for each in (copied, model, copied):
        each.partial_fit(X, y)
    assert_same(model, alone.partial_fit(X, y))
    assert_same(copied, alone.partial_fit(X, y))


@pytest.mark.parametrize(
    "changed",
    [
        {"loss": "hinge"},
        {"class_weight": {0: 1, 1: 9}},
        {"alpha": 0.5},
        {"penalty": ElasticPenalty(0.5)},
        {"learning_rate": Constant(0.5)},
        {"learning_rate": lambda t: 0.5},
        {"eta0": 0.5},
        {"batch_size": 7},
        {"shuffle": False},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_changed_parameters_are_those_of_a_copy_that_was_made_with_them(changed):
    X, y = data()
    model = short(OrtSGDClassifier).partial_fit(X, y, classes=[0, 1])
    # Nothing that was made before is in a pickle.
    fresh = pickle.loads(pickle.dumps(model)).set_params(**changed).partial_fit(X, y)
    assert_same(model.set_params(**changed).partial_fit(X, y), fresh)
    assert fresh.loss_ != model.set_params(loss="log_loss").partial_fit(X, y).loss_


class Rates(BaseEstimator):
    """A learning rate for every update."""

    def __init__(self, rates=None):
        self.rates = rates

    def __call__(self, t):
        return float(self.rates[t])


def test_parameters_that_changed_in_place_count():
    X, y = data()
    penalty = ElasticPenalty({"coef": 0.1})
    rates = np.full(9, 0.1)
    model = short(
        OrtSGDRegressor, penalty=penalty, learning_rate=Rates(rates), batch_size=80
    ).partial_fit(X, y)
    penalty.alpha["coef"], rates[:] = 5.0, 0.01
    fresh = pickle.loads(pickle.dumps(model)).partial_fit(X, y)
    assert_same(model.partial_fit(X, y), fresh)
    assert model.history_["eta"] == [0.1, 0.01]
    model.set_params(learning_rate__rates=np.full(9, 0.02)).partial_fit(X, y)
    assert model.history_["eta"] == [0.1, 0.01, 0.02]


def test_a_learning_rate_falls_anew_in_every_call():
    X, y = data()
    rates = []

    class Falling(Adaptive):
        def __call__(self, t):
            rates.append(super().__call__(t))
            return rates[-1]

    class Bad:
        def on_epoch_end(self, training):
            training.no_improvement()

    model = short(OrtSGDRegressor, learning_rate=Falling(1.0), batch_size=80, callbacks=[Bad()])
    for _ in range(4):
        rates.clear()
        model.partial_fit(X, y)
    np.testing.assert_allclose(rates[-1], 1 / 5**3)


def test_a_constant_rate_after_one_that_fell():
    X, y = data()
    model = short(
        OrtSGDRegressor,
        learning_rate="adaptive",
        eta0=0.1,
        tol=10.0,
        n_iter_no_change=1,
        max_iter=20,
    ).fit(X, y)
    assert model.history_["eta"][-1] < 0.1
    assert model.set_params(learning_rate="constant").partial_fit(X, y).history_["eta"][-1] == 0.1


def test_a_learning_rate_that_is_given_later_is_the_one_that_is_used():
    X, y = data()
    auto, given = (
        short(OrtSGDRegressor, eta0=eta0, learning_rate="constant") for eta0 in ("auto", 0.01)
    )
    from_data = auto.partial_fit(X, y).history_["eta"][0]
    assert auto.set_params(eta0=0.01).partial_fit(X, y).history_["eta"] == [from_data, 0.01]
    assert given.partial_fit(X, y).set_params(eta0="auto").partial_fit(X, y).history_["eta"] == [
        0.01,
        from_data,
    ]


def test_parameters_count_from_the_next_call_on():
    X, y = data()
    model, once = (short(OrtSGDRegressor, average=False).partial_fit(X, y) for _ in range(2))
    model.set_params(eta0=1e-12).partial_fit(X, y)
    np.testing.assert_allclose(model.coef_, once.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    "changed", [{"batch_size": 0}, {"n_jobs": 0}, {"loss": "nope"}, {"eta0": -1.0}]
)
def test_parameters_are_validated_again_where_they_changed(changed):
    X, y = data()
    model, undisturbed = (short(OrtSGDRegressor).partial_fit(X, y) for _ in range(2))
    (name,) = changed
    before = getattr(model, name)
    with pytest.raises(ValueError, match=f"The '{name}' parameter of OrtSGDRegressor must be"):
        model.set_params(**changed).partial_fit(X, y)
    assert_same(model.set_params(**{name: before}).partial_fit(X, y), undisturbed.partial_fit(X, y))


@pytest.mark.parametrize(
    "changed, other",
    [
        ({"optimizer": "adam"}, r"Adam\(\), average='auto'"),
        ({"average": True}, r"SGD\(\), average=True"),
    ],
)
def test_another_memory_between_calls_is_refused_in_words_that_help(changed, other):
    X, y = data()
    model = short(
        OrtSGDRegressor, standardize=False, learning_rate="constant", eta0=0.01, batch_size=80
    )
    model.partial_fit(X, y).set_params(**changed)
    before, intercept = model.coef_.copy(), model.intercept_.copy()
    with pytest.raises(
        ValueError, match=rf"does not fit optimizer={other}\. .* call model\.set_weights"
    ):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.coef_, before)
    model.set_weights({}).partial_fit(X, y)
    # The first update of Adam has the length of the rate in each weight.
    gradient = X.T @ (X @ before + intercept - y) / 80
    step = np.sign(gradient) if "optimizer" in changed else gradient
    np.testing.assert_allclose(model.coef_, before - 0.01 * step, rtol=1e-3)


X, Y = data()
BAD_CALLS = [
    (X[:, :4], Y, {}, "X has 4 features, but .* is expecting 5 features"),
    (np.where(X > 2, np.nan, X), Y, {}, "Input X contains NaN"),
    (X, Y[:-1], {}, "inconsistent numbers of samples"),
    (X, None, {}, "requires y to be passed"),
    (
        X,
        Y,
        {"sample_weight": np.full(80, -1.0)},
        "Negative values in data passed to `sample_weight`",
    ),
]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"optimizer": "momentum"}, r'solver="session" has no optimizer=Momentum'),
        ({"max_grad_norm": 1.0}, r'solver="session" cannot clip'),
    ],
)
def test_a_solver_that_cannot_go_on_is_refused(options, message):
    model = short(OrtSGDRegressor, **options).partial_fit(X, Y).set_params(solver="session")
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, Y)
    assert_same(
        model.set_params(solver="graph").partial_fit(X, Y),
        short(OrtSGDRegressor, **options).partial_fit(X, Y).partial_fit(X, Y),
    )


def test_a_chunk_of_counts_may_be_all_zero():
    model = short(OrtSGDRegressor, loss="poisson").partial_fit(X, 3 * Y)
    before = model.predict(X)
    # The gradient of every row is its prediction, positive.
    after = model.partial_fit(X, 0 * Y).predict(X)
    assert after.mean() < before.mean()


@pytest.mark.parametrize("X, y, options, message", BAD_CALLS, ids=[case[-1] for case in BAD_CALLS])
@pytest.mark.parametrize("estimator_class", [OrtSGDRegressor, OrtSGDClassifier])
def test_a_call_that_fails_changes_nothing(estimator_class, X, y, options, message):
    model, undisturbed = (short(estimator_class) for _ in range(2))
    for _ in range(2):
        for each in (model, undisturbed):
            each.partial_fit(*data(), **classes_of(each))
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X, y, **options)
    assert_same(model, undisturbed)


def test_divergence_changes_nothing(solver):
    options = {"solver": solver, "optimizer": "adam", "eta0": 0.01, "standardize": False}
    model, undisturbed = (short(OrtSGDRegressor, **options).partial_fit(X, Y) for _ in range(2))
    with pytest.raises(ValueError, match="in epoch 2"):
        model.partial_fit(1e25 * X, Y)
    assert_same(model.partial_fit(X, Y), undisturbed.partial_fit(X, Y))


@pytest.mark.parametrize(
    "before, y, options, message",
    [
        (False, Y, {}, "classes must be passed on the first call to partial_fit"),
        (
            False,
            Y,
            {"classes": [0, 2]},
            r"y has the labels \[1\], and the known classes are \[0, 2\]",
        ),
        (False, 0 * Y, {"classes": [0]}, "number of classes has to be greater than one"),
        (True, Y, {"classes": [0, 1, 2]}, "is not the same as on last call to partial_fit"),
        (True, Y + 1, {}, r"y has the labels \[2\], and the known classes are \[0, 1\]"),
    ],
)
def test_classes_are_all_there_from_the_first_call_on(before, y, options, message):
    model = short(OrtSGDClassifier)
    if before:
        model.partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y, **options)
    assert hasattr(model, "classes_") == before


def test_classes_that_come_late():
    y = np.array(["a", "b", "c"])[np.arange(80) % 3]
    model = short(OrtSGDClassifier).partial_fit(X[y != "c"], y[y != "c"], classes=["c", "b", "a"])
    model.partial_fit(X[y == "c"], y[y == "c"])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.predict_proba(X).shape == (80, 3)


def test_balanced_classes_need_all_rows():
    model = short(OrtSGDClassifier, class_weight="balanced")
    with pytest.raises(ValueError, match=r"class_weight 'balanced' .* partial_fit"):
        model.partial_fit(X, Y, classes=[0, 1])
    weights = {0: 1.0, 1: 3.0}
    by_class = short(OrtSGDClassifier, class_weight=weights).partial_fit(X, Y, classes=[0, 1])
    by_row = short(OrtSGDClassifier).partial_fit(X, Y, classes=[0, 1], sample_weight=1.0 + 2 * Y)
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, rtol=1e-6)


def test_other_outputs_are_refused():
    model = short(OrtSGDRegressor).partial_fit(X, Y)
    with pytest.raises(ValueError, match="y has 2 outputs, earlier calls had 1"):
        model.partial_fit(X, X[:, :2])


def test_early_stopping_is_refused():
    with pytest.raises(ValueError, match="partial_fit does not support early_stopping=True"):
        short(OrtSGDRegressor, early_stopping=True).partial_fit(X, Y)


def test_another_dtype_is_refused():
    model = short(OrtSGDRegressor).partial_fit(X, Y).set_params(dtype="float64")
    with pytest.raises(ValueError, match=r"dtype='float64'.*earlier calls had dtype='float32'"):
        model.partial_fit(X, Y)


@pytest.mark.parametrize("is_fitted", [False, True])
def test_steps_that_need_a_fit_are_named(is_fitted):
    pipeline = make_pipeline(FunctionTransformer(), StandardScaler(), LinearRegression())
    model = short(OrtSGDRegressor, pipeline.fit(X, Y) if is_fitted else pipeline)
    cure = (
        r"freeze it: OrtSGDRegressor\(FrozenEstimator"
        if is_fitted
        else r"Put FrozenEstimator\(fitted_step\) in its place"
    )
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match=f"the step 'standardscaler' .*{cure}"):
        model.partial_fit(X, Y)


def test_frozen_steps_stay_and_a_frozen_model_is_gone_on_with(solver):
    rows = data(seed=5)[0]
    scaler = FrozenEstimator(StandardScaler().fit(rows))
    streams = [
        short(OrtSGDClassifier, inner, solver=solver)
        for inner in (make_pipeline(scaler, LogisticRegression()), LogisticRegression())
    ]
    for chunk in (slice(0, 40), slice(40, 80)):
        streams[0].partial_fit(X[chunk], Y[chunk], classes=[0, 1])
        streams[1].partial_fit(scaler.transform(X[chunk]), Y[chunk], classes=[0, 1])
    np.testing.assert_array_equal(streams[0].coef_, streams[1].coef_)
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    model = short(OrtSGDClassifier, FrozenEstimator(fitted), eta0=1e-9, solver=solver)
    with pytest.raises(
        ValueError, match=r"classes=\[1 2\] are not those of the fitted estimator: \[0 1\]"
    ):
        model.partial_fit(X, Y, classes=[1, 2])
    model.partial_fit(X, Y, classes=[0, 1])
    np.testing.assert_allclose(model.predict_proba(X), fitted.predict_proba(X), atol=1e-6)


# --- warm_start


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("estimator_class, inner", MODELS)
def test_warm_start_begins_with_the_weights_of_the_last_fit(
    solver, estimator_class, inner, standardize
):
    # Without shuffling, with a constant learning rate and columns of one variance there is nothing
    # else to go on from.
    options = {"solver": solver, "shuffle": False, "eta0": 0.05, "standardize": standardize}
    options |= {"optimizer": "sgd", "learning_rate": "constant"}
    model = short(estimator_class, inner, max_iter=2, warm_start=True, **options).fit(X, Y)
    model.set_params(max_iter=3).fit(X, Y)
    whole = short(estimator_class, inner, **options).fit(X, Y)
    if standardize:
        # Weights that are folded back and out again are rounded.
        for name, weight in whole.weights_.items():
            np.testing.assert_allclose(
                model.weights_[name], weight, rtol=1e-5, atol=1e-6, err_msg=name
            )
    else:
        assert model.onnx_.SerializeToString() == whole.onnx_.SerializeToString()
    assert model.n_iter_ == 3
    assert model.t_ == 15


def test_warm_start_takes_few_epochs_where_the_data_hardly_changed():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    model = OrtSGDClassifier(optimizer="sgd", warm_start=True, random_state=0).fit(X, y)
    first = model.n_iter_
    assert model.fit(X[1:], y[1:]).n_iter_ < first / 2


@pytest.mark.parametrize("X, y", [(X[:, :3], Y), (X, Y + 1), (X, np.arange(80) % 3)])
def test_a_warm_start_with_other_data_is_refused(X, y):
    model = short(OrtSGDClassifier, warm_start=True).fit(*data())
    before = model.onnx_
    with pytest.raises(
        ValueError, match=r"warm_start=True continues .* that fit had .*, and this one has "
    ):
        model.fit(X, y)
    assert model.onnx_ is before
    model.set_params(warm_start=False).fit(X, y)


# --- what may and may not change between calls


@pytest.mark.parametrize(
    "inner, options",
    [
        (make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=(10,))), {}),
        (MLPClassifier(hidden_layer_sizes=(10,)), {"trainable": "coef*"}),
        (
            make_pipeline(StandardScaler(), LogisticRegression()),
            {"trainable": ["*offset", "coef*"]},
        ),
    ],
)
def test_warm_start_goes_on_with_steps_and_with_frozen_weights(inner, options):
    X, y = data()
    options = {"shuffle": False, "eta0": 0.1, "standardize": False, **options}
    options |= {"optimizer": "sgd", "learning_rate": "constant"}
    model = short(OrtSGDClassifier, inner, warm_start=True, max_iter=2, **options)
    whole = short(OrtSGDClassifier, inner, max_iter=4, **options).fit(X, y)
    model.fit(X, y).fit(X, y)
    for name, weight in whole.weights_.items():
        np.testing.assert_array_equal(model.weights_[name], weight, err_msg=name)


def changed(model, name, value):
    return copy.deepcopy(model).set_params(**{name: value})


@pytest.mark.parametrize(
    "inner, name, value",
    [
        (MLPClassifier(hidden_layer_sizes=(8,)), "estimator__activation", "tanh"),
        (
            MLPClassifier(hidden_layer_sizes=(8,)),
            "estimator",
            MLPClassifier(hidden_layer_sizes=(9,)),
        ),
        (make_pipeline(Normalizer(), LogisticRegression()), "estimator__normalizer__norm", "l1"),
        (None, "estimator", LogisticRegression(fit_intercept=False)),
        (None, "trainable", "coef*"),
    ],
)
def test_partial_fit_refuses_another_model_by_name(inner, name, value):
    X, y = data()
    model = short(OrtSGDClassifier, inner).partial_fit(X, y, classes=[0, 1])
    before = model.predict_proba(X)
    other = changed(model, name, value)
    with pytest.raises(ValueError, match=f"{name.split('__')[0]} was changed since the last fit"):
        other.partial_fit(X, y)
    np.testing.assert_array_equal(other.predict_proba(X), before)
    # Set back, it goes on as if nothing had been.
    other.set_params(**{name: model.get_params()[name]})
    assert_same(other.partial_fit(X, y), model.partial_fit(X, y))


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_a_frozen_model_is_the_same_in_copies(copied):
    X, y = data()
    frozen = FrozenEstimator(LogisticRegression().fit(X, y))
    model = copied(short(OrtSGDClassifier, frozen).partial_fit(X, y, classes=[0, 1])).partial_fit(
        X, y
    )
    assert model.n_iter_ == 2
    model.set_params(estimator=FrozenEstimator(LogisticRegression().fit(X, y)))
    with pytest.raises(ValueError, match="estimator was changed"):
        model.partial_fit(X, y)


@pytest.mark.parametrize("name, value", [("activation", "tanh"), ("hidden_layer_sizes", (3,))])
def test_what_is_set_after_a_fit_does_not_change_the_fitted_model(name, value):
    X, y = data()
    model = short(OrtSGDClassifier, MLPClassifier(hidden_layer_sizes=(8,))).fit(X, y)
    before, plain = model.predict_proba(X), model.to_sklearn()
    model.set_params(**{f"estimator__{name}": value})
    np.testing.assert_array_equal(model.predict_proba(X), before)
    again = model.to_sklearn()
    assert again.get_params() == plain.get_params()
    np.testing.assert_array_equal(again.predict_proba(X), plain.predict_proba(X))


def test_a_copy_that_goes_on_leaves_the_history_of_the_other():
    X, y = data()
    model = short(OrtSGDRegressor).partial_fit(X, y).partial_fit(X, y)
    before = model.history_
    other = copy.copy(model).partial_fit(X, 2 * y)
    assert model.history_ == before
    assert (model.n_iter_, other.n_iter_) == (2, 3)
    assert other.loss_curve_[:2] == before["objective"]
    assert len(model.partial_fit(X, y).loss_curve_) == 3
    assert model.loss_curve_[2] != other.loss_curve_[2]


def test_a_call_does_not_copy_the_history(monkeypatch):
    X, y = data()
    model = short(OrtSGDRegressor).partial_fit(X, y)
    copied = []
    monkeypatch.setattr("skort.optim.state.History.head", lambda *args: copied.append(args))
    for _ in range(3):
        model.partial_fit(X, y)
    assert model.n_iter_ == 4
    assert copied == []


def test_the_lookup_of_partial_fit_clones_nothing(monkeypatch):
    model = short(OrtSGDClassifier, make_pipeline(Normalizer(), LogisticRegression()))
    monkeypatch.setattr("skort.estimators.model.wrapped.clone", lambda *args: 1 / 0)
    assert callable(model.partial_fit)


# --- scales


def stream(model, n_calls, scale_of_x=lambda i: 1.0, scale_of_y=lambda i: 1.0):
    """
    Train on calls whose last column and y have some scales;
    return the R2 on the rows of each call before it.
    """
    rng, scores = np.random.RandomState(0), []
    for i in range(n_calls):
        rows = rng.randn(200, 3) * [1, 1, scale_of_x(i)]
        y = rows @ [1, 2, -3.0] * scale_of_y(i)
        if i:
            scores.append(model.score(rows, y))
        model.partial_fit(rows, y)
    return scores


def test_scales_are_those_of_the_first_call():
    model = OrtSGDRegressor(random_state=0)
    stream(model, 3)
    first = OrtSGDRegressor(random_state=0)
    stream(first, 1)
    assert model.standardization_ == first.standardization_
    # The last batch of a call of 200 has 8 rows.
    seen = 200 * np.arange(1, 4) - 8
    np.testing.assert_allclose(model.history_["eta"], first.eta0_ / np.cbrt(1 + seen / 3))


def late_column(n_rows, seed=0):
    """Return X whose last column is 2 in the first 100 rows, and 5 in some later ones; and y."""
    rng = np.random.default_rng(seed)
    late = np.where((np.arange(n_rows) >= 100) & (rng.random(n_rows) < 0.2), 5.0, 2.0)
    X = np.c_[rng.normal(size=(n_rows, 2)), late]
    return X, X @ [1, -2, 4] + 0.1 * rng.normal(size=n_rows)


@pytest.mark.parametrize("size", [1, 7, 50])
@pytest.mark.parametrize("is_after_fit", [False, True])
@pytest.mark.parametrize(
    "inner", [None, MLPRegressor(hidden_layer_sizes=(5,))], ids=["linear", "network"]
)
def test_a_column_that_was_constant_has_a_scale_once_it_varies(inner, is_after_fit, size):
    """Of at most one: the small column gets one, and that of large values keeps one."""
    X, y = late_column(300)
    of_unit = {}
    for unit in (0.01, 1.0):
        model = OrtSGDRegressor(inner, random_state=0, dtype="float64", max_iter=20, tol=None)
        rows = np.c_[X[:, :2], unit * X[:, 2]]
        if is_after_fit:
            model.fit(rows[:100], y[:100])
        else:
            model.partial_fit(rows[:100], y[:100])
        assert model.standardization_.constant.tolist() == [2]
        assert model.standardization_.scale[2] == 1

        first = next(start for start in range(100, 300, size) if np.ptp(X[99 : start + size, 2]))
        for start in range(100, 300, size):
            model.partial_fit(rows[start : start + size], y[start : start + size])
        differences = rows[first : first + size, 2] - 2 * unit
        expected = np.sqrt((differences**2).sum() / max(len(differences), 20))
        assert model.standardization_.constant is None
        assert np.isclose(model.standardization_.scale[2], min(expected, 1))
        of_unit[unit] = model.predict(rows), expected

    # Where a unit gives a scale of at most one, it changes no prediction.
    if of_unit[1.0][1] <= 1:
        np.testing.assert_allclose(of_unit[0.01][0], of_unit[1.0][0], rtol=1e-5, atol=1e-6)


def test_levels_of_one_hot_columns_that_come_late_are_learned():
    """Scales of the first rows only: as with scikit-learn's scaler of the first call, an error of 40."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 8, 3000)
    level[:900] %= 4
    X = np.eye(8)[level]
    effects = np.array([0, 1, 2, 3, 10, 20, -10, 5.0])
    model = OrtSGDRegressor(random_state=0)
    for start in range(0, 3000, 10):
        rows = slice(start, start + 10)
        model.partial_fit(X[rows], effects[level[rows]] + 0.1 * rng.normal(size=10))
    np.testing.assert_allclose(model.predict(np.eye(8)), effects, atol=0.7)


def test_weights_that_were_given_for_a_constant_column_keep_its_scale():
    X, y = late_column(200)
    for model in (
        OrtSGDRegressor(FrozenEstimator(LinearRegression().fit(*late_column(300, seed=1)))),
        OrtSGDRegressor(average=False)
        .partial_fit(X[:100], y[:100])
        .set_weights({"coef": [[1], [-2], [4]]}),
    ):
        model.partial_fit(X[:100], y[:100])
        predicted = model.predict(X[100:])
        model.partial_fit(X[100:], y[100:], sample_weight=np.full(100, 1e-12))
        assert model.standardization_.scale[2] == 1
        np.testing.assert_allclose(model.predict(X[100:]), predicted, rtol=3e-4)


@pytest.mark.parametrize(
    "inner", [None, MLPRegressor(hidden_layer_sizes=(10,))], ids=["linear", "network"]
)
@pytest.mark.parametrize("first", [0.2, 5])
def test_another_scale_in_the_first_call_does_not_ruin_the_stream(inner, first):
    for scales in (
        {"scale_of_x": lambda i: 1.0 if i else first},
        {"scale_of_y": lambda i: 1.0 if i else first},
    ):
        assert np.mean(stream(OrtSGDRegressor(inner, random_state=0), 90, **scales)[-5:]) > 0.97


def test_all_columns_that_leave_their_scale_are_named_the_farthest_first():
    rng = np.random.RandomState(0)
    X = rng.randn(100, 4)
    frame = pd.DataFrame(X, columns=["a", "b", "price", "d"])
    later = frame.assign(b=frame["b"] + 100, price=frame["price"] + 40, d=frame["d"] / 1000)
    named = OrtSGDRegressor(random_state=0).partial_fit(frame, X[:, 0])
    told = (
        r"column 'b' of X is \d+ standard deviations away .* These have left theirs, too: columns "
        r"'price', 'd' of X and y\. Call fit"
    )
    with pytest.warns(UserWarning, match=told):
        named.partial_fit(later, X[:, 0] + 1000)

    many = rng.randn(100, 9)
    model = OrtSGDRegressor(random_state=0).partial_fit(many, X[:, 0])
    told = r"column 8 of X is .* too: columns 7, 6, 5, 4, 3 and 3 more of X\. Call fit"
    with pytest.warns(UserWarning, match=told):
        model.partial_fit(many + 100 * (1 + np.arange(9)), X[:, 0])


@pytest.mark.parametrize("value", [1e100, 1e160, 1e300], ids=str)
@pytest.mark.parametrize("standardize", ["auto", False])
@pytest.mark.filterwarnings("ignore:partial_fit")
def test_a_value_whose_square_is_infinite_is_named(standardize, value):
    X, y = data()
    frame = pd.DataFrame(X).rename(columns=str)
    model = OrtSGDRegressor(dtype="float64", standardize=standardize, random_state=0)
    model.partial_fit(frame, y)
    far = frame.copy()
    far.iloc[3, 1] = value
    before = model.coef_.copy()
    told = (
        rf"^partial_fit: column '1' of X has the value {value:.4g}, which is too far from the rows"
    )
    with pytest.raises(ValueError, match=re.escape(told).replace("\\^", "^")):
        model.partial_fit(far, y)
    assert np.array_equal(model.coef_, before)


@pytest.mark.filterwarnings("ignore:partial_fit")
def test_a_value_of_sparse_rows_whose_square_is_infinite_is_named():
    X = scipy.sparse.random(64, 300, density=0.3, random_state=0, format="csr")
    model = OrtSGDRegressor(dtype="float64", random_state=0).partial_fit(X, np.arange(64.0))
    X.data[7] = 1e200
    column = X.indices[7]
    with pytest.raises(
        ValueError, match=f"^partial_fit: column {column} of X has the value 1e\\+200,"
    ):
        model.partial_fit(X, np.arange(64.0))


@pytest.mark.filterwarnings("ignore:partial_fit")
def test_the_error_of_divergence_names_the_column_that_left_its_scale():
    X, y = data()
    X[:, 2] += 1.0
    model = OrtSGDRegressor(random_state=0).partial_fit(X, y)
    X[3, 1] = 1e30
    told = "Check column 1 of X, far from the rows that the stream began with, or give eta0"
    with pytest.raises(ValueError, match=f"^Training diverged: .* {told}"):
        model.partial_fit(X, y)


def test_a_column_that_leaves_its_scale_by_far_is_named_once():
    rng, model = np.random.RandomState(0), OrtSGDRegressor(random_state=0)
    X = rng.randn(100, 3)
    model.partial_fit(X, X[:, 0])
    moved = X + np.array([0, 0, 40])
    with pytest.warns(
        UserWarning, match=r"column 2 of X is 4\d(\.\d)? standard deviations away .* Call fit"
    ):
        model.partial_fit(moved, X[:, 0])
    model = pickle.loads(pickle.dumps(model)).partial_fit(moved, X[:, 0])
    assert model.n_iter_ == 3

    frame = pd.DataFrame(X, columns=["a", "b", "price"])
    named = OrtSGDRegressor(random_state=0).partial_fit(frame, X[:, 0])
    with pytest.warns(UserWarning, match=r"column 'price' of X is 4\d(\.\d)? standard deviations"):
        named.partial_fit(frame.assign(price=moved[:, 2]), X[:, 0])


def test_what_leaves_its_scale_later_is_told_too(recwarn):
    """Each column once, y by itself, and a column again that is ten times farther."""
    rng = np.random.RandomState(0)
    X = rng.randn(100, 3)
    model = OrtSGDRegressor(random_state=0).partial_fit(X, X[:, 0])
    scaled = model.standardization_.scale
    for change, told in (
        ([0, 0, 40], "partial_fit: column 2 of X is"),
        ([0, 70, 80], "partial_fit: column 1 of X is"),
        ([0, 70, 80], None),
        ([0, 70, 4000], "partial_fit: column 2 of X is"),
    ):
        model.partial_fit(X + change, X[:, 0])
        said = [str(recwarn.pop().message) for _ in list(recwarn)]
        assert len(said) == (told is not None)
        assert "".join(said).startswith(told or "")
        assert "too" not in "".join(said)
    distance = np.mean(np.abs(X[:, 2] + 4000 - X[:, 2].mean())) / scaled[2]
    assert f"is {distance:.3g} standard deviations away" in said[0]

    model.partial_fit(X + np.array([0, 70, 4000]), 1000 + X[:, 0])
    away = np.mean(np.abs(1000 + X[:, 0] - X[:, 0].mean())) / model.standardization_.target_scale
    assert str(recwarn.pop().message) == (
        f"partial_fit: y is {away:.3g} standard deviations away from the rows that the stream began "
        "with, whose scale it keeps. Call fit on rows of today."
    )


def lone_warning(n_rows, of_x=None, of_y=None, loss="squared_error"):
    """Return the warning of one wrong value in 1,000 later rows, with y = X[:, 0] otherwise."""
    X = np.random.RandomState(0).randn(1000 + n_rows, 3)
    y = X[:, 0].copy()
    mean, scale = X[:1000].mean(axis=0), X[:1000].std(axis=0)
    model = OrtSGDRegressor(loss=loss, random_state=0).partial_fit(X[:1000], y[:1000])
    if of_x is not None:
        X[1005, 1] = mean[1] + of_x * scale[1]
    if of_y is not None:
        y[1007] = mean[0] + of_y * scale[0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.partial_fit(X[1000:], y[1000:])
    return " ".join(str(each.message) for each in caught)


BEGUN = "standard deviations away from the rows that the stream began with, whose scale it keeps."


@pytest.mark.parametrize("n_rows", [20, 100, 2000])
def test_one_wrong_y_of_a_stream_is_told_with_its_cure(n_rows):
    value = np.random.RandomState(0).randn(1000 + n_rows, 3)[:1000, 0]
    value = value.mean() + 201 * value.std()
    assert lone_warning(n_rows, of_y=201) == (
        f"partial_fit: y has the value {value:.4g} in one row, which is 201 {BEGUN} Check this y, "
        'or use loss="huber" or max_grad_norm=1.0.'
    )
    assert lone_warning(n_rows, of_y=150) == ""


def test_a_robust_loss_is_told_of_one_wrong_y_that_moves_the_mean():
    assert lone_warning(100, of_y=900, loss="huber") == ""
    said = lone_warning(100, of_y=1e5, loss="huber")
    assert said.startswith("partial_fit: y has the value 9.475e+04 in one row, which is ")
    assert said.endswith(f"{BEGUN} Check this y.")


def test_one_wrong_value_of_a_column_is_told_with_its_cure():
    said = lone_warning(100, of_x=1e8)
    value = 1e8 * np.random.RandomState(0).randn(1100, 3)[:1000, 1].std()
    assert said.startswith(
        f"partial_fit: column 1 of X has the value {value:.4g} in one row, which is 1e+08 standard"
    )
    assert said.endswith(f"{BEGUN} Check this value, or clip such values before the model.")
    said = lone_warning(100, of_x=1e8, of_y=1e6)
    y = np.random.RandomState(0).randn(1100, 3)[:1000, 0]
    assert said.endswith(
        f"{BEGUN} y has the value {y.mean() + 1e6 * y.std():.4g} in one row, which is 1e+06 standard "
        "deviations away from them. Check this value, or clip such values before the model. "
        'Check this y, or use loss="huber" or max_grad_norm=1.0.'
    )


def test_one_wrong_value_does_not_silence_a_later_drift():
    rng = np.random.RandomState(0)
    X = rng.randn(1000, 3)
    y = X @ [1.0, 2.0, 3.0]
    columns = np.column_stack([X, y])
    distance = np.abs((columns + 1000 - columns.mean(axis=0)) / columns.std(axis=0)).mean(axis=0)

    for column, name in ((1, "column 1 of X"), (3, "y")):
        drift, wrong = columns.copy(), columns.copy()
        drift[:, column] += 1000
        drifted = re.escape(f"{name} is {distance[column]:.3g} standard deviations away")
        wrong[5, column] = 1e6
        model = OrtSGDRegressor(random_state=0).partial_fit(X, y)
        with pytest.warns(UserWarning, match=rf"{name} has the value 1e\+06 in one row"):
            model.partial_fit(wrong[:, :3], wrong[:, 3])
        with pytest.warns(UserWarning, match=drifted):
            model.partial_fit(drift[:, :3], drift[:, 3])
        # Both are said.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.partial_fit(wrong[:, :3], wrong[:, 3])
            model.partial_fit(drift[:, :3], drift[:, 3])


def test_the_cures_of_one_wrong_y_keep_the_model():
    rng = np.random.RandomState(0)
    X = rng.randn(2000, 3)
    wrong = X @ [1.0, 2.0, 3.0]
    wrong[1000] = 1e6
    for cure in ({"loss": "huber"}, {"max_grad_norm": 1.0}):
        model = OrtSGDRegressor(random_state=0, **cure)
        with pytest.warns(UserWarning, match=r"y has the value 1e\+06 in one row"):
            for start in range(0, 1100, 100):
                rows = slice(start, start + 100)
                model.partial_fit(X[rows], wrong[rows])
        assert model.score(X[1100:], wrong[1100:]) > 0.99


def later_calls(X, y, n_rows=50):
    """Train on 50 rows, then on all others, and return the text of the warnings."""
    model = OrtSGDRegressor(random_state=0).partial_fit(X[:50], y[:50])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for start in range(50, X.shape[0], n_rows):
            model.partial_fit(X[start : start + n_rows], y[start : start + n_rows])
    return [str(each.message) for each in caught]


def test_values_that_become_much_smaller_are_told_once():
    """
    From cents to euros: the text has the root mean square of the first rows over the value that one
    of twenty is above.
    """
    rng = np.random.RandomState(0)
    X = np.c_[rng.randn(200), rng.gamma(4, 1000, size=200)]
    y = X[:, 0] + X[:, 1] / 1000
    euros = X.copy()
    euros[100:, 1] /= 100
    of_most = np.quantile(euros[100:150, 1], 0.95, method="higher")
    times = np.sqrt(np.mean(X[:50, 1] ** 2)) / of_most
    (said,) = later_calls(euros, y)
    assert said == (
        f"partial_fit: column 1 of X has values {times:.3g} times smaller than the rows that the "
        "stream began with, whose scale it keeps. Call fit on rows of today, or fit a scaler "
        "before the model to them."
    )

    small = np.where(np.arange(200) < 100, y, y / 100)
    of_most = np.quantile(np.abs(small[100:150]), 0.95, method="higher")
    times = np.sqrt(np.mean(y[:50] ** 2)) / of_most
    (said,) = later_calls(X, small)
    assert said.startswith(f"partial_fit: y has values {times:.3g} times smaller than the rows")


@pytest.mark.parametrize("n_rows", [20, 100, 1000])
def test_a_call_of_any_size_tells_smaller_values_of_a_tail(n_rows):
    rng = np.random.RandomState(0)
    X = np.c_[rng.randn(50 + n_rows), rng.lognormal(6, 0.8, size=50 + n_rows)]
    size = np.sqrt(np.mean(X[:50, 1] ** 2))
    X[50:, 1] /= 100
    times = size / np.quantile(X[50:, 1], 0.95, method="higher")
    (said,) = later_calls(X, X[:, 0], n_rows)
    assert said.startswith(f"partial_fit: column 1 of X has values {times:.3g} times smaller than")


@pytest.mark.parametrize(
    "column",
    [
        np.where(np.arange(200) < 100, np.linspace(900, 1100, 200), 1.0),
        np.where(np.arange(200) < 100, np.linspace(900, 1100, 200), 0.0),
        np.where(np.arange(200) < 100, np.tile([5.0, 0.0], 100), np.tile([0.1] + 49 * [0.0], 4)),
        np.where(np.arange(200) == 7, 1e4, np.random.RandomState(1).rand(200)),
        (np.arange(200) % 50 == 0).astype(float),
        1e3 - np.arange(200),
        np.random.RandomState(2).standard_t(1, 200),
        np.where(np.arange(200) % 10 < 9, 1.0, 1e3) * np.random.RandomState(2).randn(200),
    ],
    ids=["constant", "zeros", "few values", "long tail", "rare one", "drift", "heavy", "mixed"],
)
def test_other_columns_are_not_told_to_be_smaller(column):
    X = np.c_[np.random.RandomState(0).randn(200), column]
    assert not [each for each in later_calls(X, X[:, 0]) if "smaller" in each]


def test_single_rows_are_told_to_be_smaller_after_20_of_them(recwarn):
    rng = np.random.RandomState(0)
    X = np.c_[rng.randn(70), rng.gamma(4, 1000, size=70)]
    X[50:, 1] /= 100
    model = OrtSGDRegressor(random_state=0).partial_fit(X[:50], X[:50, 0])
    for i in range(50, 69):
        model.partial_fit(X[i : i + 1], X[i : i + 1, 0])
    assert not recwarn
    with pytest.warns(UserWarning, match=r"column 1 of X has values .* times smaller than"):
        model.partial_fit(X[69:], X[69:, 0])


def test_a_sparse_column_of_large_values_that_the_first_rows_lack_is_told():
    rng = np.random.RandomState(0)
    X = scipy.sparse.random(200, 300, 0.05, "csr", random_state=0)
    y = X @ rng.randn(300)
    assert later_calls(X, y) == []
    prices = np.where(np.arange(200) >= 100, 1000.0, 0.0)[:, None]
    model = OrtSGDRegressor(random_state=0).partial_fit(X[:50], y[:50])
    times = 1000 / model.standardization_.scale[0]
    (said,) = later_calls(scipy.sparse.hstack([X, prices], "csr"), y)
    assert said.startswith(
        f"partial_fit: column 300 of X has values {times:.3g} times larger than the rows"
    )


def in_calls(model, X, y, size, **first):
    for start in range(0, len(X), size):
        model.partial_fit(
            X[start : start + size], y[start : start + size], **(first if start == 0 else {})
        )
    return model


@pytest.mark.parametrize("is_pickled", [False, True])
@pytest.mark.parametrize(
    "inner", [None, MLPRegressor(hidden_layer_sizes=(8,))], ids=["linear", "network"]
)
def test_the_first_rows_wait_until_there_are_20(inner, is_pickled):
    """Calls of six rows predict the mean, and end where one call of 24 rows does."""
    X, y = make_friedman1(60, random_state=0)
    X, weights = X * 100, np.linspace(1, 2, 60)
    # The alpha of a network is divided by the weights of the first call.
    options = {"random_state": 0, "batch_size": 6, "alpha": 0.0}
    whole, model = OrtSGDRegressor(inner, **options), OrtSGDRegressor(inner, **options)
    for i in range(0, 18, 6):
        model.partial_fit(X[i : i + 6], y[i : i + 6], weights[i : i + 6])
        assert (model.n_iter_, model.t_, model.loss_) == (0, 0, None)
        mean = np.average(y[: i + 6], weights=weights[: i + 6])
        np.testing.assert_allclose(model.predict(X), np.full(60, mean), rtol=1e-5)
        if is_pickled:
            model = pickle.loads(pickle.dumps(model))
    model.partial_fit(X[18:24], y[18:24], weights[18:24])
    whole.partial_fit(X[:24], y[:24], weights[:24])
    for each in (whole, model):
        each.partial_fit(X[24:], y[24:])
    assert model.n_iter_ == 2
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_no_row_waits_where_nothing_comes_from_the_rows():
    X, y = data()
    model = OrtSGDRegressor(
        standardize=False, eta0=0.05, learning_rate="constant", random_state=0
    ).partial_fit(X[:1], y[:1] + 2)
    assert model.t_ == 1
    np.testing.assert_allclose(model.coef_, 0.05 * (y[0] + 2) * X[0], rtol=1e-5)


@pytest.mark.parametrize("inner", [None, MLPClassifier((8,))], ids=["linear", "network"])
def test_a_classifier_predicts_the_shares_of_its_first_rows(inner):
    X, _ = data()
    y = np.array([0, 2, 1, 0, 0])
    model = OrtSGDClassifier(inner, random_state=0).partial_fit(X[:5], y, classes=[0, 1, 2])
    np.testing.assert_allclose(model.predict_proba(X), np.tile([0.6, 0.2, 0.2], (80, 1)), rtol=1e-5)
    assert (model.predict(X) == 0).all()


@pytest.mark.parametrize("has_network", [False, True])
def test_a_stream_in_which_no_row_counts_yet_has_a_score_of_zero(has_network):
    """The first rows that count give the best constant."""
    X, y = make_friedman1(30, random_state=0)
    nothing = np.zeros(30)
    model = OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(8,)) if has_network else None)
    model.partial_fit(X, y, nothing)
    np.testing.assert_array_equal(model.predict(X), nothing)
    model.partial_fit(X[:5], y[:5])
    np.testing.assert_allclose(model.predict(X), np.full(30, y[:5].mean()), rtol=1e-5)

    labels = np.arange(30) % 3
    model = OrtSGDClassifier(MLPClassifier((8,)) if has_network else None)
    model.partial_fit(X, labels, classes=[0, 1, 2], sample_weight=nothing)
    np.testing.assert_allclose(model.predict_proba(X), np.full((30, 3), 1 / 3), rtol=1e-6)
    model.partial_fit(X[:4], labels[:4])
    np.testing.assert_allclose(
        model.predict_proba(X), np.tile([0.5, 0.25, 0.25], (30, 1)), rtol=1e-5
    )


def test_a_fitted_network_predicts_as_it_is_while_its_first_rows_wait():
    X, y = make_friedman1(60, random_state=0)
    fitted = MLPRegressor(
        hidden_layer_sizes=(8,), random_state=0, solver="lbfgs", max_iter=2000
    ).fit(X, y)
    model = OrtSGDRegressor(FrozenEstimator(fitted), random_state=0).partial_fit(X[:7], y[:7])
    np.testing.assert_allclose(model.predict(X), fitted.predict(X), rtol=1e-5)


@pytest.mark.parametrize("size", [1, 3, 50])
def test_a_new_network_learns_from_small_calls_as_that_of_sklearn(size):
    X, y = load_digits(return_X_y=True)
    first = StandardScaler().fit(X[: max(size, 20)])
    ours, theirs = (
        OrtSGDClassifier(MLPClassifier((20,)), random_state=0),
        MLPClassifier((20,), random_state=0),
    )
    in_calls(ours, X[:1200], y[:1200], size, classes=range(10))
    in_calls(theirs, first.transform(X[:1200]), y[:1200], size, classes=range(10))
    assert ours.score(X[1200:], y[1200:]) > theirs.score(first.transform(X[1200:]), y[1200:]) - 0.02


def test_a_network_learns_from_single_rows_whatever_the_first_call_was():
    """As scikit-learn's behind a scaler of the first call; the mean of two orders of the rows."""
    X, y = load_wine(return_X_y=True)
    scores = []
    for seed in range(2):
        train, test = np.split(np.random.RandomState(seed).permutation(len(X)), [133])
        first = StandardScaler().fit(X[train[:20]])
        ours = OrtSGDClassifier(MLPClassifier((50,)), random_state=seed)
        theirs = MLPClassifier((50,), random_state=seed)
        for rows in np.split(train, range(20, 133)):
            ours.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
            theirs.partial_fit(first.transform(X[rows]), y[rows], classes=[0, 1, 2])
        scores.append(
            [ours.score(X[test], y[test]), theirs.score(first.transform(X[test]), y[test])]
        )
    ours, theirs = np.mean(scores, axis=0)
    assert ours > theirs - 0.02


@pytest.mark.parametrize("sizes", [(1,), (37,), (37, 2, 200), (150, 1)], ids=str)
@pytest.mark.parametrize("is_classifier", [False, True])
def test_a_linear_stream_is_level_with_that_of_sklearn(sizes, is_classifier):
    """Behind a scaler of the first rows; the mean of three orders of the rows."""
    X, y = load_digits(return_X_y=True) if is_classifier else load_diabetes(return_X_y=True)
    scores = []
    for seed in range(3):
        order = np.random.RandomState(seed).permutation(len(X))
        train, test = np.split(order, [int(0.75 * len(X))])
        first = StandardScaler().fit(X[train[: max(sizes[0], 20)]])
        if is_classifier:
            ours, theirs = (
                OrtSGDClassifier(random_state=0),
                SGDClassifier(loss="log_loss", random_state=0),
            )
        else:
            ours, theirs = OrtSGDRegressor(random_state=0), SGDRegressor(random_state=0)
        for rows in np.split(train, np.cumsum(sizes * (len(train) // sum(sizes) + 1))):
            if len(rows):
                ours.partial_fit(
                    X[rows], y[rows], **({"classes": range(10)} if is_classifier else {})
                )
                theirs.partial_fit(
                    first.transform(X[rows]),
                    y[rows],
                    **({"classes": range(10)} if is_classifier else {}),
                )
        scores.append(
            [ours.score(X[test], y[test]), theirs.score(first.transform(X[test]), y[test])]
        )
    ours, theirs = np.mean(scores, axis=0)
    assert ours > theirs - 0.02


def test_weights_that_are_set_among_the_first_rows_stay():
    """Hidden units that are alike stay alike; those that are drawn are not."""
    X, y = make_friedman1(30, random_state=0)
    network = OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(8,)), random_state=0).partial_fit(
        X[:5], y[:5]
    )
    assert np.ptp(network.weights_["coefficient"], axis=1).min() > 0.1
    network.set_weights(
        {name: np.full_like(weights, 0.5) for name, weights in network.weights_.items()}
    )
    network.partial_fit(X[5:], y[5:])
    assert network.n_iter_ == 1
    np.testing.assert_allclose(np.ptp(network.weights_["coefficient"], axis=1), 0, atol=1e-6)


def test_setting_no_weights_among_the_first_rows_changes_nothing():
    X, y = make_friedman1(60, random_state=0)
    network, other = (
        OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(8,)), random_state=0) for _ in range(2)
    )
    in_calls(network, X[:10], y[:10], 5).set_weights({})
    in_calls(network, X[10:], y[10:], 5)
    np.testing.assert_array_equal(network.predict(X), in_calls(other, X, y, 5).predict(X))


def test_dense_and_sparse_first_rows():
    X, y = make_friedman1(240, random_state=0)
    X[X < 0.5] = 0
    networks = [
        OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(8,)), random_state=0) for _ in range(2)
    ]
    for start in range(0, 240, 5):
        rows, sparse = X[start : start + 5], scipy.sparse.csr_matrix(X[start : start + 5])
        for number, network in enumerate(networks):
            network.partial_fit(sparse if (start // 5 + number) % 2 else rows, y[start : start + 5])
    for network in networks:
        assert np.isfinite(network.predict(X)).all()
        assert np.mean((network.predict(X) - y) ** 2) < np.var(y)


def test_a_network_whose_first_layer_is_frozen_learns_from_a_stream():
    X, y = load_breast_cancer(return_X_y=True)
    model = OrtSGDClassifier(MLPClassifier((20,)), random_state=0, trainable=["*1"])
    in_calls(model, X, y, 20, classes=[0, 1])
    assert model.score(X, y) > 0.8
    assert np.mean(model.loss_curve_[-10:]) < 20


@pytest.mark.parametrize("inside", [None, MLPRegressor(hidden_layer_sizes=(5,))])
@pytest.mark.parametrize("batch_size", ["auto", 30])
def test_a_first_call_without_a_row_that_counts_decides_nothing(inside, batch_size):
    X, y = data(300)
    begun = OrtSGDRegressor(inside, batch_size=batch_size, random_state=0)
    begun.partial_fit(X[:5], y[:5], sample_weight=np.zeros(5))
    new = clone(begun)
    for start in range(0, 300, 50):
        rows = slice(start, start + 50)
        np.testing.assert_array_equal(
            begun.partial_fit(X[rows], y[rows]).predict(X),
            new.partial_fit(X[rows], y[rows]).predict(X),
        )
    assert str(begun.plan_) == str(new.plan_)


@pytest.mark.parametrize("model", [PoissonRegressor(), TweedieRegressor(power=1.5)])
@pytest.mark.parametrize("first", [[0.0], [0.0, 0.0, 1.0]])
def test_a_stream_of_counts_may_begin_with_zeros(model, first):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)
    y[: len(first)] = first
    stream = OrtSGDRegressor(model, random_state=0).partial_fit(X[: len(first)], first)
    # The best constant is the mean; that of zeros is next to zero.
    np.testing.assert_allclose(stream.predict(X[:2]), np.mean(first), rtol=0.05, atol=1e-6)
    for start in range(len(first), len(X), 37):
        stream.partial_fit(X[start : start + 37], y[start : start + 37])
    assert stream.score(X, y) > 0.5 * clone(model).fit(X, y).score(X, y) > 0.04


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("is_fitted", [False, True])
def test_a_number_for_eta0_is_the_rate_of_the_next_call(is_fitted):
    X, y = load_digits(return_X_y=True)
    network = MLPClassifier((8,), random_state=0)
    inner = FrozenEstimator(network.fit(X[:300], y[:300])) if is_fitted else network
    model = OrtSGDClassifier(inner, batch_size=1000, random_state=0).fit(X[300:400], y[300:400])
    for eta0 in (0.001, 0.003):
        model.set_params(eta0=eta0, learning_rate="constant").partial_fit(X[400:500], y[400:500])
        assert model.history_["eta"][-1] == pytest.approx(eta0)


@pytest.mark.parametrize("schedule", ["constant", "invscaling", "adaptive", "auto"])
def test_another_alpha_leaves_the_rate_as_it_is(schedule):
    X, y = data(120)
    model = short(OrtSGDClassifier, MLPClassifier((8,)), learning_rate=schedule).fit(X, y)
    same = copy.deepcopy(model).set_params(alpha=1e-5)
    for _ in range(2):
        model.partial_fit(X, y)
        same.partial_fit(X, y)
    assert same.history_["eta"] == model.history_["eta"]


# Five updates are too few for this network.
@pytest.mark.filterwarnings("ignore:On these rows, the fitted model is worse than a constant")
def test_a_batch_size_above_the_rows_of_a_fit_is_the_rule_afterwards():
    X, y = data(400)
    model = short(OrtSGDClassifier, MLPClassifier((8,)), batch_size=400).fit(X[:40], y[:40])
    # A batch of 40 rows makes a tenth of a step, for which the planned rate of 0.02 makes up.
    assert model.eta0_ == pytest.approx(0.2)
    model.partial_fit(X, y)
    assert model.history_["eta"][-1] == pytest.approx(0.1 * 0.01)


@pytest.mark.parametrize("n_rows", [1, 10, 200])
@pytest.mark.parametrize(
    "estimator, theirs", [(OrtSGDRegressor, SGDRegressor), (OrtSGDClassifier, SGDClassifier)]
)
def test_a_linear_fit_learns_from_later_rows_what_scikit_learn_learns(estimator, theirs, n_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 10))
    w = rng.normal(size=10)
    sign = np.where(np.arange(4000) < 1000, 1, -1)
    y = sign * (X @ w) + 0.5 * rng.normal(size=4000)
    y = y if estimator is OrtSGDRegressor else y > 0
    scores = []
    for model in (estimator(random_state=0), theirs(random_state=0)):
        model.fit(X[:1000], y[:1000])
        for start in range(1000, 3000, n_rows):
            model.partial_fit(X[start : start + n_rows], y[start : start + n_rows])
        scores.append(model.score(X[3000:], y[3000:]))
    assert scores[0] > scores[1] - 0.02


@pytest.mark.parametrize("n_rows", [1, 3, 10, 16, 200])
def test_a_number_for_eta0_means_the_same_however_calls_divide_the_rows(n_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    y = X @ [1, 2, -1, 0, 0.5, 1] + 0.5 * rng.normal(size=3000)
    ours, theirs = OrtSGDRegressor(eta0=0.01, random_state=0), SGDRegressor(random_state=0)
    for start in range(0, 1000, n_rows):
        for model in (ours, theirs):
            model.partial_fit(X[start : start + n_rows], y[start : start + n_rows])
    assert ours.score(X[1000:], y[1000:]) > theirs.score(X[1000:], y[1000:]) - 0.02 > 0.9


@pytest.mark.parametrize("n_rows", [1, 5, 20, 200])
def test_sparse_rows_count_the_same_however_calls_divide_them(n_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 10))
    y = X @ rng.normal(size=10) + 0.5 * rng.normal(size=3000)
    model = OrtSGDRegressor(random_state=0)
    for start in range(0, 500, n_rows):
        rows = slice(start, min(500, start + n_rows))
        model.partial_fit(scipy.sparse.csr_matrix(X[rows]), y[rows])
    assert model.score(X[500:], y[500:]) > 0.93


def test_one_y_far_away_in_the_first_call_is_told():
    X, y = data(100)
    y = y.astype(float)
    y[3] = 1e9
    with pytest.warns(
        UserWarning, match="y has the value 1e.09, which is .* times as far from the median"
    ):
        OrtSGDRegressor(random_state=0).partial_fit(X, y)


def test_waiting_rows_that_float32_cannot_hold_begin_in_float64():
    X, y = data(60)
    y = X @ [1.0, 2.0, 3.0, 4.0, 5.0]
    tiny, same = short(OrtSGDRegressor), short(OrtSGDRegressor, dtype="float64")
    for i in range(60):
        tiny.partial_fit(X[i : i + 1] * [1, 1e-46, 1, 1, 1], y[i : i + 1])
        same.partial_fit(X[i : i + 1], y[i : i + 1])
    np.testing.assert_allclose(tiny.coef_ * [1, 1e-46, 1, 1, 1], same.coef_, rtol=1e-9)
    assert tiny.plan_.decisions["dtype"].value == "float64"


@pytest.mark.parametrize("inner", [None, MLPRegressor(hidden_layer_sizes=(8,))])
def test_what_float32_cannot_hold_draws_what_float64_draws(inner):
    X, _ = data(60)
    tiny = short(OrtSGDRegressor, inner).fit(X * 1e-46, X[:, 0])
    same = short(OrtSGDRegressor, inner, dtype="float64").fit(X * 1e-46, X[:, 0])
    np.testing.assert_array_equal(tiny.predict(X * 1e-46), same.predict(X * 1e-46))
    again = clone(tiny).set_params(warm_start=True).fit(X * 1e-46, X[:, 0]).fit(X * 1e-46, X[:, 0])
    assert again.plan_.decisions["dtype"].value == "float64"


def test_rows_of_weight_zero_are_not_far_away(recwarn):
    X, y = data(400)
    weights = np.ones(200)
    weights[::2] = 0
    model = short(OrtSGDRegressor).partial_fit(X[:200], y[:200])
    model.partial_fit(np.where(weights[:, None] == 0, 1e6, X[200:]), y[200:], sample_weight=weights)
    assert not recwarn
    with pytest.warns(UserWarning, match="column 0 of X is .* standard deviations away"):
        model.partial_fit(X[200:] + 1e6, y[200:])


def test_a_far_column_behind_steps_is_one_of_the_transformed_rows():
    X, y = data(400)
    scaler = FrozenEstimator(StandardScaler().fit(X[:200]))
    model = short(OrtSGDRegressor, make_pipeline(scaler, LinearRegression()))
    model.partial_fit(X[:200], y[:200])
    with pytest.warns(UserWarning, match="column 0 of the transformed X is .* deviations away"):
        model.partial_fit(X[200:] + 1e6, y[200:])


def test_a_far_column_behind_steps_has_the_name_that_the_steps_give_it():
    X, y = data(400)
    table = pd.DataFrame(X, columns=[f"size {i}" for i in range(X.shape[1])])
    scaler = make_column_transformer((StandardScaler(), ["size 1"]), remainder="passthrough")
    steps = FrozenEstimator(scaler.fit(table[:200]))
    model = short(OrtSGDRegressor, make_pipeline(steps, LinearRegression()))
    model.partial_fit(table[:200], y[:200])
    name = "standardscaler__size 1"
    with pytest.warns(UserWarning, match=f"^partial_fit: column '{name}' of the transformed X is"):
        model.partial_fit(table[200:].assign(**{"size 1": 1e6}), y[200:])


def test_a_far_column_of_a_step_that_tells_no_names_has_its_number():
    X, y = data(400)
    table = pd.DataFrame(X, columns=[f"size {i}" for i in range(X.shape[1])])
    steps = FrozenEstimator(FunctionTransformer(np.negative).fit(table))
    model = short(OrtSGDRegressor, make_pipeline(steps, LinearRegression()))
    model.partial_fit(table[:200], y[:200])
    with pytest.warns(UserWarning, match="^partial_fit: column 1 of the transformed X is"):
        model.partial_fit(table[200:].assign(**{"size 1": 1e6}), y[200:])


def test_an_estimator_whose_rows_wait_shows_itself():
    X, y = data(6)
    shown = OrtSGDRegressor(random_state=0).partial_fit(X, y)._repr_mimebundle_()["text/html"]
    assert "0 (0 updates)" in shown and ">objective</th>" not in shown


@pytest.mark.parametrize("size", [1, 3, 7, 20])
@pytest.mark.parametrize("far", [100.0, 1e-3], ids=["moved", "smaller"])
def test_a_column_that_leaves_its_scale_is_told_in_calls_of_any_size(far, size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    model = OrtSGDClassifier(random_state=0).partial_fit(
        X[:60], X[:60, 0] > 0, classes=[False, True]
    )
    X[60:, 1] = X[60:, 1] + far if far > 1 else far * X[60:, 1]
    with pytest.warns(
        UserWarning, match="column 1 of X (is|has values) .* the rows that the stream"
    ):
        for start in range(60, 100, size):
            rows = X[start : start + size]
            model.partial_fit(rows, rows[:, 0] > 0)


def test_one_row_calls_within_the_scale_warn_of_nothing(recwarn):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    model = OrtSGDClassifier(random_state=0)
    for row in X:
        model.partial_fit(row[None], row[:1] > 0, classes=[False, True])
        row[:] = 1e6
    assert not recwarn.list
