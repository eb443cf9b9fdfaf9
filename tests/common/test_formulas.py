"""Formulas as ONNX functions."""

import numpy as np
import pytest

from skort.common.formulas import function_text


def test_a_formula_becomes_an_onnx_function(run_function):
    formula = """
    y = 2 * target - 1
    share = Softmax(y * score, axis=1)
    unused = Exp(score)
    total = ReduceSum(share * scale, [1], keepdims=1)
    result = Where(total <= 5, -total / 2, total)
    """
    text = function_text("name (score, target) => (result)", formula, scale=4.0, other=1.0)
    assert "unused" not in text and "other" not in text
    assert text.splitlines()[0] == "name (score, target) => (result) {"
    assert text.splitlines()[1] == "    scale = Constant <value = float {4.0}> ()"
    assert text.splitlines()[-1] == "}"
    score, target = np.array([[1.0, 2.0]]), np.array([[0.0, 1.0]])
    np.testing.assert_allclose(run_function(text, "float64", score, target), [[-2.0]], rtol=1e-12)
    assert "copy = Identity (a)" in function_text("f (a) => (copy)", "copy = a")
    wide = function_text("f (n) => (x)", 'x = ConstantOfShape(n, value="double[1] {2}")')
    assert "x = ConstantOfShape <value = double[1] {2}> (n)" in wide
    with pytest.raises(
        ValueError, match="A formula has operators, signs, names and numbers, got 'a if b else c'"
    ):
        function_text("f (a, b, c) => (d)", "d = a if b else c")


def test_a_result_may_have_the_name_of_a_number_or_of_a_node(run_function):
    formula = """
    one = 1 + x * x
    mul_2 = 2 * one
    result = mul_2 / (one * one)
    """
    text = function_text("name (x) => (result)", formula)
    np.testing.assert_allclose(run_function(text, "float64", np.array([3.0])), [0.2], rtol=1e-12)
