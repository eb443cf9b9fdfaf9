"""A linear fit by steps ends at the optimum of its objective, or says how far above it."""

import re

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linprog, minimize
from scipy.special import expit, logsumexp, softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    QuantileRegressor,
    Ridge,
)
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import Checkpoint
from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.training import optimum
from skort.estimators.training.data_source import GivenRows
from skort.estimators.training.fit import fit
from skort.estimators.training.optimum import EndOfSteps, is_surely_near, rough_gap
from skort.estimators.training.run import ReadyTraining
from skort.graphs.standardized import linear_weights
from skort.solvers import available_solvers


def rare_class(seed, n_rows=500, n_rare=12):
    random = np.random.RandomState(seed)
    X = random.normal(size=(n_rows, 6))
    y = np.zeros(n_rows, int)
    y[:n_rare] = 1
    X[:n_rare] += 0.8 * random.normal(size=6)
    order = random.permutation(n_rows)
    return X[order], y[order]


def hinge_of(X, y, coef, intercept):
    return np.maximum(1 - (2 * y - 1) * (X @ coef + intercept), 0).mean()


def least_hinge(X, y):
    """The least mean hinge loss, by linear programming."""
    n, d = X.shape
    signs = 2.0 * y - 1
    rows = np.hstack([-signs[:, None] * X, -signs[:, None], -np.eye(n)])
    bounds = [(None, None)] * (d + 1) + [(0, None)] * n
    cost = np.concatenate([np.zeros(d + 1), np.full(n, 1 / n)])
    return linprog(cost, A_ub=rows, b_ub=-np.ones(n), bounds=bounds).fun


@pytest.mark.filterwarnings("ignore:The model is not clearly better")
@pytest.mark.parametrize("seed", [0, 2])
def test_a_rare_class_ends_at_the_least_hinge_loss(seed):
    X, y = rare_class(seed)
    model = OrtSGDClassifier(loss="hinge", penalty=None, random_state=0).fit(X, y)
    ours = hinge_of(X, y, model.coef_[0].astype(float), float(model.intercept_[0]))
    assert ours <= 1.01 * least_hinge(X, y)
    assert model.loss_ == pytest.approx(ours, rel=1e-4)


@pytest.mark.parametrize("quantile, n_rows", [(0.001, 200), (0.999, 500), (0.5, 203)])
def test_a_quantile_ends_at_the_least_pinball_loss(quantile, n_rows):
    random = np.random.RandomState(n_rows)
    X = random.normal(size=(n_rows, 5))
    y = X @ random.normal(size=5) + random.normal(size=n_rows)
    model = OrtSGDRegressor(loss="quantile", quantile=quantile, penalty=None, random_state=0)
    exact = QuantileRegressor(quantile=quantile, alpha=0).fit(X, y)
    ours, least = (
        np.where(rest > 0, quantile * rest, (quantile - 1) * rest).mean()
        for rest in (y - each.predict(X) for each in (model.fit(X, y), exact))
    )
    assert ours <= 1.01 * least


def counts_of_words(n_rows=300, n_columns=300):
    """Sparse counts, of a few frequent words and many rare ones, and three classes."""
    random = np.random.RandomState(0)
    frequencies = 20 / np.arange(1, n_columns + 1)
    X = random.poisson(frequencies, size=(n_rows, n_columns))
    scores = (X - frequencies) / np.sqrt(frequencies) @ random.normal(size=(n_columns, 3))
    return scipy.sparse.csr_matrix(X.astype(float)), scores.argmax(axis=1)


def log_objective(X, y, model, strength):
    """The mean log-loss of classes with the penalty of LogisticRegression."""
    coef = model.coef_.astype(float)
    scores = X @ coef.T + model.intercept_.astype(float)
    loss = np.mean(logsumexp(scores, axis=1) - scores[np.arange(len(y)), y])
    return loss + 0.5 / (strength * len(y)) * np.sum(coef**2)


@pytest.mark.parametrize("strength", [0.1, 1, 10])
def test_sparse_counts_end_at_scikit_learns_objective(strength):
    X, y = counts_of_words()
    inner = LogisticRegression(C=strength)
    newton = clone(inner).set_params(solver="newton-cg", tol=1e-10, max_iter=1000)
    exact = log_objective(X, y, newton.fit(X, y), strength)
    ours = OrtSGDClassifier(inner, random_state=0).fit(X, y)
    assert log_objective(X, y, ours, strength) == pytest.approx(exact, rel=2e-3)

    steps = OrtSGDClassifier(inner, optimizer="sgd", random_state=0).fit(X, y)
    assert log_objective(X, y, steps, strength) > 1.5 * exact
    assert ours.n_iter_ == steps.n_iter_ + 1


@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant prediction")
def test_sparse_rows_of_a_hinge_end_where_the_steps_do():
    X, y = counts_of_words()
    ours, steps = (
        OrtSGDClassifier(loss="hinge", optimizer=optimizer, random_state=0).fit(X, y)
        for optimizer in ("auto", "sgd")
    )
    np.testing.assert_array_equal(ours.coef_, steps.coef_)


@pytest.mark.parametrize("solver", ["graph", "agent"])
def test_sparse_rows_of_a_lasso_end_at_its_optimum(solver):
    if solver not in available_solvers():
        pytest.skip(f"this runtime has no solver {solver!r}")
    X = scipy.sparse.random(503, 1500, 0.01, format="csr", random_state=0)
    y = np.asarray(X[:, :50].sum(axis=1)).ravel()
    theirs = Lasso(1e-3, tol=1e-10, max_iter=100_000).fit(X, y)
    ours = OrtSGDRegressor(Lasso(1e-3), solver=solver, random_state=0).fit(X, y)

    def objective(model):
        rest = y - X @ np.ravel(model.coef_) - np.ravel(model.intercept_)
        return np.mean(rest**2) / 2 + 1e-3 * np.abs(model.coef_).sum()

    assert objective(ours) == pytest.approx(objective(theirs), rel=0.01)


def test_nobody_looks_for_a_lower_objective_of_more_weights(monkeypatch):
    X, y = counts_of_words()
    monkeypatch.setattr(optimum, "_MOST_WEIGHTS", 3 * 300 + 2)
    left_out, steps = (
        OrtSGDClassifier(optimizer=optimizer, random_state=0).fit(X, y)
        for optimizer in ("auto", "sgd")
    )
    np.testing.assert_array_equal(left_out.coef_, steps.coef_)


def l1_objective(X, y, coef, intercept, alpha):
    """The mean log-loss with an l1 term."""
    return (
        np.logaddexp(0, -(2 * y - 1) * (X @ coef + intercept)).mean() + alpha * np.abs(coef).sum()
    )


@pytest.mark.parametrize("alpha", [1e-4, 1e-3, 0.1])
def test_an_l1_term_on_raw_columns_ends_at_the_least_objective_with_zeros(alpha):
    X, y = load_breast_cancer(return_X_y=True)
    model = OrtSGDClassifier(penalty="l1", alpha=alpha, random_state=0).fit(X, y)
    scale = X.std(axis=0)
    rows = (X - X.mean(axis=0)) / scale

    # The weights of scaled columns as differences of positive numbers, in float64.
    def of_split(split):
        coef = split[:30] - split[30:60]
        signs = 1.0 - 2 * y
        score = signs * (rows @ coef + split[60])
        by_score = signs * expit(score) / len(y)
        by_coef, strength = rows.T @ by_score, alpha / scale
        gradient = [by_coef + strength, strength - by_coef, [by_score.sum()]]
        value = np.logaddexp(0, score).mean() + strength @ (split[:30] + split[30:60])
        return value, np.concatenate(gradient)

    options = {"maxiter": 20000, "maxfun": 50000, "ftol": 1e-13, "gtol": 1e-10}
    bounds = [(0, None)] * 60 + [(None, None)]
    least = minimize(
        of_split, np.zeros(61), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    coef = model.coef_[0].astype(float)
    ours = l1_objective(X, y, coef, float(model.intercept_[0]), alpha)
    assert ours == pytest.approx(least.fun, rel=1e-3)
    assert model.loss_ == pytest.approx(ours, rel=1e-4)
    assert np.count_nonzero(coef) <= np.count_nonzero(least.x[:30] - least.x[30:60]) + 2


def test_a_lasso_of_raw_columns_ends_at_scikit_learns_objective():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    options = {"standardize": False, "random_state": 0}
    ours = OrtSGDRegressor(Lasso(alpha=1.0), **options).fit(X, y)
    exact = Lasso(alpha=1.0, tol=1e-8, max_iter=100_000).fit(X, y)
    values = [
        np.mean((y - each.predict(X)) ** 2) / 2 + np.abs(each.coef_).sum() for each in (ours, exact)
    ]
    assert values[0] == pytest.approx(values[1], rel=0.01)


@pytest.mark.parametrize("alpha", [0.5, 2, 5, 20])
def test_a_lasso_has_scikit_learns_zeros(alpha):
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours = OrtSGDRegressor(Lasso(alpha=alpha), random_state=0).fit(X, y)
    exact = Lasso(alpha=alpha, tol=1e-10).fit(X, y)

    np.testing.assert_array_equal(ours.coef_ == 0, exact.coef_ == 0)
    np.testing.assert_allclose(ours.coef_, exact.coef_, atol=0.05)


@pytest.mark.parametrize("n_left", [2, 4, 5])
def test_a_log_loss_with_an_l1_term_has_the_zeros_of_its_optimum(n_left):
    alpha = {2: 0.3515, 4: 0.08787, 5: 0.03515}[n_left]
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = OrtSGDClassifier(penalty="l1", alpha=alpha, random_state=0).fit(X, y)

    # The conditions of the optimum: a weight is zero only where its gradient is below alpha.
    gradient = X.T @ (expit(model.decision_function(X)) - y) / len(y)
    coef = model.coef_.ravel()
    of_others = np.clip(gradient, -alpha, alpha)
    expected = np.where(coef == 0, of_others, -alpha * np.sign(coef))
    np.testing.assert_allclose(gradient, expected, atol=2e-3 * alpha)
    assert np.count_nonzero(coef) == n_left


@pytest.mark.parametrize(("quantile", "alpha"), [(0.1, 0.01), (0.99, 0.001), (0.999, 0.01)])
@pytest.mark.parametrize("noise", [0, 1e-6])
def test_a_quantile_with_an_l1_term_ends_at_scikit_learns_objective(quantile, alpha, noise):
    X, label = load_wine(return_X_y=True)
    y = X[:, 0] + 0.1 * label
    # The end must not depend on how a processor rounds.
    y *= 1 + noise * np.random.default_rng(1).normal(size=len(y))
    model = QuantileRegressor(quantile=quantile, alpha=alpha)
    # The number of iterations depends on how a version of numpy rounds.
    ours = OrtSGDRegressor(model, max_iter=5000, random_state=0).fit(X, y)
    exact = model.fit(X, y)
    values = []
    for each in (ours, exact):
        errors = y - each.predict(X)
        pinball = np.maximum(quantile * errors, (quantile - 1) * errors).mean()
        values.append(pinball + alpha * np.abs(each.coef_).sum())
    assert values[0] == pytest.approx(values[1], rel=0.01)


@pytest.mark.parametrize("alpha", [1e-2, 0.1])
def test_a_hinge_with_an_l1_term_ends_at_the_least_objective_with_zeros(alpha):
    X, y = load_breast_cancer(return_X_y=True)
    model = OrtSGDClassifier(loss="hinge", penalty="l1", alpha=alpha, random_state=0).fit(X, y)
    coef = model.coef_[0].astype(float)
    signs = 2.0 * y - 1
    hinge = np.maximum(0, 1 - signs * (X @ coef + model.intercept_[0])).mean()

    # A linear program in positive and negative weights of scaled columns, intercept and losses.
    scale = X.std(axis=0)
    signed = signs[:, None] * (X - X.mean(axis=0)) / scale
    n_rows, n_columns = X.shape
    strength = alpha / scale
    exact = linprog(
        np.concatenate([strength, strength, [0], np.full(n_rows, 1 / n_rows)]),
        A_ub=np.hstack([-signed, signed, -signs[:, None], -np.eye(n_rows)]),
        b_ub=-np.ones(n_rows),
        bounds=[(0, None)] * (2 * n_columns) + [(None, None)] + [(0, None)] * n_rows,
    )
    least = exact.x[:n_columns] - exact.x[n_columns : 2 * n_columns]
    assert hinge + alpha * np.abs(coef).sum() == pytest.approx(exact.fun, rel=1e-3)
    np.testing.assert_array_equal(coef == 0, np.abs(least) < 1e-9)


def test_steps_with_an_l1_term_say_how_far_they_end():
    X, y = load_breast_cancer(return_X_y=True)
    options = {"penalty": "l1", "alpha": 1e-3, "random_state": 0}
    model = OrtSGDClassifier(eta0=0.01, **options)
    with pytest.warns(ConvergenceWarning, match="above its optimum"):
        model.fit(X, y)
    exact = OrtSGDClassifier(**options).fit(X, y)
    assert 0.05 < part_above(model) <= 1 - exact.loss_ / model.loss_ + 0.01


@pytest.mark.filterwarnings("ignore:The model is not clearly better")
def test_steps_that_the_user_chose_end_where_they_lead():
    X, y = rare_class(0)
    chosen = OrtSGDClassifier(loss="hinge", penalty=None, optimizer="sgd", random_state=0)
    left_out = OrtSGDClassifier(loss="hinge", penalty=None, random_state=0).fit(X, y)
    assert left_out.loss_ < 0.99 * chosen.fit(X, y).loss_
    assert left_out.n_iter_ == chosen.n_iter_ + 1


@pytest.mark.filterwarnings("ignore:The model is not clearly better")
def test_a_tolerance_above_that_of_skort_ends_where_it_says():
    X, y = rare_class(0)
    model = OrtSGDClassifier(loss="hinge", penalty=None, tol=0.1, random_state=0).fit(X, y)
    assert model.loss_ > 1.02 * least_hinge(X, y)


@pytest.mark.filterwarnings("ignore:The model is not clearly better")
def test_a_fit_that_is_resumed_before_its_end_has_the_same_end(tmp_path):
    X, y = rare_class(0)
    path = tmp_path / "training.npz"
    whole = OrtSGDClassifier(loss="hinge", penalty=None, random_state=0).fit(X, y)
    first = OrtSGDClassifier(
        loss="hinge", penalty=None, random_state=0, callbacks=[Checkpoint(path, every=7)]
    ).fit(X, y)
    again = OrtSGDClassifier(
        loss="hinge", penalty=None, random_state=0, callbacks=[Checkpoint(resume_from=path)]
    ).fit(X, y)
    np.testing.assert_array_equal(whole.coef_, first.coef_)
    np.testing.assert_array_equal(whole.coef_, again.coef_)


def correlated(correlation, n_rows=2003):
    random = np.random.RandomState(0)
    first, second, noise = random.normal(size=(3, n_rows))
    other = correlation * first + np.sqrt(1 - correlation**2) * second
    return np.column_stack([first, 100 * other + 1000]), first + second + 0.1 * noise


def part_above(model):
    """What the plan says of the end."""
    return int(re.search(r"at least (\d+)% above", model.plan_.decisions["end"].value)[1]) / 100


CONSTANT = {"learning_rate": "constant", "eta0": 0.01, "random_state": 0}


def test_steps_that_end_far_above_the_optimum_say_how_far():
    X, y = correlated(0.9999)
    model = OrtSGDRegressor(LinearRegression(), **CONSTANT)
    with pytest.warns(ConvergenceWarning, match=r"ended at least \d+% above its optimum") as found:
        model.fit(X, y)

    # Half the mean squared error: a bound of its curvature is the curvature.
    rest = y - model.predict(X)
    least = y - LinearRegression().fit(X, y).predict(X)
    expected = 1 - np.mean(least**2) / np.mean(rest**2)
    assert expected - 0.02 < part_above(model) <= expected
    reason = model.plan_.decisions["end"].because
    assert reason.startswith("steps are slow where columns of X are strongly correlated")
    assert f"at least {part_above(model):.0%} above its optimum: {reason}. Leave" in str(
        found[0].message
    )
    assert "Leave learning_rate at its default" in str(found[0].message)
    assert model.plan_.decisions["end"].change_with == "learning_rate"


@pytest.mark.parametrize("parameters", [{"optimizer": "sgd"}, {"batch_size": 50}])
@pytest.mark.parametrize("correlation", [0.0, 0.99])
def test_steps_that_end_near_the_optimum_say_nothing(correlation, parameters):
    X, y = correlated(correlation)
    model = OrtSGDRegressor(LinearRegression(), random_state=0, **parameters).fit(X, y)
    assert model.score(X, y) > LinearRegression().fit(X, y).score(X, y) - 0.01
    assert "end" not in model.plan_.decisions


def test_steps_of_a_loss_with_a_kink_say_how_far_they_end():
    X, y = correlated(0.9999)
    options = {"loss": "absolute_error", "penalty": None, "max_grad_norm": 1e-3, "eta0": 0.01}
    model = OrtSGDRegressor(random_state=0, **options)
    with pytest.warns(ConvergenceWarning, match="above its optimum"):
        model.fit(X, y)

    exact = OrtSGDRegressor(loss="absolute_error", penalty=None, random_state=0).fit(X, y)
    assert 0.05 < part_above(model) <= 1 - exact.loss_ / model.loss_ + 0.01


@pytest.mark.parametrize(
    "parameters",
    [{"tol": None, "max_iter": 8}, {"tol": 0.1}],
)
def test_nobody_looks_where_the_fit_is_to_end_elsewhere(parameters):
    X, y = correlated(0.9999)
    model = OrtSGDRegressor(LinearRegression(), **{**CONSTANT, **parameters}).fit(X, y)
    assert "end" not in model.plan_.decisions


def test_a_gap_is_one_of_some_rows():
    X, y = correlated(0.9999, 7001)
    model = OrtSGDRegressor(LinearRegression(), **CONSTANT)
    with pytest.warns(ConvergenceWarning, match="above its optimum"):
        model.fit(X, y)
    some = slice(None, None, 4)
    least = LinearRegression().fit(X[some], y[some])
    parts = [np.mean((y - each.predict(X))[some] ** 2) for each in (least, model)]
    expected = 1 - parts[0] / parts[1]
    assert expected - 0.02 < part_above(model) <= expected


N_ROWS = 403
FEW_STEPS = {"optimizer": "sgd", "eta0": 0.01, "max_iter": 3, "tol": None, "random_state": 0}


def rows_of(dtype, n_outputs=1):
    random = np.random.RandomState(0)
    X = random.normal(size=(N_ROWS, 3)) * [1, 10, 0.1] + [0, 50, 1]
    X[:, 2] += 0.05 * X[:, 0]
    y = X @ random.normal(size=(3, n_outputs)) + random.normal(size=(N_ROWS, n_outputs)) + 7
    return X.astype(dtype), y, random.uniform(0, 2, size=N_ROWS)


def gap_after(estimator, X, y, weight, target=None):
    """The gap at the end of a fit of few steps, in units of its training."""
    result, _ = fit(estimator, GivenRows(X, y, weight))
    variables = result.plan.variables(result.model.score_graph, result.state.standardization)
    weights = variables.training_weights(result.model.trained_weights)
    target = y if target is None else target
    statistics = DataStatistics(TrainingData(X, target, weight))
    end = EndOfSteps(result.plan, result.model, variables, weights)
    return rough_gap(end, statistics), is_surely_near(end, statistics), result, variables


def half_square(X, y, weight, coef, intercept, alpha):
    rest = X @ coef + intercept - y
    of_rows = np.average(np.square(rest), axis=0, weights=weight)
    return 0.5 * of_rows.mean() + 0.5 * alpha * np.sum(np.square(coef))


@pytest.mark.parametrize("standardize", ["auto", False])
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_gap_of_half_a_square_is_that_to_the_closed_form(
    standardize, n_outputs, weighted, fit_intercept
):
    X, y, weight = rows_of("float64", n_outputs)
    weight = weight if weighted else None
    alpha = 0.1 if n_outputs == 1 else 0.0
    model = (
        Ridge(fit_intercept=fit_intercept)
        if alpha
        else LinearRegression(fit_intercept=fit_intercept)
    )
    options = {"penalty": "l2", "alpha": alpha} if alpha else {}
    eta0 = 1e-2 if standardize == "auto" else 1e-5
    estimator = OrtSGDRegressor(
        model, standardize=standardize, dtype="float64", **{**FEW_STEPS, "eta0": eta0}, **options
    )
    found, is_near, result, variables = gap_after(
        estimator, X, y if n_outputs > 1 else y[:, 0], weight, y
    )
    gap, objective = found

    coef, start = linear_weights(result.model.score_graph)
    now = half_square(X, y, weight, coef.T, start, alpha)
    counts = np.ones(N_ROWS) if weight is None else weight
    exact = Ridge(alpha * counts.sum(), fit_intercept=fit_intercept, tol=1e-12).fit(X, y, counts)
    least = half_square(X, y, weight, exact.coef_.reshape(n_outputs, 3).T, exact.intercept_, alpha)

    assert variables.objective(objective) == pytest.approx(now, rel=1e-5)
    assert gap / objective == pytest.approx(1 - least / now, rel=1e-3)
    assert is_near == (gap / objective < 0.04)


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-3), ("float64", 1e-5)])
def test_the_gap_of_log_losses_is_half_the_squared_gradient_in_uncorrelated_columns(dtype, rtol):
    X, score, _ = rows_of(dtype, 3)
    y = np.argmax(score - score.mean(axis=0), axis=1)
    onehot = np.eye(3)[y]
    estimator = OrtSGDClassifier(LogisticRegression(), penalty="l2", alpha=0.01, **FEW_STEPS)
    (gap, objective), _, result, _ = gap_after(estimator, X, y, None, onehot.astype(np.float32))

    used = result.state.standardization
    rows = np.column_stack([(X - used.mean) / used.scale, np.ones(N_ROWS)])
    coef, start = linear_weights(result.model.score_graph)
    coef = coef.T.astype(float)
    probabilities = softmax(X.astype(float) @ coef + start, axis=1)

    strength = np.append(0.01 / used.scale**2, 0)
    v = np.vstack([coef * used.scale[:, None], np.zeros(3)])
    gradient = rows.T @ (probabilities - onehot) / N_ROWS + strength[:, None] * v
    # 1/2 bounds the second derivatives of a softmax.
    curved = 0.5 * rows.T @ rows / N_ROWS + np.diag(strength)
    expected = 0.5 * np.sum(gradient * np.linalg.solve(curved, gradient))
    loss = -np.mean(np.log(probabilities[np.arange(N_ROWS), y]))
    assert gap == pytest.approx(expected, rel=rtol)
    assert objective == pytest.approx(loss + 0.5 * np.sum(strength[:, None] * v**2), rel=rtol)


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "poisson"},
        {"loss": "huber", "penalty": "l2", "alpha": {"coef*": 0.1}, "trainable": "coef*"},
    ],
)
def test_other_objectives_take_steps_to_tell(parameters):
    X, y, _ = rows_of("float64")
    found, is_near, *_ = gap_after(
        OrtSGDRegressor(**parameters, **FEW_STEPS), X, np.abs(y[:, 0]), None
    )
    assert found is None and not is_near


def test_a_fit_that_ends_near_its_optimum_makes_no_step_to_tell(monkeypatch):
    X, y, _ = rows_of("float64")
    told = []
    made = ReadyTraining._full_step
    monkeypatch.setattr(ReadyTraining, "_full_step", lambda *args: told.append(1) or made(*args))
    OrtSGDRegressor(optimizer="sgd", random_state=0).fit(X, y[:, 0])
    assert not told
    OrtSGDRegressor(loss="poisson", optimizer="sgd", random_state=0).fit(X, np.abs(y[:, 0]))
    assert told


def test_the_last_look_at_a_hinge_has_its_own_iterations_and_ends_near_the_optimum():
    X, y = load_digits(return_X_y=True)
    model = OrtSGDClassifier(loss="hinge", random_state=0).fit(X, y)
    longer = OrtSGDClassifier(loss="hinge", max_iter=5000, random_state=0).fit(X, y)
    assert model.n_iter_ == longer.n_iter_ == 702
    assert longer.loss_ < model.loss_ < 1.01 * longer.loss_


def test_a_last_look_that_ends_far_above_the_optimum_says_how_far_it_came():
    random = np.random.default_rng(200)
    X = random.normal(size=(1500, 200)) @ random.normal(size=(200, 200))
    noisy = X[:, :5].sum(axis=1) + random.normal(size=1500) * X.std()
    y = (noisy > np.quantile(noisy, 0.95)).astype(int)
    # At its limit of iterations, L-BFGS is far from its end, however a version of numpy rounds.
    options = {"loss": "hinge", "n_iter_no_change": 2, "random_state": 0}
    model = OrtSGDClassifier(max_iter=100, **options)
    with pytest.warns(ConvergenceWarning, match="L-BFGS over all rows lowered it from") as caught:
        model.fit(X, y)
    begin, end = model.loss_curve_[-2:]
    assert f"from {begin:.4g} to {end:.4g} in max_iter=100 iterations" in str(caught[0].message)
    assert model.n_iter_ < 100
    assert "made max_iter=100 iterations over all rows" in model.stopping_reason_
    longer = OrtSGDClassifier(max_iter=3000, **options).fit(X, y)
    assert longer.loss_ < 0.99 * end


@pytest.mark.parametrize("max_iter", [20, 21])
def test_a_last_look_in_the_last_epoch_says_how_far_it_came(max_iter):
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 10))
    y = X[:, 0] + 0.3 * random.normal(size=2000) > 2
    model = OrtSGDClassifier(loss="hinge", n_iter_no_change=2, max_iter=max_iter, random_state=0)
    with pytest.warns(ConvergenceWarning, match="^SGD no longer lowered the objective") as caught:
        model.fit(X, y)
    begin, end = model.loss_curve_[-2:]
    assert f"from {begin:.4g} to {end:.4g} in max_iter={max_iter} it" in str(caught[0].message)
    # The look is the last of 20 epochs.
    assert model.n_iter_ == 20
    assert f"made max_iter={max_iter} iterations over all rows" in model.stopping_reason_
