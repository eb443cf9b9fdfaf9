"""The sessions of forward and backward."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor

from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.solvers.base import flat
from skort.solvers.graph.gradient_sessions import GradientSessions


def graph(seed=0):
    model = MLPRegressor(hidden_layer_sizes=(4,))
    return initial_score_graph(
        model, ScoreSpec(3, 2, np.dtype("float64")), np.random.RandomState(seed)
    )


@pytest.mark.parametrize("input_gradient", [True, False])
def test_both_halves_are_the_formula_of_a_layer(input_gradient, rng):
    score_graph = graph()
    sessions = GradientSessions(score_graph)
    arrays = sessions.arrays(flat(score_graph.weights()), {})
    A, B, a, b = score_graph.arrays.values()
    X, dy = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    pair = sessions.pair(5, input_gradient=input_gradient)
    score, kept = sessions.forward(pair, X, arrays)
    h = np.maximum(X @ A + a, 0)
    np.testing.assert_allclose(score, h @ B + b)
    np.testing.assert_allclose(sessions.score(X, arrays), score)
    by_weights, by_X = sessions.backward(pair, dy, X, arrays, kept)
    dh = (dy @ B.T) * (h > 0)
    expected = [X.T @ dh, h.T @ dy, dh.sum(0), dy.sum(0)]
    np.testing.assert_allclose(
        by_weights, np.concatenate([part.ravel() for part in expected]), atol=1e-12
    )
    if input_gradient:
        np.testing.assert_allclose(by_X, dh @ A.T, atol=1e-12)
    else:
        assert by_X is None


def test_a_backward_reads_only_what_it_needs(rng):
    score_graph = graph().training_only(["coefficient1"])
    sessions, (A, B, a, _) = GradientSessions(score_graph), score_graph.arrays.values()
    arrays = sessions.arrays(B.ravel(), score_graph.frozen_arrays)
    pair = sessions.pair(5, input_gradient=False)
    assert pair.inputs == ()
    X, dy = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    _, kept = sessions.forward(pair, X, arrays)
    by_weights, _ = sessions.backward(pair, dy, X, arrays, kept)
    np.testing.assert_allclose(by_weights.reshape(B.shape), np.maximum(X @ A + a, 0).T @ dy)


def test_models_of_one_structure_share_their_sessions():
    first, second = GradientSessions(graph(0)), GradientSessions(graph(1))
    assert first.pair(5, input_gradient=False) is second.pair(5, input_gradient=False)
    assert first.pair(5, input_gradient=False) is not first.pair(6, input_gradient=False)
    assert first.pair(5, input_gradient=False) is not first.pair(5, input_gradient=True)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda sessions: pickle.loads(pickle.dumps(sessions))]
)
def test_a_copy_shares_the_sessions(copied):
    sessions = GradientSessions(graph())
    assert copied(sessions).pair(5, input_gradient=False) is sessions.pair(5, input_gradient=False)
