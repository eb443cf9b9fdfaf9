"""What every room uses: the base of components, ONNX written as text, files, warnings."""
