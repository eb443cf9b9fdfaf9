"""Clipping against its formula and torch's."""

import numpy as np
import pytest

from skort.optim.transforms.clipping import clipped, norm


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_gradient_that_is_too_long_keeps_its_direction(dtype, rng):
    gradient = rng.normal(size=50).astype(dtype)
    given, out = gradient.copy(), np.empty_like(gradient)
    assert clipped(gradient, 0.5, out) is out
    np.testing.assert_allclose(out, given * 0.5 / np.linalg.norm(given), rtol=1e-6)
    np.testing.assert_array_equal(gradient, given)


def test_a_gradient_that_is_short_enough_is_itself():
    gradient, out = np.array([3.0, 4.0]), np.zeros(2)
    assert clipped(gradient, 5.0, out) is gradient
    np.testing.assert_array_equal(out, 0)


def test_no_square_overflows_in_float32():
    gradient = np.array([3e30, 4e30], dtype="float32")
    assert norm(gradient) == pytest.approx(5e30)
    np.testing.assert_allclose(clipped(gradient, 1.0, np.empty_like(gradient)), [0.6, 0.8], rtol=1e-6)


def test_a_gradient_that_is_not_finite_stays_so():
    assert np.isnan(clipped(np.array([np.nan, 1.0]), 1.0, np.empty(2))).all()
    # The loop has numpy's warnings off, and reports the weights.
    with np.errstate(invalid="ignore"):
        assert np.isnan(clipped(np.array([np.inf, 1.0]), 1.0, np.empty(2))[0])


@pytest.mark.parametrize("max_norm", [0.1, 1.0, 100.0])
def test_clipping_is_torchs(max_norm, rng):
    torch = pytest.importorskip("torch")
    gradient = rng.normal(size=20)
    weight = torch.zeros(20, dtype=torch.float64, requires_grad=True)
    weight.grad = torch.tensor(gradient)
    assert norm(gradient) == pytest.approx(float(torch.nn.utils.clip_grad_norm_([weight], max_norm)))
    # torch adds 1e-6 to the norm that it divides by.
    np.testing.assert_allclose(clipped(gradient, max_norm, np.empty(20)), weight.grad.numpy(), rtol=1e-6)
