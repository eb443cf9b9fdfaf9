"""
Solver "graph": the whole step as one ONNX graph of standard operators, and the backend that runs
it. The graph contains forward, loss, backward, penalty, clipping and update.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from skort.common.formulas import function_text
from skort.common.node_phases import mark_rest, marked
from skort.common.onnx_text import Fragment, build_model, domains_of, infos, pruned
from skort.common.parametrized_graph import Program
from skort.graphs.gradient.forward_backward import GRADIENT, add_model, packed_text, unpacked_text
from skort.graphs.gradient.reverse import add_gradients
from skort.objective.loss import source_key
from skort.objective.objective import LOSS, OBJECTIVE, SCORE_GRADIENT
from skort.optim.update import Update, UpdateRule
from skort.runtime.cache import COMPILED
from skort.runtime.installed import load
from skort.runtime.sessions import StepSession, next_name
from skort.solvers.base import HostBackend, Problem, flat, step_session, views
from skort.solvers.derived_gradients import (
    add_custom_gradients,
    add_score_gradient,
    custom_gradient_name,
)

ETA = "skort_learning_rate"
WEIGHTS = "skort_weights"
#: The weighted losses of the rows in a step of several trainings.
LOSSES = "skort_losses_of_rows"

_LOSS_GRADIENT = "skort_loss_gradient"
_DOCUMENTATION = f"""\
One step of a training by skort. Inputs of the next step are the outputs with "_next" behind their names; weights by
their names are the parts of {WEIGHTS}. The graph "start" gives all that the first step reads beside a batch and a rate.

After a fit with a `standardization_`, whose numbers these are, the rows of X are (X - mean) / scale: the first layer of
the model has the weights W = V / scale and c - mean W, from those of the graph, V and c. A regressor's target is
(y - target_mean) / target_scale, and its score is that of the model minus target_mean, divided by target_scale.
"""

_L1 = "skort_l1"
_L2 = "skort_l2"
# The sum over all weights: False, for one training; True, for each of several trainings.
_SUM = {False: "ReduceSum(terms, keepdims=0)", True: "ReduceSum(terms, [1], keepdims=1)"}


class GraphBackend(HostBackend):
    """
    Steps of one InferenceSession.

    One graph contains forward, backward, penalty, clipping and update.
    """

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self.rule: UpdateRule = problem.rule()
        # Arrays of this state that an update does not change are constant inputs.
        self._memory = self.rule.start(*problem.n_weights, problem.objective.dtype)
        self._step = StepGraph.of(problem, self.rule, self._memory)
        self._open()

    def _open(self):
        problem = self._problem
        step = self._step
        self._eta, self._objective, loss = (np.zeros((), problem.objective.dtype) for _ in range(3))
        self._loss = loss.item
        session = step_session(problem, ("step", *step.key), step.model)
        self.gradient: np.ndarray = np.zeros_like(step.states[WEIGHTS])
        inputs = {**self.inputs, ETA: self._eta, **step.parameters}
        outputs = {LOSS: loss, OBJECTIVE: self._objective, GRADIENT: self.gradient}

        # The session reads each weight in place, as a view of the vector.
        self.session: StepSession = StepSession(
            session,
            inputs,
            outputs,
            step.states,
            lambda states: views(states[WEIGHTS], problem.weights),
        )

    def run(self, eta: float, share: float) -> None:
        """Make one update with learning rate `eta` on the batch, a part `share` of the epoch."""
        self._eta[...] = eta
        self.session.run()
        self.sums.add(share, self._objective.item(), self._loss())

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the weights and the rule's state, copied from a device if they are there."""
        current = self.session.state
        device = self._problem.device
        memory = {
            name: current.get(state_name(name), array) for name, array in self._memory.items()
        }
        arrays = {"weights": current[WEIGHTS], **memory}

        return {
            name: array if isinstance(array, np.ndarray) else device.get(array)
            for name, array in arrays.items()
        }

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Overwrite the weights and the arrays of the state that a step changes."""
        current = self.session.state
        device = self._problem.device

        for name, array in arrays.items():
            input_name = WEIGHTS if name == "weights" else state_name(name)
            if input_name in current:
                device.fill(current[input_name], array)

    def training_graphs(self) -> dict[str, onnx.ModelProto]:
        """
        Return the graphs of the whole step, of its inputs, and of the parts of the weights.

        "start" has the inputs of the next step besides the batch and the learning rate.
        """
        step = self._step.model()
        arrays = self.arrays()
        states = {
            WEIGHTS if name == "weights" else state_name(name): array
            for name, array in arrays.items()
        }
        weights = views(arrays["weights"], self._problem.weights)
        start = constants_graph(step, {**states, **weights, **self._step.parameters})

        return {"step": step, "start": start, "split": split_graph(weights)}


def state_name(name: str) -> str:
    """Return the input name of an array of the optimizer's state."""
    return f"skort_{name}"


@dataclass(frozen=True, eq=False)
class StepGraph:
    """A step whose numbers are inputs. Steps with equal keys have the same graph."""

    problem: Problem
    loss: Program
    update: Program
    #: The initial values of the inputs that each step changes.
    states: dict[str, np.ndarray]
    #: The values of the inputs that stay.
    parameters: dict[str, np.ndarray]

    @classmethod
    def of(
        cls,
        problem: Problem,
        rule: UpdateRule,
        memory: Mapping[str, np.ndarray],
        *,
        is_lane: bool = False,
    ) -> "StepGraph":
        """
        Return the step of a problem. `memory` is the initial state of its rule.

        With `is_lane`, the problem is one of several trainings with a common step.
        """
        loss = loss_program(problem, is_lane=is_lane)
        update, changed = _update_program(problem, rule, tuple(memory), is_lane)
        states = {WEIGHTS: flat(problem.weights)} | {
            state_name(name): memory[name] for name in changed
        }
        fixed = {state_name(name): array for name, array in memory.items() if name not in changed}
        strengths = {_L1: problem.terms.l1, _L2: problem.terms.l2}
        parameters = {
            **loss.parameters,
            **update.parameters,
            **fixed,
            **problem.score_graph.frozen_arrays,
        }
        parameters |= {name: array for name, array in strengths.items() if array is not None}

        return cls(problem, loss, update, states, parameters)

    @property
    def key(self) -> tuple[Any, ...]:
        """A hashable value of everything that the graph depends on."""
        shapes = {**self.states, **self.parameters}
        described = tuple((name, a.dtype.str, a.shape) for name, a in shapes.items())
        return self.problem.structure, self.loss.structure, self.update.structure, described

    def model(self) -> onnx.ModelProto:
        """
        Return the graph of the step.

        It reads the weights twice: as the vector of all weights, and as named parts of the vector.
        """
        problem = self.problem
        scalar = np.zeros((), self.problem.objective.dtype)
        fragment = Fragment(scalar.dtype)
        model = add_model(fragment, problem.score_graph, problem.batch_size)
        self.loss.write(fragment)
        with marked(fragment, "backward"):
            _add_gradient(fragment, problem, model.graph)
        self.update.write(fragment)
        X, *weights = model.graph.input
        batch = [X, *problem.objective.inputs(problem.batch_size), *infos({ETA: scalar})]
        given = {i.name for i in weights}
        others = {**problem.loss_weights, **self.parameters}
        inputs = [
            *batch,
            *infos(self.states),
            *weights,
            *infos({n: a for n, a in others.items() if n not in given}),
        ]
        outputs = step_outputs(self.states, scalar)
        graph = helper.make_graph(fragment.nodes, "step", inputs, outputs, model.graph.initializer)
        step = pruned(build_model(graph, fragment, domains=domains_of(model)), drop_inputs=True)
        step.doc_string = _DOCUMENTATION

        return mark_rest(step)


def step_outputs(states: Mapping[str, np.ndarray], value: np.ndarray) -> list[onnx.ValueInfoProto]:
    """Return the outputs of a step. `value` has the shape of the objective."""
    next_states = {next_name(name): array for name, array in states.items()}
    return infos({LOSS: value, OBJECTIVE: value, GRADIENT: states[WEIGHTS], **next_states})


def constants_graph(model: onnx.ModelProto, arrays: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """Return a model without inputs. Its outputs are the arrays that are inputs of `model`."""
    given = {i.name: arrays[i.name] for i in model.graph.input if i.name in arrays}
    values = [numpy_helper.from_array(array, f"{name}_value") for name, array in given.items()]
    nodes = [helper.make_node("Identity", [f"{name}_value"], [name]) for name in given]
    return build_model(helper.make_graph(nodes, "start", [], infos(given), values))


def split_graph(weights: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """Return the model from the vector of weights to the weights by name: a step reads both."""
    fragment = Fragment(next(iter(weights.values())).dtype)
    fragment.call(unpacked_text(weights), [WEIGHTS], list(weights))
    return build_model(
        helper.make_graph(
            fragment.nodes, "split", infos({WEIGHTS: flat(dict(weights))}), infos(weights)
        ),
        fragment,
    )


def loss_program(problem: Problem, *, is_lane: bool = False) -> Program:
    """
    Return the part of a step with the loss, its gradient, and the gradient of a custom penalty.

    With `is_lane`, it computes the losses of the rows instead of their sum.
    """
    objective, score = problem.objective, problem.score_graph.score_name

    def make():
        program = Program(objective.dtype, problem.batch_size, "loss")
        with marked(program, "loss"):
            (objective.add_losses if is_lane else objective.add_loss)(
                program, score, LOSSES if is_lane else LOSS
            )

        with marked(program, "backward"):
            add_score_gradient(program, objective, score, problem.batch_size)
        with marked(program, "penalty"):
            add_custom_gradients(program, objective, problem.weights)
        return program

    if objective.custom_terms:
        return make()

    key = *objective.loss_key, objective.gradient_source, score, problem.batch_size, is_lane
    return COMPILED.get(("loss", *key), make)


def _update_program(problem, rule, memory, is_lane):
    """Return the part with penalty and update, and the names of the state arrays that change."""
    objective, terms = problem.objective, problem.terms

    def make():
        program = Program(objective.dtype, problem.batch_size, "update")
        with marked(program, "penalty"):
            _add_penalty(program, objective.add_custom_value(program, LOSS), terms, is_lane)
        with marked(program, "update"):
            names = {"weights": WEIGHTS, "gradient": GRADIENT, "eta": ETA} | {
                name: state_name(name) for name in memory
            }
            results = rule.add_nodes(program, names)
            for name in results.keys() & names.keys():
                program.rename(results[name], next_name(names[name]))

        return program, [name for name in memory if name in results]

    if objective.custom_terms or rule.transformations:
        return make()

    has_terms = terms.l1 is not None, terms.l2 is not None
    source = source_key(problem.update.optimizer.onnx_update())
    return COMPILED.get(
        ("update", source, memory, np.dtype(objective.dtype).str, has_terms, is_lane), make
    )


def gradient_of_loss(problem: Problem) -> str:
    """Return the name of the gradient of the loss by all weights, before an l2 term is added."""
    return GRADIENT if problem.terms.l2 is None else _LOSS_GRADIENT


def _add_gradient(fragment, problem, graph):
    """
    Add the backward pass, from the gradient by the score to the vector of gradients by all weights.

    The gradients of a custom penalty are added to those of the loss.
    """
    gradients = add_gradients(fragment, graph, SCORE_GRADIENT, problem.score_graph.trainable)
    gradients |= problem.objective.weight_gradients

    for name in problem.objective.custom_terms:
        total = f"skort_{name}_gradient"
        fragment.node("Add", [gradients[name], custom_gradient_name(name)], [total])
        gradients[name] = total

    names = [gradients[name] for name in problem.weights]
    fragment.call(packed_text(problem.weights), names, [gradient_of_loss(problem)])


def _add_penalty(writer, value, terms, is_lane):
    """Add the l1 and l2 terms to the objective `value`, and the gradient of the l2 term."""
    if terms.l1 is not None:
        formula = f"terms = Abs(weights) * strengths\npenalty = {_SUM[is_lane]}"
        source = function_text("l1_by_weight (weights, strengths) => (penalty)", formula)
        writer.call(source, [WEIGHTS, _L1], ["skort_l1_penalty"])
        writer.node("Add", [value, "skort_l1_penalty"], ["skort_l1_objective"])
        value = "skort_l1_objective"

    if terms.l2 is not None:
        formula = (
            "gradient = strengths * weights\n"
            "terms = gradient * weights\n"
            f"penalty = 0.5 * {_SUM[is_lane]}"
        )
        source = function_text("l2_by_weight (weights, strengths) => (penalty, gradient)", formula)
        writer.call(source, [WEIGHTS, _L2], ["skort_l2_penalty", "skort_l2_gradient"])
        writer.node("Add", [value, "skort_l2_penalty"], ["skort_l2_objective"])
        writer.node("Add", [_LOSS_GRADIENT, "skort_l2_gradient"], [GRADIENT])
        value = "skort_l2_objective"

    writer.node("Identity", [value], [OBJECTIVE])


def needs_onnx_update(solver: str, dtype: np.dtype, update: Update) -> None:
    """Raise an error for an optimizer without ONNX text, or if no ONNX Runtime is installed."""
    load()
    if not _is_onnx(update.optimizer):
        raise ValueError(
            f'solver="{solver}" needs an optimizer with a method onnx_update, got '
            f'optimizer={update.optimizer!r}. Use solver="agent", or write its own update as ONNX '
            "text, see skort.optimizers.OnnxOptimizer."
        )


def _is_onnx(optimizer):
    """
    Return whether the ONNX text of an optimizer describes its `update`.

    It does not if a subclass has replaced `update` or `step_length`, but not the ONNX text.
    """
    for cls in type(optimizer).__mro__:
        if "onnx_update" in vars(cls):
            return True
        if "update" in vars(cls) or "step_length" in vars(cls):
            return False

    return False
