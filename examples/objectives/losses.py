"""
The losses, and what they fit
=============================

A loss says how much an error costs. The first figure plots the losses that have a name, in groups.
The second one fits a line to data with outliers, with four losses: the loss decides which line is
best.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.linear_model import LinearRegression

from skort import OrtSGDRegressor
from skort.gradients import initial_model
from skort.objective import (
    AbsoluteError,
    EpsilonInsensitive,
    GammaLoss,
    Hinge,
    Huber,
    LabelEpsilonInsensitive,
    LabelHuber,
    LabelSquaredEpsilonInsensitive,
    LabelSquaredError,
    LogLoss,
    ModifiedHuber,
    PerceptronLoss,
    PoissonLoss,
    Quantile,
    SquaredEpsilonInsensitive,
    SquaredError,
    SquaredHinge,
)
from skort.onnx_models import objective_graph, with_weights

# %%
# The losses by their names. Those of the upper row are for regression: losses with a kink, losses
# with a square, and losses whose score is the logarithm of the prediction. Those of the lower row
# are for classification. The losses of its last panel measure the distance of the raw score from
# the label, -1 or 1. So a score that is too large costs, too.

groups = {
    "regression, with a kink": {
        "absolute_error": AbsoluteError(),
        "quantile": Quantile(quantile=0.75),
        "epsilon_insensitive": EpsilonInsensitive(epsilon=0.5),
    },
    "regression, with a square": {
        "squared_error": SquaredError(),
        "huber": Huber(epsilon=1),
        "squared_epsilon_insensitive": SquaredEpsilonInsensitive(epsilon=0.5),
    },
    "regression, log link": {"poisson": PoissonLoss(), "gamma": GammaLoss()},
    "classification, with a kink": {"hinge": Hinge(), "perceptron": PerceptronLoss()},
    "classification, smooth": {
        "modified_huber": ModifiedHuber(),
        "squared_hinge": SquaredHinge(),
        "log_loss": LogLoss(),
    },
    "classification, to the label": {
        "squared_error": LabelSquaredError(),
        "huber": LabelHuber(epsilon=1),
        "epsilon_insensitive": LabelEpsilonInsensitive(epsilon=1),
        "squared_epsilon_insensitive": LabelSquaredEpsilonInsensitive(epsilon=0.5),
    },
}

# %%
# `objective_graph` returns an ONNX model that computes the loss of a model on some rows. This model
# is the line :math:`score = x`. The graph gets one row at a time, and the target is 1. For a
# classifier, that is the second class: a large score is right.

line = with_weights(initial_model(LinearRegression(), n_features=1), {"coef": [[1.0]]})
score = np.linspace(-2.5, 4, 261, dtype=np.float32)
one = np.ones((1, 1), np.float32)


def value(loss):
    """Return the loss of each score."""
    session = onnxruntime.InferenceSession(
        objective_graph(line, loss).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    rows = {"skort_target": one, "skort_sample_weight": one}
    return np.array([session.run(["skort_loss"], {"X": s * one, **rows})[0] for s in score])


values = {
    (group, name): value(loss) for group, losses in groups.items() for name, loss in losses.items()
}
figure, axes = plt.subplots(2, 3, figsize=(11, 6.5), layout="constrained", sharey=True)
for axis, (group, losses) in zip(axes.flat, groups.items(), strict=True):
    for name in losses:
        axis.plot(score, values[group, name], linewidth=3, alpha=0.7, label=name)
    axis.set(title=group, xlabel="raw score", ylim=(-0.2, 4.5))
    axis.legend(fontsize="small")
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

ends = np.array([[-1.0], [1.0]])
plt.figure(figsize=(6.4, 4), layout="constrained")
plt.plot(X, y, ".", color="grey", markersize=3)
for loss, model in models.items():
    plt.plot(ends, model.predict(ends), linewidth=3, alpha=0.7, label=loss)
plt.legend(title="loss")
plt.show()
