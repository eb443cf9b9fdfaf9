"""
The losses, and what they fit
=============================

Each loss is an ONNX function. This page plots all of them, and fits data with outliers by four of them.
"""

import matplotlib.pyplot as plt
import numpy as np
import onnx.reference

from skort import OrtSGDRegressor
from skort.objective.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from skort.onnx_text import function_model

# %%
# The value of each loss against the score, for the target 1 (for a classifier, the second class).
score, target = np.linspace(-2.5, 4, 261, dtype=np.float32)[:, None], np.ones((261, 1), np.float32)


def value(loss):
    model = function_model(loss.value_function(1), "float32", {"score": score.shape, "target": target.shape})
    return onnx.reference.ReferenceEvaluator(model).run(None, {"score": score, "target": target})[0].ravel()


figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
kinds = {"regression, y = 1": REGRESSION_LOSSES, "classification, y = 1": CLASSIFICATION_LOSSES}
values = {}
for axis, (kind, losses) in zip(axes, kinds.items(), strict=True):
    for name, loss_class in losses.items():
        values[name] = value(loss_class())
        axis.plot(score, values[name], label=name)
    axis.set(title=kind, xlabel="score", ylim=(-0.2, 6))
    axis.legend(fontsize="small")
figure.tight_layout()

# %%
# Lines through data with outliers on one side. Squared error follows the outliers, absolute error and Huber do not. The
# quantile loss fits the line below which three quarters of the data lie.
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(300, 1))
y = 1 + 2 * X[:, 0] + 0.3 * rng.normal(size=300)
y[::8] += 6
options = {"eta0": 0.3, "learning_rate": "invscaling", "max_iter": 300, "tol": None, "random_state": 0}
models = {
    loss: OrtSGDRegressor(loss=loss, epsilon=0.5, quantile=0.75, **options).fit(X, y)
    for loss in ("squared_error", "absolute_error", "huber", "quantile")
}

figure, axis = plt.subplots()
axis.plot(X, y, ".", color="lightgrey")
for loss, model in models.items():
    line = np.array([[-1.0], [1.0]])
    axis.plot(line, model.predict(line), label=loss)
axis.set(xlabel="x", ylabel="y")
axis.legend()
plt.show()
