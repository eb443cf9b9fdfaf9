"""
Training in a browser
=====================

The page :doc:`/on_device` trains a network while you look at it: press the button there.
This script shows what the page runs. It is one ONNX graph with a whole training step, which
onnxruntime-web runs there, and onnxruntime here.
"""

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import make_moons
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.neural_network import MLPClassifier

from skort import OrtSGDClassifier

N_EPOCHS, BATCH_SIZE, LEARNING_RATE = 60, 20, 0.02

# %%
# A first fit of one epoch makes the graphs. `standardize=False`: the weights of the step are those
# of X as it is.

X, y = make_moons(400, noise=0.15, random_state=0)
X = X.astype(np.float32)
options = {"optimizer": "adam", "learning_rate": "constant", "eta0": LEARNING_RATE, "tol": None}
options |= {"batch_size": BATCH_SIZE, "shuffle": False, "standardize": False, "random_state": 0}
options |= {"early_stopping": False}
first = OrtSGDClassifier(MLPClassifier(hidden_layer_sizes=(32,)), **options, max_iter=1).fit(X, y)
graphs = first.training_graphs()
for name, graph in graphs.items():
    print(f"{name}.onnx: {len(graph.SerializeToString()):,} bytes, {len(graph.graph.node)} nodes")

# %%
# "start" gives the weights, the memory of Adam, and numbers that do not change. "step" takes them
# with a batch, and gives the next weights and memory. "split" gives the weights by their names,
# which "step" reads, too. In JavaScript these are the same lines.

start, step, split = (
    onnxruntime.InferenceSession(
        graphs[name].SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for name in ("start", "step", "split")
)
state = dict(zip([output.name for output in start.get_outputs()], start.run(None, {}), strict=True))
part_names = [output.name for output in split.get_outputs()]
state_names = [name for name in state if f"{name}_next" in {o.name for o in step.get_outputs()}]
outputs = ["skort_objective", *(f"{name}_next" for name in state_names)]
losses = []
for _ in range(N_EPOCHS):
    loss = 0.0
    for begin in range(0, len(X), BATCH_SIZE):
        batch = slice(begin, begin + BATCH_SIZE)
        feeds = {
            "X": X[batch],
            "skort_target": y[batch, None].astype(np.float32),
            "skort_sample_weight": np.full((BATCH_SIZE, 1), 1 / BATCH_SIZE, np.float32),
            "skort_learning_rate": np.array(LEARNING_RATE, np.float32),
        }
        objective, *values = step.run(outputs, {**feeds, **state})
        state |= dict(zip(state_names, values, strict=True))
        parts = split.run(part_names, {"skort_weights": state["skort_weights"]})
        state |= dict(zip(part_names, parts, strict=True))
        loss += float(objective) * BATCH_SIZE / len(X)
    losses.append(loss)

# %%
# skort reaches the same weights, with the same steps.

inside = OrtSGDClassifier(FrozenEstimator(first.to_sklearn()), **options, max_iter=N_EPOCHS).fit(
    X, y
)
weights = np.concatenate([w.ravel() for w in inside.weights_.values()])
difference = np.abs(state["skort_weights"] - weights).max()
print(
    f"loss {losses[0]:.3f} to {losses[-1]:.4f}; "
    f"largest difference to the weights of skort: {difference:.1e}"
)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.semilogy(range(1, N_EPOCHS + 1), losses)
left.set(xlabel="epoch", ylabel="log-loss, with the penalty")
DecisionBoundaryDisplay.from_estimator(
    inside, X, response_method="predict_proba", alpha=0.6, cmap="RdBu", ax=right
)
for label, marker in enumerate("vo"):
    right.scatter(*X[y == label].T, s=16, marker=marker, color="black", edgecolor="white")
plt.show()
