"""What is measured against peers, and the ratios to be reached: a peer's time over that of each solver."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks.contenders import contenders, estimator
from benchmarks.problems import Problem, blobs, classification, regression

__all__ = ["CASES", "OURS", "PREDICTIONS", "Case", "Prediction", "Race", "all_races"]

SESSION, AGENT, GRAPH, PREDICT = "session", "agent", "graph", "skort"

#: The names of skort among the contenders.
OURS = [SESSION, AGENT, GRAPH, PREDICT]


@dataclass(frozen=True)
class Race:
    """
    Contenders that do the same work.

    Parameters
    ----------
    name : str
    unit : str
        What a time is divided by.
    n_units : int
    contenders : dict of str to callable
        Each returns its result.
    loss : callable
        Result -> loss.
    goals : dict of str to dict of str to float
        Peer -> contender of skort -> the smallest ratio to reach: the peer's time over skort's.
    floors : dict of str to float
        Contender of skort -> the largest ratio allowed: its time over that of the numpy loop.
    """

    name: str
    unit: str
    n_units: int
    contenders: dict[str, Callable[[], Any]]
    loss: Callable[[Any], float]
    goals: dict[str, dict[str, float]]
    floors: dict[str, float] = field(default_factory=dict)


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
    goals, floors
        As for `Race`.
    all_cores : bool, default=False
        Whether the goals hold on all cores, too. Otherwise they hold on one thread only.
    """

    name: str
    make: Callable[..., Problem]
    n_rows: int
    n_quick: int
    goals: dict[str, dict[str, float]]
    floors: dict[str, float] = field(default_factory=dict)
    all_cores: bool = False

    def race(self, *, quick=False, n_jobs=None):
        """Return the contenders' race."""
        problem = self.make(self.n_quick if quick else self.n_rows)
        unit, n_units = ("fit", 1) if problem.is_linear else ("epoch", problem.n_epochs)
        return Race(
            self.name,
            unit,
            n_units,
            contenders(problem, n_jobs),
            lambda score: problem.loss(score(problem.X)),
            *((self.goals, self.floors) if n_jobs is None or self.all_cores else ({}, {})),
        )


@dataclass(frozen=True)
class Prediction:
    """
    Calls of `predict` with the same weights.

    Parameters
    ----------
    name : str
    n_rows, n_calls, n_quick_calls : int
    goal : float
        The ratio to reach: scikit-learn's time over skort's.
    all_cores : bool, default=False
        As for `Case`.
    """

    name: str
    n_rows: int
    n_calls: int
    n_quick_calls: int
    goal: float
    all_cores: bool = False

    def race(self, *, quick=False, n_jobs=None):
        """Return the contenders' race."""
        n_calls = self.n_quick_calls if quick else self.n_calls
        problem = regression(self.n_rows, 100, (100,), batch_size=1000, n_epochs=1, eta=0.01)
        model = estimator(problem, GRAPH, n_jobs).fit(problem.X, problem.y)

        def predictions(predict):
            for _ in range(n_calls - 1):
                predict(problem.X)
            return predict(problem.X)

        models = {PREDICT: model, "scikit-learn": model.to_sklearn()}
        runs = {name: partial(predictions, fitted.predict) for name, fitted in models.items()}
        goals = {"scikit-learn": {PREDICT: self.goal}} if n_jobs is None or self.all_cores else {}
        return Race(self.name, "call", n_calls, runs, problem.loss, goals)


def _by_solver(session, agent, graph):
    return {SESSION: session, AGENT: agent, GRAPH: graph}


_FLOORS = _by_solver(1.3, 1.3, 1.15)
_GALLERY = {"hidden": (50, 10), "batch_size": 15, "n_epochs": 100}

CASES = [
    Case(
        "MLP 10-20-1, batches of 10",
        partial(regression, n_features=10, hidden=(20,), batch_size=10, n_epochs=10, eta=0.01),
        n_rows=5000,
        n_quick=2500,
        goals={
            "scikit-learn": _by_solver(6, 4, 8),
            "torch": _by_solver(9, 6, 12),
            "skorch": _by_solver(20, 13, 25),
        },
    ),
    Case(
        "MLP 100-100-1, batches of 100",
        partial(regression, n_features=100, hidden=(100,), batch_size=100, n_epochs=10, eta=0.05),
        n_rows=20_000,
        n_quick=10_000,
        goals={
            "scikit-learn": _by_solver(5, 3.5, 6),
            "torch": _by_solver(3.5, 2.5, 4),
            "skorch": _by_solver(15, 10, 18),
        },
    ),
    Case(
        "MLP 100-100-1, batches of 1000",
        partial(regression, n_features=100, hidden=(100,), batch_size=1000, n_epochs=10, eta=0.1),
        n_rows=50_000,
        n_quick=20_000,
        goals={
            "scikit-learn": _by_solver(2.5, 2.2, 4),
            "torch": _by_solver(2, 1.8, 3),
            "skorch": _by_solver(10, 8, 15),
        },
        floors=_FLOORS,
    ),
    Case(
        "The gallery of onnxcustom, regression: 1000 x 100, hidden layers (50, 10), batches of 15, 100 epochs",
        partial(regression, n_features=100, eta=0.005, **_GALLERY),
        n_rows=1000,
        n_quick=240,
        goals={"scikit-learn": _by_solver(5, 3, 6)},
    ),
    Case(
        "The same as a classification with Nesterov's momentum 0.9",
        partial(classification, n_features=100, eta=0.001, momentum=0.9, **_GALLERY),
        n_rows=1000,
        n_quick=240,
        goals={"scikit-learn": _by_solver(5, 3, 6)},
    ),
    Case(
        "Linear regression, 100,000 x 100, to the loss where SGDRegressor stops",
        partial(regression, n_features=100, batch_size=500, n_epochs=2, eta=0.1),
        n_rows=100_000,
        n_quick=20_000,
        goals={"scikit-learn": _by_solver(3.5, 3, 4)},
        floors=_FLOORS,
    ),
    Case(
        "Logistic regression, 100,000 x 100, to the loss where SGDClassifier stops",
        partial(classification, n_features=100, batch_size=500, n_epochs=2, eta=1.0),
        n_rows=100_000,
        n_quick=20_000,
        goals={"scikit-learn": _by_solver(3.5, 3, 4)},
        floors=_FLOORS,
    ),
    Case(
        "MLP 784-100-10, 70,000 rows, batches of 200, 1 epoch",
        partial(blobs, n_features=784, n_classes=10, hidden=(100,), batch_size=200, n_epochs=1, eta=0.1),
        n_rows=70_000,
        n_quick=10_000,
        goals={"scikit-learn": _by_solver(1.4, 1.3, 1.5), "torch": _by_solver(1.2, 1.1, 1.3)},
        floors=_FLOORS,
        all_cores=True,
    ),
]

PREDICTIONS = [
    Prediction("predict of MLP 100-100-1, 1 row", 1, 2000, 200, goal=1.5),
    Prediction("predict of MLP 100-100-1, 100,000 rows", 100_000, 5, 1, goal=1.2, all_cores=True),
]


def all_races(**options):
    """Yield the races, each made when its turn comes."""
    for case in [*CASES, *PREDICTIONS]:
        yield case.race(**options)
