"""The gradients of convolutions, pooling and padding."""

import math
from dataclasses import dataclass

from onnx import helper

from skort.graphs.gradient.applied import Applied, Rule
from skort.graphs.gradient.arrays import chosen, scattered_text


@dataclass(frozen=True)
class _Windows:
    """
    The positions of the windows of a node.

    Each list has one number for each axis after the channels.
    """

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    #: The padding before the first and after the last element.
    begins: list[int]
    ends: list[int]
    #: The number of elements after the last window; negative if it ends after them (`ceil_mode`).
    rest: list[int]

    @classmethod
    def of(cls, applied: Applied, kernel: list[int]) -> "_Windows":
        """Return the windows of a convolution or of pooling."""
        sizes = applied.shape(0)[2:]
        counts = applied.output_shape[2:]
        n = len(kernel)
        strides, dilations = (
            list(applied.attribute(name, [1] * n)) for name in ("strides", "dilations")
        )
        axes = zip(strides, counts, dilations, kernel, strict=True)
        covered = [s * (count - 1) + d * (k - 1) + 1 for s, count, d, k in axes]
        pads = list(applied.attribute("pads", [0] * 2 * n))
        auto_pad = applied.attribute("auto_pad", b"NOTSET")

        if auto_pad in (b"SAME_UPPER", b"SAME_LOWER"):
            missing = [max(0, length - size) for length, size in zip(covered, sizes, strict=True)]
            pads = [(m + (auto_pad == b"SAME_LOWER")) // 2 for m in missing]
            pads += [m - b for m, b in zip(missing, pads, strict=True)]

        axes = zip(sizes, pads[:n], pads[n:], covered, strict=True)
        return cls(
            kernel, strides, dilations, pads[:n], pads[n:], [s + b + e - c for s, b, e, c in axes]
        )

    def firsts(self, axis: int, count: int) -> list[int]:
        """Return the index of the first element of each window on an axis."""
        return [self.strides[axis] * o - self.begins[axis] for o in range(count)]

    def transposed(self) -> str:
        """Return the attributes of the ConvTranspose from windows to the elements they read."""
        ends = [end - min(0, rest) for end, rest in zip(self.ends, self.rest, strict=True)]
        more = [max(0, rest) for rest in self.rest]
        return (
            f"strides={self.strides}, dilations={self.dilations}, pads={self.begins + ends}, "
            f"output_padding={more}"
        )


def _convolution(applied, i):
    shape = applied.shape(0)
    groups = applied.attribute("group", 1)
    axes = list(range(2, len(shape)))
    if i == 2:
        return f"dx = ReduceSum(dy, {[0, *axes]}, keepdims=0)"

    windows = _Windows.of(applied, list(applied.shape(1)[2:]))
    if i == 0:
        return f"dx = ConvTranspose(dy, b, {windows.transposed()}, group={groups})"

    # y = sum of w[k] x[stride o + dilation k], so dw = sum of dy[o] x[dilation k + stride o]. This
    # is a convolution of x by dy in which rows and channels are exchanged.
    n, channels, *sizes = shape
    swapped = [1, 0, *axes]
    rows = f"Transpose(a, perm={[1, 0, *axes]})"

    if groups > 1:
        parts = f"Reshape(a, {[n, groups, channels // groups, *sizes]})"
        parts = f"Transpose({parts}, perm={[2, 1, 0, *(axis + 1 for axis in axes)]})"
        rows = f"Reshape({parts}, {[channels // groups, groups * n, *sizes]})"

    product = (
        f"Conv({rows}, Transpose(dy, perm={swapped}), strides={windows.dilations}, "
        f"dilations={windows.strides}, pads={windows.begins + windows.ends}, group={groups})"
    )
    if any(windows.rest):
        product = f"Slice({product}, {[0] * len(axes)}, {windows.kernel}, {axes})"
    return f"dx = Transpose({product}, perm={swapped})"


def _pooled(applied):
    """
    Return the windows of pooling.

    Return None if runtimes disagree about a last window that `ceil_mode` adds.
    """
    windows = _Windows.of(applied, list(applied.attribute("kernel_shape")))
    counts = applied.output_shape[2:]
    # Only some runtimes have a window of padding alone, or count elements after the padding.
    starts_behind = [
        windows.firsts(axis, count)[-1] >= size
        for axis, (count, size) in enumerate(zip(counts, applied.shape(0)[2:], strict=True))
    ]
    is_counted = applied.attribute("count_include_pad", 0) and min(windows.rest) < 0

    return None if any(starts_behind) or is_counted else windows


def _max_pool(applied, i):
    # dx is the sum of dy over all windows whose maximum is x. The first of equal elements counts.
    if _pooled(applied) is None:
        return None

    attributes = {a.name: helper.get_attribute_value(a) for a in applied.node.attribute}
    # ONNX Runtime 1.16 overwrites the positions if nothing reads the maximum, so `is_number` reads
    # it. With the same attributes as the node itself, it would read the maximum of that node, so
    # `storage_order` differs.
    if attributes.pop("storage_order", None) is None:
        attributes["storage_order"] = 0
    texts = {
        name: f'"{a.decode()}"' if isinstance(a, bytes) else str(a)
        for name, a in attributes.items()
    }
    lines = f"""highest, positions = MaxPool <{", ".join(f"{name} = {text}" for name, text in texts.items())}> (x)
    is_number = Equal (highest, highest)
    chosen = Where (is_number, positions, positions)"""

    return scattered_text(["x", "dy"], lines, applied.shape(0))


def _average_pool(applied, i):
    # Each x in a window of m elements gets dy / m.
    windows, (n, channels, *sizes), counts = (
        _pooled(applied),
        applied.shape(0),
        applied.output_shape[2:],
    )
    if windows is None:
        return None

    share = "dy"
    for axis, (size, count, k) in enumerate(zip(sizes, counts, windows.kernel, strict=True)):
        if applied.attribute("count_include_pad", 0):
            share = f"{share} / {k}"
            continue

        inside = [min(first + k, size) - max(first, 0) for first in windows.firsts(axis, count)]
        axes = [1, 1, *(count if other == axis else 1 for other in range(len(sizes)))]
        share = f"{share} / CastLike(Reshape({inside}, {axes}), dy)"

    return f"""
        share = Reshape({share}, {[n * channels, 1, *counts]})
        parts = ConvTranspose(share, Expand(1, {[1, 1, *windows.kernel]}), {windows.transposed()})
        dx = Reshape(parts, {[n, channels, *sizes]})"""


def _global_average_pool(applied, i):
    shape = list(applied.shape(0))
    return f"dx = Expand({1 / math.prod(shape[2:])!r} * dy, {shape})"


def _pad(applied, i):
    if applied.attribute("mode", b"constant") != b"constant":
        return chosen(applied, i)
    pads = applied.constant(1)
    return None if i > 0 or pads is None else f"dx = Pad(dy, {(-pads).tolist()})"


#: The rules by operator.
WINDOWS: dict[str, Rule] = {
    "Conv": _convolution,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global_average_pool,
    "Pad": _pad,
}
