"""
Penalties
=========

A penalty keeps weights small (`"l2"`), makes some of them exactly zero (`"l1"`), or both
(`"elasticnet"`). The figure shows the weights of ten features, by the strength of the penalty, next
to those of scikit-learn.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import ElasticNet, Lasso, Ridge
from sklearn.preprocessing import scale

from skort import OrtSGDRegressor

data = load_diabetes()
X, y = scale(data.data), data.target - data.target.mean()

# %%
# The objective is the mean loss plus `alpha` times the penalty, where the loss is half of the
# squared error. `Lasso` and `ElasticNet` have the same unit; `Ridge` sums over the rows, and takes
# `alpha` times their number. With a model of scikit-learn inside, `penalty="auto"` translates by
# itself.

# The strongest penalties leave a constant prediction, on purpose.
warnings.filterwarnings("ignore", "The model is not clearly better than a constant prediction")
strengths = np.logspace(-1, 2, 13)
penalties = {
    "l2": ({"penalty": "l2"}, lambda alpha: Ridge(alpha * len(X))),
    "l1": ({"penalty": "l1"}, lambda alpha: Lasso(alpha, tol=1e-8, max_iter=100_000)),
    "elasticnet": (
        {"penalty": "elasticnet", "l1_ratio": 0.5},
        lambda alpha: ElasticNet(alpha, l1_ratio=0.5, tol=1e-8),
    ),
}

# %%
# Each model begins at the weights of the one before (`warm_start`). One batch holds all rows:
# without the noise of batches, the weights agree with scikit-learn's to about 1 % of the largest
# one.

weights, references = {}, {}
for name, (options, reference) in penalties.items():
    model = OrtSGDRegressor(
        **options,
        optimizer="nesterov",
        batch_size=len(X),
        max_iter=3000,
        tol=1e-9,
        warm_start=True,
        random_state=0,
    )
    weights[name] = np.array([model.set_params(alpha=alpha).fit(X, y).coef_ for alpha in strengths])
    references[name] = np.array([reference(alpha).fit(X, y).coef_ for alpha in strengths])
    difference = np.abs(weights[name] - references[name]).max()
    n_zeros = (weights[name] == 0).sum(axis=1)
    print(
        f"{name:<10} weights at zero, by strength: {n_zeros.tolist()}; "
        f"largest difference {difference:.4f}"
    )

# %%
# Lines are weights of skort, crosses those of scikit-learn. With `"l1"` one weight after the other
# becomes zero as the strength grows.

figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained", sharey=True)
for axis, name in zip(axes, penalties, strict=True):
    for j, feature in enumerate(data.feature_names):
        color = plt.get_cmap("tab10")(j)
        axis.plot(strengths, weights[name][:, j], color=color, label=feature)
        axis.plot(strengths, references[name][:, j], "x", color=color, markersize=4)
    axis.set(xscale="log", xlabel="alpha", title=f'penalty="{name}"')
axes[0].set(ylabel="weight of a feature with standard deviation 1")
axes[-1].legend(fontsize="small", ncols=2)
plt.show()
