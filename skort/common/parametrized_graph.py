"""
Parts of a graph whose numbers are parameters:
graphs that differ in numbers only are the same graph.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, DTypeLike

from skort.common.onnx_text import Fragment, Source, function, is_elementwise

_NUMBER = re.compile(r"Constant\s*<\s*value\s*=\s*float\s*\{\s*([-+.\deE]+)\s*\}\s*>\s*\(\s*\)")
_END_OF_INPUTS = re.compile(r"\)\s*=>")


@dataclass
class _Line:
    """A call to a function, as its text or bytes, or a node of a standard operator, as its type."""

    source: str | bytes
    input: list[str]
    output: list[str]
    is_node: bool = False
    doc_string: str = ""


@functools.lru_cache(maxsize=256)
def with_parameters(source: str) -> tuple[str, tuple[float, ...]]:
    """
    Return a text for `function` with an input for each constant ``float {...}``.

    Return also the values of the constants.
    """
    numbers: list[float] = []

    def as_input(match):
        numbers.append(float(match[1]))
        return f"Identity (skort_number{len(numbers) - 1})"

    source = _NUMBER.sub(as_input, source)
    if not numbers:
        return source, ()
    names = "".join(f", skort_number{i}" for i in range(len(numbers)))
    return _END_OF_INPUTS.sub(f"{names}) =>", source, count=1), tuple(numbers)


_parsed = functools.lru_cache(maxsize=256)(function)


def signature(source: str | onnx.FunctionProto) -> tuple[list[str], list[str]]:
    """
    Return the names of the inputs and outputs of a function.

    Texts that differ in numbers only are parsed once.
    """
    if not isinstance(source, str):
        return list(source.input), list(source.output)
    text, numbers = with_parameters(source)
    parsed = _parsed(text, "float32")
    return list(parsed.input)[: len(parsed.input) - len(numbers)], list(parsed.output)


class Program(Fragment):
    """
    A Fragment whose calls are text, and whose numbers are inputs of the graph: `parameters`.

    The names of parameters contain `name`. Elementwise functions work on `batch_size` rows.
    """

    dtype: np.dtype
    nodes: list[Any]

    def __init__(self, dtype: DTypeLike, batch_size: int, name: str):
        super().__init__(np.dtype(dtype))
        self.parameters: dict[str, np.ndarray] = {}
        self._batch_size = batch_size
        self._name = name

    @functools.cached_property
    def structure(self) -> Any:
        """A hashable value of all that the graph depends on; all nodes have been added."""
        lines = (
            (n.source, tuple(n.input), tuple(n.output), n.is_node, n.doc_string) for n in self.nodes
        )
        return tuple(lines), tuple(
            (name, a.dtype.str, a.shape) for name, a in self.parameters.items()
        )

    def call(
        self,
        source: Source,
        inputs: Sequence[str],
        outputs: Sequence[str],
        n_columns: int | None = None,
    ) -> None:
        """Add a call to a function, as `Fragment.call` does."""
        if isinstance(source, str):
            text, numbers = with_parameters(source)
            shape: tuple[int, ...] = ()
            if n_columns is not None and is_elementwise(_parsed(text, self.dtype.str)):
                shape = self._batch_size, n_columns
            names = []
            for number in numbers:
                names.append(f"skort_{self._name}_{len(self.parameters)}")
                self.parameters[names[-1]] = np.full(shape, number, self.dtype)

            self.nodes.append(_Line(text, [*inputs, *names], list(outputs)))
        else:
            super().call(source, inputs, outputs, n_columns)

    def call_as_is(
        self, called: onnx.FunctionProto, inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        """Add a call to a function as `Fragment.call_as_is` does. Its numbers stay constants."""
        self.nodes.append(_Line(called.SerializeToString(), list(inputs), list(outputs)))

    def constant(self, name: str, array: ArrayLike) -> None:
        """Add a parameter with the values and the dtype of an array."""
        self.parameters[name] = np.ascontiguousarray(array).reshape(np.shape(array))

    def node(self, op_type: str, inputs: Sequence[str], outputs: Sequence[str]) -> None:  # type: ignore[override]
        """Add a node of a standard operator without attributes."""
        self.nodes.append(_Line(op_type, list(inputs), list(outputs), is_node=True))

    def write(self, fragment: Fragment) -> None:
        """Add the calls and nodes to a fragment. They read the parameters by their names."""
        for line in self.nodes:
            if isinstance(line.source, bytes):
                fragment.call_as_is(
                    onnx.FunctionProto.FromString(line.source), line.input, line.output
                )
            else:
                (fragment.node if line.is_node else fragment.call)(
                    line.source, line.input, line.output
                )

            fragment.nodes[-1].doc_string = line.doc_string
