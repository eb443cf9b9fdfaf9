"""
The rule of every operator against central differences
and against ONNX Runtime's own gradient.
"""

import math

import numpy as np
import onnx.helper
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from skort.common.onnx_text import IR_VERSION, OPSET, Fragment, inlined, onnx_dtype
from skort.graphs.differentiable import runtime_gradient, undifferentiable
from skort.graphs.gradient.elementwise import CURVED, ELEMENTWISE, FLOAT32_ONLY
from skort.graphs.gradient.reverse import RULES, add_gradients, rule_gradient
from skort.runtime.installed import training_api
from skort.runtime.sessions import ArraySession, inference_session
from skort.runtime.training_api import BoundTrainingAgent, gradient_graph

rng = np.random.default_rng(0)


class Erf(OpRun):
    """The reference evaluator's own is an approximation."""

    op_domain = ""

    def _run(self, x):
        return (np.vectorize(math.erf)(x).astype(x.dtype),)


def positive(*shape):
    return rng.uniform(0.3, 0.9, shape)


def signed(*shape):
    return np.asarray(rng.uniform(0.2, 1.3, shape) * rng.choice([-1.0, 1.0], shape))


def distinct(*shape):
    return rng.permutation(math.prod(shape)).reshape(shape).astype(float)


ints = np.array
ONE_INPUT = {
    **dict.fromkeys(
        ["Abs", "Cos", "Elu", "Erf", "Exp", "Flatten", "Identity", "LeakyRelu", "Neg"], signed(2, 3)
    ),
    **dict.fromkeys(
        ["LogSoftmax", "Reciprocal", "ReduceMean", "ReduceSum", "Relu", "Sigmoid", "Sin"],
        signed(2, 3),
    ),
    **dict.fromkeys(["Softmax", "Softplus", "Sum", "Tanh", "Transpose"], signed(2, 3)),
    **dict.fromkeys(["Log", "Sqrt"], positive(2, 3)),
    "Squeeze": signed(2, 1, 3),
    **dict.fromkeys(["Atan", "Celu", "HardSigmoid", "ReduceL2", "ReduceLogSumExp"], signed(2, 3)),
    **dict.fromkeys(["ReduceMax", "ReduceMin"], distinct(2, 3)),
    **dict.fromkeys(["ReduceProd", "Selu", "Sign"], signed(2, 3)),
    # Below, inside and above the range in which it bends.
    "HardSwish": np.array([[-4.0, -2.5, -0.5], [0.5, 2.5, 4.0]]),
}
BROADCAST = [
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((3,), (2, 3)),
    ((2, 3), ()),
    ((2, 1, 3), (4, 1)),
]
PRODUCTS = [
    *[
        ((4, 3), (3, 2)),
        ((3,), (3, 2)),
        ((4, 3), (3,)),
        ((3,), (3,)),
        ((5, 4, 3), (3, 2)),
        ((4, 3), (5, 3, 2)),
    ],
    *[((5, 1, 4, 3), (6, 3, 2)), ((5, 4, 3), (3,))],
]
# Shapes of x and w, attributes.
CONVOLUTIONS = [
    ((2, 3, 6), (2, 3, 3), {}),
    ((2, 2, 7), (3, 2, 2), {"strides": [3], "pads": [1, 2], "dilations": [2]}),
    ((2, 2, 5, 6), (3, 2, 3, 2), {"pads": [1, 0, 2, 1]}),
    ((2, 2, 6, 5), (3, 2, 2, 3), {"strides": [2, 3], "pads": [0, 1, 0, 1]}),
    ((1, 2, 7, 6), (2, 2, 2, 3), {"strides": [3, 1], "dilations": [1, 2], "pads": [1, 1, 1, 1]}),
    ((2, 4, 5, 4), (4, 2, 2, 2), {"group": 2, "strides": [2, 2]}),
    ((2, 3, 4, 4), (6, 1, 3, 3), {"group": 3, "pads": [1, 1, 1, 1]}),
    ((1, 2, 5, 6), (2, 2, 2, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 1]}),
    ((1, 2, 4, 5), (2, 2, 2, 3), {"auto_pad": "SAME_LOWER"}),
    ((1, 2, 4, 5), (2, 2, 2, 3), {"auto_pad": "VALID", "strides": [1, 3]}),
    ((1, 2, 3, 4, 3), (2, 2, 2, 2, 1), {"strides": [1, 2, 1]}),
]
POOLS = [
    {"kernel_shape": [2, 2], "strides": [2, 2]},
    {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]},
    {"kernel_shape": [2, 3], "strides": [2, 3], "ceil_mode": 1},
    {"kernel_shape": [2, 2], "strides": [2, 1], "auto_pad": "SAME_UPPER"},
]
# Operator, its inputs, the position of the one that is differentiated by, attributes.
CASES = [
    *[(name, [array], 0, {}) for name, array in ONE_INPUT.items()],
    *[
        (name, [signed(*a), signed(*b)], i, {})
        for name in ("Add", "Div", "Max", "Min", "Mul", "Sub")
        for a, b in BROADCAST
        for i in (0, 1)
    ],
    *[
        (name, [signed(2, 3), signed(3), signed(1, 1)], i, {})
        for name in ("Sum", "Max")
        for i in range(3)
    ],
    ("LeakyRelu", [signed(2, 3)], 0, {"alpha": 0.3}),
    *[(name, [signed(2, 3)], 0, {"alpha": 0.3}) for name in ("Celu", "Elu")],
    ("Selu", [signed(2, 3)], 0, {"alpha": 0.3, "gamma": 2.0}),
    ("HardSigmoid", [distinct(3, 3) - 4], 0, {"alpha": 0.3, "beta": 0.45}),
    *[
        ("PRelu", [signed(2, 3), signed(*slope)], i, {})
        for slope in ((2, 3), (3,), (1, 1), ())
        for i in (0, 1)
    ],
    ("Pow", [positive(2, 3), np.array(3.0)], 0, {}),
    ("Pow", [positive(2, 3), np.array([0.0, 1.0, 2.5])], 0, {}),
    ("Pow", [np.zeros((1, 3)), np.array([0.0, 1.0, 2.0])], 0, {}),
    ("Pow", [positive(2, 3), ints(2)], 0, {}),
    ("Clip", [signed(2, 3), np.array(-0.5), np.array(0.5)], 0, {}),
    ("Clip", [signed(2, 3), np.array(-0.5)], 0, {}),
    ("Cast", [signed(2, 3)], 0, {"to": 1}),
    *[("MatMul", [signed(*a), signed(*b)], i, {}) for a, b in PRODUCTS for i in (0, 1)],
    *[
        (
            "Gemm",
            [signed(*((3, 4) if a else (4, 3))), signed(*((2, 3) if b else (3, 2))), signed(*c)],
            i,
            {"transA": a, "transB": b, "alpha": 2.0, "beta": 0.5},
        )
        for a in (0, 1)
        for b in (0, 1)
        for c in ((2,), (4, 1), ())
        for i in range(3)
    ],
    *[("Gemm", [signed(4, 3), signed(3, 2), signed(2)], i, {}) for i in range(3)],
    *[(name, [signed(2, 3)], 0, {"axis": 0}) for name in ("Softmax", "LogSoftmax")],
    *[("LayerNormalization", [signed(2, 3), signed(3), signed(3)], i, {}) for i in range(3)],
    *[
        ("LayerNormalization", [signed(2, 4, 3), signed(4, 3)], i, {"axis": 1, "epsilon": 0.1})
        for i in range(2)
    ],
    ("ReduceMean", [signed(2, 3)], 0, {"axes": [1], "keepdims": 0}),
    ("ReduceMean", [signed(2, 3)], 0, {"axes": [-2]}),
    *[
        (name, [distinct(2, 3, 2)], 0, {"axes": axes, "keepdims": keepdims})
        for name in ("ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMin", "ReduceProd")
        for axes, keepdims in (([1], 0), ([-1, 0], 1))
    ],
    ("ReduceProd", [np.array([[0.0, 2, 3], [0, 0, 2], [1, 2, 3]])], 0, {"axes": [1]}),
    *[
        ("InstanceNormalization", [signed(*x), signed(3), signed(3)], i, {"epsilon": 0.1})
        for x in ((2, 3, 4), (2, 3, 2, 4))
        for i in range(3)
    ],
    *[
        ("TopK", [distinct(3, 4), ints([2])], 0, attributes)
        for attributes in ({}, {"axis": 0}, {"largest": 0, "axis": -1})
    ],
    *[
        ("CumSum", [signed(3, 4), ints(axis)], 0, {"exclusive": exclusive, "reverse": reverse})
        for axis in (0, -1)
        for exclusive in (0, 1)
        for reverse in (0, 1)
    ],
    ("ReduceSum", [signed(2, 3), ints([1])], 0, {"keepdims": 0}),
    ("ReduceSum", [signed(2, 3)], 0, {"keepdims": 0}),
    *[
        ("Where", [np.array([[True, False, True]]), signed(2, 3), signed(2, 1)], i, {})
        for i in (1, 2)
    ],
    *[
        ("Concat", [signed(2, 3), signed(2, 2), signed(2, 1)], i, {"axis": axis})
        for i in range(3)
        for axis in (1, -1)
    ],
    ("Expand", [signed(1, 3), ints([2, 3])], 0, {}),
    ("Gather", [signed(2, 4), ints([3, 1, 1])], 0, {"axis": 1}),
    ("Gather", [signed(2, 4), ints([[-1, 0], [0, 0]])], 0, {}),
    ("GatherElements", [signed(2, 4), ints([[0, 3], [1, 2]])], 0, {"axis": 1}),
    ("GatherND", [signed(2, 4), ints([[0, 3], [1, 2]])], 0, {}),
    ("Reshape", [signed(2, 3), ints([3, -1])], 0, {}),
    ("Slice", [signed(2, 4), ints([0]), ints([4]), ints([1]), ints([2])], 0, {}),
    ("Slice", [signed(3, 4), ints([2, -1]), ints([-99, 0]), ints([0, 1]), ints([-1, -2])], 0, {}),
    ("Tile", [signed(2, 3), ints([2, 1])], 0, {}),
    ("Transpose", [signed(2, 3, 4)], 0, {"perm": [2, 0, 1]}),
    ("Transpose", [signed()], 0, {}),
    ("Unsqueeze", [signed(2, 3), ints([1])], 0, {}),
    ("Split", [signed(2, 4), ints([1, 3])], 0, {"axis": -1}),
    ("Split", [signed(4, 2)], 0, {}),
    *[
        ("Conv", [signed(*x), signed(*w), signed(w[0])], i, attributes)
        for x, w, attributes in CONVOLUTIONS
        for i in range(3)
    ],
    *[("MaxPool", [distinct(2, 2, 5, 4)], 0, attributes) for attributes in POOLS],
    ("MaxPool", [distinct(1, 2, 7)], 0, {"kernel_shape": [2], "dilations": [2], "pads": [1, 1]}),
    *[
        ("AveragePool", [signed(2, 2, 5, 4)], 0, {**attributes, **more})
        for attributes in POOLS
        for more in ({}, {"count_include_pad": 1})
        if not (more and "ceil_mode" in attributes)
    ],
    ("GlobalAveragePool", [signed(2, 3, 2, 4)], 0, {}),
    ("Pad", [distinct(2, 3), ints([1, 0, 0, 2]), np.array(0.5)], 0, {}),
    ("Pad", [distinct(2, 4), ints([1, -1, 0, -2])], 0, {}),
    *[
        ("Pad", [distinct(2, 3), ints([1, 2, 0, 1])], 0, {"mode": mode})
        for mode in ("edge", "reflect")
    ],
]


def model(case, dtype):
    """Return the model w -> operator(inputs), with w in the place of one of them."""
    name, arrays, position, attributes = case
    arrays = [a.astype(dtype) if a.dtype == np.float64 else a for a in arrays]
    names = ["w" if i == position else f"input{i}" for i in range(len(arrays))]
    # Of several outputs only the first one is used.
    outputs = ["result", "unread"] if name in ("Split", "TopK") else ["result"]
    node = helper.make_node(name, names, outputs, **attributes)
    constants = [
        numpy_helper.from_array(a, n) for a, n in zip(arrays, names, strict=True) if n != "w"
    ]
    w = helper.make_tensor_value_info("w", onnx_dtype(dtype), arrays[position].shape)
    opsets = {"opset_imports": [helper.make_opsetid("", OPSET)], "ir_version": IR_VERSION}
    alone = helper.make_graph([node], "alone", [w], [onnx.ValueInfoProto(name="result")], constants)
    return onnx.shape_inference.infer_shapes(
        helper.make_model(alone, **opsets), data_prop=True
    ), arrays[position]


def with_gradient(alone, dtype):
    """Return the model w, dy -> the gradient of sum(dy * operator(w)) by w."""
    fragment = Fragment(dtype)
    fragment.nodes.extend(alone.graph.node)
    gradient = add_gradients(fragment, alone.graph, "dy", ["w"])["w"]
    whole = onnx.ModelProto()
    whole.CopyFrom(alone)
    del whole.graph.node[:], whole.graph.output[:]
    whole.graph.node.extend(fragment.nodes)
    dy, (w,) = alone.graph.output[0].type.tensor_type, alone.graph.input
    shape = [d.dim_value for d in dy.shape.dim]
    whole.graph.input.append(helper.make_tensor_value_info("dy", dy.elem_type, shape))
    whole.graph.output.append(onnx.ValueInfoProto(name=gradient, type=w.type))
    whole = inlined(whole, fragment)
    return whole, np.random.default_rng(1).uniform(0.5, 1.5, shape).astype(
        helper.tensor_dtype_to_np_dtype(dy.elem_type)
    )


def finite_difference(case, dy):
    # The reference evaluator lacks attributes of these. Inputs of MaxPool are whole numbers: h
    # changes no order.
    by_runtime = case[0] in ("AveragePool", "MaxPool", "Pad")
    # "VALID" is no padding, and older references have other shapes for it.
    case = (*case[:3], {name: value for name, value in case[3].items() if value != "VALID"})
    alone, w = model(case, np.float32 if by_runtime else np.float64)
    evaluator = (
        ArraySession(alone.SerializeToString())
        if by_runtime
        else ReferenceEvaluator(alone, new_ops=[Erf])
    )
    # Numbers near 1 in float32 are 1e-7 apart, and a Cast rounds to them.
    h = 0.25 if by_runtime else 1e-2 if case[0] == "Cast" else 1e-5
    difference = np.empty(w.shape)
    for i in np.ndindex(*w.shape):
        step = np.zeros(w.shape)
        step[i] = h
        plus, minus = (
            evaluator.run(["result"], {"w": np.asarray(moved, w.dtype)})[0]
            for moved in (w + step, w - step)
        )
        difference[i] = ((plus.astype(float) - minus.astype(float)) * dy).sum() / (2 * h)
    return difference


def ids(case):
    name, arrays, position, attributes = case
    shapes = ",".join("x".join(map(str, a.shape)) for a in arrays)
    return f"{name}({shapes})-{position}-{'-'.join(str(v) for v in attributes.values())}"


def test_every_rule_has_a_case():
    assert {case[0] for case in CASES} == set(RULES)
    assert set(RULES) > FLOAT32_ONLY
    assert set(ONE_INPUT) > CURVED


@pytest.mark.parametrize("name", sorted(ELEMENTWISE.keys() & ONE_INPUT))
def test_an_operator_is_curved_where_small_inputs_make_it_linear(name):
    def slope(x):
        return finite_difference((name, [np.array([[x]])], 0, {}), np.ones((1, 1))).item()

    with np.errstate(all="ignore"):  # a logarithm of such inputs
        near, far = ([slope(x) for x in xs] for xs in ([-1e-3, 0.0, 1e-3], [-4.0, 4.0]))
        is_linear = np.ptp(near) < 1e-2 < abs(near[1])
        bends = is_linear and 0.1 < np.max(np.abs(np.subtract(far, near[1]))) < 3
    assert (name in CURVED) == bool(bends)


@pytest.mark.parametrize("dtype, rtol, atol", [("float32", 2e-5, 2e-6), ("float64", 1e-7, 1e-8)])
@pytest.mark.parametrize("case", CASES, ids=ids)
def test_rule_is_the_central_difference(case, dtype, rtol, atol, run_onnx):
    alone, w = model(case, np.dtype(dtype))
    has_rule = undifferentiable(alone.graph, ["w"], rule_gradient) is None
    assert has_rule == (dtype == "float32" or case[0] not in FLOAT32_ONLY)
    if not has_rule:
        pytest.skip("ONNX Runtime has no float64 kernel")
    gradient, dy = with_gradient(alone, dtype)
    (got,) = run_onnx(gradient, w=w, dy=dy).values()
    assert got.dtype == dtype
    loose = 50 if case[0] == "Cast" else 1
    np.testing.assert_allclose(
        got, finite_difference(case, dy), rtol=loose * rtol, atol=loose * atol
    )


@pytest.mark.parametrize(
    "name, attributes",
    [
        ("AveragePool", {"ceil_mode": 1, "count_include_pad": 1}),
        ("AveragePool", {"ceil_mode": 1, "pads": [1, 1]}),
        ("MaxPool", {"ceil_mode": 1, "pads": [1, 1]}),
    ],
)
def test_pooling_in_which_runtimes_differ_has_no_rule(name, attributes):
    alone, _ = model(
        (name, [distinct(1, 1, 5)], 0, {"kernel_shape": [3], "strides": [3], **attributes}),
        np.float32,
    )
    assert undifferentiable(alone.graph, ["w"], rule_gradient) == (name, "")


def runtime_fails(case):
    """Where the runtime's own gradient is NaN, or ends in an error of the runtime."""
    name, arrays, *_ = case
    return (
        (name == "Pow" and (arrays[1].dtype.kind == "i" or not arrays[0].all()))
        or (name == "Gemm" and arrays[2].ndim == 0)
        or (name == "Slice" and arrays[-1].min() < 0)
    )


@pytest.mark.skipif(
    "TrainingAgent" not in training_api(), reason="this runtime has no TrainingAgent"
)
@pytest.mark.parametrize("case", [case for case in CASES if not runtime_fails(case)], ids=ids)
def test_rule_is_the_runtimes_gradient(case, run_onnx):
    alone, w = model(case, np.float32)
    whole, dy = with_gradient(alone, "float32")
    alone.graph.initializer.append(numpy_helper.from_array(dy, "dy"))
    alone.graph.node.append(helper.make_node("Mul", ["result", "dy"], ["product"]))
    alone.graph.node.append(helper.make_node("ReduceSum", ["product"], ["J"], keepdims=0))
    alone.graph.output[0].CopyFrom(helper.make_tensor_value_info("J", 1, []))
    alone.graph.initializer.append(numpy_helper.from_array(w, "w"))
    alone = onnx.shape_inference.infer_shapes(alone)
    if undifferentiable(alone.graph, ["w"], runtime_gradient) is not None:
        pytest.skip("no gradient of the runtime's")
    del alone.graph.input[:]
    alone.graph.input.append(helper.make_tensor_value_info("unused", 1, [1]))
    theirs = np.full_like(w, np.nan)
    graph = gradient_graph(alone.SerializeToString(), ["w"])
    arrays = {"w": w, "unused": np.zeros(1, np.float32)}
    BoundTrainingAgent(inference_session(graph), arrays, {"w_grad": theirs}).run()
    (ours,) = run_onnx(whole, w=w, dy=dy).values()
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6)


TIES = [np.array([0.0, 1.0, -1.0, 0.5]), np.array([0.0, 1.0, -1.0, 0.7])]


@pytest.mark.parametrize(
    "name, arrays, expected",
    [
        ("Max", TIES, [0.5, 0.5, 0.5, 0]),
        ("Min", TIES, [0.5, 0.5, 0.5, 1]),
        ("Clip", [TIES[0], np.array(-1.0), np.array(1.0)], [1, 1, 1, 1]),
        ("Abs", TIES[:1], [0, 1, -1, 1]),
        ("Relu", TIES[:1], [0, 1, 0, 1]),
        ("ReduceMax", [TIES[0] ** 2], [0, 0.5, 0.5, 0]),
        ("ReduceMin", [TIES[0] ** 2], [1, 0, 0, 0]),
        ("ReduceL2", [np.zeros(2)], [0, 0]),
        ("LeakyRelu", TIES[:1], [np.float32(0.01), 1, np.float32(0.01), 1]),
    ],
)
def test_kinks_are_those_of_the_runtime(name, arrays, expected, run_onnx):
    alone, w = model((name, arrays, 0, {}), np.float32)
    whole, dy = with_gradient(alone, "float32")
    np.testing.assert_array_equal(
        next(iter(run_onnx(whole, w=w, dy=np.ones_like(dy)).values())), expected
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_slope_of_relu_is_one_or_zero_whatever_the_size(dtype, run_onnx):
    sizes = np.array([1.2e-38, 1e-20, 1.0, 1e20, 3e38, np.inf])
    alone, w = model(("Relu", [np.concatenate([-sizes, sizes])], 0, {}), np.dtype(dtype))
    gradient, dy = with_gradient(alone, dtype)
    (got,) = run_onnx(gradient, w=w, dy=dy).values()
    np.testing.assert_array_equal(got, [0.0] * 6 + dy[6:].tolist())
