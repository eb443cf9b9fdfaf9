"""The only place that touches ONNX Runtime: what is installed, sessions, OrtValue lifetimes."""
