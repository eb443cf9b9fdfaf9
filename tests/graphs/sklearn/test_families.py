"""Stand-ins against what scikit-learn itself starts from."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort.graphs.sklearn.families import initial_stand_in


@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
@pytest.mark.parametrize("hidden", [(), (5,), 5, (6, 4), [3]])
def test_neural_networks_start_where_scikit_learns_do(hidden, activation, rng):
    X, y = rng.normal(size=(8, 3)), rng.normal(size=(8, 2))
    # A learning rate of almost zero: after one step the weights are still the initial ones.
    theirs = MLPRegressor(
        hidden_layer_sizes=hidden,
        activation=activation,
        solver="sgd",
        learning_rate_init=1e-300,
        random_state=7,
    ).partial_fit(X, y)
    ours = initial_stand_in(
        MLPRegressor(hidden_layer_sizes=hidden, activation=activation),
        3,
        2,
        np.random.RandomState(7),
    )
    for a, b in zip(
        ours.coefs_ + ours.intercepts_, theirs.coefs_ + theirs.intercepts_, strict=True
    ):
        np.testing.assert_array_equal(a, b)
    X_test = rng.normal(size=(4, 3))
    np.testing.assert_array_equal(ours.predict(X_test), theirs.predict(X_test))


def test_a_classifiers_raw_score_is_a_regressors_prediction(rng):
    template = initial_stand_in(
        MLPClassifier(hidden_layer_sizes=(4,)), 3, 1, np.random.RandomState(0)
    )
    X = rng.normal(size=(5, 3))
    hidden = np.maximum(X @ template.coefs_[0] + template.intercepts_[0], 0)
    np.testing.assert_allclose(
        template.predict(X), (hidden @ template.coefs_[1] + template.intercepts_[1]).ravel()
    )


@pytest.mark.parametrize("model", [LinearRegression(), LogisticRegression()])
def test_linear_models_start_at_zero(model):
    template = initial_stand_in(model, 4, 3, np.random.RandomState(0))
    np.testing.assert_array_equal(template.coef_, np.zeros((3, 4)))
    np.testing.assert_array_equal(template.predict(np.ones((2, 4))), np.zeros((2, 3)))
