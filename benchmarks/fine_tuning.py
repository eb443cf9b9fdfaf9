"""
What a fitted network gains on rows that have changed, and what a new one makes of the same rows.

Run it with `python -m benchmarks.fine_tuning [n_seeds] [n_rows]`. An `MLPClassifier` is fitted on
500 digits, and trained further on 500 others that have changed, with all defaults. The figures are
accuracies on the other 797, changed in the same way: of the fitted network, of a new one, of the
one trained further, and the mean and the least difference of the last two.
"""

import sys
import warnings

import numpy as np
from scipy.ndimage import rotate
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier

from skort import OrtSGDClassifier


def turned(angle):
    """Return what turns images."""

    def turn(X, rng):
        return rotate(X.reshape(-1, 8, 8), angle, axes=(2, 1), reshape=False, order=1).reshape(
            X.shape
        )

    return turn


CHANGES = {
    "none": lambda X, rng: X,
    "times 16": lambda X, rng: 16 * X,
    "divided by 16": lambda X, rng: X / 16,
    "turned by 30 degrees": turned(30),
    "turned by 60 degrees": turned(60),
    "turned by 90 degrees": turned(90),
    "noise": lambda X, rng: X + rng.normal(0, 4, X.shape),
    "shares of classes": lambda X, rng: X,
}


def scores(hidden, change, seed, n_rows):
    """Return the accuracies of a fitted network, of a new one, and of one trained further."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.RandomState(seed)
    order = rng.permutation(len(X))
    X, y = X[order], y[order]
    old = MLPClassifier(hidden, max_iter=300, random_state=seed).fit(X[:500], y[:500])
    # A tenth of the digits below five are left.
    left = (rng.random_sample(len(y)) < np.where(y < 5, 0.1, 1.0)) | (change != "shares of classes")
    X, numbers = CHANGES[change](X, rng), np.arange(len(y))
    new = left & (numbers >= 500) & (numbers < 500 + n_rows)
    test = left & (numbers >= 1000)
    models = [
        OrtSGDClassifier(m, random_state=seed).fit(X[new], y[new])
        for m in (clone(old), FrozenEstimator(old))
    ]
    return [model.score(X[test], y[test]) for model in (old, *models)]


def main(n_seeds=10, n_rows=500):
    print("hidden layers  rows                   old   new  tuned  mean difference  least")
    for hidden in ((32, 16), (100, 50)):
        for change in CHANGES:
            old, new, tuned = np.transpose(
                [scores(hidden, change, seed, n_rows) for seed in range(n_seeds)]
            )
            means = f"{old.mean():.3f}  {new.mean():.3f}  {tuned.mean():.3f}"
            print(
                (
                    f"{hidden!s:9}  {change:20}  {means}  {np.mean(tuned - new):+.3f}  "
                    f"{np.min(tuned - new):+.3f}"
                ),
                flush=True,
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*map(int, sys.argv[1:]))
