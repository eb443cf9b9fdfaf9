"""A session from arrays to arrays."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx.parser
import pytest

from skort.runtime.array_session import ArraySession

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


def test_run_into_writes_into_parts_of_an_array(session):
    x, v, whole = np.array([[1, 2], [3, 4]], np.float32), np.array([10, 100], np.float32), np.zeros(9, np.float32)
    session.run_into({"product": whole[5:].reshape(2, 2), "sum": whole[:4].reshape(2, 2)}, {"x": x, "v": v})
    np.testing.assert_array_equal(whole, [11, 102, 13, 104, 0, 10, 200, 30, 400])


def test_run_into_refuses_an_array_that_would_be_copied(session):
    x, v = np.ones((2, 2), np.float32), np.ones(2, np.float32)
    with pytest.raises(ValueError, match="C-contiguous"):
        session.run_into({"sum": np.zeros((2, 2), np.float32).T}, {"x": x, "v": v})


def test_threads_share_a_session(session):
    def run(k):
        x, v, sums = np.full((2, 2), k, np.float32), np.full(2, 1, np.float32), np.zeros((2, 2), np.float32)
        for _ in range(200):
            session.run_into({"sum": sums}, {"x": x, "v": v})
            (product,) = session.run(["product"], {"x": x, "v": v})
            assert (sums == k + 1).all()
            assert (product == k).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(8)))
