"""
The losses, and what they fit
=============================

A loss says how much an error costs. The first figure plots all losses that have a name. The second
one fits a line to data with outliers, with four of them: the loss decides which line is best.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
import onnx.reference

from skort import OrtSGDRegressor
from skort.objective.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from skort.onnx_text import function_model

# %%
# Each loss is an ONNX function of the raw score and the target. This evaluates it for one target,
# 1. For a classifier, that is the second class: a large score is right, and costs little.

score, target = np.linspace(-2.5, 4, 261, dtype=np.float32)[:, None], np.ones((261, 1), np.float32)


def value(loss):
    model = function_model(
        loss.value_function(1), "float32", {"score": score.shape, "target": target.shape}
    )
    return (
        onnx.reference.ReferenceEvaluator(model)
        .run(None, {"score": score, "target": target})[0]
        .ravel()
    )


figure, axes = plt.subplots(1, 2, figsize=(10, 5.5), layout="constrained", sharey=True)
kinds = {"regression, y = 1": REGRESSION_LOSSES, "classification, y = 1": CLASSIFICATION_LOSSES}
values = {}
for axis, (kind, losses) in zip(axes, kinds.items(), strict=True):
    for i, (name, loss_class) in enumerate(losses.items()):
        values[kind, name] = value(loss_class())
        axis.plot(
            score,
            values[kind, name],
            label=name,
            color=plt.get_cmap("tab10")(i),
            linestyle=("-", "--")[i % 2],
        )
    axis.set(title=kind, xlabel="raw score", ylim=(-0.2, 6))
    axis.legend(fontsize="small", ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.15))
axes[0].set(ylabel="loss of a row")
plt.show()

# %%
# Now a line, :math:`y = 1 + 2 x`, with a little noise; one row in eight is 6 too high. Squared
# error follows these outliers. Absolute error and Huber do not. The quantile loss fits the line
# below which three quarters of the rows lie.

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(300, 1))
y = 1 + 2 * X[:, 0] + 0.3 * rng.normal(size=300)
y[::8] += 6
options = {
    "eta0": 0.3,
    "learning_rate": "invscaling",
    "max_iter": 300,
    "tol": None,
    "random_state": 0,
}
models = {
    loss: OrtSGDRegressor(loss=loss, epsilon=0.5, quantile=0.75, **options).fit(X, y)
    for loss in ("squared_error", "absolute_error", "huber", "quantile")
}
for loss, model in models.items():
    print(f"{loss:<15} y = {model.intercept_[0]:.2f} + {model.coef_[0]:.2f} x")

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.plot(X, y, ".", color="grey", markersize=3)
for loss, model in models.items():
    line = np.array([[-1.0], [1.0]])
    axis.plot(line, model.predict(line), label=loss)
axis.set(xlabel="x", ylabel="y")
axis.legend(title="loss", loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
