"""
Training on a device
====================

A computer trains a network that reads digits. A device gets files with which ONNX Runtime's
on-device training API trains it further, on the digits of its one user. These lie one row of pixels
lower, and do not leave the device. What the device has learned comes back as a checkpoint, into the
estimator.

Here the same computer plays the device. This takes a build of ONNX Runtime for training,
onnxruntime-training or onnxruntime-training-cpu.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from skort import OrtSGDClassifier
from skort.artifacts import OnDeviceTraining, load_checkpoint, save_training_artifacts

BATCH_SIZE, N_EPOCHS, LEARNING_RATE = 20, 30, 0.1

# %%
# On the computer: a fit, and the four files for the device. The eval model takes any number of
# rows.

X, y = load_digits(return_X_y=True)
model = OrtSGDClassifier(
    MLPClassifier(hidden_layer_sizes=(30,)), batch_size=BATCH_SIZE, random_state=0
).fit(X[:1000], y[:1000])

folder = Path(tempfile.mkdtemp(prefix="skort-"))
save_training_artifacts(model, folder, optimizer="SGD", batch_size=BATCH_SIZE)
for path in sorted(folder.iterdir()):
    print(f"{path.name}: {path.stat().st_size} bytes")

# %%
# On the device: it knows the files and its user's digits only. The target has one column per class.

theirs = np.zeros_like(X[1000:])
theirs[:, 8:] = X[1000:, :-8]
rows, target = theirs[:400].astype(np.float32), np.eye(10, dtype=np.float32)[y[1000:1400]]
training = OnDeviceTraining(folder)
training.learning_rate = LEARNING_RATE
losses = []
for _ in range(N_EPOCHS):
    steps = [slice(begin, begin + BATCH_SIZE) for begin in range(0, len(rows), BATCH_SIZE)]
    losses.append(
        np.mean([training.train_step(rows[batch], target[batch])["loss"] for batch in steps])
    )
training.save_checkpoint(folder / "trained")
training.export_model_for_inferencing(folder / "model.onnx")

# %%
# Back on the computer: an estimator with the weights of the device. The device predicts with its
# own export as the estimator does.

trained = load_checkpoint(folder / "trained", model)
unseen, truth = theirs[400:], y[1400:]
before, after = model.score(unseen, truth), trained.score(unseen, truth)
print(f"accuracy on the user's digits: {before:.3f} before, {after:.3f} after")

session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
labels, probabilities = session.run(["label", "probabilities"], {"X": unseen.astype(np.float32)})
print(
    "largest difference of probabilities:",
    np.abs(probabilities - trained.predict_proba(unseen)).max(),
)

# %%
# The loss on the device, and three digits of the user.

figure, axes = plt.subplots(1, 4, figsize=(10, 3), layout="constrained", width_ratios=[5, 1, 1, 1])
axes[0].semilogy(range(1, N_EPOCHS + 1), losses)
axes[0].set(xlabel="epoch on the device", ylabel="loss")
for panel, image, digit in zip(axes[1:], unseen, truth, strict=False):
    panel.imshow(image.reshape(8, 8), cmap="gray_r")
    panel.set(title=digit, xticks=[], yticks=[])
plt.show()
