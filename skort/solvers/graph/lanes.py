"""
The steps of several trainings as one graph, with one product per layer for all scores.

The trainings differ only in numbers. Each training is a lane.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import DTypeLike
from onnx import helper

from skort.common.formulas import function_text
from skort.common.onnx_text import Fragment, build_model, infos, pruned
from skort.graphs.gradient.reverse import add_gradients
from skort.graphs.score_graph import Link
from skort.objective.objective import LOSS, OBJECTIVE, SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET
from skort.optim.batches import HostBatch
from skort.optim.update import UpdateRule
from skort.runtime.sessions import StepSession
from skort.solvers.base import Backend, BackendStep, Problem, is_small, step_session, views
from skort.solvers.graph.backend import (
    ETA,
    GRADIENT,
    LOSSES,
    WEIGHTS,
    StepGraph,
    gradient_of_loss,
    loss_program,
    state_name,
    step_outputs,
)


@dataclass(frozen=True, eq=False)
class Lane:
    """The part of one training in a step of several trainings."""

    #: A hashable value that is equal for trainings with a common step.
    key: tuple[Any, ...]
    step: StepGraph
    chain: tuple[Link, ...]
    rule: UpdateRule
    #: The state of the rule.
    memory: dict[str, np.ndarray]
    #: The factor of the sample weights of a batch.
    factor: float = 1.0

    @property
    def n_ones(self) -> int:
        """The number of columns of ones, 0 or 1, that X has for intercepts of its first layer."""
        return int(self.chain[0].intercept is not None)


def lane_of(problem: Problem, chain: tuple[Link, ...]) -> Lane | None:
    """
    Return the lane of a training, or None if it needs a step of its own.

    A large training has no lane, and neither has one whose numbers cannot be inputs of a common
    graph.
    """
    update = problem.update
    if problem.loss_weights or problem.objective.custom_terms or not is_small(problem):
        return None
    if update.max_grad_norm is not None or update.average or not update.tags.is_elementwise:
        return None

    rule = problem.rule()
    memory = rule.start(*problem.n_weights, problem.objective.dtype)
    step = StepGraph.of(problem, rule, memory, is_lane=True)

    # Among the numbers of the loss, only matrices, which have a row for each row of the batch, may
    # differ between the trainings of a step. The others are part of the key.
    fixed = tuple((name, a.tobytes()) for name, a in step.loss.parameters.items() if a.ndim < 2)
    return Lane((step.key, fixed), step, chain, rule, memory)


class JointStep:
    """
    The common step of trainings with equal keys, each with its own learning rate.

    Each training has one row in the arrays of the step.
    """

    def __init__(self, lanes: Sequence[Lane]):
        self._problem = lanes[0].step.problem
        self._lanes = lanes
        graph = self._problem.score_graph
        dtype = self._problem.objective.dtype
        n_columns = graph.n_features + lanes[0].n_ones
        self.batch: Any = HostBatch.empty(
            self._problem.batch_size, n_columns, graph.n_outputs, dtype
        )

        # For each weight in a row of this step: its place among the weights of one training.
        places = views(np.arange(sum(self._problem.n_weights)), self._problem.weights)
        self._order = np.concatenate([part.ravel() for part in parts_of(lanes[0].chain, places)])
        self._place = np.argsort(self._order)
        self._open(list(range(len(lanes))))
        members = [_Member(self, number, lane) for number, lane in enumerate(lanes)]
        self.lanes: list[BackendStep] = [
            BackendStep(lane.step.problem, member)
            for lane, member in zip(lanes, members, strict=True)
        ]

    def _open(self, numbers, states=None):
        """
        Make the session for some of the trainings.

        `states` are their states; None: initial ones.
        """
        lanes, n_lanes, dtype = (
            [self._lanes[number] for number in numbers],
            len(numbers),
            self.batch.X.dtype,
        )
        first = lanes[0].step
        stacked = {
            name: self._stacked([lane.step.states[name] for lane in lanes]) for name in first.states
        }
        wide = dataclasses.replace(self._problem, batch_size=n_lanes * self._problem.batch_size)
        loss = loss_program(wide, is_lane=True)

        parameters = {}
        for name, array in first.parameters.items():
            arrays = [lane.step.parameters[name] for lane in lanes]
            if name not in first.loss.parameters:
                parameters[name] = self._stacked(arrays)
            else:
                parameters[name] = np.concatenate(arrays) if array.ndim == 2 else array

        key = "joint step", lanes[0].key, n_lanes
        session = step_session(
            self._problem, key, lambda: _joint_model(lanes[0], loss, stacked, parameters)
        )
        self._eta = np.zeros((n_lanes, 1), dtype)
        self.gradient: np.ndarray = np.zeros_like(stacked[WEIGHTS])

        # The objective and the loss of each training.
        self.values: np.ndarray = np.zeros((2, n_lanes, 1), dtype)
        self.added: np.ndarray = np.zeros((2, n_lanes, 1))
        self._shares = np.zeros((2, n_lanes, 1))
        columns = (
            np.zeros((n_lanes, *array.shape), dtype)
            for array in (self.batch.target, self.batch.sample_weight)
        )
        self._target, self._sample_weight = columns
        self._factor = np.array([lane.factor for lane in lanes], dtype)[:, None, None]
        inputs = {
            self._problem.score_graph.input_name: self.batch.X,
            TARGET: self._target.reshape(-1, self._target.shape[-1]),
            SAMPLE_WEIGHT: self._sample_weight.reshape(-1, 1),
            ETA: self._eta,
            **parameters,
        }
        outputs = {OBJECTIVE: self.values[0], LOSS: self.values[1], GRADIENT: self.gradient}
        self._session = StepSession(session, inputs, outputs, states or stacked)
        self._numbers = numbers
        self.places: dict[int, int] = {number: place for place, number in enumerate(numbers)}

    def _stacked(self, arrays):
        """Return an array with one row per training, with weights in the order of this step."""
        rows = [np.atleast_1d(array).ravel() for array in arrays]
        return np.ascontiguousarray(
            [row[self._order] if row.size == self._order.size else row for row in rows]
        )

    def rates(self, etas: dict[int, float]) -> None:
        """
        Set the learning rates of the next steps, by number of the training.

        Trainings without a rate are over: their results are not used any more.
        """
        self._eta[:, 0] = [etas.get(number, 0.0) for number in self._numbers]

    def step(self, share: float) -> None:
        """Make one update of each training on the batch, a part `share` of the epoch."""
        np.copyto(self._target, self.batch.target)
        np.multiply(self.batch.sample_weight, self._factor, out=self._sample_weight)
        self._session.run()

        # The sums of an epoch are in float64.
        np.multiply(self.values, share, out=self._shares, dtype=np.float64)
        self.added += self._shares

    def keep(self, numbers: list[int]) -> None:
        """Let the next steps update only some of the trainings, if this is faster."""
        if 0 < len(numbers) <= len(self._numbers) // 2:
            places = [self.places[number] for number in numbers]
            self._open(
                numbers, {name: array[places] for name, array in self._session.state.items()}
            )

    def alone(self, number: int) -> BackendStep:
        """Return a separate step for one training, in its initial state."""
        return JointStep([self._lanes[number]]).lanes[0]

    def row(self, name: str, number: int) -> np.ndarray | None:
        """
        Return a copy of one training's array of the state, in the order of a separate step.

        Return None if no step changes the array.
        """
        if name not in self._session.state:
            return None
        return self._in_order(self._session.state[name], number)

    def last_gradient(self, number: int) -> np.ndarray:
        """Return a copy of one training's last gradient, in the order of a separate step."""
        return self._in_order(self.gradient, number)

    def _in_order(self, rows, number):
        row = rows[self.places[number]]
        return row[self._place] if row.size == self._place.size else row.copy()

    def put(self, name: str, number: int, values: np.ndarray) -> None:
        """Set one training's array of the state to values that `row` returned."""
        if name in self._session.state:
            row = self._session.state[name][self.places[number]]
            row[self._place if row.size == self._place.size else ...] = values


class _Member(Backend):
    """
    The `Backend` of one training in a common step. A call of `run` updates the other trainings,
    too.
    """

    batch: Any
    sums: Any

    def __init__(self, joint, number, lane):
        self._joint = joint
        self._number = number
        self._memory = lane.memory
        self.batch = joint.batch
        self.sums = self
        self.rule = lane.rule

    def run(self, eta, share):
        self._joint.rates({self._number: eta})
        self._joint.step(share)

    def last(self) -> float:
        return self._joint.values[0][self._joint.places[self._number], 0].item()

    def take(self) -> tuple[float, float]:
        added = self._joint.added[:, self._joint.places[self._number], 0]
        objective, loss = added.tolist()
        added[:] = 0.0
        return objective, loss

    def last_gradient(self):
        return self._joint.last_gradient(self._number)

    def is_finite(self):
        return bool(np.isfinite(self._joint.row(WEIGHTS, self._number)).all())

    def arrays(self):
        rows = {name: self._joint.row(state_name(name), self._number) for name in self._memory}
        memory = {
            name: array if rows[name] is None else rows[name]
            for name, array in self._memory.items()
        }
        return {"weights": self._joint.row(WEIGHTS, self._number), **memory}

    def load(self, arrays):
        for name, array in arrays.items():
            self._joint.put(WEIGHTS if name == "weights" else state_name(name), self._number, array)


def _joint_model(lane, loss, states, parameters):
    """Return the model of the common step."""
    problem = lane.step.problem
    graph = lane.step.problem.score_graph
    n_lanes = len(states[WEIGHTS])
    dtype = problem.objective.dtype
    n_rows = problem.batch_size
    fragment = Fragment(dtype)
    shapes = {
        f"skort_part{i}": part.shape for i, part in enumerate(parts_of(lane.chain, problem.weights))
    }
    scores = chain_graph(
        lane.chain, shapes, (graph.input_name, n_rows), graph.score_name, n_lanes, dtype
    )
    parts = list(shapes)
    fragment.constant("skort_sizes", [math.prod(shape) for shape in shapes.values()])
    fragment.node("Split", [WEIGHTS, "skort_sizes"], parts, axis=1)
    fragment.nodes.extend(scores.node)
    loss.write(fragment)
    sums = f"sums = ReduceSum(Reshape(losses, [{n_lanes}, -1]), [1], keepdims=1)"
    fragment.call(function_text("lane_sums (losses) => (sums)", sums), [LOSSES], [LOSS])
    gradients = add_gradients(fragment, scores, SCORE_GRADIENT, parts)
    fragment.node("Concat", list(gradients.values()), [gradient_of_loss(problem)], axis=1)
    lane.step.update.write(fragment)
    column = np.zeros((n_lanes, 1), dtype)
    batch = {
        graph.input_name: np.empty((n_rows, graph.n_features + lane.n_ones), dtype),
        TARGET: np.empty((n_lanes * n_rows, graph.n_outputs), dtype),
        SAMPLE_WEIGHT: np.empty((n_lanes * n_rows, 1), dtype),
    }
    inputs = infos({**batch, ETA: column, **states, **parameters})
    made = helper.make_graph(fragment.nodes, "joint_step", inputs, step_outputs(states, column))

    return pruned(build_model(made, fragment))


def parts_of(chain: tuple[Link, ...], arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """
    Return the weights of a model as the matrices that `chain_graph` takes, with a row per output.

    The coefficients and intercepts of the first layer are one matrix.
    """
    parts: list[np.ndarray] = []
    for k, link in enumerate(chain):
        coefficient = arrays[link.coefficient].T
        intercept = [] if link.intercept is None else [arrays[link.intercept].reshape(-1, 1)]
        parts += [np.hstack([coefficient, *intercept])] if k == 0 else [coefficient, *intercept]

    return parts


def chain_graph(
    chain: tuple[Link, ...],
    parts: Mapping[str, tuple[int, ...]],
    rows: tuple[str, int],
    score_name: str,
    n_lanes: int,
    dtype: DTypeLike,
) -> onnx.GraphProto:
    """
    Return the graph from X and the weights of all lanes to scores, (n_lanes * n_rows, n_outputs).

    `parts` has the shapes of the matrices of `parts_of`, by the names of the inputs.
    """
    # The first layer is one product for all models: H = f(V^T X^T), where V^T has the transposed
    # coefficients of all models, one below the other. X ends with a column of ones for intercepts.
    # A later layer of the model c is f(V_c'^T H_c + b_c').
    (X, n_rows) = rows
    given = iter(enumerate(parts.values()))

    result = "X"
    for k, link in enumerate(chain):
        i, (n_out, n_in) = next(given)
        if k == 0:
            result = f"Gemm(Reshape(part{i}, [{n_lanes * n_out}, {n_in}]), X, transB=1)"
        else:
            result = f"Reshape({result}, [{n_lanes}, {n_in}, {n_rows}])" if k == 1 else result
            result = f"MatMul(Reshape(part{i}, [{n_lanes}, {n_out}, {n_in}]), {result})"
            if link.intercept is not None:
                i, _ = next(given)
                result = f"{result} + Reshape(part{i}, [{n_lanes}, {n_out}, 1])"

        for activation in link.activations:
            result = f"{activation}({result})"

    if n_out > 1:
        result = f"Transpose(Reshape({result}, [{n_lanes}, {n_out}, {n_rows}]), perm=[0, 2, 1])"
    signature = f"scores (X, {', '.join(f'part{i}' for i in range(len(parts)))}) => (scores)"
    fragment = Fragment(dtype)
    source = function_text(signature, f"scores = Reshape({result}, [{n_lanes * n_rows}, {n_out}])")
    fragment.call(source, [X, *parts], [score_name])
    n_columns = next(iter(parts.values()))[1]
    shapes = {X: (n_rows, n_columns)} | {
        name: (n_lanes, math.prod(shape)) for name, shape in parts.items()
    }
    inputs = infos({name: np.empty(shape, dtype) for name, shape in shapes.items()})
    outputs = infos({score_name: np.empty((n_lanes * n_rows, n_out), dtype)})

    return build_model(helper.make_graph(fragment.nodes, "lanes", inputs, outputs), fragment).graph
