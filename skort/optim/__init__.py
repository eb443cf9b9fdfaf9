"""How the objective is minimised, independent of ONNX Runtime."""
