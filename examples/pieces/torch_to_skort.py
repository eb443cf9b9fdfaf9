"""
A torch model exported to ONNX, trained by skort
================================================

`torch.onnx.export` writes a model of torch as ONNX, and skort trains that: with scikit-learn's
parameters, in searches and pipelines, and on machines without torch. The flags that matter:

- `opset_version=17`, which every supported ONNX Runtime reads, and from which no conversion is
  needed;
- any number of rows: `dynamic_axes` of the older exporter, `dynamic_shapes` of the newer one;
- `model.eval()`: in a training by skort, layers such as dropout do what they do in a prediction.

This needs torch, and the newer exporter needs onnxscript: `pip install torch onnxscript`.
"""

# sphinx_gallery_thumbnail_path = 'static/gallery/torch_to_skort.png'

import importlib.util
import io
import warnings

import matplotlib.pyplot as plt
import numpy as np
import onnx
import torch
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from torch import nn

from skort import OrtSGDClassifier
from skort.torch import OnnxModule

# %%
# A network of torch, and both exporters.

torch.manual_seed(0)
network = nn.Sequential(
    nn.Linear(64, 50), nn.GELU(), nn.Dropout(0.1), nn.Linear(50, 30), nn.Tanh(), nn.Linear(30, 10)
)
network.eval()
names = {"input_names": ["X"], "output_names": ["logits"], "opset_version": 17}


def older_exporter():
    file = io.BytesIO()
    with warnings.catch_warnings():
        # It says that the newer one is to be preferred.
        warnings.simplefilter("ignore")
        rows = {"X": {0: "n"}, "logits": {0: "n"}}
        torch.onnx.export(
            network, (torch.zeros(2, 64),), file, **names, dynamo=False, dynamic_axes=rows
        )
    return onnx.load_from_string(file.getvalue())


def newer_exporter():
    rows = ({0: torch.export.Dim("n")},)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            network, (torch.zeros(2, 64),), **names, dynamo=True, dynamic_shapes=rows, verbose=False
        )
    return program.model_proto


exported = {"older": older_exporter()}
if importlib.util.find_spec("onnxscript"):
    exported["newer"] = newer_exporter()

# %%
# The exported model computes what the torch model computes, and has the same gradients.

images, labels = load_digits(return_X_y=True)
X = torch.from_numpy((images[:100] / 16).astype(np.float32))
differences = {}
for name, model in exported.items():
    print(name, [node.op_type for node in model.graph.node])
    layer = OnnxModule(model)
    network.zero_grad()
    for each in (network, layer):
        nn.functional.cross_entropy(each(X), torch.from_numpy(labels[:100])).backward()
    ours, theirs = layer.named_weights(layer.weights.grad), dict(network.named_parameters())
    differences[name] = max(
        (part - theirs[key].grad).abs().max().item() for key, part in ours.items()
    )
print("largest difference between the gradients:", differences)

# %%
# As an estimator, it is trained on images behind a scaler. The labels may be anything: the logits
# are its raw score.

scores, curves = {}, {}
for name, model in exported.items():
    classifier = OrtSGDClassifier(
        make_pipeline(MinMaxScaler(), model),
        optimizer="adam",
        learning_rate="constant",
        eta0=0.003,
        max_iter=30,
        tol=None,
    )
    classifier.fit(images[:1400], labels[:1400].astype(str))
    scores[name] = classifier.score(images[1400:], labels[1400:].astype(str))
    curves[name] = classifier.loss_curve_
print("accuracy on images left out:", scores)

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, curve), width in zip(curves.items(), (5, 1.5), strict=False):
    axis.plot(range(1, len(curve) + 1), curve, linewidth=width, alpha=0.7, label=f"{name} exporter")
axis.set(xlabel="epoch", ylabel="log-loss", yscale="log")
axis.legend()
plt.show()

# %%
# Its weights have torch's names, and go back into the torch model.

weights = {
    key: torch.from_numpy(array)
    for key, array in classifier.weights_.items()
    if key in network.state_dict()
}
network.load_state_dict(weights)
scaled = torch.from_numpy(
    MinMaxScaler().fit(images[:1400]).transform(images[1400:]).astype(np.float32)
)
with torch.no_grad():
    back = (network(scaled).argmax(1).numpy() == labels[1400:]).mean()
print("accuracy of the torch model:", back)
