"""
Quantile regression: a band around the prediction
=================================================

A prediction alone does not say how far off it may be. Three quantile regressions do: the median,
and a lower and an upper quantile. The band between the outer ones should contain 90 % of new
points, also where the noise grows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor

# %%
# The noise is normal, and its standard deviation grows with x: the true quantiles are known.


def trend(x):
    return 10 * np.sin(x)


def deviation(x):
    return 0.5 + 0.5 * x


rng = np.random.default_rng(0)
x_train, x_test = rng.uniform(0, 6, size=3000), rng.uniform(0, 6, size=10_000)
y_train, y_test = (trend(x) + deviation(x) * rng.normal(size=len(x)) for x in (x_train, x_test))

# %%
# With `loss="quantile"`, a prediction that is too low costs `quantile` times its error, and one
# that is too high `1 - quantile` times. A falling learning rate and an average over the last
# updates take the noise of the batches out of the curves.

model = OrtSGDRegressor(
    MLPRegressor(hidden_layer_sizes=(30, 30), activation="tanh"),
    loss="quantile",
    penalty=None,
    optimizer="adam",
    eta0=0.01,
    learning_rate="invscaling",
    average=6000,
    max_iter=150,
    batch_size=50,
    tol=None,
    random_state=0,
)
quantiles = (0.05, 0.5, 0.95)
models = {q: clone(model).set_params(quantile=q).fit(x_train[:, None], y_train) for q in quantiles}

# %%
# The share of new points below each curve, and inside the band.

predicted = {q: fitted.predict(x_test[:, None]) for q, fitted in models.items()}
below = {q: float(np.mean(y_test < curve)) for q, curve in predicted.items()}
inside = (predicted[0.05] <= y_test) & (y_test <= predicted[0.95])
coverage = inside.mean()
print("share of new points below:", {q: round(share, 3) for q, share in below.items()})
print(f"share inside the band: {coverage:.3f}")

# %%
# Left: the band. Right: the share of points inside, in twelve parts of the range of x. A band of
# constant width would contain nearly all points on the left, and too few on the right.

width = np.quantile(np.abs(y_test - predicted[0.5]), 0.9)
constant = np.abs(y_test - predicted[0.5]) <= width
edges = np.linspace(0, 6, 13)
part = np.digitize(x_test, edges[1:-1])
bands = {"band of quantiles": inside, "band of constant width": constant}
shares = {name: [hit[part == i].mean() for i in range(12)] for name, hit in bands.items()}

line = np.linspace(0, 6, 200)
curves = {q: fitted.predict(line[:, None]) for q, fitted in models.items()}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(x_test[:1500], y_test[:1500], ".", color="grey", markersize=2, label="new points")
left.fill_between(line, curves[0.05], curves[0.95], alpha=0.3, label="5 % to 95 %")
left.plot(line, curves[0.5], label="median")
left.set(xlabel="x", ylabel="y")
left.legend()
right.axhline(90, color="black")
for name, share in shares.items():
    right.plot(edges[:-1] + 0.25, 100 * np.array(share), marker="o", label=name)
right.set(xlabel="x", ylabel="points inside, %", ylim=(70, 101))
right.legend()
plt.show()
