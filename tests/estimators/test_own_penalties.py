"""Penalties of one's own in estimators, against closed forms and scikit-learn's optima."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor, Step
from skort.callbacks import Checkpoint
from skort.objective import ElasticPenalty, Penalty

PULL = """\
pull (weight, start) => (penalty) {
    half = Constant <value = float {0.5}> ()
    distance = Sub (weight, start)
    square = Mul (distance, distance)
    sum = ReduceSum <keepdims = 0> (square)
    penalty = Mul (half, sum)
}"""
# The norm of each row, the weights of one feature.
GROUPS = """\
groups (weight) => (penalty) {
    little = Constant <value = float {0.01}> ()
    columns = Constant <value = int64[1] {1}> ()
    square = Mul (weight, weight)
    sums = ReduceSum <keepdims = 0> (square, columns)
    positive = Add (sums, little)
    norms = Sqrt (positive)
    penalty = ReduceSum <keepdims = 0> (norms)
}"""
OPTIONS = {"dtype": "float64", "learning_rate": "constant", "tol": None, "random_state": 0}


def pulled(X, y, start, alpha):
    """
    Return the coefficients and the intercept that minimise squared error and pull;
    `start` is a coefficient.
    """
    centred, n = X - X.mean(axis=0), len(y)
    hessian = centred.T @ centred / n + alpha * np.eye(X.shape[1])
    coef = start + np.linalg.solve(hessian, centred.T @ (y - y.mean() - centred @ start) / n)
    return coef, y.mean() - X.mean(axis=0) @ coef


@pytest.mark.parametrize("standardize", ["auto", False])
def test_a_pull_towards_fitted_weights_ends_at_its_optimum(standardize, rng):
    X, X_new = rng.normal(size=(40, 3)), rng.normal(size=(30, 3)) * [1, 2, 4] + 1
    fitted = LinearRegression().fit(X, X @ [1.0, 2.0, 3.0])
    y_new = X_new @ [0.0, 2.0, 5.0] + 4
    model = OrtSGDRegressor(FrozenEstimator(fitted), penalty=Penalty(PULL, alpha=0.5), **OPTIONS)
    model.set_params(
        standardize=standardize, eta0=0.3 if standardize else 0.05, batch_size=30, max_iter=2000
    ).fit(X_new, y_new)
    coef, intercept = pulled(X_new, y_new, fitted.coef_, 0.5)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-6)
    # coef_init is a start, too.
    start = np.array([5.0, 5.0, 5.0])
    model.fit(X_new, y_new, coef_init=start)
    np.testing.assert_allclose(model.coef_, pulled(X_new, y_new, start, 0.5)[0], rtol=1e-6)


def test_a_stream_is_pulled_towards_where_it_began(rng):
    X = rng.normal(size=(30, 2))
    y, fitted = X @ [3.0, 0.0], LinearRegression().fit(X, X @ [1.0, 2.0])
    options = OPTIONS | {"standardize": False, "eta0": 0.1, "batch_size": 30, "shuffle": False}
    model = OrtSGDRegressor(FrozenEstimator(fitted), penalty=Penalty(PULL, alpha=0.5), **options)
    for _ in range(600):
        model.partial_fit(X, y)
    np.testing.assert_allclose(model.coef_, pulled(X, y, fitted.coef_, 0.5)[0], rtol=1e-6)
    again = pickle.loads(pickle.dumps(model)).set_params(penalty=Penalty(PULL, alpha=2.0))
    for _ in range(600):
        again.partial_fit(X, y)
    np.testing.assert_allclose(again.coef_, pulled(X, y, fitted.coef_, 2.0)[0], rtol=1e-6)


def test_a_resumed_training_is_pulled_towards_where_it_began(tmp_path, rng):
    X, path = rng.normal(size=(30, 2)), tmp_path / "training.npz"
    y = X @ [3.0, 0.0]
    network = MLPRegressor(hidden_layer_sizes=(4,))
    model = OrtSGDRegressor(network, penalty=Penalty(PULL, alpha=1.0), **OPTIONS | {"eta0": 0.05})
    whole = clone(model).set_params(max_iter=6).fit(X, y)
    clone(model).set_params(max_iter=3, callbacks=[Checkpoint(path)]).fit(X, y)
    rest = clone(model).set_params(max_iter=6, callbacks=[Checkpoint(resume_from=path)])
    assert clone(rest).fit(X, y).loss_curve_ == whole.loss_curve_
    with pytest.raises(ValueError, match="began at other weights, and the penalty depends on them"):
        clone(rest).set_params(random_state=1).fit(X, y)


def test_a_group_lasso_ends_at_the_optimum_of_its_formula(solver, rng):
    X = rng.normal(size=(100, 4)) * [1, 2, 3, 4] + 10
    Y = X[:, :2] @ np.array([[2.0, 1.0, 1.0], [0.5, -1.0, 1.0]]) + rng.normal(size=(100, 3))
    centred = [array - array.mean(axis=0) for array in (X, Y)]

    def objective(vector):
        coef = vector.reshape(4, 3)
        return (
            np.mean((centred[0] @ coef - centred[1]) ** 2) / 2
            + 0.4 * np.sqrt((coef**2).sum(axis=1) + 0.01).sum()
        )

    exact = minimize(objective, np.zeros(12), options={"gtol": 1e-8}).x.reshape(4, 3)
    options = {
        "solver": solver,
        "penalty": Penalty(GROUPS, alpha=0.4),
        "eta0": 0.1,
        "batch_size": 100,
    }
    options |= OPTIONS | {"max_iter": 3000, "dtype": "float32"}
    model = OrtSGDRegressor(LinearRegression(), **options).fit(X, Y)
    np.testing.assert_allclose(model.coef_.T, exact, atol=1e-3)
    assert model.loss_ == pytest.approx(objective(exact.ravel()), rel=1e-5)
    # It keeps the two features that count, as MultiTaskLasso does.
    assert (
        np.linalg.norm(model.coef_, axis=0)[2:].max()
        < 0.1
        < 0.5
        < np.linalg.norm(model.coef_, axis=0)[:2].min()
    )


def test_penalties_of_intercepts_are_those_of_the_weights_of_the_data(solver, rng):
    X, n = rng.normal(size=(60, 2)) * [1, 3] + 2, 60
    y = X @ [1.0, -1.0] + 5
    squares = PULL.replace("Sub (weight, start)", "Identity (weight)").replace(
        "(weight, start)", "(weight)"
    )
    ones = np.column_stack([X, np.ones(n)])
    options = OPTIONS | {
        "solver": solver,
        "eta0": 0.2,
        "batch_size": n,
        "max_iter": 2000,
        "dtype": "float32",
    }
    for penalty, strengths in (
        (ElasticPenalty(0.5, l1_ratio=0, intercepts=0.25), [0.5, 0.5, 0.25]),
        (
            ElasticPenalty({"coef*": 0.5}, l1_ratio={"*": 0}, intercepts={"intercept": 0.25}),
            [0.5, 0.5, 0.25],
        ),
        (Penalty(squares, weights="coef*", intercepts="intercept", alpha=0.5), [0.5, 0.5, 0.5]),
        (Penalty(squares, weights=[], intercepts="*", alpha=0.5), [0, 0, 0.5]),
    ):
        expected = np.linalg.solve(ones.T @ ones / n + np.diag(strengths), ones.T @ y / n)
        model = OrtSGDRegressor(LinearRegression(), penalty=penalty, **options).fit(X, y)
        np.testing.assert_allclose([*model.coef_, model.intercept_[0]], expected, rtol=1e-4)


def test_a_penalty_without_a_gradient_at_zero_is_named(rng):
    norm = """norm (weight) => (penalty) {
        square = Mul (weight, weight)
        sum = ReduceSum <keepdims = 0> (square)
        penalty = Sqrt (sum)
    }"""
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    # The weights begin at zero, where the gradient of their norm is 0 / 0.
    with pytest.raises(
        ValueError,
        match=r"weights became infinite or NaN .* no number where the weight coef is zero\. It must",
    ):
        OrtSGDRegressor(LinearRegression(), penalty=Penalty(norm), eta0=0.1, **OPTIONS).fit(X, y)


def test_l1_by_weight(rng):
    X = rng.normal(size=(50, 2))
    y = X @ [0.01, 0.01] + 0.001 * rng.normal(size=50)
    penalty = ElasticPenalty(0.1, l1_ratio=[[1.0], [0.0]])
    model = OrtSGDRegressor(
        LinearRegression(), penalty=penalty, eta0=0.3, batch_size=50, max_iter=300, **OPTIONS
    )
    model.fit(X, y)
    assert model.coef_[0] == 0 and model.coef_[1] > 0.005
    with pytest.raises(ValueError, match="penalty: l1_ratio has no entry that matches 'coef'"):
        model.set_params(penalty=ElasticPenalty(0.1, l1_ratio={"other": 1.0})).fit(X, y)
    with pytest.raises(ValueError, match=r"penalty: l1_ratio must be between 0 and 1, got \[2.0\]"):
        model.set_params(penalty=ElasticPenalty(0.1, l1_ratio=[2.0])).fit(X, y)
    with pytest.raises(
        ValueError, match=r"penalty: intercepts names 'coef', but it can name the weights intercept"
    ):
        model.set_params(penalty=ElasticPenalty(0.1, intercepts={"coef": 1.0})).fit(X, y)


def test_a_stream_that_subtracted_means_takes_no_penalty_of_intercepts(rng):
    X, y = rng.normal(size=(50, 2)) + 3, rng.normal(size=50) + 3
    model = OrtSGDRegressor(eta0=0.1).partial_fit(X, y)
    before = model.coef_
    for penalty in (ElasticPenalty(intercepts=0.1), Penalty(GROUPS, weights=[], intercepts="*")):
        with pytest.raises(
            ValueError, match=f"penalty={type(penalty).__name__} covers intercepts, but earlier"
        ):
            model.set_params(penalty=penalty).partial_fit(X, y)
    np.testing.assert_array_equal(model.coef_, before)


def test_strengths_are_searched_and_classifiers_have_penalties_too(rng):
    X = rng.normal(size=(90, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    classifier = OrtSGDClassifier(
        LogisticRegression(), penalty=Penalty(GROUPS), eta0=0.5, tol=1e-3, random_state=0
    )
    search = GridSearchCV(classifier, {"penalty__alpha": [1e-3, 0.5]}, cv=3).fit(X, y)
    assert search.best_params_ == {"penalty__alpha": 1e-3}
    first, *others = np.linalg.norm(search.best_estimator_.coef_, axis=0)
    assert first > 5 * max(others)


def test_explicit_steps_are_pulled_towards_where_they_begin(solver, rng):
    X = rng.normal(size=(30, 2)).astype(np.float32)
    y, fitted = X @ [3.0, 0.0], LinearRegression().fit(X, X @ [1.0, 2.0])
    step = Step(
        FrozenEstimator(fitted), penalty=Penalty(PULL, alpha=0.5), solver=solver, batch_size=30
    )
    for _ in range(300):
        step.step(X, y, 0.1)
    np.testing.assert_allclose(
        step.weights()["coef"].ravel(), pulled(X, y, fitted.coef_, 0.5)[0], rtol=1e-4
    )


def test_sparse_rows_have_the_penalty_too(solver):
    X = scipy.sparse.random(60, 400, 0.05, format="csr", random_state=0, dtype=np.float32)
    y = np.asarray(X.sum(axis=1)).ravel()
    options = {
        "solver": solver,
        "penalty": Penalty(GROUPS, alpha=0.1),
        "standardize": False,
        "random_state": 0,
    }
    options |= {"eta0": 0.1, "tol": None, "max_iter": 4, "batch_size": 20}
    sparse, dense = (
        OrtSGDRegressor(LinearRegression(), **options).fit(rows, y) for rows in (X, X.toarray())
    )
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-5, atol=1e-7)
    # The smoothed norms of 400 weights of zero are part of the objective.
    assert sparse.loss_curve_[0] == pytest.approx(dense.loss_curve_[0], rel=1e-6)
    assert sparse.loss_curve_[0] > 0.1 * 400 * np.sqrt(0.01)
