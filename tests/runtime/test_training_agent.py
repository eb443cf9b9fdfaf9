"""The gradient graph and its runs, against a product rule on paper."""

import gc
import weakref

import numpy as np
import onnx
import onnx.parser
import pytest

from skort.runtime.installed import training_api
from skort.runtime.sessions import inference_session
from skort.runtime.training_agent import BoundTrainingAgent, gradient_graph

pytestmark = pytest.mark.skipif("TrainingAgent" not in training_api(), reason="this runtime has no TrainingAgent")

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


def test_trained_weights_become_inputs_and_gradients_outputs():
    graph = onnx.load_from_string(gradient_graph(MODEL.SerializeToString(), ["b", "W"]))
    assert {i.name for i in graph.graph.input} == {"X", "W", "b"}
    assert {o.name for o in graph.graph.output} == {"W_grad", "b_grad"}


def test_the_arrays_are_kept_alive():
    graph = gradient_graph(MODEL.SerializeToString(), ["b", "W"])

    def make():
        inputs = {"X": np.ones((3, 2), np.float32), "W": np.ones((2, 1), np.float32), "b": np.ones(1, np.float32)}
        outputs = {"W_grad": np.zeros((2, 1), np.float32), "b_grad": np.zeros(1, np.float32)}
        arrays = [weakref.ref(array) for array in (*inputs.values(), *outputs.values())]
        return BoundTrainingAgent(inference_session(graph), inputs, outputs), arrays

    agent, arrays = make()
    gc.collect()
    assert all(array() is not None for array in arrays)
    assert agent.run() == 3 * (2 + 1 + 5)


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
        np.testing.assert_allclose(gradients["W_grad"], X.sum(axis=0)[:, None], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(gradients["b_grad"], [3])
