"""
Held-out scores with all defaults against scikit-learn's models, on standardised real data.

Run it with `python benchmarks/defaults.py`: ten splits a data set. The last columns are for the defaults that
`SGDRegressor` has for the same parameters: learning_rate="invscaling", eta0=0.01, tol=1e-3.
"""

import warnings

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor

CASES = [
    ("diabetes", load_diabetes, OrtSGDRegressor(), LinearRegression()),
    ("breast cancer", load_breast_cancer, OrtSGDClassifier(), LogisticRegression()),
    ("wine", load_wine, OrtSGDClassifier(), LogisticRegression()),
    ("digits", load_digits, OrtSGDClassifier(), LogisticRegression()),
    ("digits, MLP (50,)", load_digits, OrtSGDClassifier(MLPClassifier((50,))), MLPClassifier((50,), max_iter=500)),
]


def held_out_scores(model, X, y, n_splits=10):
    """Return the scores on the splits, and the epochs of each fit."""
    scores, epochs = [], []
    for seed in range(n_splits):
        split = train_test_split(X, y, stratify=y if is_classifier(model) else None, random_state=seed)
        X_train, X_test, y_train, y_test = split
        scaler = StandardScaler().fit(X_train)
        if "random_state" in model.get_params():
            model.set_params(random_state=seed)
        model.fit(scaler.transform(X_train), y_train)
        scores.append(model.score(scaler.transform(X_test), y_test))
        epochs.append(getattr(model, "n_iter_", None))
    return np.array(scores), epochs


def main():
    print("                    scikit-learn   skort                              with SGDRegressor's defaults")
    print("data                        mean    mean  difference, worst  epochs    mean  difference, worst  epochs")
    for name, load, estimator, reference in CASES:
        X, y = load(return_X_y=True)
        theirs, _ = held_out_scores(reference, X, y)
        row = f"{name:<18} {theirs.mean():13.3f}"
        others = clone(estimator).set_params(learning_rate="invscaling", eta0=0.01, tol=1e-3)
        for model in (estimator, others):
            ours, epochs = held_out_scores(model, X, y)
            difference = ours - theirs
            row += f" {ours.mean():7.3f}      {difference.mean():+.3f}, {difference.min():+.3f}  {max(epochs):6}"
        print(row)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
