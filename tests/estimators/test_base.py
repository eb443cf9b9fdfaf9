"""
What both estimators promise: scikit-learn's contract, clear errors,
no half-changed state, one ONNX model.
"""

import copy
import pickle
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import onnx
import onnx.parser
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.exceptions import NotTrainableError, RuntimeNotAvailableError
from skort.runtime.installed import load, training_api
from skort.solvers import available_solvers

ESTIMATORS = [OrtSGDRegressor, OrtSGDClassifier]
MODELS = [
    (OrtSGDRegressor, None),
    (OrtSGDRegressor, MLPRegressor(hidden_layer_sizes=(8,))),
    (
        OrtSGDRegressor,
        make_pipeline(
            StandardScaler(), MLPRegressor(hidden_layer_sizes=(8,), activation="logistic")
        ),
    ),
    (OrtSGDClassifier, None),
    (OrtSGDClassifier, MLPClassifier((8,))),
    (OrtSGDClassifier, make_pipeline(StandardScaler(), LogisticRegression())),
]


def data(n=80, n_features=5, seed=0):
    """Return X and a y that both estimators take."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)


def short(estimator_class, inner=None, **options):
    return estimator_class(inner, **{"max_iter": 5, "tol": None, "random_state": 0, **options})


@pytest.mark.parametrize("estimator_class", ESTIMATORS)
def test_a_fitted_estimator_says_why_its_training_ended(estimator_class):
    X, y = data()
    model = short(estimator_class, max_iter=2).fit(X, y)
    assert model.stopping_reason_ == "The training reached max_iter=2 epochs."
    assert pickle.loads(pickle.dumps(model)).stopping_reason_ == model.stopping_reason_
    assert model.partial_fit(X, y).stopping_reason_ is None
    model = short(
        estimator_class, tol=1e9, n_iter_no_change=2, learning_rate="constant", standardize=False
    ).fit(X, y)
    assert (
        model.stopping_reason_
        == "The objective did not improve by 1e+09 of itself for 2 epochs in a row."
    )
    with pytest.raises(NotFittedError):
        estimator_class().stopping_reason_  # noqa: B018


def state(estimator):
    """
    Return the value of everything that a fit leaves, public or pickled,
    each as a hash: name -> str.
    """
    names = [name for name in dir(estimator) if name.endswith("_") and not name.startswith("_")]
    values = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    if "n_iter_" in values:
        values["predict"] = estimator.predict(data(n_features=estimator.n_features_in_)[0])
        values["to_onnx"] = estimator.to_onnx().SerializeToString()
        values["to_sklearn"] = vars(estimator.to_sklearn())
    # Last: what is made when it is first asked for is there now.
    values["pickle"] = pickle.dumps(estimator)
    return {name: joblib.hash(value) for name, value in values.items()}


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.fit(*data(seed=1)),
        lambda model: model.partial_fit(*data()),
        lambda model: setattr(model, "n_iter_", 7),
        lambda model: model.set_weights({name: w + 1 for name, w in model.weights_.items()}),
    ],
)
@pytest.mark.parametrize("estimator_class", ESTIMATORS)
def test_state_sees_changes(estimator_class, change):
    model = short(estimator_class).fit(*data())
    before = state(model)
    assert before.keys() >= {
        "weights_",
        "history_",
        "loss_curve_",
        "n_iter_",
        "t_",
        "onnx_",
        "predict",
        "pickle",
    }
    assert state(model) == before
    change(model)
    assert state(model) != before


# --- bad input

X, Y = data()
BAD_DATA = [
    (np.where(X > 2, np.nan, X), Y, None, "Input X contains NaN"),
    (np.where(X > 2, np.inf, X), Y, None, "Input X contains infinity"),
    (1e300 * X, Y, None, "too large for dtype"),
    (X + 1j, Y, None, "Complex data not supported"),
    (np.full(X.shape, "text"), Y, None, "X has text in columns 0, 1"),
    (X[:0], Y[:0], None, "Found array with 0 sample"),
    (X[:, :0], Y, None, r"Found array with 0 feature\(s\)"),
    (X[:, 0], Y, None, "Expected 2D array, got 1D array"),
    (X, Y[:-1], None, "inconsistent numbers of samples"),
    (X, np.where(Y == 0, np.nan, 1.0), None, "Input y contains NaN"),
    (X, None, None, "requires y to be passed"),
    (X, Y, np.ones(3), r"sample_weight.shape == \(3,\), expected \(80,\)"),
    (X, Y, np.where(Y == 0, -1.0, 1.0), "Negative values in data passed to `sample_weight`"),
    (X, Y, np.where(Y == 0, np.nan, 1.0), "sample_weight contains NaN"),
    (X, Y, np.where(Y == 0, np.inf, 1.0), "sample_weight contains infinity"),
    (X, Y, np.zeros(80), "(?i)sample.weight.*zero"),
]


# scikit-learn sums X to look for infinities.
@pytest.mark.filterwarnings(
    "ignore:overflow encountered in cast", "ignore:invalid value encountered in reduce"
)
@pytest.mark.parametrize(
    "X, y, sample_weight, message", BAD_DATA, ids=[case[-1] for case in BAD_DATA]
)
@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("estimator_class", ESTIMATORS)
def test_bad_data_is_refused_and_changes_nothing(
    estimator_class, fitted, X, y, sample_weight, message
):
    estimator = short(estimator_class)
    if fitted:
        estimator.fit(*data())
    before = state(estimator)
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y, sample_weight=sample_weight)
    assert state(estimator) == before


BAD_PARAMETERS = [
    ("solver", "sgd", "'solver' parameter .* must be a str among {.*'agent'.*}"),
    ("loss", "l3", "'loss' parameter"),
    ("penalty", "l3", "'penalty' parameter .* must be a str among {.*'elasticnet'.*}"),
    ("l1_ratio", 1.5, r"'l1_ratio' parameter .* in the range \[0"),
    ("alpha", -1.0, "'alpha' parameter"),
    ("optimizer", "rmsprop", "'optimizer' parameter"),
    ("learning_rate", "fast", "'learning_rate' parameter"),
    ("eta0", 0.0, "'eta0' parameter"),
    ("power_t", -0.5, "'power_t' parameter"),
    ("batch_size", 0, "'batch_size' parameter"),
    ("batch_size", 2.5, "'batch_size' parameter"),
    ("max_iter", 0, "'max_iter' parameter"),
    ("tol", -1e-3, "'tol' parameter"),
    ("n_iter_no_change", 0, "'n_iter_no_change' parameter"),
    ("shuffle", "yes", "'shuffle' parameter"),
    ("dtype", "float16", "'dtype' parameter"),
    ("random_state", "seed", "'random_state' parameter"),
    ("verbose", -1, "'verbose' parameter"),
    (
        "estimator",
        StandardScaler(),
        "Got StandardScaler\\(\\), a transformer. Put a model after it",
    ),
    ("estimator", FrozenEstimator, "Got the class FrozenEstimator: give an instance of it"),
    (
        "estimator",
        np.zeros((5, 2)),
        r"Got data, of the shape \(5, 2\): X and y are arguments of fit",
    ),
    ("estimator", make_pipeline(StandardScaler()), "'estimator' parameter"),
]


@pytest.mark.parametrize("name, value, message", BAD_PARAMETERS)
@pytest.mark.parametrize("estimator_class", ESTIMATORS)
def test_bad_parameters_are_named(estimator_class, name, value, message):
    estimator = short(estimator_class).set_params(**{name: value})
    with pytest.raises(ValueError, match=message):
        estimator.fit(*data())


@pytest.mark.parametrize("estimator_class", ESTIMATORS)
@pytest.mark.parametrize(
    "inside", [lambda model: model, lambda model: make_pipeline(StandardScaler(), model)]
)
def test_a_class_in_place_of_a_model_is_refused(estimator_class, inside):
    with pytest.raises(
        ValueError,
        match=r"estimator=LinearRegression is a class: pass an instance, LinearRegression\(\)",
    ):
        estimator_class(inside(LinearRegression)).fit(*data())


class Untouched(TransformerMixin, BaseEstimator):
    """A transformer that must not be fitted."""

    def fit(self, X, y=None):
        raise AssertionError("fitted")

    def transform(self, X):
        return X


@pytest.mark.parametrize(
    "estimator, message",
    [
        (OrtSGDRegressor(RandomForestRegressor()), "RandomForestRegressor cannot be trained"),
        (OrtSGDClassifier(RandomForestClassifier()), "RandomForestClassifier cannot be trained"),
        (
            OrtSGDClassifier(make_pipeline(Untouched(), RandomForestClassifier())),
            "RandomForestClassifier cannot be trained",
        ),
        (
            OrtSGDRegressor(LogisticRegression()),
            "LogisticRegression is not a regressor: use OrtSGDClassifier",
        ),
        (
            OrtSGDClassifier(LinearRegression()),
            "LinearRegression is not a classifier: use OrtSGDRegressor",
        ),
    ],
)
def test_models_that_cannot_be_trained_are_refused_before_any_training(estimator, message):
    before = state(estimator)
    with pytest.raises(NotTrainableError, match=message):
        estimator.fit(*data())
    assert state(estimator) == before


def test_a_session_trains_no_float64():
    with pytest.raises(
        ValueError, match=r'solver="session" trains in float32 only.*solver="graph"'
    ):
        OrtSGDRegressor(solver="session", dtype="float64").fit(*data())


@pytest.mark.parametrize("estimator_class", ESTIMATORS)
def test_an_unfitted_estimator_says_so(estimator_class, tmp_path):
    estimator = estimator_class()
    for call in (
        lambda: estimator.predict(X),
        estimator.to_onnx,
        estimator.training_graphs,
        lambda: estimator.save_onnx(tmp_path / "model.onnx"),
    ):
        with pytest.raises(NotFittedError):
            call()
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize("fitted", [False, True])
def test_divergence_names_the_epoch_and_leaves_the_estimator_as_it_was(solver, fitted):
    X, y = data()
    model = short(OrtSGDRegressor, solver=solver, eta0=0.01)
    if fitted:
        model.fit(X, y)
    before = state(model)
    model.set_params(eta0=50.0, max_iter=1000)
    with pytest.raises(ValueError, match=r"in epoch \d+, at a learning rate of 50\. Lower eta0"):
        model.fit(X, y)
    model.set_params(standardize=False)
    with pytest.raises(
        ValueError,
        match=r"X have .* to 100 \(column 2\)\. .* up to 20\. Use .*StandardScaler, or lower",
    ):
        model.fit(X * [1, 1, 100, 1, 1] / X.std(axis=0), 20 * y)
    model.set_params(standardize="auto")
    model.set_params(eta0=0.01, max_iter=5)
    assert state(model) == before


def test_divergence_at_a_rate_from_alpha_does_not_advise_another_eta0():
    X, y = load_breast_cancer(return_X_y=True)
    network = OrtSGDClassifier(
        MLPClassifier((10,)), learning_rate="optimal", optimizer="nesterov", random_state=0
    )
    with pytest.raises(ValueError, match=r"rate of \S+\. Use learning_rate=.constant.\.$"):
        network.fit(X, y)


def test_divergence_advises_nothing_that_is_there_already():
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        twice (float[N, 1] X) => (float[N, 1] score) <float[1, 1] coef = {0}> {
    score = Gemm <alpha = 2.0> (X, coef) }
    """)
    X = np.arange(100.0)[:, None]
    with pytest.raises(
        ValueError, match=r"y has values of up to 99\. Use StandardScaler, or lower eta0\.$"
    ):
        OrtSGDRegressor(model, optimizer="sgd", eta0=1.0).fit(X, X[:, 0])


def test_max_iter_warns_where_tol_was_not_reached(solver):
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3, tol=0\.0001") as record:
        short(OrtSGDRegressor, optimizer="sgd", solver=solver, max_iter=3, tol=1e-4).fit(*data())
    assert record[0].filename == __file__


@pytest.mark.parametrize("estimator_class", ESTIMATORS)
def test_bad_data_for_predict_is_refused(estimator_class):
    X, y = data()
    estimator = short(estimator_class).fit(X, y)
    for bad, message in (
        (np.where(X > 2, np.nan, X), "Input X contains NaN"),
        (np.where(X > 2, -np.inf, X), "Input X contains infinity"),
        (np.full(X.shape, "text"), "X has text in columns 0, 1"),
        (X[:0], "Found array with 0 sample"),
        (X[0], "Expected 2D array, got 1D array"),
    ):
        with pytest.raises(ValueError, match=message):
            estimator.predict(bad)
    with pytest.raises(ValueError, match=r"X has 4 features, but .* is expecting 5 features"):
        estimator.predict(X[:, :4])
    estimator.fit(pd.DataFrame(X, columns=list("abcde")), y)
    assert estimator.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(pd.DataFrame(X, columns=list("abcdx")))


@pytest.mark.parametrize(
    "solver, api",
    [("agent", "TrainingAgent"), ("session", "TrainingSession")],
    indirect=["solver"],
)
def test_a_missing_runtime_is_named_and_changes_nothing(monkeypatch, solver, api):
    model = short(OrtSGDRegressor, solver=solver).fit(*data())
    before = state(model)
    others = {name: each for name, each in training_api().items() if name != api}
    monkeypatch.setattr("skort.solvers.choice.training_api", lambda: others)
    with pytest.raises(RuntimeNotAvailableError) as error:
        model.fit(*data())
    message = str(error.value)
    assert message.startswith(f'solver="{solver}" needs {api}; solver="graph" works here. ')
    assert "onnxruntime-training 1.16.2 and 1.16.3" in message
    assert state(model) == before


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, 16])
def test_weighted_batches_lead_to_the_weighted_optimum(solver, batch_size):
    X, y = data(seed=1)
    weight = np.random.default_rng(1).lognormal(sigma=1.5, size=len(X))
    options = {
        "solver": solver,
        "batch_size": batch_size,
        "penalty": None,
        "max_iter": 300,
        "eta0": 1e-3 * batch_size,
    }
    model = short(OrtSGDRegressor, **options).fit(X, y, sample_weight=weight)
    optimum = LinearRegression().fit(X, y, sample_weight=weight)
    unweighted = LinearRegression().fit(X, y)
    assert np.linalg.norm(model.coef_ - optimum.coef_) < 0.1 * np.linalg.norm(
        unweighted.coef_ - optimum.coef_
    )


# --- scikit-learn's contract


@pytest.mark.parametrize("estimator_class, inner", MODELS)
def test_clone_and_nested_parameters(estimator_class, inner):
    estimator = short(estimator_class, inner)
    estimator.fit(*data())
    copied = clone(estimator)
    assert not hasattr(copied, "n_iter_")
    assert repr(copied) == repr(estimator)
    if isinstance(inner, MLPRegressor | MLPClassifier):
        copied.set_params(estimator__hidden_layer_sizes=(3,)).fit(*data())
        assert copied.weights_["coefficient"].shape == (5, 3)
        assert inner.hidden_layer_sizes == (8,)


@pytest.mark.parametrize("estimator_class, inner", MODELS)
def test_copies_predict_the_same(solver, estimator_class, inner, tmp_path):
    X, y = data()
    estimator = short(estimator_class, inner, solver=solver).fit(X, y)
    joblib.dump(estimator, tmp_path / "model.joblib")
    for copied in (
        pickle.loads(pickle.dumps(estimator)),
        copy.deepcopy(estimator),
        joblib.load(tmp_path / "model.joblib"),
    ):
        np.testing.assert_array_equal(copied.predict(X), estimator.predict(X))
        assert copied.training_graphs().keys() == estimator.training_graphs().keys()


@pytest.mark.slow
@pytest.mark.parametrize("estimator_class, inner", MODELS)
def test_search_and_cross_validation(solver, estimator_class, inner):
    X, y = data()
    estimator = short(estimator_class, inner, solver=solver)
    search = GridSearchCV(estimator, {"eta0": [0.01, 0.3]}, cv=3, n_jobs=2).fit(X, y)
    for eta0, score in zip((0.01, 0.3), search.cv_results_["mean_test_score"], strict=True):
        np.testing.assert_allclose(
            cross_val_score(clone(estimator).set_params(eta0=eta0), X, y, cv=3).mean(), score
        )


def test_sample_weight_is_routed_through_a_pipeline():
    X, y = data()
    weight = np.where(y == 0, 1.0, 4.0)
    direct = short(OrtSGDClassifier).fit(X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = short(OrtSGDClassifier).set_fit_request(sample_weight=True)
        scaler = StandardScaler(with_mean=False, with_std=False).set_fit_request(
            sample_weight=False
        )
        pipeline = make_pipeline(scaler, inner).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)
    assert not np.allclose(direct.coef_, short(OrtSGDClassifier).fit(X, y).coef_)


@pytest.mark.parametrize("estimator_class, inner", MODELS[:2] + MODELS[3:5])
def test_a_weight_of_two_is_a_row_twice_and_a_weight_of_zero_none(estimator_class, inner):
    X, y = data()
    weight = np.arange(80) % 3
    options = {"dtype": "float64", "max_iter": 50, "batch_size": 80}
    weighted = short(estimator_class, inner, **options).fit(X, y, sample_weight=weight)
    repeated = short(estimator_class, inner, **options).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    for name, w in weighted.weights_.items():
        np.testing.assert_allclose(w, repeated.weights_[name], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(weighted.loss_curve_, repeated.loss_curve_, rtol=1e-12)


def test_rows_of_weight_zero_are_in_no_batch(solver):
    X, y = data()
    weight = (np.arange(80) % 3 > 0).astype(float)
    kept = weight > 0
    options = {"solver": solver, "batch_size": 10, "shuffle": False}
    weighted = short(OrtSGDClassifier, **options).fit(X, y, sample_weight=weight)
    without = short(OrtSGDClassifier, **options).fit(X[kept], y[kept])
    np.testing.assert_array_equal(weighted.coef_, without.coef_)
    assert weighted.t_ == without.t_ == 5 * 6


@pytest.mark.parametrize("estimator_class, inner", MODELS)
def test_the_same_seed_gives_the_same_bytes(solver, estimator_class, inner):
    X, y = data()
    options = {"solver": solver, "batch_size": 16}
    first, second = (short(estimator_class, inner, **options).fit(X, y) for _ in range(2))
    other = (
        short(
            estimator_class,
            inner,
            **options,
        )
        .set_params(random_state=1)
        .fit(X, y)
    )
    assert first.onnx_.SerializeToString() == second.onnx_.SerializeToString()
    assert first.onnx_.SerializeToString() != other.onnx_.SerializeToString()


def test_fits_in_threads_are_the_serial_ones(solver):
    X, y = data(400)

    def fit(seed):
        model = short(
            OrtSGDClassifier, MLPClassifier((8,)), solver=solver, batch_size=16, random_state=seed
        )
        return model.fit(X, y).onnx_.SerializeToString()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fit, range(8))) == [fit(seed) for seed in range(8)]


@pytest.mark.parametrize("estimator_class, inner", MODELS)
def test_all_solvers_fit_the_same(estimator_class, inner):
    X, y = data(90)
    weight = np.linspace(0.5, 2, 90)
    # 100 updates: 25 epochs of three full batches and a short one.
    options = {"batch_size": 25, "max_iter": 25, "alpha": 0.01, "eta0": 0.1}
    fits = [
        short(estimator_class, inner, solver=name, **options).fit(X, y, weight)
        for name in (*available_solvers(), "auto")
    ]
    assert [model.solver_ for model in fits] == [*available_solvers(), "graph"]
    for model in fits:
        assert model.t_ == 100
        for name, w in model.weights_.items():
            # A weight near zero has the rounding errors of others.
            size = max(np.linalg.norm(w), 0.1)
            assert np.linalg.norm(w - fits[0].weights_[name]) <= 1e-5 * size
        np.testing.assert_allclose(model.loss_curve_, fits[0].loss_curve_, rtol=1e-5)


@pytest.mark.parametrize("alpha", [np.float64(1e-3), np.float32(0.5), np.int64(1), True])
def test_numbers_of_numpy_are_numbers(solver, alpha):
    X, y = data()
    numpy_numbers = short(OrtSGDRegressor, solver=solver).set_params(
        alpha=alpha,
        learning_rate="invscaling",
        eta0=np.float64(0.01),
        power_t=np.float64(0.3),
        batch_size=np.int64(16),
        max_iter=np.int32(3),
    )
    numbers = clone(numpy_numbers)
    numbers.set_params(alpha=float(alpha), eta0=0.01, power_t=0.3, batch_size=16, max_iter=3)
    np.testing.assert_array_equal(numpy_numbers.fit(X, y).coef_, numbers.fit(X, y).coef_)


# --- ONNX


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("estimator_class, inner", MODELS)
def test_predictions_are_the_saved_models(estimator_class, inner, dtype, tmp_path):
    X, y = data(203)
    estimator = short(estimator_class, inner, dtype=dtype).fit(X, y)
    estimator.save_onnx(tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    session = load().InferenceSession(
        str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    outputs = session.run(None, {"X": X.astype(dtype)})
    # The weights of small models are inputs of a session that models share: it rounds
    # products otherwise.
    rounding = {"float32": 2e-6, "float64": 1e-14}[dtype]
    if estimator_class is OrtSGDRegressor:
        assert [o.name for o in session.get_outputs()] == ["variable"]
        np.testing.assert_allclose(
            estimator.predict(X), outputs[0].ravel(), rtol=rounding, atol=rounding
        )
    else:
        assert [o.name for o in session.get_outputs()] == ["label", "probabilities"]
        np.testing.assert_array_equal(estimator.predict(X), outputs[0])
        np.testing.assert_allclose(
            estimator.predict_proba(X), outputs[1], rtol=rounding, atol=rounding
        )


def test_to_onnx_is_a_copy():
    estimator = short(OrtSGDRegressor).fit(*data())
    model = estimator.to_onnx()
    assert model.SerializeToString() == estimator.onnx_.SerializeToString()
    del model.graph.node[:]
    assert len(estimator.onnx_.graph.node) > 0


def test_a_search_over_the_parameters_of_the_model_inside():
    X, y = data(200)
    model = short(OrtSGDClassifier, MLPClassifier(), max_iter=20, eta0=0.3)
    grid = {
        "estimator__hidden_layer_sizes": [(1,), (16,)],
        "estimator__activation": ["tanh", "relu"],
    }
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_estimator_.weights_["coefficient"].shape == (
        5,
        *search.best_params_["estimator__hidden_layer_sizes"],
    )


@pytest.mark.parametrize("estimator_class, inner", MODELS)
def test_the_model_inside_is_never_fitted_itself(estimator_class, inner, monkeypatch):
    def fit(self, *args, **kwargs):
        raise AssertionError("fitted")

    for model in (LinearRegression, LogisticRegression, MLPRegressor, MLPClassifier):
        monkeypatch.setattr(model, "fit", fit)
    assert short(estimator_class, inner, max_iter=2).fit(*data()).n_iter_ == 2


@pytest.mark.parametrize(
    "step, message",
    [
        (LinearRegression(), "the step 'wrong' before the model is not a transformer"),
        (StandardScaler, r"the step 'wrong' is a class: give an instance, StandardScaler\(\)\."),
    ],
)
def test_a_step_that_is_no_transformer_is_named(step, message):
    pipeline = Pipeline(
        [("first", StandardScaler()), ("wrong", step), ("model", LinearRegression())]
    )
    with pytest.raises(ValueError, match=message):
        short(OrtSGDRegressor, pipeline).fit(*data())


@pytest.mark.parametrize("scaler", [StandardScaler, RobustScaler])
def test_steps_that_work_in_place_train_the_same_model(scaler):
    X, y = data(300)
    X = 3 * X + 5
    fits = [
        short(
            OrtSGDRegressor, make_pipeline(scaler(copy=copy), LinearRegression()), dtype="float64"
        ).fit(X.copy(), y)
        for copy in (True, False)
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_values_that_only_float64_holds_are_named_with_the_step():
    X, y = data()
    model = short(OrtSGDRegressor, make_pipeline(StandardScaler(), LinearRegression()))
    with pytest.warns(
        UserWarning, match="the step 'standardscaler' cannot be part of an ONNX model in float32"
    ):
        model.fit(X * [1, 1, 1, 1, 1e39], y)
    np.testing.assert_allclose(
        model.predict(X * [1, 1, 1, 1, 1e39]), model.fit(X, y).predict(X), rtol=1e-5
    )
    model.set_params(dtype="float64").fit(X * [1, 1, 1, 1, 1e39], y)


@pytest.mark.parametrize("nothing", ["passthrough", None])
def test_steps_that_do_nothing_are_left_out(nothing):
    X, y = data()
    plain = short(OrtSGDRegressor, LinearRegression()).fit(X, y)
    for pipeline in (
        make_pipeline(nothing, LinearRegression()),
        make_pipeline(nothing, nothing, make_pipeline(nothing, LinearRegression())),
    ):
        model = short(OrtSGDRegressor, pipeline).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    search = {"estimator__standardscaler": [nothing, StandardScaler()]}
    model = short(OrtSGDRegressor, make_pipeline(StandardScaler(), LinearRegression()))
    assert (
        len(GridSearchCV(model, search, cv=2, error_score="raise").fit(X, y).cv_results_["params"])
        == 2
    )


def test_nested_pipelines_are_one():
    X, y = data()
    nested = make_pipeline(
        StandardScaler(), make_pipeline(PCA(3), StandardScaler(), LinearRegression())
    )
    flat = make_pipeline(StandardScaler(), PCA(3), StandardScaler(), LinearRegression())
    predictions = [
        short(OrtSGDRegressor, pipeline).fit(X, y).predict(X) for pipeline in (nested, flat)
    ]
    np.testing.assert_array_equal(*predictions)


def test_a_step_that_onnx_cannot_hold_is_named_before_any_training(monkeypatch):
    model = OrtSGDRegressor(make_pipeline(StandardScaler(), RBFSampler(), LinearRegression()))
    before = state(model)
    monkeypatch.delattr("skort.estimators.training.run.minimise")
    with (
        pytest.warns(UserWarning, match="the step 'rbfsampler' cannot be part of an ONNX model"),
        pytest.raises(NameError, match="minimise"),
    ):
        model.fit(*data())
    assert state(model) == before


def test_a_step_that_differs_as_onnx_is_a_warning_at_the_line_of_the_fit():
    X, y = data()
    model = short(OrtSGDRegressor, make_pipeline(StandardScaler(), LinearRegression()))
    with pytest.warns(
        UserWarning, match="the step 'standardscaler' gives other values as ONNX in float32"
    ) as record:
        model.fit(X + 1e7, y)
    assert record[0].filename == __file__
    model.set_params(dtype="float64").fit(X + 1e7, y)


def test_a_pipelines_steps_are_part_of_the_model(solver):
    X, y = data()
    X = 100 * X + 7
    inside = short(
        OrtSGDRegressor, make_pipeline(StandardScaler(), LinearRegression()), solver=solver
    ).fit(X, y)
    outside = make_pipeline(
        StandardScaler(), short(OrtSGDRegressor, LinearRegression(), solver=solver)
    ).fit(X, y)
    np.testing.assert_array_equal(inside.coef_, outside[-1].coef_)
    np.testing.assert_allclose(inside.predict(X), outside.predict(X), rtol=1e-4, atol=1e-5)
    assert [node.op_type for node in inside.onnx_.graph.node][:2] == ["Sub", "Div"]


@pytest.mark.parametrize("solver", ["graph", "agent", "session"], indirect=True)
def test_training_graphs(solver):
    X, y = data()
    graphs = short(OrtSGDRegressor, solver=solver, batch_size=16).fit(X, y).training_graphs()
    if solver == "graph":
        assert list(graphs) == ["step", "start", "split"]
        for graph in graphs.values():
            onnx.checker.check_model(graph, full_check=True)
            assert {node.domain for node in graph.graph.node} == {""}
    elif solver == "agent":
        assert list(graphs) == ["gradient", "start"]
        assert {o.name for o in graphs["gradient"].graph.output} == {
            "coef_grad",
            "intercept_grad",
            "skort_loss_returned",
        }
        assert "YieldOp" in {node.op_type for node in graphs["gradient"].graph.node}
    else:
        assert list(graphs) == ["objective", "training", "start"]
        onnx.checker.check_model(graphs["objective"], full_check=True)
        assert "SGDOptimizer" in {node.op_type for node in graphs["training"].graph.node}
    X_input = next(i for i in next(iter(graphs.values())).graph.input if i.name == "X")
    assert [d.dim_value for d in X_input.type.tensor_type.shape.dim] == [16, 5]


# --- memory


@pytest.mark.parametrize("given, copies", [("float32", 1), ("float64", 1), ("large float32", 0)])
def test_fit_copies_X_once_to_float32_at_most(solver, given, copies, monkeypatch):
    if copies == 0:
        monkeypatch.setattr("skort.optim.row_change._LARGE", 2**20)
    given = given.removeprefix("large ")
    X, y = np.random.default_rng(0).normal(size=(100_000, 60)).astype(given), np.zeros(100_000)
    model = short(OrtSGDRegressor, solver=solver, max_iter=1)
    model.fit(X[:500], y[:500])
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Beyond X: targets, weights and order of the rows, below 100 bytes a row.
    assert peak < copies * 4 * X.size + 100 * len(X)


@pytest.mark.slow
def test_fits_leave_no_memory_behind():
    code = """
import resource, numpy as np
from skort import OrtSGDClassifier
X, y = np.random.default_rng(0).normal(size=(50, 5)), np.arange(50) % 3
def fits(n):
    for _ in range(n):
        OrtSGDClassifier(solver=SOLVER, max_iter=2, tol=None).fit(X, y).predict(X)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = fits(40)
print(fits(160) - before)
"""
    pytest.importorskip("resource")
    for name in available_solvers():
        run = subprocess.run(
            [sys.executable, "-c", code.replace("SOLVER", repr(name))],
            capture_output=True,
            text=True,
            check=True,
        )
        # 160 fits and predictions, KiB.
        assert int(run.stdout) < 20 * 1024, name
