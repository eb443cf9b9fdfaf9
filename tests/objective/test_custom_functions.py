"""Functions of the user's are read and checked before they are used."""

import pytest

from skort.objective.custom_functions import check_signature, parsed, result_shape

SUM = "f (a, b) => (c) { c = Add (a, b) }"


def test_a_function_is_read():
    assert list(parsed("loss: value", SUM).input) == ["a", "b"]
    check_signature("loss: value", SUM, [["a"], ["a", "b"]])
    assert result_shape("loss: value", SUM, {"a": (4, 1), "b": (1, 3)}) == [4, 3]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: parsed("penalty: value", "f (a"), "^penalty: value is not an ONNX function that can run: "),
        (lambda: check_signature("loss: value", SUM, [["a"], ["b", "a"]]), r"a function of \(a\) or \(b, a\) with one"),
        (lambda: check_signature("f", "f (a) => (a, b) { b = Neg (a) }", [["a"]]), r"got \(a\) => \(a, b\)"),
        (lambda: result_shape("loss: value", SUM, {"a": (4, 2), "b": (4, 3)}), "^loss: value is not an ONNX function"),
    ],
)
def test_what_is_wrong_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
