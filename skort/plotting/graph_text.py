"""An ONNX graph as text, and in the language of Graphviz, with constants inside operators."""

import html
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

from skort.common.node_phases import phase_of
from skort.common.onnx_text import constant_value, read_names

# The largest number of values of a constant that is written out.
_FEW = 6
# The largest numbers of characters of an attribute and of the expression of a constant.
_LONG = 24
_LONGEST = 120
# Dark text on light boxes, grey for all else: readable on white and on black.
_FILLS = {
    "forward": "#a9cdea",
    "loss": "#f9cf8f",
    "backward": "#cdbbea",
    "penalty": "#f4b3b3",
    "update": "#a9dba6",
    None: "#d5d8dc",
}
_GREY = "#808080"
_HEAD = f"""\
digraph {{
  bgcolor="transparent" fontname="Helvetica,Arial,sans-serif" fontsize=13 fontcolor="{_GREY}" color="{_GREY}"
  node [shape=box style="rounded,filled" fontname="Helvetica,Arial,sans-serif" fontsize=11 color="{_GREY}"
    fontcolor="#1a1a1a" fillcolor="{_FILLS[None]}" height=0.3 margin="0.1,0.04"]
  edge [color="{_GREY}" arrowsize=0.6]
  ranksep=0.3 nodesep=0.2
"""


class Argument(NamedTuple):
    """An argument of an operator."""

    #: The name of a result or an input, or the numbers of a constant. A large constant or a weight
    #: has its name and shape.
    text: str
    is_constant: bool


class Operator(NamedTuple):
    """A node of a graph with its constants inside."""

    op_type: str
    arguments: list[Argument]
    attributes: dict[str, str]
    #: The names of its results.
    outputs: list[str]
    phase: str | None


def operators_of(model: onnx.ModelProto) -> list[Operator]:
    """
    Return the operators of a model in order.

    Results that are computed from constants alone are arguments of the operators that read them.
    """
    constants = {i.name: _weight(i.name, numpy_helper.to_array(i)) for i in model.graph.initializer}
    outputs = {output.name for output in model.graph.output}
    known = {*constants, *(i.name for i in model.graph.input)}

    operators = []
    for node in model.graph.node:
        # Results of the graph that a subgraph reads come after the inputs.
        inside = [name for name in read_names(node) if name in known and name not in node.input]
        names = [name for name in (*node.input, *dict.fromkeys(inside)) if name]
        arguments = [Argument(constants.get(name, name), name in constants) for name in names]
        results = [name for name in node.output if name]
        operator = Operator(node.op_type, arguments, _attributes(node), results, phase_of(node))
        known |= set(node.output)
        has_subgraph = any(
            a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in node.attribute
        )
        is_constant = (
            all(argument.is_constant for argument in operator.arguments) and not has_subgraph
        )

        if (
            is_constant
            and outputs.isdisjoint(node.output)
            and (operator.arguments or node.op_type == "Constant")
        ):
            constants |= dict.fromkeys(operator.outputs, _folded(node, operator))
        else:
            operators.append(operator)

    return operators


def _folded(node: onnx.NodeProto, operator: Operator) -> str:
    """Return the text of a constant that a node computes."""
    arguments = [argument.text for argument in operator.arguments]
    if node.op_type == "Constant":
        return _described(node.output[0], constant_value(node))
    if node.op_type == "Identity":
        return arguments[0]
    if node.op_type == "ConstantOfShape" and node.attribute:
        return (
            f"{_value(numpy_helper.to_array(node.attribute[0].t).reshape(-1)[0])} of "
            f"shape {arguments[0]}"
        )

    text = f"{node.op_type}({', '.join(arguments)})"
    return text if len(text) <= _LONGEST else node.output[0]


def _types(model: onnx.ModelProto) -> tuple[dict[str, str], dict[str, str]]:
    """Return the types of the inputs that a model gets, and of its outputs, by name."""
    given = {i.name for i in model.graph.initializer}
    inputs = {i.name: _type(i) for i in model.graph.input if i.name not in given}
    return inputs, {output.name: _type(output) for output in model.graph.output}


def _type(info: onnx.ValueInfoProto) -> str:
    tensor = info.type.tensor_type
    if not tensor.elem_type:
        return info.type.WhichOneof("value") or ""

    is_text = tensor.elem_type == onnx.TensorProto.STRING
    name = "str" if is_text else str(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    dims = [
        str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?"
        for d in tensor.shape.dim
    ]

    return f"{name}[{', '.join(dims)}]" if dims else name


def _weight(name: str, array: np.ndarray) -> str:
    """Return the name and the shape of weights, the numbers of other initializers."""
    return (
        _named(name, array) if array.dtype.kind == "f" and array.ndim else _described(name, array)
    )


def _named(name: str, array: np.ndarray) -> str:
    return f"{name}[{', '.join(map(str, array.shape))}]"


def _described(name: str, array: np.ndarray) -> str:
    """Return the numbers of a small constant, the name and the shape of a larger one."""
    if array.size == 1 and array.ndim != 1:
        return _value(array.reshape(-1)[0])
    if array.size <= _FEW and array.ndim == 1:
        return f"[{', '.join(_value(value) for value in array)}]"
    return _named(name, array)


def _value(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def _attributes(node: onnx.NodeProto) -> dict[str, str]:
    """Return the short attributes of a node as text, by name."""
    found = {}
    for attribute in node.attribute:
        if attribute.type in (
            AttributeProto.INT,
            AttributeProto.FLOAT,
            AttributeProto.STRING,
            AttributeProto.INTS,
        ):
            value = helper.get_attribute_value(attribute)
            text = (
                f"[{', '.join(map(str, value))}]"
                if attribute.type == AttributeProto.INTS
                else _value(value)
            )
            if len(text) <= _LONG:
                found[attribute.name] = text

    return found


def plain_text(model: onnx.ModelProto) -> str:
    """Return the inputs, the operators by phase, and the outputs of a model, one per line."""
    inputs, outputs = (
        [f"  {name}: {type_}" for name, type_ in types.items()] for types in _types(model)
    )
    lines = ["inputs", *inputs]
    phase: str | None = ""

    for operator in operators_of(model):
        if operator.phase != phase:
            phase = operator.phase
            lines.append(phase or "operators")

        attributes = [f"{name}={value}" for name, value in operator.attributes.items()]
        arguments = ", ".join([*(argument.text for argument in operator.arguments), *attributes])
        lines.append(f"  {', '.join(operator.outputs)} = {operator.op_type}({arguments})")

    return "\n".join([*lines, "outputs", *outputs])


def dot_text(model: onnx.ModelProto) -> str:
    """
    Return a model in the language of Graphviz.

    Operators are boxes, in a frame for each phase. Inputs and outputs are ellipses.
    """
    operators, (inputs, outputs) = operators_of(model), _types(model)
    made = {name: f"input{i}" for i, name in enumerate(inputs)}
    made |= {name: f"node{i}" for i, operator in enumerate(operators) for name in operator.outputs}
    lines = [_ellipse(f"input{i}", name, inputs[name]) for i, name in enumerate(inputs)]

    for phase in dict.fromkeys(operator.phase for operator in operators):
        numbered = {i: operator for i, operator in enumerate(operators) if operator.phase == phase}
        boxes = [_box(i, operator) for i, operator in numbered.items()]
        head = (
            []
            if phase is None
            else [f"  subgraph cluster_{phase} {{", f"    label={_quoted(phase)}"]
        )
        lines += [*head, *(f"  {box}" for box in boxes), "  }"] if head else boxes

    lines += [_ellipse(f"output{i}", name, outputs[name]) for i, name in enumerate(outputs)]
    lines += _edges(operators, made)
    lines += [f"  {made[name]} -> output{i}" for i, name in enumerate(outputs) if name in made]

    return "\n".join([_HEAD.rstrip(), *lines, "}"])


def _ellipse(identity: str, name: str, type_: str) -> str:
    label = _quoted("\n".join([name, type_]))
    return f"  {identity} [shape=ellipse label={label}]"


def _box(i: int, operator: Operator) -> str:
    """Return an operator with its constants; a pointer on it shows the names of its results."""
    constants = [argument.text for argument in operator.arguments if argument.is_constant]
    label = "\n".join([operator.op_type, *constants])
    return (
        f"  node{i} [label={_quoted(label)} fillcolor={_quoted(_FILLS[operator.phase])} "
        f"tooltip={_quoted(', '.join(operator.outputs))}]"
    )


def _edges(operators: list[Operator], made: dict[str, str]) -> Iterator[str]:
    for i, operator in enumerate(operators):
        read = dict.fromkeys(
            a.text for a in operator.arguments if not a.is_constant and a.text in made
        )
        for name in read:
            yield f"  {made[name]} -> node{i} [tooltip={_quoted(name)}]"


def _quoted(text: str) -> str:
    """Return a text as a string of Graphviz."""
    # Graphviz reads entities of HTML in a string.
    escaped = html.escape(text, quote=False).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n") + '"'
