"""Reverse-mode differentiation of ONNX graphs into standard operators: the walk, and one rule per operator."""
