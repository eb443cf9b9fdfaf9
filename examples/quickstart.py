"""
Quickstart
==========

Train three real data sets with every solver of the installed ONNX Runtime, compare with scikit-learn, save ONNX files
and serve them. The estimators of skort get the raw features and have all their defaults; those of scikit-learn get a
`StandardScaler`.
"""

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


def fit_and_score(model, X_train, X_test, y_train, y_test):
    """Return the seconds of a fit and the score on held-out data."""
    start = time.perf_counter()
    model.fit(X_train, y_train)
    return time.perf_counter() - start, model.score(X_test, y_test)


def serve(path, X):
    """Return the first output of an ONNX file: predictions, or labels."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": X.astype(np.float32)})[0]


def main(folder):
    # The first conversion imports skl2onnx and ONNX Runtime. This fit keeps that time out of the others.
    OrtSGDRegressor(max_iter=1, tol=None).fit(np.eye(2), [0.0, 1.0])
    print(f"{'data':<24} {'solver':<14} {'score':>7} {'seconds':>8}  served by onnxruntime")
    for name, load, reference, estimator in CASES:
        X, y = load(return_X_y=True)
        split = train_test_split(X, y, stratify=y if is_classifier(reference) else None, random_state=0)
        X_test = split[1]
        seconds, score = fit_and_score(make_pipeline(StandardScaler(), reference), *split)
        print(f"{name:<24} {'scikit-learn':<14} {score:7.3f} {seconds:8.2f}")
        for solver in available_solvers():
            model = clone(estimator).set_params(solver=solver, random_state=0)
            seconds, score = fit_and_score(model, *split)
            path = Path(folder, f"{name}-{solver}.onnx")
            model.save_onnx(path)
            served = serve(path, X_test).ravel()
            same = "same predictions" if np.allclose(served, model.predict(X_test), rtol=1e-5) else "OTHER PREDICTIONS"
            print(f"{name:<24} {solver:<14} {score:7.3f} {seconds:8.2f}  {same}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    folder = tempfile.mkdtemp(prefix="skort-")
    main(folder)
    print(f"The ONNX files are in {folder}")
