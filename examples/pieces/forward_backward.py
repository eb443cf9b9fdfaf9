"""
A linear regression with forward and backward
=============================================

`ForwardBackward` computes the score of a model. From the derivative of your loss by that score, it
computes the gradient of the weights. The loss and the update are yours: two lines of numpy.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_regression
from sklearn.linear_model import LinearRegression

from skort.gradients import ForwardBackward, initial_model

X, y = make_regression(n_samples=100, n_features=2, bias=2, noise=5, random_state=0)
X, y = X.astype(np.float32), y.astype(np.float32)[:, None]
reference = LinearRegression().fit(X, y)

# %%
# All weights are one vector; `views` gives its parts by their names.

layer = ForwardBackward(initial_model(LinearRegression(), n_features=2))
print({name: weight.ravel() for name, weight in layer.views().items()})

# %%
# One pass. The score is that of all rows. The loss is half of the mean squared error, and its
# derivative by the score is the error divided by the number of rows. `backward` gives the gradient
# by the weights.

score, saved = layer.forward(X)
score_gradient = (score - y) / len(X)
gradient = layer.backward(saved, score_gradient).weights
formula = np.append(X.T @ score_gradient, score_gradient.sum())
print("gradient:", gradient)
print("formula: ", formula)

# %%
# Gradient descent, in batches of ten rows.


def train(eta, n_epochs=10):
    """Return the path of the weights."""
    rng = np.random.default_rng(0)
    layer.weights[:] = 0
    path = [layer.weights.copy()]
    for _ in range(n_epochs):
        for rows in rng.permutation(100).reshape(10, 10):
            score, saved = layer.forward(X[rows])
            layer.weights -= eta * layer.backward(saved, (score - y[rows]) / 10).weights
            path.append(layer.weights.copy())
    return np.array(path)


paths = {eta: train(eta) for eta in (0.01, 0.1, 0.5)}
expected = np.append(reference.coef_, reference.intercept_)
print("LinearRegression:", expected)
for eta, path in paths.items():
    print(f"rate {eta:4}: {path[-1]}, {np.linalg.norm(path[-1] - expected):.2f} away")

# %%
# A small rate has not arrived after 100 steps. A large one arrives soon, and keeps moving: each
# batch has other noise.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for eta, path in paths.items():
    left.plot(np.linalg.norm(path - expected, axis=1), label=f"learning rate {eta}")
    right.plot(path[:, 0], path[:, 1], marker=".", markersize=4, linewidth=1)
left.set(xlabel="step", ylabel="distance to the weights of LinearRegression", yscale="log")
left.legend()
right.plot(*reference.coef_[0], "kx", markersize=12, markeredgewidth=3, label="LinearRegression")
right.set(xlabel="first coefficient", ylabel="second coefficient")
right.legend()
plt.show()

# %%
# The trained model as ONNX.

layer.weights[:] = paths[0.1][-1]
print([node.op_type for node in layer.to_onnx().graph.node])
