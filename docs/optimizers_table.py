"""
Writes the table of optimizers for their page, from the names,
docstrings and parameters of their classes.
"""

import inspect
import re
from pathlib import Path

from skort.optim.optimizers import OPTIMIZERS

HERE = Path(__file__).parent


def table() -> str:
    """Return the table."""
    rows = [
        _row(f'`"{name}"`, :class:`~skort.optimizers.{cls.__name__}`', cls)
        for name, cls in OPTIMIZERS.items()
    ]
    head = [".. list-table::", "    :header-rows: 1", "    :widths: 25 50 25", ""]
    return "\n".join(
        [*head, "    * - `optimizer` and class\n      - update\n      - parameters", *rows, ""]
    )


def _row(cell, cls):
    """Return the row of a class: the first formula of its docstring, and its parameters."""
    parameters = inspect.signature(cls).parameters.values()
    values = ", ".join(f"`{p.name}` = {p.default}" for p in parameters)
    return f"    * - {cell}\n      - {_update(inspect.getdoc(cls))}\n      - {values}".rstrip()


def _update(docstring):
    """Return the first formula of a docstring as a sentence: its steps one after the other."""
    formula = re.search(r"\.\. math:: *(.*?)\n\n(?=\S)", docstring, re.DOTALL)[1]
    steps = [
        " ".join(step.replace("&", "").split()) for step in re.split(r", \\qquad|\n\n", formula)
    ]
    steps = [f":math:`{step}`" for step in steps if step]
    return ", then ".join([", ".join(steps[:-1]), steps[-1]] if len(steps) > 1 else steps)


if __name__ == "__main__":
    (HERE / "optimizers_table.txt").write_text(table())
