"""ONNX models from anywhere: as score graphs, what they may not ask for, and their weights."""

# Results of an ONNX model may have so many values for each row.
MAX_VALUES = 2**27
