"""
The variables of a training: the same objective and the same model
as in the units of the data.
"""

import pickle
import warnings

import numpy as np
import onnx.parser
import pytest
import scipy.sparse
from onnx import numpy_helper
from skl2onnx import to_onnx
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import LinearSVC, LinearSVR
from solver_traits import takes

from skort import OrtSGDClassifier, OrtSGDRegressor, objective
from skort.callbacks import EpochScoring
from skort.estimators.data.relevance import explained_parts
from skort.estimators.planning.scaling import column_relevance
from skort.estimators.training.result import result_of
from skort.graphs.standardized import uncentred_arrays
from skort.objective import ElasticPenalty
from skort.optimizers import Adam

N, P = 200, 4
SCALES, SHIFTS = np.array([1e-3, 1, 50, 1e4]), np.array([1e-3, 0, -100, 2e7])
ONE_STEP = {
    "max_iter": 1,
    "tol": None,
    "learning_rate": "constant",
    "batch_size": N,
    "dtype": "float64",
}
SQUARE = objective.SquaredError().value_function(1)
SQUARE_GRADIENT = objective.SquaredError().gradient_function(1)
WEIGHTED_SQUARE = """\
weighted (score, target, weight) => (loss) {
    half = Constant <value = float {0.5}> ()
    residual = Sub (score, target)
    square = Mul (residual, residual)
    halved = Mul (half, square)
    loss = Mul (halved, weight)
}"""
ABSOLUTE = objective.AbsoluteError().value_function(1)
NETWORK = {"hidden_layer_sizes": (6,), "activation": "tanh"}


@pytest.fixture
def data(rng):
    """Rows whose columns have scales and means of their own, with y and weights."""
    Z = rng.normal(size=(N, P))
    y = 300 * (Z @ [1, -1, 0.5, 0] + 0.3 * rng.normal(size=N)) + 5000
    return Z * SCALES + SHIFTS, y, rng.uniform(0.5, 3, size=N)


REGRESSIONS = {
    "squared error": {},
    "l1": {"penalty": "l1", "alpha": 2.0},
    "elasticnet": {"penalty": ElasticPenalty(0.3, l1_ratio=0.4)},
    "huber": {"loss": "huber", "epsilon": 50.0},
    "absolute": {"loss": "absolute_error", "penalty": "l2", "alpha": 0.1},
    "quantile": {"loss": "quantile", "quantile": 0.8},
    "epsilon": {"loss": "epsilon_insensitive", "epsilon": 20.0},
    "squared epsilon": {
        "loss": "squared_epsilon_insensitive",
        "epsilon": 20.0,
        "penalty": "l2",
        "alpha": 1.0,
    },
    "elastic loss": {"loss": objective.ElasticLoss(3.0, 0.5), "penalty": "l1", "alpha": 0.5},
    "poisson": {"loss": "poisson", "penalty": "l2", "alpha": 0.2},
    "gamma": {"loss": "gamma", "penalty": "l2", "alpha": 0.2},
    "tweedie": {"loss": objective.TweedieLoss(1.5)},
    "without intercept": {"estimator": Ridge(fit_intercept=False)},
    "liblinear": {"estimator": LinearSVR(C=0.1)},
    # With the penalty of a network, which is of standardized X and y, they are not the same
    "network": {"estimator": MLPRegressor(**NETWORK, alpha=0.0)},
    "custom": {"loss": objective.Loss(SQUARE), "penalty": "l1", "alpha": 2.0},
    "custom, weighted": {"loss": objective.Loss(WEIGHTED_SQUARE), "penalty": "l2", "alpha": 0.1},
    "concomitant": {"estimator": HuberRegressor(alpha=0.01)},
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_both_variables_have_the_same_objective_at_the_same_weights(name, data, solver):
    X, y, weights = data
    if not takes(solver, dtype="float64"):
        pytest.skip("it has no float64")
    given = REGRESSIONS[name]
    # A fit whose steps are too short to move a weight ends where it began.
    first = OrtSGDRegressor(**given, **ONE_STEP, solver=solver, eta0=1e-300, random_state=0).fit(
        X, y, weights
    )
    options = (
        {**given, "penalty": given.get("penalty", "l2")} if "estimator" not in given else given
    )
    options = {"alpha": 1e-4, **options} if options.get("penalty") == "l2" else options
    here, there = (
        OrtSGDRegressor(
            **options,
            **ONE_STEP,
            solver=solver,
            eta0=1e-300,
            warm_start=True,
            random_state=0,
            standardize=standardize,
        )
        for standardize in ("auto", False)
    )
    for model in (here, there):
        vars(model)["_result"] = result_of(first)
        model.fit(X, y, weights)
    assert here.standardization_ is not None
    np.testing.assert_allclose(here.loss_, there.loss_, rtol=1e-9)
    np.testing.assert_allclose(here.history_["loss"], there.history_["loss"], rtol=1e-9)
    for name, expected in uncentred_arrays(result_of(there).model.score_graph).items():
        array = uncentred_arrays(result_of(here).model.score_graph)[name]
        np.testing.assert_allclose(array, expected, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("penalty", ["auto", ElasticPenalty(0.05, l1_ratio=0.3)])
def test_the_penalty_of_a_network_is_of_standardized_x_and_y(penalty, data):
    X, y, weights = data
    network = MLPRegressor(hidden_layer_sizes=(5,), alpha=3.0)
    options = {"penalty": penalty, "max_iter": 30, "random_state": 0, "dtype": "float64"}
    model = OrtSGDRegressor(network, **options, standardize=True).fit(X, y, weights)
    used = model.standardization_
    there = OrtSGDRegressor(network, **options, standardize=False).fit(
        (X - used.mean) / used.scale, (y - used.target_mean) / used.target_scale, weights
    )
    expected = used.target_mean + used.target_scale * there.predict((X - used.mean) / used.scale)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6)


def test_a_network_trains_on_columns_as_large_as_they_are_relevant(data):
    X, y, weights = data
    network = MLPRegressor(hidden_layer_sizes=(5,))
    options = {"penalty": None, "max_iter": 30, "random_state": 0, "dtype": "float64"}
    options["optimizer"] = Adam(weight_decay=0.5)
    model = OrtSGDRegressor(network, **options).fit(X, y, weights)
    used = model.standardization_
    relevance = column_relevance(explained_parts(X, y[:, None], weights))
    np.testing.assert_allclose(used.relevance, relevance, rtol=1e-12)
    deviation = np.sqrt(np.average((X - used.mean) ** 2, axis=0, weights=weights))
    np.testing.assert_allclose(used.deviation, deviation, rtol=1e-9)
    np.testing.assert_allclose(used.scale, deviation / relevance, rtol=1e-9)
    assert "columns that say more about y are larger" in model.plan_.decisions["scaling"].because

    rows = (X - used.mean) / used.scale
    there = OrtSGDRegressor(network, **options, standardize=False).fit(
        rows, (y - used.target_mean) / used.target_scale, weights
    )
    expected = used.target_mean + used.target_scale * there.predict(rows)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6)


def test_the_relevance_of_columns_does_not_change_a_penalty(data):
    network = MLPRegressor(hidden_layer_sizes=(5,))
    penalty = ElasticPenalty(0.01, l1_ratio=0.2)
    model = OrtSGDRegressor(network, penalty=penalty, random_state=0).fit(*data)
    used, result = model.standardization_, result_of(model)
    names = ("coefficient", "coefficient1")
    strengths = result.plan.variables(result.model.score_graph, used).penalty.strengths(names)
    # A weight of a column is its relevance times that of the standardized one.
    np.testing.assert_allclose(strengths[names[0]].l1, 0.002 * used.relevance[:, None])
    np.testing.assert_allclose(strengths[names[0]].l2, 0.008 * used.relevance[:, None] ** 2)
    assert (strengths[names[1]].l1, strengths[names[1]].l2) == pytest.approx((0.002, 0.008))


def test_a_column_of_one_value_is_not_less_relevant(data):
    X, y, _ = data
    more = np.insert(X, 1, 7.0, axis=1)
    network = MLPRegressor(hidden_layer_sizes=(5,))
    plain, found = (
        OrtSGDRegressor(network, random_state=0).fit(each, y).standardization_ for each in (X, more)
    )
    np.testing.assert_allclose(np.delete(found.relevance, 1), plain.relevance, rtol=1e-12)
    assert (found.relevance[1], found.scale[1]) == (1.0, 1.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_relevance_is_for_new_networks_that_leave_it_open(data):
    X, y, _ = data
    network = MLPRegressor(hidden_layer_sizes=(5,))

    def sgd(inside, **parameters):
        return OrtSGDRegressor(inside, random_state=0, **parameters)

    fitted = sgd(network).fit(X, y)
    assert fitted.standardization_.relevance is not None
    models = [
        sgd(network, standardize=True).fit(X, y),
        sgd(network, optimizer="lbfgs", max_iter=20).fit(X, y),
        sgd(network).partial_fit(X, y),
        sgd(FrozenEstimator(fitted.to_sklearn()), early_stopping=False).fit(X, y),
        sgd(None).fit(X, y),
    ]
    for model in models:
        assert model.standardization_.relevance is None
        np.testing.assert_allclose(model.standardization_.deviation, X.std(axis=0), rtol=1e-6)


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**30])
def test_a_network_fits_y_in_any_unit(unit, data):
    X, y, weights = data
    network = MLPRegressor(hidden_layer_sizes=(5,))
    here, there = (
        OrtSGDRegressor(network, max_iter=30, random_state=0).fit(X, target, weights)
        for target in (y, unit * y)
    )
    np.testing.assert_allclose(there.predict(X) / unit, here.predict(X), rtol=1e-6)
    assert there.loss_ / unit**2 == pytest.approx(here.loss_, rel=1e-6)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_a_step_is_that_of_standardized_data(n_outputs, data, solver):
    """
    With squared error: weights of one full-batch step on (X - m) / s
    and (y - m) / s, taken back.
    """
    X, y, weights = data
    Y = y[:, None] if n_outputs == 1 else np.column_stack([y, 2 * y[::-1] + 7])
    model = OrtSGDRegressor(
        LinearRegression(), **ONE_STEP | {"dtype": "float32"}, eta0=0.2, solver=solver
    )
    model.fit(X, Y, weights)
    mean, target_mean = (
        np.average(X, axis=0, weights=weights),
        np.average(Y, axis=0, weights=weights),
    )
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    target_scale = np.sqrt(np.mean(np.average((Y - target_mean) ** 2, axis=0, weights=weights)))
    Z, T = (X - mean) / scale, (Y - target_mean) / target_scale
    step = 0.2 * Z.T @ (T * weights[:, None]) / weights.sum() / n_outputs
    expected = step * target_scale / scale[:, None]
    np.testing.assert_allclose(model.coef_.T.reshape(P, -1), expected, rtol=1e-3)
    np.testing.assert_allclose(
        np.ravel(model.intercept_), target_mean - mean @ expected, atol=2e-3 * target_scale
    )
    assert model.standardization_.is_offset
    np.testing.assert_allclose(
        model.predict(X).reshape(N, -1), Z @ step * target_scale + target_mean, rtol=1e-5
    )


OWN = {
    "derived": objective.Loss(SQUARE),
    "closed form": objective.Loss(SQUARE, gradient=SQUARE_GRADIENT),
    "weighted": objective.Loss(WEIGHTED_SQUARE),
}
STEPS = {
    "learning_rate": "constant",
    "tol": None,
    "batch_size": 15,
    "max_iter": 10,
    "random_state": 0,
}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_a_squared_error_of_ones_own_makes_the_steps_of_squared_error(name, n_outputs, solver, rng):
    X, weights = (
        rng.normal(size=(N, P)) * [0.3, 1, 5, 20] + [3, 0, -5, 100],
        rng.uniform(0.5, 3, size=N),
    )
    y = 300 * ((X - [3, 0, -5, 100]) @ rng.normal(size=(P, n_outputs)) / 10) + 5000
    options = {**STEPS, "eta0": 0.05, "penalty": "l1", "alpha": 30.0, "solver": solver}
    ours, theirs = (
        OrtSGDRegressor(loss=loss, **options).fit(X, y, sample_weight=weights)
        for loss in (OWN[name], "squared_error")
    )
    assert ours.standardization_ == theirs.standardization_
    np.testing.assert_allclose(
        ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-5 * abs(theirs.coef_).max()
    )
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-5)
    for column in ("objective", "loss"):
        np.testing.assert_allclose(ours.history_[column], theirs.history_[column], rtol=1e-5)


def test_an_absolute_error_of_ones_own_makes_half_the_steps_of_one_by_name(data, solver):
    X, y, weights = data
    options = {**STEPS, "penalty": None, "solver": solver}
    ours = OrtSGDRegressor(loss=objective.Loss(ABSOLUTE), eta0=0.02, **options).fit(X, y, weights)
    theirs = OrtSGDRegressor(loss=objective.ElasticLoss(1.0, 0.0), eta0=0.01, **options).fit(
        X, y, weights
    )
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5)
    np.testing.assert_allclose(ours.history_["loss"], theirs.history_["loss"], rtol=1e-5)
    assert ours.history_["loss"][0] > 100


@pytest.mark.filterwarnings("ignore:The loss .* is least at the score 0 for the first class")
def test_a_custom_loss_leaves_the_labels_of_a_classifier(rng):
    X = rng.normal(size=(N, P)) * SCALES
    model = OrtSGDClassifier(loss=objective.Loss(SQUARE), **STEPS, eta0=0.01).fit(X, X[:, 1] > 0)
    assert model.standardization_.target_mean is None


def test_a_stream_goes_on_with_a_custom_loss(data):
    X, y, _ = data
    models = [OrtSGDRegressor(**STEPS, eta0=0.01).partial_fit(X, y) for _ in range(2)]
    models[0].set_params(loss=objective.Loss(SQUARE))
    for model in models:
        model.partial_fit(X, y)
    np.testing.assert_allclose(models[0].predict(X), models[1].predict(X), rtol=1e-5)


OPTIMA = [
    Ridge(alpha=20.0),
    Lasso(alpha=30.0),
    ElasticNet(alpha=1.0, l1_ratio=0.5),
    LinearSVR(C=0.01, loss="squared_epsilon_insensitive", epsilon=10.0),
    HuberRegressor(alpha=0.01),
]


@pytest.mark.parametrize("inner", OPTIMA, ids=lambda inner: type(inner).__name__)
def test_raw_data_end_at_the_optimum_of_scikit_learn(inner, rng):
    Z = rng.normal(size=(N, P)) @ (np.eye(P) + 0.2)
    scales = np.array([0.3, 1, 5, 20])
    X, y = (
        Z * scales + [3, 0, -5, 100],
        300 * (Z @ [1, -1, 0.5, 0.1] + 0.3 * rng.normal(size=N)) + 5000,
    )
    if isinstance(inner, LinearSVR):
        X, y = X - X.mean(axis=0), y - y.mean()
    expected = clone(inner).set_params(max_iter=10_000).fit(X, y)
    model = OrtSGDRegressor(inner, dtype="float64", tol=1e-9, max_iter=5000, random_state=0).fit(
        X, y
    )
    np.testing.assert_allclose(
        model.coef_ * X.std(axis=0), expected.coef_ * X.std(axis=0), atol=2e-3 * y.std()
    )
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=5e-3 * y.std())


def test_a_log_link_begins_at_the_mean_of_y(rng):
    Z = rng.normal(size=(N, 3))
    X, y = Z * [0.1, 1, 10] + [1, 0, -50], rng.poisson(1e4 * np.exp(Z @ [0.3, -0.2, 0.1]))
    model = OrtSGDRegressor(
        PoissonRegressor(alpha=1e-3), dtype="float64", tol=1e-8, max_iter=5000, random_state=0
    ).fit(X, y)
    expected = PoissonRegressor(
        alpha=1e-3, max_iter=10_000, tol=1e-9, solver="newton-cholesky"
    ).fit(X, y)
    np.testing.assert_allclose(
        model.coef_ * X.std(axis=0), expected.coef_ * X.std(axis=0), atol=1e-3
    )
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-3)
    used = model.standardization_
    np.testing.assert_array_equal(used.target_mean, [0])
    np.testing.assert_allclose(used.target_scale, y.mean())


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("inner", [LogisticRegression(C=0.5), LinearSVC(C=0.01)])
def test_classifiers_on_raw_columns_end_at_the_optimum_of_scikit_learn(inner, n_classes):
    X, y = make_classification(
        N, P, n_informative=3, n_redundant=0, n_classes=n_classes, random_state=0
    )
    # The penalty of liblinear's intercepts is that of columns that are not centred.
    X = X * [0.3, 1, 5, 20] + (0 if isinstance(inner, LinearSVC) else np.array([3, 0, -50, 100]))
    expected = clone(inner).set_params(max_iter=10_000, tol=1e-10).fit(X, y)
    model = OrtSGDClassifier(inner, dtype="float64", tol=1e-9, max_iter=5000, random_state=0).fit(
        X, y
    )
    np.testing.assert_allclose(
        model.decision_function(X),
        expected.decision_function(X),
        atol=5e-3 * expected.decision_function(X).std(),
    )


def test_what_callbacks_see_is_in_the_units_of_the_data(data):
    X, y, _ = data
    seen = {}

    class Watch:
        def on_train_begin(self, training):
            seen["first"] = training.weights()

        def on_epoch_end(self, training):
            seen["last"], seen["objective"] = training.weights(), training.objective

    scoring = EpochScoring(X, y, name="r2")
    model = OrtSGDRegressor(
        Ridge(), max_iter=30, tol=None, callbacks=[Watch(), scoring], random_state=0
    ).fit(X, y)
    for name, weight in model.weights_.items():
        if name in seen["last"]:
            np.testing.assert_array_equal(seen["last"][name], weight)
    assert model.history_["r2"][-1] == pytest.approx(model.score(X, y), abs=1e-6)
    np.testing.assert_array_equal(seen["first"]["coef"], 0)
    np.testing.assert_allclose(model.loss_, np.mean((model.predict(X) - y) ** 2) / 2, rtol=0.05)


def test_the_deployed_model_takes_the_rows_as_they_are(data, run_onnx):
    X, y, _ = data
    model = OrtSGDRegressor(MLPRegressor(**NETWORK), max_iter=50, tol=None, random_state=0).fit(
        X, y
    )
    (predicted,) = run_onnx(model.onnx_, X=X.astype(np.float32)).values()
    np.testing.assert_allclose(predicted.ravel(), model.predict(X.astype(np.float32)), rtol=1e-6)
    network = model.to_sklearn()
    np.testing.assert_allclose(network.predict(X.astype(np.float32)), model.predict(X), rtol=1e-3)


@pytest.mark.parametrize(
    "inner",
    [LinearRegression(), MLPRegressor(**NETWORK, random_state=0)],
    ids=["linear", "network"],
)
def test_a_warm_start_goes_on_from_the_weights_of_the_model(inner, data):
    X, y, _ = data
    options = {
        "max_iter": 20,
        "tol": None,
        "random_state": 0,
        "dtype": "float64",
        "warm_start": True,
    }
    model = OrtSGDRegressor(inner, **options).fit(X, y)
    before = model.predict(X)
    model.set_params(eta0=1e-300, max_iter=1).fit(X + 0, y)
    np.testing.assert_allclose(model.predict(X), before, rtol=1e-9)
    # Another standardization, of other rows.
    model.fit(X[:50], y[:50])
    np.testing.assert_allclose(model.predict(X), before, rtol=1e-9)


def test_a_stream_keeps_its_first_statistics_while_they_are_about_right(data):
    X, y, _ = data
    model = OrtSGDRegressor(random_state=0)
    model.partial_fit(X[:50], y[:50])
    first = model.standardization_
    model.partial_fit(X[50:] * [2, 2, 2, 1], y[50:])
    assert model.standardization_ is first
    np.testing.assert_allclose(first.target_mean, y[:50].mean(), rtol=1e-6)


def problem_of(rng):
    X = rng.normal(size=(50, 3))
    return X, X.sum(axis=1)


def test_a_stream_that_begins_with_one_row_learns(rng):
    model = OrtSGDRegressor(LinearRegression(), random_state=0, dtype="float64", average=True)
    for i in range(400):
        X = rng.normal(size=(1 if i == 0 else 10, 2)) * [1, 1e5] + [100, -3e5]
        model.partial_fit(X, X @ [100, 1e-3])
    X = rng.normal(size=(100, 2)) * [1, 1e5] + [100, -3e5]
    assert model.score(X, X @ [100, 1e-3]) > 0.999
    assert (model.standardization_.scale != 1).all()


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_network_whose_stream_begins_with_one_row_learns(optimizer, rng):
    X = rng.normal(size=(300, 5)) * [1, 10, 1e3, 0.01, 1] + [0, 5, 1e4, 0, 1]
    y = 1e4 * np.sin(X[:, 0])
    network = MLPRegressor(hidden_layer_sizes=(20,))
    model = OrtSGDRegressor(
        network, optimizer=optimizer, eta0="auto", batch_size=32, random_state=0
    )
    model.partial_fit(X[:1], y[:1])
    for _ in range(150):
        model.partial_fit(X, y)
    assert model.score(X, y) > 0.8


@pytest.mark.filterwarnings("ignore:partial_fit. column 2 of X is")
def test_the_rate_of_adam_does_not_fall_with_the_norm_of_rows(rng):
    X = rng.normal(size=(50, 3))
    model = OrtSGDRegressor(optimizer="adam", eta0="auto").partial_fit(X, X[:, 0])
    model.partial_fit(1000 * X, X[:, 0])
    assert model.history_["eta"][1] == model.history_["eta"][0] > 0


def test_a_stream_that_begins_with_zeros_of_y_says_so(rng):
    X = rng.normal(size=(300, 3))
    y = 1e6 * (X @ [1, 2, 3])
    model = OrtSGDRegressor(loss="absolute_error", eta0="auto", random_state=0).partial_fit(
        X, np.zeros(300)
    )
    with pytest.warns(
        UserWarning, match="partial_fit: y is .* standard deviations away from the rows"
    ):
        model.partial_fit(X, y)


@pytest.mark.filterwarnings("ignore:partial_fit. column 0 of X is")
def test_a_stream_whose_rows_move_far_away_does_not_diverge(rng):
    X = rng.normal(size=(300, 5))
    y = X @ [1, 2, 3, 4, 5]
    model = OrtSGDRegressor(eta0="auto", learning_rate="constant", random_state=0).partial_fit(X, y)
    losses = [model.partial_fit(X + 1000, y).loss_ for _ in range(100)]
    assert losses[-1] < losses[1] < losses[0]


def test_sparse_rows_go_on_where_a_stream_began_with_arrays(rng):
    X = np.column_stack(
        [rng.normal(size=(50, 3)) * [1, 10, 1e3] + [0, 5, 1e4], np.ones(50)]
    ).astype(np.float32)
    y = X[:, 0]
    dense, sparse = (
        OrtSGDRegressor(eta0="auto", random_state=0).partial_fit(X, y) for _ in range(2)
    )
    X[:, 3] = y
    dense.partial_fit(X, y)
    sparse.partial_fit(scipy.sparse.csr_matrix(X), y)
    assert sparse.history_["eta"] == dense.history_["eta"]
    np.testing.assert_array_equal(sparse.coef_, dense.coef_)


def test_an_output_without_spread_says_nothing_about_the_scale_of_y(rng):
    X = rng.normal(size=(100, 3))
    y = np.column_stack([X @ [1, 2, 3] * 1e-6, np.full(100, 7.0)])
    used = OrtSGDRegressor(eta0=0.1, tol=None, max_iter=1).fit(X, y).standardization_
    np.testing.assert_allclose(used.target_scale, y[:, 0].std() / 2**0.5, rtol=1e-5)


def test_a_stream_takes_no_loss_that_its_y_does_not_suit(data):
    X, y, _ = data
    model = OrtSGDRegressor(random_state=0).partial_fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="does not suit the standardized y of earlier calls"):
        model.set_params(loss="poisson").partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)


def test_x_that_cannot_be_standardized_is_refused_or_left_as_it_is(data):
    X, y, _ = data
    options = {"trainable": "*s1", "max_iter": 5, "tol": None}
    with pytest.raises(
        ValueError,
        match="standardize=True needs a model that first multiplies X by trained weights",
    ):
        OrtSGDClassifier(MLPClassifier(**NETWORK), **options, standardize=True).fit(X, y > 5000)
    classifier = OrtSGDClassifier(MLPClassifier(**NETWORK), **options)
    assert classifier.fit(X, y > 5000).standardization_ is None
    assert (
        OrtSGDRegressor(standardize=False, max_iter=5, tol=None).fit(X, y).standardization_ is None
    )


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_a_sparse_x_is_divided_by_one_number(unit, solver):
    X = unit * scipy.sparse.random(300, 257, 0.2, format="csr", random_state=0)
    y = X @ np.linspace(-1, 1, 257) / unit
    options = {
        "eta0": 0.3,
        "learning_rate": "constant",
        "max_iter": 20,
        "tol": None,
        "batch_size": 300,
    }
    model = OrtSGDRegressor(Ridge(alpha=0.0), solver=solver, **options).fit(X, y)
    norm = np.sqrt(np.linalg.eigvalsh((X.T @ X).toarray() / 300)[-1])
    np.testing.assert_allclose(model.standardization_.scale, norm, rtol=1e-3)
    norm = model.standardization_.scale[0]
    np.testing.assert_array_equal(model.standardization_.mean, 0)
    plain = OrtSGDRegressor(Ridge(alpha=0.0), solver=solver, standardize=False, **options)
    expected = plain.fit(X / norm, (y - y.mean()) / y.std())
    np.testing.assert_allclose(
        model.predict(X), expected.predict(X / norm) * y.std() + y.mean(), rtol=1e-3, atol=1e-4
    )
    np.testing.assert_allclose(
        model.coef_, expected.coef_ / norm * y.std(), rtol=1e-3, atol=1e-4 / unit
    )


def test_the_default_penalty_does_not_depend_on_units(data):
    X, y, _ = data
    options = {"dtype": "float64", "random_state": 0, "alpha": 0.3}
    model = OrtSGDRegressor(**options).fit(X, y)
    other = OrtSGDRegressor(**options).fit(X * 1e-3, y * 100)
    np.testing.assert_allclose(other.predict(X * 1e-3), model.predict(X) * 100, rtol=1e-6)
    np.testing.assert_allclose(other.loss_, model.loss_ * 1e4, rtol=1e-6)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    ridge = Ridge(alpha=0.3 * N).fit(Z, y)
    np.testing.assert_allclose(model.coef_ * X.std(axis=0), ridge.coef_, atol=0.02 * y.std())


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "inner",
    [LinearRegression(), MLPRegressor(**NETWORK, random_state=0)],
    ids=["linear", "network"],
)
def test_models_that_skl2onnx_writes_are_standardized(inner, data):
    """It puts a cast in front of the first product, and a reshape behind the last."""
    X, y, _ = data
    X = ((X - SHIFTS) / SCALES + 2).astype(np.float32)
    y = (y - y.mean()) / y.std()
    fitted = inner.fit(X[:40], y[:40])
    onnx_model = to_onnx(fitted, X[:1], target_opset=17, black_op={"LinearRegressor"})
    # A fitted network of few rows has a small rate by default.
    options = {} if isinstance(inner, LinearRegression) else {"eta0": 0.01}
    model = OrtSGDRegressor(onnx_model, random_state=0, **options).fit(X, y)
    assert model.standardization_.scale is not None
    assert model.standardization_.target_mean is not None
    assert model.score(X, y) > 0.9


def test_models_that_keras_writes_are_standardized():
    """It puts casts between all operators. On raw rows, this network ended as a constant."""
    rng = np.random.default_rng(0)
    W, V = (rng.uniform(-0.5, 0.5, size).astype(np.float32) for size in ((10, 20), (20, 1)))
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    keras (float[batch, 10] X) => (float[batch, 1] y) <float[20] b = {}, float[1] c = {0}> {
        X1 = Cast <to = 1> (X)
        X2 = Cast <to = 1> (X1)
        product = MatMul (X2, W)
        product1 = Cast <to = 1> (product)
        sum = Add (product1, b)
        sum1 = Cast <to = 1> (sum)
        hidden = Relu (sum1)
        hidden1 = Cast <to = 1> (hidden)
        last = MatMul (hidden1, V)
        last1 = Cast <to = 1> (last)
        y = Add (last1, c)
    }"""
    model = onnx.parser.parse_model(text.replace("{}", "{" + ", ".join(["0"] * 20) + "}"))
    model.graph.initializer.extend(
        [numpy_helper.from_array(W, "W"), numpy_helper.from_array(V, "V")]
    )
    X, y = load_diabetes(return_X_y=True)
    fitted = OrtSGDRegressor(model, random_state=0).fit(X, y)
    assert fitted.standardization_.scale is not None
    assert fitted.standardization_.target_mean == pytest.approx(y.mean())
    assert fitted.score(X, y) > 0.5


def test_the_step_says_how_its_weights_are_folded(data):
    X, y, _ = data
    X = (X - SHIFTS) / SCALES + 2
    model = OrtSGDRegressor(Ridge(), solver="graph", max_iter=20, tol=None, random_state=0).fit(
        X, y
    )
    step, start = (model.training_graphs()[name] for name in ("step", "start"))
    constants = {
        i.name.removesuffix("_value"): numpy_helper.to_array(i) for i in start.graph.initializer
    }
    assert "W = V / scale and c - mean W" in step.doc_string
    weights = constants["skort_weights"]
    V, c, used = weights[:P, None], weights[P:], model.standardization_
    W = V / used.scale[:, None]
    np.testing.assert_allclose(W.ravel() * used.target_scale, model.coef_, rtol=1e-5)
    intercept = (c - used.mean @ W) * used.target_scale + used.target_mean
    np.testing.assert_allclose(intercept.ravel(), model.intercept_, rtol=1e-5)


@pytest.mark.parametrize("constant", [3.0, 7.3, 1e3])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_constant_column_gets_no_weight(constant, optimizer, rng):
    X = rng.normal(size=(500, 3))
    X[:, 0] = constant
    y = X @ [0, 2.0, 1] + 3 + 0.1 * rng.normal(size=500)
    model = OrtSGDRegressor(LinearRegression(), optimizer=optimizer, random_state=0).fit(X, y)
    assert model.coef_[0] == 0
    np.testing.assert_allclose(model.coef_[1:], [2, 1], atol=0.02)


@pytest.mark.parametrize(
    "column",
    [
        lambda values: 1.7e9 + 20 * values,
        lambda values: 2**60 + np.round(1e4 * values).astype(np.int64),
        lambda values: np.uint64(2**63 + 12345) + np.round(1e4 * values + 1e6).astype(np.uint64),
    ],
    ids=["seconds", "int64", "uint64"],
)
def test_columns_keep_the_digits_of_their_own_type(column, rng):
    values = rng.normal(size=400)
    X, message = (
        column(values)[:, None],
        "The mean of column 0 of X is more than 16,384 standard deviations from zero",
    )
    with pytest.warns(UserWarning, match=message):
        model = OrtSGDRegressor(random_state=0).fit(X, 3 * values + 1)
    assert model.score(X, 3 * values + 1) > 0.9999
    # In another container, too.
    with pytest.warns(UserWarning, match=message):
        more = OrtSGDRegressor(random_state=0).fit_batches([(X, 3 * values + 1)])
    assert more.score(X, 3 * values + 1) > 0.9999
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        more.partial_fit(X, 3 * values + 1)


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_y_may_have_any_units_whose_square_float64_holds(unit, rng):
    X = rng.normal(size=(200, 3))
    y = X @ [1, 2, 3.0] + 1
    model = OrtSGDRegressor(dtype="float64", random_state=0).fit(X, y * unit)
    np.testing.assert_allclose(model.coef_ / unit, [1, 2, 3], rtol=1e-2)
    with pytest.raises(ValueError, match=r"The standard deviation of y is .*e\+200, whose square"):
        OrtSGDRegressor(dtype="float64").fit(X, y * 1e200)


@pytest.mark.parametrize(
    "inner", [None, Ridge(1.0), MLPRegressor(hidden_layer_sizes=(8,))], ids=str
)
@pytest.mark.parametrize("begin", [1e9, 2**60], ids=["float64", "int64"])
def test_y_keeps_the_digits_of_its_own_type(inner, begin, rng):
    X = rng.normal(size=(400, 3))
    scale = 1 if begin == 1e9 else 1e5
    y = begin + np.round(X @ [1, 2, 3] * scale, 3).astype(type(begin))
    model = OrtSGDRegressor(inner, random_state=0, max_iter=150, tol=None)
    with pytest.warns(
        UserWarning, match='The mean of y is more than .* Use dtype="float64" for the file'
    ):
        model.fit(X, y)
    predicted = (model.predict(X) - begin) / scale
    assert np.corrcoef(predicted, X @ [1, 2, 3])[0, 1] > 0.99
    np.testing.assert_allclose(
        predicted.mean(), (X @ [1, 2, 3]).mean(), atol=0.1 if begin == 1e9 else 0.5
    )
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    expected = model.to_sklearn().predict(X)
    np.testing.assert_allclose(expected, model.predict(X), rtol=1e-9)
    before = model.predict(X)
    model.set_params(eta0=1e-12).partial_fit(X, y)
    np.testing.assert_allclose((model.predict(X) - before) / scale, 0, atol=1e-3)


def test_the_file_and_the_attributes_of_a_y_far_from_zero_have_its_mean(rng, run_onnx):
    X = rng.normal(size=(400, 2)).astype(np.float32)
    with pytest.warns(UserWarning, match="The mean of y"):
        model = OrtSGDRegressor(LinearRegression(), random_state=0).fit(X, X @ [1, 2] + 1e8)
    assert model.intercept_[0] == pytest.approx(1e8, abs=0.1)
    assert model.intercept_.dtype == np.float64
    np.testing.assert_allclose(model.coef_, [1, 2], rtol=1e-2)
    (predicted,) = run_onnx(model.onnx_, X=X).values()
    np.testing.assert_allclose(predicted.ravel(), model.predict(X), atol=8)
    model.set_params(warm_start=True, max_iter=2, tol=None)
    with pytest.warns(UserWarning, match="The mean of y"):
        model.fit(X, X @ [1, 2] + 1e8)
    assert model.intercept_[0] == pytest.approx(1e8, abs=10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_intercept_of_columns_far_from_zero_keeps_its_digits(dtype, rng):
    X = rng.normal(size=(300, 2)) + 1e8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = OrtSGDRegressor(LinearRegression(), dtype=dtype, random_state=0).fit(
            X, (X - 1e8) @ [1, 2]
        )
    np.testing.assert_allclose(
        X @ model.coef_.astype(np.float64) + model.intercept_, model.predict(X), atol=1e-4
    )


@pytest.mark.filterwarnings("ignore:The means? of")
@pytest.mark.parametrize(
    "inner",
    [LinearRegression(), MLPRegressor(**NETWORK, random_state=0)],
    ids=["linear", "network"],
)
def test_a_warm_start_far_from_zero_goes_on_from_the_weights_of_the_model(inner, rng):
    X = rng.normal(size=(300, 2)) + 1e8
    y = (X - 1e8) @ [1, 2] + 1e9
    model = OrtSGDRegressor(inner, max_iter=20, tol=None, random_state=0, warm_start=True).fit(X, y)
    before = model.predict(X)
    model.set_params(eta0=1e-30, max_iter=1).fit(X + 0, y)
    np.testing.assert_allclose(model.predict(X), before, rtol=0, atol=1e-4)


@pytest.mark.filterwarnings("ignore:The means? of", "ignore:Maximum number")
@pytest.mark.parametrize(
    "inner",
    [LinearRegression(), MLPRegressor(**NETWORK, random_state=0)],
    ids=["linear", "network"],
)
@pytest.mark.parametrize(
    "frozen", [(), ("intercept", "intercepts", "intercepts1")], ids=["all", "no intercept"]
)
def test_the_file_of_a_model_far_from_zero_is_trained_again(inner, frozen, rng, run_onnx):
    X = (rng.normal(size=(300, 2)) + 2e3).astype(np.float32)
    options = {"optimizer": "sgd", "max_iter": 100, "tol": None, "random_state": 0}
    y = (X - 2e3) @ [1, 2] + 1e4
    first = OrtSGDRegressor(inner, **options).fit(X, y)
    trained = [
        name for name in first.weights_ if not name.endswith("_offset") and name not in frozen
    ]
    again = OrtSGDRegressor(first.onnx_, trainable=trained, **options).fit(X, y)
    assert again.score(X, y) > 0.99
    for model in (again.onnx_, again.to_onnx(original=True)):
        (predicted,) = run_onnx(model, X=X).values()
        np.testing.assert_allclose(predicted.ravel(), again.predict(X), rtol=0, atol=1e-2)
    if not frozen:
        X, y = X + np.float32(1), y + 5
        further = OrtSGDRegressor(first.onnx_, **options).fit(X, y)
        assert further.score(X, y) > 0.98
        np.testing.assert_allclose(further.weights_["X_offset"], X.mean(axis=0), rtol=1e-6)
        np.testing.assert_allclose(further.weights_["y_offset"], y.mean(), rtol=1e-6)


@pytest.mark.parametrize("name", ["X_offset", "y_offset"])
def test_a_weight_that_has_the_name_of_a_mean_is_refused(name):
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]>
        line (float[N, 2] X) => (float[N, 1] score) <float[2, 1] coef = {{1, 2}},
        float[1] {name} = {{3}}>
        {{ product = MatMul(X, coef)  score = Mul(product, {name}) }}""")
    with pytest.raises(ValueError, match=f"'{name}' is the name of a mean.*Rename it"):
        OrtSGDRegressor(model).fit([[1.0, 2], [2, 1]], [1.0, 2])


@pytest.mark.parametrize("begin", [0.0, 5e3])
def test_a_first_layer_is_trained_alone_before_an_offset_of_the_score(begin, rng):
    X = rng.normal(size=(300, 2))
    y = X @ [1, 2]
    options = {
        "optimizer": "sgd",
        "learning_rate": "constant",
        "max_iter": 20,
        "tol": None,
        "random_state": 0,
    }
    first = OrtSGDRegressor(MLPRegressor(**NETWORK), **options).fit(X, y + begin)
    trained = ["coefficient", "intercepts"]
    again = OrtSGDRegressor(
        first.onnx_, trainable=trained, max_iter=100, tol=None, random_state=0
    ).fit(X, y + begin)
    assert again.score(X, y + begin) > 0.99


def test_a_stream_far_from_zero_goes_on_with_a_custom_loss(rng):
    X = rng.normal(size=(300, 2))
    y = X @ [1, 2] + 8192
    ours, theirs = (
        OrtSGDRegressor(random_state=0, dtype="float64").partial_fit(X, y) for _ in range(2)
    )
    assert "y_offset" in ours.weights_
    ours.set_params(loss=objective.Loss(SQUARE), eta0=0.05).partial_fit(X, y)
    theirs.set_params(eta0=0.05).partial_fit(X, y)
    # Residuals of 0.1 have the digits that 8192 leaves to the own loss.
    np.testing.assert_allclose(ours.predict(X) - 8192, theirs.predict(X) - 8192, rtol=0, atol=5e-5)


def test_a_warm_start_with_another_loss_trains_with_the_offset_of_the_score(rng):
    X = rng.normal(size=(300, 2))
    y = 2 + 1e-4 * (X @ [1, 2])
    model = OrtSGDRegressor(random_state=0, dtype="float64", warm_start=True).fit(X, y)
    assert "y_offset" in model.weights_
    model.set_params(loss="poisson", max_iter=300, tol=None, learning_rate="constant").fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-4)
