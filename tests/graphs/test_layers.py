"""Tests of networks whose layers get one size."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDRegressor
from skort.graphs.initialization import fitted_score_graph
from skort.graphs.layers import balanced, last_layers


def network(activation="relu", hidden=(7, 5)):
    """Return a network with a large first and a small last layer."""
    X, y = make_friedman1(83, random_state=0)
    model = MLPRegressor(hidden_layer_sizes=hidden, activation=activation, max_iter=1)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        model.set_params(random_state=0).fit(X, y)
    model.coefs_[0] *= 300
    model.coefs_[-1] /= 5000
    return model, X


def size(matrix):
    """Return the root mean square of a matrix over that of Glorot and Bengio's weights."""
    return np.sqrt(np.mean(matrix**2) / (2 / sum(matrix.shape)))


def test_layers_get_one_size_and_the_function_stays_to_the_bit():
    model, X = network()
    before = fitted_score_graph(model, np.float64)
    after = balanced(before, before.trained_arrays)
    names = before.weight_names

    sizes = [size(after.arrays[name]) for name in names.coefficients]
    factors = [after.arrays[name] / before.arrays[name] for name in names.coefficients]
    of_intercepts = [after.arrays[name] / before.arrays[name] for name in names.intercepts]

    # Powers of two come within a factor of 2 ** 1.5 of each other: the last one closes the product.
    assert max(sizes) / min(sizes) < 2**2
    assert np.prod([factor.flat[0] for factor in factors]) == 1
    assert [np.ptp(factor) for factor in (*factors, *of_intercepts)] == [0] * 6
    np.testing.assert_array_equal(
        [factor.flat[0] for factor in of_intercepts],
        np.cumprod([factor.flat[0] for factor in factors]),
    )

    for layer, coefs in enumerate(model.coefs_):
        model.coefs_[layer] = coefs * factors[layer].flat[0]
        model.intercepts_[layer] = model.intercepts_[layer] * of_intercepts[layer].flat[0]
    np.testing.assert_array_equal(model.predict(X), network()[0].predict(X))


@pytest.mark.parametrize(("activation", "n_layers"), [("relu", 3), ("identity", 3), ("tanh", 1)])
def test_a_layer_is_divided_only_behind_a_homogeneous_function(activation, n_layers):
    score_graph = fitted_score_graph(network(activation)[0])
    assert len(last_layers(score_graph)) == n_layers
    if n_layers == 1:
        assert balanced(score_graph, score_graph.trained_arrays) is score_graph


def test_a_frozen_layer_stays():
    score_graph = fitted_score_graph(network()[0])
    _, middle, _ = score_graph.weight_names.coefficients
    others = [name for name in score_graph.weight_names.names if name != middle]
    assert len(last_layers(score_graph.training_only(others))) == 1


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_network_that_was_fitted_on_large_y_stays_good(method):
    X, y = make_friedman1(2037, noise=1, random_state=0)
    y = 20_000 * y
    network = MLPRegressor(
        hidden_layer_sizes=(30,), learning_rate_init=0.2, max_iter=200, random_state=0
    )
    old = make_pipeline(StandardScaler(), network)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        old.fit(X[:800], y[:800])

    options = {"early_stopping": False} if method == "fit" else {}
    new = OrtSGDRegressor(FrozenEstimator(old), random_state=0, **options)
    getattr(new, method)(X[800:1101], y[800:1101])
    assert new.score(X[1101:], y[1101:]) > old.score(X[1101:], y[1101:]) - 0.01
