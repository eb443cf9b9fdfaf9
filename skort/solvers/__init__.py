"""Solvers: one gradient step of a score graph, one file a runtime API."""

import numpy as np

from skort.descent.optimizers import SGD
from skort.descent.update import Update
from skort.exceptions import RuntimeNotAvailableError
from skort.solvers.choice import ON_REQUEST, SOLVERS, SPARSE_SOLVERS, choose, make_solver, solver_class, usable

__all__ = [
    "ON_REQUEST",
    "SOLVERS",
    "SPARSE_SOLVERS",
    "available_solvers",
    "choose",
    "make_solver",
    "solver_class",
    "usable",
]


def available_solvers():
    """Return the names of the solvers that train, in float32, with what is installed."""
    return [name for name, solver in SOLVERS.items() if _trains(solver)]


def _trains(solver):
    try:
        solver.check(np.dtype("float32"), Update(SGD()))
    except RuntimeNotAvailableError:
        return False
    return True
