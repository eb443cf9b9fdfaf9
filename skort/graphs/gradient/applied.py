"""One node of a graph, as the rules see it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

__all__ = ["Applied", "Rule", "broadcast_axes", "each", "int64s", "sum_to", "texts"]

# Operators whose inputs are repeated to the shape of the output.
_BROADCASTING = frozenset({"Add", "Sum", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Where", "Expand"})


@dataclass(frozen=True)
class Applied:
    """
    One node of a graph, and what is known of its inputs and outputs.

    Parameters
    ----------
    node : onnx.NodeProto
    shapes : dict of str to tuple of int
        Of all results that have a known shape.
    constants : dict of str to ndarray
        The values that are known.
    dtype : dtype or None
        Of the first output, where it is float32 or float64.
    """

    node: onnx.NodeProto
    shapes: dict[str, tuple[int, ...]]
    constants: dict[str, np.ndarray]
    dtype: np.dtype | None

    def shape(self, i):
        """Return the shape of input `i`."""
        return self.shapes[self.node.input[i]]

    def gradient_shape(self, i):
        """Return the shape of what the rule by input `i` gives."""
        is_broadcast = self.node.op_type in _BROADCASTING or (self.node.op_type, i) == ("Gemm", 2)
        return self.shapes[self.node.output[0]] if is_broadcast else self.shape(i)

    def is_known(self):
        """Return whether all its inputs and outputs have known shapes."""
        return all(name in self.shapes for name in (*self.node.input, *self.node.output) if name)

    def constant(self, i):
        """Return the value of input `i`; None where it is not known or not there."""
        return self.constants.get(self.node.input[i]) if i < len(self.node.input) else None

    def others_are_constant(self):
        """Return whether the values of all inputs after the first are known."""
        return all(name in self.constants for name in self.node.input[1:] if name)

    def attribute(self, name, default=None):
        """Return the value of an attribute."""
        for attribute in self.node.attribute:
            if attribute.name == name:
                return helper.get_attribute_value(attribute)
        return default

    def axis(self, default):
        """Return the attribute `axis`, not negative, for the first input."""
        return self.attribute("axis", default) % max(1, len(self.shape(0)))


# Of a node and the position of an input: the text, or None where it is not differentiated by that input.
Rule = Callable[[Applied, int], "str | None"]


def texts(*texts):
    """Return the rule of an operator with one text for each input; no gradient by the inputs after them."""
    return lambda applied, i: texts[i] if i < len(texts) else None


def each(text):
    """Return the rule of an operator that has the same text for all inputs."""
    return lambda applied, i: text


def int64s(values):
    """Return a list of integers as text."""
    values = list(values)
    return f"int64[{len(values)}] {{{', '.join(str(int(value)) for value in values)}}}"


def broadcast_axes(shape, given):
    """Return the axes of the shape `given` along which an array of `shape` was repeated."""
    n_new = len(given) - len(shape)
    return [i for i, size in enumerate(given) if i < n_new or (shape[i - n_new] == 1 and size != 1)]


def sum_to(shape, given):
    """Return the function `(dy) => (dx)` that sums an array of shape `given` to `shape`, which was broadcast to it."""
    same_rank, is_number = len(shape) == len(given), math.prod(shape) == 1
    # The sum over all axes takes less time than that over all but those of size 1.
    axes = list(range(len(given))) if is_number else broadcast_axes(shape, given)
    if axes == [0] and len(given) == 2:
        # The same sums as a product, which takes half the time of ReduceSum, or less.
        return f"""
sum_of_rows (dy) => (dx) {{
    size = Constant <value = {int64s([1, given[0]] if same_rank else given[:1])}> ()
    ones = ConstantOfShape <value = float[1] {{1}}> (size)
    dx = MatMul (ones, dy)
}}"""
    # Without the sizes of 1 that are repeated as well as new, the sum has the shape.
    is_shaped = same_rank or len(axes) == len(given) - len(shape)
    return f"""
sum_to (dy) => (dx) {{
    axes = Constant <value = {int64s(axes)}> ()
    shape = Constant <value = {int64s(shape)}> ()
    {"dx" if is_shaped else "sum"} = ReduceSum <keepdims = {int(same_rank)}> (dy, axes)
    {"" if is_shaped else "dx = Reshape (sum, shape)"}
}}"""
