"""Forward and backward as two graphs."""

import numpy as np
import onnx
import onnx.parser
import pytest
from sklearn.neural_network import MLPRegressor

from skort.common.onnx_text import function
from skort.exceptions import NotTrainableError
from skort.graphs.gradient.forward_backward import (
    GRADIENT,
    check_gradient,
    forward_backward,
    gradient_name,
    packed_gradients,
    packed_text,
    unpacked_text,
)
from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreGraph, ScoreSpec

BODIES = {
    "linear": "score = MatMul (X, w)",
    "one layer": "a = MatMul (X, w)  b = Add (a, v)  score = Tanh (b)",
    "two ways": "a = MatMul (X, w)  b = Sigmoid (a)  c = Mul (a, b)  score = Add (c, v)",
    "constants": (
        "k = Constant <value = double {2}> ()  a = MatMul (X, w)  b = Add (a, v)  c = Mul (b, k)  "
        "d = Mul (c, b)  score = Mul (d, k)"
    ),
    "the score is needed": "a = MatMul (X, w)  b = Add (a, v)  score = Exp (b)",
    "X twice": "a = MatMul (X, w)  b = Mul (a, X)  score = Add (b, v)",
}


def score_graph(body, dtype="double"):
    text = f"""
    <ir_version: 8, opset_import: ["" : 17]>
    graph ({dtype}[N, 2] X) => ({dtype}[N, 2] score)
    <{dtype}[2, 2] w = {{0.1, 0.2, -0.3, 0.4}}, {dtype}[2] v = {{0.5, -0.6}}> {{{body}}}"""
    return ScoreGraph.of(onnx.parser.parse_model(text))


def numeric_gradient(function, array, eps=1e-6):
    gradient = np.zeros_like(array)
    for i in np.ndindex(array.shape):
        before = array[i]
        ends = []
        for end in (before + eps, before - eps):
            array[i] = end
            ends.append(function())
        array[i] = before
        gradient[i] = (ends[0] - ends[1]) / (2 * eps)
    return gradient


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_gradients_are_finite_differences(body, run_onnx, rng):
    graph = score_graph(body)
    forward, backward = forward_backward(graph, 3, input_gradient=True)
    X, dy = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    inputs = {"X": X, **graph.weights()}
    results = run_onnx(forward, **inputs)
    given = {"skort_score_gradient": dy, **inputs, **results}
    gradients = run_onnx(backward, **{i.name: given[i.name] for i in backward.graph.input})
    for name in ("X", *graph.trainable):
        expected = numeric_gradient(
            lambda: np.sum(dy * run_onnx(forward, **inputs)["score"]), inputs[name]
        )
        np.testing.assert_allclose(gradients[gradient_name(name)], expected, rtol=1e-6, atol=1e-8)


def test_the_forward_half_has_no_node_that_only_the_backward_needs():
    graph = initial_score_graph(
        MLPRegressor(hidden_layer_sizes=(4,), activation="tanh"),
        ScoreSpec(3, 1, "float32"),
        np.random.RandomState(0),
    )
    forward, backward = forward_backward(graph, 5)
    assert [node.op_type for node in forward.graph.node] == [
        "MatMul",
        "Add",
        "Tanh",
        "MatMul",
        "Add",
    ]
    # The slope 1 - y^2 depends on no derivative.
    assert "Sub" in [node.op_type for node in backward.graph.node]
    saved = [output.name for output in forward.graph.output][1:]
    assert len(saved) == 1
    assert set(saved) < {i.name for i in backward.graph.input}
    assert [o.name for o in backward.graph.output] == [
        gradient_name(name) for name in graph.trainable
    ]


def test_only_what_is_trained_is_differentiated():
    graph = score_graph(BODIES["one layer"]).training_only(["v"])
    forward, backward = forward_backward(graph, 3)
    assert [i.name for i in forward.graph.input] == ["X", "w", "v"]
    assert [o.name for o in backward.graph.output] == ["v_gradient"]


def test_an_operator_without_a_rule_is_named():
    graph = score_graph("a = MatMul (X, w)  b = Add (a, v)  c = Asinh (b)  score = Add (c, v)")
    with pytest.raises(
        NotTrainableError, match=r"between a weight and the score, .*the operator Asinh"
    ):
        check_gradient(graph)
    with pytest.raises(
        NotTrainableError, match=r"X or a weight and the score.*ask for no gradient by X"
    ):
        forward_backward(graph, 3, input_gradient=True)


def test_a_model_without_weights_has_none_to_train():
    with pytest.raises(NotTrainableError, match="no weight to train"):
        forward_backward(score_graph("score = Tanh (X)"), 3)


WEIGHTS = {
    "w": np.array([[1.0, 2.0], [3.0, 4.0]]),
    "v": np.array([5.0, 6.0]),
    "u": np.array([[7.0]]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_packed_gradients_are_one_output(dtype, run_onnx):
    onnx_type = {"float32": "float", "float64": "double"}[dtype]
    weights = {name: array.astype(dtype) for name, array in WEIGHTS.items()}
    backward = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
    backward ({onnx_type}[1] dy) => ({onnx_type}[2, 2] w_gradient, {onnx_type}[1] X_gradient,
        {onnx_type}[2] v_gradient, {onnx_type}[1, 1] u_gradient)
    <{onnx_type}[2, 2] w = {{1, 2, 3, 4}}, {onnx_type}[2] v = {{5, 6}}, {onnx_type}[1, 1] u = {{7}}>
        {{
        w_gradient = Mul (w, dy)  v_gradient = Mul (v, dy)  u_gradient = Mul (u, dy)
    X_gradient = Neg (dy)
    }}""")
    results = run_onnx(packed_gradients(backward, weights), dy=np.array([2], dtype))
    assert list(results) == [GRADIENT, "X_gradient"]
    np.testing.assert_array_equal(results[GRADIENT], [2, 4, 6, 8, 10, 12, 14])
    assert results[GRADIENT].dtype == dtype


def test_the_parts_of_a_vector_have_the_shapes_of_the_weights(run_onnx):
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "skort" : 1]>
    there_and_back (double[7] vector)
    => (double[2, 2] a, double[2] b, double[1, 1] c, double[7] same)
    { a, b, c = skort.unpacked (vector)  same = skort.packed (a, b, c) }""")
    model.functions.extend(
        function(text, "float64") for text in (unpacked_text(WEIGHTS), packed_text(WEIGHTS))
    )
    vector = np.arange(1.0, 8.0)
    results = run_onnx(onnx.inliner.inline_local_functions(model), vector=vector)
    for result, array in zip(results.values(), WEIGHTS.values(), strict=False):
        np.testing.assert_array_equal(result, array)
    np.testing.assert_array_equal(results["same"], vector)
