"""Weights of layers against what scikit-learn itself starts from."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor

from skort.graphs.sklearn.families import fitted_layers, initial_layers, trained_model


@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
@pytest.mark.parametrize("hidden", [(), (5,), 5, (6, 4), [3]])
def test_neural_networks_start_where_scikit_learns_do(hidden, activation, rng):
    X, y = rng.normal(size=(8, 3)), rng.normal(size=(8, 2))
    # A learning rate of almost zero: after one step the weights are still the initial ones.
    theirs = MLPRegressor(
        hidden_layer_sizes=hidden, activation=activation, solver="sgd", learning_rate_init=1e-300, random_state=7
    ).partial_fit(X, y)
    model = MLPRegressor(hidden_layer_sizes=hidden, activation=activation)
    ours = initial_layers(model, 3, 2, np.random.RandomState(7))
    assert (ours.n_outputs, ours.activation) == (2, activation)
    for a, b in zip(ours.coefs + ours.intercepts, theirs.coefs_ + theirs.intercepts_, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(fitted_layers(theirs).coefs, theirs.coefs_, strict=True):
        np.testing.assert_array_equal(a, b)
    X_test, copy = rng.normal(size=(4, 3)), trained_model(model, ours.coefs, ours.intercepts)
    np.testing.assert_array_equal(copy.predict(X_test), theirs.predict(X_test))


@pytest.mark.parametrize("model", [LinearRegression(), LogisticRegression()])
def test_linear_models_start_at_zero(model):
    layers = initial_layers(model, 4, 3, np.random.RandomState(0))
    np.testing.assert_array_equal(layers.coefs, np.zeros((1, 4, 3)))
    np.testing.assert_array_equal(layers.intercepts, np.zeros((1, 3)))
    assert initial_layers(model.set_params(fit_intercept=False), 4, 3, np.random.RandomState(0)).intercepts == []
