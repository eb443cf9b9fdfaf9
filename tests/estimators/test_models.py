"""
Every model that can be trained: the estimator,
the ONNX file and scikit-learn's own model predict the same.
"""

import numpy as np
import pytest
from sklearn.base import RegressorMixin, clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_diabetes, load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RANSACRegressor, Ridge, TweedieRegressor
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.graphs.initialization import FAMILY, has_log_link
from skort.objective.sklearn_objectives import SEARCHES
from skort.runtime.installed import load

X, Y = load_diabetes(return_X_y=True)
X, Y = X / X.std(axis=0), (Y - Y.mean()) / Y.std()
WINES, KINDS = load_wine(return_X_y=True)
WINES = (WINES - WINES.mean(axis=0)) / WINES.std(axis=0)
NAMES = np.array(["barolo", "grignolino", "barbera"])[KINDS]

# PassiveAggressive* warn that they will go; what a peer makes of its own defaults is not
# the matter here.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:Early stopping the lars path"),
    pytest.mark.filterwarnings("ignore:Regressors in active set degenerate"),
    pytest.mark.filterwarnings("ignore:estimator. .* is trained "),
]

TYPES = sorted([*FAMILY, RANSACRegressor], key=lambda type: type.__name__)
# Those that search for their own penalty are trained when they are fitted only.
ALL_REGRESSORS = [t for t in TYPES if issubclass(t, RegressorMixin)]
SEARCHED = [t for t in TYPES if t in SEARCHES]
REGRESSORS = [t for t in TYPES if issubclass(t, RegressorMixin) and t not in SEARCHED]
CLASSIFIERS = [t for t in TYPES if not issubclass(t, RegressorMixin) and t not in SEARCHED]


def regression_targets(model_class):
    if model_class.__name__.startswith("MultiTask") or model_class.__name__ in (
        "CCA",
        "PLSCanonical",
    ):
        return np.column_stack([Y, Y**2])
    return np.exp(Y / 2) if has_log_link(model_class()) else Y


def served(estimator, X):
    session = load().InferenceSession(
        estimator.onnx_.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"X": X.astype(estimator.dtype)})[0]


@pytest.mark.slow
@pytest.mark.parametrize("model_class", REGRESSORS, ids=lambda t: t.__name__)
def test_regressors(model_class, solver):
    y = regression_targets(model_class)
    estimator = OrtSGDRegressor(
        model_class(), solver=solver, max_iter=20, tol=None, random_state=0
    ).fit(X, y)
    prediction = estimator.predict(X)
    # Of small models, the weights are inputs here and constants there: products are
    # rounded otherwise.
    np.testing.assert_allclose(
        served(estimator, X).reshape(prediction.shape), prediction, rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(estimator.to_sklearn().predict(X), prediction, rtol=1e-5, atol=1e-5)
    assert type(estimator.to_sklearn()) is model_class
    if model_class is not MLPRegressor:
        # The raw score is linear, and the first half of the data are worth what the
        # model says of them.
        score = X @ estimator.coef_.T + estimator.intercept_
        expected = np.exp(score) if has_log_link(model_class()) else score
        np.testing.assert_allclose(
            prediction, expected.reshape(prediction.shape), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("model_class", SEARCHED, ids=lambda t: t.__name__)
def test_a_search_for_a_penalty_is_refused_where_it_is_not_fitted(model_class):
    is_regressor = issubclass(model_class, RegressorMixin)
    estimator = (OrtSGDRegressor if is_regressor else OrtSGDClassifier)(model_class())
    with pytest.raises(
        ValueError, match=rf"estimator={model_class.__name__} chooses (alpha|C) in its own fit"
    ):
        estimator.fit(
            X if is_regressor else WINES, regression_targets(model_class) if is_regressor else KINDS
        )


ONE_COLUMN = [Ridge(), PLSRegression(n_components=1), RANSACRegressor()]


@pytest.mark.parametrize("model", ONE_COLUMN, ids=lambda model: type(model).__name__)
def test_one_column_of_targets_stays_a_column(model):
    estimator = OrtSGDRegressor(model, max_iter=20, tol=None).fit(X, Y[:, None])
    assert estimator.predict(X).shape == (len(X), 1)
    np.testing.assert_allclose(
        estimator.to_sklearn().predict(X), estimator.predict(X), rtol=1e-5, atol=1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize("y", [KINDS, NAMES, KINDS > 0], ids=["ints", "names", "two"])
@pytest.mark.parametrize("model_class", CLASSIFIERS, ids=lambda t: t.__name__)
def test_classifiers(model_class, y, solver):
    estimator = OrtSGDClassifier(
        model_class(), solver=solver, max_iter=5, tol=None, random_state=0
    ).fit(WINES, y)
    prediction = estimator.predict(WINES)
    assert (prediction == y).mean() > 0.8
    np.testing.assert_array_equal(served(estimator, WINES), prediction)
    plain = estimator.to_sklearn()
    assert type(plain) is model_class
    np.testing.assert_array_equal(plain.predict(WINES), prediction)
    np.testing.assert_array_equal(plain.classes_, np.unique(y))
    if hasattr(plain, "decision_function"):
        scores = estimator.decision_function(WINES)
        np.testing.assert_allclose(plain.decision_function(WINES), scores, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("model_class", ALL_REGRESSORS, ids=lambda t: t.__name__)
def test_fitted_regressors_keep_their_weights(model_class):
    y = regression_targets(model_class)
    fitted = clone(model_class()).fit(X, y)
    frozen = OrtSGDRegressor(
        FrozenEstimator(fitted), dtype="float64", eta0=1e-15, max_iter=1, tol=None
    ).fit(X, y)
    np.testing.assert_allclose(frozen.predict(X), fitted.predict(X), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        frozen.to_sklearn().predict(X), fitted.predict(X), rtol=1e-8, atol=1e-8
    )


@pytest.mark.slow
@pytest.mark.parametrize("y", [KINDS, KINDS > 0], ids=["three", "two"])
@pytest.mark.parametrize(
    "model_class", [t for t in TYPES if not issubclass(t, RegressorMixin)], ids=lambda t: t.__name__
)
def test_fitted_classifiers_keep_their_weights(model_class, y):
    fitted = clone(model_class()).fit(WINES, y)
    frozen = OrtSGDClassifier(
        FrozenEstimator(fitted), dtype="float64", eta0=1e-15, max_iter=1, tol=None
    )
    for model in (frozen.fit(WINES, y), frozen.to_sklearn()):
        np.testing.assert_array_equal(model.predict(WINES), fitted.predict(WINES))
        if hasattr(fitted, "decision_function"):
            scores = fitted.decision_function(WINES)
            np.testing.assert_allclose(model.decision_function(WINES), scores, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    "power, link, log", [(0, "auto", False), (1.5, "auto", True), (2, "identity", False)]
)
def test_the_link_of_a_tweedie_regression(power, link, log):
    y = np.exp(Y / 2)
    model = OrtSGDRegressor(TweedieRegressor(power=power, link=link), max_iter=3, tol=None).fit(
        X, y
    )
    score = X @ model.coef_ + model.intercept_
    np.testing.assert_allclose(
        model.predict(X), np.exp(score) if log else score, rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(
        model.to_sklearn().predict(X), model.predict(X), rtol=1e-5, atol=1e-6
    )
