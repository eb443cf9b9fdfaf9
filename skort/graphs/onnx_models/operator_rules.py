"""What ONNX operators may have: numbers, ranks and shapes that do not end the process."""

from collections.abc import Callable, Iterable

import onnx
from onnx import helper

from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models import node_problems as problems
from skort.graphs.onnx_models.known_shapes import Shape, is_known, names_of
from skort.graphs.onnx_models.limits import constants_of, with_branches

# Attribute -> the least value of its numbers. It means the same in all operators.
_LEAST = {
    **dict.fromkeys(("strides", "dilations", "kernel_shape", "group", "output_shape"), 1),
    **dict.fromkeys(("blocksize", "pooled_shape", "output_height", "output_width"), 1),
    **dict.fromkeys(("hidden_size", "num_groups", "num_heads", "num_outputs", "sample_size"), 1),
    **dict.fromkeys(("kv_num_heads", "q_num_heads", "p", "size"), 1),
    **dict.fromkeys(("pads", "output_padding", "sampling_ratio", "batch_dims", "shape"), 0),
    "spatial_scale": 0,
}
# Larger numbers overflow when the runtime multiplies them.
_MOST = 2**24
# A Pad cuts where its pads are negative.
_ANY_PADS = ("Pad",)
# Attributes with one number for each spatial axis: how many numbers an axis has.
_PER_AXIS = {"kernel_shape": 1, "strides": 1, "dilations": 1, "output_padding": 1, "pads": 2}

# Operators -> the ranks that each of their inputs may have. "*" is any rank.
_RANKS = {
    operator: ranks.split()
    for operators, ranks in {
        "Conv ConvTranspose ConvInteger": "3+ 3+",
        "QLinearConv": "3+ * * 3+",
        "MaxPool AveragePool LpPool MaxUnpool LRN": "3+",
        "GlobalAveragePool GlobalMaxPool GlobalLpPool InstanceNormalization": "3+",
        "BatchNormalization": "2+",
        "Gemm": "2 2 0-2",
        "MatMul MatMulInteger GatherND ScatterND": "1+ 1+",
        "RNN GRU LSTM": "3 3 3",
        "DepthToSpace SpaceToDepth MaxRoiPool RoiAlign": "4",
        "GridSample": "4 4",
        "NonMaxSuppression": "3 3",
        "Det Trilu ReverseSequence": "2+",
        "Reshape Expand Tile TopK": "* 1",
        "ConstantOfShape": "1",
        "Squeeze Unsqueeze Split ReduceSum CumSum": "* 0-1",
        "Slice": "1+ 1 1 1 1",
        "Pad": "* 1 0-1",
        "Range": "0-1 0-1 0-1",
        "OneHot": "* 0-1 1",
        "Concat Gather GatherElements ScatterElements Softmax LogSoftmax Hardmax": "1+",
    }.items()
    for operator in operators.split()
}

_RECURRENT = ("W", "R", "B", "lengths", "state", "state", "P")
# Operator -> input -> the shape that it needs.
_SHAPES: dict[str, dict[int, Callable[[problems.Node], Shape | None]]] = {
    "BatchNormalization": dict.fromkeys((1, 2, 3, 4), problems.channels),
    "InstanceNormalization": dict.fromkeys((1, 2), problems.channels),
    "Conv": {2: problems.filters},
    "ConvTranspose": {2: problems.transposed_filters},
    **{
        name: {i: problems.recurrent(gates, part) for i, part in enumerate(_RECURRENT, 1)}
        for name, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4))
    },
}

# Operator -> the default of its attribute axis; None if it has none.
_AXIS = {
    **dict.fromkeys(("Concat", "LpNormalization"), None),
    **dict.fromkeys(("ArgMax", "ArgMin", "Gather", "GatherElements", "ScatterElements"), 0),
    "Split": 0,
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax", "LayerNormalization", "TopK"), -1),
}
# Operator -> the input that holds axes. In others they are an attribute.
_AXES_INPUT = {"Squeeze": 1, "Unsqueeze": 1, "ReduceSum": 1, "Slice": 3, "CumSum": 1}


def _axes(operator: str, node: problems.Node) -> Iterable[int]:
    if operator in _AXES_INPUT:
        value = node.constant(_AXES_INPUT[operator])
        return [] if value is None else value.ravel().tolist()
    if operator in _AXIS:
        axis = node.get("axis", _AXIS[operator])
        return [] if axis is None else [axis]
    return node.get("axes", [])


def _axes_problem(operator: str, node: problems.Node) -> str | None:
    shape = node.shape(0)
    axes = list(_axes(operator, node))
    if shape is None or not axes:
        return None

    rank = len(shape) + (len(axes) if operator == "Unsqueeze" else 0)
    if not all(-rank <= axis < rank for axis in axes):
        return f"the axes {axes} for an array of rank {len(shape)}"
    if len({axis % rank for axis in axes}) < len(axes):
        return f"an axis twice: {axes}"
    return None


# Operator -> the function that returns in words what a node has and must not have.
_PROBLEMS: dict[str, Callable[[problems.Node], str | None]] = {
    "Transpose": problems.transpose,
    "Flatten": problems.flatten,
    "LayerNormalization": problems.layer_normalization,
    **dict.fromkeys(("Conv", "ConvInteger"), problems.convolution),
    "ConvTranspose": problems.transposed_convolution,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool", "MaxUnpool"), problems.pool),
    "Gather": problems.gather,
    "GatherND": problems.gather_nd,
    "ScatterND": problems.scatter_nd,
    **dict.fromkeys(("GatherElements", "ScatterElements"), problems.elements),
    "Split": problems.split,
    "Slice": problems.slice_,
    "Pad": problems.pad,
    "Tile": problems.tile,
    **dict.fromkeys(("ConstantOfShape", "Expand"), problems.shape_value),
    "Reshape": problems.reshape,
    "Concat": problems.concat,
    "Resize": problems.resize,
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), problems.quantized),
    "DepthToSpace": problems.depth_to_space,
    "SpaceToDepth": problems.space_to_depth,
    "TopK": problems.top_k,
    "ReverseSequence": problems.reverse,
}
# Operators that need no rule: they take arrays of any shapes, or the runtime checks them itself.
_WITHOUT_RULE = names_of(
    "Abs Acos Acosh Add And Asin Asinh Atan Atanh Cast Ceil Celu Clip Constant Cos Cosh Div "
    "Dropout Elu Equal Erf Exp Floor Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf "
    "IsNaN LeakyRelu Less LessOrEqual Log LogSoftmax MatMul Max Mean Min Mish Mod Mul Neg Not Or "
    "PRelu Pow Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean "
    "ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Round Selu Shape Sigmoid Sign Sin Sinh "
    "Size Softmax Softplus Softsign Sqrt Squeeze Sub Sum Tan Tanh ThresholdedRelu Unsqueeze Where "
    "Xor"
)
# Operators whose rules above are all that they need.
_WITH_RULES = names_of(
    "ArgMax ArgMin AveragePool BatchNormalization Concat ConstantOfShape Conv ConvTranspose Expand "
    "Flatten Gather Gemm GlobalAveragePool GlobalMaxPool InstanceNormalization LayerNormalization "
    "MaxPool Pad Reshape Slice Split Tile Transpose"
)


def check_numbers(graph: onnx.GraphProto) -> None:
    """
    Raise an error if an attribute has a number that would end the process, such as a stride of 0.

    Shapes must not be inferred before: onnx divides by these numbers.
    """
    for node in (node for part in with_branches(graph) for node in part.node):
        attributes = _attributes(node)
        for name, value in attributes.items():
            if problem := _number_problem(node, name, value):
                raise _refused(node, problem)

        kernel = attributes.get("kernel_shape")
        for name, n in _PER_AXIS.items() if isinstance(kernel, list) else ():
            if len(attributes.get(name, ())) not in (0, n * len(kernel)):
                raise _refused(node, f"{name}={attributes[name]} with kernel_shape={kernel}")


def _number_problem(node, name, value):
    """Return in words what is wrong with the numbers of an attribute; None if nothing is."""
    numbers = value if isinstance(value, list) else [value]
    if name not in _LEAST or not all(isinstance(number, int | float) for number in numbers):
        return None
    if name == "pads" and node.op_type in _ANY_PADS:
        return None
    if min(numbers, default=1) < _LEAST[name]:
        return f"{name}={value}, which must be at least {_LEAST[name]}"
    if max(numbers, default=1) > _MOST:
        return f"{name}={value}, which must be at most {_MOST:,}"
    return None


def check_shapes(graph: onnx.GraphProto, shapes: dict[str, Shape]) -> None:
    """Raise an error if a node has an axis, a rank or a parameter that would end the process."""
    constants = constants_of(list(with_branches(graph)))
    for node in (node for part in with_branches(graph) for node in part.node):
        if node.domain:
            continue
        known = problems.Node(
            _attributes(node),
            [shapes.get(name) for name in node.input],
            [constants.get(name) for name in node.input],
        )
        if problem := _problem(node, known):
            raise _refused(node, problem)


def _is_rank(rank, ranks):
    """Return whether a rank is one of some ranks, such as "2", "0-1", "3+" or "*"."""
    if ranks == "*":
        return True
    if ranks.endswith("+"):
        return rank >= int(ranks[:-1])
    return rank in range(int(ranks[0]), int(ranks[-1]) + 1)


def _problem(node, known):
    """Return in words what is wrong with the inputs of a node; None if nothing is."""
    operator = node.op_type
    for i, ranks in enumerate(_RANKS.get(operator, [])):
        shape = known.shape(i)
        if shape is not None and not _is_rank(len(shape), ranks):
            return f"the input {node.input[i]!r} of rank {len(shape)}, and needs rank {ranks}"

    if problem := _axes_problem(operator, known):
        return problem

    for i, needed in _SHAPES.get(operator, {}).items():
        shape, right = known.shape(i), needed(known)
        if is_known(shape) and right is not None and shape != right:
            return f"the input {node.input[i]!r} of shape {shape}, and needs the shape {right}"

    return _PROBLEMS[operator](known) if operator in _PROBLEMS else None


def is_safe(graph: onnx.GraphProto, shapes: dict[str, Shape]) -> bool:
    """Return whether the rules say all of a graph, so that no run of it ends the process."""
    return all(
        not node.domain
        and (
            node.op_type in _WITHOUT_RULE
            or (
                node.op_type in _WITH_RULES
                and all(is_known(shapes.get(name)) for name in (*node.input, *node.output) if name)
            )
        )
        for part in with_branches(graph)
        for node in part.node
    )


def _attributes(node):
    return {
        a.name: helper.get_attribute_value(a)
        for a in node.attribute
        if a.type not in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
    }


def _refused(node, problem):
    return NotTrainableError(
        f"estimator: the {node.op_type} node {node.name!r} (result {node.output[0]!r}) of the ONNX "
        f"model has {problem}. ONNX Runtime could end the process. Correct the node, or export the "
        "model again, for any number of rows."
    )
