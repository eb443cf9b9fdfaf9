"""Settings of all sessions, and a session from arrays to arrays."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx.parser
import pytest

from skort.runtime.device import Device
from skort.runtime.sessions import ArraySession, session_options


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
