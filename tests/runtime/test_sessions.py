"""Settings of sessions, models that run, runs that go on from each other, and what errors say."""

import copy
import gc
import pickle
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import joblib
import numpy as np
import onnx.parser
import pytest

from skort.runtime.device import Device
from skort.runtime.sessions import (
    ArraySession,
    InferenceModel,
    RecordedSession,
    StepSession,
    compiled,
    io_binding,
    norm_on,
    session_options,
    short_message,
)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_threads(n_threads):
    options = session_options(Device(n_threads=n_threads))
    assert options.intra_op_num_threads == n_threads
    assert options.inter_op_num_threads == 1
    # Awake inside of a run, asleep between runs.
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "1"
    assert options.get_session_config_entry("session.force_spinning_stop") == "1"


MODEL = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
graph (float[2, 2] x, float[2] v) => (float[2, 2] sum, float[2, 2] product)
{ sum = Add (x, v)  product = Mul (x, v) }""")


@pytest.fixture
def session():
    return ArraySession(MODEL.SerializeToString())


def test_run_gives_new_arrays_in_the_order_asked_for(session):
    x, v = np.array([[1, 2], [3, 4]], np.float32), np.array([10, 100], np.float32)
    product, total = session.run(["product", "sum"], {"x": x, "v": v})
    np.testing.assert_array_equal(product, [[10, 200], [30, 400]])
    np.testing.assert_array_equal(total, [[11, 102], [13, 104]])
    (again,) = session.run(["sum"], {"x": 0 * x, "v": v})
    np.testing.assert_array_equal(total, [[11, 102], [13, 104]])
    np.testing.assert_array_equal(again, [[10, 100], [10, 100]])


def test_threads_share_a_session(session):
    def run(k):
        x, v = np.full((2, 2), k, np.float32), np.ones(2, np.float32)
        for _ in range(200):
            total, product = session.run(["sum", "product"], {"x": x, "v": v})
            assert (total == k + 1).all()
            assert (product == k).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(8)))


# a, b -> b, a + b x
FIBONACCI = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
fibonacci (double[2] a, double[2] b, double x) => (double[2] a_next, double[2] b_next, double sum)
{
    a_next = Identity (b)
    scaled = Mul (b, x)
    b_next = Add (a, scaled)
    sum = ReduceSum <keepdims = 0> (b_next)
}""").SerializeToString()


def make(session=None):
    x, total = np.ones(()), np.zeros(())
    start = {"a": np.zeros(2), "b": np.array([1.0, 2.0])}
    return (
        StepSession(session or compiled(FIBONACCI), {"x": x}, {"sum": total}, start),
        x,
        total,
        start,
    )


def test_every_run_goes_on_from_the_one_before():
    session, x, total, start = make()
    for expected in (1, 2, 3, 5, 8):
        session.run()
        np.testing.assert_array_equal(session.state["b"], [expected, 2 * expected])
        assert total == 3 * expected
    x[...] = 10
    session.run()
    np.testing.assert_array_equal(session.state["b"], [5 + 80, 10 + 160])
    np.testing.assert_array_equal(start["b"], [1, 2])


def test_sessions_of_one_graph_go_on_by_themselves_in_threads_too():
    shared = compiled(FIBONACCI)
    made = [make(shared) for _ in range(20)]

    def run(i):
        session, x, *_ = made[i]
        x[...] = i
        for _ in range(3):
            session.run()
        return session.state["b"]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(run, range(20)))
    for x, result in enumerate(results):
        a, b = 0, np.array([1, 2])
        for _ in range(3):
            a, b = b, a + x * b
        np.testing.assert_array_equal(result, b)


def test_what_is_written_into_the_state_counts():
    session, *_ = make()
    session.run()
    session.state["a"][...] = 100
    session.run()
    np.testing.assert_array_equal(session.state["b"], [101, 102])


def test_the_arrays_are_kept_alive():
    def kept():
        session, x, total, _ = make()
        return session, [weakref.ref(x), weakref.ref(total)]

    session, arrays = kept()
    gc.collect()
    assert all(array() is not None for array in arrays)
    session.run()
    np.testing.assert_array_equal(session.state["b"], [1, 2])


def test_an_array_that_is_replaced_is_read_before_the_first_run_and_after_it():
    session, *_ = make()
    session.replace("x", np.array(10.0))
    for expected in (0 + 10 * 1, 1 + 10 * 10):
        session.run()
        np.testing.assert_array_equal(session.state["b"], [expected, 2 * expected])
    session.replace("x", np.array(0.0))
    session.run()
    np.testing.assert_array_equal(session.state["b"], [10, 20])


def test_parts_of_the_state_are_read_where_they_are():
    model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
shift (double[2] a, double[1] last) => (double[2] a_next)
{
    a_next = Add (a, last)
}""").SerializeToString()
    start = {"a": np.array([0.0, 1.0])}
    session = StepSession(
        compiled(model), {}, {}, start, parts=lambda state: {"last": state["a"][1:]}
    )
    for expected in ([1, 2], [3, 4], [7, 8]):
        session.run()
        np.testing.assert_array_equal(session.state["a"], expected)


def test_the_same_runs_on_a_device_with_memory_of_its_own():
    device = Device(is_remote=True)
    x, total = device.put(np.ones(())), device.put(np.zeros(()))
    start = {"a": np.zeros(2), "b": np.array([1.0, 2.0])}
    session = StepSession(compiled(FIBONACCI), {"x": x}, {"sum": total}, start, device=device)
    for expected in (1, 2, 3):
        session.run()
        np.testing.assert_array_equal(device.get(session.state["b"]), [expected, 2 * expected])
        assert device.get(total) == 3 * expected
    session.replace("x", device.put(np.array(10.0)))
    for expected in (2 + 30, 3 + 320):
        session.run()
        np.testing.assert_array_equal(device.get(session.state["b"]), [expected, 2 * expected])
    np.testing.assert_array_equal(start["b"], [1, 2])


def test_runs_are_recorded_when_they_are_made_often_with_the_same_arrays(monkeypatch):
    # The CPU reads no numbers of records, and makes the runs.
    device = Device(is_remote=True)
    runtime = compiled(FIBONACCI)
    released, records = [], []
    runtime.release_captured_graph = released.append
    run = runtime._sess.run_with_iobinding

    def noted(binding, options):
        records.append(int(options.get_run_config_entry("gpu_graph_id")))
        run(binding, options)

    runtime._sess = SimpleNamespace(run_with_iobinding=noted)
    monkeypatch.setattr(
        "skort.runtime.sessions.io_binding",
        lambda _, read, written: io_binding(SimpleNamespace(_sess=run.__self__), read, written),
    )
    x, total = device.put(np.ones(())), device.put(np.zeros(()))
    start = {"a": np.zeros(2), "b": np.array([1.0, 2.0])}
    session = RecordedSession(runtime, {"x": x}, {"sum": total}, start, device=device)

    for _ in range(11):
        session.run()
    session.replace("x", x)
    session.run()
    assert released == []

    # Another array ends both records: each of the two buffers of the state has one.
    session.replace("x", device.put(np.ones(())))
    for _ in range(9):
        session.run()
    assert records == [-1] * 8 + [1, 2, 1, 2] + [-1] * 8 + [3]
    assert released == [1, 2]

    # Fibonacci's numbers: 21 runs from 0 and 1.
    np.testing.assert_array_equal(device.get(session.state["b"]), [17711, 35422])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_norm_of_a_vector_on_a_device(dtype):
    # In float32 these squares are infinite.
    vector = np.linspace(-1e30, 2e30, 1001).astype(dtype)
    device = Device(is_remote=True)
    expected = np.linalg.norm(vector.astype(np.float64))
    assert norm_on(device, device.put(vector)) == pytest.approx(expected, rel=1e-12)
    assert np.isnan(norm_on(device, device.put(np.array([1, np.nan], dtype))))


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
    for copied in (
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        joblib.load(tmp_path / "model.joblib"),
    ):
        np.testing.assert_array_equal(copied.run("twice", {"X": X}), 2 * X)


def test_threads_share_a_model(model):
    inputs = [np.full((50, 2), i, dtype=np.float32) for i in range(100)]
    with ThreadPoolExecutor(8) as pool:
        for X, result in zip(
            inputs, pool.map(lambda X: model.run("twice", {"X": X}), inputs), strict=True
        ):
            np.testing.assert_array_equal(result, 2 * X)


def test_threads_make_the_sessions_of_their_own_devices(model, monkeypatch):
    both = threading.Barrier(2, timeout=10)

    def copied(model):
        both.wait()
        return onnx.ModelProto.FromString(model.SerializeToString())

    monkeypatch.setattr("skort.runtime.sessions.copy.deepcopy", copied)
    X = np.ones((3, 2), np.float32)
    devices = [Device(n_threads=n) for n in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        for result in pool.map(lambda device: model.run("twice", {"X": X}, device), devices):
            np.testing.assert_array_equal(result, 2 * X)
    n_threads = [
        model._sessions[device].get_session_options().intra_op_num_threads for device in devices
    ]
    assert n_threads == [1, 2]


ERRORS = {
    "/src/module.cc:538 Status f(const std::vector<OrtValue>&) [ONNXRuntimeError] : 6 : FAIL : No rows.": "No rows.",
    "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got 2\nPlease fix it.": "Got 2",
    "Status Message: /src/math.h:540 void Broadcast(long int) const [with T = A] x": "[with T = A] x",
    "Message: pool.cc:115 Compute Input dimension is 3 (or less)": (
        "Message: Input dimension is 3 (or less)"
    ),
    "/src/a.cc:1 onnxruntime::Pool::Compute Too few.": "Too few.",
    "[ShapeInferenceError] Other ranks.": "Other ranks.",
    "": "no reason given",
}


@pytest.mark.parametrize("text", ERRORS)
def test_the_place_in_the_sources_is_left_out(text):
    assert short_message(RuntimeError(text)).endswith(ERRORS[text])
    assert ".cc:" not in short_message(RuntimeError(text))


def test_a_step_that_the_runtime_does_not_read_is_an_error_in_words():
    with pytest.raises(ValueError, match="does not read the graph of a step: ") as caught:
        compiled(b"no model")
    assert ".cc:" not in str(caught.value)
