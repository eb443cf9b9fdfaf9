"""The penalties against their formulas, and in the units of a training."""

import numpy as np
import pytest
from sklearn.base import clone

from skort.objective.objective import L2_GRADIENT, l1_text, l2_text
from skort.objective.penalties import (
    L1,
    L2,
    PENALTIES,
    ElasticPenalty,
    ModelPenalty,
    Strength,
    rescaled,
    soft_threshold,
)

STRENGTHS = [1e-10, np.float64(1e-4), np.float32(0.25), 12.5, np.int64(3), 2, True]


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("alpha", STRENGTHS)
def test_terms_are_the_formulas(alpha, dtype, rtol, rng, run_function):
    weight = rng.normal(size=(5, 3))
    strength = np.asarray(alpha, float)
    for by_element, shape in ((False, ()), (True, ()), (True, (3,)), (True, (5, 1))):
        given = np.broadcast_to(strength, shape).copy()
        absolute = run_function(l1_text(by_element=by_element), dtype, weight, given)
        assert absolute == pytest.approx(float(alpha) * abs(weight).sum(), rel=rtol)
        squares = 0.5 * float(alpha) * (weight**2).sum()
        assert run_function(l2_text(by_element=by_element), dtype, weight, given) == pytest.approx(
            squares, rel=rtol
        )
    gradient = run_function(L2_GRADIENT, dtype, weight, strength)
    np.testing.assert_allclose(gradient, float(alpha) * weight, rtol=rtol)


@pytest.mark.parametrize("alpha", STRENGTHS)
def test_one_strength_for_all_weights(alpha):
    a = float(alpha)
    assert L1(alpha).strengths(("x", "y")) == {"x": Strength(a, 0), "y": Strength(a, 0)}
    assert L2(alpha).strengths(("x",)) == {"x": Strength(0, a)}
    assert L2(alpha).strengths(()) == {}
    assert ElasticPenalty(alpha, l1_ratio=0.25).strengths(("x",)) == {
        "x": Strength(a / 4, 0.75 * a)
    }


@pytest.mark.parametrize("penalty_class", PENALTIES.values())
def test_no_strength_is_no_penalty(penalty_class):
    assert penalty_class(0).strengths(("x", "y")) == {}
    assert penalty_class({}).strengths(("x", "y")) == {}
    assert penalty_class({"*": 1, "y": 0}).strengths(("x", "y")).keys() == {"x"}


@pytest.mark.parametrize("penalty_class", PENALTIES.values())
def test_strengths_by_name_and_pattern(penalty_class):
    names = ("coefficient", "coefficient1", "coefficient2")
    penalty = penalty_class({"coefficient?": 2, "coefficient1": 8})
    share = penalty_class(1).strengths(names[:1])[names[0]]
    assert penalty.strengths(names) == {
        "coefficient1": Strength(8 * share.l1, 8 * share.l2),
        "coefficient2": Strength(2 * share.l1, 2 * share.l2),
    }


@pytest.mark.parametrize("penalty_class", PENALTIES.values())
def test_unknown_names_and_bad_strengths_are_named(penalty_class):
    message = (
        r"penalty: alpha names 'intercepts\*', but it can name the weights "
        r"coefficient, coefficient1\."
    )
    with pytest.raises(ValueError, match=message):
        penalty_class({"intercepts*": 1.0}).strengths(("coefficient", "coefficient1"))
    for bad in (-1, np.inf, "1"):
        with pytest.raises(
            ValueError, match=rf"penalty: alpha\['coef'\] must be a number >= 0, got {bad!r}"
        ):
            penalty_class({"coef": bad}).strengths(("coef",))
        with pytest.raises(
            ValueError, match=f"'alpha' parameter of {penalty_class.__name__} must be a float"
        ):
            penalty_class(bad)._validate_params()


def test_l1_ratio_has_its_constraint():
    with pytest.raises(
        ValueError, match=r"'l1_ratio' parameter of ElasticPenalty must be a float in the range \[0"
    ):
        ElasticPenalty(l1_ratio=1.5)._validate_params()


def test_clone_and_repr():
    penalty = ElasticPenalty({"coefficient1": 1e-3}, l1_ratio=0.5)
    assert clone(penalty).get_params() == penalty.get_params()
    assert repr(penalty) == "ElasticPenalty(alpha={'coefficient1': 0.001}, l1_ratio=0.5)"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1e6])
def test_soft_threshold_is_its_formula_in_place(threshold, dtype, rng):
    weight = np.array([[-2.0, -0.5, -0.0], [0.25, 0.5, 3.0]], dtype)
    expected = np.sign(weight) * np.maximum(0, abs(weight) - threshold)
    view = weight
    soft_threshold(weight, threshold, threshold, np.empty_like(weight))
    assert view is weight and weight.dtype == dtype
    np.testing.assert_array_equal(weight, expected)


@pytest.mark.parametrize("penalty_class", PENALTIES.values())
def test_strengths_by_element(penalty_class):
    share = penalty_class(1).strengths(("x",))["x"]
    for alpha in ([1, 0, 3], {"*": np.array([1.0, 0.0, 3.0])}):
        strength = penalty_class(alpha).strengths(("x",))["x"]
        np.testing.assert_array_equal(strength.l1, share.l1 * np.array([1, 0, 3]))
        np.testing.assert_array_equal(strength.l2, share.l2 * np.array([1, 0, 3]))
    assert penalty_class([0.0, 0.0]).strengths(("x",)) == {}
    penalty_class([1.0, 2.0])._validate_params()
    for bad in ([1.0, -1.0], [np.nan], [np.inf], ["1"]):
        with pytest.raises(ValueError, match="penalty: alpha must be a number >= 0, got"):
            penalty_class(bad).strengths(("x",))


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
        assert value(found[name], v) == pytest.approx(
            value(given[name], scale * v) / unit, rel=1e-12
        )
    assert repr(of_training) == repr(penalty)


def test_a_penalty_says_whether_it_has_an_l1_term():
    names = ("coefficient", "coefficient1")
    assert L1(0.5).has_l1(names)
    assert not (L1(0.0).has_l1(names) or L2(0.5).has_l1(names))
    of_second = ElasticPenalty({"*1": 0.5}, l1_ratio={"coefficient": 0, "*1": 0.1})
    assert of_second.has_l1(names)


def test_the_penalty_of_a_model_inside_says_its_strengths():
    both = ModelPenalty(Strength(0.0, 0.0012345), Strength(0.0, 0.5))
    assert repr(both) == "ModelPenalty(l2=0.00123; of intercepts: l2=0.5)"
    several = ModelPenalty(Strength(np.array([0.1, 2.0]), 0.3))
    assert repr(several) == "ModelPenalty(l1=0.1 to 2, l2=0.3)"
