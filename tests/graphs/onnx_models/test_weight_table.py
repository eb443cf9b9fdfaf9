"""Which weights an ONNX model has."""

import numpy as np
import onnx.parser
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor
from skort.onnx_models import Weight, find_weights

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'
MODEL = """\
several (float[N, 3] X) => (float[N, 1] price, float[N, 2] parts, int64[N] label)
<float[3] mean = {1, 2, 3}, float[4, 3] W = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4] b = {1, 2, 3, 4},
 float[4, 1] V = {1, -1, 1, -1}, float[4, 2] U = {1, -1, 1, -1, 2, 2, 2, 2}, float unused = {3}>
{
    c = Constant <value = float[1] {0.5}> ()
    centred = Sub (X, mean)
    hidden = Gemm <transB = 1> (centred, W, b)
    active = Relu (hidden)
    product = MatMul (active, V)
    price = Add (product, c)
    scores = MatMul (active, U)
    parts = Round (scores)
    label = ArgMax <axis = 1, keepdims = 0> (scores)
}"""


def test_weights_are_those_that_meet_the_input_and_trainable_where_a_gradient_reaches_them():
    model = onnx.parser.parse_model(HEADER + MODEL)
    before = model.SerializeToString()
    assert find_weights(model) == [
        Weight("W", (4, 3), "coefficient", True),
        Weight("V", (4, 1), "coefficient", True),
        Weight("U", (4, 2), "coefficient", False),
        Weight("b", (4,), "intercept", True),
        Weight("c", (1,), "intercept", True),
        Weight("mean", (3,), "scale", True),
    ]
    assert model.SerializeToString() == before


def test_other_opsets_and_what_is_no_model():
    old = onnx.parser.parse_model(
        '<ir_version: 7, opset_import: ["" : 12]> f (float[N, 2] X) => (float[N] y) '
        "<float[2, 1] W = {1, 2}> { z = MatMul (X, W)  y = Squeeze <axes = [1]> (z) }"
    )
    assert find_weights(old) == [Weight("W", (2, 1), "coefficient", True)]
    with pytest.raises(ValueError, match=r"must be an onnx\.ModelProto or a fitted estimator, got 'model\.onnx'"):
        find_weights("model.onnx")
    empty = onnx.parser.parse_model(HEADER + "f () => (float[1] y) { y = Constant <value = float[1] {1}> () }")
    with pytest.raises(ValueError, match="has no input"):
        find_weights(empty)


def test_fitted_estimators_show_the_names_that_trainable_takes(rng):
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    network = MLPRegressor(hidden_layer_sizes=(4,), max_iter=5)
    with pytest.warns(ConvergenceWarning):
        network.fit(X, y)
    expected = [
        Weight("coefficient", (3, 4), "coefficient", True),
        Weight("coefficient1", (4, 1), "coefficient", True),
        Weight("intercepts", (1, 4), "intercept", True),
        Weight("intercepts1", (1, 1), "intercept", True),
    ]
    assert find_weights(network) == expected
    ours = OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(4,)), eta0=0.1, tol=None, max_iter=1, trainable="*1").fit(
        X, y
    )
    assert [weight.name for weight in find_weights(ours)] == [weight.name for weight in expected]
    assert {weight.name: weight.shape for weight in expected} == {n: w.shape for n, w in ours.weights_.items()}
    classes = LogisticRegression().fit(X, np.arange(30) % 3)
    assert [(weight.shape, weight.kind) for weight in find_weights(classes)] == [
        ((3, 3), "coefficient"),
        ((3,), "intercept"),
    ]
    with pytest.raises(NotFittedError):
        find_weights(LogisticRegression())
