"""Models of graphs."""

import pathlib

import numpy as np
import onnx.checker
import onnx.parser

import skort
from skort.common.model_builder import build_model, domains_of, function_model
from skort.common.onnx_text import IR_VERSION, OPSET, Fragment


def test_a_model_has_the_versions_that_every_runtime_reads():
    graph = onnx.parser.parse_graph("copy (float[N] x) => (float[N] y) { y = Identity (x) }")
    model = build_model(graph, domains={"ai.onnx.ml": 2}, producer_name="skort")
    onnx.checker.check_model(model)
    assert (model.ir_version, model.producer_name, domains_of(model)) == (IR_VERSION, "skort", {"ai.onnx.ml": 2})
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
    model = function_model("product (a, b) => (c) { c = MatMul (a, b) }", "float64", {"a": (1, 2), "b": (2, 1)})
    result = run_onnx(model, a=np.array([[1.0, 2.0]]), b=np.array([[3.0], [4.0]]))["result"]
    assert result.tolist() == [[11.0]] and result.dtype == np.float64


def test_models_are_made_in_one_place():
    folder = pathlib.Path(skort.__file__).parent
    callers = [path.name for path in folder.rglob("*.py") if "make_model(" in path.read_text()]
    assert callers == ["model_builder.py"]
