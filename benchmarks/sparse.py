"""
Sparse X beside scikit-learn: the time of an epoch, the time to an objective, and the memory of a fit.

Run it with `python -m benchmarks.sparse`: 15,000 rows with 40 values in 100,000 and in 2^20 columns, one thread. The
time of an epoch is that of a long fit less that of a short one, the shortest of several turns of all contenders.
"""

import argparse
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

from benchmarks.timing import threads
from skort import OrtSGDClassifier

__all__ = ["Case", "cases", "epochs", "main", "memory", "problem", "times_to_objective"]

N_ROWS, N_VALUES = 15_000, 40
WIDTHS = (100_000, 2**20)
ALPHA = 1e-5


def problem(n_columns, *, n_classes=2, n_rows=N_ROWS, seed=0):
    """Return CSR rows with 40 values each, in columns that are as frequent as words are, and labels."""
    rng = np.random.default_rng(seed)
    # The logarithms of ranks are uniform: Zipf's law.
    ranks = np.exp(rng.random((n_rows, N_VALUES)) * np.log(n_columns)).astype(np.int32) % n_columns
    columns = rng.permutation(n_columns).astype(np.int32)[ranks]
    values = rng.random((n_rows, N_VALUES), dtype=np.float32)
    indptr = np.arange(n_rows + 1, dtype=np.int32) * N_VALUES
    X = scipy.sparse.csr_matrix((values.ravel(), columns.ravel(), indptr), shape=(n_rows, n_columns))
    X.sum_duplicates()
    scores = X @ rng.normal(size=(n_columns, n_classes)) + rng.normal(size=(n_rows, n_classes))
    return X, scores.argmax(axis=1)


@dataclass(frozen=True)
class Case:
    """
    A training of ours beside one of scikit-learn's.

    Parameters
    ----------
    name : str
    n_columns, n_classes : int
    contenders : dict of str to callable
        Number of epochs -> an estimator that makes so many.
    goal : str
    n_epochs, n_theirs : int
        Of the long fits of ours and of scikit-learn's; the short ones have one.
    """

    name: str
    n_columns: int
    n_classes: int
    contenders: dict[str, Callable[[int], Any]]
    goal: str
    n_epochs: int = 21
    n_theirs: int = 21


def ours(inner=None, **options):
    """Return a function from a number of epochs to an estimator of ours."""
    options = {"tol": None, "random_state": 0, "learning_rate": "constant", "eta0": 0.1, "alpha": ALPHA, **options}
    return lambda n_epochs: OrtSGDClassifier(inner, max_iter=n_epochs, penalty="l2", **options)


def theirs(n_epochs):
    """Return SGDClassifier for a number of epochs."""
    return SGDClassifier(
        loss="log_loss", alpha=ALPHA, learning_rate="constant", eta0=0.1, max_iter=n_epochs, tol=None, random_state=0
    )


def network(optimizer):
    """Return functions from a number of epochs to ours and to MLPClassifier."""
    options = {"solver": "adam"} if optimizer == "adam" else {"solver": "sgd", "learning_rate_init": 0.1}
    inner = MLPClassifier((100,), random_state=0, alpha=ALPHA, **options)
    rate = {"eta0": 1e-3} if optimizer == "adam" else {}
    return {
        "skort": ours(inner, optimizer=optimizer, **rate),
        "MLPClassifier": lambda n: MLPClassifier(
            (100,), random_state=0, alpha=ALPHA, max_iter=n, tol=0, n_iter_no_change=n + 1, **options
        ),
    }


def cases(widths=WIDTHS):
    """Return all cases."""
    made = []
    for width in widths:
        goal = "2.5 times SGDClassifier's time" if width == widths[0] else "1.5 times its time with fewer columns"
        for name, options in (("logistic", {}), ("logistic, nesterov", {"optimizer": "nesterov"})):
            both = {"skort": ours(**options), "SGDClassifier": theirs}
            made.append(Case(name, width, 2, both, goal if name == "logistic" else ""))
    few = widths[0]
    for name, options in (("average", {"average": True}), ("l1", {"penalty": "l1"}), ("adam", {"optimizer": "adam"})):
        options = {"eta0": 0.01, **options} if name == "adam" else options
        made.append(Case(f"logistic, {name}", few, 2, {"skort": _with(ours, options), "SGDClassifier": theirs}, ""))
    both = {"skort": ours(), "SGDClassifier": theirs}
    made.append(Case("softmax of 20 classes", few, 20, both, "ahead of SGDClassifier", 11, 6))
    made.append(Case("network (100,), nesterov", few, 2, network("nesterov"), "3 times ahead", 11, 2))
    return made


def _with(make, options):
    options = dict(options)
    penalty = options.pop("penalty", "l2")
    return lambda n_epochs: make(**options)(n_epochs).set_params(penalty=penalty)


def epochs(case, turns=3, n_rows=N_ROWS):
    """Return the seconds of an epoch of each contender: the shortest long fit less the shortest short one."""
    X, y = problem(case.n_columns, n_classes=case.n_classes, n_rows=n_rows)
    data = {name: (X if name == "skort" else X.astype(np.float64), y) for name in case.contenders}
    longest = {name: case.n_epochs if name == "skort" else case.n_theirs for name in case.contenders}
    best = {(name, n): np.inf for name in case.contenders for n in (1, longest[name])}
    for _ in range(turns):
        for name, n in best:
            estimator = case.contenders[name](n)
            begin = time.perf_counter()
            estimator.fit(*data[name])
            best[name, n] = min(best[name, n], time.perf_counter() - begin)
    return {name: (best[name, n] - best[name, 1]) / (n - 1) for name, n in longest.items()}


def objective(model, X, y):
    """Return the mean log-loss of a linear model with two classes, and its l2 penalty."""
    score = X @ model.coef_.ravel() + model.intercept_
    losses = np.logaddexp(0, score) - y * score
    return float(np.mean(losses) + 0.5 * ALPHA * np.sum(np.square(model.coef_, dtype=np.float64)))


def times_to_objective(n_columns=WIDTHS[0], n_rows=N_ROWS, n_epochs=(1, 2, 3, 5, 8, 12, 18, 27, 40, 60)):
    """
    Return the seconds to within 1 % of SGDClassifier's final objective, each with the best learning rate of a few.

    Parameters
    ----------
    n_columns, n_rows : int
    n_epochs : tuple of int
        The lengths of the fits that are tried, one after the other. The last one says what the final objective is.

    Returns
    -------
    times : dict of str to (float, float)
        Seconds of a fit, and its objective.
    """
    X, y = problem(n_columns, n_rows=n_rows)
    contenders = {
        "SGDClassifier": (theirs, X.astype(np.float64), (0.03, 0.1, 0.3, 1.0)),
        "skort, nesterov": (ours(optimizer="nesterov"), X, (1.0, 3.0, 10.0)),
        "skort, rate from the data": (ours(), X, ("auto",)),
    }
    times, goal = {}, None
    for name, (make, rows, rates) in contenders.items():
        fits = {rate: _timed(make(n_epochs[-1]).set_params(eta0=rate), rows, y, X) for rate in rates}
        best = min(fits, key=lambda rate: fits[rate][1])
        goal = 1.01 * fits[best][1] if goal is None else goal
        tried = (_timed(make(n).set_params(eta0=best), rows, y, X) for n in n_epochs)
        times[name] = next((fit for fit in tried if fit[1] <= goal), (float("inf"), fits[best][1]))
    return times


def _timed(estimator, rows, y, X):
    """Return the seconds of a fit, and the objective at its end."""
    begin = time.perf_counter()
    estimator.fit(rows, y)
    return time.perf_counter() - begin, objective(estimator, X, y)


def memory(n_columns=WIDTHS[1], n_rows=N_ROWS):
    """Return the bytes that a fit holds at once beyond X, those of X, and those of a vector of the weights."""
    X, y = problem(n_columns, n_rows=n_rows)
    model = ours()(2)
    model.fit(X[:400], y[:400])
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, X.data.nbytes + X.indices.nbytes + X.indptr.nbytes, 4 * (n_columns + 1)


def main(arguments=None):
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose names contain it")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    with threads():
        print(f"{'an epoch, in ms':<28} {'columns':>9} {'skort':>9} {'scikit-learn':>13} {'ratio':>7}  goal")
        for case in cases():
            if options.only in case.name:
                own, other = (1e3 * seconds for seconds in epochs(case, options.turns).values())
                row = f"{case.name:<28} {case.n_columns:>9,} {own:>9.1f} {other:>13.1f} {own / other:>7.2f}"
                print(f"{row}  {case.goal}", flush=True)
        if not options.only:
            print("\nTo within 1 % of the final objective of SGDClassifier, in ms:")
            for name, (seconds, reached) in times_to_objective().items():
                print(f"  {name:<26} {1e3 * seconds:8.1f}  objective {reached:.4f}")
            peak, size, vector = memory()
            print(f"\nMemory of a fit, 2^20 columns: {peak / 2**20:.0f} MB beyond X ({size / 2**20:.0f} MB);", end=" ")
            print(f"6 vectors of the weights and 20 MB are {(6 * vector + 20e6) / 2**20:.0f} MB")


if __name__ == "__main__":
    main()
