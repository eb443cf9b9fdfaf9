"""The files of ONNX Runtime's own generator, which needs torch, train to the same weights."""

import importlib.util
import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
import pytest

from skort.artifacts import OnDeviceTraining, save_training_artifacts
from skort.optimizers import Adam
from skort.runtime.checkpoint_file import release_here
from skort.runtime.installed import training_api

pytestmark = [
    pytest.mark.skipif(
        "Module" not in training_api(), reason="this runtime is no build for training"
    ),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="the generator needs torch"
    ),
]
NETWORK = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
network (float[N, 2] X) => (float[N, 1] output)
<float[2, 2] coef1 = {1, 2, -1, 0.5}, float[2] bias1 = {0.1, 0.2}, float[2, 1] coef2 = {1, -2},
float[1] bias2 = {0.5}>
{ product1 = MatMul (X, coef1)  sum = Add (product1, bias1)  hidden = Tanh (sum)
  product2 = MatMul (hidden, coef2)  output = Add (product2, bias2) }""")
TRAINED = ["coef1", "bias1", "bias2"]
# In a process of its own: `onnxruntime.training` changes the logging.
GENERATOR = """
import sys, onnx
from onnxruntime.training import artifacts
folder, optimizer, *trained = sys.argv[1:]
artifacts.generate_artifacts(
    onnx.load(f"{folder}/network.onnx"), requires_grad=trained, frozen_params=["coef2"],
    loss=artifacts.LossType.MSELoss, optimizer=artifacts.OptimType[optimizer], artifact_directory=folder,
)
# onnxruntime-training 1.16 writes versions that it does not read.
model = onnx.load(f"{folder}/optimizer_model.onnx")
model.ir_version = 8
for opset in model.opset_import:
    opset.version = 17 if opset.domain == "" else opset.version
onnx.save(model, f"{folder}/optimizer_model.onnx")
"""


def trained(folder, X, target):
    training = OnDeviceTraining(folder)
    training.learning_rate = 0.05
    outputs = [
        training.train_step(X[i : i + 10], target[i : i + 10])
        for _ in range(6)
        for i in range(0, 100, 10)
    ]
    return training, [next(iter(output.values())).item() for output in outputs]


@pytest.mark.parametrize("batch_size", [10, None])
@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_60_steps_reach_the_weights_of_the_generators_files(optimizer, batch_size, tmp_path):
    rng = np.random.default_rng(0)
    X, target = (rng.normal(size=(100, n)).astype(np.float32) for n in (2, 1))
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    onnx.save(NETWORK, theirs / "network.onnx")
    subprocess.run(
        [sys.executable, "-c", GENERATOR, theirs, optimizer, *TRAINED],
        check=True,
        capture_output=True,
    )
    # The mean of squares, without the half; the generator's AdamW has another epsilon. It decays
    # weights, which no file of skort does.
    without_decay(theirs / "optimizer_model.onnx")
    own = Adam(**attributes_of(theirs / "optimizer_model.onnx")) if optimizer == "AdamW" else "SGD"
    options = {
        "optimizer": own,
        "trainable": TRAINED,
        "batch_size": batch_size,
        "ort_version": release_here(),
    }
    save_training_artifacts(NETWORK, ours, loss={"output": (2.0, "squared_error")}, **options)
    (first, losses), (second, expected) = trained(ours, X, target), trained(theirs, X, target)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert first.weights().keys() == second.weights().keys() == {*TRAINED}
    for name, weights in second.weights().items():
        np.testing.assert_allclose(first.weights()[name], weights, atol=2e-6)


def without_decay(path):
    model = onnx.load(path)
    for attribute in (
        a for node in model.graph.node for a in node.attribute if a.name == "weight_decay"
    ):
        attribute.f = 0.0
    onnx.save(model, path)


def attributes_of(path):
    node = next(node for node in onnx.load(path).graph.node if node.op_type == "AdamWOptimizer")
    values = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    names = {
        "alpha": "beta_1",
        "beta": "beta_2",
        "epsilon": "epsilon",
        "weight_decay": "weight_decay",
    }
    return {ours: values.get(theirs, 0.0) for theirs, ours in names.items()}
