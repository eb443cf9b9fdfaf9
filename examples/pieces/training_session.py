"""
A linear regression, step by step with TrainingSession
======================================================

ONNX Runtime's `TrainingSession` takes one graph that computes the loss. It adds the gradient and
the update to it, and runs all three at once. This page looks at the graph, makes the first steps
one by one, and then trains.

skort calls it through `solver="session"`. Where the installed ONNX Runtime has no
`TrainingSession`, this page takes `solver="graph"`, which makes the same steps on any onnxruntime.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import make_regression
from sklearn.linear_model import LinearRegression

from skort import Step
from skort.exceptions import RuntimeNotAvailableError
from skort.gradients import initial_model
from skort.onnx_models import objective_graph
from skort.plotting import GraphDisplay

X, y = make_regression(n_samples=100, n_features=2, bias=2, random_state=0)
X, y = X.astype(np.float32), y.astype(np.float32)
reference = LinearRegression().fit(X, y)

# %%
# The model as ONNX: a product and a sum. Its weights are zero before the training.

model = initial_model(LinearRegression(), n_features=2)
print(
    "model:    ",
    [node.op_type for node in model.graph.node],
    [w.name for w in model.graph.initializer],
)

# %%
# The loss is written behind it. This graph has two more inputs, the target and the weights of the
# rows, and gives the loss: half of the mean squared error.

graph = objective_graph(model, "squared_error")
print("with loss:", [node.op_type for node in graph.graph.node])
print(
    "inputs:   ",
    [i.name for i in graph.graph.input],
    "outputs:",
    [o.name for o in graph.graph.output],
)
GraphDisplay(graph, title="Model and loss").plot()
plt.show()

# %%
# onnxruntime runs it already, without any training.

session = onnxruntime.InferenceSession(
    graph.SerializeToString(), providers=["CPUExecutionProvider"]
)
feeds = {
    "X": X,
    "skort_target": y[:, None],
    "skort_sample_weight": np.full((100, 1), 0.01, np.float32),
}
print("loss of the first weights:", session.run(["skort_loss"], feeds)[0], "=", 0.5 * np.mean(y**2))

# %%
# `Step` makes such a graph by itself, and gives it to `TrainingSession`. The learning rate is an
# argument of each step.

solver = "session"
try:
    step = Step(model, penalty=None, solver=solver, batch_size=10)
except RuntimeNotAvailableError:
    solver = "graph"
    step = Step(model, penalty=None, solver=solver, batch_size=10)
print("solver:", step.solver)

# %%
# One step on ten rows, and the same by hand: the gradient of the loss is the mean of error times
# features.

rows = slice(0, 10)
loss = step.step(X[rows], y[rows], eta=0.2)
error = 0 - y[rows]
by_hand = -0.2 * np.append(X[rows].T @ error, error.sum()) / 10


def weights():
    """Return the coefficients and the intercept."""
    return np.concatenate([weight.ravel() for weight in step.weights().values()])


after_one_step = weights()
print("loss before the step:", loss)
print("weights after it:    ", after_one_step)
print("by hand:             ", by_hand)

# %%
# A second step on the same rows: the loss has fallen.

print("loss before the second step:", step.step(X[rows], y[rows], eta=0.2))

# %%
# Ten epochs, each in another order of the rows.

rng = np.random.default_rng(0)
losses, path = [], [np.zeros(3), after_one_step, weights()]
for _ in range(10):
    of_epoch = []
    for rows in rng.permutation(100).reshape(10, 10):
        of_epoch.append(step.step(X[rows], y[rows], eta=0.2))
        path.append(weights())
    losses.append(np.mean(of_epoch))
path = np.array(path)
print("loss of each epoch:", " ".join(f"{loss:.2g}" for loss in losses))
print("trained weights:   ", path[-1])
print("LinearRegression:  ", reference.coef_, reference.intercept_)

# %%
# Each dot is a step. The contours are those of the loss over all rows; the cross is
# `LinearRegression`.

first, second = np.meshgrid(np.linspace(-5, 45, 100), np.linspace(-5, 115, 100))
coefs = np.stack([first.ravel(), second.ravel()])
surface = 0.5 * np.mean((X @ coefs + reference.intercept_ - y[:, None]) ** 2, axis=0)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
left.semilogy(range(1, 11), losses, marker="o")
left.set(xlabel="epoch", ylabel="loss: half of the mean squared error")
right.contour(first, second, surface.reshape(first.shape), levels=12, cmap="Greys_r")
right.plot(path[:, 0], path[:, 1], marker=".", linewidth=1)
right.plot(*reference.coef_, "x", color="C1", markersize=12, markeredgewidth=3)
right.set(xlabel="first coefficient", ylabel="second coefficient")
plt.show()

# %%
# The trained weights are in the ONNX model again, which serves like any other.

served = onnxruntime.InferenceSession(
    step.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"]
)
(predicted,) = served.run(None, {"X": X})
print(
    "largest difference to LinearRegression:",
    np.abs(predicted.ravel() - reference.predict(X)).max(),
)
