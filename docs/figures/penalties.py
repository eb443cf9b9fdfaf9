"""A picture of penalties, from fits."""

import numpy as np
from figures.drawing import panels
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDRegressor


def paths():
    """Draw the coefficients of the diabetes data, on standardised columns, against alpha."""
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    alphas = np.logspace(-1, 2, 25)
    axes = panels(*("l1", "l2", "elasticnet, l1_ratio=0.5"), height=3.0, sharey=True)
    for axis, penalty in zip(axes, ("l1", "l2", "elasticnet"), strict=True):
        models = [
            OrtSGDRegressor(
                penalty=penalty, alpha=alpha, l1_ratio=0.5, tol=1e-6, random_state=0
            ).fit(X, y)
            for alpha in alphas
        ]
        axis.semilogx(alphas, [model.coef_ for model in models], linewidth=1.2)
        axis.set_xlabel("alpha")
    axes[0].set_ylabel("coefficients")
