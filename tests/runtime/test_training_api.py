"""
Gradient graphs and sessions for training against rules on paper,
also where they would silently go wrong.
"""

import gc
import weakref

import numpy as np
import onnx
import onnx.parser
import pytest

from skort.runtime.installed import training_api
from skort.runtime.sessions import inference_session
from skort.runtime.training_api import (
    BoundTrainingAgent,
    BoundTrainingSession,
    SessionOptimizer,
    gradient_graph,
    training_session,
)

needs_agent = pytest.mark.skipif(
    "TrainingAgent" not in training_api(), reason="this runtime has no TrainingAgent"
)
needs_session = pytest.mark.skipif(
    "TrainingSession" not in training_api(), reason="this runtime has no TrainingSession"
)

# J = sum(X W): the yielded value is a scalar, as BoundTrainingAgent needs it.
MODEL = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
sum (float[3, 2] X) => (float J) <float[2, 1] W = {1, 2}, float[1] b = {0}, float[1] frozen = {5}>
{
    product = MatMul (X, W)
    shifted = Add (product, b)
    moved = Add (shifted, frozen)
    J = ReduceSum <keepdims = 0> (moved)
}""")


@needs_agent
def test_trained_weights_become_inputs_and_gradients_outputs():
    graph = onnx.load_from_string(gradient_graph(MODEL.SerializeToString(), ["b", "W"]))
    assert {i.name for i in graph.graph.input} == {"X", "W", "b"}
    assert {o.name for o in graph.graph.output} == {"W_grad", "b_grad"}


@needs_agent
def test_the_arrays_are_kept_alive():
    graph = gradient_graph(MODEL.SerializeToString(), ["b", "W"])

    def make():
        inputs = {
            "X": np.ones((3, 2), np.float32),
            "W": np.ones((2, 1), np.float32),
            "b": np.ones(1, np.float32),
        }
        outputs = {"W_grad": np.zeros((2, 1), np.float32), "b_grad": np.zeros(1, np.float32)}
        arrays = [weakref.ref(array) for array in (*inputs.values(), *outputs.values())]
        return BoundTrainingAgent(inference_session(graph), inputs, outputs), arrays

    agent, arrays = make()
    gc.collect()
    assert all(array() is not None for array in arrays)
    assert agent.run() == 3 * (2 + 1 + 5)


@needs_agent
def test_runs_read_and_write_the_arrays_in_place():
    graph = gradient_graph(MODEL.SerializeToString(), ["b", "W"])
    X, W, b = np.zeros((3, 2), np.float32), np.zeros((2, 1), np.float32), np.zeros(1, np.float32)
    gradients = {"W_grad": np.zeros((2, 1), np.float32), "b_grad": np.zeros(1, np.float32)}
    agent = BoundTrainingAgent(inference_session(graph), {"X": X, "W": W, "b": b}, gradients)
    rng = np.random.default_rng(0)
    for _ in range(5):
        gc.collect()
        X[...] = rng.normal(size=X.shape)
        W[...] = rng.normal(size=W.shape)
        b[...] = rng.normal()
        np.testing.assert_allclose(agent.run(), (X @ W + b + 5).sum(), rtol=1e-5)
        np.testing.assert_allclose(
            gradients["W_grad"], X.sum(axis=0)[:, None], rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(gradients["b_grad"], [3])


def bound(model, trainable, inputs):
    session = training_session(model, trainable, SessionOptimizer())
    return BoundTrainingSession(session, ["J"], trainable, inputs, SessionOptimizer())


# J = sum((X W + b)^2) / 2. W and b are small enough to be merged with other constants, were they
# not listed as inputs.
HALF_SQUARE = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
half_square (float[3, 2] X) => (float J) <float[2, 1] W = {1, 2}, float[1] b = {0.5}>
{
    product = MatMul (X, W)
    score = Add (product, b)
    square = Mul (score, score)
    sum = ReduceSum <keepdims = 0> (square)
    half = Constant <value = float {0.5}> ()
    J = Mul (half, sum)
}""")


@needs_session
def test_every_step_sees_the_weights_of_the_step_before():
    X = np.array([[1, 0], [0.5, 1], [-1, 2]], dtype=np.float32)
    session = bound(HALF_SQUARE, ["W", "b"], {"X": X})
    W, b, eta = np.array([[1.0], [2.0]]), np.array([0.5]), 0.05
    for _ in range(10):
        score = X @ W + b
        assert session.run(eta) == pytest.approx(0.5 * (score**2).sum(), rel=1e-5)
        W, b = W - eta * X.T @ score, b - eta * score.sum(axis=0)
    np.testing.assert_allclose(session.state()["weights"]["W"], W, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(session.state()["weights"]["b"], b, rtol=1e-4, atol=1e-6)


# J = sum((X W W + b)^2) / 2: the gradient that comes to the first W goes through the second one.
TIED = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
half_square (float[3, 2] X) => (float J) <float[2, 2] W = {1, 2, -1, 0.5},
float[1, 2] b = {0.5, -1}>
{
    hidden = MatMul (X, W)
    product = MatMul (hidden, W)
    score = Add (product, b)
    square = Mul (score, score)
    sum = ReduceSum <keepdims = 0> (square)
    half = Constant <value = float {0.5}> ()
    J = Mul (half, sum)
}""")


@needs_session
def test_gradients_go_through_weights_as_they_were_before_the_step():
    X = np.array([[1, 0], [0.5, 1], [-1, 2]], dtype=np.float32)
    session = bound(TIED, ["W", "b"], {"X": X})
    W, b, eta = np.array([[1.0, 2.0], [-1.0, 0.5]]), np.array([[0.5, -1.0]]), 0.01
    for _ in range(10):
        hidden = X @ W
        score = hidden @ W + b
        assert session.run(eta) == pytest.approx(0.5 * (score**2).sum(), rel=1e-5)
        W, b = W - eta * (hidden.T @ score + X.T @ (score @ W.T)), b - eta * score.sum(axis=0)
    np.testing.assert_allclose(session.state()["weights"]["W"], W, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(session.state()["weights"]["b"], b, rtol=1e-4, atol=1e-6)


# J = sum((X U V)^2) / 2, where V is W under another name, or in another shape.
RENAMED = """
<ir_version: 8, opset_import: ["" : 17]>
half_square (float[3, 2] X) => (float J) <float[2, 2] U = {1, 2, -1, 0.5},
float[2, 2] W = {0.5, -1, 1, 1}>
{
    hidden = MatMul (X, U)
    V = %s
    score = MatMul (hidden, V)
    square = Mul (score, score)
    sum = ReduceSum <keepdims = 0> (square)
    half = Constant <value = float {0.5}> ()
    J = Mul (half, sum)
}"""


@needs_session
@pytest.mark.parametrize("same", ["Identity (W)", "Flatten (W)"])
def test_gradients_go_through_weights_under_other_names_as_they_were_before_the_step(same):
    X = np.array([[1, 0], [0.5, 1], [-1, 2]], dtype=np.float32)
    session = bound(onnx.parser.parse_model(RENAMED % same), ["W", "U"], {"X": X})
    U, W, eta = np.array([[1.0, 2.0], [-1.0, 0.5]]), np.array([[0.5, -1.0], [1.0, 1.0]]), 0.01
    for _ in range(10):
        hidden = X @ U
        score = hidden @ W
        assert session.run(eta) == pytest.approx(0.5 * (score**2).sum(), rel=1e-5)
        U, W = U - eta * X.T @ (score @ W.T), W - eta * hidden.T @ score
    np.testing.assert_allclose(session.state()["weights"]["U"], U, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(session.state()["weights"]["W"], W, rtol=1e-4, atol=1e-6)


@needs_session
def test_the_arrays_of_a_session_are_kept_alive():
    def make():
        X = np.zeros((3, 2), dtype=np.float32)
        return bound(HALF_SQUARE, ["W", "b"], {"X": X}), weakref.ref(X)

    session, X = make()
    gc.collect()
    assert X() is not None
    assert session.run(0.0) == 0.5 * 3 * 0.5**2


@needs_session
def test_weights_are_copies():
    session = bound(HALF_SQUARE, ["W", "b"], {"X": np.ones((3, 2), np.float32)})
    before = session.state()["weights"]
    np.testing.assert_array_equal(before["W"], [[1], [2]])
    session.run(0.1)
    np.testing.assert_array_equal(before["W"], [[1], [2]])
    assert session.state()["weights"]["W"][0, 0] != 1


@needs_session
def test_training_graph_ends_in_the_updates():
    from skort.runtime.training_api import SessionOptimizer, training_graph

    graph = training_graph(HALF_SQUARE, ["W", "b"], SessionOptimizer()).graph
    assert [node.op_type for node in graph.node].count("SGDOptimizer") == 2
    assert "Learning_Rate" in {i.name for i in graph.input}
