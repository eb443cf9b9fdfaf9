"""
Few rows, few weights: low-rank adapters
========================================

A network reads digits. A new scanner draws a bright stripe across them, and only 60 of its images
have labels. Each matrix W of the network gets a product A B of two narrow ones beside it (LoRA),
and only A and B are trained.
"""

import copy

import matplotlib.pyplot as plt
import numpy as np
import onnx.parser
from onnx import numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from skort import OrtSGDClassifier

# %%
# The network of the old images, and the new images.

images, labels = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32)
old, new, old_labels, new_labels = train_test_split(images, labels, test_size=0.5, random_state=0)
network = MLPClassifier(hidden_layer_sizes=(64,), max_iter=400, tol=1e-3, random_state=0).fit(
    old, old_labels
)

rng = np.random.default_rng(0)
stripe = np.zeros((8, 8), np.float32)
stripe[3] = 1
new = new + rng.uniform(0, 3, (len(new), 1)).astype(np.float32) * stripe.ravel()
few, test, few_labels, test_labels = train_test_split(
    new, new_labels, train_size=60, stratify=new_labels, random_state=0
)

# %%
# The same network with adapters of rank 2. B is zero at first, so that they change nothing.

model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    adapted (float[N, 64] X) => (float[N, 10] scores) {
        known0 = MatMul (X, W0)
        narrow0 = MatMul (X, A0)
        learned0 = MatMul (narrow0, B0)
        product0 = Add (known0, learned0)
        layer = Add (product0, b0)
        hidden = Relu (layer)
        known1 = MatMul (hidden, W1)
        narrow1 = MatMul (hidden, A1)
        learned1 = MatMul (narrow1, B1)
        product1 = Add (known1, learned1)
        scores = Add (product1, b1)
    }""")
start = {}
for i, (W, b) in enumerate(zip(network.coefs_, network.intercepts_, strict=True)):
    start |= {f"W{i}": W, f"b{i}": b, f"B{i}": np.zeros((2, W.shape[1]))}
    start[f"A{i}"] = rng.normal(scale=len(W) ** -0.5, size=(len(W), 2))
for name, array in start.items():
    model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))

# %%
# `trainable` names the weights to train. The others stay as they are, bit for bit.

fits = {
    "adapters": OrtSGDClassifier(model, trainable=["A*", "B*"], random_state=0),
    "all weights": OrtSGDClassifier(model, trainable=["W*", "b*"], random_state=0),
}
scores = {"as it was": network.score(test, test_labels)}
for name, fit in fits.items():
    scores[name] = fit.fit(few, few_labels).score(test, test_labels)
for name, score in scores.items():
    n_weights = (
        sum(fits[name].weights_[key].size for key in fits[name].trainable_) if name in fits else 0
    )
    print(f"{name:<11} {n_weights:>4} weights trained, accuracy {score:.2f}")

figure, ax = plt.subplots(layout="constrained")
bars = ax.barh(list(scores), list(scores.values()), color=["grey", "C0", "grey"])
ax.bar_label(bars, fmt="%.2f", padding=3)
ax.set(xlabel=f"accuracy on {len(test)} new images", xlim=(0, 1))
plt.show()

# %%
# With A B added to W, it is a network of scikit-learn again, as fast as before.

learned = fits["adapters"].weights_
merged = copy.deepcopy(network)
for i, W in enumerate(merged.coefs_):
    merged.coefs_[i] = W + learned[f"A{i}"] @ learned[f"B{i}"]
same = merged.predict(test) == fits["adapters"].predict(test)
print(f"the merged network gives the same label to {same.mean():.1%} of the images")
