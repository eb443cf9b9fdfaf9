"""ONNX models that users give: their score graphs, limits and weights."""

# The largest number of values that a result of an ONNX model may have for each row.
MAX_VALUES = 2**27
