"""Print the inputs and the outputs of complaints.onnx."""

import onnxruntime

providers = ["CPUExecutionProvider"]
session = onnxruntime.InferenceSession("complaints.onnx", providers=providers)
for value in session.get_inputs():
    print("input: ", value.name, value.type, value.shape)
for value in session.get_outputs():
    print("output:", value.name, value.type, value.shape)
