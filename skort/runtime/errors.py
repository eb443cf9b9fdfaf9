"""Errors of ONNX Runtime in words."""

import re

# Where in its C++ sources an error arose.
_PLACE = re.compile(
    r"\[ONNXRuntimeError\] : \d+ : \w+ : "
    # With the signature of the function, or with its name alone.
    r"|\S+\.(?:cc|h):\d+ (?:[^()]*\w\(.*?\)(?:::\S+| const)* |[\w:]+ )"
    # of onnx
    r"|\[\w+Error\] "
    r"|\S+\.(?:cc|h):\d+: \w+: Assertion `[^`]*` failed: "
)


def short_message(error: Exception) -> str:
    """Return the first line of an error of ONNX or ONNX Runtime, without the places in C++ sources where it arose."""
    lines = str(error).strip().splitlines() or ["no reason given"]
    return _PLACE.sub("", lines[0]).strip()
