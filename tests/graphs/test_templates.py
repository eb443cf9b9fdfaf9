"""Stand-ins against what scikit-learn itself starts from."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, LogisticRegressionCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import SVC

from skort.exceptions import NotTrainableError
from skort.graphs.templates import check_trainable, score_template


@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
@pytest.mark.parametrize("hidden", [(), (5,), 5, (6, 4), [3]])
def test_neural_networks_start_where_scikit_learns_do(hidden, activation, rng):
    X, y = rng.normal(size=(8, 3)), rng.normal(size=(8, 2))
    # A learning rate of almost zero: after one step the weights are still the initial ones.
    theirs = MLPRegressor(
        hidden_layer_sizes=hidden, activation=activation, solver="sgd", learning_rate_init=1e-300, random_state=7
    ).partial_fit(X, y)
    ours = score_template(
        MLPRegressor(hidden_layer_sizes=hidden, activation=activation), 3, 2, np.random.RandomState(7)
    )
    for a, b in zip(ours.coefs_ + ours.intercepts_, theirs.coefs_ + theirs.intercepts_, strict=True):
        np.testing.assert_array_equal(a, b)
    X_test = rng.normal(size=(4, 3))
    np.testing.assert_array_equal(ours.predict(X_test), theirs.predict(X_test))


def test_a_classifiers_raw_score_is_a_regressors_prediction(rng):
    template = score_template(MLPClassifier(hidden_layer_sizes=(4,)), 3, 1, np.random.RandomState(0))
    X = rng.normal(size=(5, 3))
    hidden = np.maximum(X @ template.coefs_[0] + template.intercepts_[0], 0)
    np.testing.assert_allclose(template.predict(X), (hidden @ template.coefs_[1] + template.intercepts_[1]).ravel())


@pytest.mark.parametrize("model", [LinearRegression(), LogisticRegression()])
def test_linear_models_start_at_zero(model):
    template = score_template(model, 4, 3, np.random.RandomState(0))
    np.testing.assert_array_equal(template.coef_, np.zeros((3, 4)))
    np.testing.assert_array_equal(template.predict(np.ones((2, 4))), np.zeros((2, 3)))


class OwnRegressor(RegressorMixin, BaseEstimator):
    pass


class ExponentialRegression(LinearRegression):
    def predict(self, X):
        return np.exp(super().predict(X))


@pytest.mark.parametrize(
    "model, message",
    [
        (RandomForestRegressor(), "RandomForestRegressor cannot be trained"),
        (SVC(), "SVC cannot be trained"),
        (OwnRegressor(), "OwnRegressor cannot be trained"),
        (ExponentialRegression(), "ExponentialRegression cannot be trained"),
        (LogisticRegressionCV(), "LogisticRegressionCV cannot be trained"),
        (LinearRegression(positive=True), r"LinearRegression\(positive=True\) cannot be trained"),
        (
            LogisticRegression(class_weight="balanced"),
            r"LogisticRegression\(class_weight='balanced'\) .* give fit a sample_weight",
        ),
    ],
)
def test_models_that_cannot_be_trained_are_named(model, message):
    with pytest.raises(NotTrainableError, match=message):
        check_trainable(model)


def test_poisson_networks_are_refused():
    model = MLPRegressor()
    if "loss" not in model.get_params():
        pytest.skip("this scikit-learn has no MLPRegressor(loss=)")
    with pytest.raises(NotTrainableError, match=r"MLPRegressor\(loss='poisson'\)"):
        check_trainable(model.set_params(loss="poisson"))


@pytest.mark.parametrize("hidden", [(3, 0), (-1,), (5.0,), (True,), "5"])
def test_layers_are_of_whole_units(hidden):
    with pytest.raises(ValueError, match=r"'?hidden_layer_sizes'? .*MLPRegressor must be"):
        check_trainable(MLPRegressor(hidden_layer_sizes=hidden))


def test_parameters_of_the_model_are_validated_by_scikit_learn():
    with pytest.raises(ValueError, match="'activation' parameter of MLPRegressor"):
        check_trainable(MLPRegressor(activation="swish"))
