"""The penalties against their formulas."""

import numpy as np
import pytest

from skort.objective.penalties import L2


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("alpha", [1e-10, np.float64(1e-4), np.float32(0.25), 12.5, np.int64(3), 2, True])
def test_l2(alpha, dtype, rtol, rng, run_function):
    weight = rng.normal(size=(5, 3))
    value = run_function(L2(alpha).value(), dtype, weight)
    gradient = run_function(L2(alpha).gradient(), dtype, weight)
    assert value == pytest.approx(0.5 * float(alpha) * (weight**2).sum(), rel=rtol)
    np.testing.assert_allclose(gradient, float(alpha) * weight, rtol=rtol)
