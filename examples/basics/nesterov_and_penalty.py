"""
Nesterov's momentum and a penalty
=================================

Plain gradient descent is slow where features are correlated. Momentum remembers past steps, and
Nesterov's momentum looks one step ahead. An l1 penalty makes nearly all weights of useless features
exactly zero, with mini-batches too.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Lasso, LinearRegression

from skort import OrtSGDRegressor

# %%
# Each of 40 features is correlated with its neighbours. Only the first eight matter.

rng = np.random.default_rng(0)
n, p = 500, 40
X = rng.normal(size=(n, p))
for j in range(1, p):
    X[:, j] = 0.7 * X[:, j - 1] + 0.7 * X[:, j]
coef = np.zeros(p)
coef[:8] = [3, -2, 2, -3, 2, 2, -2, 3]
y = X @ coef + rng.normal(size=n)

# %%
# All optimizers get the same learning rate. `LinearRegression` has the smallest loss that a linear
# model can have.

options = {
    "eta0": 0.01,
    "learning_rate": "constant",
    "batch_size": 50,
    "max_iter": 40,
    "tol": None,
    "random_state": 0,
}
smallest = 0.5 * np.mean((y - LinearRegression().fit(X, y).predict(X)) ** 2)
curves = {}
for optimizer in ("sgd", "momentum", "nesterov"):
    model = OrtSGDRegressor(penalty=None, optimizer=optimizer, **options).fit(X, y)
    curves[optimizer] = np.array(model.loss_curve_) / smallest
    print(
        f"{optimizer:<9} loss after 5 epochs {curves[optimizer][4]:7.2f}, "
        f"after 40 {curves[optimizer][-1]:5.2f}"
    )

# %%
# With an l1 penalty, the objective is that of `Lasso`, which minimises it by another algorithm.
# Both keep the same nine features: the eight that matter, and feature 39, which does not. A falling
# learning rate takes the noise of the batches out of the last digits.

alpha = 0.1
sparse = OrtSGDRegressor(
    penalty="l1",
    alpha=alpha,
    optimizer="nesterov",
    **options | {"max_iter": 200, "learning_rate": "invscaling"},
).fit(X, y)
lasso = Lasso(alpha=alpha).fit(X, y)
print("weights that are not zero: ", np.flatnonzero(sparse.coef_), "skort")
print("                           ", np.flatnonzero(lasso.coef_), "Lasso")
print("largest difference of a weight:", np.abs(sparse.coef_ - lasso.coef_).max())

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for optimizer, curve in curves.items():
    left.semilogy(range(1, 41), curve, label=optimizer)
left.set(xlabel="epoch", ylabel="loss / loss of LinearRegression")
left.legend(title="optimizer")
right.plot(coef, "k_", markersize=12, label="true weight")
right.plot(sparse.coef_, "o", label='skort, penalty="l1"')
right.plot(lasso.coef_, "x", label="Lasso")
right.set(xlabel="feature", ylabel="weight")
right.legend()
plt.show()
