"""
A network beside numpy
======================

A network with one hidden layer needs twenty lines of numpy: forward, backward, update. Here they
make the same steps as skort, and end at the same weights. The figure says where ONNX Runtime pays.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from onnx import numpy_helper
from sklearn.datasets import make_friedman1
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from skort import OrtSGDRegressor
from skort.gradients import initial_model

X, y = make_friedman1(2000, noise=1, random_state=0)
X, y = scale(X).astype(np.float32), scale(y).astype(np.float32)
n_epochs, batch_size, eta = 20, 50, np.float32(0.05)

# %%
# The loss is half of the mean squared error of a batch. Its derivative by the score is the error,
# divided by the number of rows; the chain rule does the rest.


def train_in_numpy(weights):
    """Return the weights after the training, and the loss of each epoch."""
    hidden_coef, hidden_bias, coef, bias = (w.copy() for w in weights)
    losses = []
    for _ in range(n_epochs):
        loss = 0.0
        for begin in range(0, len(X), batch_size):
            rows, target = X[begin : begin + batch_size], y[begin : begin + batch_size, None]
            hidden = np.maximum(rows @ hidden_coef + hidden_bias, 0)
            error = hidden @ coef + bias - target
            loss += 0.5 * float(np.mean(error**2)) * len(rows) / len(X)
            score_gradient = error / len(rows)
            hidden_gradient = (score_gradient @ coef.T) * (hidden > 0)
            coef -= eta * (hidden.T @ score_gradient)
            bias -= eta * score_gradient.sum(axis=0)
            hidden_coef -= eta * (rows.T @ hidden_gradient)
            hidden_bias -= eta * hidden_gradient.sum(axis=0)
        losses.append(loss)
    return (hidden_coef, hidden_bias, coef, bias), losses


# %%
# `initial_model` draws the first weights. skort trains that ONNX model, in the same order of rows.

NAMES = ("coefficient", "intercepts", "coefficient1", "intercepts1")


def train_both(n_hidden):
    """Return the losses and the weights of both, and the ratio of their CPU times."""
    start = initial_model(
        MLPRegressor(hidden_layer_sizes=(n_hidden,)), n_features=10, random_state=0
    )
    weights = {w.name: numpy_helper.to_array(w) for w in start.graph.initializer}
    model = OrtSGDRegressor(
        start,
        penalty=None,
        optimizer="sgd",
        eta0=float(eta),
        learning_rate="constant",
        batch_size=batch_size,
        max_iter=n_epochs,
        tol=None,
        shuffle=False,
        standardize=False,
    )
    seconds = {"numpy": [], "skort": []}
    # The fastest of three: the first one builds the session.
    for _ in range(3):
        begin = time.process_time()
        in_numpy, losses = train_in_numpy([weights[name] for name in NAMES])
        seconds["numpy"].append(time.process_time() - begin)
        begin = time.process_time()
        model.fit(X, y)
        seconds["skort"].append(time.process_time() - begin)
    difference = max(
        np.abs(model.weights_[name] - w).max() for name, w in zip(NAMES, in_numpy, strict=True)
    )
    return losses, model.loss_curve_, difference, min(seconds["numpy"]) / min(seconds["skort"])


# %%
# The ratios are those of this run, on one core: they vary with the machine and its load.

losses, ratios, differences = {}, {}, {}
for n_hidden in (10, 50, 100, 200):
    with threadpool_limits(1):
        *curves, differences[n_hidden], ratios[n_hidden] = train_both(n_hidden)
    losses[n_hidden] = np.array(curves)
    print(
        f"{n_hidden:3} hidden units: numpy takes {ratios[n_hidden]:.1f} times as long, "
        f"largest difference of a weight {differences[n_hidden]:.1e}"
    )

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.semilogy(losses[50][0], linewidth=6, alpha=0.35, label="numpy")
left.semilogy(losses[50][1], color="C0", label="skort")
left.set(xlabel="epoch", ylabel="half of the mean squared error", title="50 hidden units")
left.legend()
right.plot(list(ratios), list(ratios.values()), "o-", markersize=10)
right.axhline(1, color="black")
right.set(xlabel="hidden units", ylabel="CPU time of numpy / of skort")
plt.show()
