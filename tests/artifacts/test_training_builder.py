"""The training model step by step."""

import onnx.parser
import pytest

from skort.artifacts import TrainingBuilder

LINE = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
line (float[N, 2] X) => (float[N, 1] score) <float[2, 1] coef = {1, 2}, float[1] intercept = {0}>
{ product = MatMul (X, coef)  score = Add (product, intercept) }""")


def test_nothing_is_known_before_it_is_built():
    builder = TrainingBuilder(LINE, batch_size=4)
    for ask in (builder.parameters, builder.to_model_proto):
        with pytest.raises(RuntimeError, match=r"not built yet: call build\(loss\) first"):
            ask()


def test_coefficients_and_intercepts_are_trained_unless_some_are_named():
    builder = TrainingBuilder(LINE, batch_size=4)
    builder.build("squared_error")
    assert [p.name for p in builder.parameters()[0]] == ["coef", "intercept"]
    builder.requires_grad("intercept")
    builder.requires_grad("coef")
    builder.requires_grad("coef", False)
    builder.build("squared_error")
    trainable, frozen = builder.parameters()
    assert [p.name for p in trainable] == ["intercept"]
    assert [p.name for p in frozen] == ["coef"]
    training, evaluation = builder.to_model_proto()
    assert [i.name for i in training.graph.input] == [
        *("X", "target", "intercept", "coef"),
        *("intercept_grad.accumulation.buffer", "lazy_reset_grad"),
    ]
    assert [i.name for i in evaluation.graph.input] == ["X", "target", "intercept", "coef"]


def test_a_parameter_that_requires_no_gradient_is_frozen():
    builder = TrainingBuilder(LINE, batch_size=4)
    builder.requires_grad("coef", False)
    builder.build("squared_error")
    trainable, frozen = builder.parameters()
    assert [p.name for p in trainable] == ["intercept"]
    assert [p.name for p in frozen] == ["coef"]
    builder.requires_grad("slope", False)
    with pytest.raises(
        ValueError,
        match=r"trainable=\['slope'\] matches no weight. The weights are \['coef', 'inter",
    ):
        builder.build("squared_error")


def test_a_wrong_model_and_batch_size_are_named():
    with pytest.raises(ValueError, match=r"model must be an onnx.ModelProto, got 'line.onnx'"):
        TrainingBuilder("line.onnx")
    for batch_size in (0, 2.0, True):
        with pytest.raises(ValueError, match="batch_size must be an int > 0, or None, got"):
            TrainingBuilder(LINE, batch_size=batch_size)


def test_an_unknown_name_is_named():
    builder = TrainingBuilder(LINE, batch_size=4)
    builder.requires_grad("slope")
    with pytest.raises(
        ValueError,
        match=r"trainable=\['slope'\] matches no weight. The weights are \['coef', 'inter",
    ):
        builder.build("squared_error")
