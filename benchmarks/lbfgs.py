"""
Compare `optimizer="lbfgs"` with scikit-learn's solvers of the same name: `python -m benchmarks.lbfgs [--repeats 5]`.

CPU time of a fit on float64 X behind a StandardScaler, the least of some, and as a share of scikit-learn's; and the
relative gap of the objective to its optimum.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier


def cases():
    """Yield the name, X, y and the model of each case."""
    for name, load in (("breast cancer", load_breast_cancer), ("digits", load_digits)):
        yield name, *load(return_X_y=True), LogisticRegression(max_iter=1000)
    for n_rows, n_columns in ((20_000, 50), (100_000, 100)):
        X, y = make_classification(n_rows, n_columns, n_informative=n_columns // 2, random_state=0)
        yield f"{n_rows:,} x {n_columns}", X, y, LogisticRegression(max_iter=1000)
    X, y = make_classification(20_000, 50, n_informative=25, n_classes=3, random_state=0)
    network = MLPClassifier((50,), solver="lbfgs", max_iter=100, random_state=0)
    yield "20,000 x 50, network", X, y, network


def cpu_times(models, X, y, repeats):
    """Return the least CPU time of some fits of each model, made in turn, in milliseconds."""
    times = [[] for _ in models]
    for _ in range(repeats):
        for model, taken in zip(models, times, strict=True):
            begin = time.process_time()
            model.fit(X, y)
            taken.append(time.process_time() - begin)
    return [1e3 * min(taken) for taken in times]


def objective(model, X, y, coef, intercept):
    """Return the objective of LogisticRegression on given columns."""
    scores = X @ coef.T + intercept
    scores = np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores
    scores -= scores.max(axis=1, keepdims=True)
    probabilities = np.exp(scores)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return log_loss(y, probabilities) + 0.5 / (model.C * len(y)) * np.sum(coef**2)


def main():
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    for name, X, y, model in cases():
        parameters = {"optimizer": "lbfgs", "max_iter": model.max_iter, "random_state": 0}
        ours = [OrtSGDClassifier(model, dtype=dtype, **parameters) for dtype in ("float32", "float64")]
        behind_scaler = [make_pipeline(StandardScaler(), each) for each in (model, *ours)]
        theirs, *took = cpu_times(behind_scaler, X, y, repeats)
        print(f"{name:20} scikit-learn   {theirs:7.1f} ms        {np.max(model.n_iter_)} iterations")
        Z = StandardScaler().fit_transform(X)
        for each, time_taken in zip(ours, took, strict=True):
            line = f"{name:20} skort, {each.dtype} {time_taken:7.1f} ms ({time_taken / theirs:4.2f})"
            line += f" {each.n_iter_} iterations"
            if isinstance(model, LogisticRegression):
                best = OrtSGDClassifier(model, optimizer="lbfgs", dtype="float64", tol=1e-10).fit(Z, y)
                gap, least = (objective(model, Z, y, m.coef_, m.intercept_) for m in (each, best))
                line += f", gap {gap / least - 1:.1e}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
