"""Which weights an ONNX model has, and other numbers in them: all other bytes stay as they are."""

import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor
from skort.graphs.onnx_models.weights import finite_array
from skort.onnx_models import Weight, find_weights, with_weights

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
    with pytest.raises(
        ValueError, match=r"must be an onnx\.ModelProto or a fitted estimator, got 'model\.onnx'"
    ):
        find_weights("model.onnx")
    empty = onnx.parser.parse_model(
        HEADER + "f () => (float[1] y) { y = Constant <value = float[1] {1}> () }"
    )
    with pytest.raises(ValueError, match="has no input"):
        find_weights(empty)


def test_weights_in_another_shape_or_behind_a_cast_are_weights():
    model = onnx.parser.parse_model(
        HEADER
        + """f (float[N, 2] X) => (float[N, 1] y)
        <float[1, 2, 2] W = {1, 2, 3, 4}, float[2, 1] b = {1, 2}, float[2, 1] V = {1, 2},
        int64[1] first = {0}>
        {
            matrix = Squeeze (W, first)  row = Flatten <axis = 0> (b)  cast = Cast <to = 1> (V)
            h = MatMul (X, matrix)  t = Add (h, row)  y = MatMul (t, cast)
        }"""
    )
    found = {weight.name: weight.kind for weight in find_weights(model) if weight.trainable}
    assert found == {"W": "coefficient", "b": "intercept", "V": "coefficient"}


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
    ours = OrtSGDRegressor(
        MLPRegressor(hidden_layer_sizes=(4,)), eta0=0.1, tol=None, max_iter=1, trainable="*1"
    ).fit(X, y)
    assert [weight.name for weight in find_weights(ours)] == [weight.name for weight in expected]
    assert {weight.name: weight.shape for weight in expected} == {
        n: w.shape for n, w in ours.weights_.items()
    }
    classes = LogisticRegression().fit(X, np.arange(30) % 3)
    assert [(weight.shape, weight.kind) for weight in find_weights(classes)] == [
        ((3, 3), "coefficient"),
        ((3,), "intercept"),
    ]
    with pytest.raises(NotFittedError):
        find_weights(LogisticRegression())


TEXT = """\
<ir_version: 7, opset_import: ["" : 13, "ai.onnx.ml" : 2],
 producer_name: "somebody", model_version: 3,
 metadata_props: ["key" : "value"]>
lines (float[N, 2] X) => (float[N, 1] y)
<float[2, 1] W = {1, 2}, double[1] D = {1.5}, int64[1] I = {7}>
{
    b = Constant <value = float[1] {0.5}> ()
    product = MatMul (X, W)
    y = Add (product, b)
}"""


def stored_as_raw(model):
    """Return a copy whose initializers are stored as bytes."""
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    for i in copied.graph.initializer:
        i.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(i), i.name))
    return copied


@pytest.fixture(params=["typed", "raw"])
def model(request):
    model = onnx.parser.parse_model(TEXT)
    return stored_as_raw(model) if request.param == "raw" else model


def test_all_but_the_numbers_is_the_same(model):
    before = model.SerializeToString()
    same = {"W": [[1.0], [2.0]], "b": [0.5], "D": [1.5]}
    assert (
        with_weights(model, same).SerializeToString()
        == with_weights(model, {}).SerializeToString()
        == before
    )
    other = with_weights(model, {"W": np.array([[3.0], [4.0]]), "b": [6.0]})
    assert model.SerializeToString() == before
    back = with_weights(other, same)
    assert back.SerializeToString() == before
    assert len(other.SerializeToString()) == len(before)
    np.testing.assert_array_equal(numpy_helper.to_array(other.graph.initializer[0]), [[3.0], [4.0]])
    assert numpy_helper.to_array(other.graph.node[0].attribute[0].t) == 6.0


def test_names_shapes_and_numbers_are_checked(model):
    with pytest.raises(
        ValueError, match=r"weights: the ONNX model has no tensor of floats 'V'\. It has W, D, b\."
    ):
        with_weights(model, {"V": [1.0]})
    with pytest.raises(ValueError, match=r"no tensor of floats 'I'"):
        with_weights(model, {"I": [1]})
    with pytest.raises(
        ValueError, match=r"weights\['W'\] has shape \(2,\), but the weight has \(2, 1\)"
    ):
        with_weights(model, {"W": [1.0, 2.0]})
    with pytest.raises(
        ValueError, match=r"weights\['b'\] has numbers that are not finite in float32"
    ):
        with_weights(model, {"b": [1e300]})
    with pytest.raises(
        ValueError, match=r"weights\['b'\] is not an array of numbers: could not convert"
    ):
        with_weights(model, {"b": ["a"]})
    with pytest.raises(ValueError, match="weights must be a dict: name -> array, got list"):
        with_weights(model, [1.0])
    with pytest.raises(ValueError, match=r"model must be an onnx\.ModelProto, got 'model\.onnx'"):
        with_weights("model.onnx", {})
    assert numpy_helper.to_array(with_weights(model, {"D": [1e300]}).graph.initializer[1]) == 1e300


def test_numbers_in_another_file_are_refused():
    tensor = helper.make_tensor(
        "W", TensorProto.FLOAT, [2], np.zeros(2, np.float32).tobytes(), raw=True
    )
    tensor.data_location = TensorProto.EXTERNAL
    model = helper.make_model(helper.make_graph([], "empty", [], [], [tensor]))
    with pytest.raises(ValueError, match=r"weights\['W'\]: its numbers are in another file"):
        with_weights(model, {"W": [1.0, 2.0]})


def test_weights_of_layer_normalizations():
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        m (float[N, 2] X) => (float[N, 2] y)
        <float[2] a = {1, 2}, float[2] b = {0, 1}, float[2, 2] W = {1, 2, 3, 4},
         float[2] c = {1, 2}, float[2] d = {1, 0}>
        { n = LayerNormalization (X, a, b)  p = MatMul (n, W)
        y = LayerNormalization (p, c, d) }""")
    kinds = {weight.name: weight.kind for weight in find_weights(model)}
    assert kinds == {"W": "coefficient", "d": "intercept", "a": "scale", "b": "scale", "c": "scale"}
    assert all(weight.trainable for weight in find_weights(model))


def test_numbers_are_a_new_array_in_the_dtype():
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
