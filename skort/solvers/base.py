"""
`Problem`, from which a step is made; its weights as one vector; `Solver`, a backend and its
requirements.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx

from skort.exceptions import RuntimeNotAvailableError
from skort.graphs.differentiable import Gradient
from skort.graphs.gradient.reverse import rule_gradient
from skort.graphs.initialization import check_differentiable
from skort.graphs.layers import OFFSET
from skort.graphs.score_graph import ScoreGraph
from skort.objective.objective import Objective
from skort.optim.update import MANY_ROWS, PenaltyStrengths, Update, UpdateRule
from skort.runtime.cache import COMPILED
from skort.runtime.device import CPU, Device
from skort.runtime.installed import training_api, why_missing
from skort.runtime.sessions import compiled
from skort.solvers.derived_gradients import check_custom_penalty, check_loss

# The limit for the bytes of a graph and the arrays of a training. A session keeps a few times as
# much memory at most.
_SMALL = 2**20


@dataclass(frozen=True, eq=False)
class Problem:
    """The parts of a step: a score graph with the initial weights, the objective, the update."""

    score_graph: ScoreGraph
    objective: Objective
    update: Update
    batch_size: int
    device: Device = CPU
    #: The number of batches of an epoch. None: not known, as in a stream.
    n_batches: int | None = None
    #: The initial values of the loss's own weights, each of shape (n_outputs,).
    loss_weights: dict[str, np.ndarray] = field(default_factory=dict)
    #: The factor of sparse rows before the first product. The weights of this product are the first
    #: weights. None: the rows are dense.
    row_factor: float | None = None

    @functools.cached_property
    def weights(self) -> dict[str, np.ndarray]:
        """
        The initial values of the trained weights, not copied.

        The weights of the model come first, then the loss's own weights.
        """
        return self.score_graph.trained_arrays | self.loss_weights

    @functools.cached_property
    def n_weights(self) -> tuple[int, int]:
        """The number of coefficients and of other trained weights, counted by element."""
        n_coefficients, n_others = self.score_graph.n_weights
        return n_coefficients, n_others + sum(array.size for array in self.loss_weights.values())

    @functools.cached_property
    def terms(self) -> PenaltyStrengths:
        """The strengths of the penalty that the update needs."""
        return self.terms_of(self.weights)

    def terms_of(self, weights: dict[str, np.ndarray]) -> PenaltyStrengths:
        """Return the strengths of the penalty for an update of some of the weights."""
        l1, l2 = (_strengths_vector(self.objective, weights, norm) for norm in ("l1", "l2"))
        return PenaltyStrengths(l1, l2, self.n_batches or -(-MANY_ROWS // self.batch_size))

    @functools.cached_property
    def structure(self) -> tuple[Any, ...]:
        """
        A hashable value for the structure of the score's graphs.

        Problems that differ only in numbers share these graphs.
        """
        return *self.score_graph.key, self.batch_size, self.device

    def rule(self) -> UpdateRule:
        """
        Return the update of all weights.

        It takes them as one vector, in the order of `weights`.
        """
        return self.update.rule(self.terms)


def flat(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return the values of all arrays as one new vector."""
    return np.concatenate([a.ravel() for a in arrays.values()])


def views(vector: np.ndarray, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return views of the parts of a vector, with the names and shapes of `arrays`."""
    parts = {}
    start = 0
    for name, array in arrays.items():
        parts[name] = vector[start : start + array.size].reshape(array.shape)
        start += array.size

    return parts


def _strengths_vector(
    objective: Objective, weights: dict[str, np.ndarray], norm: str
) -> np.ndarray | None:
    """Return the "l1" or "l2" strengths of all weights as a vector, or None if there is no term."""
    strengths = objective.with_term(norm)
    if not (weights and strengths):
        return None

    vector = np.zeros(sum(weight.size for weight in weights.values()), objective.dtype)
    for name, part in views(vector, weights).items():
        strength = np.asarray(strengths.get(name, 0.0), objective.dtype)
        try:
            part[...] = strength
        except ValueError:
            raise ValueError(
                f"penalty: the strengths of {name!r} have shape {strength.shape}, but the weight "
                f"has {part.shape}. Use one number, or an array that broadcasts to that shape."
            ) from None

    return vector


def is_small(problem: Problem) -> bool:
    """
    Return whether a session for a problem keeps little memory and no threads.

    Threads would be missing in a forked process.
    """
    return _is_small(problem, problem.score_graph.n_features + problem.score_graph.n_outputs)


def step_session(
    problem: Problem, key: tuple[Any, ...], model: Callable[[], onnx.ModelProto]
) -> Any:
    """Return the session of a step. Small problems with the same key share their session."""

    def make():
        return compiled(model().SerializeToString(), problem.device)

    graph = problem.score_graph
    # The step of a linear model has no result of the size of X, unless it subtracts an offset.
    n_made = (
        graph.n_outputs
        if graph.is_linear and OFFSET not in graph.arrays
        else graph.n_features + graph.n_outputs
    )
    return COMPILED.get(key, make) if _is_small(problem, n_made) else make()


def _is_small(problem, n_made):
    """Return whether a session keeps little memory if it computes `n_made` numbers for each row."""
    n_numbers = (
        sum(array.size for array in problem.score_graph.arrays.values())
        + problem.batch_size * n_made
    )
    n_bytes = len(problem.structure[0]) + n_numbers * problem.objective.dtype.itemsize
    return problem.device == CPU and n_bytes < _SMALL


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
