"""scikit-learn <-> ONNX: score graphs and deployable models; no training in here."""
