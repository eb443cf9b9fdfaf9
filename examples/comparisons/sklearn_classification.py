"""
A classification beside scikit-learn
====================================

Digits, by a linear model and by a network. `LogisticRegression` and skort minimise the same
objective in different ways and end at the same coefficients. `MLPClassifier` and skort make the
same steps.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from skort import OrtSGDClassifier

images, digits = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    images / 16, digits, train_size=1300, random_state=0
)


def fit(model):
    """Fit a model on one core; return it, and the CPU seconds that this took."""
    start = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        # MLPClassifier warns that 30 epochs may be too few.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X_train, y_train)
    return model, time.process_time() - start


# The first fit imports ONNX Runtime.
OrtSGDClassifier(max_iter=1, tol=None).fit(X_train, y_train)

# %%
# The penalty of the model inside, `C`, is part of what skort minimises.

linear = LogisticRegression(C=0.1)
theirs, _ = fit(clone(linear).set_params(tol=1e-6, max_iter=1000))
ours, _ = fit(OrtSGDClassifier(linear, random_state=0))
print(
    f"LogisticRegression: accuracy {theirs.score(X_test, y_test):.3f}; "
    f"skort {ours.score(X_test, y_test):.3f}"
)
print(f"largest difference of a coefficient: {np.abs(ours.coef_ - theirs.coef_).max():.4f}")

# %%
# A network: the same first weights, the same batches, the same Adam. The ratio of the times is that
# of this run, and varies with the machine and its load.

options = {"batch_size": 50, "shuffle": False, "max_iter": 30, "random_state": 0}
network = MLPClassifier(hidden_layer_sizes=(50,), learning_rate_init=0.002, **options)
same_steps = OrtSGDClassifier(
    MLPClassifier(hidden_layer_sizes=(50,)),
    optimizer="adam",
    eta0=0.002,
    learning_rate="constant",
    tol=None,
    standardize=False,
    dtype="float64",
    **options,
)
their_network, their_seconds = fit(network)
our_network, our_seconds = fit(same_steps)
scores = {
    "MLPClassifier": their_network.score(X_test, y_test),
    "skort": our_network.score(X_test, y_test),
}
print("accuracy:", {name: round(score, 3) for name, score in scores.items()})
print(f"MLPClassifier takes {their_seconds / our_seconds:.1f} times as long")

# %%
# Left: each point is one of 640 coefficients of the linear models. Right: the loss of the networks.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.axline((0, 0), slope=1, color="lightgrey")
left.plot(theirs.coef_.ravel(), ours.coef_.ravel(), ".", markersize=4)
left.set(xlabel="coefficient of LogisticRegression", ylabel="coefficient of skort", aspect="equal")
epochs = range(1, 31)
right.plot(epochs, their_network.loss_curve_, linewidth=6, alpha=0.35, label="MLPClassifier")
right.plot(epochs, our_network.loss_curve_, color="C0", label="skort")
right.set(xlabel="epoch", ylabel="loss with penalty", yscale="log")
right.legend()
plt.show()
