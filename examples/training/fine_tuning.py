"""
Fine-tuning, with a frozen layer or without
===========================================

A scaler and a neural network were fitted on 1,200 images of digits. The images of a new scanner are
half as bright, and only 40 of them have labels. Training goes on from the fitted weights: those of
all layers, or only those of the last layer.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier

images, labels = load_digits(return_X_y=True)
darker = images / 2

fitted = make_pipeline(
    StandardScaler(), MLPClassifier(hidden_layer_sizes=(50,), max_iter=500, random_state=0)
)
fitted.fit(images[:1200], labels[:1200])

new, new_labels = darker[1200:1240], labels[1200:1240]
test, test_labels = darker[1240:], labels[1240:]

# %%
# `FrozenEstimator` says that the pipeline is fitted. Its scaler is used as it is, and training
# starts at its weights. `trainable` names the weights to train; all others stay as they are, bit
# for bit. Their names are those of `weights_`.

options = {"optimizer": "sgd", "learning_rate": "constant", "eta0": 0.05}
options |= {"max_iter": 100, "tol": None, "random_state": 0}
last = {"trainable": ["coefficient1", "intercepts1"]}
unfitted = make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=(50,)))
models = {
    "as it was": fitted,
    "from scratch": OrtSGDClassifier(unfitted, **options),
    "all layers tuned": OrtSGDClassifier(FrozenEstimator(fitted), **options),
    "last layer tuned": OrtSGDClassifier(FrozenEstimator(fitted), **last, **options),
}
scores = {}
for name, model in models.items():
    if model is not fitted:
        model.fit(new, new_labels)
    scores[name] = model.score(test, test_labels)
    print(f"{name:<17} {scores[name]:.3f}")

# %%
# How far has each layer moved? The frozen one not at all.

start = {"first layer": fitted[-1].coefs_[0], "last layer": fitted[-1].coefs_[1]}
moved = {}
for name in ("all layers tuned", "last layer tuned"):
    for layer, weight in zip(start, ("coefficient", "coefficient1"), strict=True):
        difference = models[name].weights_[weight] - start[layer].astype(np.float32)
        moved[name, layer] = np.linalg.norm(difference) / np.linalg.norm(start[layer])
        print(f"{name}, {layer}: moved by {100 * moved[name, layer]:.1f} % of its norm")

plt.figure(figsize=(6.4, 3.4), layout="constrained")
plt.plot(list(scores.values()), list(scores), "o", markersize=12)
plt.xlim(0, 1)
plt.margins(y=0.15)
plt.xlabel("accuracy on 557 dark images")
plt.show()

# %%
# The trained model can become a plain scikit-learn pipeline, or an ONNX file that takes the pixels.

plain = models["all layers tuned"].to_sklearn()
print(plain)
print(f"{plain.score(test, test_labels):.3f}")
