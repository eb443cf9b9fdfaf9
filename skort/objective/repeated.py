"""Constants in the shape of the arrays that they meet."""

import copy

from onnx import helper

__all__ = ["repeated_constants"]

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
# Without Pow, which is faster with one exponent.
_BROADCASTING = frozenset(
    ["Add", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mul", "Sub", "Where"]
)


def repeated_constants(function):
    """
    Return an elementwise function with its constants repeated to the shape of its first input.

    ONNX Runtime takes a column and a number row by row, which takes ten times as long as a column and a column. It
    repeats the constants once, when it makes the session.

    Parameters
    ----------
    function : onnx.FunctionProto

    Returns
    -------
    function : onnx.FunctionProto
        The same one where an operator is not elementwise, or there is no constant.
    """
    operators = {node.op_type for node in function.node}
    if "Constant" not in operators or not operators <= {"Constant", *_UNARY, *_BROADCASTING}:
        return function
    # With a slash, which is in no name that somebody writes.
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
