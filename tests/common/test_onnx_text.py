"""Functions written as text, and their calls."""

import pathlib

import numpy as np
import onnx.checker
import onnx.parser
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import skort
from skort.common.onnx_text import (
    IR_VERSION,
    OPSET,
    Fragment,
    build_model,
    domains_of,
    function,
    function_model,
    import_each_domain_once,
    inlined,
    leading_to,
    name_inputs,
    pruned,
    repeated_constants,
)

SCALE = "scale (x) => (y) { factor = Constant <value = float {%r}> ()  y = Mul (factor, x) }"
MODEL = """<ir_version: 8, opset_import: ["" : 17]> empty (%s[N] x) => (%s[N] z) { }"""


def test_two_texts_of_one_name_are_two_functions(run_onnx):
    for dtype, onnx_type in (("float32", "float"), ("float64", "double")):
        fragment = Fragment(dtype)
        fragment.call(SCALE % 2.0, ["x"], ["y"])
        fragment.call(SCALE % 5.0, ["y"], ["w"])
        fragment.call(SCALE % 2.0, ["w"], ["z"])
        model = onnx.parser.parse_model(MODEL % (onnx_type, onnx_type))
        model.graph.node.extend(fragment.nodes)
        assert len(fragment.functions) == 2
        outputs = run_onnx(inlined(model, fragment), x=np.array([1, 3], dtype))
        np.testing.assert_array_equal(outputs["z"], np.array([20, 60], dtype))


def test_each_domain_is_imported_once():
    model = onnx.ModelProto()
    for domain, version in (("", 17), ("ai.onnx.ml", 1), ("", 17), ("skort", 1)):
        model.opset_import.append(helper.make_opsetid(domain, version))
    import_each_domain_once(model)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 17), ("ai.onnx.ml", 1)]


CONSTANTS = [
    "value = float {0.1}",
    "value = float[1] {0.1}",
    "value: tensor = float named {0.1}",
    "value_float = 0.1",
    "value_floats = [0.1]",
]


@pytest.mark.parametrize("as_proto", [False, True])
@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constants_have_the_dtype(constant, dtype, as_proto, run_function):
    source = (
        f"scale (x) => (y) {{ c = Constant <{constant}> ()  z = Mul (c, x)  y = LeakyRelu "
        "<alpha = 0.5> (z) }"
    )
    scaled = run_function(
        function(source, "float32") if as_proto else source, dtype, np.array([10.0, -10.0])
    )
    assert scaled.dtype == dtype
    # Text has all digits of a tensor; float attributes and protos are float32 already.
    rtol = 1e-15 if dtype == "float64" and not as_proto and "value_" not in constant else 1e-7
    np.testing.assert_allclose(scaled, [1.0, -0.5], rtol=rtol)


def test_integers_and_text_stay_as_they_are():
    proto = function(
        "f (x) => (y) { i = Constant <value = int64[2] {1, 2}> ()  y = Reshape (x, i) }", "float64"
    )
    assert proto.node[0].attribute[0].t.data_type == onnx.TensorProto.INT64


def test_functions_of_other_opsets_are_refused():
    proto = function(SCALE % 2.0, "float32")
    proto.opset_import[0].version = 18
    with pytest.raises(
        ValueError, match=r"the operators of 'scale' are of opset \[18\]: write it in opset 17"
    ):
        function(proto, "float32")


HUBER = """
huber (score, target) => (loss) {
    one = Constant <value = float {1}> ()
    half = Constant <value = float {0.5}> ()
    residual = Sub (score, target)
    distance = Abs (residual)
    clipped = Min (distance, one)
    half_clipped = Mul (half, clipped)
    rest = Sub (distance, half_clipped)
    loss = Mul (clipped, rest)
}"""


def test_every_operator_meets_arrays_of_one_shape(rng):
    repeated = repeated_constants(function(HUBER, "float32"))
    names = [name for node in repeated.node for name in node.output]
    repeated.output[:] = names
    feeds = dict(
        zip(("score", "target"), rng.normal(size=(2, 5, 1)).astype("float32"), strict=True)
    )
    results = feeds | dict(
        zip(names, ReferenceEvaluator(repeated).run(None, feeds, {}), strict=True)
    )
    distance = abs(feeds["score"] - feeds["target"])
    np.testing.assert_allclose(
        results["loss"],
        np.where(distance <= 1, distance**2 / 2, distance - 0.5),
        rtol=1e-6,
        atol=1e-7,
    )
    for node in repeated.node:
        if node.op_type not in ("Shape", "Constant", "Expand"):
            assert {results[name].shape for name in node.input} == {(5, 1)}


def test_what_is_not_elementwise_stays_as_it_is():
    mean = function(
        """
mean_loss (score, target) => (loss) {
    half = Constant <value = float {0.5}> ()
    columns = Constant <value = int64[1] {1}> ()
    residual = Sub (score, target)
    sum = ReduceSum (residual, columns)
    loss = Mul (half, sum)
}""",
        "float32",
    )
    assert repeated_constants(mean) is mean


def test_a_function_without_constants_stays_as_it_is():
    residual = function(
        "residual (score, target) => (loss) { loss = Sub (score, target) }", "float32"
    )
    assert repeated_constants(residual) is residual


def test_names_of_the_function_are_not_taken(rng):
    mine = function(
        """
twice_square (score, target) => (loss) {
    a = Constant <value = float {2}> ()
    a_single = Sub (score, target)
    shape_of_first_input = Mul (a_single, a)
    loss = Mul (shape_of_first_input, a_single)
}""",
        "float32",
    )
    score, target = rng.normal(size=(2, 5, 1)).astype("float32")
    (loss,) = ReferenceEvaluator(repeated_constants(mine)).run(
        None, {"score": score, "target": target}, {}
    )
    np.testing.assert_allclose(loss, 2 * (score - target) ** 2, rtol=1e-6)


def test_what_a_result_is_computed_from():
    graph = onnx.parser.parse_graph(
        "two (float[N] x) => (float[N] y, float[N] z) { a = Exp (x)  y = Neg (a)  z = Abs (x) }"
    )
    assert leading_to(graph.node, ["y"]) == {"a", "x", "y"}


def test_a_pruned_model_has_what_its_outputs_are_computed_from():
    text = """<ir_version: 8, opset_import: ["" : 17]>
    three (float[N] x, float[N] u) => (float[N] y, float[N] z) <float[1] v = {1}, float[1] w = {2}>
        {
        a = Mul (x, v)  b = Mul (u, w)  y = Neg (a)  z = Add (a, b) }"""
    model = onnx.parser.parse_model(text)
    assert pruned(model, ["y"]) is model
    assert [node.op_type for node in model.graph.node] == ["Mul", "Neg"]
    assert [i.name for i in model.graph.initializer] == ["v"]
    assert [i.name for i in (*model.graph.input, *model.graph.output)] == ["x", "u", "y"]
    assert [i.name for i in pruned(model, drop_inputs=True).graph.input] == ["x"]
    whole = onnx.parser.parse_model(text)
    assert len(pruned(whole).graph.node) == 4
    assert pruned(whole, ["a"]).graph.output[0].name == "a"


def test_a_model_has_the_versions_that_every_runtime_reads():
    graph = onnx.parser.parse_graph("copy (float[N] x) => (float[N] y) { y = Identity (x) }")
    model = build_model(graph, domains={"ai.onnx.ml": 2}, producer_name="skort")
    onnx.checker.check_model(model)
    assert (model.ir_version, model.producer_name, domains_of(model)) == (
        IR_VERSION,
        "skort",
        {"ai.onnx.ml": 2},
    )
    assert [(o.domain, o.version) for o in model.opset_import] == [("ai.onnx.ml", 2), ("", OPSET)]


def test_calls_of_a_fragment_are_replaced(run_onnx):
    fragment = Fragment("float32")
    fragment.call("twice (x) => (y) { y = Add (x, x) }", ["x"], ["y"])
    graph = onnx.parser.parse_graph("twice (float[N] x) => (float[N] y) {}")
    graph.node.extend(fragment.nodes)
    model = build_model(graph, fragment)
    assert [node.op_type for node in model.graph.node] == ["Add"] and not model.functions
    np.testing.assert_array_equal(run_onnx(model, x=np.array([1, 2], np.float32))["y"], [2, 4])


def test_the_model_of_a_function(run_onnx):
    model = function_model(
        "product (a, b) => (c) { c = MatMul (a, b) }", "float64", {"a": (1, 2), "b": (2, 1)}
    )
    result = run_onnx(model, a=np.array([[1.0, 2.0]]), b=np.array([[3.0], [4.0]]))["result"]
    assert result.tolist() == [[11.0]] and result.dtype == np.float64


def test_models_are_made_in_one_place():
    folder = pathlib.Path(skort.__file__).parent
    callers = [path.name for path in folder.rglob("*.py") if "make_model(" in path.read_text()]
    assert callers == ["onnx_text.py"]


def test_named_inputs_go_before_the_names_inside(run_onnx):
    """A subgraph reads results and inputs from outside, and has a result with a new name."""
    model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
m (float[2] p, float[2] q) => (float[2] result) <float[2] b = {1, 2}> {
    a = Mul (p, b)
    nothing = Sub (q, q)
    total = ReduceSum <keepdims = 0> (nothing)
    flag = Equal (total, total)
    result = If (flag) <
        then_branch = then () => (float[2] same) { c = Add (a, q) same = Add (c, b) },
        else_branch = other () => (float[2] less) { less = Sub (a, p) }
    >
}""")
    p, q = np.float32([3, 4]), np.float32([10, 20])
    expected = run_onnx(model, p=p, q=q)["result"]
    name_inputs(model.graph, ["a", "c"])
    np.testing.assert_array_equal(run_onnx(model, a=p, c=q)["result"], expected)
    name_inputs(model.graph, ["result", "a"])
    np.testing.assert_array_equal(run_onnx(model, result=p, a=q)["result_"], expected)
    name_inputs(model.graph, ["b", "result_"])
    np.testing.assert_array_equal(run_onnx(model, b=p, result_=q)["result__"], expected)
    assert [i.name for i in model.graph.initializer] == ["b_"]
