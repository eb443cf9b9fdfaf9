"""Other weights in an ONNX model, whose other bytes stay as they are."""

import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

from skort.onnx_models import with_weights

TEXT = """\
<ir_version: 7, opset_import: ["" : 13, "ai.onnx.ml" : 2], producer_name: "somebody", model_version: 3,
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
    assert with_weights(model, same).SerializeToString() == with_weights(model, {}).SerializeToString() == before
    other = with_weights(model, {"W": np.array([[3.0], [4.0]]), "b": [6.0]})
    assert model.SerializeToString() == before
    back = with_weights(other, same)
    assert back.SerializeToString() == before
    assert len(other.SerializeToString()) == len(before)
    np.testing.assert_array_equal(numpy_helper.to_array(other.graph.initializer[0]), [[3.0], [4.0]])
    assert numpy_helper.to_array(other.graph.node[0].attribute[0].t) == 6.0


def test_names_shapes_and_numbers_are_checked(model):
    with pytest.raises(ValueError, match=r"weights: the ONNX model has no tensor of floats 'V'\. It has W, D, b\."):
        with_weights(model, {"V": [1.0]})
    with pytest.raises(ValueError, match=r"no tensor of floats 'I'"):
        with_weights(model, {"I": [1]})
    with pytest.raises(ValueError, match=r"weights\['W'\] has shape \(2,\), but the weight has \(2, 1\)"):
        with_weights(model, {"W": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"weights\['b'\] has numbers that are not finite in float32"):
        with_weights(model, {"b": [1e300]})
    with pytest.raises(ValueError, match=r"weights\['b'\] is not an array of numbers: could not convert"):
        with_weights(model, {"b": ["a"]})
    with pytest.raises(ValueError, match="weights must be a dict: name -> array, got list"):
        with_weights(model, [1.0])
    with pytest.raises(ValueError, match=r"model must be an onnx\.ModelProto, got 'model\.onnx'"):
        with_weights("model.onnx", {})
    assert numpy_helper.to_array(with_weights(model, {"D": [1e300]}).graph.initializer[1]) == 1e300


def test_numbers_in_another_file_are_refused():
    tensor = helper.make_tensor("W", TensorProto.FLOAT, [2], np.zeros(2, np.float32).tobytes(), raw=True)
    tensor.data_location = TensorProto.EXTERNAL
    model = helper.make_model(helper.make_graph([], "empty", [], [], [tensor]))
    with pytest.raises(ValueError, match=r"weights\['W'\]: its numbers are in another file"):
        with_weights(model, {"W": [1.0, 2.0]})
