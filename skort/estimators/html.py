"""The HTML of an estimator in a notebook: scikit-learn's diagram, and a table about the fit."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils import estimator_html_repr

from skort.common.component import DocumentationLink
from skort.estimators.planning.table import rows
from skort.optim.state import best_epoch

# The largest number of weight arrays that the table lists.
_MOST_WEIGHTS = 6


class HTMLRepr(DocumentationLink):
    """Adds a table about the fit to the diagram of an estimator, and links to the documentation."""

    def _html_repr(self) -> str:
        return estimator_html_repr(self) + (training_html(self) if "_result" in vars(self) else "")

    # scikit-learn calls `_html_repr` since version 1.7. The same two methods of 1.6 do not call it.

    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown = {"text/html": self._html_repr()} if get_config()["display"] == "diagram" else {}
        return {"text/plain": repr(self), **shown}


def training_html(estimator: Any) -> str:
    """Return an HTML table about the training. It has no colours: it fits light and dark pages."""
    cells = "".join(
        '<tr><th style="text-align:left;vertical-align:top;padding:1px 12px 1px '
        f'0;font-weight:600">{name}</th>'
        f'<td style="text-align:left;padding:1px 0;max-width:40em">{html.escape(value)}</td></tr>'
        for name, value in _facts(estimator).items()
    )
    return (
        '<div class="skort-training" style="margin:8px 0 '
        '12px;font-family:monospace;font-size:0.85em;line-height:1.4">'
        "<table "
        f'style="border-collapse:collapse;margin:0;width:auto"><tbody>{cells}</tbody></table>'
        f"<details><summary>plan</summary>{estimator.plan_._repr_html_()}</details></div>"
    )


def _facts(estimator: Any) -> dict[str, str]:
    """Return the rows of the table."""
    best = best_epoch(estimator.validation_scores_ or ())
    decided = {matter: value for matter, value, *_ in rows(estimator.plan_.decisions)}
    facts = {
        "optimizer": decided.get("optimizer", ""),
        "learning rate": decided.get("learning rate", ""),
        "solver": estimator.solver_,
        "epochs": f"{estimator.n_iter_:,} ({estimator.t_:,} updates)",
        "stopped": estimator.stopping_reason_ or "",
        "objective": "" if estimator.loss_ is None else f"{estimator.loss_:.4g} in the last epoch",
        "validation": "" if best is None else f"best score {best[1]:.4g}, in epoch {best[0]:,}",
        "weights": _weights(estimator.weights_, estimator.trainable_),
    }
    return {name: value for name, value in facts.items() if value not in ("", "none")}


def _weights(weights: Mapping[str, np.ndarray], trainable: Sequence[str]) -> str:
    """
    Return how many weights there are, how many of them were trained,
    and their names and shapes.
    """
    n_all = sum(array.size for array in weights.values())
    n_trained = sum(weights[name].size for name in trainable)
    trained = "" if n_trained == n_all else f", of which {n_trained:,} were trained"

    # Lines must not break within a shape.
    shapes = [
        f"{name} {array.shape}".replace(" ", "\N{NO-BREAK SPACE}")
        for name, array in weights.items()
    ]
    more = f" and {len(shapes) - _MOST_WEIGHTS} more" if len(shapes) > _MOST_WEIGHTS else ""
    arrays = "1 array" if len(shapes) == 1 else f"{len(shapes)} arrays"

    return f"{n_all:,} numbers in {arrays}{trained}: {', '.join(shapes[:_MOST_WEIGHTS])}{more}"
