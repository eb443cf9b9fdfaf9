"""The whole step as one ONNX graph of standard operators: forward, loss, backward, penalty, clipping, update."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from skort.common.model_builder import build_model, domains_of
from skort.common.node_phases import mark_rest, marked
from skort.common.onnx_text import Fragment, infos, read_names
from skort.graphs.gradient.forward_backward import add_model, needed
from skort.graphs.gradient.packing import GRADIENT, packed_text, unpacked_text
from skort.graphs.gradient.reverse import add_gradients
from skort.graphs.standardized import INVERSE_SCALE, MEAN
from skort.objective.objective import LOSS, OBJECTIVE, SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET
from skort.objective.penalties import l1_text, l2_vector_text
from skort.solvers.flat_weights import flat
from skort.solvers.loss_gradient import ruled_score_gradient, score_gradient
from skort.solvers.penalty_gradient import add_custom_gradients, custom_gradient_name

__all__ = [
    "ETA",
    "GRADIENT",
    "WEIGHTS",
    "add_loss",
    "add_rule",
    "add_score_gradient",
    "add_update",
    "next_name",
    "read_inputs_only",
    "shared_step_graph",
    "start_graph",
    "state_name",
    "states_of",
    "step_graph",
]

ETA = "skort_learning_rate"
WEIGHTS = "skort_weights"
_LOSS_GRADIENT = "skort_loss_gradient"
_DOCUMENTATION = f"""\
One step of a training by skort. Inputs of the next step are the outputs with "_next" behind their names.

A graph with the constant {INVERSE_SCALE} trains the weights V and c of standardized columns of X: the first layer has
the weights W = V * {INVERSE_SCALE} and, with the constant {MEAN}, c - {MEAN} W. A regressor's target is then
(y - target_mean) / target_scale, with the numbers of `standardization_`, and its score is that of the model minus
target_mean, divided by target_scale.
"""


def state_name(name):
    """Return the name of the input that is an array of the optimizer's state."""
    return f"skort_{name}"


def next_name(name):
    """Return the name of the output that the next step takes as its input `name`."""
    return f"{name}_next"


def step_graph(problem, memory):
    r"""
    Return one step of a training as a model.

    Its inputs are a batch, the learning rate, the weights as one vector :math:`w` and what the optimizer remembers; its
    outputs the loss, the objective and its gradient, and the weights and the optimizer's memory after the step. With
    the strengths b of the l2 term of each weight

    .. math:: g = \frac{\partial loss}{\partial w} + b \odot w, \quad w \leftarrow rule(w, g, \eta)

    Parameters
    ----------
    problem : Problem
    memory : dict of str to ndarray
        The state of `problem.rule()`. Arrays that an update does not change become constants.

    Returns
    -------
    model : onnx.ModelProto
        Every node is marked with its phase, see `skort.common.node_phases`.
    """
    fragment, weights = Fragment(problem.objective.dtype), problem.weights
    model = problem.score_graph.with_batch_size(problem.batch_size)
    fragment.call(unpacked_text(weights), [WEIGHTS], list(weights))
    fragment.nodes.extend(model.graph.node)
    add_loss(fragment, problem)
    with marked(fragment, "backward"):
        _add_gradient(fragment, problem, model.graph)
    changed = add_update(fragment, problem, problem.rule(), memory)
    initializers = [i for i in model.graph.initializer if i.name not in weights]
    initializers += [numpy_helper.from_array(a, state_name(n)) for n, a in memory.items() if n not in changed]
    states = states_of(problem, memory, changed)
    step = needed(_step_model(fragment, problem, model, states, infos(states), initializers))
    step.doc_string = _DOCUMENTATION
    return mark_rest(step)


def shared_step_graph(problem, states, parameters, add_loss, add_update):
    """
    Return the model of a step that serves every problem of the same structure.

    Parameters
    ----------
    problem : Problem
        Of this structure: none of its numbers gets into the model.
    states : dict of str to ndarray
        What the next step takes from this one, by the names of the inputs.
    parameters : dict of str to ndarray
        What no step changes: further inputs.
    add_loss, add_update : callable
        Write these parts into a `Fragment`.

    Returns
    -------
    model : onnx.ModelProto
        As from `step_graph`, but that frozen weights and `parameters` are inputs, as are the parts of the vector of
        weights, by their names. It has only the inputs that it needs.
    """
    fragment = Fragment(problem.objective.dtype)
    model = add_model(fragment, problem.score_graph, problem.batch_size)
    add_loss(fragment)
    _add_gradient(fragment, problem, model.graph)
    add_update(fragment)
    inputs = [*infos(states), *model.graph.input[1:], *infos(problem.loss_weights), *infos(parameters)]
    return read_inputs_only(_step_model(fragment, problem, model, states, inputs, model.graph.initializer))


def read_inputs_only(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy with only those nodes that the outputs are computed from, and only the inputs that they read."""
    model = needed(model)
    read = {name for node in model.graph.node for name in read_names(node)}
    given = [i for i in model.graph.input if i.name in read]
    del model.graph.input[:]
    model.graph.input.extend(given)
    return model


def states_of(problem, memory, changed):
    """Return the weights, and what an update changes of the memory, by their names as inputs."""
    return {WEIGHTS: flat(problem.weights)} | {state_name(name): memory[name] for name in changed}


def add_loss(writer, problem):
    """Add the loss, its gradient by the score, and those of an own penalty by the weights."""
    with marked(writer, "loss"):
        problem.objective.add_loss(writer, problem.score_graph.score_name, LOSS)
    with marked(writer, "backward"):
        add_score_gradient(writer, problem)
    with marked(writer, "penalty"):
        add_custom_gradients(writer, problem.objective, problem.weights)


def add_score_gradient(writer, problem):
    """Add the gradient of the loss by the score."""
    objective, score = problem.objective, problem.score_graph.score_name
    if objective.loss.gradient_function(objective.n_outputs) is None:
        gradient = score_gradient(ruled_score_gradient, objective, problem.batch_size)
        by_weights = objective.weight_gradients
        inputs = [score, TARGET, SAMPLE_WEIGHT, *by_weights]
        writer.call_as_is(gradient, inputs, [SCORE_GRADIENT, *by_weights.values()])
    else:
        objective.add_score_gradient(writer, score)


def add_update(writer, problem, rule, memory):
    """Add penalty and update; return the names of what the update changes of the memory."""
    with marked(writer, "penalty"):
        _add_penalty(writer, problem.objective.add_custom_value(writer, LOSS), problem.terms)
    with marked(writer, "update"):
        return add_rule(writer, rule, memory)


def add_rule(writer, rule, memory):
    """Add the update alone; return the names of what it changes of the memory."""
    names = {"weights": WEIGHTS, "gradient": GRADIENT, "eta": ETA} | {name: state_name(name) for name in memory}
    results = rule.add_nodes(writer, names)
    for name in results.keys() & names.keys():
        writer.rename(results[name], next_name(names[name]))
    return [name for name in memory if name in results]


def _step_model(fragment, problem, model, states, inputs, initializers):
    """Return the nodes of a step as a model: the batch and the learning rate come before the other inputs."""
    objective, scalar = problem.objective, np.zeros((), problem.objective.dtype)
    inputs = [model.graph.input[0], *objective.inputs(problem.batch_size), *infos({ETA: scalar}), *inputs]
    outputs = {LOSS: scalar, OBJECTIVE: scalar, GRADIENT: states[WEIGHTS]}
    outputs |= {next_name(name): array for name, array in states.items()}
    graph = helper.make_graph(fragment.nodes, "step", inputs, infos(outputs), initializers)
    return build_model(graph, fragment, domains=domains_of(model))


def _add_gradient(fragment, problem, graph):
    """Add the gradient of the loss, and of an own penalty, by all weights, as one vector, from that by the score."""
    gradients = add_gradients(fragment, graph, SCORE_GRADIENT, problem.score_graph.trainable)
    gradients |= problem.objective.weight_gradients
    for name in problem.objective.custom_terms:
        total = f"skort_{name}_gradient"
        fragment.node("Add", [gradients[name], custom_gradient_name(name)], [total])
        gradients[name] = total
    result = GRADIENT if problem.terms.l2 is None else _LOSS_GRADIENT
    fragment.call(packed_text(problem.weights), [gradients[name] for name in problem.weights], [result])


def start_graph(arrays):
    """Return the model without inputs that gives some arrays, by their names: what the first step goes on from."""
    values = [numpy_helper.from_array(array, f"{name}_value") for name, array in arrays.items()]
    nodes = [helper.make_node("Identity", [f"{name}_value"], [name]) for name in arrays]
    return build_model(helper.make_graph(nodes, "start", [], infos(arrays), values))


def _add_penalty(writer, value, terms):
    """Add the objective to the scalar `value`, and its gradient from that of `value`, but for that of the l1 term."""
    l1, l2 = terms.l1, terms.l2
    if l1 is not None:
        writer.constant("skort_l1", l1)
        writer.call(l1_text(by_element=True), [WEIGHTS, "skort_l1"], ["skort_l1_penalty"])
        writer.node("Add", [value, "skort_l1_penalty"], ["skort_l1_objective"])
        value = "skort_l1_objective"
    if l2 is not None:
        writer.constant("skort_l2", l2)
        writer.call(l2_vector_text(), [WEIGHTS, "skort_l2"], ["skort_l2_penalty", "skort_l2_gradient"])
        writer.node("Add", [value, "skort_l2_penalty"], ["skort_l2_objective"])
        writer.node("Add", [_LOSS_GRADIENT, "skort_l2_gradient"], [GRADIENT])
        value = "skort_l2_objective"
    writer.node("Identity", [value], [OBJECTIVE])
