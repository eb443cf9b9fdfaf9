"""
Quickstart
==========

This script trains three real data sets, compares with scikit-learn, saves ONNX files and serves
them. The estimators of skort get the raw features and have all their defaults. Those of
scikit-learn get a `StandardScaler`. At the end it trains with every other solver that the installed
ONNX Runtime has: a solver is the part of ONNX Runtime that makes the steps.
"""

import importlib.util
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.exceptions import RuntimeNotAvailableError

# %%
# The data, a model of scikit-learn, and the estimator of skort that trains it.

CASES = [
    ("diabetes", partial(load_diabetes, scaled=False), LinearRegression(), OrtSGDRegressor()),
    ("breast cancer", load_breast_cancer, LogisticRegression(), OrtSGDClassifier()),
    ("digits", load_digits, LogisticRegression(), OrtSGDClassifier()),
    (
        "digits, 50 hidden units",
        load_digits,
        MLPClassifier(hidden_layer_sizes=(50,), max_iter=500, random_state=0),
        OrtSGDClassifier(MLPClassifier(hidden_layer_sizes=(50,))),
    ),
]

# %%
# The other solvers that the installed ONNX Runtime has, a fit with its time, and the predictions of
# an ONNX file. `other_solvers` makes a short fit with each solver. The first one imports skl2onnx and
# ONNX Runtime; the times below are without that.


def other_solvers():
    """Return the names of the solvers that run here, but for the default, "graph"."""
    names = []
    for solver in ("agent", "session", "module"):
        try:
            OrtSGDRegressor(solver=solver, max_iter=1, tol=None).fit(np.eye(2), [0.0, 1.0])
        except RuntimeNotAvailableError:
            continue
        names.append(solver)
    return names


def fit_and_score(model, X_train, X_test, y_train, y_test):
    """Return the CPU seconds of a fit on one thread and the score on held-out data."""
    with threadpool_limits(1):
        start = time.process_time()
        model.fit(X_train, y_train)
        seconds = time.process_time() - start
    return seconds, model.score(X_test, y_test)


def serve(path, X):
    """Return the first output of an ONNX file: predictions, or labels."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": X.astype(np.float32)})[0]


# %%
# All fits. The seconds are CPU time on one thread, so other programs change them little.


def main(folder):
    solvers = other_solvers()
    print(f"{'data':<24} {'fitted by':<14} {'score':>7} {'seconds':>8}  served by onnxruntime")
    results = {}
    for name, load, reference, estimator in CASES:
        X, y = load(return_X_y=True)
        split = train_test_split(
            X, y, stratify=y if is_classifier(reference) else None, random_state=0
        )
        X_test = split[1]
        seconds, score = fit_and_score(make_pipeline(StandardScaler(), reference), *split)
        print(f"{name:<24} {'scikit-learn':<14} {score:7.3f} {seconds:8.2f}")
        results[name] = {"scikit-learn": (score, seconds)}
        for solver in ("graph", *solvers):
            model = clone(estimator).set_params(solver=solver, random_state=0)
            seconds, score = fit_and_score(model, *split)
            results[name][solver] = score, seconds
            path = Path(folder, f"{name}-{solver}.onnx")
            model.save_onnx(path)
            is_same = np.allclose(serve(path, X_test).ravel(), model.predict(X_test), rtol=1e-5)
            same = "same predictions" if is_same else "OTHER PREDICTIONS"
            if solver == "graph":
                size = path.stat().st_size
                print(f"{name:<24} {'skort':<14} {score:7.3f} {seconds:8.2f}  {same}, {size} bytes")

    for solver in solvers:
        differences = [abs(of[solver][0] - of["graph"][0]) for of in results.values()]
        print(f'solver="{solver}": the scores differ by up to {max(differences):.3f}')
    return results


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        results = main(folder)

# %%
# The scores on held-out rows are R² for the diabetes data and accuracy for the others. skort wins
# with the network. On such small data, scikit-learn is faster for linear models.

if __name__ == "__main__" and importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    plt.rcParams["font.size"] = 14
    figure, axis = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    names = [name.replace(", ", ",\n") for name in results]
    for solver, label in (("scikit-learn", "scikit-learn"), ("graph", "skort")):
        seconds = [of_data[solver][1] for of_data in results.values()]
        axis.plot(seconds, names, "o", markersize=14, label=label)
    axis.set(
        xlabel="CPU seconds of the fit",
        xscale="log",
        title="skort is faster with the network,\nnot with small linear models",
    )
    axis.margins(y=0.15)
    axis.legend(loc="lower right")
    plt.show()
