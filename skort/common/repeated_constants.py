"""Constants repeated to the shape of the arrays that they are combined with."""

import copy

import onnx
from onnx import helper

__all__ = ["is_elementwise", "repeated_constants"]

_UNARY = frozenset(
    [
        "Abs",
        "Cos",
        "Exp",
        "Identity",
        "Log",
        "Neg",
        "Not",
        "Reciprocal",
        "Relu",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sqrt",
        "Tanh",
    ]
)
# Pow is left out: it is faster with a single exponent.
_BROADCASTING = frozenset(
    ["Add", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mul", "Sub", "Where"]
)


def is_elementwise(function: onnx.FunctionProto) -> bool:
    """Return whether a function combines the elements of its inputs one by one."""
    return {node.op_type for node in function.node} <= {"Constant", *_UNARY, *_BROADCASTING}


def repeated_constants(function: onnx.FunctionProto) -> onnx.FunctionProto:
    """
    Return an elementwise function with its constants repeated to the shape of its first input.

    ONNX Runtime combines a column with a number row by row, which takes ten times as long as with another column. It
    repeats the constants only once, when it makes the session.

    Parameters
    ----------
    function : onnx.FunctionProto

    Returns
    -------
    function : onnx.FunctionProto
        `function` itself if it has no constants, or an operator that is not elementwise.
    """
    if not is_elementwise(function) or all(node.op_type != "Constant" for node in function.node):
        return function
    # Nobody writes a name with a slash, so this one is free.
    repeated, shape = copy.deepcopy(function), "shape/of_first_input"
    del repeated.node[:]
    repeated.node.append(helper.make_node("Shape", function.input[:1], [shape]))
    for node in function.node:
        repeated.node.append(node)
        if node.op_type == "Constant":
            single = f"{node.output[0]}/single"
            repeated.node[-1].output[0] = single
            repeated.node.append(helper.make_node("Expand", [single, shape], node.output))
    return repeated
