"""
Which ONNX operators ONNX Runtime differentiates,
and which operator of a graph stops a gradient.
"""

from collections.abc import Callable, Collection, Iterable

from onnx import GraphProto, NodeProto, TensorProto

from skort.common.onnx_text import known_shapes, leading_to, read_names

#: (node, names of results) -> whether the node has a gradient by each of its inputs that is among
#: the names.
HasGradient = Callable[[NodeProto, Collection[str]], bool]
#: Graph -> the nodes that a solver can differentiate.
Gradient = Callable[[GraphProto], HasGradient]

_OF_IMAGES = ("AveragePool", "Conv", "GlobalAveragePool", "MaxPool")
#: Standard operators that ONNX Runtime differentiates correctly: the tests compare each with a
#: finite difference.
DIFFERENTIABLE = frozenset(
    {
        *(
            "Abs",
            "Add",
            "Cast",
            "Clip",
            "Cos",
            "Div",
            "Dropout",
            "Erf",
            "Exp",
            "Identity",
            "LeakyRelu",
            "Log",
            "Max",
        ),
        *(
            "Min",
            "Mul",
            "Neg",
            "Pow",
            "Reciprocal",
            "Relu",
            "Sigmoid",
            "Sin",
            "Sqrt",
            "Sub",
            "Tanh",
        ),
        *(
            "Gemm",
            "MatMul",
            "LayerNormalization",
            "LogSoftmax",
            "ReduceMean",
            "ReduceSum",
            "Softmax",
        ),
        *(
            "Concat",
            "Expand",
            "Flatten",
            "Gather",
            "GatherElements",
            "GatherND",
            "Pad",
            "Reshape",
            "Slice",
            "Split",
        ),
        *("Squeeze", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze", "Where"),
        *_OF_IMAGES,
    }
)
#: Those of them that have no gradient in float64, because the runtime lacks a kernel of the
#: operator or of its gradient.
FLOAT32_GRADIENTS = frozenset(
    ("Cos", "Erf", "LeakyRelu", "LogSoftmax", "Sin", "Softmax", "Concat", *_OF_IMAGES)
)

# The results of these operators are constant or jump, so their gradient is zero. They do no harm if
# another path leads from the weight to the output. Floor, Round and Sign are not here: the runtime
# stops at them.
_CONSTANT = frozenset(
    {
        *(
            "And",
            "ArgMax",
            "ArgMin",
            "Equal",
            "Greater",
            "GreaterOrEqual",
            "Less",
            "LessOrEqual",
            "Not",
            "Or",
            "Shape",
        ),
        *("Size", "Xor"),
    }
)
# The runtime differentiates these operators with respect to their first input only.
_FIRST_INPUT = frozenset({"Clip", "Dropout", "Pad", "Pow"})


def runtime_gradient(graph: GraphProto) -> HasGradient:
    """Return the function that tells which nodes of a graph ONNX Runtime can differentiate."""
    float64 = graph.output[0].type.tensor_type.elem_type == TensorProto.DOUBLE
    leading, shapes = leading_to(graph.node, [graph.output[0].name]), known_shapes(graph)
    return lambda node, reached: _has_gradient(node, reached, leading, shapes, float64)


def undifferentiable(
    graph: GraphProto, weights: Iterable[str], gradient: Gradient = runtime_gradient
) -> tuple[str, str] | None:
    """Return type and name of the first node that stops every gradient from a weight; or None."""
    output = graph.output[0]
    leading = leading_to(graph.node, [output.name])
    has_gradient = gradient(graph)

    for weight in weights:
        reached = {weight}
        stopping = []
        for node in graph.node:
            if reached.isdisjoint(read_names(node)) or leading.isdisjoint(node.output):
                continue

            to_integers = node.op_type == "Cast" and node.attribute[0].i not in (
                TensorProto.FLOAT,
                TensorProto.DOUBLE,
            )
            if node.op_type in _CONSTANT or to_integers:
                stopping.append(node)
            elif has_gradient(node, reached):
                reached.update(node.output)
            else:
                return node.op_type, node.name

        if stopping and output.name not in reached:
            return stopping[0].op_type, stopping[0].name

    return None


def _has_gradient(node, reached, leading, shapes, float64):
    """Return whether the runtime can differentiate `node` with respect to its `reached` inputs."""
    name = node.op_type
    if (
        node.domain not in ("", "ai.onnx")
        or name not in DIFFERENTIABLE
        or (float64 and name in FLOAT32_GRADIENTS)
    ):
        return False

    texts = {attribute.s for attribute in node.attribute}
    if name in _FIRST_INPUT:
        return reached.isdisjoint(node.input[1:]) and texts.isdisjoint((b"edge", b"reflect"))
    # The runtime has no gradient of a product that is multiplied by zero.
    if name == "Gemm":
        return all(
            attribute.f != 0 for attribute in node.attribute if attribute.name in ("alpha", "beta")
        )
    # The runtime computes four wrong gradients without an error: of a convolution that computes
    # its padding, ...
    if name == "Conv":
        return texts.isdisjoint((b"SAME_LOWER", b"SAME_UPPER"))
    # ... of a product with a vector, ...
    if name == "MatMul":
        return all(len(shapes.get(i, (1, 1))) != 1 for i in node.input)
    # ... of a broadcast branch, ...
    if name == "Where":
        return {shapes.get(i) for i in reached.intersection(node.input)} == {
            shapes.get(node.output[0], ())
        }
    # ... and of a Split with an unused part.
    if name == "Split":
        return leading.issuperset(node.output)
    # The runtime's gradient needs an intercept, and supports the first output only.
    if name == "LayerNormalization":
        return len(node.input) == 3 and leading.isdisjoint(node.output[1:])

    # ONNX Runtime 1.19 does not build the gradient of a Transpose without a permutation.
    return name != "Transpose" or any(attribute.name == "perm" for attribute in node.attribute)
