"""Which solver trains: the one that was asked for, or the fastest that can."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from skort.common.parametrized_graph import with_parameters
from skort.exceptions import NotTrainableError
from skort.optim.update import Update
from skort.runtime.cache import LRUCache
from skort.runtime.device import CPU, Device
from skort.solvers.agent import AgentSolver
from skort.solvers.base import BaseSolver, Problem, Solver
from skort.solvers.dropout import DropoutSolver
from skort.solvers.graph.device_solver import DeviceGraphSolver
from skort.solvers.graph.solver import GraphSolver
from skort.solvers.module.solver import ModuleSolver
from skort.solvers.session import SessionSolver
from skort.solvers.sparse.sparse_solver import SparseAgentSolver, SparseGraphSolver

__all__ = ["ON_REQUEST", "SOLVERS", "SPARSE_SOLVERS", "choose", "make_solver", "solver_class", "usable"]

#: The solvers that "auto" chooses from: the fastest first, by `python -m benchmarks`.
SOLVERS: dict[str, type[BaseSolver]] = {"graph": GraphSolver, "agent": AgentSolver, "session": SessionSolver}
#: Those that "auto" does not choose: others do the same, and more, in less time.
ON_REQUEST: dict[str, type[BaseSolver]] = {"module": ModuleSolver}
#: Those of them that multiply sparse rows as they are.
SPARSE_SOLVERS: dict[str, type[BaseSolver]] = {"graph": SparseGraphSolver, "agent": SparseAgentSolver}

# "graph" copies all weights and gradients once a step, which "agent" does not.
_MANY_WEIGHTS = 500_000

# What passed `check_model`.
_CHECKED: LRUCache = LRUCache(64)


def usable(solver: str, dtype: np.dtype, update: Update, device: Device = CPU) -> list[str]:
    """
    Return the names of the solvers that come into question, the fastest first.

    Parameters
    ----------
    solver : {"auto", "graph", "agent", "session", "module"}
    dtype : dtype
        float32 or float64.
    update : Update
    device : Device, default=CPU

    Raises
    ------
    ValueError
        Where `solver` cannot do what is asked; with "auto", where none can.
    RuntimeNotAvailableError
        Where the installed ONNX Runtime lacks what it needs.
    """
    if solver != "auto":
        _check_device(solver, device)
        solver_class(solver, CPU).check(dtype, update)
        return [solver]
    names = []
    for name in SOLVERS:
        with contextlib.suppress(ValueError, ImportError):
            names += usable(name, dtype, update, device)
    # Where none can, the first one says why.
    return names or usable(next(iter(SOLVERS)), dtype, update, device)


def solver_class(name: str, device: Device, *, is_sparse: bool = False) -> type[BaseSolver]:
    """Return the class of a solver on a device, or of one that multiplies sparse rows as they are."""
    if is_sparse:
        return SPARSE_SOLVERS[name]
    return DeviceGraphSolver if device.is_remote else {**SOLVERS, **ON_REQUEST}[name]


def make_solver(name: str, problem: Problem, random_state: Callable[[], np.random.RandomState]) -> Solver:
    """
    Return a solver of a problem by its name.

    Parameters
    ----------
    name : {"graph", "agent", "session", "module"}
    problem : Problem
    random_state : callable
        Returns a generator, which is asked for the seed of masks where the problem has a Dropout.
    """
    solver: Any = solver_class(name, problem.device, is_sparse=problem.row_factor is not None)(problem)
    if problem.score_graph.dropout:
        solver = DropoutSolver(solver, problem, int(random_state().randint(2**32, dtype=np.uint32)))
    return solver


def _check_device(solver, device):
    if device.is_remote and solver != "graph":
        raise ValueError(
            f'solver="{solver}" trains with device="cpu" only, got device="{device.name}". Use solver="graph" or '
            'device="cpu".'
        )
    device.check()


def choose(names: list[str], problem: Problem) -> str:
    """
    Return the first solver that differentiates a model and its loss; of many weights "agent" comes first.

    Parameters
    ----------
    names : list of str
        As from `usable`.
    problem : Problem

    Raises
    ------
    NotTrainableError
        Where none does: why the first one does not.
    """
    errors = []
    if problem.row_factor is None and sum(problem.n_weights()) > _MANY_WEIGHTS:
        names = sorted(names, key=lambda name: name != "agent")
    for name in names:
        try:
            _check_model(name, problem)
        except NotTrainableError as error:
            errors.append(error)
        else:
            return name
    raise errors[0]


def _check_model(name, problem):
    """Let a solver check a problem: once for all problems of the same structure and the same loss but for numbers."""
    objective = problem.objective
    source, *others = objective.loss_key
    text = with_parameters(source)[0] if isinstance(source, str) else source
    has_gradient = objective.loss.gradient_function(objective.n_outputs) is not None
    key = name, problem.structure, text, *others, has_gradient, objective.custom_key
    _CHECKED.get(key, lambda: solver_class(name, CPU).check_model(problem))
