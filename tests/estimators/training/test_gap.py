"""How far above its least objective a linear fit by steps ends, told without more steps."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.training.data_source import GivenRows
from skort.estimators.training.fit import fit
from skort.estimators.training.gap import is_surely_near, rough_gap
from skort.estimators.training.run import ReadyTraining
from skort.graphs.standardized import linear_weights

N_ROWS = 403
STEPS = {"optimizer": "sgd", "eta0": 0.01, "max_iter": 3, "tol": None, "random_state": 0}


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
    parts = result.plan, variables, result.model.score_graph, weights, statistics
    return rough_gap(*parts), is_surely_near(*parts), result, variables


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
        model, standardize=standardize, dtype="float64", **{**STEPS, "eta0": eta0}, **options
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
    estimator = OrtSGDClassifier(LogisticRegression(), penalty="l2", alpha=0.01, **STEPS)
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
    found, is_near, *_ = gap_after(OrtSGDRegressor(**parameters, **STEPS), X, np.abs(y[:, 0]), None)
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
