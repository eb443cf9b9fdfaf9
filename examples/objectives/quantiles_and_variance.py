"""
Quantiles that do not cross, and a variance: one network each
=============================================================

One network can predict a whole distribution: several quantiles of y, or its mean and its standard
deviation. Each is a custom loss of a network with several outputs. Quantiles of separate models can
cross; those of this network cannot.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.base import clone
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor
from skort.objective import Loss

# %%
# The noise is normal, and its standard deviation grows with x: the true quantiles are known. A
# custom loss with an inverse link does not standardise y, so y is of the size of one. Without the
# link, y may be in any unit.


def trend(x):
    return 1.2 * np.sin(x)


def deviation(x):
    return 0.05 + 0.1 * x


rng = np.random.default_rng(0)
x_train, x_test = rng.uniform(0, 6, size=3000), rng.uniform(0, 6, size=10_000)
y_train, y_test = (trend(x) + deviation(x) * rng.normal(size=len(x)) for x in (x_train, x_test))
X_train, X_test = x_train[:, None], x_test[:, None]

# %%
# Five quantiles. The third score is the median, and the others are gaps between neighbours, as
# :math:`\log(1 + e^s)`. A gap is never negative, so the quantiles are in order for every row. They
# are sums of these parts: a row of the matrix has the quantiles that contain a part.

levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
in_order = """
    is_median = Constant <value = float[5] {0, 0, 1, 0, 0}> ()
    is_gap = Constant <value = float[5] {1, 1, 0, 1, 1}> ()
    sums = Constant <value = float[5, 5] {
        -1,  0, 0, 0, 0,
        -1, -1, 0, 0, 0,
         1,  1, 1, 1, 1,
         0,  0, 0, 1, 1,
         0,  0, 0, 0, 1
    }> ()
    median = Mul (score, is_median)
    positive = Softplus (score)
    gaps = Mul (positive, is_gap)
    parts = Add (median, gaps)
    quantiles = MatMul (parts, sums)
"""

# %%
# The loss of a quantile at level p is the pinball loss, :math:`p r + \max(-r, 0)` with
# :math:`r = y - q`. `predict` applies the inverse link, which gives the quantiles.

pinball = f"""
pinball (score, target) => (loss) {{
    {in_order}
    level = Constant <value = float[5] {{{", ".join(map(str, levels))}}}> ()
    error = Sub (target, quantiles)
    missed = Neg (error)
    above = Relu (missed)
    weighted = Mul (level, error)
    loss = Add (weighted, above)
}}"""
quantiles_of = f"ordered (score) => (quantiles) {{ {in_order} }}"

# A falling learning rate and an average over the last updates take the noise of the batches out.
model = OrtSGDRegressor(
    MLPRegressor(hidden_layer_sizes=(30, 30), activation="tanh"),
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
quantile_model = clone(model).set_params(loss=Loss(pinball, inverse_link=quantiles_of))
# Each output has its own target: here, five times the same.
quantile_model.fit(X_train, np.column_stack([y_train] * 5))

quantiles = quantile_model.predict(X_test)
median = quantiles[:, 2]
below = (y_test[:, None] < quantiles).mean(axis=0)
coverage = np.mean((quantiles[:, 0] <= y_test) & (y_test <= quantiles[:, 4]))
n_crossings = int((np.diff(quantiles) < 0).sum())
print("share of new points below each quantile:", *(f"{share:.3f}" for share in below))
print(f"share between the outer ones, 0.9 expected: {coverage:.3f}; crossings: {n_crossings}")

# %%
# Mean and variance. The scores are the mean m and the logarithm of the variance,
# :math:`s_2 = \log \sigma^2`, and the loss is the negative log-likelihood of a normal distribution
# without its constant: :math:`\frac{1}{2} (s_2 + (y - m)^2 e^{-s_2})`. `predict` gives m and
# :math:`\sigma`.

gaussian = """
gaussian (score, target) => (loss) {
    half = Constant <value = float {0.5}> ()
    first = Constant <value = float[2, 1] {1, 0}> ()
    second = Constant <value = float[2, 1] {0, 1}> ()
    residual = Sub (score, target)
    error = MatMul (residual, first)
    square = Mul (error, error)
    log_variance = MatMul (score, second)
    minus_log_variance = Neg (log_variance)
    precision = Exp (minus_log_variance)
    scaled = Mul (square, precision)
    sum = Add (scaled, log_variance)
    loss = Mul (half, sum)
}"""
mean_and_deviation_of = """
mean_and_deviation (score) => (prediction) {
    half = Constant <value = float {0.5}> ()
    is_mean = Constant <value = float[2] {1, 0}> ()
    is_deviation = Constant <value = float[2] {0, 1}> ()
    halves = Mul (half, score)
    roots = Exp (halves)
    mean = Mul (score, is_mean)
    deviation = Mul (roots, is_deviation)
    prediction = Add (mean, deviation)
}"""
normal_model = clone(model).set_params(loss=Loss(gaussian, inverse_link=mean_and_deviation_of))
# The second score has no target of its own: its column is not read.
normal_model.fit(X_train, np.column_stack([y_train, y_train]))

mean, sigma = normal_model.predict(X_test).T
normal_coverage = np.mean(np.abs(y_test - mean) <= norm.ppf(0.95) * sigma)
print(f"share within the normal's 90 %: {normal_coverage:.3f}")

# %%
# On this data the noise is normal, so both are right. Quantiles need no such assumption, and the
# normal distribution needs fewer rows. Dotted: the true quantiles.

line = np.linspace(0, 6, 200)
true = trend(line)[:, None] + deviation(line)[:, None] * norm.ppf(levels)
curves = quantile_model.predict(line[:, None])
line_mean, line_sigma = normal_model.predict(line[:, None]).T
normal_curves = line_mean[:, None] + line_sigma[:, None] * norm.ppf(levels)

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
titles = {"five quantiles": curves, "mean and standard deviation": normal_curves}
for axis, (title, bands) in zip(axes, titles.items(), strict=True):
    axis.plot(x_test[:1500], y_test[:1500], ".", color="grey", markersize=2)
    axis.fill_between(line, bands[:, 0], bands[:, 4], alpha=0.25, label="5 % to 95 %")
    axis.fill_between(line, bands[:, 1], bands[:, 3], alpha=0.4, label="25 % to 75 %")
    axis.plot(line, bands[:, 2], label="median")
    axis.plot(line, true, ":", color="black", linewidth=1)
    axis.set(xlabel="x", title=title)
axes[0].set_ylabel("y")
axes[0].legend()
plt.show()
