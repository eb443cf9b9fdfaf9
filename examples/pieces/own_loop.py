"""
A custom training loop
======================

`Step` makes one gradient step on the batch that you give it. The loop over epochs and batches, the
learning rate and the end of the training are yours. Such a loop has ten lines, with any solver.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_regression
from sklearn.linear_model import LinearRegression

from skort import Step
from skort.exceptions import RuntimeNotAvailableError

X, y = make_regression(n_samples=100, n_features=2, bias=2, random_state=0)
X, y = X.astype(np.float32), y.astype(np.float32)
rng = np.random.default_rng(0)

# %%
# Each solver makes the whole step. "graph" runs with every ONNX Runtime. The others need a build
# for training; where it is missing, `Step` raises an error that says so.

steps, losses = {}, {}
for solver in ("graph", "agent", "session"):
    try:
        step = Step(LinearRegression(), n_features=2, solver=solver, batch_size=10)
    except RuntimeNotAvailableError as error:
        print(error)
        continue
    losses[solver] = []
    for _ in range(10):
        order = rng.permutation(len(X)).reshape(-1, 10)
        losses[solver].append(np.mean([step.step(X[rows], y[rows], eta=0.2) for rows in order]))
    steps[solver] = step
    print(f"{solver:8}", *(f"{loss:.2g}" for loss in losses[solver]))

# %%
# A loop can do what a fit does not. This one chooses its batches: it draws 30 rows, and trains on the
# ten with the largest errors. `forward` gives the raw score of any rows, and keeps nothing.

choosy = Step(LinearRegression(), n_features=2, batch_size=10)
losses["graph, largest errors"] = []
for _ in range(10):
    of_epoch = []
    for _ in range(10):
        rows = rng.choice(len(X), 30, replace=False)
        errors = np.abs(choosy.forward(X[rows]).ravel() - y[rows])
        rows = rows[errors.argsort()[-10:]]
        of_epoch.append(choosy.step(X[rows], y[rows], eta=0.2))
    losses["graph, largest errors"].append(np.mean(of_epoch))
steps["graph, largest errors"] = choosy

# %%
# A TrainingAgent makes forward, backward and update one by one, so that a loop can change the
# gradients before the update. This loop adds noise to them, less in each epoch.

if "agent" in steps:
    noisy = Step(LinearRegression(), n_features=2, solver="agent", batch_size=10)
    losses["agent, with noise"] = []
    for epoch in range(10):
        of_epoch = []
        for rows in rng.permutation(len(X)).reshape(-1, 10):
            of_epoch.append(noisy.forward(X[rows], y[rows], training=True))
            for gradient in noisy.backward().values():
                gradient += rng.normal(scale=10 * 0.2**epoch, size=gradient.shape)
            noisy.update(eta=0.2)
        losses["agent, with noise"].append(np.mean(of_epoch))
    steps["agent, with noise"] = noisy

# %%
# A step is an ONNX model at any time, and its state is a dictionary of arrays.

reference = LinearRegression().fit(X, y)
print(f"{'LinearRegression':21}", reference.coef_, reference.intercept_)
for name, step in steps.items():
    weights = step.weights()
    print(f"{name:21}", weights["coef"].ravel(), weights["intercept"].ravel())
print(
    len(steps["graph"].to_onnx().SerializeToString()),
    "bytes of ONNX; state:",
    list(steps["graph"].state()),
)

# %%
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for name, curve in losses.items():
    axis.plot(range(1, 11), curve, marker=".", label=name)
axis.set(xlabel="epoch, or ten steps", ylabel="loss: half of the mean squared error", yscale="log")
axis.legend()
plt.show()
