"""
Draw the rooms of the package, and which imports which, as the code does:
`python docs/house_drawing.py`.

It needs the program `dot` of Graphviz, and writes `docs/static/house.svg`, which takes the colour
of the page's text.
"""

import ast
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE, DRAWING = HERE.parent / "skort", HERE / "static" / "house.svg"

# From the top to the bottom: the rooms of each floor, and what is in them.
FLOORS = [
    {"search": "many fits|trained together"},
    {"estimators": "what a user touches:|settings, fit, predict, export"},
    {"solvers": "one gradient step,|by one API of ONNX Runtime"},
    {
        "graphs": "model to ONNX graph,|and its gradient",
        "optim": "optimizers, schedules,|batches, the loop",
    },
    {
        "objective": "losses and penalties,|as ONNX text",
        "runtime": "all use of onnxruntime:|sessions, devices",
    },
]
ROOMS = {name: text for floor in FLOORS for name, text in floor.items()}
COLORS = dict(
    zip(
        ROOMS,
        ["#999999", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"],
        strict=True,
    )
)


def imports():
    """Return which room imports which, as pairs of names."""
    pairs = set()
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skort."):
                pairs.add((room, node.module.split(".")[1]))
    return {
        (room, other) for room, other in pairs if {room, other} <= ROOMS.keys() and room != other
    }


def dot():
    """Return the drawing as text for Graphviz."""
    lines = [
        "digraph house {",
        "  bgcolor=transparent; rankdir=TB; nodesep=0.4; ranksep=0.4",
        (
            '  node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=17, '
            'margin="0.15,0.1"]'
        ),
        "  edge [arrowsize=0.7]",
    ]
    for floor in FLOORS:
        for name, text in floor.items():
            label = f'<<b>{name}</b><br/><font point-size="14">{text.replace("|", "<br/>")}</font>>'
            lines.append(f'  {name} [label={label}, fillcolor="{COLORS[name]}"]')
        lines.append(f"  {{ rank=same; {'; '.join(floor)} }}")
    lines += [f"  {room} -> {other}" for room, other in sorted(imports())]
    return "\n".join([*lines, "}"])


def svg(text):
    """
    Return the drawing as SVG: lines and text in the colour of the page's text,
    on rooms that shine through.
    """
    drawing = subprocess.run(
        ["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=True
    ).stdout
    drawing = (
        drawing[drawing.index("<svg") :].replace("black", "currentColor").replace("&#45;", "-")
    )
    drawing = re.sub(r'fill="(#[0-9a-f]{6})"', r'fill="\1" fill-opacity="0.25"', drawing)
    drawing = re.sub(r"<text ", '<text fill="currentColor" ', drawing)
    return re.sub(
        r'<svg width="\d+pt" height="\d+pt"',
        '<svg role="img" style="max-width: 100%; height: auto; margin: 1rem 0"',
        drawing,
    )


if __name__ == "__main__":
    DRAWING.write_text(svg(dot()))
