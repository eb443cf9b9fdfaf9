"""
A neural network
================

A network of scikit-learn learns a curve from noisy points. The figure shows what it predicts after
a few epochs, and after many: a linear trend comes first, and the waves later.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor
from skort.plotting import LossCurveDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(1000, 1))
y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 0] + 0.2 * rng.normal(size=1000)

# %%
# `MLPRegressor` says what is trained: two hidden layers of 30 units with tanh. How it is trained is
# up to the parameters of `OrtSGDRegressor`: here Adam, in batches of 50 rows. A callback keeps the
# predictions after some epochs.

line = np.linspace(-3, 3, 300)[:, None]


class Snapshots:
    def __init__(self, epochs):
        self.epochs, self.curves = epochs, {}

    def on_epoch_end(self, training):
        if training.n_epochs in self.epochs:
            self.curves[training.n_epochs] = training.model.predict(training.prepare(line))


snapshots = Snapshots([1, 10, 200])
model = OrtSGDRegressor(
    MLPRegressor(hidden_layer_sizes=(30, 30), activation="tanh"),
    penalty=None,
    optimizer="adam",
    eta0=0.005,
    batch_size=50,
    max_iter=200,
    tol=None,
    callbacks=[snapshots],
    random_state=0,
).fit(X, y)
print(f"R² on the points: {model.score(X, y):.3f}; of the curve without noise: ", end="")
truth = np.sin(2 * line[:, 0]) + 0.5 * line[:, 0]
print(f"{model.score(line, truth):.4f}")

# %%
# The noise has a standard deviation of 0.2, so half of its mean square, 0.02, is the smallest loss
# that a model of the true curve has (the dashed line).

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(X[:, 0], y, ".", color="lightgrey", markersize=3, label="points")
left.plot(line, truth, "k:", label="without noise")
for epoch, curve in snapshots.curves.items():
    left.plot(line, curve, label=f"epoch {epoch}")
left.legend()
LossCurveDisplay.from_estimator(model, columns="loss", ax=right)
right.axhline(0.02, color="grey", linestyle="--")
right.set(xscale="log", yscale="log")
plt.show()
