"""Differentiation of whole graphs."""

import numpy as np
import onnx
import onnx.parser
import pytest

from skort.common.onnx_text import Fragment, inlined
from skort.exceptions import NotTrainableError
from skort.graphs.differentiable import undifferentiable
from skort.graphs.gradient.reverse import add_gradients, rule_gradient


def parsed(body, dtype="float"):
    text = f"""
    <ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml": 3]>
    graph ({dtype}[3, 2] X) => ({dtype}[3, 2] score)
    <{dtype}[2, 2] w = {{1, 2, 3, 4}}, {dtype}[2] v = {{1, 2}}, {dtype}[2] unused = {{1, 2}}>
    {{{body}}}"""
    return onnx.parser.parse_model(text)


def gradients(body, names, run_onnx):
    """Return the gradients of the sum of the score, with X = 1, 2, 3, ..."""
    return gradients_of(parsed(body), names, run_onnx)


def gradients_of(model, names, run_onnx):
    fragment = Fragment("float32")
    fragment.nodes.extend(model.graph.node)
    by_name = add_gradients(fragment, model.graph, "dy", names)
    del model.graph.node[:], model.graph.output[:]
    model.graph.node.extend(fragment.nodes)
    model.graph.input.append(onnx.helper.make_tensor_value_info("dy", 1, [3, 2]))
    shapes = {i.name: i.dims for i in model.graph.initializer} | {"X": [3, 2]}
    for name, gradient in by_name.items():
        model.graph.output.append(onnx.helper.make_tensor_value_info(gradient, 1, shapes[name]))
    X = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    results = run_onnx(inlined(model, fragment), X=X, dy=np.ones((3, 2), np.float32))
    return [results[by_name[name]] for name in names]


def test_a_result_that_is_used_twice_gets_the_sum(run_onnx):
    # score = (X w)^2 + X w + v: d/dw = X' (2 X w + 1)
    body = "a = MatMul (X, w)  b = Mul (a, a)  c = Add (a, b)  score = Add (c, v)"
    w, v = gradients(body, ["w", "v"], run_onnx)
    X = np.arange(1, 7).reshape(3, 2)
    np.testing.assert_allclose(w, X.T @ (2 * X @ [[1, 2], [3, 4]] + 1))
    np.testing.assert_allclose(v, [3, 3])


def test_a_weight_that_is_used_twice_gets_the_sum(run_onnx):
    (v,) = gradients("a = Mul (X, v)  score = Mul (a, v)", ["v"], run_onnx)
    np.testing.assert_allclose(v, [2 * 9, 4 * 12])


def test_names_with_numbers_are_told_apart(run_onnx):
    # score = (X + 2 v)^2 + X + 2 v
    body = "h = Add (X, v)  n = Add (h, v)  m = Mul (n, n)  score = Add (m, n)"
    model = parsed(body)
    for node in model.graph.node:
        node.input[:] = ["v/0" if name == "n" else name for name in node.input]
        node.output[:] = ["v/0" if name == "n" else name for name in node.output]
    (v,) = gradients_of(model, ["v"], run_onnx)
    X = np.arange(1, 7).reshape(3, 2)
    np.testing.assert_allclose(v, (2 * (2 * (X + np.array([2, 4])) + 1)).sum(axis=0))


def test_a_part_that_is_not_used_gets_zeros(run_onnx):
    (w,) = gradients("a, b = Split <axis = 0> (w)  score = Mul (X, b)", ["w"], run_onnx)
    np.testing.assert_allclose(w, [[0, 0], [9, 12]])


def test_a_pool_that_gives_its_indices_has_the_gradient_of_its_maximum(run_onnx):
    body = (
        "a = MatMul (X, w)  b = Unsqueeze (a, axis)  c, i = MaxPool <kernel_shape = [2]> (b)  "
        "d = Squeeze (c, axis)"
    )
    (w,) = gradients(
        f"axis = Constant <value_ints = [1]> ()  {body}  score = Mul (d, v)", ["w"], run_onnx
    )
    # The maximum of a row of X w is the second one; the sum of v is 3.
    np.testing.assert_allclose(w, [[0, 27], [0, 36]])


# Operators on the numbers x inside a Cast to float64 and back, and the gradients of the sums of v
# times their results.
INSIDE = {
    "Tanh (x)": lambda x: [1, 2] * (1 - np.tanh(x) ** 2),
    "LeakyRelu <alpha = 0.25> (x)": lambda x: [1, 2] * np.where(x < 0, 0.25, 1),
    "ReduceMean <axes = [1]> (x)": lambda x: np.full((3, 2), 1.5),
    "Gather <axis = 1> (x, swapped)": lambda x: np.tile([2, 1], (3, 1)),
}


@pytest.mark.parametrize("operator", INSIDE)
def test_numbers_inside_a_cast_are_of_its_type(operator, run_onnx):
    body = (
        "swapped = Constant <value_ints = [1, 0]> ()  x = Cast <to = 11> "
        f"(difference)  y = {operator}"
    )
    body = (
        f"a = MatMul (X, w)  difference = Sub (a, X)  {body}  z = Cast <to = 1> (y)  "
        "score = Mul (z, v)"
    )
    (w,) = gradients(body, ["w"], run_onnx)
    X = np.arange(1, 7).reshape(3, 2)
    np.testing.assert_allclose(w, X.T @ INSIDE[operator](X @ [[1, 2], [3, 4]] - X), rtol=1e-5)


AXES = [
    "Constant <value = int64[1] {1}> ()",
    "Constant <value_ints = [1]> ()",
    "Constant <value_ints = [-1]> ()",
]


@pytest.mark.parametrize("axes", AXES)
def test_numbers_of_a_node_are_known_however_they_are_written(axes, run_onnx):
    # The sum of all X w, each twice: d/dw = 2 X' 1
    body = (
        f"axes = {axes}  a = MatMul (X, w)  b = ReduceSum <keepdims = 1> (a, axes)  "
        "score = Expand (b, shape)"
    )
    (w,) = gradients(f"shape = Constant <value_ints = [3, 2]> ()  {body}", ["w"], run_onnx)
    np.testing.assert_allclose(w, [[18, 18], [24, 24]])


def test_no_gradient_by_the_data():
    model = parsed("a = MatMul (X, w)  score = Add (a, v)")
    fragment = Fragment("float32")
    add_gradients(fragment, model.graph, "dy", ["w", "v"])
    operators = [node.op_type for function in fragment.functions.values() for node in function.node]
    assert operators.count("Gemm") == 1


@pytest.mark.parametrize(
    "body, found",
    [
        ("a = MatMul (X, w)  b = Softplus (a)  score = Add (b, v)", None),
        ("a = Floor (X)  b = MatMul (a, w)  score = Add (b, v)", None),
        ("a = ai.onnx.ml.Scaler (X)  b = MatMul (a, w)  score = Add (b, v)", None),
        ("a = ai.onnx.ml.Normalizer (X)  b = MatMul (a, w)  score = Add (b, v)", None),
        ("a = ai.onnx.ml.Imputer (X)  b = MatMul (a, w)  score = Add (b, v)", None),
        ("a = MatMul (X, w)  c = Floor (a)  score = Add (a, v)", None),
        ((
            "a = MatMul (X, w)  b = ai.onnx.ml.Normalizer (a)  score = Add (b, v)"
        ), ("Normalizer", "")),
        ((
            "a = MatMul (X, w)  b = ArgMax (a)  c = Cast <to = 1> (b)  score = Add (c, v)"
        ), ("ArgMax", "")),
        ("a = MatMul (X, w)  b = Greater (a, X)  c = Cast <to = 1> (b)  score = Mul (a, c)", None),
        ((
            "a = MatMul (X, w)  b = Cast <to = 7> (a)  c = Cast <to = 1> (b)  score = Add (c, v)"
        ), ("Cast", "")),
        ((
            "a = MatMul (X, w)  b = Shape (a)  c = Cast <to = 1> (b)  score = Mul (X, c)"
        ), ("Shape", "")),
        ("score = Pow (X, v)", ("Pow", "")),
        ((
            "a = MatMul (X, w)  b = Shape (v)  c = ReduceSum (a, b)  score = Add (c, v)"
        ), ("ReduceSum", "")),
        ((
            "a = MatMul (X, w)  b = NonZero (v)  c = Gather (a, b)  score = Add (c, v)"
        ), ("Gather", "")),
        ("a = MatMul (X, w)  b = Floor (a)  score = Mul (a, b)", ("Floor", "")),
        ("b, m = LayerNormalization (X, v, v)  score = Add (b, m)", ("LayerNormalization", "")),
        ("a = MatMul (X, w)  c = Add (a, v)  b = Constant <value = bool {1}> ()  d = If (b) "
         "<then_branch = t () => (y) {y = Identity (v)}, else_branch = e () => (z) {z = Neg (v)}>  score = Mul (c, d)",
         ("If", "")),
        ("b = Greater (X, w)  score = If (b) <then_branch = t () => (y) {y = Identity (v)}, "
         "else_branch = e () => (z) {z = Neg (v)}>", ("Greater", "")),
    ],
)  # fmt: skip
def test_what_stands_in_the_way(body, found):
    assert undifferentiable(parsed(body).graph, ["unused", "w", "v"], rule_gradient) == found


def test_float64_has_fewer():
    body = "a = MatMul (X, w)  score = Softplus (a)"
    assert undifferentiable(parsed(body).graph, ["w"], rule_gradient) is None
    assert undifferentiable(parsed(body, "double").graph, ["w"], rule_gradient) == ("Softplus", "")


def test_an_operator_without_rule_is_named():
    model = parsed("a = MatMul (X, w)  score = Asinh (a)")
    with pytest.raises(NotTrainableError, match="through the operator Asinh by its input 'a'"):
        add_gradients(Fragment("float32"), model.graph, "dy", ["w"])
