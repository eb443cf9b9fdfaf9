"""What errors of ONNX Runtime say."""

import pytest

from skort.runtime.errors import short_message

ERRORS = {
    "/src/module.cc:538 Status f(const std::vector<OrtValue>&) [ONNXRuntimeError] : 6 : FAIL : No rows.": "No rows.",
    "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got 2\nPlease fix it.": "Got 2",
    "Status Message: /src/math.h:540 void Broadcast(long int) const [with T = A] x": "[with T = A] x",
    "Message: pool.cc:115 Compute Input dimension is 3 (or less)": "Message: Input dimension is 3 (or less)",
    "/src/a.cc:1 onnxruntime::Pool::Compute Too few.": "Too few.",
    "[ShapeInferenceError] Other ranks.": "Other ranks.",
    "": "no reason given",
}


@pytest.mark.parametrize("text", ERRORS)
def test_the_place_in_the_sources_is_left_out(text):
    assert short_message(RuntimeError(text)).endswith(ERRORS[text])
    assert ".cc:" not in short_message(RuntimeError(text))
