"""
Who trains: skort, one contender a solver, and its peers. Each is a function:
problem -> (X -> raw score).
"""

import importlib.util
from functools import partial

from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor

from benchmarks.jax_process import jax_contenders, jax_version
from benchmarks.numpy_loop import raw_score, train
from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.solvers import available_solvers

__all__ = [
    "FLOOR",
    "SCIKIT_LEARN",
    "SOLVERS",
    "contenders",
    "estimator",
    "missing_peers",
    "scikit_learn_model",
]

#: skort's contenders, in the order of the columns of a report.
SOLVERS = [solver for solver in ("session", "agent", "graph") if solver in available_solvers()]

SCIKIT_LEARN = "scikit-learn"
#: A loop by hand over BLAS: what the hardware can do.
FLOOR = "numpy"

_NEEDS = {"torch": "torch", "skorch": "skorch"}


def missing_peers():
    """Return the names of the peers that are not installed."""
    missing = [
        name for name, package in _NEEDS.items() if importlib.util.find_spec(package) is None
    ]
    return missing if jax_version() else [*missing, "JAX"]


def contenders(problem, n_jobs=None):
    """Return who can train a problem: name -> function that trains and returns X -> raw score."""
    # TrainingSession has no momentum.
    solvers = [solver for solver in SOLVERS if solver != "session" or not problem.momentum]
    ours = {solver: partial(_train_skort, solver, n_jobs) for solver in solvers}
    left_out = [*missing_peers(), *([] if problem.has_scikit_learn else [SCIKIT_LEARN])]
    peers = {name: run for name, run in _PEERS.items() if name not in left_out}
    return {
        name: partial(run, problem) for name, run in {**ours, **peers}.items()
    } | jax_contenders(problem, n_jobs)


def estimator(problem, solver, n_jobs=None):
    """Return the unfitted estimator of skort."""
    options = {
        "eta0": problem.eta,
        "batch_size": problem.batch_size,
        "max_iter": problem.n_epochs,
        "n_jobs": n_jobs,
    }
    # The steps of the peers.
    options |= {"optimizer": "sgd", "learning_rate": "constant", "standardize": False}
    if problem.momentum:
        from skort.optimizers import Nesterov

        options["optimizer"] = Nesterov(momentum=problem.momentum)
    cls = OrtSGDClassifier if problem.is_classifier else OrtSGDRegressor
    return cls(
        problem.model, solver=solver, penalty=None, tol=None, random_state=problem.seed, **options
    )


def scikit_learn_model(problem):
    """Return scikit-learn's unfitted model."""
    if problem.is_linear:
        return _scikit_learn_linear_model(problem)
    cls = MLPClassifier if problem.is_classifier else MLPRegressor
    return cls(
        hidden_layer_sizes=problem.model.hidden_layer_sizes,
        solver="sgd",
        alpha=0.0,
        learning_rate_init=problem.eta,
        momentum=problem.momentum,
        batch_size=problem.batch_size,
        max_iter=problem.n_epochs,
        tol=0.0,
        n_iter_no_change=problem.n_epochs,
        random_state=problem.seed,
    )


def _scikit_learn_linear_model(problem):
    options = {
        "learning_rate": "constant",
        "eta0": problem.eta,
        "max_iter": problem.n_epochs,
        "tol": None,
    }
    options |= {"penalty": None, "random_state": problem.seed}
    return (
        SGDClassifier(loss="log_loss", **options)
        if problem.is_classifier
        else SGDRegressor(**options)
    )


def _train_skort(solver, n_jobs, problem):
    model = estimator(problem, solver, n_jobs).fit(problem.X, problem.y)
    return model.decision_function if problem.is_classifier else model.predict


def _train_scikit_learn(problem):
    model = scikit_learn_model(problem).fit(problem.X, problem.y)
    if not problem.is_linear:
        # MLPClassifier has no method that gives the raw score.
        return partial(raw_score, list(zip(model.coefs_, model.intercepts_, strict=True)))
    return model.decision_function if problem.is_classifier else model.predict


def _train_torch(name, problem):
    from benchmarks import torch_loops

    return getattr(torch_loops, name)(problem)


_PEERS = {
    SCIKIT_LEARN: _train_scikit_learn,
    "torch": partial(_train_torch, "train"),
    "skorch": partial(_train_torch, "train_skorch"),
    FLOOR: train,
}
