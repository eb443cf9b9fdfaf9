"""
Programs: what they write is what is written directly,
and numbers are no part of their structure.
"""

import numpy as np
import onnx
import pytest
from onnx import helper

from skort.common.onnx_text import IR_VERSION, OPSET, Fragment, function, infos, inlined
from skort.common.parametrized_graph import Program, signature, with_parameters
from skort.objective.regression import Huber

SHIFTED = """shifted (x, y) => (z, u) {
    a = Constant <value = float {%r}> ()
    b = Constant<value=float{-2.5e-1}>()
    fixed = Constant <value = float[1] {3}> ()
    scaled = Mul (x, a)
    moved = Add (scaled, y)
    more = Add (moved, fixed)
    z = Add (more, b)
    u = Identity (x)
}"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_become_inputs(dtype, run_onnx):
    program = Program(dtype, 4, "test")
    program.call(SHIFTED % 0.1, ["x", "y"], ["z", "u"])
    program.constant("factor", np.array([2.0, 3.0], dtype))
    program.node("Mul", ["z", "factor"], ["product"])
    program.rename("product", "result")
    x, y = np.array([1.0, 2.0], dtype), np.array([10.0, 20.0], dtype)
    fragment = Fragment(dtype)
    program.write(fragment)
    given = {"x": x, "y": y, **program.parameters}
    graph = helper.make_graph(fragment.nodes, "program", infos(given), infos({"result": x}))
    model = helper.make_model(
        graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)]
    )
    results = run_onnx(inlined(model, fragment), **given)
    expected = (x * np.array(0.1, dtype) + y + 3 - np.array(0.25, dtype)) * [2, 3]
    np.testing.assert_allclose(
        results["result"], expected, rtol=1e-6 if dtype == "float32" else 1e-15
    )
    assert {name: a.dtype for name, a in program.parameters.items()} == dict.fromkeys(
        program.parameters, dtype
    )


def test_texts_of_other_numbers_have_the_same_structure_and_other_texts_have_not():
    def structure(text, array=(1.0,)):
        program = Program("float32", 4, "test")
        program.call(text, ["x", "y"], ["z", "u"])
        program.constant("c", np.array(array))
        return program.structure

    assert structure(SHIFTED % 0.1) == structure(SHIFTED % 1e-30) == structure(SHIFTED % 0.1, [7.0])
    others = [
        structure(SHIFTED.replace("Mul", "Sub") % 0.1),
        structure(SHIFTED.replace("{3}", "{4}") % 0.1),
    ]
    others.append(structure(SHIFTED % 0.1, [1.0, 2.0]))
    assert len({structure(SHIFTED % 0.1), *others}) == 4


def test_numbers_of_elementwise_functions_have_the_shape_of_their_arrays():
    program = Program("float32", 4, "loss")
    program.call(Huber(0.5).value_function(2), ["score", "target"], ["loss"], 2)
    assert {a.shape for a in program.parameters.values()} == {(4, 2)}
    # Those of others keep theirs.
    summed = (
        "s (score, target) => (loss) { c = Constant <value = float {2}> () d = Mul (c, c) "
        "loss = ReduceSum (d) }"
    )
    program = Program("float32", 4, "loss")
    program.call(summed, ["score", "target"], ["loss"], 2)
    assert {a.shape for a in program.parameters.values()} == {()}


def test_a_function_that_is_no_text_keeps_its_numbers():
    proto = function(SHIFTED % 0.1, "float32")
    program = Program("float32", 4, "test")
    program.call(proto, ["x", "y"], ["z", "u"])
    assert program.parameters == {}
    other = Program("float32", 4, "test")
    other.call(function(SHIFTED % 0.2, "float32"), ["x", "y"], ["z", "u"])
    assert program.structure != other.structure
    assert signature(proto) == signature(SHIFTED % 0.1) == (["x", "y"], ["z", "u"])


def test_the_text_with_inputs_is_one_that_onnx_reads():
    text, numbers = with_parameters(SHIFTED % 0.1)
    assert numbers == (0.1, -0.25)
    parsed = onnx.parser.parse_function(f'<domain: "skort", opset_import: ["" : {OPSET}]>{text}')
    assert list(parsed.input) == ["x", "y", "skort_number0", "skort_number1"]
