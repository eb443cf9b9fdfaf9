"""What is minimised: losses and penalties, each one ONNX text and its formula."""
