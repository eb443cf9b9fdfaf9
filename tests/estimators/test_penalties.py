"""
Penalties at any strength and in any batches,
against scikit-learn's optima of the same objective.
"""

import functools
import importlib
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler, scale
from solver_traits import takes

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.objective import L2
from skort.objective.penalties import Strength
from skort.optimizers import Momentum
from skort.solvers import available_solvers

ALPHAS = np.logspace(-4, 4, 9)
SEARCHES = {
    "iris": (OrtSGDClassifier, load_iris, StratifiedKFold(3, shuffle=True, random_state=0), 0.5),
    "diabetes": (OrtSGDRegressor, load_diabetes, KFold(3, shuffle=True, random_state=0), 0.2),
}


def exact(name, n):
    """Return scikit-learn's estimator, and its parameters for the strengths `ALPHAS` of n rows."""
    if name == "iris":
        return LogisticRegression(tol=1e-12, max_iter=10_000), {"C": 1 / (ALPHAS * n)}
    return Ridge(), {"alpha": ALPHAS * n}


@pytest.mark.parametrize(
    "how", ["sgd", *(pytest.param(how, marks=pytest.mark.slow) for how in ("function", "momentum"))]
)
@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_over_strengths_scores_and_ranks_as_scikit_learn(name, how):
    estimator, load, folds, eta = SEARCHES[name]
    # Two of three rows are in a fit, and make as much of a step.
    eta *= 1.5
    options = {
        "sgd": {"eta0": eta},
        "function": {"learning_rate": lambda t: eta},
        "momentum": {"optimizer": "momentum", "eta0": eta / 10},
    }[how]
    X, y = load(return_X_y=True)
    X = scale(X)
    model = estimator(batch_size=len(y), max_iter=250, tol=None, **options)
    reference, parameters = exact(name, len(y) * 2 // 3)
    ours = GridSearchCV(model, {"alpha": ALPHAS}, cv=folds).fit(X, y).cv_results_["mean_test_score"]
    theirs = GridSearchCV(reference, parameters, cv=folds).fit(X, y).cv_results_["mean_test_score"]
    # Three rows of iris are 0.02.
    np.testing.assert_allclose(ours, theirs, atol=0.03)
    assert theirs[np.argmax(ours)] >= theirs.max() - 0.01


@pytest.mark.parametrize("alpha", [9.0, 11.0, 1e4])
def test_a_strong_l2_term_ends_at_the_optimum_of_ridge(solver, alpha):
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X), scale(y)
    options = {
        "alpha": alpha,
        "eta0": 0.1,
        "batch_size": len(y),
        "max_iter": 2000,
        "tol": None,
        "solver": solver,
    }
    model = OrtSGDRegressor(**options).fit(X, y)
    ridge = Ridge(alpha * len(y)).fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-3, atol=1e-6)
    assert model.loss_ == pytest.approx(
        ((y - ridge.predict(X)) ** 2).mean() / 2 + alpha / 2 * (ridge.coef_**2).sum()
    )


def test_each_target_has_a_strength_of_its_own(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = X @ rng.normal(size=(5, 3)) + rng.normal(size=(200, 3))
    alphas = np.array([0.01, 1.0, 50.0])
    options = {"eta0": 0.5, "batch_size": 200, "max_iter": 1000, "tol": None, "solver": solver}
    # Our squared error is the mean over the outputs.
    model = OrtSGDRegressor(penalty=L2(alphas / 3), **options).fit(X, y)
    np.testing.assert_allclose(model.coef_, Ridge(alphas * 200).fit(X, y).coef_, atol=1e-5)


@pytest.mark.skipif(
    "session" not in available_solvers(), reason="this runtime has no TrainingSession"
)
@pytest.mark.parametrize("optimizer, eta0", [("sgd", 0.3), ("adam", 0.02)])
def test_the_session_comes_to_the_same_optimum_with_its_exact_zeros(optimizer, eta0):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 8))
    y = X[:, 0] - 2 * X[:, 1] + 5 + 0.1 * rng.normal(size=60)
    options = {"batch_size": 60, "tol": None, "eta0": eta0, "max_iter": 3000, "alpha": 0.2}
    model = OrtSGDRegressor(solver="session", penalty="l1", optimizer=optimizer, **options).fit(
        X, y
    )
    reference = Lasso(0.2, tol=1e-14).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-5)
    np.testing.assert_array_equal(model.coef_ == 0, reference.coef_ == 0)


@pytest.fixture
def sparsity(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    return importlib.import_module("benchmarks.sparsity")


@functools.cache
def sparse_case(case, is_classifier):
    """
    Return the case with 20,000 rows, and the zeros and the objective
    of scikit-learn's optimum.
    """
    made = case.of(is_classifier=is_classifier)
    return made, made.outcome(made.estimators()["saga" if is_classifier else "Lasso"])


ONE_ROW = pytest.param("batches of 1, one epoch", marks=pytest.mark.slow)


@pytest.mark.filterwarnings(
    "ignore::FutureWarning", f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)
@pytest.mark.parametrize("name", [ONE_ROW, "batches of 32", "batches of 200", "batches of 2000"])
@pytest.mark.parametrize("is_classifier", [True, False])
def test_an_l1_penalty_selects_in_mini_batches(name, is_classifier, sparsity):
    case, (zeros, objective) = sparse_case(sparsity.Case, is_classifier)
    ours, reached = case.outcome(case.estimators()[name])
    assert ours == pytest.approx(zeros, rel=0.05)
    # Proximal steps of the same training end at more.
    assert objective - 1e-6 < reached < objective * 1.01
    assert zeros >= 90


@pytest.mark.filterwarnings(
    "ignore::FutureWarning", f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)
@pytest.mark.parametrize("optimizer", ["momentum", "nesterov"])
@pytest.mark.parametrize("batch_size", [pytest.param(32, marks=pytest.mark.slow), 200])
@pytest.mark.parametrize("is_classifier", [True, False])
def test_an_l1_penalty_selects_with_momentum_and_a_rate_that_falls(
    optimizer, batch_size, is_classifier, sparsity
):
    case, (zeros, objective) = sparse_case(sparsity.Case, is_classifier)
    options = {
        "learning_rate": "adaptive",
        "eta0": 0.01,
        "tol": 1e-4,
        "max_iter": 60,
        "random_state": 0,
    }
    options |= {
        "penalty": "l1",
        "alpha": sparsity.ALPHA,
        "optimizer": optimizer,
        "batch_size": batch_size,
    }
    model = (OrtSGDClassifier if is_classifier else OrtSGDRegressor)(**options)
    ours, reached = case.outcome(model)
    assert ours == pytest.approx(zeros, rel=0.05)
    assert objective - 1e-6 < reached < objective * 1.001
    # It fell four times.
    assert model.n_iter_ < 60


@pytest.mark.parametrize("optimizer", ["momentum", "nesterov"])
@pytest.mark.parametrize("batch_size", [32, 442])
def test_with_momentum_and_a_rate_that_falls_it_is_lasso(optimizer, batch_size, solver):
    if not takes(solver, Momentum()):
        pytest.skip("it has no momentum")
    X, y = load_diabetes(return_X_y=True)
    X = scale(X)
    options = {
        "learning_rate": "adaptive",
        "eta0": 0.1,
        "tol": 1e-5,
        "n_iter_no_change": 20,
        "random_state": 0,
    }
    options |= {"optimizer": optimizer, "batch_size": batch_size, "solver": solver}
    model, lasso = OrtSGDRegressor(Lasso(5.0), **options).fit(X, y), Lasso(5.0, tol=1e-12).fit(X, y)
    objective, expected = (
        ((m.predict(X) - y) ** 2).mean() / 2 + 5 * abs(m.coef_).sum() for m in (model, lasso)
    )
    assert objective == pytest.approx(expected, rel=2e-5)
    np.testing.assert_array_equal(model.coef_ == 0, lasso.coef_ == 0)


@pytest.mark.parametrize("optimizer", ["momentum", "nesterov"])
@pytest.mark.parametrize("alpha", [1.5, 12.0, 1e3])
@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant")
def test_a_strong_l2_term_keeps_its_balance_with_momentum_when_the_rate_falls(optimizer, alpha):
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X), scale(y)
    options = {
        "learning_rate": "adaptive",
        "eta0": 0.1,
        "tol": 1e-5,
        "n_iter_no_change": 10,
        "max_iter": 2000,
    }
    model = OrtSGDRegressor(alpha=alpha, optimizer=optimizer, batch_size=len(y), **options).fit(
        X, y
    )
    ridge = Ridge(alpha * len(y)).fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=5e-3 * abs(ridge.coef_).max())
    # No epoch is worse than the one before: a fall did not make a jump.
    assert np.max(np.diff(model.loss_curve_[10:])) < 1e-4 * model.loss_


def test_a_stream_selects_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 30))
    y = X[:, :3] @ [1.0, -2.0, 1.0] + rng.normal(size=8000)
    model = OrtSGDRegressor(penalty="l1", alpha=0.1, eta0=0.05, learning_rate="constant")
    for rows in np.array_split(np.arange(8000), 100):
        model.partial_fit(X[rows], y[rows])
    np.testing.assert_array_equal(model.coef_ != 0, np.arange(30) < 3)


class Given:
    """A penalty of one's own, whose strengths are given."""

    def __init__(self, strengths):
        self.given = strengths

    def strengths(self, names):
        return self.given


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("wrong", ["intercept", "foo"])
def test_names_of_no_coefficient_are_refused_with_those_that_there_are(solver, wrong, method):
    X, y = np.eye(3), np.arange(3.0)
    options = {"solver": solver, "eta0": 0.1, "max_iter": 1, "tol": None}
    for penalty, what in (
        (L2({wrong: 1.0}), "alpha"),
        (Given({wrong: Strength(0.5, 0.5)}), "Given"),
    ):
        message = f"penalty: {what} names '{wrong}', but it can name the weights coef."
        with pytest.raises(ValueError, match=message):
            getattr(OrtSGDRegressor(penalty=penalty, **options), method)(X, y)


def test_a_penalty_of_ones_own_is_that_of_the_same_strengths(solver):
    X, y = np.eye(3), np.arange(3.0)
    options = {"solver": solver, "eta0": 0.1, "max_iter": 3, "tol": None, "shuffle": False}
    ours = OrtSGDRegressor(penalty=Given({"coef": Strength(0.0, 0.5)}), **options).fit(X, y)
    np.testing.assert_array_equal(
        ours.coef_, OrtSGDRegressor(penalty=L2(0.5), **options).fit(X, y).coef_
    )


def test_a_penalty_of_weights_that_are_not_trained_is_refused():
    with pytest.raises(
        ValueError, match="alpha names 'coef', but no trained weight can have a penalty"
    ):
        OrtSGDRegressor(penalty=L2({"coef": 1.0}), trainable="intercept").fit(
            np.eye(3), np.arange(3.0)
        )


def test_the_default_penalty_is_on_standardised_columns_and_a_named_one_on_columns_as_they_are():
    X, y = load_breast_cancer(return_X_y=True)
    C = 1 / (0.01 * len(y))
    scaled = StandardScaler().fit(X)
    of_scaled = LogisticRegression(C=C, max_iter=10_000, tol=1e-10).fit(scaled.transform(X), y)
    default = OrtSGDClassifier(alpha=0.01).fit(X, y)
    np.testing.assert_allclose(default.coef_ * scaled.scale_, of_scaled.coef_, atol=1e-4)

    X = X[:, :3] / [1, 10, 100]
    named = OrtSGDClassifier(alpha=0.01, penalty="l2").fit(X, y)
    as_they_are = LogisticRegression(C=C, max_iter=10_000, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(named.coef_, as_they_are.coef_, rtol=1e-3, atol=1e-4)
