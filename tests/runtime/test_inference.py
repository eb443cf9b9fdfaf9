"""Models that run, also from a copy and from several threads."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import onnx.parser
import pytest

from skort.runtime.device import Device
from skort.runtime.inference import InferenceModel

DOUBLE = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
double (float[N, 2] X) => (float[N, 2] twice, float[N, 2] size) {
    twice = Add (X, X)
    inner = Neg (X)
    size = Abs (inner)
}""")


@pytest.fixture
def model():
    return InferenceModel(DOUBLE)


def test_outputs_by_name(model):
    X = np.array([[1, 2], [3, 4]], dtype=np.float32)
    np.testing.assert_array_equal(model.run("twice", {"X": X}), 2 * X)
    np.testing.assert_array_equal(model.run("size", {"X": -X}), X)


def test_results_inside_the_model():
    X = np.array([[1, 2], [3, 4]], dtype=np.float32)
    model = InferenceModel(DOUBLE, inner_results=("inner",))
    for copied in (model, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copied.run("inner", {"X": X}), -X)
        np.testing.assert_array_equal(copied.run("twice", {"X": X}), 2 * X)
    assert [output.name for output in DOUBLE.graph.output] == ["twice", "size"]


SCALE = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
scale (float[N, 2] X) => (float[N, 2] Y) <float[2] factor = {3, 4}> { Y = Mul (X, factor) }""")


def test_weights_in_place_of_initializers():
    X = np.ones((3, 2), dtype=np.float32)
    model = InferenceModel(SCALE, weights={"factor": np.array([1, 5], np.float32)})
    np.testing.assert_array_equal(model.run("Y", {"X": X}), [[1, 5]] * 3)
    model.weights = {"factor": np.array([7, 8], np.float32)}
    np.testing.assert_array_equal(model.run("Y", {"X": X}), [[7, 8]] * 3)
    np.testing.assert_array_equal(InferenceModel(SCALE).run("Y", {"X": X}), [[3, 4]] * 3)


@pytest.mark.parametrize("used", [False, True])
def test_copies_run(model, used, tmp_path):
    X = np.ones((3, 2), dtype=np.float32)
    if used:
        model.run("twice", {"X": X})
    joblib.dump(model, tmp_path / "model.joblib")
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(copied.run("twice", {"X": X}), 2 * X)


def test_threads_share_a_model(model):
    inputs = [np.full((50, 2), i, dtype=np.float32) for i in range(100)]
    with ThreadPoolExecutor(8) as pool:
        for X, result in zip(inputs, pool.map(lambda X: model.run("twice", {"X": X}), inputs), strict=True):
            np.testing.assert_array_equal(result, 2 * X)


def test_threads_make_the_sessions_of_their_own_devices(model, monkeypatch):
    both = threading.Barrier(2, timeout=10)

    def copied(model):
        both.wait()
        return onnx.ModelProto.FromString(model.SerializeToString())

    monkeypatch.setattr("skort.runtime.inference.copy.deepcopy", copied)
    X = np.ones((3, 2), np.float32)
    devices = [Device(n_threads=n) for n in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        for result in pool.map(lambda device: model.run("twice", {"X": X}, device), devices):
            np.testing.assert_array_equal(result, 2 * X)
    n_threads = [model._sessions[device].get_session_options().intra_op_num_threads for device in devices]
    assert n_threads == [1, 2]
