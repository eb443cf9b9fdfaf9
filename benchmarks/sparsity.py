"""
How many coefficients an l1 penalty makes exactly zero, and the objective,
by the size of the batches.

Run it with `python -m benchmarks.sparsity`: 20,000 rows of 100 features, 10 of which matter, next
to scikit-learn.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression, SGDClassifier, SGDRegressor

from benchmarks.timing import threads
from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.solvers import available_solvers

__all__ = ["CASES", "ESTIMATORS", "Case", "main"]

ALPHA = 0.01

#: The parameters that each of our trainings has.
ESTIMATORS = {
    "batches of 1, one epoch": {"batch_size": 1, "eta0": 0.01, "max_iter": 1},
    "batches of 32": {"batch_size": 32},
    "batches of 200": {"batch_size": 200},
    "batches of 200, solver session": {"batch_size": 200, "solver": "session"},
    "batches of 200, momentum": {"batch_size": 200, "optimizer": "momentum", "eta0": 0.01},
    "batches of 200, adam": {"batch_size": 200, "optimizer": "adam", "eta0": 0.01},
    "batches of 2000": {"batch_size": 2000, "max_iter": 60},
}


@dataclass(frozen=True)
class Case:
    """
    Data, and what is fitted to them.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    is_classifier : bool
    """

    X: np.ndarray
    y: np.ndarray
    is_classifier: bool

    @classmethod
    def of(cls, *, is_classifier, n_rows=20_000, seed=0):
        """Return a case of normal features, whose noise leaves no doubt which of them matter."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n_rows, 100))
        score = X[:, :10] @ rng.normal(size=10)
        y = (
            rng.random(n_rows) < expit(score)
            if is_classifier
            else score + 0.1 * rng.normal(size=n_rows)
        )
        return cls(X, y.astype(int) if is_classifier else y, is_classifier)

    def estimators(self):
        """Return scikit-learn's estimators and ours, by name."""
        if self.is_classifier:
            C = 1 / (ALPHA * len(self.y))
            # scikit-learn 1.6 knows no l1_ratio of other penalties, later ones no other penalties.
            saga = LogisticRegression(
                penalty="elasticnet", l1_ratio=1, C=C, solver="saga", tol=1e-5, max_iter=1000
            )
            theirs = {
                "saga": saga,
                "SGDClassifier": SGDClassifier(loss="log_loss", penalty="l1", alpha=ALPHA),
            }
            ours = OrtSGDClassifier
        else:
            theirs = {
                "Lasso": Lasso(ALPHA),
                "SGDRegressor": SGDRegressor(penalty="l1", alpha=ALPHA),
            }
            ours = OrtSGDRegressor
        shared = {
            "penalty": "l1",
            "alpha": ALPHA,
            "eta0": 0.1,
            "max_iter": 15,
            "tol": None,
            "random_state": 0,
        }
        shared["learning_rate"] = "constant"
        here = {
            name: given
            for name, given in ESTIMATORS.items()
            if given.get("solver", "graph") in available_solvers()
        }
        return theirs | {name: ours(**(shared | given)) for name, given in here.items()}

    def outcome(self, model):
        """Fit a model; return its number of zeros and its objective."""
        model.fit(self.X, self.y)
        coef = model.coef_.ravel().astype(float)
        score = self.X @ coef + model.intercept_.astype(float)
        loss = (
            np.logaddexp(0, score) - self.y * score
            if self.is_classifier
            else (score - self.y) ** 2 / 2
        )
        return int((coef == 0).sum()), float(loss.mean() + ALPHA * np.abs(coef).sum())


#: The cases by name.
CASES = {"classification": True, "regression": False}


def main():
    for title, is_classifier in CASES.items():
        case = Case.of(is_classifier=is_classifier)
        print(f"{title:32} {'zeros':>6} {'objective':>10}")
        for name, model in case.estimators().items():
            zeros, objective = case.outcome(model)
            print(f"{name:32} {zeros:6} {objective:10.5f}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", FutureWarning)
    with threads():
        main()
