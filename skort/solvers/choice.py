"""Which solver trains: the one that was asked for, or the fastest that can."""

import contextlib

from skort.exceptions import NotTrainableError
from skort.runtime.device import CPU
from skort.solvers.agent import AgentSolver
from skort.solvers.graph import GraphSolver
from skort.solvers.resident import ResidentSolver
from skort.solvers.session import SessionSolver

__all__ = ["SOLVERS", "chosen", "solver_class", "usable"]

#: The values of the estimators' parameter `solver`, beside "auto": the fastest first, by `python -m benchmarks`.
SOLVERS = {"graph": GraphSolver, "agent": AgentSolver, "session": SessionSolver}

# "graph" copies all weights and gradients once a step, which "agent" does not.
_MANY_WEIGHTS = 500_000


def usable(solver, dtype, optimizer, max_grad_norm=None, device=CPU):
    """
    Return the names of the solvers that come into question, the fastest first.

    Parameters
    ----------
    solver : {"auto", "graph", "session", "agent"}
    dtype : dtype
        float32 or float64.
    optimizer : Optimizer
    max_grad_norm : float or None, default=None
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
        SOLVERS[solver].check(dtype, optimizer, max_grad_norm)
        return [solver]
    names = []
    for name in SOLVERS:
        with contextlib.suppress(ValueError, ImportError):
            names += usable(name, dtype, optimizer, max_grad_norm, device)
    # Where none can, the first one says why.
    return names or usable(next(iter(SOLVERS)), dtype, optimizer, max_grad_norm, device)


def solver_class(name, device):
    """Return the class of a solver on a device."""
    return ResidentSolver if device.is_remote else SOLVERS[name]


def _check_device(solver, device):
    if device.is_remote and solver != "graph":
        raise ValueError(
            f'solver="{solver}" trains with device="cpu" only, got device="{device.name}". Use solver="graph" or '
            'device="cpu".'
        )
    device.check()


def chosen(names, score_graph, objective, batch_size):
    """
    Return the first solver that differentiates a model and its loss; of many weights "agent" comes first.

    Parameters
    ----------
    names : list of str
        As from `usable`.
    score_graph : ScoreGraph
    objective : Objective
    batch_size : int

    Raises
    ------
    NotTrainableError
        Where none does: why the first one does not.
    """
    errors = []
    if sum(score_graph.n_weights()) > _MANY_WEIGHTS:
        names = sorted(names, key=lambda name: name != "agent")
    for name in names:
        try:
            SOLVERS[name].check_model(score_graph, objective, batch_size)
        except NotTrainableError as error:
            errors.append(error)
        else:
            return name
    raise errors[0]
