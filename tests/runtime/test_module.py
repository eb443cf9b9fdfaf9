"""Module and Optimizer: gradients compared with finite differences."""

import numpy as np
import onnx.parser
import pytest

from skort.artifacts import save_training_artifacts
from skort.runtime.checkpoint_file import release_here
from skort.runtime.device import value_vector
from skort.runtime.installed import training_api
from skort.runtime.module import ModuleSession

pytestmark = pytest.mark.skipif(
    "Module" not in training_api(), reason="this runtime is no build for training"
)
NETWORK = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
network (float[N, 2] X) => (float[N, 1] score) <float[2, 2] coef1 = {1, 2, -1, 0.5},
float[2, 1] coef2 = {1, -2}>
{ product = MatMul (X, coef1)  hidden = Tanh (product)  score = MatMul (hidden, coef2) }""")
X = np.array([[1.0, 0.5], [-0.5, 2.0], [0.25, -1.0]], np.float32)
TARGET = np.array([[1.0], [0.0], [2.0]], np.float32)


def loss(coef1, coef2):
    return np.mean((np.tanh(X @ coef1) @ coef2 - TARGET) ** 2) / 2


@pytest.fixture(params=[3, None])
def session(request, tmp_path):
    options = {"loss": "squared_error", "batch_size": request.param, "ort_version": release_here()}
    save_training_artifacts(NETWORK, tmp_path, **options)
    names = ("training_model.onnx", "checkpoint", "eval_model.onnx", "optimizer_model.onnx")
    return ModuleSession(*(tmp_path / name for name in names))


def test_gradients_are_those_of_finite_differences_and_sgd_follows_them(session):
    before = {name: session.parameter(name).astype(float) for name in ("coef1", "coef2")}
    (value,) = session.add_gradients([X, TARGET])
    assert value == pytest.approx(loss(**before), rel=1e-6)
    gradients = {name: session.gradient(name) for name in before}
    for name, weights in before.items():
        expected = np.zeros_like(weights)
        for i in np.ndindex(weights.shape):
            step = np.zeros_like(weights)
            step[i] = 1e-5
            values = [loss(**before | {name: weights + sign * step}) for sign in (1, -1)]
            expected[i] = (values[0] - values[1]) / 2e-5
        np.testing.assert_allclose(gradients[name], expected, rtol=1e-4, atol=1e-6)
    session.learning_rate = 0.5
    session.update()
    for name, weights in before.items():
        np.testing.assert_allclose(
            session.parameter(name), weights - 0.5 * gradients[name], rtol=1e-6
        )


def test_gradients_add_up_until_an_update(session):
    session.add_gradients([X, TARGET])
    once = session.gradient("coef2")
    session.add_gradients([X, TARGET])
    np.testing.assert_allclose(session.gradient("coef2"), 2 * once, rtol=1e-6)
    session.learning_rate = 0.0
    session.update()
    session.add_gradients([X, TARGET])
    np.testing.assert_allclose(session.gradient("coef2"), once, rtol=1e-6)


def test_bound_arrays_are_read_in_place(session):
    rows = X.copy()
    inputs = value_vector([rows, TARGET])
    (first,) = session.add_gradients_bound(inputs)
    rows[...] = 0
    (second,) = session.add_gradients_bound(inputs)
    assert first == pytest.approx(
        loss(session.parameter("coef1"), session.parameter("coef2")), rel=1e-6
    )
    assert second == pytest.approx(np.mean(TARGET**2) / 2)
