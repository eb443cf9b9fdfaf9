"""
Held-out scores with all defaults against scikit-learn's models, on standardised real data.

Run it with `python benchmarks/defaults.py`: ten splits a data set.
"""

import warnings

import numpy as np
from sklearn.base import is_classifier
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


def main(n_splits=10):
    print(f"{'data':<18} {'scikit-learn':>12} {'skort':>7}   difference: mean, worst   epochs, largest")
    for name, load, estimator, reference in CASES:
        X, y = load(return_X_y=True)
        ours, theirs, epochs = [], [], []
        for seed in range(n_splits):
            stratify = y if is_classifier(reference) else None
            X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=stratify, random_state=seed)
            scaler = StandardScaler().fit(X_train)
            for model, scores in ((estimator, ours), (reference, theirs)):
                if "random_state" in model.get_params():
                    model.set_params(random_state=seed)
                model.fit(scaler.transform(X_train), y_train)
                scores.append(model.score(scaler.transform(X_test), y_test))
            epochs.append(estimator.n_iter_)
        difference = np.subtract(ours, theirs)
        columns = f"{name:<18} {np.mean(theirs):12.3f} {np.mean(ours):7.3f}"
        print(f"{columns}   {difference.mean():+.3f}, {difference.min():+.3f}             {max(epochs)}")


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
