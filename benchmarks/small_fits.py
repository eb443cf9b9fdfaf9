"""What a fit costs beyond its steps: searches, fits of a few rows, and all defaults."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor

from benchmarks.contenders import SCIKIT_LEARN, SOLVERS
from benchmarks.problems import Problem
from benchmarks.races import Race
from skort import OrtSGDClassifier, OrtSGDRegressor

__all__ = ["EXACT", "Defaults", "Search", "SmallFit"]

#: scikit-learn's models that are not trained by stochastic gradient descent.
EXACT = "scikit-learn, not SGD"

ALPHA, ETA = [1e-5, 1e-4, 1e-2], [0.01, 0.03, 0.1]


def data(n_rows, n_features):
    X = np.random.default_rng(0).normal(size=(n_rows, n_features))
    return X, X[:, 0] + np.abs(X[:, 1])


def models(hidden, n_epochs, batch_size, solver="auto"):
    """
    Return estimators of skort and of scikit-learn with the same parameters.

    Parameters
    ----------
    hidden : tuple of int
        Empty for a linear model; scikit-learn's makes a step a row.
    n_epochs, batch_size : int
    solver : str, default="auto"

    Returns
    -------
    ours, theirs : estimator
    """
    options = {
        "learning_rate": "constant",
        "eta0": 0.01,
        "tol": None,
        "max_iter": n_epochs,
        "random_state": 0,
    }
    inner, theirs = None, SGDRegressor(**options)
    if hidden:
        inner = MLPRegressor(hidden_layer_sizes=hidden)
        theirs = clone(inner).set_params(
            solver="sgd",
            momentum=0,
            learning_rate_init=0.01,
            batch_size=batch_size,
            max_iter=n_epochs,
            n_iter_no_change=n_epochs,
            random_state=0,
        )
    options |= {
        "optimizer": "sgd",
        "standardize": False,
        "penalty": "l2",
        "alpha": 1e-4,
        "batch_size": batch_size,
    }
    return OrtSGDRegressor(inner, solver=solver, **options), theirs


@dataclass(frozen=True)
class Search:
    """
    A search with 3 x 3 parameters and 5 folds: 46 fits and 45 scores, compared by their time alone.

    Parameters
    ----------
    name : str
    hidden : tuple of int
    n_epochs : int
    """

    name: str
    hidden: tuple[int, ...]
    n_epochs: int

    def race(self, *, quick=False, n_jobs=None):
        """Return the contenders' race, the same in a quick look."""
        X, y = data(1000, 20)
        ours, theirs = models(self.hidden, self.n_epochs, 200)
        eta = "learning_rate_init" if self.hidden else "eta0"
        searches = {
            "skort": GridSearchCV(ours.set_params(n_jobs=n_jobs), {"alpha": ALPHA, "eta0": ETA}),
            SCIKIT_LEARN: GridSearchCV(theirs, {"alpha": ALPHA, eta: ETA}),
        }
        runs = {name: partial(search.fit, X, y) for name, search in searches.items()}
        return Race(self.name, "search", 1, runs)


@dataclass(frozen=True)
class SmallFit:
    """
    Fits of 100 rows for one epoch, one after the other, compared by their time alone.

    Parameters
    ----------
    name : str
    hidden : tuple of int
    n_fits : int, default=20
    """

    name: str
    hidden: tuple[int, ...]
    n_fits: int = 20

    def race(self, *, quick=False, n_jobs=None):
        """Return the contenders' race, the same in a quick look."""
        X, y = data(100, 5)

        def fits(model):
            for _ in range(self.n_fits):
                model.fit(X, y)

        pairs = {solver: models(self.hidden, 1, 100, solver) for solver in SOLVERS}
        contenders = {solver: ours.set_params(n_jobs=n_jobs) for solver, (ours, _) in pairs.items()}
        contenders[SCIKIT_LEARN] = models(self.hidden, 1, 100)[1]
        runs = {name: partial(fits, model) for name, model in contenders.items()}
        return Race(self.name, "fit", self.n_fits, runs)


@dataclass(frozen=True)
class Defaults:
    """
    A linear model with all defaults, which stops by itself.

    Parameters
    ----------
    name : str
    make : callable
        Number of rows, number of columns -> Problem.
    n_columns, n_rows, n_quick : int
    """

    name: str
    make: Callable[..., Problem]
    n_columns: int
    n_rows: int
    n_quick: int

    def race(self, *, quick=False, n_jobs=None):
        """Return the contenders' race."""
        n_rows = self.n_quick if quick else self.n_rows
        problem = self.make(n_rows, self.n_columns, batch_size=200, n_epochs=1, eta=0.1)
        if problem.is_classifier:
            models = (
                OrtSGDClassifier(n_jobs=n_jobs),
                SGDClassifier("log_loss"),
                LogisticRegression(),
            )
        else:
            models = OrtSGDRegressor(n_jobs=n_jobs), SGDRegressor(), Ridge()
        for model in models:
            model.set_params(random_state=0)
        runs = {
            name: partial(model.fit, problem.X, problem.y)
            for name, model in zip(("skort", SCIKIT_LEARN, EXACT), models, strict=True)
        }
        score = "decision_function" if problem.is_classifier else "predict"
        return Race(
            self.name, "fit", 1, runs, lambda model: problem.loss(getattr(model, score)(problem.X))
        )
