"""
Compare `optimizer="lbfgs"` with scikit-learn's solvers of the same name: `python -m benchmarks.lbfgs [--repeats 5]`.

CPU time of a fit on float64 X behind a StandardScaler, the least of some, as a share of
scikit-learn's, and the relative gap of the objective to its optimum. Times at different gaps
compare little: LogisticRegression is also fitted with the largest of a few `tol` that brings it as
near to the optimum.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.base import clone
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


def objective(model, X, y, fitted):
    """Return the objective of LogisticRegression at the weights of a fitted model."""
    scores = X @ fitted.coef_.T + fitted.intercept_
    scores = np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores
    scores -= scores.max(axis=1, keepdims=True)
    probabilities = np.exp(scores)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return log_loss(y, probabilities) + 0.5 / (model.C * len(y)) * np.sum(fitted.coef_**2)


def gap_to_optimum(model, Z, y):
    """
    Return a function: a fitted model -> the relative gap of its objective
    on Z to the optimum.
    """
    best = OrtSGDClassifier(model, optimizer="lbfgs", dtype="float64", tol=1e-10).fit(Z, y)
    least = objective(model, Z, y, best)
    return lambda fitted: objective(model, Z, y, fitted) / least - 1


def as_near(model, gap_of, gap, Z, y):
    """
    Return the model with the largest of a few `tol` whose gap on Z is no larger
    than this one, or the least.
    """
    for tol in 10 ** np.arange(-4, -9, -0.25):
        nearer = clone(model).set_params(tol=tol).fit(Z, y)
        if gap_of(nearer) <= gap:
            break
    return clone(nearer)


def main():
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    for name, X, y, model in cases():
        parameters = {"optimizer": "lbfgs", "max_iter": model.max_iter, "random_state": 0}
        ours = [
            OrtSGDClassifier(model, dtype=dtype, **parameters) for dtype in ("float32", "float64")
        ]
        behind_scaler = [make_pipeline(StandardScaler(), each) for each in (model, *ours)]
        theirs, *took = cpu_times(behind_scaler, X, y, repeats)
        Z = StandardScaler().fit_transform(X)
        is_linear = isinstance(model, LogisticRegression)
        gap_of = gap_to_optimum(model, Z, y) if is_linear else None
        of_model = f", gap {gap_of(model):.1e}" if is_linear else ""
        print(
            f"{name:20} scikit-learn   {theirs:7.1f} ms        {np.max(model.n_iter_)} "
            f"iterations{of_model}"
        )
        for each, time_taken in zip(ours, took, strict=True):
            line = (
                f"{name:20} skort, {each.dtype} {time_taken:7.1f} ms ({time_taken / theirs:4.2f})"
            )
            line += f" {each.n_iter_} iterations"
            if is_linear:
                gap = gap_of(each)
                pair = [
                    make_pipeline(StandardScaler(), m)
                    for m in (as_near(model, gap_of, gap, Z, y), clone(each))
                ]
                as_long, again = cpu_times(pair, X, y, repeats)
                line += f", gap {gap:.1e}; {again / as_long:4.2f} at an equal gap"
            print(line, flush=True)


if __name__ == "__main__":
    main()
