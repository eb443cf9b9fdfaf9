"""The whole step as one ONNX graph of standard operators: forward, loss, backward, penalty, clipping, update."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from skort.graphs.gradient.applied import int64s
from skort.graphs.gradient.reverse import add_gradients
from skort.objective.nodes import LOSS, OBJECTIVE, SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET
from skort.objective.penalties import l1_text, l2_vector_text
from skort.onnx_text import IR_VERSION, OPSET, Fragment, inlined, onnx_dtype, read_names
from skort.solvers.flat_weights import flat
from skort.solvers.loss_gradient import ruled_score_gradient

__all__ = ["ETA", "GRADIENT", "WEIGHTS", "next_name", "start_graph", "state_name", "step_graph"]

ETA = "skort_learning_rate"
GRADIENT = "skort_weights_gradient"
WEIGHTS = "skort_weights"


def state_name(name):
    """Return the name of the input that is an array of the optimizer's state."""
    return f"skort_{name}"


def next_name(name):
    """Return the name of the output that the next step takes as its input `name`."""
    return f"{name}_next"


def step_graph(problem, memory, *, unpack=True):
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
    unpack : bool, default=True
        Whether the step takes the vector of weights apart. Otherwise its parts are inputs, too, by their names.

    Returns
    -------
    model : onnx.ModelProto
    """
    score_graph, objective, weights = problem.score_graph, problem.objective, problem.weights
    model = score_graph.with_batch_size(problem.batch_size)
    fragment = Fragment(objective.dtype)
    if unpack:
        fragment.call(_unpacked(weights), [WEIGHTS], list(weights))
    fragment.nodes.extend(model.graph.node)
    objective.add_loss(fragment, score_graph.score_name, LOSS)
    _add_score_gradient(fragment, problem)
    gradients = add_gradients(fragment, model.graph, SCORE_GRADIENT, score_graph.trainable)
    gradients |= objective.weight_gradients
    _add_penalty(fragment, problem, [gradients[name] for name in weights])
    changed = _add_update(fragment, problem, memory)
    states = {WEIGHTS: flat(weights)} | {state_name(name): memory[name] for name in changed}
    initializers = [i for i in model.graph.initializer if i.name not in weights]
    initializers += [numpy_helper.from_array(a, state_name(n)) for n, a in memory.items() if n not in changed]
    scalar, vector = np.zeros((), objective.dtype), states[WEIGHTS]
    parts = {} if unpack else weights
    inputs = [model.graph.input[0], *objective.inputs(problem.batch_size), *_infos({ETA: scalar, **states, **parts})]
    outputs = {LOSS: scalar, OBJECTIVE: scalar, GRADIENT: vector, **{next_name(n): a for n, a in states.items()}}
    graph = helper.make_graph(fragment.nodes, "step", inputs, _infos(outputs), initializers)
    opsets = [o for o in model.opset_import if o.domain != ""] + [helper.make_opsetid("", OPSET)]
    return _needed(inlined(helper.make_model(graph, ir_version=IR_VERSION, opset_imports=opsets), fragment))


def _add_score_gradient(fragment, problem):
    objective, score = problem.objective, problem.score_graph.score_name
    if objective.loss.gradient_function(objective.n_outputs) is None:
        gradient = ruled_score_gradient(objective, problem.batch_size)
        by_weights = objective.weight_gradients
        inputs = [score, TARGET, SAMPLE_WEIGHT, *by_weights]
        fragment.call_as_is(gradient, inputs, [SCORE_GRADIENT, *by_weights.values()])
    else:
        objective.add_score_gradient(fragment, score)


def start_graph(arrays):
    """Return the model without inputs that gives some arrays, by their names: what the first step goes on from."""
    values = [numpy_helper.from_array(array, f"{name}_value") for name, array in arrays.items()]
    nodes = [helper.make_node("Identity", [f"{name}_value"], [name]) for name in arrays]
    graph = helper.make_graph(nodes, "start", [], _infos(arrays), values)
    return helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])


def _infos(arrays):
    return [helper.make_tensor_value_info(name, onnx_dtype(a.dtype), a.shape) for name, a in arrays.items()]


def _unpacked(weights):
    """Return the function that takes the vector of all weights apart."""
    sizes = int64s(w.size for w in weights.values())
    shapes = "\n".join(
        f"    shape{i} = Constant <value = {int64s(w.shape)}> ()\n    weight{i} = Reshape (part{i}, shape{i})"
        for i, w in enumerate(weights.values())
    )
    return f"""
unpacked (weights) => ({", ".join(f"weight{i}" for i in range(len(weights)))}) {{
    sizes = Constant <value = {sizes}> ()
    {", ".join(f"part{i}" for i in range(len(weights)))} = Split <axis = 0> (weights, sizes)
{shapes}
}}"""


def _packed(weights):
    """Return the function that puts the gradients by all weights together."""
    matrices = [i for i, w in enumerate(weights.values()) if w.ndim != 1]
    vectors = [f"part{i}" if i in matrices else f"gradient{i}" for i in range(len(weights))]
    parts = "\n".join(f"    part{i} = Reshape (gradient{i}, flat)" for i in matrices)
    return f"""
packed ({", ".join(f"gradient{i}" for i in range(len(weights)))}) => (gradient) {{
    flat = Constant <value = int64[1] {{-1}}> ()
{parts}
    gradient = Concat <axis = 0> ({", ".join(vectors)})
}}"""


def _add_penalty(fragment, problem, gradients):
    """Add the objective, and its gradient from those of the loss, but for that of the l1 term."""
    value, l1, l2 = LOSS, problem.terms.l1, problem.terms.l2
    fragment.call(_packed(problem.weights), gradients, [GRADIENT if l2 is None else "skort_loss_gradient"])
    if l1 is not None:
        fragment.constant("skort_l1", l1)
        fragment.call(l1_text(by_element=True), [WEIGHTS, "skort_l1"], ["skort_l1_penalty"])
        fragment.node("Add", [value, "skort_l1_penalty"], ["skort_l1_objective"])
        value = "skort_l1_objective"
    if l2 is not None:
        fragment.constant("skort_l2", l2)
        fragment.call(l2_vector_text(), [WEIGHTS, "skort_l2"], ["skort_l2_penalty", "skort_l2_gradient"])
        fragment.node("Add", [value, "skort_l2_penalty"], ["skort_l2_objective"])
        fragment.node("Add", ["skort_loss_gradient", "skort_l2_gradient"], [GRADIENT])
        value = "skort_l2_objective"
    fragment.node("Identity", [value], [OBJECTIVE])


def _add_update(fragment, problem, memory):
    """Add the update of the weights and of what the rule remembers; return the names of what it changes of that."""
    names = {"weights": WEIGHTS, "gradient": GRADIENT, "eta": ETA} | {name: state_name(name) for name in memory}
    results = problem.rule().add_nodes(fragment, names)
    for name in results.keys() & names.keys():
        fragment.rename(results[name], next_name(names[name]))
    return [name for name in memory if name in results]


def _needed(model):
    """Return a copy with only those nodes that the outputs are computed from."""
    needed, nodes = {output.name for output in model.graph.output}, []
    for node in reversed(model.graph.node):
        if not needed.isdisjoint(node.output):
            needed.update(read_names(node))
            nodes.append(node)
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    del copied.graph.node[:], copied.graph.initializer[:]
    copied.graph.node.extend(reversed(nodes))
    copied.graph.initializer.extend(i for i in model.graph.initializer if i.name in needed)
    return copied
