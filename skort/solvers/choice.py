"""The solvers: what each one needs, which one is chosen, and the step that it makes."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from skort.common.parametrized_graph import with_parameters
from skort.exceptions import NotTrainableError, RuntimeNotAvailableError
from skort.graphs.differentiable import Gradient, runtime_gradient
from skort.graphs.gradient.reverse import rule_gradient
from skort.graphs.score_graph import ScoreGraph, obstacle_of
from skort.objective.loss import source_key
from skort.optim.update import Update
from skort.runtime.cache import COMPILED
from skort.runtime.device import CPU, Device
from skort.runtime.installed import training_api, why_missing
from skort.solvers.agent import AgentBackend
from skort.solvers.base import BackendStep, Masks, Problem
from skort.solvers.derived_gradients import check_custom_penalty, check_loss
from skort.solvers.graph.backend import GraphBackend, needs_onnx_update
from skort.solvers.graph.device_backend import DeviceGraphBackend
from skort.solvers.graph.lanes import JointStep, Lane
from skort.solvers.module.backend import ModuleBackend, needs_plain_gradient
from skort.solvers.session import SessionBackend, needs_corrections, needs_no_clipping
from skort.solvers.sparse.backend import sparse_agent_backend, sparse_graph_backend

#: A requirement of a solver: for its name, a dtype and an update, it raises an error if not met.
Requirement: TypeAlias = Callable[[str, np.dtype, Update], None]


@dataclass(frozen=True)
class Solver:
    """
    A way to make steps, and its requirements.

    With `derives_given`, the solver derives the gradient even if a loss or penalty gives one. A
    field that is None is not supported by the solver.
    """

    name: str
    backend: Callable[[Problem], Any]
    gradient: Gradient
    requirements: tuple[Requirement, ...]
    sparse_backend: Callable[[Problem], Any] | None = None
    device_backend: Callable[[Problem], Any] | None = None
    joint_step: Callable[[Any], Any] | None = None
    derives_given: bool = False

    def check(self, dtype: np.dtype, update: Update, device: Device = CPU) -> None:
        """
        Raise an error if the solver cannot make an update in a dtype on a device, or if the
        installed ONNX Runtime cannot.
        """
        if device.is_remote and self.device_backend is None:
            raise ValueError(
                f'solver="{self.name}" trains with device="cpu" only, got device="{device.name}". '
                'Use solver="graph" or device="cpu".'
            )

        device.check()
        for requirement in self.requirements:
            requirement(self.name, dtype, update)

    def check_model(self, problem: Problem) -> None:
        """
        Raise an error if the solver cannot differentiate the model.

        The loss and the penalty are checked, too, if their gradients are derived.
        """
        objective = problem.objective
        check_differentiable(problem.score_graph, self.name, self.gradient)
        if self.derives_given or objective.loss.gradient_function(objective.n_outputs) is None:
            check_loss(objective, problem.batch_size, self.gradient)

        # skort derives the gradient of a custom penalty if the user gives none.
        gradient = self.gradient if self.derives_given else rule_gradient
        check_custom_penalty(objective, problem.weights, gradient, derives_all=self.derives_given)

    def backend_of(self, problem: Problem) -> Any:
        """Return the backend for a problem: for sparse rows, another device, or the CPU."""
        if problem.row_factor is not None:
            make = self.sparse_backend
        else:
            make = self.device_backend if problem.device.is_remote else self.backend

        assert make is not None, self.name
        return make(problem)


def check_differentiable(score_graph: ScoreGraph, solver: str, gradient: Gradient) -> None:
    """Raise a NotTrainableError if no weight is trained, or if an operator stops a gradient."""
    if not score_graph.trainable:
        operators = ", ".join(
            dict.fromkeys(node.op_type for node in score_graph.structure.graph.node)
        )
        has_branches = "If" in operators.split(", ")
        branches = (
            " The weights in the branches of If are not found: export the branch that is used."
            * has_branches
        )
        raise NotTrainableError(
            "estimator: the model has no weight to train: no initializer of its ONNX graph is an "
            "operand of MatMul, Gemm, Conv or Add between its input and its output. Its operators "
            f"are {operators}.{branches}"
        )
    if obstacle := obstacle_of(score_graph, score_graph.trainable, gradient):
        raise NotTrainableError(
            f"estimator: its ONNX graph computes with the operator {obstacle} between a weight and "
            f"the score, which has no gradient in {score_graph.dtype} with solver={solver!r}. Name "
            "the weights after it in trainable, or cut the model before it."
        )


def needs_float32(solver: str, dtype: np.dtype, update: Update) -> None:
    """Raise an error for float64."""
    if dtype != np.float32:
        raise ValueError(
            f'solver="{solver}" trains in float32 only, got dtype="{dtype}". Use dtype="float32" '
            'or solver="graph".'
        )


def needs_own_update(api: str) -> Requirement:
    """Return the requirement of an optimizer that an API has, since it makes the update itself."""

    def check(solver, dtype, update):
        if update.tags.runtime is None:
            raise ValueError(
                f'solver="{solver}" has no optimizer={update.optimizer!r}: {api} makes the update '
                'itself. Use solver="graph", or optimizer="sgd" or "adam".'
            )

    return check


def needs_api(name: Any, api: str = "") -> Requirement:
    """Return the requirement of a class of ONNX Runtime's training API."""

    def check(solver, dtype, update):
        if name not in training_api():
            raise RuntimeNotAvailableError(
                f'solver="{solver}" needs {api or name}; solver="graph" works here. '
                f"{why_missing(name)}"
            )

    return check


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
