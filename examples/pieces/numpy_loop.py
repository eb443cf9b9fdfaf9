"""
A network that says how certain it is
=====================================

`ForwardBackward` computes the score of a model and its gradient. The loss and the optimizer are a
few lines of numpy. Here a network of scikit-learn learns how certain y is. Its two outputs share
one loss, that of a normal distribution: the first one is the mean, the second one the logarithm of
the standard deviation.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neural_network import MLPRegressor

from skort.gradients import ForwardBackward, initial_model

# %%
# y is nine times as noisy where x is positive.

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(2000, 1)).astype(np.float32)
deviation = 0.05 + 0.4 * (X[:, 0] > 0)
y = (np.sin(3 * X[:, 0]) + deviation * rng.normal(size=len(X))).astype(np.float32)

network = MLPRegressor(hidden_layer_sizes=(30, 30), activation="tanh")
layer = ForwardBackward(initial_model(network, n_features=1, n_outputs=2, random_state=0))


# %%
# The loss is the negative logarithm of the density. `backward` takes its derivative by the score.


def loss_and_gradient(score, y):
    mean, log_deviation = score.T
    z = (y - mean) * np.exp(-log_deviation)
    loss = np.mean(log_deviation + z**2 / 2)
    gradient = np.column_stack([-z * np.exp(-log_deviation), 1 - z**2]) / len(y)
    return loss, gradient.astype(np.float32)


# %%
# Adam, on all weights as one vector, with a learning rate that falls to zero.

first, second, losses = np.zeros_like(layer.weights), np.zeros_like(layer.weights), []
for step in range(1, 2001):
    rows = rng.integers(len(X), size=100)
    score, saved = layer.forward(X[rows])
    loss, score_gradient = loss_and_gradient(score, y[rows])
    gradient = layer.backward(saved, score_gradient).weights
    first += 0.1 * (gradient - first)
    second += 0.001 * (gradient**2 - second)
    rate = 0.01 * (1 - step / 2000) * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    layer.weights -= rate * first / (np.sqrt(second) + 1e-8)
    losses.append(loss)
print("loss of the first and the last 100 steps:", np.mean(losses[:100]), np.mean(losses[-100:]))

# %%
# It has found where y is uncertain.

places = np.array([[-0.5], [0.5]], np.float32)
score, _ = layer.forward(places, training=False)
predicted = np.exp(score[:, 1])
for place, mean, spread in zip(places[:, 0], score[:, 0], predicted, strict=True):
    print(f"x = {place:4.1f}: y is {mean:5.2f} +- {spread:.2f}")

line = np.linspace(-1, 1, 200, dtype=np.float32)[:, None]
mean, log_spread = layer.forward(line, training=False)[0].T
ends = mean + np.outer([-2, 2], np.exp(log_spread))
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(X[:, 0], y, ".", markersize=2, color="grey", label="y")
left.plot(line[:, 0], mean, label="mean")
left.fill_between(line[:, 0], *ends, alpha=0.3, label="two standard deviations")
left.legend()
right.plot(line[:, 0], np.exp(log_spread), label="learned")
right.step([-1, 0, 1], [0.05, 0.05, 0.45], "k:", label="true")
right.set(xlabel="x", ylabel="standard deviation of y", ylim=(0, None))
right.legend()
plt.show()

# %%
# The model is ONNX, with both outputs as its columns.

print([node.op_type for node in layer.to_onnx().graph.node])
