"""What is wrong with a node of an ONNX model, in words, and the shapes that its inputs need."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skort.graphs.onnx_models.known_shapes import Shape, is_known


class Node(NamedTuple):
    """A node with what is known of it."""

    attributes: dict[str, Any]
    shapes: list[Shape | None]
    constants: list[np.ndarray | None]

    def shape(self, i: int) -> Shape | None:
        """Return the shape of an input; None if it is missing or not known."""
        return self.shapes[i] if i < len(self.shapes) else None

    def constant(self, i: int) -> np.ndarray | None:
        """Return the value of an input; None if it is missing or computed."""
        return self.constants[i] if i < len(self.constants) else None

    def get(self, name: str, default: Any) -> Any:
        """Return an attribute."""
        return self.attributes.get(name, default)


def channels(node: Node) -> Shape | None:
    """Return the shape of a parameter with a number for each channel."""
    X = node.shape(0)
    return None if X is None or X[1] is None else (X[1],)


def normalized(node: Node) -> Shape | None:
    """Return the shape of the axes that are normalized."""
    X = node.shape(0)
    axis = node.get("axis", -1)
    return X[axis:] if is_known(X) and -len(X) <= axis < len(X) else None


def layer_normalization(node: Node) -> str | None:
    """Return what is wrong with the shapes of scale and bias."""
    needed = normalized(node)
    for shape in node.shapes[1:]:
        if needed is not None and is_known(shape) and not _broadcasts(shape, needed):
            return f"a scale or a bias of shape {shape}, and needs the shape {needed}"

    return None


def _broadcasts(shape, to):
    sizes = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(size in (1, other) for size, other in sizes)


def filters(node: Node) -> Shape | None:
    """Return the shape of the bias of a convolution."""
    W = node.shape(1)
    return None if W is None or W[0] is None else (W[0],)


def transposed_filters(node: Node) -> Shape | None:
    """Return the shape of the bias of a transposed convolution."""
    W = node.shape(1)
    return None if W is None or W[1] is None else (W[1] * node.get("group", 1),)


def recurrent(gates: int, part: str) -> Callable[[Node], Shape | None]:
    """Return the function that gives the shape of a part of a recurrent layer."""

    def shape(node: Node) -> Shape | None:
        X = node.shape(0)
        W = node.shape(1)
        if not is_known(X) or not is_known(W):
            return None

        h = node.get("hidden_size", W[1] // gates)
        d = 2 if node.get("direction", b"forward") == b"bidirectional" else 1
        batch = X[0] if node.get("layout", 0) else X[1]
        return {
            "W": (d, gates * h, X[2]),
            "R": (d, gates * h, h),
            "B": (d, 2 * gates * h),
            "lengths": (batch,),
            "state": (batch, d, h) if node.get("layout", 0) else (d, batch, h),
            "P": (d, 3 * h),
        }[part]

    return shape


def transpose(node: Node) -> str | None:
    """Return what is wrong with the order of the axes."""
    shape = node.shape(0)
    order = node.get("perm", None)
    if shape is None or order is None or sorted(order) == list(range(len(shape))):
        return None

    return f"perm={list(order)} for an array of rank {len(shape)}"


def flatten(node: Node) -> str | None:
    """Return what is wrong with the axis."""
    shape = node.shape(0)
    axis = node.get("axis", 1)
    if shape is None or -len(shape) <= axis <= len(shape):
        return None

    return f"axis={axis} for an array of rank {len(shape)}"


def convolution(node: Node) -> str | None:
    """Return what is wrong with the weight of a convolution."""
    X = node.shape(0)
    W = node.shape(1)
    group = node.get("group", 1)
    problem = _weight_of_other_rank(X, W)
    if problem is not None or X is None or W is None or None in (X[1], *W):
        return problem

    if X[1] != W[1] * group or W[0] % group:
        return f"a weight of shape {W} with group={group} for {X[1]} channels"
    if "kernel_shape" in node.attributes and tuple(node.attributes["kernel_shape"]) != W[2:]:
        return f"kernel_shape={list(node.attributes['kernel_shape'])} with a weight of shape {W}"

    return None


def transposed_convolution(node: Node) -> str | None:
    """Return what is wrong with the weight of a transposed convolution."""
    X = node.shape(0)
    W = node.shape(1)
    group = node.get("group", 1)
    problem = _weight_of_other_rank(X, W)
    if problem is not None or X is None or W is None or None in (X[1], W[0]):
        return problem

    if X[1] != W[0] or X[1] % group:
        return f"a weight of shape {W} with group={group} for {X[1]} channels"

    return None


def _weight_of_other_rank(X, W):
    """Return what is wrong with the rank of a weight, or with a size of zero."""
    if X is None or W is None or (len(X) == len(W) and 0 not in W):
        return None

    return f"a weight of shape {W} for an array of rank {len(X)}"


def pool(node: Node) -> str | None:
    """Return what is wrong with the window of a pooling."""
    X = node.shape(0)
    kernel = node.get("kernel_shape", [])
    if X is not None and len(kernel) != len(X) - 2:
        return f"kernel_shape={list(kernel)} for an array of rank {len(X)}"

    return None


def gather(node: Node) -> str | None:
    """Return what is wrong with constant indices along an axis."""
    X = node.shape(0)
    indices = node.constant(1)
    axis = node.get("axis", 0)
    if X is None or indices is None or not -len(X) <= axis < len(X) or X[axis] is None:
        return None
    if indices.size and not -X[axis] <= indices.min() <= indices.max() < X[axis]:
        return f"an index from {indices.min()} to {indices.max()} for {X[axis]} elements"

    return None


def gather_nd(node: Node) -> str | None:
    """Return what is wrong with the shape of indices, or with batch_dims."""
    X = node.shape(0)
    indices = node.shape(1)
    n_batch = node.get("batch_dims", 0)
    if X is None or indices is None:
        return None
    if n_batch >= min(len(X), len(indices)):
        return f"batch_dims={n_batch} for arrays of ranks {len(X)} and {len(indices)}"
    if X[:n_batch] != indices[:n_batch] and None not in (*X[:n_batch], *indices[:n_batch]):
        return (
            f"indices of shape {indices} for an array of shape {X}, of which batch_dims={n_batch} "
            "axes must be equal for any number of rows (was it exported for one number of rows?)"
        )
    last = indices[-1]
    if last is not None and not 1 <= last <= len(X) - n_batch:
        return f"indices of {last} axes for an array of rank {len(X)} with batch_dims={n_batch}"

    return None


def scatter_nd(node: Node) -> str | None:
    """Return what is wrong with the shapes of indices and updates."""
    X, indices, updates = (node.shape(i) for i in range(3))
    if not is_known(X) or not is_known(indices) or not is_known(updates) or not indices:
        return None
    if not 1 <= indices[-1] <= len(X) or updates != indices[:-1] + X[indices[-1] :]:
        return f"indices of shape {indices} and updates of shape {updates} for the shape {X}"

    return None


def elements(node: Node) -> str | None:
    """Return what is wrong with the shapes of indices and updates of single elements."""
    X, *others = node.shapes
    axis = node.get("axis", 0)
    for other in others:
        if X is not None and other is not None and len(X) != len(other):
            return f"indices or updates of rank {len(other)} for an array of rank {len(X)}"
        if is_known(X) and is_known(other) and not _fits(other, X, axis):
            return f"indices or updates of shape {other} for an array of shape {X}"
    if len(others) == 2 and is_known(others[0]) and is_known(others[1]) and others[0] != others[1]:
        return f"indices of shape {others[0]} with updates of shape {others[1]}"

    return None


def _fits(shape, inside, axis):
    """Return whether no size is larger than that of another array, but for one axis."""
    pairs = enumerate(zip(shape, inside, strict=True))
    return all(size <= most or i == axis % len(inside) for i, (size, most) in pairs)


def split(node: Node) -> str | None:
    """Return what is wrong with the sizes of the parts."""
    X = node.shape(0)
    sizes = node.constant(1)
    axis = node.get("axis", 0)
    if X is None or sizes is None or not -len(X) <= axis < len(X) or X[axis] is None:
        return None
    if (sizes < 0).any() or sizes.sum() != X[axis]:
        return f"the sizes {sizes.tolist()} for {X[axis]} elements"

    return None


def slice_(node: Node) -> str | None:
    """Return what is wrong with the bounds of a slice."""
    shapes = [shape for shape in node.shapes[1:] if is_known(shape)]
    if len(set(shapes)) > 1:
        return f"starts, ends, axes and steps of the shapes {shapes}"
    steps = node.constant(4)
    return "a step of 0" if steps is not None and not steps.all() else None


def pad(node: Node) -> str | None:
    """Return what is wrong with the widths of a border."""
    X = node.shape(0)
    pads = node.shape(1)
    if X is None or not is_known(pads):
        return None
    if pads != (2 * len(X),):
        return f"pads of shape {pads} for an array of rank {len(X)}"
    value = node.constant(1)
    if value is None or not is_known(X):
        return None
    if (value.reshape(2, -1).sum(axis=0) + X < 0).any():
        return f"pads {value.tolist()} that cut more than an array of shape {X} has"
    reflects = node.get("mode", b"constant") == b"reflect"
    if reflects and (value.reshape(2, -1) >= np.maximum(X, 1)).any():
        return f"reflecting pads {value.tolist()} for an array of shape {X}"

    return None


def tile(node: Node) -> str | None:
    """Return what is wrong with the repeats."""
    X = node.shape(0)
    repeats = node.shape(1)
    if X is not None and is_known(repeats) and repeats != (len(X),):
        return f"repeats of shape {repeats} for an array of rank {len(X)}"
    value = node.constant(1)
    return "a negative repeat" if value is not None and (value < 0).any() else None


def shape_value(node: Node) -> str | None:
    """Check an array of sizes, which is the last input."""
    value = node.constants[-1]
    return f"the sizes {value.tolist()}" if value is not None and (value < 0).any() else None


def reshape(node: Node) -> str | None:
    """Return what is wrong with the new shape."""
    X = node.shape(0)
    sizes = node.constant(1)
    if sizes is None:
        return None
    if (sizes < -1).any() or (sizes == -1).sum() > 1:
        return f"the shape {sizes.tolist()}"
    if X is not None and not node.get("allowzero", 0) and (sizes[len(X) :] == 0).any():
        return f"a 0 in the shape {sizes.tolist()} beyond the rank {len(X)} of its array"

    return None


def concat(node: Node) -> str | None:
    """Return what is wrong with the ranks of the arrays."""
    ranks = {len(shape) for shape in node.shapes if shape is not None}
    return f"arrays of the ranks {sorted(ranks)}" if len(ranks) > 1 else None


def resize(node: Node) -> str | None:
    """Return what is wrong with the scales or the sizes."""
    X = node.shape(0)
    for i, what in ((2, "scales"), (3, "sizes")):
        value = node.constant(i)
        if X is None or value is None or not value.size:
            continue
        if value.shape != (len(X),) or not (value > 0).all():
            return f"the {what} {value.tolist()} for an array of rank {len(X)}"

    return None


def quantized(node: Node) -> str | None:
    """Return what is wrong with a scale and a zero point."""
    X, scale, zero = (node.shape(i) for i in range(3))
    if X is None or not is_known(scale) or not scale or math.prod(scale) == 1:
        return None
    axis = node.get("axis", 1)
    if not -len(X) <= axis < len(X) or scale != (X[axis],):
        return f"a scale of shape {scale} for an array of shape {X}"

    return None if zero in (None, scale) else f"a zero point of shape {zero}"


def depth_to_space(node: Node) -> str | None:
    """Return what is wrong with the size of blocks."""
    X = node.shape(0)
    size = node.get("blocksize", 1)
    if X is not None and X[1] is not None and X[1] % size**2:
        return f"blocksize={size} for {X[1]} channels"

    return None


def space_to_depth(node: Node) -> str | None:
    """Return what is wrong with the size of blocks."""
    X = node.shape(0)
    size = node.get("blocksize", 1)
    if is_known(X) and (X[2] % size or X[3] % size):
        return f"blocksize={size} for an array of shape {X}"

    return None


def top_k(node: Node) -> str | None:
    """Return what is wrong with the number of elements."""
    X = node.shape(0)
    k = node.constant(1)
    axis = node.get("axis", -1)
    if X is None or k is None or not -len(X) <= axis < len(X) or X[axis] is None:
        return None
    if k.size != 1 or not 0 <= k.item() <= X[axis]:
        return f"k={k.ravel().tolist()} for {X[axis]} elements"

    return None


def reverse(node: Node) -> str | None:
    """Return what is wrong with the axes or the lengths."""
    X = node.shape(0)
    lengths = node.constant(1)
    axes = node.get("time_axis", 0), node.get("batch_axis", 1)
    if sorted(axes) != [0, 1]:
        return f"time_axis={axes[0]} and batch_axis={axes[1]}"
    if not is_known(X) or lengths is None:
        return None
    if lengths.shape != (X[axes[1]],) or ((lengths < 0) | (lengths > X[axes[0]])).any():
        return f"the lengths {lengths.tolist()} for an array of shape {X}"

    return None
