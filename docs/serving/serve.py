"""Serve complaints.onnx in Python, without skort, scikit-learn or pandas."""

import numpy as np
import onnxruntime

providers = ["CPUExecutionProvider"]
session = onnxruntime.InferenceSession("complaints.onnx", providers=providers)

# Three rows. Every input has the shape (n_rows, 1).
# NaN is a missing number, "" is missing text.
text = [["thank you"], ["it burns"], ["it never came"]]
feeds = {
    "days": np.array([[2], [np.nan], [25]], dtype=np.float32),
    "channel": np.array([["shop"], [""], ["phone"]], dtype=object),
    "text": np.array(text, dtype=object),
}
labels, probabilities = session.run(["label", "probabilities"], feeds)

for label, (later, urgent) in zip(labels, probabilities, strict=True):
    print(f"{label} {later:.7f} {urgent:.7f}")
