"""ONNX functions written as formulas in Python's syntax."""

import ast
import functools
import re
import textwrap
from typing import Any

#: Python's name of a sign -> the ONNX operator that it stands for in a formula.
_SIGNS = {
    "Add": "Add",
    "Sub": "Sub",
    "Mult": "Mul",
    "Div": "Div",
    "USub": "Neg",
    "LtE": "LessOrEqual",
    "Eq": "Equal",
}
_NAMES = {0: "zero", 0.5: "half", 1: "one", 2: "two"}
_CONSTANT = "Constant <value = float {%r}> ()"


@functools.lru_cache(256)
def function_text(signature: str, formula: str, **constants: float) -> str:
    """
    Return the ONNX function `name (inputs) => (outputs)` of a formula such as
    `loss = 0.5 * Abs(score - target)`.
    """
    # A function in the formula is an ONNX operator, and its keywords are attributes. Lines that no
    # output needs are left out. Numbers, lists of integers and the names of `constants` become
    # constants.
    outputs = re.findall(r"\w+", signature.rpartition("(")[2])
    parsed: list[Any] = ast.parse(textwrap.dedent(formula)).body
    lines = [(line.targets[0].id, line.value) for line in parsed]
    needed = set(outputs)

    for name, expression in reversed(lines):
        if name in needed:
            needed |= {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}

    numbers = {name: _CONSTANT % number for name, number in constants.items() if name in needed}
    nodes: dict[str, str] = {}
    taken = {*re.findall(r"\w+", signature), *(name for name, _ in lines)}

    for name, expression in lines:
        if name in needed:
            _add_nodes(nodes, numbers, taken, expression, name)

    return "\n".join(
        [
            f"{signature} {{",
            *(f"    {name} = {node}" for name, node in (numbers | nodes).items()),
            "}",
        ]
    )


def _add_nodes(
    nodes: dict[str, str],
    numbers: dict[str, str],
    taken: set[str],
    expression: Any,
    result: str = "",
) -> str:
    """
    Add the nodes of an expression to those by the names of their results;
    return the name of its result.
    """
    # `taken` are the names that the formula itself gives.
    operands: list[Any]
    match expression:
        case ast.Name(id=name) if not result:
            return name
        case ast.Name():
            operator = "Identity"
            operands = [expression]
            keywords = {}
        case ast.Constant(value=int() | float() as value):
            name = result or _free(_NAMES.get(value) or "c" + re.sub(r"\W", "_", str(value)), taken)
            (nodes if result else numbers)[name] = _CONSTANT % float(value)
            return name
        case ast.List(elts=values):
            operator = "Constant"
            operands = []
            keywords = {
                "value": (
                    f"int64[{len(values)}] {{{', '.join(ast.unparse(each) for each in values)}}}"
                )
            }
        case ast.Call(func=ast.Name(id=operator), args=operands):
            # A string is the ONNX text of an attribute that Python cannot express.
            given = {str(each.arg): each.value for each in expression.keywords}
            keywords = {
                k: str(v.value) if isinstance(v, ast.Constant) else ast.unparse(v)
                for k, v in given.items()
            }
        case (
            ast.BinOp(left=left, op=sign, right=right)
            | ast.Compare(left=left, ops=[sign], comparators=[right])
        ):
            operator = _SIGNS[type(sign).__name__]
            operands = [left, right]
            keywords = {}
        case ast.UnaryOp(op=sign, operand=operand):
            operator = _SIGNS[type(sign).__name__]
            operands = [operand]
            keywords = {}
        case _:
            raise ValueError(
                "A formula has operators, signs, names and numbers, got "
                f"{ast.unparse(expression)!r}."
            )

    inputs = ", ".join([_add_nodes(nodes, numbers, taken, operand) for operand in operands])
    attributes = ", ".join(f"{name} = {value}" for name, value in keywords.items())
    result = result or _free(f"{operator.lower()}_{len(nodes)}", taken)
    nodes[result] = f"{operator} {f'<{attributes}> ' if attributes else ''}({inputs})"

    return result


def _free(name: str, taken: set[str]) -> str:
    """Return a name, with a sign more if the formula has it."""
    return f"{name}_" if name in taken else name
