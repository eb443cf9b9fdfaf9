"""A penalty of w = factor v, divided by a unit, as one of v."""

import numpy as np
import pytest

from skort.objective import ElasticPenalty
from skort.objective.rescaled_penalty import rescaled

NAMES = ("coefficient", "coefficient1")


def value(strength, weight):
    return np.sum(strength.l1 * np.abs(weight)) + np.sum(strength.l2 * weight**2) / 2


@pytest.mark.parametrize("factor", [10.0, np.array([[0.1], [4.0], [30.0]])])
def test_it_is_the_penalty_of_the_model_in_other_units(factor, rng):
    penalty, unit = ElasticPenalty(0.5, l1_ratio=0.3, intercepts=0.25), 7.0
    of_training = rescaled(penalty, {"coefficient": factor, "intercept": 3.0}, unit)
    found = of_training.strengths(NAMES) | of_training.intercept_strengths(("intercept",))
    given = penalty.strengths(NAMES) | penalty.intercept_strengths(("intercept",))
    for name, scale in (("coefficient", factor), ("coefficient1", 1.0), ("intercept", 3.0)):
        v = rng.normal(size=(3, 2))
        assert value(found[name], v) == pytest.approx(value(given[name], scale * v) / unit, rel=1e-12)
    assert repr(of_training) == repr(penalty)
