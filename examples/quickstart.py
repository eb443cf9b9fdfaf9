"""
Quickstart
==========

This script trains three real data sets with every solver of the installed ONNX Runtime, compares
with scikit-learn, saves ONNX files and serves them. The estimators of skort get the raw features
and have all their defaults. Those of scikit-learn get a `StandardScaler`.
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

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.solvers import available_solvers

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
# A fit with its time, and the predictions of an ONNX file.


def fit_and_score(model, X_train, X_test, y_train, y_test):
    """Return the seconds of a fit and the score on held-out data."""
    start = time.perf_counter()
    model.fit(X_train, y_train)
    return time.perf_counter() - start, model.score(X_test, y_test)


def serve(path, X):
    """Return the first output of an ONNX file: predictions, or labels."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": X.astype(np.float32)})[0]


# %%
# All fits. The seconds are those of this run, and vary.


def main(folder):
    # The first conversion imports skl2onnx and ONNX Runtime. This fit keeps that time out of the
    # others.
    OrtSGDRegressor(max_iter=1, tol=None).fit(np.eye(2), [0.0, 1.0])
    print(f"{'data':<24} {'solver':<14} {'score':>7} {'seconds':>8}  served by onnxruntime")
    scores = {}
    for name, load, reference, estimator in CASES:
        X, y = load(return_X_y=True)
        split = train_test_split(
            X, y, stratify=y if is_classifier(reference) else None, random_state=0
        )
        X_test = split[1]
        seconds, score = fit_and_score(make_pipeline(StandardScaler(), reference), *split)
        print(f"{name:<24} {'scikit-learn':<14} {score:7.3f} {seconds:8.2f}")
        scores[name] = [score]
        for solver in available_solvers():
            model = clone(estimator).set_params(solver=solver, random_state=0)
            seconds, score = fit_and_score(model, *split)
            path = Path(folder, f"{name}-{solver}.onnx")
            model.save_onnx(path)
            scores[name].append(score)
            served = serve(path, X_test).ravel()
            same = (
                "same predictions"
                if np.allclose(served, model.predict(X_test), rtol=1e-5)
                else "OTHER PREDICTIONS"
            )
            print(
                f"{name:<24} {solver:<14} {score:7.3f} {seconds:8.2f}  {same}, "
                f"{path.stat().st_size} bytes"
            )
    return scores


if __name__ == "__main__":
    folder = tempfile.mkdtemp(prefix="skort-")
    scores = main(folder)
    print(f"The ONNX files are in {folder}")

# %%
# The scores on held-out rows: R² of the diabetes data, accuracy of the others.

if __name__ == "__main__" and importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
    for place, name in enumerate(("scikit-learn", *available_solvers())):
        places = np.arange(len(scores)) + 0.2 * (place - 1.5)
        label = name if place == 0 else f'skort, solver="{name}"'
        axis.bar(places, [score[place] for score in scores.values()], width=0.18, label=label)
    axis.set_xticks(range(len(scores)), [name.replace(", ", ",\n") for name in scores])
    axis.set(ylabel="score on held-out rows", ylim=(0, 1.35))
    axis.legend(ncols=2, loc="upper center")
    plt.show()
