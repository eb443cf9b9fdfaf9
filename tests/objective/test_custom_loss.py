"""Custom losses: which are accepted, which are refused, and by which message."""

import pickle

import numpy as np
import onnx
import onnx.helper
import onnx.parser
import pytest
from sklearn.base import clone

from skort.objective import Loss

SQUARE = """\
square (score, target) => (loss) {
    residual = Sub (score, target)
    loss = Mul (residual, residual)
}"""
ROW = """\
row (score, target) => (loss) {
    columns = Constant <value = int64[1] {1}> ()
    residual = Sub (score, target)
    distance = Abs (residual)
    loss = ReduceMax <axes = [1], keepdims = 1> (distance)
}"""
WEIGHTED = """\
weighted (score, target, weight) => (loss) {
    residual = Sub (score, target)
    loss = Mul (residual, weight)
}"""
EXP = "exp (score) => (prediction) { prediction = Exp (score) }"


def proto(scale):
    """Return `scale` times the residual as a FunctionProto."""
    constant = onnx.helper.make_node("Constant", [], ["scale"], value=onnx.helper.make_tensor("", 1, [], [scale]))
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
    ("l (score, target) => (loss { }", r"loss: value is not an ONNX function that can run: .*Expected character \)"),
    ("l (score, target) => (loss) { loss = Foo (score) }", "No Op registered for Foo"),
    ("l (score, target) => (loss) { loss = Add (score, t) }", "input 't' of node"),
    ("l (score, target) => (loss) { lost = Abs (score) }", "is not an output of any node"),
    ("l (score, target) => (loss) { loss = Greater (score, target) }", "elem type"),
    ("l (score, target) => (loss) { o = Constant <value = int64 {1}> () loss = Add (score, o) }", "inconsistent type"),
    (
        "l (s, target) => (loss) { loss = Abs (s) }",
        r"value must be a function of \(score, target\) or \(score, target, w",
    ),
    ("l (score) => (loss) { loss = Abs (score) }", r"with one output, got \(score\) => \(loss\)"),
    ("l (score, target) => (a, b) { a = Abs (score) b = Abs (target) }", r"with one output, got .* => \(a, b\)"),
    ("l (score, target) => (loss) { loss = ReduceMean <keepdims = 0> (score) }", r"\(n_samples, 3\) here, got \(\)"),
    ("l (score, target) => (loss) { loss = Transpose (score) }", r"\(n_samples, 3\) here, got \(3, n_samples\)"),
    (
        "l (score, target) => (loss) { loss = ReduceMean <axes = [0]> (score) }",
        r"value must return an array of shape \(n_samples, 1\) or \(n_samples, 3\) here, got \(1, 3\)",
    ),
]


@pytest.mark.parametrize("value, message", BAD, ids=[message for _, message in BAD])
def test_bad_values_are_named(value, message):
    with pytest.raises(ValueError, match=message):
        Loss(value).value_function(3)


def test_bad_gradients_and_links_are_named():
    other_inputs = r"gradient must be a function of \(score, target\) with one output, got \(score, target, weight\)"
    with pytest.raises(ValueError, match=other_inputs):
        Loss(SQUARE, gradient=WEIGHTED).gradient_function(3)
    with pytest.raises(ValueError, match=r"gradient must return an array of shape \(n_samples, 3\) here"):
        Loss(SQUARE, gradient=ROW).gradient_function(3)
    with pytest.raises(ValueError, match=r"inverse_link must be a function of \(score\) with one output"):
        Loss(SQUARE, inverse_link=SQUARE).inverse_link_function(3)
    with pytest.raises(ValueError, match="'value' parameter of Loss must be an instance of 'str'"):
        Loss(3)._validate_params()


@pytest.mark.parametrize("value", [SQUARE, proto(2.0)], ids=["text", "proto"])
def test_clone_and_pickle(value):
    loss = Loss(value, inverse_link=EXP)
    for copy in (clone(loss), pickle.loads(pickle.dumps(loss))):
        assert copy.get_params() == loss.get_params()
        assert copy.weight_scale(2) == 0.5
