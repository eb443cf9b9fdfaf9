"""Forward and backward as two graphs."""

import numpy as np
import onnx
import onnx.parser
import pytest
from sklearn.neural_network import MLPRegressor

from skort.exceptions import NotTrainableError
from skort.graphs.gradient.forward_backward import check_gradient, forward_backward, needed
from skort.graphs.gradient.gradient_graphs import gradient_name
from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreGraph, ScoreSpec

BODIES = {
    "linear": "score = MatMul (X, w)",
    "one layer": "a = MatMul (X, w)  b = Add (a, v)  score = Tanh (b)",
    "two ways": "a = MatMul (X, w)  b = Sigmoid (a)  c = Mul (a, b)  score = Add (c, v)",
    "constants": "k = Constant <value = double {2}> ()  a = MatMul (X, w)  b = Add (a, v)  c = Mul (b, k)  "
    "d = Mul (c, b)  score = Mul (d, k)",
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
        expected = numeric_gradient(lambda: np.sum(dy * run_onnx(forward, **inputs)["score"]), inputs[name])
        np.testing.assert_allclose(gradients[gradient_name(name)], expected, rtol=1e-6, atol=1e-8)


def test_the_forward_half_has_no_node_that_only_the_backward_needs():
    graph = initial_score_graph(
        MLPRegressor(hidden_layer_sizes=(4,), activation="tanh"), ScoreSpec(3, 1, "float32"), np.random.RandomState(0)
    )
    forward, backward = forward_backward(graph, 5)
    assert [node.op_type for node in forward.graph.node] == ["MatMul", "Add", "Tanh", "MatMul", "Add"]
    # The slope 1 - y^2 depends on no derivative.
    assert "Sub" in [node.op_type for node in backward.graph.node]
    saved = [output.name for output in forward.graph.output][1:]
    assert len(saved) == 1
    assert set(saved) < {i.name for i in backward.graph.input}
    assert [o.name for o in backward.graph.output] == [gradient_name(name) for name in graph.trainable]


def test_only_what_is_trained_is_differentiated():
    graph = score_graph(BODIES["one layer"]).training_only(["v"])
    forward, backward = forward_backward(graph, 3)
    assert [i.name for i in forward.graph.input] == ["X", "w", "v"]
    assert [o.name for o in backward.graph.output] == ["v_gradient"]


def test_an_operator_without_a_rule_is_named():
    graph = score_graph("a = MatMul (X, w)  b = Add (a, v)  c = CumSum (b, axis)  score = Add (c, v)")
    axis = onnx.numpy_helper.from_array(np.array(1), "axis")
    graph.structure.graph.initializer.append(axis)
    with pytest.raises(NotTrainableError, match=r"between a weight and the score, .*the operator CumSum"):
        check_gradient(graph)
    with pytest.raises(NotTrainableError, match=r"X or a weight and the score.*ask for no gradient by X"):
        forward_backward(graph, 3, input_gradient=True)


def test_a_model_without_weights_has_none_to_train():
    with pytest.raises(NotTrainableError, match="no weight to train"):
        forward_backward(score_graph("score = Tanh (X)"), 3)


def test_needed_drops_what_no_output_needs():
    model = score_graph("a = MatMul (X, w)  b = Tanh (a)  score = Add (a, v)").model
    assert [node.op_type for node in needed(model).graph.node] == ["MatMul", "Add"]
    assert len(model.graph.node) == 3
