"""The step of a training: a backend runs it, and `BackendStep` adds names, means and masks."""

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import onnx

from skort.exceptions import NotTrainableError
from skort.graphs.training_mode import WITHOUT_DROPOUT
from skort.objective.objective import SAMPLE_WEIGHT, TARGET
from skort.optim.batches import HostBatch
from skort.optim.transforms import norm, with_parts_of
from skort.optim.update import UpdateRule
from skort.solvers.base import Problem, views

_MASKS = "dropout"


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
