"""One node of a graph, as the rules of gradients see it."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from skort.common.formulas import function_text

# Operators that broadcast their inputs to the shape of the output.
_BROADCASTING = frozenset(
    {"Add", "Sum", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Where", "Expand"}
)
# Inputs that other operators broadcast: (operator, position of the input).
_BROADCAST_INPUTS = frozenset(
    {("Gemm", 2), ("LayerNormalization", 1), ("LayerNormalization", 2), ("PRelu", 1)}
)


@dataclass(frozen=True)
class Applied:
    """
    One node of a graph, and the known shapes and values of all results.

    `dtype` is that of its first output; None if that is not of floats.
    """

    node: onnx.NodeProto
    shapes: dict[str, tuple[int, ...]]
    constants: dict[str, np.ndarray]
    dtype: np.dtype | None

    def shape(self, i: int) -> tuple[int, ...]:
        """Return the shape of input `i`."""
        return self.shapes[self.node.input[i]]

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the first output."""
        return self.shapes[self.node.output[0]]

    def gradient_shape(self, i: int) -> tuple[int, ...]:
        """Return the shape of the gradient that the rule gives for input `i`."""
        is_broadcast = (
            self.node.op_type in _BROADCASTING or (self.node.op_type, i) in _BROADCAST_INPUTS
        )
        return self.output_shape if is_broadcast else self.shape(i)

    def is_known(self) -> bool:
        """Return whether the shapes of all inputs and outputs are known."""
        return all(name in self.shapes for name in (*self.node.input, *self.node.output) if name)

    def constant(self, i: int) -> np.ndarray | None:
        """Return the value of input `i`; None if it is unknown or missing."""
        return self.constants.get(self.node.input[i]) if i < len(self.node.input) else None

    def others_are_constant(self) -> bool:
        """Return whether the values of all inputs after the first are known."""
        return all(name in self.constants for name in self.node.input[1:] if name)

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute."""
        for attribute in self.node.attribute:
            if attribute.name == name:
                return helper.get_attribute_value(attribute)
        return default

    def axis(self, default: int) -> int:
        """Return the attribute `axis`, counted from the first axis of the first input."""
        return self.attribute("axis", default) % max(1, len(self.shape(0)))


# (node, position of an input) -> the gradient by that input as a formula or ONNX function; None if
# there is none.
Rule = Callable[[Applied, int], "str | None"]
_INPUTS = re.compile(r"\b(?:[abc]|x\d*|d?y\d*)\b")


def texts(*formulas: str | None) -> Rule:
    """
    Return the rule of an operator with a formula for each of its first inputs;
    the others have no gradient.
    """
    return lambda applied, i: formulas[i] if i < len(formulas) else None


def each(formula: str) -> Rule:
    """Return the rule of an operator with the same formula for all inputs."""
    return lambda applied, i: formula


def gradient_text(formula: str) -> str:
    """
    Return the ONNX function of a formula for dx. Its inputs are the names in the formula.

    A text that is a function already is returned as it is.
    """
    if "=>" in formula:
        return formula
    return function_text(
        f"gradient ({', '.join(dict.fromkeys(_INPUTS.findall(formula)))}) => (dx)", formula
    )


def int64s(values: Iterable[int]) -> str:
    """Return integers as the ONNX text of a vector."""
    texts = [str(int(value)) for value in values]
    return f"int64[{len(texts)}] {{{', '.join(texts)}}}"


def broadcast_axes(shape: Sequence[int], given: Sequence[int]) -> list[int]:
    """Return the axes along which an array of `shape` is repeated to get the shape `given`."""
    n_new = len(given) - len(shape)
    return [i for i, size in enumerate(given) if i < n_new or (shape[i - n_new] == 1 and size != 1)]


def sum_to(shape: Sequence[int], given: Sequence[int]) -> str:
    """
    Return the formula that sums an array of shape `given` to `shape`:
    the inverse of a broadcast.
    """
    same_rank = len(shape) == len(given)
    is_number = math.prod(shape) == 1
    shaped = f"dx = Reshape(%s, {list(shape)})"
    if math.prod(given) == 1:
        return shaped % "dy"

    # Summing over all axes is faster than over all but those of size 1.
    axes = list(range(len(given))) if is_number else broadcast_axes(shape, given)
    if axes == [0] and len(given) == 2:
        # A product with ones gives the same sums in at most half the time of ReduceSum.
        return f"dx = MatMul(Expand(1, {[1, given[0]] if same_rank else [given[0]]}), dy)"

    total = f"ReduceSum(dy, {axes}, keepdims={int(same_rank)})"
    # Skip Reshape if the sum has the shape already.
    return f"dx = {total}" if same_rank or len(axes) == len(given) - len(shape) else shaped % total
