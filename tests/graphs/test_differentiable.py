"""The gradient of every operator that is said to have one, against a finite difference."""

import numpy as np
import onnx
import onnx.parser
import onnx.shape_inference
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from skort.common.onnx_text import IR_VERSION, OPSET, onnx_dtype
from skort.graphs.differentiable import DIFFERENTIABLE, FLOAT32_GRADIENTS, undifferentiable
from skort.runtime.installed import training_api
from skort.runtime.sessions import inference_session
from skort.runtime.training_api import BoundTrainingAgent, gradient_graph

rng = np.random.default_rng(0)


def positive(*shape):
    return rng.uniform(0.3, 0.9, shape)


def signed(*shape):
    return rng.uniform(0.2, 1.3, shape) * rng.choice([-1.0, 1.0], shape)


POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}
ONE_INPUT = {
    **dict.fromkeys(
        ["Abs", "Cos", "Dropout", "Erf", "Exp", "Identity", "LeakyRelu", "Neg", "Relu"],
        signed(2, 3),
    ),
    **dict.fromkeys(["Reciprocal", "Sigmoid", "Sin", "Tanh", "Flatten"], signed(2, 3)),
    **dict.fromkeys(["Log", "Sqrt"], positive(2, 3)),
    **dict.fromkeys(["ReduceMean", "ReduceSum"], signed(2, 3)),
    "Squeeze": signed(2, 1, 3),
    "Trilu": signed(3, 3),
    "GlobalAveragePool": signed(1, 2, 4, 4),
}
MASK = np.array([[True, False, False], [True, True, False]])
# Operator, its inputs, the position of the one that is differentiated by, attributes.
CASES = [
    *[(name, [array], 0, {}) for name, array in ONE_INPUT.items()],
    *[
        (name, [signed(2, 3), signed(2, 3)], i, {})
        for name in ("Add", "Div", "Max", "Min", "Mul", "Sub")
        for i in (0, 1)
    ],
    *[
        (name, [signed(2, 3), signed(3)], 1, {})
        for name in ("Add", "Div", "Max", "Min", "Mul", "Sub")
    ],
    ("Pow", [positive(2, 3), np.array(3.0)], 0, {}),
    ("Clip", [signed(2, 3), np.array(-0.5), np.array(0.5)], 0, {}),
    ("Cast", [signed(2, 3)], 0, {"to": 1}),
    *[("MatMul", [signed(4, 3), signed(3, 2)], i, {}) for i in (0, 1)],
    *[
        (
            "Gemm",
            [signed(4, 3), signed(2, 3), signed(2)],
            i,
            {"transB": 1, "alpha": 2.0, "beta": 0.5},
        )
        for i in (0, 1, 2)
    ],
    *[
        (name, [signed(2, 3)], 0, {"axis": axis})
        for name in ("Softmax", "LogSoftmax")
        for axis in (0, 1)
    ],
    ("ReduceMean", [signed(2, 3)], 0, {"axes": [1], "keepdims": 0}),
    ("ReduceSum", [signed(2, 3), np.array([1])], 0, {"keepdims": 0}),
    *[("Concat", [signed(2, 3), signed(2, 2)], i, {"axis": 1}) for i in (0, 1)],
    ("Expand", [signed(1, 3), np.array([2, 3])], 0, {}),
    ("Gather", [signed(2, 4), np.array([3, 1, 1])], 0, {"axis": 1}),
    ("GatherElements", [signed(2, 4), np.array([[0, 3], [1, 2]])], 0, {"axis": 1}),
    ("GatherND", [signed(2, 4), np.array([[0, 3], [1, 2]])], 0, {}),
    ("Pad", [signed(2, 3), np.array([0, 1, 0, 1]), np.array(0.0)], 0, {}),
    ("Reshape", [signed(2, 3), np.array([3, 2])], 0, {}),
    ("Slice", [signed(2, 4), np.array([0]), np.array([4]), np.array([1]), np.array([2])], 0, {}),
    ("Tile", [signed(2, 3), np.array([2, 1])], 0, {}),
    ("TopK", [signed(2, 4), np.array([2])], 0, {"axis": 1}),
    ("Transpose", [signed(2, 3)], 0, {"perm": [1, 0]}),
    ("Unsqueeze", [signed(2, 3), np.array([1])], 0, {}),
    *[("Where", [MASK, signed(2, 3), signed(2, 3)], i, {}) for i in (1, 2)],
    *[
        ("Where", [MASK, signed(2, 3), signed(1)], 1, {}),
        ("Where", [MASK, signed(), signed(2, 3)], 2, {}),
    ],
    *[("Conv", [signed(2, 3, 5, 5), signed(4, 3, 3, 3), signed(4)], i, {}) for i in (0, 1, 2)],
    ("MaxPool", [signed(1, 2, 4, 4)], 0, POOL),
    ("AveragePool", [signed(1, 2, 4, 4)], 0, POOL),
    *[("LayerNormalization", [signed(2, 3), signed(3), signed(3)], i, {}) for i in (0, 1, 2)],
]
# J = sum(first part * second part)
SPLIT = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
split (float[1, 1] X) => (float J) <float[1, 4] w = {1, 2, 3, 4}>
{
    first, second = Split <axis = 1> (w)
    product = Mul (first, second)
    scaled = Mul (product, X)
    J = ReduceSum <keepdims = 0> (scaled)
}""")


def model(case, dtype, w=None):
    """Return J = sum(X * operator(inputs)), and the shape of X."""
    name, arrays, position, attributes = case
    arrays = [a.astype(dtype) if a.dtype == np.float64 else a for a in arrays]
    if w is not None:
        arrays[position] = w
    names = ["w" if i == position else f"input{i}" for i in range(len(arrays))]
    outputs = ["result", "indices"] if name == "TopK" else ["result"]
    if name == "Cast":
        attributes = {"to": onnx_dtype(dtype)}
    node = helper.make_node(name, names, outputs, name="probed", **attributes)
    constants = [numpy_helper.from_array(a, n) for a, n in zip(arrays, names, strict=True)]
    opsets = {"opset_imports": [helper.make_opsetid("", OPSET)], "ir_version": IR_VERSION}
    alone = helper.make_graph([node], "alone", [], [onnx.ValueInfoProto(name="result")], constants)
    shape = ReferenceEvaluator(helper.make_model(alone, **opsets)).run(None, {})[0].shape
    ends = [helper.make_node("Mul", ["result", "X"], ["product"])]
    ends.append(helper.make_node("ReduceSum", ["product"], ["J"], keepdims=0))
    X = helper.make_tensor_value_info("X", onnx_dtype(dtype), shape)
    J = helper.make_tensor_value_info("J", onnx_dtype(dtype), [])
    made = helper.make_model(helper.make_graph([node, *ends], "J", [X], [J], constants), **opsets)
    return onnx.shape_inference.infer_shapes(made), shape


def finite_difference(case, X):
    w = case[1][case[2]]
    difference = np.empty(w.shape)
    for i in np.ndindex(*w.shape):
        step = np.zeros(w.shape)
        step[i] = 1e-3
        plus, minus = (
            ReferenceEvaluator(model(case, np.float64, moved)[0]).run(None, {"X": X})[0]
            for moved in (w + step, w - step)
        )
        difference[i] = (plus - minus) / 2e-3
    return difference


def agent_gradient(onnx_model, w, X):
    gradient = np.full_like(w, np.nan)
    graph = gradient_graph(onnx_model.SerializeToString(), ["w"])
    BoundTrainingAgent(inference_session(graph), {"X": X, "w": w}, {"w_grad": gradient}).run()
    return gradient


def session_gradient(onnx_model, w, X):
    from skort.runtime.training_api import BoundTrainingSession, SessionOptimizer, training_session

    session = training_session(onnx_model, ["w"], SessionOptimizer())
    session = BoundTrainingSession(session, ["J"], ["w"], {"X": X}, SessionOptimizer())
    session.run(2.0**-6)
    return (w - session.state()["weights"]["w"]) * 2**6


def runs(names, dtype):
    return [
        pytest.param(case, dtype, id=f"{case[0]}-{case[2]}-{dtype}")
        for case in CASES
        if case[0] in names
    ]


def test_every_operator_has_a_case():
    assert {case[0] for case in CASES} | {"Split"} == DIFFERENTIABLE
    assert FLOAT32_GRADIENTS < DIFFERENTIABLE


# Relu is written anew by the solver, which is tested with it.
@pytest.mark.skipif(
    "TrainingAgent" not in training_api(), reason="this runtime has no TrainingAgent"
)
@pytest.mark.parametrize(
    "case, dtype",
    runs(DIFFERENTIABLE, "float32")
    + runs(DIFFERENTIABLE - FLOAT32_GRADIENTS - {"Relu"}, "float64"),
)
def test_agent_gradient(case, dtype):
    onnx_model, shape = model(case, dtype)
    X = np.random.default_rng(1).uniform(0.5, 1.5, shape)
    w = np.array(case[1][case[2]], dtype)
    assert undifferentiable(onnx_model.graph, ["w"]) is None
    gradient = agent_gradient(onnx_model, w, X.astype(dtype))
    np.testing.assert_allclose(gradient, finite_difference(case, X), rtol=1e-4, atol=2e-4)


@pytest.mark.skipif(
    "TrainingSession" not in training_api(), reason="this runtime has no TrainingSession"
)
@pytest.mark.parametrize("case, dtype", runs(DIFFERENTIABLE, "float32"))
def test_session_gradient(case, dtype):
    onnx_model, shape = model(case, dtype)
    X = np.random.default_rng(1).uniform(0.5, 1.5, shape)
    w = np.array(case[1][case[2]], dtype)
    gradient = session_gradient(onnx_model, w, X.astype(dtype))
    np.testing.assert_allclose(gradient, finite_difference(case, X), rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize(
    "api, gradient", [("TrainingAgent", agent_gradient), ("TrainingSession", session_gradient)]
)
def test_split_with_every_part_used(api, gradient):
    if api not in training_api():
        pytest.skip(f"this runtime has no {api}")
    w = np.array([[1, 2, 3, 4]], np.float32)
    assert undifferentiable(SPLIT.graph, ["w"]) is None
    np.testing.assert_allclose(gradient(SPLIT, w, np.ones((1, 1), np.float32)), [[3, 4, 1, 2]])


def graph(body, dtype="float"):
    text = f"""
    <ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml": 3]>
    graph ({dtype}[n, 2] X) => ({dtype}[n, k] score)
    <{dtype}[2, 2] w = {{1, 2, 3, 4}}, {dtype}[2] v = {{1, 2}}, {dtype}[2] unused = {{1, 2}}>
    {{{body}}}"""
    parsed = onnx.parser.parse_model(text).graph
    for i, node in enumerate(parsed.node):
        node.name = f"node{i}"
    return parsed


@pytest.mark.parametrize(
    "body, found",
    [
        ("a = MatMul (X, w)  b = Softplus (a)  score = Add (b, v)", ("Softplus", "node1")),
        ("a = Floor (X)  b = MatMul (a, w)  score = Add (b, v)", None),
        ("a = MatMul (X, w)  c = Floor (a)  score = Add (a, v)", None),
        (
            "a = MatMul (X, w)  b = ai.onnx.ml.Normalizer (a)  score = Add (b, v)",
            ("Normalizer", "node1"),
        ),
        (
            "a = MatMul (X, w)  b = ArgMax (a)  c = Cast <to = 1> (b)  score = Add (c, v)",
            ("ArgMax", "node1"),
        ),
        ("a = MatMul (X, w)  b = Greater (a, X)  c = Cast <to = 1> (b)  score = Mul (a, c)", None),
        (
            "a = MatMul (X, w)  b = Greater (a, X)  c = Cast <to = 1> (b)  score = Mul (X, c)",
            ("Greater", "node1"),
        ),
        (
            "a = MatMul (X, w)  b = Cast <to = 7> (a)  c = Cast <to = 1> (b)  score = Add (c, v)",
            ("Cast", "node1"),
        ),
        (
            "a = MatMul (X, w)  b = Cast <to = 7> (a)  c = Cast <to = 1> (b)  score = Mul (a, c)",
            None,
        ),
        ("a = MatMul (X, w)  b = Floor (a)  score = Mul (a, b)", ("Floor", "node1")),
        ("score = MatMul (X, v)", ("MatMul", "node0")),
        ("score = Pow (X, v)", ("Pow", "node0")),
        ("b = Greater (X, X)  score = Where (b, X, v)", ("Where", "node1")),
        ("a = MatMul (X, w)  score = LayerNormalization (a, v)", ("LayerNormalization", "node1")),
        (
            "b, m = LayerNormalization (X, v, v)  score = Add (b, m)",
            ("LayerNormalization", "node0"),
        ),
        (
            (
                "a = MatMul (X, w)  p = Constant <value_ints = [0, 1, 0, 0]> ()  score = Pad "
                '<mode = "edge"> (a, p)'
            ),
            ("Pad", "node2"),
        ),
        ('score = Conv <auto_pad = "SAME_UPPER"> (X, w)', ("Conv", "node0")),
        ("score = Conv (X, w)", None),
        ("a = Transpose (w)  score = MatMul (X, a)", ("Transpose", "node0")),
        ("a, b = Split <axis = 0> (w)  score = MatMul (X, b)", ("Split", "node0")),
    ],
)
def test_what_stands_in_the_way(body, found):
    assert undifferentiable(graph(body), ["unused", "w", "v"]) == found


def test_what_stands_in_the_way_of_the_input():
    trees = graph("score = ai.onnx.ml.TreeEnsembleRegressor (X)")
    assert undifferentiable(trees, ["X"]) == ("TreeEnsembleRegressor", "node0")


def test_float64_has_fewer():
    body = "a = MatMul (X, w)  score = Softmax (a)"
    assert undifferentiable(graph(body), ["w"]) is None
    assert undifferentiable(graph(body, "double"), ["w"]) == ("Softmax", "node1")
