"""Learning rates against their formulas."""

import pytest

from skort.descent.schedules import Constant, InvScaling


@pytest.mark.parametrize("t", [1, 2, 81, 10**6])
def test_constant(t):
    assert Constant(eta0=0.3)(t) == 0.3


@pytest.mark.parametrize("t, eta", [(1, 0.3), (16, 0.15), (81, 0.1), (10**8, 0.003)])
def test_inv_scaling(t, eta):
    assert InvScaling(eta0=0.3, power_t=0.25)(t) == pytest.approx(eta)


def test_inv_scaling_ends_at_zero():
    assert InvScaling(eta0=0.3, power_t=1000)(10) == 0
