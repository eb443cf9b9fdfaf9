"""A plan as a table: each decision, its value, the reason, and the parameter that changes it."""

import html
import textwrap
from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator, clone

from skort.estimators.planning import epochs, optimizer, scaling
from skort.estimators.planning.decision import Decision

HEADINGS = ("decision", "value", "because", "change it with")
#: The matters in the order of the table.
MATTERS = (
    "loss",
    "penalty",
    "class weights",
    "weights",
    "scaling",
    "optimizer",
    "learning rate",
    "first rate",
    "average",
    "batches",
    "epochs",
    "stopping",
    "validation",
    "solver",
    "threads",
    "dtype",
    "restarts",
    "kept",
    "end",
)
# A longer text goes on in the next line.
_WIDTHS = (13, 25, 31, 16)


def rows(decisions: Mapping[str, Decision]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table, as text."""
    known = [(matter, decisions[matter]) for matter in MATTERS if matter in decisions]
    return [
        (matter, _text(matter, each.value, decisions), each.because, each.change_with)
        for matter, each in known
    ]


def _text(matter: str, value: Any, decisions: Mapping[str, Decision]) -> str:
    """Return the value of a decision as text."""
    first = decisions.get("first rate")
    if isinstance(value, str):
        return value
    if matter == "optimizer":
        return optimizer.described(value, 1.0 if first is None else first.value)
    if matter == "scaling":
        return scaling.described(value)
    if matter == "stopping":
        return epochs.described(value)
    if matter == "batches":
        return f"{value:,} rows" if value > 1 else "single rows"
    if matter == "epochs":
        return f"at most {value:,}"
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.3g}"

    return repr(_short(value))


def _short(value: Any) -> Any:
    """
    Return a value as the table shows it. Numbers have three digits, and ONNX functions are shown by
    name, also inside of components and lists.
    """
    if isinstance(value, BaseEstimator):
        parameters = value.get_params(deep=False).items()
        return clone(value).set_params(**{name: _short(each) for name, each in parameters})
    if type(value) in (list, tuple):
        return type(value)(_short(each) for each in value)
    if isinstance(value, float):
        return float(f"{value:.3g}")
    if isinstance(value, str) and "=>" in value:
        return value.partition("(")[0].strip()
    if hasattr(value, "SerializeToString"):
        return value.name
    return value


def as_text(decisions: Mapping[str, Decision]) -> str:
    """Return the table as text, in lines of at most 88 characters."""
    lines = []
    for row in [HEADINGS, *rows(decisions)]:
        wrapped = [
            textwrap.wrap(text, width) or [""] for text, width in zip(row, _WIDTHS, strict=True)
        ]
        for i in range(max(map(len, wrapped))):
            cells = [
                (lines_of[i] if i < len(lines_of) else "").ljust(width)
                for lines_of, width in zip(wrapped, _WIDTHS, strict=True)
            ]
            lines.append(" ".join(cells).rstrip())

    return "\n".join(lines)


def as_html(decisions: Mapping[str, Decision]) -> str:
    """Return the table as HTML, in the colours of the text around it."""
    style = "text-align:left;vertical-align:top;padding:1px 12px 1px 0"
    head = "".join(f'<th style="{style};font-weight:600">{name}</th>' for name in HEADINGS)
    body = "".join(
        "<tr>" + "".join(f'<td style="{style}">{html.escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows(decisions)
    )
    return (
        '<table class="skort-plan" style="border-collapse:collapse;margin:0;width:auto">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
