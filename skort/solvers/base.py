"""What a solver is, what it is made from, and what all of them share."""

import abc
import functools
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import onnx

from skort.graphs.differentiable import Gradient
from skort.graphs.gradient.reverse import rule_gradient
from skort.graphs.initialization import check_differentiable
from skort.graphs.score_graph import ScoreGraph
from skort.objective.objective import Objective
from skort.optim.training import TrainStep
from skort.optim.transforms import with_owed
from skort.optim.update import MANY_ROWS, PenaltyStrengths, Update, UpdateRule
from skort.runtime.device import CPU, Device
from skort.solvers.flat_weights import strengths_vector, views
from skort.solvers.loss_gradient import check_loss
from skort.solvers.penalty_gradient import check_custom_penalty

__all__ = ["BaseSolver", "Problem", "Solver", "is_small"]

# Bytes of a graph and the arrays of a training together. A session keeps a few times as much memory at most.
_SMALL = 2**20


@dataclass(frozen=True, eq=False)
class Problem:
    """
    What a solver is made from.

    Parameters
    ----------
    score_graph : ScoreGraph
        With the initial weights.
    objective : Objective
    update : Update
    batch_size : int
    device : Device, default=CPU
        What the steps run on.
    n_batches : int or None, default=None
        The number of batches of an epoch. None: it is not known, as in a stream.
    loss_weights : dict of str to ndarray of shape (n_outputs,), default={}
        The initial values of the weights that the loss has of its own, in the order of its `weight_names`.
    row_factor : float or None, default=None
        What sparse rows are multiplied by before the first product, whose weights are the first ones. None: the batches
        are dense.
    """

    score_graph: ScoreGraph
    objective: Objective
    update: Update
    batch_size: int
    device: Device = CPU
    n_batches: int | None = None
    loss_weights: dict[str, np.ndarray] = field(default_factory=dict)
    row_factor: float | None = None

    @functools.cached_property
    def weights(self) -> dict[str, np.ndarray]:
        """The initial values of the trained weights, those of the model and then those of the loss, not copied."""
        return self.score_graph.trained_arrays | self.loss_weights

    def n_weights(self) -> tuple[int, int]:
        """Return the numbers of coefficients and of other trained weights, element by element."""
        n_coefficients, n_others = self.score_graph.n_weights()
        return n_coefficients, n_others + sum(array.size for array in self.loss_weights.values())

    @functools.cached_property
    def terms(self) -> PenaltyStrengths:
        """What the update is to know of the penalty."""
        l1, l2 = (strengths_vector(self.objective, self.weights, norm) for norm in ("l1", "l2"))
        return PenaltyStrengths(l1, l2, self.n_batches or -(-MANY_ROWS // self.batch_size))

    @functools.cached_property
    def structure(self) -> tuple[Any, ...]:
        """What graphs of the score depend on, as a hashable value: problems that differ in numbers only share them."""
        return *self.score_graph.key, self.batch_size, self.device

    def rule(self) -> UpdateRule:
        """Return the update of all weights, as one vector in the order of `weights`."""
        return self.update.rule(self.terms)


def is_small(problem: Problem) -> bool:
    """Return whether a session for a problem keeps little memory, and no threads, which a forked process has not."""
    serialized = problem.structure[0]
    n_numbers = sum(array.size for array in problem.score_graph.arrays.values())
    n_numbers += problem.batch_size * (problem.score_graph.n_features + problem.score_graph.n_outputs)
    n_bytes = len(serialized) + n_numbers * problem.objective.dtype.itemsize
    return problem.device == CPU and n_bytes < _SMALL


class Solver(TrainStep, Protocol):
    """
    One gradient step of the objective through an API of ONNX Runtime.

    All solvers make the same steps: the same weights, batches and learning rates give the same weights.
    """

    def __init__(self, problem: Problem): ...

    @classmethod
    def check(cls, dtype: np.dtype, update: Update) -> None:
        """Raise an error where the installed ONNX Runtime cannot train so this way."""

    @classmethod
    def check_model(cls, problem: Problem) -> None:
        """Raise a NotTrainableError where an operator of the model or of its loss has no gradient here."""

    def read(self, X: np.ndarray | None) -> None:
        """Let the next steps read the rows of X where they are; None: those of `batch`, as at first."""

    def training_graphs(self) -> dict[str, onnx.ModelProto]:
        """Return every ONNX graph that a step runs, by name."""


class BaseSolver(abc.ABC):
    """
    What all solvers share: weights and state by name, and what the steps of an epoch add up to.

    A subclass brings the abstract methods, `name`, `gradient` and `batch`. Its `_read` and `_write` know where the
    state is.

    Parameters
    ----------
    problem : Problem
    """

    #: The value of the estimators' parameter `solver`.
    name: ClassVar[Literal["graph", "agent", "session", "module"]]
    #: What it differentiates of a graph, see `skort.graphs.differentiable.undifferentiable`.
    gradient: Gradient
    batch: Any

    def __init__(self, problem: Problem):
        self._start(problem.weights, problem.rule())

    def _start(self, weights: dict[str, np.ndarray], rule: UpdateRule) -> None:
        """Take the initial weights, by name, and the update."""
        self._initial, self._rule = weights, rule
        self._objective = self._objective_sum = self._loss_sum = 0.0

    @classmethod
    @abc.abstractmethod
    def check(cls, dtype: np.dtype, update: Update) -> None:
        """Raise an error where the installed ONNX Runtime cannot train so this way."""

    @abc.abstractmethod
    def step(self, eta: float, share: float) -> None:
        """Make one update with learning rate `eta` on the batch, which is this part of the epoch."""

    @abc.abstractmethod
    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the last step's gradient, before it was clipped; 0 before the first step."""

    @abc.abstractmethod
    def training_graphs(self) -> dict[str, onnx.ModelProto]:
        """Return every ONNX graph that a step runs, by name."""

    def read(self, X: np.ndarray | None) -> None:
        """
        Let the next steps read the rows of X, where they are if the solver can; None: those of `batch`, as at first.

        Parameters
        ----------
        X : ndarray of shape (batch_size, n_features) or None
            C-contiguous, of the dtype of the training.
        """
        if X is not None:
            self.batch.X[...] = X

    @classmethod
    def check_model(cls, problem: Problem) -> None:
        """Raise an error where the model, or a loss or penalty that brings no gradient, is not differentiated."""
        check_differentiable(problem.score_graph, cls.name, cls.gradient)
        if problem.objective.loss.gradient_function(problem.objective.n_outputs) is None:
            check_loss(problem.objective, problem.batch_size, cls.gradient)
        cls._check_penalty(problem)

    @classmethod
    def _check_penalty(cls, problem):
        """Raise an error for an own penalty that has no gradient: skort derives it where the user gives none."""
        check_custom_penalty(problem.objective, problem.weights, rule_gradient)

    def _add(self, share: float, objective: float, loss: float) -> None:
        """Add up what a step gave."""
        self._objective = objective
        self._objective_sum += share * objective
        self._loss_sum += share * loss

    def objective(self) -> float:
        """Return the objective on the last step's batch before its update."""
        return self._objective

    def means(self) -> tuple[float, float]:
        """Return the objective and the loss, each the mean over all steps since the last call."""
        means = self._objective_sum, self._loss_sum
        self._objective_sum = self._loss_sum = 0.0
        return means

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the trained weights, by name: of their mean where there is one."""
        state = self._read()
        return views(self._rule.result(state["weights"], state), self._initial)

    def is_finite(self) -> bool:
        """Return whether all weights are finite."""
        return all(bool(np.isfinite(array).all()) for array in self.weights().values())

    def state(self) -> dict[str, np.ndarray]:
        """Return a copy of everything that training goes on from, by name."""
        return {name: array.copy() for name, array in self._read().items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """
        Go on from a state as from `state`.

        Raises
        ------
        ValueError
            Where the state is that of another model or of other parameters.
        """
        current = self._read()
        # A stream may get another penalty.
        state = with_owed(state, current)
        described, given = (
            sorted((name, array.shape, array.dtype.str) for name, array in arrays.items())
            for arrays in (current, state)
        )
        if described != given:
            raise ValueError(
                "state does not fit: it comes from a training with another model, dtype, optimizer or average. It has "
                f"{given}, expected {described}."
            )
        self._write(state)
        self.means()

    @abc.abstractmethod
    def _read(self) -> dict[str, np.ndarray]:
        """Return "weights", the vector of the weights, and the arrays of the rule's state; not to be changed."""

    @abc.abstractmethod
    def _write(self, state: dict[str, np.ndarray]) -> None:
        """Put the values of such arrays in the place of what is there."""
