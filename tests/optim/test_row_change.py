"""
The rows of a training: the digits that they keep,
and the same bits wherever they are changed.
"""

import numpy as np
import pytest

from skort.optim.row_change import RowChange, difference
from skort.optim.standardization import moments


@pytest.mark.parametrize(
    ("dtype", "begin"), [("int64", 2**60 + 7), ("int64", -(2**62) - 1), ("uint64", 2**63 + 5)]
)
def test_differences_of_large_integers_are_exact(dtype, begin):
    X = np.array([[begin + i] for i in range(-3, 4)], dtype=dtype)
    offset = np.array([float(begin)])
    expected = [[begin + i - int(offset[0])] for i in range(-3, 4)]
    np.testing.assert_array_equal(difference(X, offset), np.array(expected, dtype=np.float64))
    np.testing.assert_array_equal(moments(X, None)[1], [2.0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_are_changed_in_place_to_the_same_bits(dtype, rng):
    X = (rng.normal(size=(50_000, 7)) * 10.0 ** np.arange(-3, 4) + 5).astype(dtype)
    mean = X.mean(axis=0, dtype=np.float64).astype(dtype).astype(np.float64)
    change = RowChange(mean, 1 / X.std(axis=0, dtype=np.float64), np.dtype(dtype))
    changed, in_place = change(X), X.copy()
    change.in_place(in_place)
    np.testing.assert_array_equal(changed, in_place)
    exact = X.astype(np.float64)
    expected = (exact - mean) / exact.std(axis=0)
    np.testing.assert_allclose(
        changed, expected, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-6
    )


def test_rows_lose_no_digits_before_the_mean_is_subtracted():
    X = 1.7e9 + np.arange(5.0)[:, None]
    change = RowChange(np.array([1.7e9 + 2]), np.array([0.5]), np.dtype("float32"))
    np.testing.assert_array_equal(change(X), np.float32([[-1], [-0.5], [0], [0.5], [1]]))
    assert change(X).dtype == np.float32
