"""
Early stopping
==============

A large network overfits 300 rows: its loss on other rows rises again. Early stopping ends the
training there, and restores the weights of the best epoch.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor
from skort.plotting import LossCurveDisplay

X, y = make_friedman1(1300, noise=2, random_state=0)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=300, random_state=0)
X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, train_size=300, random_state=0)

# %%
# `fit` takes a validation set. Without one, `early_stopping=True` holds out
# `validation_fraction` of the rows. `scoring` is what `cross_val_score` takes; the default is minus
# the loss of the training. The first model has a validation set and no early stopping: its score is
# recorded, and stops nothing.

network = MLPRegressor(hidden_layer_sizes=(100,))
options = {
    "penalty": None,
    "optimizer": "adam",
    "eta0": 0.003,
    "learning_rate": "constant",
    "batch_size": 50,
    "scoring": "r2",
}
long = OrtSGDRegressor(network, **options, max_iter=400, tol=None, random_state=0)
stopped = OrtSGDRegressor(
    network,
    **options,
    max_iter=400,
    tol=1e-4,
    early_stopping=True,
    n_iter_no_change=20,
    random_state=0,
)
for model in (long, stopped):
    model.fit(X_train, y_train, X_val=X_val, y_val=y_val)

# %%
# Training ended 20 epochs after the best one. The weights are those of the best one: `score` on the
# validation set is `best_validation_score_`.

best = int(np.argmax(stopped.validation_scores_)) + 1
scores = {"400 epochs": long.score(X_test, y_test), "early stopping": stopped.score(X_test, y_test)}
print(f"{stopped.n_iter_} epochs, the best one is {best}: {stopped.best_validation_score_:.4f}")
print(f"score of the fitted model on the validation set: {stopped.score(X_val, y_val):.4f}")
for name, score in scores.items():
    print(f"R² on test rows, {name:<15} {score:.3f}")

# %%
# Both trainings. The loss is on the left axis, the validation score on the right one. A circle
# marks the best epoch, a cross the last one, and the title says why the training ended.

for model in (long, stopped):
    display = LossCurveDisplay.from_estimator(model, columns="loss")
    display.ax_.set(yscale="log", ylabel="Loss: half of the mean squared error", ylim=(1e-3, 30))
    display.score_ax_.set(ylabel="R² on the validation set (best at the bottom)", ylim=(0.8, 0.5))
    display.score_ax_.grid(visible=False)
plt.show()
