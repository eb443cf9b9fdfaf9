"""Checks of an ONNX model before it runs: no loops, huge results, or crashing divisions."""

import math
from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from skort.common.onnx_text import constant_value, read_names
from skort.exceptions import NotTrainableError

#: ONNX's types of integers.
INTEGERS = frozenset(
    getattr(TensorProto, f"{sign}INT{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)
)
# A model with this many nodes takes minutes.
_MAX_NODES = 2**20
# Each level of nested `If`s doubles the time that ONNX Runtime needs: 8 levels take 0.05 s.
_MAX_DEPTH = 8
_RAISE = "If this is intended, raise skort.graphs.onnx_models.MAX_VALUES, which is"


def check_functions(model: onnx.ModelProto) -> None:
    """Raise a ValueError if a function calls itself, or if inlining gives too many nodes."""
    functions = {(function.domain, function.name): function for function in model.functions}
    sizes: dict[tuple[str, str], int] = {}

    def size(body, above):
        total = 0
        for node in (node for part in with_branches(body) for node in part.node):
            called = node.domain, node.op_type
            if called in above:
                raise ValueError(f"its function {node.op_type!r} calls itself.")

            if called in functions and called not in sizes:
                sizes[called] = size(functions[called], {*above, called})
            total += sizes.get(called, 1)

        return total

    if size(model.graph, set()) > _MAX_NODES:
        raise ValueError(
            f"its functions have more than {_MAX_NODES:,} nodes when they are inlined."
        )


def check_nesting(graph: onnx.GraphProto, depth: int = 0) -> None:
    """Raise an error if `If`s are nested so deeply that ONNX Runtime takes long to read them."""
    for node in graph.node:
        branches = [a.g for a in node.attribute if a.HasField("g")]
        if branches and depth == _MAX_DEPTH:
            raise NotTrainableError(
                f"estimator: the {node.op_type} node {node.name!r} of the ONNX model is inside "
                f"{depth} others. ONNX Runtime takes twice as long for each. Write the branches "
                f"with Where, or nest at most {_MAX_DEPTH}."
            )
        for branch in branches:
            check_nesting(branch, depth + 1)


def check_limits(graph: onnx.GraphProto, max_values: int) -> None:
    """Raise an error if a graph with known types may run for long, need much memory, or crash."""
    parts = list(with_branches(graph))
    constants = constants_of(parts)
    types = {
        name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in constants.items()
    }
    types |= {
        i.name: i.type.tensor_type.elem_type
        for part in parts
        for i in (*part.input, *part.value_info)
    }
    ranks = {name: array.ndim for name, array in constants.items()}
    ranks |= {
        i.name: len(i.type.tensor_type.shape.dim)
        for part in parts
        for i in (*part.input, *part.value_info)
    }

    for part in parts:
        for node in part.node:
            if node.op_type in ("Conv", "ConvTranspose") and ranks.get(node.input[1], 0) < 3:
                raise NotTrainableError(
                    f"estimator: the weight {node.input[1]!r} of the {node.op_type} node "
                    f"{node.name!r} of the ONNX model is not known to have three dimensions or "
                    "more, as a convolution needs."
                )
            if node.op_type in ("Loop", "Scan"):
                raise NotTrainableError(
                    f"estimator: the ONNX model computes with the operator {node.op_type} "
                    f"(node {node.name!r}), which has no gradient, and which may never end. "
                    "Cut the model after it."
                )

            if node.op_type in ("Div", "Mod") and types.get(node.input[1]) in INTEGERS:
                _check_divisor(node, constants.get(node.input[1]))

        for info in part.value_info:
            dims = tuple(d.dim_value or 1 for d in info.type.tensor_type.shape.dim)
            check_size(info.name, dims, max_values)


def check_size(name: str, shape: tuple[int, ...], max_values: int) -> None:
    """Raise an error if the shape of a result for one row has too many values."""
    if math.prod(shape) > max_values:
        raise NotTrainableError(
            f"estimator: the result {name!r} of the ONNX model has {math.prod(shape):,} values per "
            f"row or more, of shape {list(shape)}. {_RAISE} {max_values:,}."
        )


def check_ranges(graph: onnx.GraphProto, max_values: int) -> None:
    """
    Raise an error if a Range of constants is too long, or if its length is unknown.

    onnx computes all numbers of such a Range to infer shapes.
    """
    parts = list(with_branches(graph))
    constants = constants_of(parts)
    of_rows = {i.name for i in graph.input}

    for node in (node for part in parts for node in part.node):
        if not of_rows.isdisjoint(read_names(node)):
            of_rows.update(node.output)
        elif node.op_type == "Range":
            ends = [constants[name] for name in node.input if constants.get(name) is not None]
            if len(ends) < len(node.input):
                raise NotTrainableError(
                    f"estimator: the ends of the Range {node.output[0]!r} of the ONNX model are "
                    "computed from constants, so that its size is not known. Fold the constants, "
                    "for instance with onnxsim."
                )

            start, limit, step = (float(end.reshape(-1)[0]) if end.size else 0.0 for end in ends)
            if not step or (limit - start) / step > max_values:
                raise NotTrainableError(
                    f"estimator: the Range {node.output[0]!r} of the ONNX model goes from "
                    f"{start:g} to {limit:g} by {step:g}, which is too many values. {_RAISE} "
                    f"{max_values:,}."
                )


def _check_divisor(node, divisor: np.ndarray | None) -> None:
    if divisor is None:
        what = "a number that is computed, and that may be zero"
    elif (divisor == 0).any() or (divisor == -1).any():
        what = "zero, or by -1 where a change of sign is meant"
    else:
        return

    raise NotTrainableError(
        f"estimator: the operator {node.op_type} (node {node.name!r}, result {node.output[0]!r}) "
        f"of the ONNX model divides integers by {what}. ONNX Runtime would end the process. Divide "
        "by a constant, or divide floats."
    )


def with_branches(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and the graphs inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inside in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from with_branches(inside)


def constants_of(parts: list[onnx.GraphProto]) -> dict[str, np.ndarray]:
    """Return the values of all initializers and `Constant` nodes, by name."""
    constants = {i.name: numpy_helper.to_array(i) for part in parts for i in part.initializer}
    for node in (node for part in parts for node in part.node if node.op_type == "Constant"):
        constants[node.output[0]] = constant_value(node)
    return constants
