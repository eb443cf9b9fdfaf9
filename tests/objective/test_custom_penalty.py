"""Own penalties: which are accepted, which are refused, and by which message."""

import numpy as np
import onnx.parser
import pytest
from sklearn.base import clone

from skort.objective import L2, Penalty
from skort.objective.custom_penalty import CustomTerm, check_term
from skort.objective.rescaled_penalty import rescaled

SQUARE = """\
square (weight) => (penalty) {
    square = Mul (weight, weight)
    penalty = ReduceSum <keepdims = 0> (square)
}"""
PULL = """\
pull (weight, start) => (penalty) {
    distance = Sub (weight, start)
    square = Mul (distance, distance)
    penalty = ReduceSum <keepdims = 0> (square)
}"""
DOUBLE = "double (weight) => (gradient) { gradient = Add (weight, weight) }"
NAMES = ("coefficient", "coefficient1"), ("intercept", "intercept1")


def test_terms_by_name_and_pattern():
    term = CustomTerm(SQUARE, None, 0.5)
    assert Penalty(SQUARE, alpha=0.5).custom_terms(*NAMES) == {"coefficient": term, "coefficient1": term}
    assert Penalty(SQUARE, weights="*1", alpha=0.5).custom_terms(*NAMES) == {"coefficient1": term}
    both = Penalty(SQUARE, weights=[], intercepts=["intercept", "*"], alpha=0.5).custom_terms(*NAMES)
    assert both == {"intercept": term, "intercept1": term}
    assert Penalty(SQUARE, alpha=0).custom_terms(*NAMES) == {}
    assert Penalty(SQUARE).strengths(NAMES[0]) == {}


def test_unknown_names_are_listed():
    with pytest.raises(ValueError, match=r"weights names 'intercept', but it can .* coefficient, coefficient1\."):
        Penalty(SQUARE, weights="intercept").custom_terms(*NAMES)
    with pytest.raises(ValueError, match=r"intercepts names 'bias\*', but it can .* intercept, intercept1\."):
        Penalty(SQUARE, intercepts=["bias*"]).custom_terms(*NAMES)


@pytest.mark.parametrize(
    "value, message",
    [
        ("no function", "penalty: value is not an ONNX function that can run"),
        (SQUARE.replace("(weight)", "(coef)"), r"must be a function of \(weight\) or \(weight, start\) with one"),
        (SQUARE.replace("(weight)", "(start, weight)"), r"got \(start, weight\) => \(penalty\)"),
        (SQUARE.replace("ReduceSum <keepdims = 0>", "NoSuchOperator"), "penalty: value is not an ONNX function"),
        (SQUARE.replace("<keepdims = 0>", "<keepdims = 1>"), r"without dimensions, got shape \(1, 1\) .* 'coef'"),
    ],
)
def test_a_bad_value_is_named(value, message):
    with pytest.raises(ValueError, match=message):
        check_term(Penalty(value).custom_terms(("coef",), ())["coef"], "coef", (3, 2))


def test_a_bad_gradient_is_named():
    with pytest.raises(ValueError, match=r"penalty: gradient must be a function of \(weight\) with one output"):
        Penalty(SQUARE, PULL).custom_terms(*NAMES)
    summed = "summed (weight) => (gradient) { gradient = ReduceSum <keepdims = 0> (weight) }"
    with pytest.raises(ValueError, match=r"of the shape \(3, 2\) of the weight 'coef', got \(\)"):
        check_term(CustomTerm(SQUARE, summed, 1.0), "coef", (3, 2))
    check_term(CustomTerm(SQUARE, DOUBLE, 1.0), "coef", (3, 2))


def test_bad_parameters_are_named():
    for parameter, bad in (("alpha", -1), ("value", 3), ("gradient", 3), ("weights", 3), ("intercepts", 3)):
        with pytest.raises(ValueError, match=f"The '{parameter}' parameter of Penalty must be"):
            Penalty(SQUARE).set_params(**{parameter: bad})._validate_params()


def test_protos_clone_and_repr():
    proto = onnx.parser.parse_function(f'<domain: "mine", opset_import: ["" : 17]>{PULL}')
    penalty = Penalty(proto, alpha=2.0)
    assert penalty.takes_start and not Penalty(SQUARE).takes_start
    assert clone(penalty).custom_terms(*NAMES)["coefficient"].inputs == ["weight", "start"]
    assert repr(Penalty("", alpha=2.0)) == "Penalty(alpha=2.0, value='')"


def test_a_rescaled_penalty_is_that_of_the_weights_of_the_model():
    factor = np.array([[2.0], [4.0]])
    terms = rescaled(Penalty(SQUARE, alpha=3.0), {"coef": factor}, 6.0).custom_terms(("coef", "other"), ())
    assert terms["coef"].strength == terms["other"].strength == 0.5
    assert terms["coef"].factor is factor and terms["other"].factor == 1.0
    assert rescaled(L2(1.0), {}, 6.0).custom_terms(("coef",), ()) == {}
