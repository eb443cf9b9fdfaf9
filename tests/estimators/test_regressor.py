"""OrtSGDRegressor against closed forms and scikit-learn."""

import numpy as np
import onnx
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDRegressor
from skort.solvers import available_solvers


def problem(n_outputs=None, n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    shape = (4,) if n_outputs is None else (4, n_outputs)
    return X, X @ rng.normal(size=shape) + 3 + 0.1 * rng.normal(size=(n, *shape[1:]))


@pytest.mark.parametrize("seed", range(3))
def test_all_defaults_learn_diabetes(solver, seed):
    X, y = load_diabetes(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
    models = [
        make_pipeline(StandardScaler(), model).fit(X_train, y_train)
        for model in (OrtSGDRegressor(solver=solver, random_state=seed), LinearRegression())
    ]
    ours, theirs = (model.score(X_test, y_test) for model in models)
    assert ours >= theirs - 0.02


@pytest.mark.parametrize("learning_rate", ["constant", "invscaling"])
def test_full_batches_follow_gradient_descent_in_numpy(solver, learning_rate):
    X, y = problem()
    alpha, eta0, power_t = 0.1, 0.2, 0.5
    options = {
        "learning_rate": learning_rate,
        "eta0": eta0,
        "power_t": power_t,
        "standardize": False,
    }
    model = OrtSGDRegressor(solver=solver, alpha=alpha, tol=None, max_iter=30, **options).fit(X, y)
    w, b = np.zeros(4), 0.0
    losses = []
    for t in range(1, 31):
        residual = X @ w + b - y
        losses.append(0.5 * (residual**2).mean() + alpha / 2 * w @ w)
        eta = eta0 if learning_rate == "constant" else eta0 / t**power_t
        w, b = w - eta * (X.T @ residual / len(y) + alpha * w), b - eta * residual.mean()
    np.testing.assert_allclose(model.coef_, w, rtol=1e-4)
    np.testing.assert_allclose(model.intercept_, [b], rtol=1e-4)
    np.testing.assert_allclose(model.loss_curve_, losses, rtol=1e-4)
    assert (model.n_iter_, model.t_) == (30, 30)
    assert (model.loss_, model.best_loss_) == (model.loss_curve_[-1], min(model.loss_curve_))


def test_mini_batches_follow_gradient_descent_in_numpy(solver):
    X, y = problem(n=25)
    options = {
        "penalty": None,
        "eta0": 0.1,
        "batch_size": 10,
        "shuffle": False,
        "standardize": False,
    }
    model = OrtSGDRegressor(solver=solver, tol=None, max_iter=3, **options).fit(X, y)
    w, b = np.zeros(4), 0.0
    for _ in range(3):
        for rows in (slice(0, 10), slice(10, 20), slice(20, 25)):
            residual = X[rows] @ w + b - y[rows]
            # m of 10 rows make a step of m / 10 of the rate.
            w, b = w - 0.1 * X[rows].T @ residual / 10, b - 0.1 * residual.sum() / 10
    np.testing.assert_allclose(model.coef_, w, rtol=1e-5)
    np.testing.assert_allclose(model.intercept_, [b], rtol=1e-5)
    assert (model.n_iter_, model.t_) == (3, 9)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("n_outputs", [None, 1, 3])
def test_the_limit_is_ridge_regression(n_outputs, standardize):
    X, y = problem(n_outputs)
    alpha = 0.05
    options = {"dtype": "float64", "eta0": 0.3, "tol": None, "max_iter": 1000, "random_state": 0}
    model = OrtSGDRegressor(penalty="l2", alpha=alpha, standardize=standardize, **options).fit(X, y)
    # J is a mean over rows and outputs, scikit-learn's objective twice its sum over them.
    ridge = Ridge(alpha=alpha * len(X) * (n_outputs or 1)).fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_.reshape(model.coef_.shape), rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, np.atleast_1d(ridge.intercept_), rtol=1e-6)
    assert model.coef_.shape == LinearRegression().fit(X, y).coef_.shape
    np.testing.assert_allclose(model.predict(X), ridge.predict(X).reshape(y.shape), rtol=1e-6)
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize(
    "units, of_y", [([1, 1e30, 1, 1], 1e-20), ([1e-38, 1, 1, 1], 1.0), ([1, 1e-46, 1, 1], 1e9)]
)
def test_a_model_whose_weights_float32_cannot_hold_is_one_of_float64(units, of_y):
    X, y = problem()
    model = OrtSGDRegressor(max_iter=2, tol=None, random_state=0)
    same = clone(model).set_params(dtype="float64").fit(X, y)
    with np.errstate(under="raise", over="raise"):
        model.fit(X * units, of_y * y)
    np.testing.assert_allclose(model.coef_, same.coef_ * of_y / units, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X * units), of_y * same.predict(X), rtol=1e-9)
    assert (model.dtype, model.weights_["coef"].dtype) == ("float32", np.float64)
    assert model.onnx_.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE


def test_a_stream_whose_weights_float32_cannot_hold_goes_on_in_float64():
    X, y = problem()
    tiny, same = (OrtSGDRegressor(dtype=dtype, random_state=0) for dtype in ("float32", "float64"))
    for part in (slice(0, 37), slice(37, None)):
        tiny.partial_fit(X[part] * 1e-46, y[part])
        same.partial_fit(X[part], y[part])
        tiny.set_params(verbose=0, n_iter_no_change=7)  # The parameters are read anew.
    np.testing.assert_allclose(tiny.coef_ * 1e-46, same.coef_, rtol=1e-9)


def test_what_no_dtype_holds_is_named():
    X, y = problem()
    with pytest.raises(
        ValueError, match=r"float64 cannot hold X, column 2, in the units of the data: .*e-305"
    ):
        OrtSGDRegressor(random_state=0).fit(X * [1, 1, 1e-305, 1], y)
    with pytest.raises(
        ValueError,
        match=r"The standard deviation of y is .*e-200, whose square float64 cannot hold",
    ):
        OrtSGDRegressor(random_state=0).fit(X, y * 1e-200)
    with pytest.raises(
        ValueError,
        match=r"The standard deviation of a column of X is .*e-310, whose inverse float64",
    ):
        OrtSGDRegressor(random_state=0).fit(X * [1, 1, 1e-310, 1], y)
    with pytest.raises(
        ValueError,
        match=r'X: the values of column 1 are too small for float32. .* use dtype="float64"',
    ):
        OrtSGDRegressor(random_state=0).fit(scipy.sparse.csr_matrix(X * [1, 1e-60, 1, 1]), y)


@pytest.mark.skipif(
    "session" not in available_solvers(), reason="this runtime has no TrainingSession"
)
def test_a_solver_without_float64_names_the_column():
    X, y = problem()
    with pytest.raises(
        ValueError, match=r'float32 cannot hold X, column 0, .* or use dtype="float64"'
    ):
        OrtSGDRegressor(solver="session", random_state=0).fit(X * 1e-46, y)


@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant prediction")
def test_without_intercept(solver):
    X, y = problem()
    model = OrtSGDRegressor(
        LinearRegression(fit_intercept=False),
        solver=solver,
        penalty=None,
        tol=0.0,
        eta0=0.3,
        random_state=0,
    )
    model.fit(X, y)
    np.testing.assert_allclose(
        model.coef_, LinearRegression(fit_intercept=False).fit(X, y).coef_, rtol=1e-3
    )
    np.testing.assert_array_equal(model.intercept_, [0])
    assert list(model.weights_) == ["coef"]


@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
def test_predict_is_the_neural_network_of_the_weights(solver, activation, rng):
    X, y = problem(2)
    inner = MLPRegressor(hidden_layer_sizes=(5, 3), activation=activation)
    model = OrtSGDRegressor(inner, solver=solver, max_iter=5, tol=None, random_state=0).fit(X, y)
    act = {
        "identity": lambda z: z,
        "logistic": lambda z: 1 / (1 + np.exp(-z)),
        "tanh": np.tanh,
    }.get(activation, lambda z: np.maximum(z, 0))
    w = model.weights_
    hidden = act(X @ w["coefficient"] + w["intercepts"])
    hidden = act(hidden @ w["coefficient1"] + w["intercepts1"])
    np.testing.assert_allclose(
        model.predict(X), hidden @ w["coefficient2"] + w["intercepts2"], rtol=1e-4, atol=1e-5
    )
    assert not hasattr(model, "coef_")


def test_a_refit_forgets_the_linear_model():
    X, y = problem()
    model = OrtSGDRegressor(max_iter=2, tol=None).fit(X, y)
    assert model.coef_.shape == (4,)
    model.set_params(estimator=MLPRegressor(hidden_layer_sizes=(3,))).fit(X, y)
    assert not hasattr(model, "coef_")
    assert model.n_iter_ == 2


@pytest.mark.parametrize(
    "bad, message",
    [
        (np.inf, "Input y contains infinity"),
        ("text", "y has 'text' in row 0: a regressor takes numbers"),
    ],
)
def test_targets_that_are_no_finite_numbers_are_refused(bad, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        OrtSGDRegressor().fit(X, np.array([bad, *y[1:]], dtype=object))


def test_targets_beyond_float32_are_named():
    X, y = problem()
    with pytest.raises(ValueError, match="y contains values too large for dtype='float32'"):
        OrtSGDRegressor().fit(X, y * 1e300)


def test_values_whose_squares_overflow_are_trained_in_float64(rng):
    X = rng.normal(size=(100, 2))
    y = X @ [1.0, 2.0]
    model = OrtSGDRegressor(dtype="float64", random_state=0).fit(X * [1e200, 1.0], y)
    np.testing.assert_allclose(model.coef_ * [1e200, 1.0], [1, 2], rtol=1e-3)


@pytest.mark.parametrize("n_outputs", [None, 1, 3])
@pytest.mark.parametrize("n", [2, 37, 1000])
def test_the_score_is_that_of_scikit_learn_to_the_bit(n, n_outputs):
    X, y = problem(n_outputs)
    model = OrtSGDRegressor(max_iter=2, tol=None, random_state=0).fit(X, y)
    rows, target = problem(n_outputs, n, seed=1)
    constant = target.copy()
    constant.reshape(n, -1)[:, 0] = 1.0
    for of_rows in (
        target,
        target.round().astype(int),
        target.astype(np.float32),
        target.tolist(),
        constant,
    ):
        assert model.score(rows, of_rows) == r2_score(of_rows, model.predict(rows))
    weight = np.arange(1.0, n + 1)
    assert model.score(rows, target, weight) == r2_score(
        target, model.predict(rows), sample_weight=weight
    )


def test_a_score_that_is_none_is_refused_as_in_scikit_learn():
    X, y = problem()
    model = OrtSGDRegressor(max_iter=2, tol=None, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.score(X, np.where(np.arange(len(y)) == 0, np.nan, y))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, y[1:])
