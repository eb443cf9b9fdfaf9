"""
Training without skort
======================

`training_graphs()` returns a whole training step, with gradient and optimizer, as an ONNX graph of
standard operators. skort trains a neural network on half of the digits. Then this graph trains it
on the other half, with numpy and onnxruntime only, as on another machine or in another language. It
reaches the weights that skort reaches.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnx
import onnxruntime
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier

from skort import OrtSGDClassifier
from skort.plotting import GraphDisplay

N_EPOCHS, BATCH_SIZE, LEARNING_RATE = 20, 25, 0.002

# %%
# This part needs no skort. "start.onnx" gives the state: the weights, and what the optimizer
# remembers. "step.onnx" takes the state with a batch, and gives the next state.


def run(session, inputs):
    """Return all outputs by name."""
    return dict(
        zip(
            [output.name for output in session.get_outputs()],
            session.run(None, inputs),
            strict=True,
        )
    )


def train(folder, X, target):
    """Return the weights after some epochs, as one vector, and the objective of each epoch."""
    start, step, split = (
        onnxruntime.InferenceSession(Path(folder, name), providers=["CPUExecutionProvider"])
        for name in ("start.onnx", "step.onnx", "split.onnx")
    )
    state, losses = run(start, {}), []
    for _ in range(N_EPOCHS):
        loss = 0.0
        for begin in range(0, len(X), BATCH_SIZE):
            batch = slice(begin, begin + BATCH_SIZE)
            inputs = {
                "X": X[batch],
                "skort_target": target[batch],
                "skort_sample_weight": np.full((BATCH_SIZE, 1), 1 / BATCH_SIZE, np.float32),
                "skort_learning_rate": np.array(LEARNING_RATE, np.float32),
            }
            results = run(step, {**inputs, **state})
            state |= {
                name.removesuffix("_next"): array
                for name, array in results.items()
                if name.endswith("_next")
            }
            # A step reads the weights by their names, too.
            state |= run(split, {"skort_weights": state["skort_weights"]})
            loss += float(results["skort_objective"]) * BATCH_SIZE / len(X)
        losses.append(loss)
    return state["skort_weights"], losses


# %%
# A first training with skort, on 900 digits, and its files.

X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
options = {
    "optimizer": "adam",
    "eta0": LEARNING_RATE,
    "batch_size": BATCH_SIZE,
    "shuffle": False,
    "tol": None,
    "early_stopping": False,
}
# The weights of the graph are those of X as it is.
options |= {"learning_rate": "constant", "standardize": False}

first = OrtSGDClassifier(
    MLPClassifier(hidden_layer_sizes=(30,)), **options, max_iter=5, random_state=0
).fit(X[:900], y[:900])
folder = tempfile.mkdtemp(prefix="skort-")
for name, graph in first.training_graphs().items():
    onnx.save(graph, Path(folder, f"{name}.onnx"))

# %%
# The step: it computes the score, the loss and the gradient, and gives the next weights. The
# colours are the phases.

GraphDisplay.from_estimator(first, which="step").plot()
plt.show()

# %%
# The training goes on with the files, on 875 other digits: a whole number of batches.
rows = slice(900, 1775)
outside, losses = train(folder, X[rows], np.eye(10, dtype=np.float32)[y[rows]])
print("loss of the first and the last epoch, without skort:", losses[0], losses[-1])

# %%
# skort goes on from the same weights with the same batches.

inside = OrtSGDClassifier(FrozenEstimator(first.to_sklearn()), **options, max_iter=N_EPOCHS).fit(
    X[rows], y[rows]
)
print(
    "the same with skort:                                ",
    inside.loss_curve_[0],
    inside.loss_curve_[-1],
)
weights = np.concatenate([w.ravel() for w in inside.weights_.values()])
print("largest difference between the weights:", np.abs(outside - weights).max())

# %%
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
epochs = np.arange(1, N_EPOCHS + 1)
axis.plot(epochs, losses, linewidth=6, alpha=0.35, label="numpy and onnxruntime")
axis.plot(epochs, inside.loss_curve_, color="C0", label="skort")
axis.set(xlabel="epoch of the second training", ylabel="loss with penalty", yscale="log")
axis.xaxis.get_major_locator().set_params(integer=True)
axis.legend()
plt.show()
