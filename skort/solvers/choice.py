"""The choice of a solver, and the step that it makes."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from skort.common.parametrized_graph import with_parameters
from skort.exceptions import NotTrainableError
from skort.graphs.differentiable import runtime_gradient
from skort.graphs.gradient.reverse import rule_gradient
from skort.objective.loss import source_key
from skort.optim.update import Update
from skort.runtime.cache import COMPILED
from skort.runtime.device import CPU, Device
from skort.solvers.agent import AgentBackend
from skort.solvers.backend_step import BackendStep, Masks
from skort.solvers.base import Problem, Solver, needs_api, needs_float32, needs_own_update
from skort.solvers.graph.backend import DeviceGraphBackend, GraphBackend, needs_onnx_update
from skort.solvers.graph.lanes import JointStep, Lane
from skort.solvers.module.backend import ModuleBackend, needs_plain_gradient
from skort.solvers.session import SessionBackend, needs_corrections, needs_no_clipping
from skort.solvers.sparse.backend import sparse_agent_backend, sparse_graph_backend

_SESSION = "TrainingSession"
_ON_DEVICE = "the on-device API"
_OF_SESSION = (
    needs_float32,
    needs_own_update(_SESSION),
    needs_corrections,
    needs_no_clipping,
    needs_api(_SESSION),
)
_OF_MODULE = (
    needs_float32,
    needs_own_update(_ON_DEVICE),
    needs_plain_gradient,
    needs_api("Module", _ON_DEVICE),
)

#: The solvers that "auto" chooses from, the fastest first, as measured by `benchmarks/solvers.py`.
SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for solver in (
        Solver(
            "graph",
            GraphBackend,
            rule_gradient,
            (needs_onnx_update,),
            sparse_graph_backend,
            DeviceGraphBackend,
            JointStep,
        ),
        Solver(
            "agent",
            AgentBackend,
            runtime_gradient,
            (needs_api("TrainingAgent"),),
            sparse_agent_backend,
        ),
        Solver("session", SessionBackend, runtime_gradient, _OF_SESSION, derives_given=True),
    )
}
#: The solvers that "auto" does not choose: others do the same and more in less time.
ON_REQUEST: dict[str, Solver] = {
    "module": Solver("module", ModuleBackend, rule_gradient, _OF_MODULE)
}

# With more weights than this, "agent" comes first: "graph" copies all weights and gradients in each
# step, and "agent" does not.
_MANY_WEIGHTS = 500_000


def check_solver(name: str, dtype: np.dtype, update: Update, device: Device = CPU) -> None:
    """Raise an error if a solver cannot make an update in a dtype on a device."""
    _declared(name).check(dtype, update, device)


def has_sparse_steps(solver: str) -> bool:
    """Return whether a solver multiplies sparse rows without making them dense."""
    return _declared(solver).sparse_backend is not None


def make_step(
    problem: Problem,
    *,
    solver: str,
    device: Device | None = None,
    lanes: Sequence[Lane] = (),
    random_state: Callable[[], np.random.RandomState] = np.random.RandomState,
) -> Any:
    """
    Return the `BackendStep` of a problem, or the `JointStep` of `lanes`.

    `random_state` returns the generator that draws the seed of Dropout masks.
    """
    declared = _declared(solver)
    if lanes:
        assert declared.joint_step is not None, solver
        return declared.joint_step(lanes)

    if device is not None and device != problem.device:
        problem = dataclasses.replace(problem, device=device)
    masks = None
    if problem.score_graph.dropout:
        masks = Masks(problem, int(random_state().randint(2**32, dtype=np.uint32)))

    return BackendStep(problem, declared.backend_of(problem), masks)


def _declared(name):
    return {**SOLVERS, **ON_REQUEST}[name]


def choose(names: list[str], problem: Problem) -> str:
    """
    Return the first of some solvers that can make the steps of a problem.

    If none can, raise the error of the first solver that fails by the model or the loss, otherwise
    that of the first solver.
    """
    of_models = []
    of_steps = []
    if problem.row_factor is None and sum(problem.n_weights) > _MANY_WEIGHTS:
        names = sorted(names, key=lambda name: name != "agent")

    for name in names:
        solver = _declared(name)
        try:
            solver.check(problem.objective.dtype, problem.update, problem.device)
        except (ValueError, ImportError) as error:
            of_steps.append(error)
            continue
        try:
            _check_model(solver, problem)
        except NotTrainableError as error:
            of_models.append(error)
        else:
            return name

    raise (of_models + of_steps)[0]


def _check_model(solver, problem):
    """Let a solver check a problem, once for all problems that differ only in numbers."""
    objective = problem.objective
    source, *others = objective.loss_key
    text = with_parameters(source)[0] if isinstance(source, str) else source
    has_gradient = objective.gradient_source is not None
    custom = tuple(
        (n, source_key(term.value), source_key(term.gradient))
        for n, term in objective.custom_terms.items()
    )
    key = solver.name, problem.structure, text, *others, has_gradient, custom
    COMPILED.get(("checked model", *key), lambda: solver.check_model(problem))
