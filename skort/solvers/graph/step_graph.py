"""
The whole step as one ONNX graph of standard operators.

It contains forward, loss, backward, penalty, clipping and update.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from skort.common.formulas import function_text
from skort.common.node_phases import mark_rest, marked
from skort.common.onnx_text import Fragment, build_model, domains_of, infos, onnx_dtype, pruned
from skort.common.parametrized_graph import Program
from skort.graphs.gradient.forward_backward import GRADIENT, add_model, packed_text, unpacked_text
from skort.graphs.gradient.reverse import add_gradients
from skort.objective.loss import source_key
from skort.objective.objective import LOSS, OBJECTIVE, SCORE_GRADIENT, TARGET
from skort.optim.update import UpdateRule
from skort.runtime.cache import COMPILED
from skort.runtime.sessions import next_name
from skort.solvers.base import Problem, flat
from skort.solvers.derived_gradients import (
    add_custom_gradients,
    add_score_gradient,
    custom_gradient_name,
)

ETA = "skort_learning_rate"
WEIGHTS = "skort_weights"
#: An input on a device: the learning rate, and the batch's share of the epoch.
CONTROLS = "skort_controls"
#: A state on a device: the sums of the objective and the loss.
SUMS = "skort_sums"

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

_CONTROLLED = """
eta = Cast(Squeeze(Slice(controls, [0], [1]), [0]), to=%d)
share = Slice(controls, [1], [2])
"""
_ADDED = function_text(
    "added (sums, share, objective, loss) => (next_sums)",
    (
        "next_sums = sums + share * Cast(Concat(Reshape(objective, [1]), Reshape(loss, "
        "[1]), axis=0), to=11)"
    ),
)

_L1 = "skort_l1"
_L2 = "skort_l2"
# The sum over all weights: False, for one training; True, for each of several trainings.
_SUM = {False: "ReduceSum(terms, keepdims=0)", True: "ReduceSum(terms, [1], keepdims=1)"}


def state_name(name: str) -> str:
    """Return the input name of an array of the optimizer's state."""
    return f"skort_{name}"


def rows_name(name: str) -> str:
    """Return the name of the device's input with all rows of the step's input `name`."""
    return f"skort_all/{name}"


def indices_name(name: str) -> str:
    """Return the name of the device's input with the row numbers of a batch of `name`."""
    return f"skort_rows/{name}"


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

    def device_model(self) -> onnx.ModelProto:
        """
        Return the graph of the step on a device.

        It takes the batch out of all rows by number, splits the vector of weights into its parts,
        and adds up the objectives.
        """
        step = self.model()
        dtype = self.problem.objective.dtype
        double = onnx.TensorProto.DOUBLE
        fragment = Fragment(dtype)
        tables = []
        inputs = {i.name: i for i in step.graph.input}

        for name in (self.problem.score_graph.input_name, TARGET):
            batch_size, n_columns = (
                d.dim_value for d in inputs.pop(name).type.tensor_type.shape.dim
            )
            tables.append(
                helper.make_tensor_value_info(rows_name(name), onnx_dtype(dtype), [None, n_columns])
            )
            tables.append(
                helper.make_tensor_value_info(
                    indices_name(name), onnx.TensorProto.INT64, [batch_size]
                )
            )
            fragment.node("Gather", [rows_name(name), indices_name(name)], [name], axis=0)

        inputs.pop(ETA, None)
        controlled = function_text(
            "controlled (controls) => (eta, share)", _CONTROLLED % onnx_dtype(dtype)
        )
        fragment.call(controlled, [CONTROLS], [ETA, "skort_share"])
        fragment.call(unpacked_text(self.problem.weights), [WEIGHTS], list(self.problem.weights))
        fragment.nodes.extend(step.graph.node)
        fragment.call(_ADDED, [SUMS, "skort_share", OBJECTIVE, LOSS], [next_name(SUMS)])
        constants = {name: array for name, array in self.parameters.items() if name in inputs}
        given = [i for name, i in inputs.items() if name not in {*constants, *self.problem.weights}]
        pairs = [helper.make_tensor_value_info(name, double, [2]) for name in (CONTROLS, SUMS)]
        outputs = [*step.graph.output, helper.make_tensor_value_info(next_name(SUMS), double, [2])]
        values = [numpy_helper.from_array(array, name) for name, array in constants.items()]
        initializers = [*step.graph.initializer, *values]
        graph = helper.make_graph(
            fragment.nodes, "step", [*tables, *given, *pairs], outputs, initializers
        )

        return build_model(graph, fragment, domains=domains_of(step))


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
