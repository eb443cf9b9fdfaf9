"""Borrowed memory."""

import numpy as np
import pytest

from skort.runtime.values import borrow


def test_a_value_follows_its_array():
    array = np.zeros((2, 3), np.float32)
    value = borrow(array)
    array[...] = [[1, 2, 3], [4, 5, 6]]
    np.testing.assert_array_equal(value.numpy(), array)


@pytest.mark.parametrize("array", [np.zeros((2, 3)).T, np.zeros(6)[::2]], ids=["transposed", "strided"])
def test_an_array_that_would_be_copied_is_refused(array):
    with pytest.raises(ValueError, match="C-contiguous"):
        borrow(array)
