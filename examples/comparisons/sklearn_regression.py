"""
A regression beside scikit-learn
================================

`MLPRegressor` trains a network, and `OrtSGDRegressor` trains the same network: from the same first
weights, through the same batches, with the same Adam. The predictions agree to fourteen digits.
What differs is the time.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from skort import OrtSGDRegressor

X, y = make_friedman1(3000, noise=1, random_state=0)
X, y = scale(X), scale(y)

# %%
# The same `random_state` draws the same first weights. `shuffle=False` keeps the rows in their
# order. skort standardises the data by itself. These data are standardised already, so
# `standardize=False` leaves them as they are. Both compute in float64.

n_epochs, eta0 = 15, 0.002
network = MLPRegressor(hidden_layer_sizes=(50,))
options = {"max_iter": n_epochs, "n_iter_no_change": n_epochs, "shuffle": False, "random_state": 0}
reference = clone(network).set_params(learning_rate_init=eta0, **options)
model = OrtSGDRegressor(
    network,
    optimizer="adam",
    eta0=eta0,
    learning_rate="constant",
    tol=None,
    standardize=False,
    dtype="float64",
    **options,
)


def fit(estimator, n_fits=3):
    """Return a fitted copy, and the CPU seconds of the fastest of some fits on one core."""
    seconds = []
    for _ in range(n_fits):
        start = time.process_time()
        with warnings.catch_warnings(), threadpool_limits(1):
            # MLPRegressor warns that 15 epochs may be too few.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = clone(estimator).fit(X, y)
        seconds.append(time.process_time() - start)
    return fitted, min(seconds)


# %%
# The first fit imports ONNX Runtime, so a short fit comes before those that are measured. The ratios
# are those of this run: they vary with the machine and its load. `python -m benchmarks` measures with
# more care.

clone(model).set_params(max_iter=1).fit(X, y)
curves, ratios = {}, {}
for batch_size in (20, 50, 200):
    theirs, their_seconds = fit(clone(reference).set_params(batch_size=batch_size))
    ours, our_seconds = fit(clone(model).set_params(batch_size=batch_size))
    curves[batch_size] = np.array([theirs.loss_curve_, ours.loss_curve_])
    ratios[batch_size] = their_seconds / our_seconds
    difference = np.abs(theirs.predict(X) - ours.predict(X)).max()
    print(
        f"batches of {batch_size:3}: MLPRegressor takes {ratios[batch_size]:.1f} times as long",
        end="",
    )
    print(f", largest difference of a prediction {difference:.1e}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for batch_size, (theirs, ours) in curves.items():
    (line,) = left.semilogy(ours, label=f"batches of {batch_size}")
    left.semilogy(theirs, linewidth=6, alpha=0.35, color=line.get_color())
left.set(xlabel="epoch", ylabel="loss", title="wide lines: MLPRegressor; thin lines: skort")
left.legend()
right.plot(list(ratios), list(ratios.values()), "o-", markersize=10)
right.axhline(1, color="black")
right.set(xlabel="rows of a batch", ylabel="CPU time of MLPRegressor / of skort")
plt.show()
