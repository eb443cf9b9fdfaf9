r"""
The clock of a schedule: updates or epochs
==========================================

The schedule "invscaling" has the rate :math:`\eta = \eta_0 / t^{0.25}`. In scikit-learn and in
skort, t is the number of the update. Some training loops update the rate once per epoch, and their
t is the number of the epoch. This script trains a linear regression for ten epochs of ten updates
with both, and with a constant rate. The losses at the end differ by orders of magnitude.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_regression
from sklearn.linear_model import LinearRegression

from skort import OrtSGDRegressor, Step

n_epochs, batch_size, n_batches, power_t = 10, 10, 10, 0.25

# %%
# Each clock gives the rate of update t. In an epoch of ten updates, update t belongs to epoch
# ``(t - 1) // 10 + 1``.

eta0 = 0.2
clocks = {
    "invscaling, t counts updates": lambda t: eta0 / t**power_t,
    "invscaling, t counts epochs": lambda t: eta0 / ((t - 1) // n_batches + 1) ** power_t,
    "constant": lambda t: eta0,
}

# %%
# With `Step`, the loop sets the rate of each step. The data are drawn ten times, since the loss at
# the end depends on them: the ratio of the largest to the smallest eigenvalue of the features
# decides how far a step gets.

losses = {name: [] for name in clocks}
for seed in range(10):
    X, y = make_regression(n_samples=100, n_features=2, bias=2, random_state=seed)
    X, y = X.astype(np.float32), y.astype(np.float32)
    for name, clock in clocks.items():
        step, t, rng = (
            Step(LinearRegression(), n_features=2, batch_size=batch_size),
            0,
            np.random.default_rng(seed),
        )
        losses[name].append([])
        for _ in range(n_epochs):
            of_epoch = []
            for rows in rng.permutation(len(X)).reshape(-1, batch_size):
                t += 1
                of_epoch.append(step.step(X[rows], y[rows], clock(t)))
            losses[name][-1].append(np.mean(of_epoch))

for name, curves in losses.items():
    last = np.array(curves)[:, -1]
    rates = clocks[name](1), clocks[name](n_epochs * n_batches)
    print(
        f"{name:30} rate {rates[0]:.3g} to {rates[1]:.3g}, "
        f"loss of the last epoch {last.min():.2g} to {last.max():.2g}"
    )

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
updates, epochs = np.arange(1, n_epochs * n_batches + 1), np.arange(1, n_epochs + 1)
for name, clock in clocks.items():
    left.plot(updates, [clock(t) for t in updates.tolist()], label=name)
    curves = np.array(losses[name])
    right.plot(epochs, np.median(curves, axis=0))
    right.fill_between(epochs, curves.min(axis=0), curves.max(axis=0), alpha=0.2)
left.set(xlabel="update", ylabel="learning rate", ylim=(0, None))
left.legend()
right.set(xlabel="epoch", ylabel="loss: median and range of ten data sets", yscale="log")

# %%
# After 100 updates, the rate is :math:`100^{-0.25}`, a third of the first one. By epochs, it ends at
# :math:`10^{-0.25}`, more than a half. Least squares without noise needs no falling rate at all:
# each batch has the same best weights. An estimator takes any such clock as a function of the
# number of the update.

model = OrtSGDRegressor(
    LinearRegression(),
    learning_rate=clocks["invscaling, t counts epochs"],
    standardize=False,
    batch_size=batch_size,
    max_iter=n_epochs,
    tol=None,
    random_state=0,
).fit(X, y)
print("OrtSGDRegressor, t counts epochs:", model.loss_curve_[-1])

plt.show()
