"""An ONNX graph as text, and in the language of Graphviz."""

import html
from collections.abc import Iterator

import onnx

from skort.plotting.graph_parts import Operator, inputs_of, operators_of, outputs_of

__all__ = ["dot_text", "plain_text"]

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


def plain_text(model: onnx.ModelProto) -> str:
    """Return the inputs, the operators with their phases, and the outputs of a model, a line each."""
    lines = ["inputs", *(f"  {name}: {type_}" for name, type_ in inputs_of(model).items())]
    phase: str | None = ""
    for operator in operators_of(model):
        if operator.phase != phase:
            phase = operator.phase
            lines.append(phase or "operators")
        attributes = [f"{name}={value}" for name, value in operator.attributes.items()]
        arguments = ", ".join([*(argument.text for argument in operator.arguments), *attributes])
        lines.append(f"  {', '.join(operator.outputs)} = {operator.op_type}({arguments})")
    lines += ["outputs", *(f"  {name}: {type_}" for name, type_ in outputs_of(model).items())]
    return "\n".join(lines)


def dot_text(model: onnx.ModelProto) -> str:
    """Return a model in the language of Graphviz: operators in boxes of their phases, inputs and outputs round."""
    operators, inputs, outputs = operators_of(model), inputs_of(model), outputs_of(model)
    made = {name: f"input{i}" for i, name in enumerate(inputs)}
    made |= {name: f"node{i}" for i, operator in enumerate(operators) for name in operator.outputs}
    lines = [_ellipse(f"input{i}", name, inputs[name]) for i, name in enumerate(inputs)]
    for phase in dict.fromkeys(operator.phase for operator in operators):
        numbered = {i: operator for i, operator in enumerate(operators) if operator.phase == phase}
        boxes = [_box(i, operator) for i, operator in numbered.items()]
        lines += boxes if phase is None else _cluster(phase, boxes)
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


def _cluster(phase: str, boxes: list[str]) -> list[str]:
    return [f"  subgraph cluster_{phase} {{", f"    label={_quoted(phase)}", *(f"  {box}" for box in boxes), "  }"]


def _edges(operators: list[Operator], made: dict[str, str]) -> Iterator[str]:
    for i, operator in enumerate(operators):
        read = dict.fromkeys(a.text for a in operator.arguments if not a.is_constant and a.text in made)
        for name in read:
            yield f"  {made[name]} -> node{i} [tooltip={_quoted(name)}]"


def _quoted(text: str) -> str:
    """Return a text as a string of Graphviz."""
    # Graphviz reads entities of HTML in a string.
    escaped = html.escape(text, quote=False).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n") + '"'
