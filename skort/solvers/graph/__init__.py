"""Solver "graph": the whole step as one plain ONNX graph, on the CPU or on another device."""
