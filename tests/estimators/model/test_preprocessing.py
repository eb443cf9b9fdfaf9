"""What may be cast to the dtype of a training."""

import numpy as np
import pytest

from skort.estimators.data.row_forms import is_in_range

LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1.0, True), (1e30, True), (LARGEST, True), (1.01 * LARGEST, False), (1e200, False)],
)
def test_numbers_are_in_the_range_of_a_dtype(value, expected):
    for rows in ([[value]], [[0.5, -value], [1.0, 2.0]], [value, 0.0]):
        assert is_in_range(np.array(rows), np.float32) is expected
        assert is_in_range(np.array(rows), np.float64)


def test_no_rows_are_in_any_range():
    assert is_in_range(np.empty((0, 3)), np.float32)
