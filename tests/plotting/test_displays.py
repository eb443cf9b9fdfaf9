"""The fitted estimators of skort in what a user gives to a display."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.plotting.displays import fitted_estimators, the_fitted_estimator

X = np.random.default_rng(0).normal(size=(40, 3))
Y = X @ [1.0, 2.0, 3.0]


def short(**options):
    return OrtSGDRegressor(max_iter=2, tol=None, random_state=0, **options)


def test_one_has_the_name_of_its_class():
    model = short().fit(X, Y)
    assert fitted_estimators(model) == {"OrtSGDRegressor": model}


def test_the_last_step_of_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), short()).fit(X, Y)
    assert fitted_estimators(pipeline) == {"OrtSGDRegressor": pipeline[-1]}


def test_the_best_estimator_of_a_search_has_the_name_of_its_parameters():
    search = GridSearchCV(short(), {"alpha": [1e-4, 1e9], "penalty": ["l2"]}, cv=2).fit(X, Y)
    assert fitted_estimators(search) == {"alpha=0.0001, penalty='l2'": search.best_estimator_}
    assert fitted_estimators({"found": search}) == {"found": search.best_estimator_}


def test_a_search_over_a_pipeline_inside_a_transformed_target():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), short()), {"ortsgdregressor__alpha": [1e-3]}, cv=2
    )
    model = TransformedTargetRegressor(search).fit(X, Y)
    (found,) = fitted_estimators(model).values()
    assert found is model.regressor_.best_estimator_[-1]


def test_dicts_and_lists_keep_their_order():
    first, second = short().fit(X, Y), short(alpha=1.0).fit(X, Y)
    assert fitted_estimators({"b": first, "a": second}) == {"b": first, "a": second}
    assert fitted_estimators([second, first]) == {"0": second, "1": first}


def test_all_of_an_ensemble():
    bagging = BaggingRegressor(short(), n_estimators=2, random_state=0).fit(X, Y)
    assert list(fitted_estimators(bagging).values()) == bagging.estimators_
    voting = VotingRegressor([("a", short()), ("plain", LinearRegression()), ("b", short())]).fit(
        X, Y
    )
    assert fitted_estimators({"v": voting}) == {
        "v a": voting.estimators_[0],
        "v b": voting.estimators_[2],
    }
    stacking = StackingRegressor(
        [("a", short()), ("plain", LinearRegression())], short(alpha=1.0), cv=2
    ).fit(X, Y)
    assert fitted_estimators(stacking) == {
        "a": stacking.estimators_[0],
        "final": stacking.final_estimator_,
    }


def test_all_of_a_calibrated_classifier():
    classifier = OrtSGDClassifier(max_iter=2, tol=None, random_state=0)
    model = CalibratedClassifierCV(classifier, cv=2).fit(X, Y > 0)
    assert fitted_estimators(model) == {
        str(i): one.estimator for i, one in enumerate(model.calibrated_classifiers_)
    }


def test_a_frozen_pipeline():
    pipeline = make_pipeline(StandardScaler(), short()).fit(X, Y)
    assert fitted_estimators(FrozenEstimator(pipeline)) == {"OrtSGDRegressor": pipeline[-1]}
    assert the_fitted_estimator({"frozen": FrozenEstimator(pipeline)})[0] is pipeline[-1]


@pytest.mark.parametrize(
    "estimator",
    [
        short(),
        make_pipeline(StandardScaler(), short()),
        GridSearchCV(short(), {"alpha": [1.0]}),
        {"a": short()},
    ],
)
def test_what_is_not_fitted_is_refused(estimator):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        fitted_estimators(estimator)


@pytest.mark.parametrize("estimator", [LinearRegression().fit(X, Y), {}, None, "model"])
def test_what_has_no_estimator_of_skort_is_refused(estimator):
    with pytest.raises(ValueError, match="estimator has no fitted estimator of skort inside, got"):
        fitted_estimators(estimator)


def test_a_search_without_a_refit_is_refused():
    search = GridSearchCV(
        OrtSGDRegressor(max_iter=2, tol=None), {"alpha": [0.1]}, cv=2, refit=False
    ).fit(X, Y)
    with pytest.raises(
        ValueError, match=r"estimator: GridSearchCV keeps no fitted estimator with refit=False\."
    ):
        fitted_estimators({"found": search})
