import numpy as np
import pytest

from skort.common.finite import finite_array


def test_a_new_array_in_the_dtype():
    given = np.array([1.0, 2.0])
    array = finite_array(given, "coef", "float64")
    assert array.tolist() == [1.0, 2.0]
    assert not np.shares_memory(array, given)


@pytest.mark.parametrize(
    "values, message",
    [
        (["a"], "coef is not an array of numbers: could not convert"),
        ([[1], [1, 2]], "coef is not an array of numbers"),
        ([1j], "coef is not an array of numbers"),
        ([np.nan], "coef has numbers that are not finite in float32"),
        ([1e300], "coef has numbers that are not finite in float32"),
    ],
)
def test_what_is_no_array_of_finite_numbers(values, message):
    with pytest.raises(ValueError, match=message):
        finite_array(values, "coef", "float32")
