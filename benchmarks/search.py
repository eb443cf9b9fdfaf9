"""
The cost of the small fits of a search: 3 x 3 parameters, 5 folds, 46 fits and 45 scores.

Run it with `python -m benchmarks.search`: the medians of five searches in ms, next to scikit-learn's estimators.
"""

import statistics
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor

from benchmarks.timing import in_turn, threads
from skort import OrtSGDRegressor

ALPHA, ETA = [1e-5, 1e-4, 1e-2], [0.01, 0.03, 0.1]


def searches(n_epochs):
    """Return scikit-learn's searches and ours, by model."""
    network = MLPRegressor(hidden_layer_sizes=(20,), solver="sgd", momentum=0, max_iter=n_epochs, n_iter_no_change=1000)
    linear = SGDRegressor(max_iter=n_epochs, tol=None)
    models = {"MLP": (network, network, "learning_rate_init"), "linear": (None, linear, "eta0")}
    return {
        name: {
            "skort": GridSearchCV(OrtSGDRegressor(inner, max_iter=n_epochs, tol=None), {"alpha": ALPHA, "eta0": ETA}),
            "scikit-learn": GridSearchCV(theirs, {"alpha": ALPHA, eta: ETA}),
        }
        for name, (inner, theirs, eta) in models.items()
    }


def main():
    X = np.random.default_rng(0).normal(size=(1000, 20))
    y = X[:, 0] + np.abs(X[:, 1])
    print(f"{'model':8} {'epochs':>6} {'skort':>8} {'scikit-learn':>13} {'ratio':>6}")
    for n_epochs in (5, 50):
        for model, contenders in searches(n_epochs).items():
            fits = {name: lambda search=search: search.fit(X, y) for name, search in contenders.items()}
            times, _ = in_turn(fits)
            ours, theirs = (1e3 * statistics.median(values) for values in times.values())
            print(f"{model:8} {n_epochs:6} {ours:8.0f} {theirs:13.0f} {theirs / ours:6.2f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    with threads():
        main()
