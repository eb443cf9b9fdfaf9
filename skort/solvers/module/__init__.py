"""ONNX Runtime's on-device training API: its models, and a solver that trains through it."""
