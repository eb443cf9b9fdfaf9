"""A fitted linear model on few new rows: it keeps its weights unless new ones are better."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.planning.fitted import keeps_fitted
from skort.estimators.training import fitted_linear
from skort.model_selection import OrtGridSearchCV

X, y = load_diabetes(return_X_y=True)
X = 20 * X
OLD = Ridge().fit(X[:300], y[:300])
DIGITS, LABELS = load_digits(return_X_y=True)
STAYS = "The fitted weights stay: new ones are no better in cross-validation"


def stays(model, *rows, match=STAYS, **weights):
    with pytest.warns(ConvergenceWarning, match=match):
        return model.fit(*rows, **weights)


def decision(model, matter="kept"):
    return tuple(model.plan_.decisions[matter])[:2]


def test_few_rows_like_the_old_ones_leave_the_weights():
    model = stays(OrtSGDRegressor(FrozenEstimator(OLD)), X[300:315], y[300:315])
    np.testing.assert_allclose(model.coef_, OLD.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), OLD.predict(X), rtol=1e-5)
    kept = ("the fitted weights", "new ones are no better in cross-validation")
    assert decision(model) == kept
    begun = ("fitted ones", "they were fitted or given; the optimum does not depend on them")
    assert decision(model, "weights") == begun


def test_rows_with_another_y_lead_to_their_optimum():
    model = OrtSGDRegressor(FrozenEstimator(OLD)).fit(X[300:], -y[300:])
    new = Ridge().fit(X[300:], -y[300:])
    np.testing.assert_allclose(model.coef_, new.coef_, rtol=1e-3, atol=1e-3)
    assert decision(model)[0] == "the optimum of these rows"


def test_without_early_stopping_a_fit_ends_at_the_optimum_of_its_rows():
    model = OrtSGDRegressor(FrozenEstimator(OLD), early_stopping=False).fit(X[300:315], y[300:315])
    new = Ridge().fit(X[300:315], y[300:315])
    np.testing.assert_allclose(model.coef_, new.coef_, rtol=1e-3, atol=1e-2)
    assert "kept" not in model.plan_.decisions


def test_the_folds_are_those_of_plain_cross_validation(monkeypatch):
    found = []
    monkeypatch.setattr(
        fitted_linear, "keeps_fitted", lambda rise: found.append(rise) or keeps_fitted(rise)
    )
    rows = slice(300, 340)
    stays(OrtSGDRegressor(FrozenEstimator(OLD), dtype="float64"), X[rows], y[rows])

    order = np.random.RandomState(0).permutation(40)
    expected = 0.0
    for held_out in np.array_split(order, 5):
        others = np.setdiff1d(order, held_out) + 300
        # skort divides the strength by the number of all new rows.
        new = Ridge(alpha=len(others) / 40).fit(X[others], y[others])
        tested = held_out + 300
        for model, sign in ((new, 0.5), (OLD, -0.5)):
            expected += sign * np.sum((y[tested] - model.predict(X[tested])) ** 2)
    assert found == pytest.approx([expected], rel=1e-6)


def test_many_rows_are_held_out_once():
    folds = list(fitted_linear._folds(np.arange(10_000)))
    assert [(len(held_out), len(others)) for held_out, others in folds] == [(2000, 8000)]
    sizes = [len(held_out) for held_out, _ in fitted_linear._folds(np.arange(2001))]
    assert sizes == [401, 400, 400]
    assert [len(others) for _, others in fitted_linear._folds(np.arange(3))] == [2, 2, 2]


def test_a_loss_that_is_no_number_says_nothing_against_the_model():
    assert [keeps_fitted(rise) for rise in (-1.0, 0.0, 1.0, np.nan, np.inf)] == [
        False,
        True,
        True,
        True,
        True,
    ]


def test_rows_of_weight_zero_do_not_count():
    weight = np.repeat([1.0, 0.0], 15)
    wrong = np.r_[y[300:315], -1e4 * y[315:330]]
    model = stays(OrtSGDRegressor(FrozenEstimator(OLD)), X[300:330], wrong, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, OLD.coef_, rtol=1e-6)


@pytest.mark.parametrize("n_rows", [1, 12])
def test_one_target_says_nothing_against_the_model(n_rows):
    old = LogisticRegression(max_iter=300).fit(DIGITS[:500], LABELS[:500])
    rows = np.flatnonzero(LABELS == 3)[:n_rows]
    model = stays(
        OrtSGDClassifier(FrozenEstimator(old)),
        DIGITS[rows],
        LABELS[rows],
        match="The fitted weights stay: y is the same in all rows",
    )
    np.testing.assert_array_equal(model.predict(DIGITS), old.predict(DIGITS))


@pytest.mark.parametrize("to_rows", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", [LogisticRegression(max_iter=300), SGDClassifier(random_state=0)])
def test_classifiers_keep_what_they_know(kind, to_rows):
    rows = to_rows(DIGITS / 16)
    old = kind.fit(rows[:1000], LABELS[:1000])
    model = stays(OrtSGDClassifier(FrozenEstimator(old)), rows[1000:1040], LABELS[1000:1040])
    assert model.score(rows[1100:], LABELS[1100:]) == old.score(rows[1100:], LABELS[1100:])


def test_far_columns_keep_their_predictions():
    far = X + 1e4
    old = LinearRegression().fit(far[:300], y[:300])
    model = stays(OrtSGDRegressor(FrozenEstimator(old)), far[300:320], y[300:320])
    np.testing.assert_allclose(model.predict(far), old.predict(far), rtol=1e-3)


def test_a_stream_goes_on_from_the_weights_that_stay():
    model = stays(OrtSGDRegressor(FrozenEstimator(OLD), random_state=0), X[300:315], y[300:315])
    before = model.coef_.copy()
    model.partial_fit(X[300:315], y[300:315])
    changed = np.linalg.norm(model.coef_ - before) / np.linalg.norm(before)
    assert 0.001 < changed < 0.2


def test_a_validation_set_keeps_the_better_weights():
    model = OrtSGDRegressor(FrozenEstimator(OLD), early_stopping=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[300:315], y[300:315], X_val=X[340:], y_val=y[340:])
    of_old = -np.mean((y[340:] - OLD.predict(X[340:])) ** 2) / 2
    assert model.initial_validation_score_ == pytest.approx(of_old, rel=1e-5)
    reached = -np.mean((y[340:] - model.predict(X[340:])) ** 2) / 2
    assert reached == pytest.approx(max(of_old, model.best_validation_score_), rel=1e-4)
    assert reached >= of_old * (1 + 1e-4)


def test_a_search_makes_the_fits_that_grid_search_makes():
    scores = []
    for search in (GridSearchCV, OrtGridSearchCV):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = OrtSGDRegressor(FrozenEstimator(OLD), random_state=0)
            found = search(model, {"alpha": [1e-4, 1e-1]}, cv=3).fit(X[300:345], y[300:345])
        scores.append(found.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(*scores)
