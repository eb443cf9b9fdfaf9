"""The sessions of forward and backward."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor

from skort.graphs.initial import initial_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.solvers.flat_weights import flat
from skort.solvers.graph.gradient_sessions import GradientSessions


def graph(seed=0):
    model = MLPRegressor(hidden_layer_sizes=(4,))
    return initial_score_graph(model, ScoreSpec(3, 2, np.dtype("float64")), np.random.RandomState(seed))


def test_both_halves_are_the_formula_of_a_layer(rng):
    score_graph = graph()
    sessions, weights = GradientSessions(score_graph), flat(score_graph.weights())
    A, B, a, b = score_graph.arrays.values()
    X, dy = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    inputs = sessions.inputs(X, weights, {})
    pair = sessions.pair(5, input_gradient=True)
    score, saved = sessions.forward(pair, inputs)
    hidden = np.maximum(X @ A + a, 0)
    np.testing.assert_allclose(score, hidden @ B + b)
    np.testing.assert_allclose(sessions.score(inputs), score)
    by_weights, by_X = sessions.backward(pair, dy, inputs, saved)
    d_hidden = (dy @ B.T) * (hidden > 0)
    expected = [X.T @ d_hidden, hidden.T @ dy, d_hidden.sum(0), dy.sum(0)]
    np.testing.assert_allclose(by_weights, np.concatenate([part.ravel() for part in expected]))
    np.testing.assert_allclose(by_X, d_hidden @ A.T)


def test_models_of_one_structure_share_their_sessions():
    first, second = GradientSessions(graph(0)), GradientSessions(graph(1))
    assert first.pair(5, input_gradient=False) is second.pair(5, input_gradient=False)
    assert first.pair(5, input_gradient=False) is not first.pair(6, input_gradient=False)
    assert first.pair(5, input_gradient=False) is not first.pair(5, input_gradient=True)


def test_without_a_gradient_by_X_there_is_none():
    sessions, weights = GradientSessions(graph()), flat(graph().weights())
    inputs, pair = sessions.inputs(np.ones((5, 3)), weights, {}), sessions.pair(5, input_gradient=False)
    _, saved = sessions.forward(pair, inputs)
    assert sessions.backward(pair, np.ones((5, 2)), inputs, saved)[1] is None


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda sessions: pickle.loads(pickle.dumps(sessions))])
def test_a_copy_shares_the_sessions(copied):
    sessions = GradientSessions(graph())
    assert copied(sessions).pair(5, input_gradient=False) is sessions.pair(5, input_gradient=False)
