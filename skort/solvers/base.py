"""
The step of a training: the `Problem` that it is made from, the `Backend` that runs it through an
API of ONNX Runtime, and `BackendStep`, which adds names, means and masks.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import onnx

from skort.exceptions import NotTrainableError
from skort.graphs.layers import OFFSET
from skort.graphs.score_graph import ScoreGraph
from skort.graphs.training_mode import WITHOUT_DROPOUT
from skort.objective.objective import SAMPLE_WEIGHT, TARGET, Objective
from skort.optim.batches import HostBatch
from skort.optim.transforms import Decorrelation, norm, with_parts_of
from skort.optim.update import MANY_ROWS, PenaltyStrengths, Update, UpdateRule
from skort.runtime.cache import COMPILED
from skort.runtime.device import CPU, Device
from skort.runtime.sessions import compiled

_MASKS = "dropout"
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
    #: The change of the gradient in a linear stream, before the optimizer. None: there is none.
    decorrelation: Decorrelation | None = None

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
        return self.update.rule(self.terms, decorrelation=self.decorrelation)


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


class Sums:
    """The sums of objective and loss over the steps of an epoch."""

    def __init__(self):
        self._last = self._objective = self._loss = 0.0

    def add(self, share: float, objective: float, loss: float) -> None:
        """Add the objective and the loss of a step on a part `share` of the epoch."""
        self._last = objective
        self._objective += share * objective
        self._loss += share * loss

    def last(self) -> float:
        """Return the objective of the last step."""
        return self._last

    def take(self) -> tuple[float, float]:
        """Return the sums of objective and loss since the last call."""
        sums = self._objective, self._loss
        self._objective = self._loss = 0.0
        return sums


class Backend(Protocol):
    """
    Runs the steps of a problem through an API of ONNX Runtime.

    All weights are one vector, see `flat`.
    """

    #: The buffer from which the next step reads its rows.
    batch: Any
    #: The sums of the steps: a `Sums`, or an object with its methods.
    sums: Any
    #: The update of the vector of weights by a gradient.
    rule: UpdateRule
    #: Whether steps can read rows where they are. Then the backend has a method `read`, as
    #: `HostBackend` has.
    reads_in_place: bool = False

    def run(self, eta: float, share: float) -> None:
        """
        Make one update with learning rate `eta` on the batch, and add its results to `sums`.

        The batch is a part `share` of the epoch.
        """

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the vector "weights" and the arrays of the rule's state. Do not change them."""

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Overwrite such arrays, all or some of them."""
        own = self.arrays()
        for name, array in arrays.items():
            own[name][...] = array

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the last gradient before clipping; 0 before a step."""
        return norm(self.last_gradient())

    def last_gradient(self) -> np.ndarray:
        """
        Return the last gradient by the vector of weights, before clipping. Do not change it.

        L-BFGS and `skort.Step.gradients` need it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no method last_gradient. Write one that returns the "
            "gradient of the last step by the vector of weights."
        )

    def training_graphs(self) -> dict[str, onnx.ModelProto]:
        """
        Return the ONNX graphs of a step, by name.

        The result is empty for the common step of several trainings.
        """
        return {}

    def is_finite(self) -> bool:
        """Return whether all weights are finite."""
        arrays = self.arrays()
        weights = self.rule.held(arrays["weights"], arrays)
        # A finite norm, which takes less time, means finite weights. But the norm of very large
        # weights is infinite, too.
        return math.isfinite(norm(weights)) or bool(np.isfinite(weights).all())


class HostBackend(Backend):
    """
    A backend whose `session` reads numpy arrays in place.

    `inputs` are the arrays of the batch, by the names of their inputs.
    """

    batch: Any
    sums: Any
    session: Any
    gradient: np.ndarray
    reads_in_place = True

    def __init__(self, problem: Problem):
        self._problem = problem
        self.sums: Any = Sums()
        graph = problem.score_graph
        dtype = problem.objective.dtype
        batch = HostBatch.empty(problem.batch_size, graph.n_features, graph.n_outputs, dtype)
        self.batch = batch
        self.inputs: dict[str, np.ndarray] = {
            graph.input_name: batch.X,
            TARGET: batch.target,
            SAMPLE_WEIGHT: batch.sample_weight,
        }

    def read(self, X: np.ndarray | None) -> None:
        """
        Let the next steps read the rows of a C-contiguous X in place.

        With None, the next steps read the rows of `batch`.
        """
        self.session.replace(self._problem.score_graph.input_name, self.batch.X if X is None else X)

    def last_gradient(self) -> np.ndarray:
        """Return the gradient of the last step before clipping."""
        return self.gradient


class Masks:
    """
    The masks of Dropout. The graph reads them in place.

    They depend only on the seed and the number of the step.
    """

    def __init__(self, problem: Problem, seed: int):
        if problem.device.is_remote:
            raise NotTrainableError(
                "estimator: the model has a Dropout in training mode, whose masks are drawn on the "
                f'CPU, got device="{problem.device.name}". Use device="cpu"; or {WITHOUT_DROPOUT}.'
            )

        graph = problem.score_graph
        self._masks = [(graph.arrays[name], ratio) for name, ratio in graph.dropout.items()]
        #: The seed, below 2^32, and the number of steps so far.
        self.state: np.ndarray = np.array([seed, 0], np.int64)

    def draw(self) -> None:
        """Draw the masks of the next step."""
        self.state[1] += 1
        seed, n_steps = self.state.tolist()
        generator = np.random.Generator(np.random.Philox(key=seed, counter=n_steps << 128))

        for mask, ratio in self._masks:
            np.multiply(
                generator.random(mask.shape, np.float32) >= ratio,
                1 / (1 - ratio),
                out=mask,
                casting="unsafe",
            )


class BackendStep:
    """
    The `TrainStep` of a backend.

    With the same initial weights, batches and learning rates, all backends give the same weights.
    """

    def __init__(self, problem: Problem, backend: Any, masks: Masks | None = None):
        self.backend = backend
        self.batch: Any = backend.batch
        self._initial = problem.weights
        self._masks = masks

        # The backend reports on its steps.
        self.objective: Callable[[], float] = backend.sums.last
        self.means: Callable[[], tuple[float, float]] = backend.sums.take
        self.gradient_norm: Callable[[], float] = backend.gradient_norm
        self.is_finite: Callable[[], bool] = backend.is_finite
        # None if steps cannot read rows in place.
        self.read: Any = backend.read if backend.reads_in_place else None
        self.training_graphs: Callable[[], dict[str, onnx.ModelProto]] = backend.training_graphs
        self.step: Callable[[float, float], None] = (
            backend.run if masks is None else self._masked_step
        )

    def _masked_step(self, eta, share):
        assert self._masks is not None
        self._masks.draw()
        self.backend.run(eta, share)

    def forward(self) -> float:
        """Return the objective of the batch, for a backend with `forward` and `backward`."""
        if self._masks is not None:
            self._masks.draw()
        return self.backend.forward()

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the trained weights, by name. With averaging, return their mean."""
        arrays = self.backend.arrays()
        return views(self.backend.rule.result(arrays["weights"], arrays), self._initial)

    def state(self) -> dict[str, np.ndarray]:
        """Return a copy of the arrays from which the training can continue, by name."""
        arrays = {name: array.copy() for name, array in self.backend.arrays().items()}
        return arrays if self._masks is None else {**arrays, _MASKS: self._masks.state.copy()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from a state; raise a ValueError if it has other arrays than this training."""
        masks: Any = None
        if self._masks is not None:
            masks = state.get(_MASKS)
            if masks is None or masks.shape != (2,):
                raise ValueError("state does not fit: it comes from a training without Dropout.")
            state = {name: array for name, array in state.items() if name != _MASKS}

        current = self.backend.arrays()
        # The penalty of a stream or its rate may have changed.
        state = with_parts_of(state, current)
        described, given = (
            sorted((name, array.shape, array.dtype.str) for name, array in arrays.items())
            for arrays in (current, state)
        )
        if described != given:
            raise ValueError(
                "state does not fit: it comes from a training with another model, dtype, optimizer "
                f"or average. It has {given}, expected {described}. Set these parameters back, or "
                "start a new training."
            )

        self.backend.load(state)
        self.backend.sums.take()
        if self._masks is not None:
            self._masks.state[:] = masks
