"""The gradients of operators that rearrange, select or sum elements, and of matrix products."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from skort.common.onnx_text import build_model, infos
from skort.graphs.gradient.applied import Rule, broadcast_axes, int64s


def _reshaped(applied, i):
    return f"dx = Reshape(dy, {list(applied.shape(0))})" if i == 0 else None


def _gemm(applied, i):
    # y = alpha A B + beta c, where A is a or a', and B is b or b'. So dA = alpha dy B', dB = alpha
    # A' dy, and dc = beta dy.
    if i == 2:
        return f"dx = {float(applied.attribute('beta', 1.0))!r} * dy"

    a_transposed = applied.attribute("transA", 0)
    b_transposed = applied.attribute("transB", 0)

    if i == 0:
        order, flags = (
            ("b, dy", (b_transposed, 1)) if a_transposed else ("dy, b", (0, 1 - b_transposed))
        )
    else:
        order, flags = (
            ("dy, a", (1, a_transposed)) if b_transposed else ("a, dy", (1 - a_transposed, 0))
        )

    alpha = float(applied.attribute("alpha", 1.0))
    return f"dx = Gemm({order}, alpha={alpha!r}, transA={flags[0]}, transB={flags[1]})"


def _matmul(applied, i):
    # y = a b over the last two axes, so da = dy b' and db = a' dy. A vector is one row (a) or one
    # column (b).
    a = applied.shape(0)
    b = applied.shape(1)
    if len(a) == len(b) == 2:
        return _gemm(applied, i)

    a = a if len(a) > 1 else (1, *a)
    b = b if len(b) > 1 else (*b, 1)
    batch = np.broadcast_shapes(a[:-2], b[:-2])
    other, own, order = (b, a, "matrix, transposed") if i == 0 else (a, b, "transposed, matrix")
    permutation = [*range(len(other) - 2), len(other) - 1, len(other) - 2]
    axes = broadcast_axes(own[:-2], batch)
    product = f"ReduceSum(MatMul({order}), {axes})" if axes else f"MatMul({order})"

    return f"""
        transposed = Transpose(Reshape({"ba"[i]}, {list(other)}), perm={permutation})
        matrix = Reshape(dy, {[*batch, a[-2], b[-1]]})
        dx = Reshape({product}, {list(applied.shape(i))})"""


def _transpose(applied, i):
    # Without a permutation, the axes are reversed.
    permutation = applied.attribute("perm")
    return (
        f"dx = Transpose(dy, perm={np.argsort(permutation).tolist()})"
        if permutation
        else "dx = Transpose(dy)"
    )


def _concat(applied, i):
    axis = applied.axis(0)
    begin = sum(applied.shape(k)[axis] for k in range(i))
    return f"dx = Slice(dy, [{begin}], [{begin + applied.shape(i)[axis]}], [{axis}])"


def _split(applied, i):
    parts = ", ".join(f"dy{k}" for k in range(len(applied.node.output)))
    return f"dx = Concat({parts}, axis={applied.axis(0)})" if i == 0 else None


def chosen(applied, i):
    """
    Return the gradient of an operator that picks elements of x: y_k = x_j(k).

    dx_j is the sum of dy_k over all k with j(k) = j.
    """
    if i == 0 and not applied.others_are_constant():
        return _picked_rows(applied)
    if i > 0:
        return None

    # Running the node on the numbers 0, 1, 2, ... in place of the elements of x gives j.
    (x, *others) = applied.node.input
    shape = applied.shape(0)
    values = {x: np.arange(math.prod(shape)).reshape(shape)} | {
        n: applied.constants[n] for n in others if n
    }
    elements = f"chosen = Constant <value = {int64s(np.ravel(evaluated(applied.node, values)))}> ()"

    return scattered_text(["dy"], elements, shape)


def scattered_text(inputs: Sequence[str], chosen: str, shape: Sequence[int]) -> str:
    """
    Return the function that adds each dy to an element of dx.

    `chosen` is the text of a node that gives the numbers of these elements.
    """
    # This is ONNX text, because a formula with as many numbers as x has takes long to read.
    return f"""
chosen_gradient ({", ".join(inputs)}) => (dx) {{
    flat = Constant <value = {int64s([-1])}> ()
    size = Constant <value = {int64s([math.prod(shape)])}> ()
    shape = Constant <value = {int64s(shape)}> ()
    {chosen}
    zeros = ConstantOfShape <value = float[1] {{0}}> (size)
    chosen_flat = Reshape (chosen, flat)
    dy_flat = Reshape (dy, flat)
    sums = ScatterElements <axis = 0, reduction = "add"> (zeros, chosen_flat, dy_flat)
    dx = Reshape (sums, shape)
}}"""


def _picked_rows(applied):
    """
    Return the gradient of a table whose rows are picked by ids.

    The ids differ from batch to batch, so they are inputs of the formula.
    """
    if applied.node.op_type != "Gather" or applied.axis(0) != 0:
        return None

    shape = applied.shape(0)
    n_ids = math.prod(applied.shape(1))
    width = math.prod(shape[1:])

    return f"""
        ids = Expand(Reshape(b, [{n_ids}, 1]), [{n_ids}, {width}])
        rows = Reshape(dy, [{n_ids}, {width}])
        sums = ScatterElements(Expand(0, [{shape[0]}, {width}]), ids, rows, axis=0, reduction='"add"')
        dx = Reshape(sums, {list(shape)})"""


def evaluated(node: onnx.NodeProto, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the first output of a node for the values of its inputs."""
    graph = helper.make_graph(
        [node], "node", infos(values), [onnx.ValueInfoProto(name=node.output[0])]
    )
    (value,) = ReferenceEvaluator(build_model(graph)).run(None, dict(values))
    return np.asarray(value)


def _reduced(applied, i):
    # y is the sum of x over some axes, so dx is dy, repeated along them. For a mean, dx is divided
    # by the number of summands.
    if i > 0 or not applied.others_are_constant():
        return None

    shape = applied.shape(0)
    axes = (
        applied.attribute("axes") if applied.constant(1) is None else applied.constant(1).tolist()
    )
    if not axes:
        axes = [] if applied.attribute("noop_with_empty_axes", 0) else range(len(shape))
    axes = {axis % len(shape) for axis in axes}
    kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
    scale = (
        1.0 / math.prod(shape[axis] for axis in axes)
        if applied.node.op_type == "ReduceMean"
        else 1.0
    )

    return f"dx = Expand({scale!r} * Reshape(dy, {kept}), {list(shape)})"


#: The rules by operator.
ARRAYS: dict[str, Rule] = {
    **dict.fromkeys(["Reshape", "Flatten", "Squeeze", "Unsqueeze"], _reshaped),
    "Transpose": _transpose,
    "Concat": _concat,
    "Split": _split,
    **dict.fromkeys(["Slice", "Gather", "GatherElements", "GatherND", "Tile"], chosen),
    "ReduceSum": _reduced,
    "ReduceMean": _reduced,
    "MatMul": _matmul,
    "Gemm": _gemm,
}
