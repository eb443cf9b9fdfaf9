"""The gradients of operators that rearrange, select or sum elements, and of matrix products."""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from skort.common.onnx_text import build_model, infos
from skort.graphs.gradient.applied import Applied, Rule, broadcast_axes, int64s


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


def chosen(applied: Applied, i: int) -> str | None:
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


# The gradient by x of a reduction over `axes`. y and dy have the length 1 along them.
_REDUCED = {
    "ReduceSum": "dx = Expand(dy, {shape})",
    "ReduceMean": "dx = Expand({share!r} * dy, {shape})",
    # Elements that equal y share dy equally.
    "ReduceMax": "same = CastLike(Equal(x, y), x)\ndx = same * (dy / ReduceSum(same, {axes}))",
    "ReduceMin": "same = CastLike(Equal(x, y), x)\ndx = same * (dy / ReduceSum(same, {axes}))",
    # The norm has a kink at zero.
    "ReduceL2": "dx = dy * Where(Equal(y, 0), 0, x / y)",
    "ReduceLogSumExp": "dx = dy * Exp(x - y)",
    # The product of the others is y / x, unless some are zero.
    "ReduceProd": """
        is_zero = CastLike(Equal(x, 0), x)
        other_zeros = ReduceSum(is_zero, {axes}) - is_zero
        factor = x + is_zero
        dx = dy * Where(Equal(other_zeros, 0), ReduceProd(factor, axes={axes}) / factor, 0)""",
}


def _reduced(applied, i):
    if i > 0 or not applied.others_are_constant():
        return None

    shape = applied.shape(0)
    axes = (
        applied.attribute("axes") if applied.constant(1) is None else applied.constant(1).tolist()
    )
    if not axes:
        axes = [] if applied.attribute("noop_with_empty_axes", 0) else range(len(shape))
    axes = sorted({axis % len(shape) for axis in axes})
    kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
    share = 1.0 / math.prod(shape[axis] for axis in axes)
    formula = _REDUCED[applied.node.op_type].format(axes=axes, shape=list(shape), share=share)

    if kept == list(applied.output_shape):
        return formula
    for name in ("y", "dy"):
        formula = re.sub(rf"\b{name}\b", f"Reshape({name}, {kept})", formula)
    return formula


def _top_k(applied, i):
    # The elements that are picked differ from batch to batch: their numbers are the second output.
    zeros = f"Expand(0, {list(applied.shape(0))})"
    return f"dx = ScatterElements({zeros}, y1, dy, axis={applied.axis(-1)})" if i == 0 else None


def _cumulated(applied, i):
    # y_j is the sum of all x_k up to j, so dx_k is the sum of all dy_j from k on.
    exclusive, reverse = (applied.attribute(name, 0) for name in ("exclusive", "reverse"))
    return f"dx = CumSum(dy, b, exclusive={exclusive}, reverse={1 - reverse})" if i == 0 else None


#: The rules by operator.
ARRAYS: dict[str, Rule] = {
    **dict.fromkeys(["Reshape", "Flatten", "Squeeze", "Unsqueeze"], _reshaped),
    "Transpose": _transpose,
    "Concat": _concat,
    "Split": _split,
    **dict.fromkeys(["Slice", "Gather", "GatherElements", "GatherND", "Tile"], chosen),
    **dict.fromkeys(_REDUCED, _reduced),
    "TopK": _top_k,
    "CumSum": _cumulated,
    "MatMul": _matmul,
    "Gemm": _gemm,
}
