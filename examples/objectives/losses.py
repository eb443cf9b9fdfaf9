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


figure, axes = plt.subplots(2, 3, figsize=(11, 7.5), layout="constrained")
values = {}
for axis, (group, losses) in zip(axes.flat, groups.items(), strict=True):
    for i, (name, loss) in enumerate(losses.items()):
        values[group, name] = value(loss)
        parameters = [f"{key}={number:g}" for key, number in loss.get_params().items()]
        label = "quantile=0.75" if name == "quantile" else ", ".join([name, *parameters])
        # A thin line over a thick one: both can be seen where they coincide.
        axis.plot(
            score,
            values[group, name],
            linewidth=(5, 2)[i > 0],
            alpha=(0.5, 1)[i > 0],
            linestyle=("-", "-", "--", ":")[i],
            label=label,
        )
    axis.set_title(group, fontsize="medium")
    axis.set(xlabel="raw score", ylim=(-0.2, 11 if group == "classification, smooth" else 4.5))
    axis.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.22))
for axis in axes[:, 0]:
    axis.set(ylabel="loss of a row, y = 1")
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

labels = {"huber": "huber, epsilon=0.5", "quantile": "quantile=0.75"}
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.plot(X, y, ".", color="grey", markersize=3)
for loss, model in models.items():
    ends = np.array([[-1.0], [1.0]])
    # The lines of "absolute_error" and "huber" almost coincide: the first one is wide.
    width, alpha = (6, 0.4) if loss == "absolute_error" else (1.5, 1)
    axis.plot(ends, model.predict(ends), linewidth=width, alpha=alpha, label=labels.get(loss, loss))
axis.set(xlabel="x", ylabel="y")
axis.legend(title="loss", loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
