"""Exact fits of a search along the strength of their penalty, against scikit-learn's optimum."""

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVC

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.model_selection import OrtGridSearchCV
from skort.search.together import Together, joint_fits

STRENGTHS = [0.003, 10.0, 0.1, 0.5, 30.0, 0.02]


def rows(n_classes, n_rows=203):
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, 5)) @ random.normal(size=(5, 5)) * [1, 20, 0.3, 5, 1] + 3
    scores = X[:, :1] * 0.2 + X[:, 1:2] * 0.05 * np.arange(n_classes)
    return X, np.argmax(scores + random.gumbel(size=(n_rows, n_classes)), axis=1)


def objective(model, coef, intercept, X, y):
    """Return C times the sum of the log-losses plus the penalty, of scikit-learn."""
    scores = X @ np.atleast_2d(coef).T + intercept
    scores = np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores
    losses = logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]
    return model.C * losses.sum() + 0.5 * np.sum(np.square(coef))


def fitted(models, X, y, sample_weight=None):
    """Return copies of models, fitted together, and how many of them were."""
    models = [clone(model) for model in models]
    together = Together(models)
    for model in models:
        together.mark(model).fit(X, y, sample_weight)
    return models, together.n_made


@pytest.mark.parametrize("n_classes", [2, 3])
def test_fits_end_at_the_optimum_of_scikit_learn(n_classes):
    X, y = rows(n_classes)
    alone = [OrtSGDClassifier(LogisticRegression(C=C)) for C in STRENGTHS]
    models, n_made = fitted(alone, X, y)
    assert n_made == len(STRENGTHS)

    for C, model, other in zip(STRENGTHS, models, alone, strict=True):
        exact = LogisticRegression(C=C, tol=1e-10, max_iter=10_000, solver="newton-cg").fit(X, y)
        least = objective(exact, exact.coef_, exact.intercept_, X, y)
        ours = objective(exact, model.coef_, model.intercept_, X, y)
        assert 0 <= ours / least - 1 + 1e-9 < 1e-6
        scores = exact.decision_function(X)
        for each in (model, other.fit(X, y)):
            error = each.decision_function(X) - scores
            assert np.sqrt(np.mean(error**2)) < 1e-4 * scores.std()
            # Some sums of columns hardly vary.
            np.testing.assert_allclose(
                each.coef_, exact.coef_, atol=1e-3 * np.abs(exact.coef_).max()
            )
        # scikit-learn's model has its own strength.
        assert model.to_sklearn().C == C

    # All but the strongest begin where stronger ones lead.
    later = [(m, o) for C, m, o in zip(STRENGTHS, models, alone, strict=True) if C > 0.01]
    assert sum(m.n_iter_ for m, _ in later) < 0.9 * sum(o.n_iter_ for _, o in later)


def test_ridge_with_weights_of_rows_has_the_closed_form():
    X, y = rows(4)
    weight = np.random.default_rng(1).uniform(0, 3, size=len(y)) * (np.arange(len(y)) % 7 > 0)
    models = [OrtSGDRegressor(Ridge(alpha)) for alpha in STRENGTHS]
    models, n_made = fitted(models, X, y.astype(float), weight)
    assert n_made == len(STRENGTHS)

    for alpha, model in zip(STRENGTHS, models, strict=True):
        exact = Ridge(alpha).fit(X, y, weight)
        size = np.abs(exact.coef_).max()
        np.testing.assert_allclose(model.coef_, exact.coef_, atol=2e-4 * size)
        np.testing.assert_allclose(model.intercept_, exact.intercept_, rtol=1e-4)


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (OrtSGDClassifier(), {"alpha": [1e-4, 1.0, 1e-2]}),
        (OrtSGDClassifier(loss="squared_hinge"), {"alpha": [1e-3, 1.0], "tol": [1e-5, 1e-6]}),
        (
            OrtSGDClassifier(make_pipeline(PolynomialFeatures(2), LogisticRegression())),
            {"estimator__logisticregression__C": [1e-3, 1.0, 1e-2]},
        ),
        (
            OrtSGDClassifier(LinearSVC(intercept_scaling=2.0)),
            {"estimator__C": [1e-3, 1e-2], "estimator__fit_intercept": [True, False]},
        ),
        (OrtSGDRegressor(loss="huber"), {"alpha": [1e-3, 1e-1], "epsilon": [0.1, 1.0]}),
    ],
)
def test_a_search_has_the_scores_of_single_fits(model, grid):
    X, y = rows(2)
    ours = OrtGridSearchCV(model, grid, cv=3).fit(X, y)
    theirs = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert ours.n_fits_together_ == 3 * len(ours.cv_results_["params"])
    for name in ("mean_test_score", "split0_test_score", "split2_test_score"):
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], atol=1e-4)


def test_fits_that_reach_max_iter_are_made_alone():
    X, y = rows(2)
    models = [OrtSGDClassifier(LogisticRegression(C=C), max_iter=12) for C in (1e-4, 1.0, 1e4)]
    models[2].set_params(max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = joint_fits([*models, clone(models[1]).set_params(max_iter=2)], X, y, None)
        assert fits.keys() == {0, 1}


def test_fits_without_a_penalty_begin_at_zeros():
    X, y = rows(2)
    models = [OrtSGDClassifier(alpha=alpha, tol=1e-3) for alpha in (0.0, 1e-3, 1e-2)]
    (bare, *_), n_made = fitted(models, X, y)
    assert n_made == 3
    assert bare.n_iter_ > 0
    np.testing.assert_allclose(bare.coef_, clone(bare).fit(X, y).coef_, rtol=5e-3)


def test_fits_near_an_objective_of_zero_end_as_near_as_single_ones():
    # A gradient below `tol` tells little of an objective that is as small.
    X, y = load_digits(return_X_y=True)
    strengths = np.geomspace(1e2, 1e4, 5)
    models = [OrtSGDClassifier(LogisticRegression(C=C)) for C in strengths]
    together, _ = fitted(models, X, y)
    for C, model in zip(strengths, together, strict=True):
        exact = LogisticRegression(C=C)
        alone = clone(model).fit(X, y)
        ours, theirs = (objective(exact, m.coef_, m.intercept_, X, y) for m in (model, alone))
        assert ours < (1 + 2e-4) * theirs
