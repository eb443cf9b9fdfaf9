r"""
A network with Nesterov's momentum and a penalty, in pieces
===========================================================

One level below the estimators: ONNX Runtime computes the network and its gradient, and the loss,
the penalty and Nesterov's momentum are numpy. The weights are those that `OrtSGDRegressor` reaches
in one graph.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from skort import OrtSGDRegressor
from skort.gradients import ForwardBackward, initial_model
from skort.objective import L2
from skort.optimizers import Nesterov

X, y = make_friedman1(1000, noise=1, random_state=0)
X, y = scale(X).astype(np.float32), scale(y).astype(np.float32)
n_epochs, batch_size, eta, momentum, alpha = 30, 50, 0.02, 0.9, 0.01
start = initial_model(MLPRegressor(hidden_layer_sizes=(30,)), n_features=10, random_state=0)

# %%
# The pieces. The penalty is :math:`\frac{\alpha}{2} \lVert w \rVert^2` of the coefficients, and
# leaves the intercepts alone: `is_coefficient` says which is which. Nesterov's momentum keeps a
# velocity, and looks one step ahead of it.


def train_in_pieces(alpha):
    """Return the weights by name, and the objective of each epoch."""
    layer = ForwardBackward(start)
    is_coefficient = np.zeros_like(layer.weights)
    for name, part in layer.views(is_coefficient).items():
        part[:] = name.startswith("coefficient")
    velocity, objectives = np.zeros_like(layer.weights), []
    for _ in range(n_epochs):
        objective = 0.0
        for begin in range(0, len(X), batch_size):
            rows, target = X[begin : begin + batch_size], y[begin : begin + batch_size, None]
            score, saved = layer.forward(rows)
            error = score - target
            gradient = layer.backward(saved, error / batch_size).weights
            penalized = is_coefficient * layer.weights
            objective += 0.5 * np.mean(error**2) + 0.5 * alpha * penalized @ penalized
            gradient += alpha * penalized
            velocity = momentum * velocity - eta * gradient
            layer.weights += momentum * velocity - eta * gradient
        objectives.append(objective * batch_size / len(X))
    return {name: part.copy() for name, part in layer.views().items()}, objectives


# %%
# The estimator: the same in one graph.


def train_in_one_graph(alpha):
    """Return a fitted estimator."""
    return OrtSGDRegressor(
        start,
        penalty=L2(alpha),
        optimizer=Nesterov(momentum=momentum),
        eta0=eta,
        learning_rate="constant",
        batch_size=batch_size,
        max_iter=n_epochs,
        tol=None,
        shuffle=False,
        standardize=False,
    ).fit(X, y)


weights, objectives = train_in_pieces(alpha)
model = train_in_one_graph(alpha)
difference = max(np.abs(model.weights_[name] - part).max() for name, part in weights.items())
print(f"largest difference of a weight: {difference:.1e}")
print(
    f"objective of the last epoch: {objectives[-1]:.6f} in pieces, "
    f"{model.loss_curve_[-1]:.6f} in one graph"
)

# %%
# One graph is faster: it calls ONNX Runtime once a step, not twice, and makes no arrays in between.
# The ratio is that of this run, and varies.


def seconds(train):
    begin = time.process_time()
    with threadpool_limits(1):
        train(alpha)
    return time.process_time() - begin


ratio = min(seconds(train_in_pieces) for _ in range(3)) / min(
    seconds(train_in_one_graph) for _ in range(3)
)
print(f"in pieces it takes {ratio:.1f} times as much CPU time")

# %%
# Left: the objective of both. Right: the penalty makes the weights of the first layer smaller.

free, _ = train_in_pieces(0.0)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
epochs = range(1, n_epochs + 1)
left.plot(epochs, objectives, linewidth=6, alpha=0.35, label="in pieces")
left.plot(epochs, model.loss_curve_, color="C0", label="in one graph")
left.set(xlabel="epoch", ylabel="loss with penalty", yscale="log")
left.legend()
bins = np.linspace(-1.5, 1.5, 41)
for label, trained in (("alpha = 0", free), (f"alpha = {alpha}", weights)):
    right.hist(trained["coefficient"].ravel(), bins=bins, alpha=0.6, label=label)
right.set(xlabel="weight of the first layer", ylabel="number of weights")
right.legend()
plt.show()
