"""Runs that go on from each other, against a recurrence on paper."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx.parser

from skort.runtime.device import Device
from skort.runtime.sessions import compiled
from skort.runtime.step_session import StepSession

# a, b -> b, a + b x
MODEL = onnx.parser.parse_model("""
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
    return StepSession(session or compiled(MODEL), {"x": x}, {"sum": total}, start, NEXT), x, total, start


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
    shared = compiled(MODEL)
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
    session = StepSession(compiled(MODEL), {"x": x}, {"sum": total}, start, NEXT, device=device)
    for expected in (1, 2, 3):
        session.run()
        np.testing.assert_array_equal(device.get(session.state["b"]), [expected, 2 * expected])
        assert device.get(total) == 3 * expected
    session.replace("x", device.put(np.array(10.0)))
    for expected in (2 + 30, 3 + 320):
        session.run()
        np.testing.assert_array_equal(device.get(session.state["b"]), [expected, 2 * expected])
    np.testing.assert_array_equal(start["b"], [1, 2])
