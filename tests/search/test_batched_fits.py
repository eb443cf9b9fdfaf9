"""Fits that are made side by side: of which data and models, and what is left of them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVR

from skort import OrtSGDRegressor
from skort.model_selection import OrtGridSearchCV
from skort.objective import L2, ElasticPenalty
from skort.search.together import Together, joint_fits

OPTIONS = {
    "penalty": "l2",
    "max_iter": 3,
    "tol": None,
    "random_state": 0,
    "learning_rate": "constant",
    "eta0": 0.02,
}


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(40, 3))
    return X, X @ [1.0, 2.0, 3.0]


def models(*alphas, **options):
    return [OrtSGDRegressor(alpha=alpha, **{**OPTIONS, **options}) for alpha in alphas]


def test_copies_are_fitted_by_their_places(rows):
    several = models(0.1, -1.0, 0.2, batch_size=7)
    fits = joint_fits(several, *rows, None)
    # The second is invalid: only its own fit says so.
    assert fits.keys() == {0, 2}
    for place, fit in fits.items():
        assert not hasattr(several[place], "coef_")
        np.testing.assert_allclose(
            fit[0].model.linear_weights[0], several[place].fit(*rows).coef_, rtol=1e-5
        )


@pytest.mark.parametrize(
    "kind", [np.asarray, pd.DataFrame, scipy.sparse.csr_matrix, lambda X: X.tolist()]
)
def test_data_of_any_kind(rows, kind):
    X, y = rows
    X = kind(X)
    pair, alone = models(0.1, 0.2), models(0.1, 0.2)
    together = Together(pair)
    for model in pair:
        together.mark(model).fit(X, y)
    assert together.n_made == 2
    for model, other in zip(pair, alone, strict=True):
        np.testing.assert_allclose(model.coef_, other.fit(X, y).coef_, rtol=1e-5)
        assert (
            getattr(model, "feature_names_in_", [0]).__len__()
            == getattr(other, "feature_names_in_", [0]).__len__()
        )


def test_sparse_rows_of_many_columns_are_multiplied_by_fits_alone(rows):
    X = scipy.sparse.random(40, 2000, 0.01, format="csr", random_state=0)
    together = Together(models(0.1, 0.2))
    model = together.mark(models(0.1)[0]).fit(X, rows[1])
    assert together.n_made == 0
    np.testing.assert_array_equal(model.coef_, models(0.1)[0].fit(X, rows[1]).coef_)


def test_columns_far_from_zero_are_centred_by_fits_alone(rows):
    X, y = rows
    together = Together(models(0.1, 0.2))
    model = together.mark(models(0.1)[0]).fit(X + 1e4, y)
    assert together.n_made == 0
    np.testing.assert_array_equal(model.coef_, models(0.1)[0].fit(X + 1e4, y).coef_)


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (None, {"penalty": [L2(0.01), L2(0.1), ElasticPenalty(0.01, 0, intercepts=1.0)]}),
        (
            None,
            {"penalty": [ElasticPenalty(0.01, 0, intercepts=i) for i in (1.0, 2.0)] + [L2(0.01)]},
        ),
        # As "auto" says, that of the model inside covers the intercept.
        (LinearSVR(), {"penalty": ["l2", "auto"], "alpha": [0.1, 0.2]}),
    ],
)
def test_only_some_penalties_cover_intercepts(rng, model, grid):
    X = rng.normal(5.0, size=(60, 2))
    y = X @ [1.0, 2.0] + 3.0 + rng.normal(0, 0.1, 60)
    model = OrtSGDRegressor(model, random_state=0, dtype="float64", max_iter=20, tol=None)
    alone, together = (
        kind(model, grid, cv=3, scoring="neg_mean_squared_error").fit(X, y)
        for kind in (GridSearchCV, OrtGridSearchCV)
    )
    np.testing.assert_allclose(
        together.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"], rtol=1e-6
    )
    assert not np.allclose(
        alone.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"][0]
    )


def test_penalties_that_cover_intercepts_or_not_are_groups_of_their_own(rows):
    covering = [ElasticPenalty(0.01, 0, intercepts=i) for i in (0.1, 0.2)]
    fits = joint_fits(
        [
            OrtSGDRegressor(penalty=p, optimizer="sgd", random_state=0)
            for p in [L2(0.1), *covering, L2(0.2)]
        ],
        *rows,
        None,
    )
    means = {place: fit[0].state.standardization.mean.any() for place, fit in fits.items()}
    assert means == {0: True, 1: False, 2: False, 3: True}
