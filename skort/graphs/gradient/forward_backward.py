"""The forward and the backward half of a score graph, for a loss that is computed elsewhere."""

import copy
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import onnx
import onnx.shape_inference
from onnx import helper

from skort.common.onnx_text import (
    Fragment,
    build_model,
    domains_of,
    inlined,
    leading_to,
    onnx_dtype,
    pruned,
    read_names,
    replace_nodes,
)
from skort.exceptions import NotTrainableError
from skort.graphs.gradient.reverse import add_gradients, rule_gradient
from skort.graphs.score_graph import ScoreGraph, obstacle_of, set_batch_size
from skort.objective.loss import function_text
from skort.objective.objective import SCORE_GRADIENT

#: The name of the gradient by all weights.
GRADIENT = "skort_weights_gradient"
_FORWARD = """\
The forward half of a gradient by skort. Its first output is the score; the others are inputs of the backward half.
"""
_BACKWARD = f"""\
The backward half of a gradient by skort. {SCORE_GRADIENT} is the derivative of a loss by the score; the other inputs
are inputs and outputs of the forward half. Each output has the name of what it is the gradient by, and "_gradient".
"""


def gradient_name(name: str) -> str:
    """Return the name of the output of a backward model that is the gradient by `name`."""
    return f"{name}_gradient"


def add_model(fragment: Fragment, score_graph: ScoreGraph, batch_size: int) -> onnx.ModelProto:
    """Add the nodes of a score graph; return its structure for exactly `batch_size` rows."""
    model = copy.deepcopy(score_graph.structure)
    set_batch_size(model, batch_size)
    fragment.nodes.extend(model.graph.node)
    return model


def forward_backward(
    score_graph: ScoreGraph, batch_size: int, *, input_gradient: bool = False
) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """
    Return the forward and the backward model of a score graph.

    The backward model gives the gradients by the trained weights and, with `input_gradient`, by X.
    """
    X = score_graph.input_name
    score = score_graph.score_name
    fragment = Fragment(score_graph.dtype)
    model = add_model(fragment, score_graph, batch_size)
    check_gradient(score_graph, input_gradient=input_gradient)
    wanted = [*([X] if input_gradient else []), *score_graph.trainable]
    gradients = add_gradients(fragment, model.graph, SCORE_GRADIENT, wanted)
    for name, result in gradients.items():
        fragment.rename(result, gradient_name(name))
    shape = [batch_size, score_graph.n_outputs]
    score_gradient = helper.make_tensor_value_info(
        SCORE_GRADIENT, onnx_dtype(score_graph.dtype), shape
    )
    results = [onnx.ValueInfoProto(name=gradient_name(name)) for name in wanted]
    model.graph.input.insert(0, score_gradient)
    model.graph.output.extend(results)
    replace_nodes(model.graph, fragment.nodes)
    whole = pruned(build_model(model.graph, fragment, domains=domains_of(model)))
    whole = onnx.shape_inference.infer_shapes(whole, data_prop=True)

    return _split(whole, score, [result.name for result in results])


def check_gradient(score_graph: ScoreGraph, *, input_gradient: bool = False) -> None:
    """Raise a NotTrainableError if no weight is trained, or if an operator has no gradient."""
    if not score_graph.trainable:
        raise NotTrainableError("model: it has no weight to train.")

    wanted = [*([score_graph.input_name] if input_gradient else []), *score_graph.trainable]
    if obstacle := obstacle_of(score_graph, wanted, rule_gradient):
        by_X = "X or " * input_gradient, ", ask for no gradient by X" * input_gradient
        raise NotTrainableError(
            f"model: between {by_X[0]}a weight and the score, its ONNX graph computes with the "
            f"operator {obstacle}"
            f", which has no gradient in {score_graph.dtype}, or whose shapes are not known before "
            f"it runs. Name the weights after it in trainable{by_X[1]}, or cut the model."
        )


def _split(
    whole: onnx.ModelProto, score: str, results: Sequence[str]
) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """
    Return two models: the nodes that the score needs, and all other nodes.

    Slopes such as 1 - y^2 are in the second one.
    """
    graph = whole.graph
    constants = [node for node in graph.node if not node.input and not read_names(node)]
    names = leading_to(graph.node, [score])
    first = [node for node in graph.node if not names.isdisjoint(node.output) or node in constants]
    last = [node for node in graph.node if names.isdisjoint(node.output) or node in constants]
    held = {i.name for i in graph.initializer} | {
        name for node in constants for name in node.output
    }
    made = {name for node in last for name in node.output}
    read = dict.fromkeys(
        name for node in last for name in read_names(node) if name not in made | held
    )
    inputs = {i.name: i for i in graph.input}
    saved = [name for name in read if name not in inputs and name != score]
    forward_inputs = [name for name in inputs if name != SCORE_GRADIENT]
    backward_inputs = [SCORE_GRADIENT, *(name for name in read if name != SCORE_GRADIENT)]

    return (
        _part(whole, first, forward_inputs, [score, *saved], _FORWARD),
        _part(whole, last, backward_inputs, results, _BACKWARD),
    )


def _part(whole, nodes, inputs, outputs, documentation):
    """Return some nodes of a model as a model of their own."""
    infos = {
        info.name: info
        for info in (*whole.graph.value_info, *whole.graph.output, *whole.graph.input)
    }
    given, results = ([infos[name] for name in names] for names in (inputs, outputs))
    graph = helper.make_graph(nodes, "gradient", given, results, whole.graph.initializer)
    model = build_model(graph, domains=domains_of(whole))
    model.doc_string = documentation

    return pruned(model)


def unpacked_text(weights: Mapping[str, np.ndarray]) -> str:
    """Return the function that splits the vector of all weights."""
    ends = np.cumsum([0, *(w.size for w in weights.values())]).tolist()
    # CUDA's Split of parts of unequal sizes makes a table of all numbers in each run: with six
    # million weights it takes 40 ms, where these slices take 20 us.
    parts = "\n".join(
        f"weight{i} = Reshape(Slice(weights, [{start}], [{end}]), {[*w.shape]})"
        for i, (w, (start, end)) in enumerate(zip(weights.values(), pairwise(ends), strict=True))
    )
    names = ", ".join(f"weight{i}" for i in range(len(weights)))
    return function_text(f"unpacked (weights) => ({names})", parts)


def packed_text(weights: Mapping[str, np.ndarray]) -> str:
    """Return the function that joins the gradients by all weights into a vector."""
    names = [f"gradient{i}" for i in range(len(weights))]
    pairs = zip(names, weights.values(), strict=True)
    vectors = ", ".join(name if w.ndim == 1 else f"Reshape({name}, [-1])" for name, w in pairs)
    return function_text(
        f"packed ({', '.join(names)}) => (gradient)", f"gradient = Concat({vectors}, axis=0)"
    )


def packed_gradients(
    backward: onnx.ModelProto, weights: Mapping[str, np.ndarray]
) -> onnx.ModelProto:
    """Return a backward model that joins its gradients by weights into one output, `GRADIENT`."""
    names = {gradient_name(name): array for name, array in weights.items()}
    size = sum(array.size for array in weights.values())
    dtype = next(iter(weights.values())).dtype
    fragment = Fragment(dtype)
    fragment.nodes.extend(backward.graph.node)
    fragment.call(packed_text(weights), list(names), [GRADIENT])
    packed = copy.deepcopy(backward)
    replace_nodes(packed.graph, fragment.nodes)
    del packed.graph.output[:]
    packed.graph.output.append(helper.make_tensor_value_info(GRADIENT, onnx_dtype(dtype), [size]))
    packed.graph.output.extend(
        output for output in backward.graph.output if output.name not in names
    )

    return inlined(packed, fragment)
