"""
The estimators inside scikit-learn's meta-estimators:
the results are those of the same fits made by hand.
"""

import numpy as np
import pytest
import sklearn
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from skort import OrtSGDClassifier, OrtSGDRegressor

FOLDS = KFold(3, shuffle=True, random_state=0)


def regressor(**parameters):
    return OrtSGDRegressor(
        **{"max_iter": 10, "tol": None, "random_state": 0, "batch_size": 50, **parameters}
    )


def classifier(**parameters):
    # At this rate no probability is so small that float32 rounds it by more than 1e-5.
    options = {
        "max_iter": 10,
        "tol": None,
        "random_state": 0,
        "batch_size": 50,
        "eta0": 0.1,
        **parameters,
    }
    return OrtSGDClassifier(**options)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), y / 100


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X), np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="module")
def binary(iris):
    X, y = iris
    return X, y == "virginica"


@pytest.fixture
def sample_weight():
    return np.random.default_rng(0).integers(0, 3, 150).astype(float)


def test_last_step_of_a_pipeline(diabetes):
    X, y = diabetes
    X = 3 * X + 5
    outer = make_pipeline(StandardScaler(), regressor(eta0=0.02)).fit(X, y)
    by_hand = regressor(eta0=0.02).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_array_equal(
        outer.predict(X), by_hand.predict(StandardScaler().fit_transform(X))
    )
    assert outer.set_params(ortsgdregressor__eta0=0.05)[-1].eta0 == 0.05


@pytest.mark.parametrize(
    "estimator, grid",
    [
        (None, {"eta0": [0.001, 0.02]}),
        (
            MLPRegressor(hidden_layer_sizes=(3,)),
            {"estimator__hidden_layer_sizes": [(2,), (5,)], "alpha": [0.1]},
        ),
        (
            make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(3,))),
            {
                "estimator__standardscaler__with_std": [False],
                "estimator__mlpregressor__activation": ["relu", "tanh"],
            },
        ),
    ],
)
def test_grid_search(diabetes, estimator, grid):
    X, y = diabetes
    search = GridSearchCV(regressor(estimator=estimator), grid, cv=FOLDS).fit(X, y)
    scores = [
        np.mean(
            cross_val_score(
                regressor(estimator=clone(estimator) if estimator else None).set_params(**p),
                X,
                y,
                cv=FOLDS,
            )
        )
        for p in search.cv_results_["params"]
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], scores, rtol=1e-12)
    assert search.best_params_ == search.cv_results_["params"][np.argmax(scores)]
    assert len(set(scores)) > 1 or len(scores) == 1
    refitted = regressor(estimator=estimator).set_params(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.predict(X), refitted.predict(X))


@pytest.mark.slow
def test_cross_validation_in_other_processes(diabetes):
    X, y = diabetes
    expected = []
    for train, test in FOLDS.split(X):
        expected.append(regressor().fit(X[train], y[train]).score(X[test], y[test]))
    np.testing.assert_array_equal(cross_val_score(regressor(), X, y, cv=FOLDS, n_jobs=2), expected)


def test_voting_regressor(diabetes):
    X, y = diabetes
    models = [
        ("linear", regressor()),
        ("mlp", regressor(estimator=MLPRegressor(hidden_layer_sizes=(5,)))),
        ("plain", LinearRegression()),
    ]
    voting = VotingRegressor(models, weights=np.array([1, 2, 3])).fit(X, y)
    predictions = [clone(model).fit(X, y).predict(X) for _, model in models]
    np.testing.assert_allclose(
        voting.predict(X), np.average(predictions, axis=0, weights=[1, 2, 3]), rtol=1e-12
    )


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_voting_classifier(iris, voting):
    X, y = iris
    models = [
        ("a", classifier(eta0=0.01)),
        ("b", classifier(eta0=0.1)),
        ("plain", LogisticRegression(C=0.01)),
    ]
    ensemble = VotingClassifier(models, voting=voting).fit(X, y)
    # Inside the ensemble the labels are 0, 1, 2: the same training.
    fitted = [clone(model).fit(X, y) for _, model in models]
    if voting == "soft":
        probabilities = np.mean([model.predict_proba(X) for model in fitted], axis=0)
        np.testing.assert_allclose(ensemble.predict_proba(X), probabilities, rtol=1e-12)
        votes = np.argmax(probabilities, axis=1)
    else:
        votes = np.argmax(
            [np.sum([m.predict(X) == c for m in fitted], axis=0) for c in np.unique(y)], axis=0
        )
    np.testing.assert_array_equal(ensemble.predict(X), np.unique(y)[votes])


def test_stacking_regressor(diabetes):
    X, y = diabetes
    models = [("ours", regressor()), ("plain", LinearRegression())]
    stacking = StackingRegressor(models, final_estimator=regressor(eta0=0.1), cv=FOLDS).fit(X, y)
    features = np.column_stack([cross_val_predict(clone(m), X, y, cv=FOLDS) for _, m in models])
    final = regressor(eta0=0.1).fit(features, y)
    features = np.column_stack([clone(m).fit(X, y).predict(X) for _, m in models])
    np.testing.assert_array_equal(stacking.predict(X), final.predict(features))


def test_stacking_classifier(iris):
    X, y = iris
    models = [("ours", classifier()), ("plain", LogisticRegression())]
    stacking = StackingClassifier(models, final_estimator=classifier(eta0=1.0), cv=FOLDS).fit(X, y)
    features = np.column_stack(
        [cross_val_predict(clone(m), X, y, cv=FOLDS, method="predict_proba") for _, m in models]
    )
    final = classifier(eta0=1.0).fit(features, y)
    features = np.column_stack([clone(m).fit(X, y).predict_proba(X) for _, m in models])
    np.testing.assert_array_equal(stacking.predict_proba(X), final.predict_proba(features))
    np.testing.assert_array_equal(stacking.predict(X), final.predict(features))


def test_one_vs_rest(iris):
    X, y = iris
    model = OneVsRestClassifier(classifier()).fit(X, y)
    scores = np.column_stack(
        [classifier().fit(X, (y == c).astype(int)).decision_function(X) for c in np.unique(y)]
    )
    np.testing.assert_array_equal(model.decision_function(X), scores)
    np.testing.assert_array_equal(model.predict(X), np.unique(y)[np.argmax(scores, axis=1)])
    probabilities = expit(scores) / expit(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), probabilities, rtol=1e-5)


def test_multi_output_regressor(diabetes):
    X, y = diabetes
    Y = np.column_stack([y, X[:, 0] - y])
    model = MultiOutputRegressor(regressor()).fit(X, Y)
    by_hand = np.column_stack([regressor().fit(X, Y[:, i]).predict(X) for i in (0, 1)])
    np.testing.assert_array_equal(model.predict(X), by_hand)


def test_multi_output_classifier(iris):
    X, y = iris
    Y = np.column_stack([y, np.where(X[:, 0] > 0, "long", "short")])
    model = MultiOutputClassifier(classifier()).fit(X, Y)
    by_hand = [classifier().fit(X, Y[:, i]) for i in (0, 1)]
    np.testing.assert_array_equal(
        model.predict(X), np.column_stack([m.predict(X) for m in by_hand])
    )
    for probabilities, one in zip(model.predict_proba(X), by_hand, strict=True):
        np.testing.assert_array_equal(probabilities, one.predict_proba(X))


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_bagging_hands_on_sample_weight(iris, sample_weight, kind):
    X, y = iris
    if kind == "regression":
        bagging, plain, y = (
            BaggingRegressor(regressor(), 3, random_state=0),
            regressor(),
            X[:, 0] + X[:, 1] ** 2,
        )
    else:
        bagging, plain = BaggingClassifier(classifier(), 3, random_state=0), classifier()
    bagging.fit(X, y, sample_weight=sample_weight)
    predictions = []
    for estimator, rows in zip(bagging.estimators_, bagging.estimators_samples_, strict=True):
        by_hand = clone(plain).set_params(random_state=estimator.random_state)
        # Up to 1.7 the weights of a draw are its counts times the sample weights, later the draw
        # follows the weights.
        counts = np.bincount(rows, minlength=len(X))
        if not bagging_draws_by_weight():
            counts = counts * sample_weight
        by_hand.fit(X, y, sample_weight=counts)
        predictions.append(by_hand.predict(X) if kind == "regression" else by_hand.predict_proba(X))
    whole = bagging.predict(X) if kind == "regression" else bagging.predict_proba(X)
    np.testing.assert_allclose(whole, np.mean(predictions, axis=0), rtol=1e-6)
    unweighted = clone(bagging).fit(X, y)
    other = unweighted.predict(X) if kind == "regression" else unweighted.predict_proba(X)
    assert np.abs(whole - other).max() > 1e-3


def bagging_draws_by_weight():
    return tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)


def test_calibration(binary):
    X, y = binary
    model = CalibratedClassifierCV(classifier(), method="sigmoid", cv=FOLDS, ensemble=False).fit(
        X, y
    )
    scores = cross_val_predict(classifier(), X, y, cv=FOLDS, method="decision_function")
    calibrator = model.calibrated_classifiers_[0].calibrators[0]
    expected = type(calibrator)().fit(scores, y)
    np.testing.assert_allclose(
        [calibrator.a_, calibrator.b_], [expected.a_, expected.b_], rtol=1e-10
    )
    by_hand = expected.predict(classifier().fit(X, y).decision_function(X))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], by_hand, rtol=1e-10)


def test_transformed_target(diabetes):
    X, y = diabetes
    model = TransformedTargetRegressor(regressor(), func=np.log, inverse_func=np.exp).fit(X, y)
    np.testing.assert_allclose(
        model.predict(X), np.exp(regressor().fit(X, np.log(y)).predict(X)), rtol=1e-12
    )


def test_permutation_importance_of_a_linear_model(diabetes):
    X, y = diabetes
    model = regressor(max_iter=50).fit(X, y)
    result = permutation_importance(
        model, X, y, scoring="neg_mean_squared_error", n_repeats=20, random_state=0, n_jobs=2
    )
    # E[MSE permuted - MSE] of feature j: 2 w_j cov(x_j, residual) + 2 w_j^2 var(x_j)
    residual = y - model.predict(X)
    expected = 2 * model.coef_ * (X.T @ residual) / len(X) + 2 * model.coef_**2
    np.testing.assert_allclose(result.importances_mean, expected, atol=0.02)


def test_routed_sample_weight(iris, sample_weight):
    X, y = iris
    by_hand = classifier().fit(StandardScaler().fit_transform(X), y, sample_weight=sample_weight)
    with sklearn.config_context(enable_metadata_routing=True):
        ours = (
            classifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        )
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), ours)
        pipeline.fit(X, y, sample_weight=sample_weight)
        np.testing.assert_array_equal(
            pipeline.predict_proba(X), by_hand.predict_proba(StandardScaler().fit_transform(X))
        )
        search = GridSearchCV(ours, {"eta0": [0.1]}, cv=FOLDS).fit(
            X, y, sample_weight=sample_weight
        )
    scores = []
    for train, test in FOLDS.split(X):
        model = classifier(eta0=0.1).fit(X[train], y[train], sample_weight=sample_weight[train])
        scores.append(model.score(X[test], y[test], sample_weight=sample_weight[test]))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], [np.mean(scores)], rtol=1e-12)
    np.testing.assert_array_equal(
        search.predict_proba(X),
        classifier(eta0=0.1).fit(X, y, sample_weight=sample_weight).predict_proba(X),
    )


def test_sample_weight_that_is_not_requested_is_refused(iris, sample_weight):
    X, y = iris
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False), classifier()
        )
        with pytest.raises(ValueError, match="sample_weight"):
            pipeline.fit(X, y, sample_weight=sample_weight)
