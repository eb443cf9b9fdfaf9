"""
A linear regression
===================

`OrtSGDRegressor` trains two coefficients and an intercept in batches of ten rows, for ten epochs.
The loss falls by a factor of more than 100,000, and the coefficients become those of the closed
form, `LinearRegression`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_regression
from sklearn.linear_model import LinearRegression

from skort import OrtSGDRegressor
from skort.exceptions import RuntimeNotAvailableError

# %%
# The data have no noise, so one set of coefficients fits all rows exactly.

X, y = make_regression(n_samples=100, n_features=2, bias=2, random_state=0)
reference = LinearRegression().fit(X, y)
print("LinearRegression  ", reference.coef_, reference.intercept_)

# %%
# A callback sees the training after each epoch. This one keeps the coefficients, for the figure
# below.


class Coefficients:
    def __init__(self):
        self.path = []

    def on_epoch_end(self, training):
        self.path.append(
            np.concatenate([training.weights()[name].ravel() for name in ("coef", "intercept")])
        )


# %%
# A solver is a backend. All give the same result; some need a build of ONNX Runtime for training,
# and say so if it is missing.

models, paths = {}, {}
for solver in ("graph", "agent", "session"):
    watch = Coefficients()
    model = OrtSGDRegressor(
        solver=solver,
        penalty=None,
        eta0=0.2,
        batch_size=10,
        max_iter=10,
        tol=None,
        callbacks=[watch],
        random_state=0,
    )
    try:
        models[solver] = model.fit(X, y)
    except RuntimeNotAvailableError as error:
        print(error)
        continue
    paths[solver] = np.array(watch.path)
    print(f"solver={solver!r:<11}", model.coef_, model.intercept_)
    print("    loss of each epoch:", " ".join(f"{loss:.2g}" for loss in model.loss_curve_))

# %%
# On the left is the loss of each epoch: the lines of the solvers lie on each other. On the right
# are the coefficients after each epoch; the dashed lines are those of `LinearRegression`.

expected = np.append(reference.coef_, reference.intercept_)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for marker, (solver, model) in zip("o+x", models.items(), strict=False):
    left.semilogy(range(1, 11), model.loss_curve_, marker=marker, label=solver)
left.set(xlabel="epoch", ylabel="loss: half of the mean squared error")
left.legend(title="solver")
right.plot(range(1, 11), paths["graph"], marker="o", label=["coef_[0]", "coef_[1]", "intercept_"])
right.hlines(expected, 1, 10, color="grey", linestyle="--")
right.set(xlabel="epoch", ylabel="coefficient")
right.legend()
plt.show()
