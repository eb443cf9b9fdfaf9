import pytest

from skort.runtime.words import reason

RUNTIME = (
    "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Reshape node. Name:'' "
    "Status Message: /onnxruntime_src/onnxruntime/core/providers/cpu/tensor/reshape_helper.h:40 "
    "onnxruntime::ReshapeHelper::ReshapeHelper(const onnxruntime::TensorShape&, onnxruntime::TensorShapeVector&, bool) "
    "size == 3 was false.\nmore"
)


@pytest.mark.parametrize(
    "message, expected",
    [
        ("", "no reason given"),
        ("plain words\nin two lines", "plain words"),
        (
            RUNTIME,
            "Non-zero status code returned while running Reshape node. Name:'' Status Message: size == 3 was false.",
        ),
        (
            "/project/version_converter/helper.cc:68: assertNotParams: Assertion `dim.is_int` failed: N is a param.",
            "N is a param.",
        ),
    ],
)
def test_places_in_sources_are_left_out(message, expected):
    assert reason(RuntimeError(message)) == expected
