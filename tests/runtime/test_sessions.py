"""Settings of all sessions, a session from arrays to arrays, and runs that go on from each other."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx.parser
import pytest

from skort.runtime.device import Device
from skort.runtime.sessions import ArraySession, StepSession, compiled, session_options


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
NEXT = {"a": "a_next", "b": "b_next"}


def make(session=None):
    x, total = np.ones(()), np.zeros(())
    start = {"a": np.zeros(2), "b": np.array([1.0, 2.0])}
    return StepSession(session or compiled(FIBONACCI), {"x": x}, {"sum": total}, start, NEXT), x, total, start


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


def test_parts_of_the_state_are_read_where_they_are():
    model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
shift (double[2] a, double[1] last) => (double[2] a_next)
{
    a_next = Add (a, last)
}""").SerializeToString()
    start = {"a": np.array([0.0, 1.0])}
    session = StepSession(compiled(model), {}, {}, start, {"a": "a_next"}, parts=lambda state: {"last": state["a"][1:]})
    for expected in ([1, 2], [3, 4], [7, 8]):
        session.run()
        np.testing.assert_array_equal(session.state["a"], expected)


def test_the_same_runs_on_a_device_with_memory_of_its_own():
    device = Device(is_remote=True)
    x, total = device.put(np.ones(())), device.put(np.zeros(()))
    start = {"a": np.zeros(2), "b": np.array([1.0, 2.0])}
    session = StepSession(compiled(FIBONACCI), {"x": x}, {"sum": total}, start, NEXT, device=device)
    for expected in (1, 2, 3):
        session.run()
        np.testing.assert_array_equal(device.get(session.state["b"]), [expected, 2 * expected])
        assert device.get(total) == 3 * expected
    session.replace("x", device.put(np.array(10.0)))
    for expected in (2 + 30, 3 + 320):
        session.run()
        np.testing.assert_array_equal(device.get(session.state["b"]), [expected, 2 * expected])
    np.testing.assert_array_equal(start["b"], [1, 2])
