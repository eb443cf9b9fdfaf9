"""Solvers: one gradient step of a score graph, one file a runtime API."""

import numpy as np

from skort.exceptions import RuntimeNotAvailableError
from skort.optim.optimizers import SGD
from skort.optim.update import Update
from skort.runtime.installed import load
from skort.solvers.base import Solver
from skort.solvers.choice import ON_REQUEST, SOLVERS, choose, has_sparse_steps, make_step, usable

__all__ = ["ON_REQUEST", "SOLVERS", "available_solvers", "choose", "has_sparse_steps", "make_step", "usable", "why_not"]


def available_solvers() -> list[str]:
    """Return the names of the solvers that train, in float32, with what is installed."""
    return [name for name, solver in SOLVERS.items() if why_not(solver) is None]


def why_not(solver: Solver) -> str | None:
    """Return why a solver does not train, in float32, with what is installed; None where it does."""
    try:
        load()
        solver.check(np.dtype("float32"), Update(SGD()))
    except (RuntimeNotAvailableError, ValueError) as error:
        return str(error)
    return None
