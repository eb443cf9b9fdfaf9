"""
What a fitted network gains on rows that have changed, and what a new one makes of the same rows.

Run it with `python -m benchmarks.fine_tuning [n_seeds] [n_rows]`. An `MLPClassifier` is fitted on
500 digits, and trained further on 500 others that have changed, with all defaults. The figures are
accuracies on the other 797, changed in the same way: of the fitted network, of a new one, of the
one trained further, and the mean and the least difference of the last two.

With `--tables`, a network of 50 units is fitted on up to 3,000 rows of each real table of at least
1,000 rows, and trained further on 300 others: of the same kind, or with another y in half of them.
Each line has what follows the old network's score on the rest: the mean of its changes, and the
numbers of fits that end more than .01 below and above it. With `--linear`, the model is a
`LogisticRegression` or a `Ridge`, and the new rows are as many as `n_rows` says.
"""

import argparse
import copy
import warnings

import numpy as np
from scipy.ndimage import rotate
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor

from benchmarks.real_tables import real_tables
from skort import OrtSGDClassifier, OrtSGDRegressor

# Rows of a table: all, those of the old network, the new ones, and the least that tell something.
MOST_ROWS, OLD_ROWS, NEW_ROWS, LEAST_ROWS = 6000, 3000, 300, 1000


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


def with_other_target(X, y, is_regression, rng):
    """Return y that is another in half of the rows: those with a large value of some column."""
    column = X[:, rng.randint(X.shape[1])]
    is_large = column > np.median(column)
    if is_regression:
        return y + y.std() * is_large
    return np.where(is_large, (y + 1) % len(np.unique(y)), y)


def scores_of_table(table, seed, n_new, *, changes, is_linear):
    """Return the scores of the fitted model, and of all that may follow it, by name."""
    rng = np.random.RandomState(seed)
    order = rng.permutation(len(table.X))[:MOST_ROWS]
    X, y = table.X[order], table.y[order]
    is_regression = table.task == "regression"
    estimator, network, linear = (
        (OrtSGDRegressor, MLPRegressor, Ridge)
        if is_regression
        else (OrtSGDClassifier, MLPClassifier, LogisticRegression)
    )

    n_new = min(n_new, len(X) // 6)
    n_old = min(OLD_ROWS, len(X) - n_new - len(X) // 3)
    new = linear() if is_linear else network(hidden_layer_sizes=(50,))
    old = estimator(new, random_state=seed).fit(X[:n_old], y[:n_old])
    X, y = X[n_old:], y[n_old:]
    if changes:
        y = with_other_target(X, y, is_regression, rng)

    def fitted(model, method="fit", **parameters):
        model = estimator(model, random_state=seed, **parameters)
        return getattr(model, method)(X[:n_new], y[:n_new])

    frozen = FrozenEstimator(old.to_sklearn())
    models = {
        "old": old,
        "new": fitted(new),
        "tuned, all defaults": fitted(frozen),
        "tuned, early_stopping=False": fitted(frozen, early_stopping=False),
        "partial_fit once": fitted(frozen, "partial_fit"),
    }
    if not is_linear:
        # A linear model ends at the optimum, wherever it begins.
        models["warm_start"] = copy.deepcopy(old).set_params(warm_start=True)
        models["warm_start"].fit(X[:n_new], y[:n_new])
    return {name: max(model.score(X[n_new:], y[n_new:]), -1.0) for name, model in models.items()}


def of_tables(n_seeds, n_new, *, is_linear):
    """Print what fine-tuning makes of the real tables."""
    tables = [table for table in real_tables() if len(table.X) >= LEAST_ROWS]
    for changes in (False, True):
        kind = "another y in half of the new rows" if changes else "new rows like the old ones"
        print(f"{kind}: mean change of the score, below and above the old one by .01")
        found = [
            scores_of_table(table, seed, n_new, changes=changes, is_linear=is_linear)
            for table in tables
            for seed in range(n_seeds)
        ]
        for name in list(found[0])[1:]:
            change = np.array([scores[name] - scores["old"] for scores in found])
            below, above = (change < -0.01).sum(), (change > 0.01).sum()
            print(f"{name:28} {change.mean():+.3f}  {below:3} {above:3} of {len(found)}")


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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("n_seeds", type=int, nargs="?", default=10)
    parser.add_argument("n_rows", type=int, nargs="?")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--linear", action="store_true")
    given = parser.parse_args()
    if given.tables or given.linear:
        of_tables(given.n_seeds, given.n_rows or NEW_ROWS, is_linear=given.linear)
    else:
        main(given.n_seeds, given.n_rows or 500)
