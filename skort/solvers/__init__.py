"""Solvers: each makes gradient steps of a score graph through one API of ONNX Runtime."""

import numpy as np

from skort.exceptions import RuntimeNotAvailableError
from skort.optim.optimizers import SGD
from skort.optim.update import Update
from skort.runtime.installed import load
from skort.solvers.choice import (
    ON_REQUEST,
    SOLVERS,
    Solver,
    check_solver,
    choose,
    has_sparse_steps,
    make_step,
)

__all__ = [
    "ON_REQUEST",
    "SOLVERS",
    "available_solvers",
    "check_solver",
    "choose",
    "has_sparse_steps",
    "make_step",
    "why_not",
]


def available_solvers() -> list[str]:
    """Return the names of the solvers that can train in float32 with the installed ONNX Runtime."""
    return [name for name, solver in SOLVERS.items() if why_not(solver) is None]


def why_not(solver: Solver) -> str | None:
    """Return why a solver cannot train in float32 with the installed ONNX Runtime, or None."""
    try:
        load()
        solver.check(np.dtype("float32"), Update(SGD()))
    except (RuntimeNotAvailableError, ValueError) as error:
        return str(error)

    return None
