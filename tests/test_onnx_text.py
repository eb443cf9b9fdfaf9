"""Functions written as text, and their calls."""

import numpy as np
import onnx.parser
from onnx import helper

from skort.onnx_text import Fragment, import_each_domain_once, inlined

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
