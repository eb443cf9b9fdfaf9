"""Own losses and penalties: which are accepted, which are refused, and by which message."""

import pickle
import re

import numpy as np
import onnx
import onnx.helper
import onnx.parser
import pytest
from own_losses import ROW
from sklearn.base import clone

from skort import OrtSGDRegressor
from skort.objective import L2, Loss, Penalty
from skort.objective.custom import CustomTerm, check_signature, check_term, parsed, result_shape
from skort.objective.penalties import rescaled

SQUARE = """\
square (score, target) => (loss) {
    residual = Sub (score, target)
    loss = Mul (residual, residual)
}"""
WEIGHTED = """\
weighted (score, target, weight) => (loss) {
    residual = Sub (score, target)
    loss = Mul (residual, weight)
}"""
EXP = "exp (score) => (prediction) { prediction = Exp (score) }"


def proto(scale):
    """Return `scale` times the residual as a FunctionProto."""
    constant = onnx.helper.make_node(
        "Constant", [], ["scale"], value=onnx.helper.make_tensor("", 1, [], [scale])
    )
    nodes = [
        constant,
        onnx.helper.make_node("Sub", ["score", "target"], ["residual"]),
        onnx.helper.make_node("Mul", ["scale", "residual"], ["loss"]),
    ]
    opsets = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_function("any", "scaled", ["score", "target"], ["loss"], nodes, opsets)


@pytest.mark.parametrize(
    "value, n_outputs, scale, takes_weight",
    [
        (SQUARE, 1, 1, False),
        (SQUARE, 4, 0.25, False),
        (ROW, 4, 1, False),
        (WEIGHTED, 4, 0.25, True),
        (proto(2.0), 4, 0.25, False),
    ],
)
def test_columns_and_inputs_are_read_from_the_function(value, n_outputs, scale, takes_weight):
    loss = Loss(value)
    assert loss.weight_scale(n_outputs) == scale
    assert loss.takes_weight is takes_weight
    assert loss.value_function(n_outputs) is value
    assert loss.gradient_function(n_outputs) is None
    assert loss.inverse_link_function(n_outputs) is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constants_of_a_function_proto_get_the_dtype(dtype, rng, run_function):
    score, target = rng.normal(size=(2, 5, 3))
    value = run_function(Loss(proto(0.25)).value_function(3), dtype, score, target)
    assert value.dtype == dtype
    np.testing.assert_allclose(value, 0.25 * (score - target), rtol=1e-5, atol=1e-7)


def test_an_inverse_link_is_for_regressors():
    assert Loss(SQUARE).estimator_types == ("regressor", "classifier")
    loss = Loss(SQUARE, inverse_link=EXP)
    assert loss.estimator_types == ("regressor",)
    assert loss.inverse_link_function(2) is EXP


BAD = [
    (
        "l (score, target) => (loss { }",
        r"loss: value is not an ONNX function that can run: .*Expected character \)",
    ),
    ("l (score, target) => (loss) { loss = Nonsense (score) }", "onnx.ai/onnx/operators lists"),
    ("l (score, target) => (loss) { loss = Minus (score, target) }", r"Did you mean Sub\?$"),
    ("l (score, target) => (loss) { loss = sub (score, target) }", r"Did you mean Sub\?$"),
    ("l (score, target) => (loss) { d = relu (score)  loss = Sub (d, target) }", r"mean Relu\?$"),
    ("l (score, target) => (loss) { loss = Sigmoyd (score) }", r"Did you mean Sigmoid\?$"),
    (
        "l (score, target) => (loss) { loss = Add (score, t) }",
        r"Nothing before it has the name t; the inputs are score, target\.$",
    ),
    ("l (score, target) => (loss) { loss = Add (score, targt) }", r"Did you mean target\?$"),
    ("l (score, target) => (loss) { lost = Abs (score) }", "is not an output of any node"),
    ("l (score, target) => (loss) { loss = Greater (score, target) }", "elem type"),
    (
        "l (score, target) => (loss) { o = Constant <value = int64 {1}> () loss = Add (score, o) }",
        r"tensor\(int64\)\. Its inputs are floats, .* Add takes: write "
        r"o = Constant <value = float \{1\}> \(\)\.$",
    ),
    (
        "l (score, target) => (loss) { o = Constant <value_int = 2> () loss = Mul (o, score) }",
        r"write o = Constant <value = float \{2\}> \(\)\.$",
    ),
    (
        "l (s, target) => (loss) { loss = Abs (s) }",
        r"value must be a function of \(score, target\) or \(score, target, w",
    ),
    ("l (score) => (loss) { loss = Abs (score) }", r"with one output, got \(score\) => \(loss\)"),
    (
        "l (score, target) => (a, b) { a = Abs (score) b = Abs (target) }",
        r"with one output, got .* => \(a, b\)",
    ),
    (
        "l (score, target) => (loss) { loss = ReduceMean <keepdims = 0> (score) }",
        r"\(n_samples, 3\) here, got \(\)",
    ),
    (
        "l (score, target) => (loss) { loss = Transpose (score) }",
        r"\(n_samples, 3\) here, got \(3, n_samples\)",
    ),
    (
        "l (score, target) => (loss) { loss = ReduceMean <axes = [0]> (score) }",
        (
            r"value must return an array of shape \(n_samples, 1\) or \(n_samples, 3\) "
            r"here, got \(1, 3\)"
        ),
    ),
]


@pytest.mark.parametrize("value, message", BAD, ids=[message for _, message in BAD])
def test_bad_values_are_named(value, message):
    with pytest.raises(ValueError, match=message):
        Loss(value).value_function(3)


def test_bad_gradients_and_links_are_named():
    other_inputs = (
        r"gradient must be a function of \(score, target\) with one output, got \(score, "
        r"target, weight\)"
    )
    with pytest.raises(ValueError, match=other_inputs):
        Loss(SQUARE, gradient=WEIGHTED).gradient_function(3)
    with pytest.raises(
        ValueError, match=r"gradient must return an array of shape \(n_samples, 3\) here"
    ):
        Loss(SQUARE, gradient=ROW).gradient_function(3)
    with pytest.raises(
        ValueError, match=r"inverse_link must be a function of \(score\) with one output"
    ):
        Loss(SQUARE, inverse_link=SQUARE).inverse_link_function(3)
    with pytest.raises(ValueError, match="'value' parameter of Loss must be an instance of 'str'"):
        Loss(3)._validate_params()


@pytest.mark.parametrize("value", [SQUARE, proto(2.0)], ids=["text", "proto"])
def test_clone_and_pickle(value):
    loss = Loss(value, inverse_link=EXP)
    for copy in (clone(loss), pickle.loads(pickle.dumps(loss))):
        assert copy.get_params() == loss.get_params()
        assert copy.weight_scale(2) == 0.5


SQUARE_SUM = """\
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
    term = CustomTerm(SQUARE_SUM, None, 0.5)
    assert Penalty(SQUARE_SUM, alpha=0.5).custom_terms(*NAMES) == {
        "coefficient": term,
        "coefficient1": term,
    }
    assert Penalty(SQUARE_SUM, weights="*1", alpha=0.5).custom_terms(*NAMES) == {
        "coefficient1": term
    }
    both = Penalty(SQUARE_SUM, weights=[], intercepts=["intercept", "*"], alpha=0.5).custom_terms(
        *NAMES
    )
    assert both == {"intercept": term, "intercept1": term}
    assert Penalty(SQUARE_SUM, alpha=0).custom_terms(*NAMES) == {}
    assert Penalty(SQUARE_SUM).strengths(NAMES[0]) == {}


def test_unknown_names_are_listed():
    with pytest.raises(
        ValueError, match=r"weights names 'intercept', but it can .* coefficient, coefficient1\."
    ):
        Penalty(SQUARE_SUM, weights="intercept").custom_terms(*NAMES)
    with pytest.raises(
        ValueError, match=r"intercepts names 'bias\*', but it can .* intercept, intercept1\."
    ):
        Penalty(SQUARE_SUM, intercepts=["bias*"]).custom_terms(*NAMES)


@pytest.mark.parametrize(
    "value, message",
    [
        ("no function", "penalty: value is not an ONNX function that can run"),
        (
            SQUARE_SUM.replace("(weight)", "(coef)"),
            r"must be a function of \(weight\) or \(weight, start\) with one",
        ),
        (
            SQUARE_SUM.replace("(weight)", "(start, weight)"),
            r"got \(start, weight\) => \(penalty\)",
        ),
        (
            SQUARE_SUM.replace("ReduceSum <keepdims = 0>", "NoSuchOperator"),
            "penalty: value is not an ONNX function",
        ),
        (
            SQUARE_SUM.replace("<keepdims = 0>", "<keepdims = 1>"),
            r"without dimensions, got shape \(1, 1\) .* 'coef'",
        ),
    ],
)
def test_a_bad_value_is_named(value, message):
    with pytest.raises(ValueError, match=message):
        check_term(Penalty(value).custom_terms(("coef",), ())["coef"], "coef", (3, 2))


def test_a_bad_gradient_is_named():
    with pytest.raises(
        ValueError, match=r"penalty: gradient must be a function of \(weight\) with one output"
    ):
        Penalty(SQUARE_SUM, PULL).custom_terms(*NAMES)
    summed = "summed (weight) => (gradient) { gradient = ReduceSum <keepdims = 0> (weight) }"
    with pytest.raises(ValueError, match=r"of the shape \(3, 2\) of the weight 'coef', got \(\)"):
        check_term(CustomTerm(SQUARE_SUM, summed, 1.0), "coef", (3, 2))
    check_term(CustomTerm(SQUARE_SUM, DOUBLE, 1.0), "coef", (3, 2))


def test_bad_parameters_are_named():
    for parameter, bad in (
        ("alpha", -1),
        ("value", 3),
        ("gradient", 3),
        ("weights", 3),
        ("intercepts", 3),
    ):
        with pytest.raises(ValueError, match=f"The '{parameter}' parameter of Penalty must be"):
            Penalty(SQUARE_SUM).set_params(**{parameter: bad})._validate_params()


def test_protos_clone_and_repr():
    proto = onnx.parser.parse_function(f'<domain: "mine", opset_import: ["" : 17]>{PULL}')
    penalty = Penalty(proto, alpha=2.0)
    assert penalty.takes_start and not Penalty(SQUARE_SUM).takes_start
    assert clone(penalty).custom_terms(*NAMES)["coefficient"].inputs == ["weight", "start"]
    assert repr(Penalty("", alpha=2.0)) == "Penalty(alpha=2.0, value='')"


def test_a_rescaled_penalty_is_that_of_the_weights_of_the_model():
    factor = np.array([[2.0], [4.0]])
    terms = rescaled(Penalty(SQUARE_SUM, alpha=3.0), {"coef": factor}, 6.0).custom_terms(
        ("coef", "other"), ()
    )
    assert terms["coef"].strength == terms["other"].strength == 0.5
    assert terms["coef"].factor is factor and terms["other"].factor == 1.0
    assert rescaled(L2(1.0), {}, 6.0).custom_terms(("coef",), ()) == {}


SUM = "f (a, b) => (c) { c = Add (a, b) }"


def test_a_function_is_read():
    assert list(parsed("loss: value", SUM).input) == ["a", "b"]
    check_signature("loss: value", SUM, [["a"], ["a", "b"]])
    assert result_shape("loss: value", SUM, {"a": (4, 1), "b": (1, 3)}) == [4, 3]


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: parsed("penalty: value", "f (a"),
            "^penalty: value is not an ONNX function that can run: ",
        ),
        (
            lambda: check_signature("loss: value", SUM, [["a"], ["b", "a"]]),
            r"a function of \(a\) or \(b, a\) with one",
        ),
        (
            lambda: check_signature("f", "f (a) => (a, b) { b = Neg (a) }", [["a"]]),
            r"got \(a\) => \(a, b\)",
        ),
        (
            lambda: result_shape("loss: value", SUM, {"a": (4, 2), "b": (4, 3)}),
            "^loss: value is not an ONNX function",
        ),
    ],
)
def test_what_is_wrong_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "line",
    [
        "loss = Abs (Sub (score, target))",
        "loss = Mul (score, 3)",
        "d = Sub (score, target); loss = Abs (d)",
    ],
)
def test_what_the_text_of_a_function_cannot_be_is_said(line):
    with pytest.raises(
        ValueError,
        match="Calls do not nest, no comma or semicolon ends a line, and a number is a Constant: ",
    ):
        parsed("loss: value", f"wrong (score, target) => (loss) {{ {line} }}")


def test_a_comma_between_two_lines_is_said():
    source = "wrong (score, target) => (loss) {d = Sub (score, target), loss = Mul (d, d)}"
    with pytest.raises(ValueError, match="no comma stands between two lines"):
        result_shape("loss: value", source, {"score": (4, 1), "target": (4, 1)})


@pytest.mark.parametrize("part", [Loss, Penalty])
def test_a_function_of_python_leads_to_one_of_onnx_that_runs(part):
    X, y = np.eye(5), np.arange(5.0)
    name = {"Loss": "loss", "Penalty": "penalty"}[part.__name__]

    def fit(value):
        OrtSGDRegressor(**{name: part(value)}, max_iter=1, tol=None).fit(X, y)

    with pytest.raises(
        ValueError, match=f"^{part.__name__}: value is a function of Python"
    ) as raised:
        fit(lambda *args: args[0])
    fit(re.search("such as '(.*)'\\.$", str(raised.value))[1])
