"""Helpers for all other rooms: the base of components, ONNX written as text, files, warnings."""
