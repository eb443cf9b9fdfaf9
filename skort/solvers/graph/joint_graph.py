"""One step of several trainings of the same structure, as one graph: their scores are those of one product a layer."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import DTypeLike
from onnx import helper, numpy_helper

from skort.common.model_builder import build_model
from skort.common.onnx_text import Fragment, infos
from skort.common.parametrized_graph import Program
from skort.graphs.chain import Link
from skort.graphs.gradient.applied import int64s
from skort.graphs.gradient.forward_backward import needed
from skort.graphs.gradient.packing import GRADIENT
from skort.graphs.gradient.reverse import add_gradients
from skort.objective.objective import LOSS, OBJECTIVE, SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET
from skort.runtime.cache import COMPILED
from skort.runtime.sessions import compiled
from skort.solvers.base import Problem, is_small
from skort.solvers.graph.step_graph import ETA, WEIGHTS, add_rule, add_score_gradient, next_name, state_name

_LOSSES, _LOSS_GRADIENT = "skort_lane_losses", "skort_lane_loss_gradient"
_L1, _L2 = "skort_l1", "skort_l2"

_PARTS = """\
parts (weights) => (%s) {
    sizes = Constant <value = %s> ()
    %s = Split <axis = 1> (weights, sizes)
}"""
_PACKED = """\
packed (%s) => (gradient) {
    gradient = Concat <axis = 1> (%s)
}"""
_LANE_SUMS = """\
lane_sums (losses) => (sums) {
    shape = Constant <value = int64[2] {%d, -1}> ()
    last = Constant <value = int64[1] {1}> ()
    by_lane = Reshape (losses, shape)
    sums = ReduceSum <keepdims = 1> (by_lane, last)
}"""
_L1_TERM = """\
lane_l1 (weights, strengths, value) => (sum) {
    last = Constant <value = int64[1] {1}> ()
    sizes = Abs (weights)
    terms = Mul (sizes, strengths)
    penalty = ReduceSum <keepdims = 1> (terms, last)
    sum = Add (value, penalty)
}"""
_L2_TERM = """\
lane_l2 (weights, strengths, value) => (sum, gradient) {
    half = Constant <value = float {0.5}> ()
    last = Constant <value = int64[1] {1}> ()
    gradient = Mul (strengths, weights)
    products = Mul (gradient, weights)
    squares = ReduceSum <keepdims = 1> (products, last)
    penalty = Mul (half, squares)
    sum = Add (value, penalty)
}"""


@dataclass(frozen=True, eq=False)
class MemberTerms:
    """What of one training goes into a step of several."""

    #: All that trainings of one step have in common beside the model and the size of a batch.
    key: tuple[Any, ...]
    problem: Problem
    chain: tuple[Link, ...]
    loss: Program
    update: Program
    #: The state of the rule, and what the update changes of it.
    memory: dict[str, np.ndarray]
    changed: tuple[str, ...]

    @property
    def n_ones(self) -> int:
        """The number of columns of ones, 0 or 1, that X ends with: for the intercepts of the first layer."""
        return int(self.chain[0].intercept is not None)


def member_terms(problem: Problem, chain: tuple[Link, ...]) -> MemberTerms | None:
    """
    Return what of a training goes into a step of several; None where it cannot be part of one.

    It can be where the model is small, the loss has no weights of its own, the penalty is one of strengths, and the
    update is an optimizer of `skort.optimizers`, without clipping, weight decay or averaging.
    """
    update = problem.update
    if problem.loss_weights or problem.objective.custom_terms or not is_small(problem):
        return None
    if not (update.is_plain and update.tags.is_elementwise):
        return None
    loss, rule_program = (Program(problem.objective.dtype, problem.batch_size, name) for name in ("loss", "update"))
    _add_loss(loss, problem)
    rule = problem.rule()
    memory = rule.start(*problem.n_weights(), problem.objective.dtype)
    changed = tuple(add_rule(rule_program, rule, memory))
    # Only numbers that are repeated for every row, or are one for all weights, can be a training's own.
    fixed = tuple((name, a.tobytes()) for name, a in loss.parameters.items() if a.ndim < 2)
    shapes = tuple((name, a.dtype.str, a.shape) for name, a in memory.items())
    has_terms = problem.terms.l1 is not None, problem.terms.l2 is not None
    key = loss.structure, fixed, rule_program.structure, shapes, changed, has_terms
    return MemberTerms(key, problem, chain, loss, rule_program, memory, changed)


def _add_loss(writer, problem):
    """Add the weighted losses of the rows, and their gradient by the score."""
    problem.objective.add_losses(writer, problem.score_graph.score_name, _LOSSES)
    add_score_gradient(writer, problem)


@dataclass(frozen=True, eq=False)
class JointGraph:
    """
    A step of several trainings, and what of them goes into it.

    The weights of one training are a row, each coefficient as its transpose; what is one number of each training is a
    column. A row of weights in the order of a step of its own, taken in `order`, is that of this step.
    """

    session: Any
    states: dict[str, np.ndarray]
    parameters: dict[str, np.ndarray]
    order: np.ndarray


def joint_graph(lanes: list[MemberTerms]) -> JointGraph:
    """Return the step of some trainings of one model that have the same key."""
    first, n_lanes = lanes[0], len(lanes)
    problem, order = first.problem, _order(first)

    def stacked(arrays):
        """Return an array with a row for each training."""
        rows = [np.atleast_1d(array).ravel() for array in arrays]
        return np.ascontiguousarray([row[order] if row.size == order.size else row for row in rows])

    weights = [np.concatenate([w.ravel() for w in lane.problem.weights.values()]) for lane in lanes]
    states = {WEIGHTS: stacked(weights)}
    memory = {name: stacked([lane.memory[name] for lane in lanes]) for name in first.memory}
    states |= {state_name(name): memory[name] for name in first.changed}
    fixed = {state_name(name): array for name, array in memory.items() if name not in first.changed}
    update = {name: stacked([lane.update.parameters[name] for lane in lanes]) for name in first.update.parameters}
    strengths = {_L1: [lane.problem.terms.l1 for lane in lanes], _L2: [lane.problem.terms.l2 for lane in lanes]}
    penalty = {name: stacked(rows) for name, rows in strengths.items() if rows[0] is not None}
    wide = dataclasses.replace(problem, batch_size=n_lanes * problem.batch_size)
    loss = Program(problem.objective.dtype, wide.batch_size, "loss")
    _add_loss(loss, wide)
    rows = {
        name: np.concatenate([lane.loss.parameters[name] for lane in lanes]) if array.ndim == 2 else array
        for name, array in first.loss.parameters.items()
    }
    parameters = {**rows, **update, **penalty, **fixed}

    def make():
        graph = _lane_graph(first, loss, n_lanes, states, parameters)
        return compiled(graph.SerializeToString(), problem.device)

    return JointGraph(
        COMPILED.get(("joint step", problem.structure, first.key, n_lanes), make), states, parameters, order
    )


def _order(lane):
    """Return where each weight of a row of this step is in the weights of one training."""
    indices, start = {}, 0
    for name, array in lane.problem.weights.items():
        indices[name] = np.arange(start, start + array.size).reshape(array.shape)
        start += array.size
    return np.concatenate([part.ravel() for part in parts_of(lane.chain, indices)])


def _lane_graph(lane, loss, n_lanes, states, parameters):
    """Return the model of a step."""
    problem, dtype = lane.problem, lane.problem.objective.dtype
    fragment, graph = Fragment(dtype), problem.score_graph
    shapes = {f"skort_part{i}": part.shape for i, part in enumerate(parts_of(lane.chain, problem.weights))}
    rows = graph.input_name, problem.batch_size
    scores = chain_graph(lane.chain, shapes, rows, graph.score_name, n_lanes, dtype)
    parts, names = list(shapes), ", ".join(f"part{i}" for i in range(len(shapes)))
    sizes = int64s(math.prod(shape) for shape in shapes.values())
    fragment.call(_PARTS % (names, sizes, names), [WEIGHTS], parts)
    fragment.nodes.extend(scores.node)
    loss.write(fragment)
    fragment.call(_LANE_SUMS % n_lanes, [_LOSSES], [LOSS])
    gradients = add_gradients(fragment, scores, SCORE_GRADIENT, parts)
    fragment.call(_PACKED % (names, names), [gradients[name] for name in parts], [_LOSS_GRADIENT])
    _add_penalty(fragment, problem)
    lane.update.write(fragment)
    return needed(_model(fragment, lane, states, parameters))


def _add_penalty(fragment, problem):
    """Add the objective of each training, and its gradient, but for that of the l1 term."""
    value, gradient = LOSS, _LOSS_GRADIENT
    if problem.terms.l1 is not None:
        fragment.call(_L1_TERM, [WEIGHTS, _L1, value], ["skort_l1_objective"])
        value = "skort_l1_objective"
    if problem.terms.l2 is not None:
        fragment.call(_L2_TERM, [WEIGHTS, _L2, value], ["skort_l2_objective", "skort_l2_gradient"])
        fragment.node("Add", [gradient, "skort_l2_gradient"], [GRADIENT])
        value = "skort_l2_objective"
    else:
        fragment.node("Identity", [gradient], [GRADIENT])
    fragment.node("Identity", [value], [OBJECTIVE])


def _model(fragment, lane, states, parameters):
    """Return the nodes of a step as a model."""
    graph, dtype, n_lanes = lane.problem.score_graph, lane.problem.objective.dtype, len(states[WEIGHTS])
    column, n_rows = np.zeros((n_lanes, 1), dtype), lane.problem.batch_size
    batch = {
        graph.input_name: np.empty((n_rows, graph.n_features + lane.n_ones), dtype),
        TARGET: np.empty((n_lanes * n_rows, graph.n_outputs), dtype),
        SAMPLE_WEIGHT: np.empty((n_lanes * n_rows, 1), dtype),
    }
    inputs = infos({**batch, ETA: column, **states, **parameters})
    outputs = {LOSS: column, OBJECTIVE: column, GRADIENT: states[WEIGHTS]}
    outputs |= {next_name(name): array for name, array in states.items()}
    return build_model(helper.make_graph(fragment.nodes, "lanes_step", inputs, infos(outputs)), fragment)


def parts_of(chain: tuple[Link, ...], arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return the weights of a model as `chain_graph` takes them: a row for each output, the first layer one matrix."""
    parts: list[np.ndarray] = []
    for k, link in enumerate(chain):
        coefficient = arrays[link.coefficient].T
        intercept = [] if link.intercept is None else [arrays[link.intercept].reshape(-1, 1)]
        parts += [np.hstack([coefficient, *intercept])] if k == 0 else [coefficient, *intercept]
    return parts


class _Nodes:
    """The nodes of a graph, each with a name of its own for its result."""

    def __init__(self):
        self.all: list[onnx.NodeProto] = []

    def add(self, op_type, inputs, result=None, **attributes):
        """Add a node; return the name of its result."""
        result = result or f"skort_lanes/{len(self.all)}"
        self.all.append(helper.make_node(op_type, inputs, [result], **attributes))
        return result

    def reshape(self, name, shape, result=None):
        """Add the nodes that give a result another shape; return its name."""
        value = self.add("Constant", [], value=numpy_helper.from_array(np.array(shape, np.int64)))
        return self.add("Reshape", [name, value], result)


def chain_graph(
    chain: tuple[Link, ...],
    parts: Mapping[str, tuple[int, ...]],
    rows: tuple[str, int],
    score_name: str,
    n_lanes: int,
    dtype: DTypeLike,
) -> onnx.GraphProto:
    r"""
    Return the function from X and the weights of models to scores of shape (n_lanes * n_rows, n_outputs).

    .. math:: H = f(V^T X^T), \qquad H_c' = f(V_c'^T H_c + b_c')

    The first product is one for all models, whose transposed coefficients :math:`V_c` are one below the other; X ends
    with a column of ones for intercepts. `parts` are the shapes of `parts_of` one model, by their names as inputs.
    """
    nodes, (X, n_rows), given = _Nodes(), rows, iter(parts.items())
    result = X
    for k, link in enumerate(chain):
        name, (n_out, n_in) = next(given)
        if k == 0:
            result = nodes.add("Gemm", [nodes.reshape(name, (n_lanes * n_out, n_in)), X], transB=1)
        else:
            result = nodes.reshape(result, (n_lanes, n_in, n_rows)) if k == 1 else result
            result = nodes.add("MatMul", [nodes.reshape(name, (n_lanes, n_out, n_in)), result])
            if link.intercept is not None:
                name, _ = next(given)
                result = nodes.add("Add", [result, nodes.reshape(name, (n_lanes, n_out, 1))])
        for activation in link.activations:
            result = nodes.add(activation, [result])
    if n_out > 1:
        result = nodes.reshape(result, (n_lanes, n_out, n_rows))
        result = nodes.add("Transpose", [result], perm=[0, 2, 1])
    nodes.reshape(result, (n_lanes * n_rows, n_out), score_name)
    n_columns = next(iter(parts.values()))[1]
    shapes = {X: (n_rows, n_columns)} | {name: (n_lanes, int(np.prod(shape))) for name, shape in parts.items()}
    return helper.make_graph(
        nodes.all,
        "lanes",
        infos({name: np.empty(shape, dtype) for name, shape in shapes.items()}),
        infos({score_name: np.empty((n_lanes * n_rows, n_out), dtype)}),
    )
