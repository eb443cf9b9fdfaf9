"""Several trainings of one structure that make their steps together."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from skort.objective.objective import LOSS, OBJECTIVE, SAMPLE_WEIGHT, TARGET
from skort.optim.batches import HostBatch
from skort.optim.transforms import norm
from skort.runtime.step_session import StepSession
from skort.solvers.flat_weights import views
from skort.solvers.graph.joint_graph import MemberTerms, joint_graph
from skort.solvers.graph.step_graph import ETA, GRADIENT, WEIGHTS, next_name, state_name


class JointStep:
    """
    The steps of several trainings that differ in numbers only, each with a learning rate of its own.

    `terms` have the same key; `factors`, if any, multiply the sample weights of the batch for each. `lanes` are
    what each training sees, in their order.
    """

    def __init__(self, terms: list[MemberTerms], factors: Sequence[float] = ()):
        problem = terms[0].problem
        graph, dtype = problem.score_graph, problem.objective.dtype
        n_columns = graph.n_features + terms[0].n_ones
        self.batch: Any = HostBatch.empty(problem.batch_size, n_columns, graph.n_outputs, dtype)
        self._terms, self._input_name = terms, graph.input_name
        self._factors = np.array(factors or [1.0] * len(terms), dtype)
        self._open(list(range(len(terms))))
        self.lanes = [Member(self, number, term) for number, term in enumerate(terms)]

    def _open(self, numbers, states=None):
        """Make the session for some of the trainings; `states` are theirs, or those before the first update."""
        step = joint_graph([self._terms[number] for number in numbers])
        dtype, n_lanes = self.batch.X.dtype, len(numbers)
        self._eta, self.gradient = np.zeros((n_lanes, 1), dtype), np.zeros_like(step.states[WEIGHTS])
        # Objective and loss of each training.
        self.values = np.zeros((2, n_lanes, 1), dtype)
        self._shares, self.added = np.zeros((2, n_lanes, 1)), np.zeros((2, n_lanes, 1))
        columns = (np.zeros((n_lanes, *array.shape), dtype) for array in (self.batch.target, self.batch.sample_weight))
        self._target, self._sample_weight = columns
        self._factor = self._factors[numbers][:, None, None]
        inputs = {
            self._input_name: self.batch.X,
            TARGET: self._target.reshape(-1, self._target.shape[-1]),
            SAMPLE_WEIGHT: self._sample_weight.reshape(-1, 1),
            ETA: self._eta,
            **step.parameters,
        }
        needed = {i.name for i in step.session.get_inputs()}
        inputs = {name: array for name, array in inputs.items() if name in needed}
        outputs = {OBJECTIVE: self.values[0], LOSS: self.values[1], GRADIENT: self.gradient}
        names = {name: next_name(name) for name in step.states}
        self._session = StepSession(step.session, inputs, outputs, states or step.states, names)
        self._numbers, self.places = numbers, {number: place for place, number in enumerate(numbers)}
        # Where the weights of a training are in a row.
        self._order = np.argsort(step.order)

    def rates(self, etas: dict[int, float]) -> None:
        """Set the learning rates of the next steps, by number; the results of the other trainings matter no more."""
        self._eta[:, 0] = [etas.get(number, 0.0) for number in self._numbers]

    def step(self, share: float) -> None:
        """Make one update of each training on the batch, which is this part of the epoch's rows."""
        np.copyto(self._target, self.batch.target)
        np.multiply(self.batch.sample_weight, self._factor, out=self._sample_weight)
        self._session.run()
        # In float64, as they are added up.
        np.multiply(self.values, share, out=self._shares, dtype=np.float64)
        self.added += self._shares

    def keep(self, numbers: list[int]) -> None:
        """Let the next steps be those of some of the trainings alone, where this makes them faster."""
        if 0 < len(numbers) <= len(self._numbers) // 2:
            places = [self.places[number] for number in numbers]
            self._open(numbers, {name: array[places] for name, array in self._session.state.items()})

    def alone(self, number: int) -> "Member":
        """Return a solver of one training alone, as before its first update."""
        return JointStep([self._terms[number]], [float(self._factors[number])]).lanes[0]

    def row(self, name: str, number: int) -> np.ndarray:
        """Return a copy of what one training has of a state, as a step of its own has it; by the name of the input."""
        row = self._session.state[name][self.places[number]]
        return row[self._order] if row.size == self._order.size else row.copy()

    def put(self, name: str, number: int, values: np.ndarray) -> None:
        """Let one training go on from values that `row` returned."""
        row = self._session.state[name][self.places[number]]
        row[self._order if row.size == self._order.size else ...] = values


class Member:
    """What one of several trainings sees of their step: a `TrainStep` made with those of the others."""

    def __init__(self, solver: JointStep, number: int, terms: MemberTerms):
        self._solver, self._number, self._terms = solver, number, terms
        self.batch: Any = solver.batch

    def step(self, eta: float, share: float) -> None:
        """Make one update on the batch; the other trainings get theirs, too."""
        self._solver.rates({self._number: eta})
        self._solver.step(share)

    def objective(self) -> float:
        """Return the objective on the last step's batch before its update."""
        return self._solver.values[0][self._solver.places[self._number], 0].item()

    def means(self) -> tuple[float, float]:
        """Return the objective and the loss, each the mean over all steps since the last call."""
        added = self._solver.added[:, self._solver.places[self._number], 0]
        objective, loss = added.tolist()
        added[:] = 0.0
        return objective, loss

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the last step's gradient; 0 before the first step."""
        return norm(self._solver.gradient[self._solver.places[self._number]])

    def is_finite(self) -> bool:
        """Return whether all trained weights are finite numbers."""
        return bool(np.isfinite(self._solver.row(WEIGHTS, self._number)).all())

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the trained weights, by name."""
        return views(self._solver.row(WEIGHTS, self._number), self._terms.problem.weights)

    def state(self) -> dict[str, np.ndarray]:
        """Return a copy of all arrays that a solver of this training alone goes on from, by name."""
        memory, changed = self._terms.memory, self._terms.changed
        rows = {name: self._solver.row(state_name(name), self._number) for name in changed}
        kept = {name: array.copy() for name, array in memory.items() if name not in changed}
        return {"weights": self._solver.row(WEIGHTS, self._number), **kept, **rows}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go on from a state that `state` returned."""
        for name in ("weights", *self._terms.changed):
            self._solver.put(WEIGHTS if name == "weights" else state_name(name), self._number, state[name])
