"""Solver "module": ONNX Runtime's on-device training API, and the models that it needs."""
