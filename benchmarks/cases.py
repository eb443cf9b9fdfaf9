"""What is measured against peers: trainings, predictions, searches and first fits."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.contenders import SCIKIT_LEARN, contenders, estimator
from benchmarks.problems import Problem, blobs, classification, regression
from benchmarks.races import Race
from benchmarks.small_fits import Defaults, Search, SmallFit

__all__ = ["CASES", "OTHERS", "PREDICTIONS", "Case", "Prediction", "all_races"]


@dataclass(frozen=True)
class Case:
    """
    A training.

    Parameters
    ----------
    name : str
    make : callable
        Number of rows -> Problem.
    n_rows, n_quick : int
        Numbers of rows, the second one for a quick look.
    all_cores : bool, default=False
        Whether it is measured on all cores, too.
    """

    name: str
    make: Callable[..., Problem]
    n_rows: int
    n_quick: int
    all_cores: bool = False

    def race(self, *, quick=False, n_jobs=None):
        """Return the contenders' race."""
        problem = self.make(self.n_quick if quick else self.n_rows)
        run = contenders(problem, n_jobs)
        n_steps = problem.n_steps // problem.n_epochs
        return Race(
            self.name,
            "epoch",
            problem.n_epochs,
            run,
            lambda score: problem.loss(score(problem.X)),
            n_steps,
        )


@dataclass(frozen=True)
class Prediction:
    """
    Calls of `predict` with the same weights.

    Parameters
    ----------
    name : str
    n_rows, n_calls, n_quick_calls : int
    all_cores : bool, default=False
        As for `Case`.
    """

    name: str
    n_rows: int
    n_calls: int
    n_quick_calls: int
    all_cores: bool = False

    def race(self, *, quick=False, n_jobs=None):
        """Return the contenders' race."""
        n_calls = self.n_quick_calls if quick else self.n_calls
        problem = regression(self.n_rows, 100, (100,), batch_size=1000, n_epochs=1, eta=0.01)
        model = estimator(problem, "graph", n_jobs).fit(problem.X, problem.y)

        def predictions(predict):
            for _ in range(n_calls - 1):
                predict(problem.X)
            return predict(problem.X)

        models = {"skort": model, SCIKIT_LEARN: model.to_sklearn()}
        runs = {name: partial(predictions, fitted.predict) for name, fitted in models.items()}
        return Race(self.name, "call", n_calls, runs, problem.loss)


_SMALL = {"n_features": 10, "hidden": (20,), "n_epochs": 10, "eta": 0.01}
_MIDDLE = {"n_features": 100, "hidden": (100,), "n_epochs": 10}
_GALLERY = {"n_features": 100, "hidden": (50, 10), "batch_size": 15, "n_epochs": 100}
_LINEAR = {"n_features": 100, "batch_size": 500, "n_epochs": 2}

CASES = [
    Case(
        "MLP 10-20-1, batches of 10",
        partial(regression, batch_size=10, **_SMALL),
        n_rows=5000,
        n_quick=2500,
    ),
    Case(
        "MLP 10-20-1, batches of 100",
        partial(regression, batch_size=100, **_SMALL),
        n_rows=20_000,
        n_quick=5000,
    ),
    Case(
        "MLP 100-100-1, batches of 100",
        partial(regression, batch_size=100, eta=0.05, **_MIDDLE),
        n_rows=20_000,
        n_quick=5000,
    ),
    Case(
        "MLP 100-100-1, batches of 1000",
        partial(regression, batch_size=1000, eta=0.1, **_MIDDLE),
        n_rows=50_000,
        n_quick=10_000,
    ),
    Case(
        "MLP 100-50-10-1, batches of 15",
        partial(regression, eta=0.005, **_GALLERY),
        n_rows=1000,
        n_quick=240,
    ),
    Case(
        "MLP 100-50-10-1, classification, Nesterov, batches of 15",
        partial(classification, eta=0.001, momentum=0.9, **_GALLERY),
        n_rows=1000,
        n_quick=240,
    ),
    Case(
        "Linear regression, 100,000 x 100, batches of 500",
        partial(regression, eta=0.1, **_LINEAR),
        n_rows=100_000,
        n_quick=20_000,
    ),
    Case(
        "Logistic regression, 100,000 x 100, batches of 500",
        partial(classification, eta=1.0, **_LINEAR),
        n_rows=100_000,
        n_quick=20_000,
    ),
    Case(
        "Logistic regression, 5,000 x 20, batches of 1",
        partial(classification, n_features=20, batch_size=1, n_epochs=2, eta=0.01),
        n_rows=5000,
        n_quick=500,
    ),
    Case(
        "MLP 784-100-10, 70,000 rows, batches of 200, 1 epoch",
        partial(
            blobs, n_features=784, n_classes=10, hidden=(100,), batch_size=200, n_epochs=1, eta=0.1
        ),
        n_rows=70_000,
        n_quick=5000,
        all_cores=True,
    ),
]

PREDICTIONS = [
    Prediction("predict of MLP 100-100-1, 1 row", 1, 2000, 200),
    Prediction("predict of MLP 100-100-1, 100,000 rows", 100_000, 5, 1, all_cores=True),
]

OTHERS = [
    Search("GridSearchCV, linear, 46 fits of 5 epochs on 1,000 x 20", (), 5),
    Search("GridSearchCV, linear, 46 fits of 50 epochs on 1,000 x 20", (), 50),
    Search("GridSearchCV, MLP (20,), 46 fits of 5 epochs on 1,000 x 20", (20,), 5),
    SmallFit("fit of 100 x 5, linear, one epoch", ()),
    SmallFit("fit of 100 x 5, MLP 5-10-1, one epoch", (10,)),
    Defaults(
        "All defaults, linear regression, 20,000 x 20", regression, 20, n_rows=20_000, n_quick=5000
    ),
    Defaults(
        "All defaults, logistic regression, 100,000 x 100",
        classification,
        100,
        n_rows=100_000,
        n_quick=5000,
    ),
]


def all_races(*, only="", quick=False, n_jobs=None):
    """Yield the races whose names contain a text, each made when its turn comes."""
    cases = [*CASES, *PREDICTIONS, *OTHERS]
    if n_jobs is not None:
        cases = [case for case in [*CASES, *PREDICTIONS] if case.all_cores]
    for case in cases:
        if only in case.name:
            yield case.race(quick=quick, n_jobs=n_jobs)
