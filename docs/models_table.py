"""Writes the page "Which models are trained" from what `benchmarks/models.py` finds out."""

import re
import runpy
import textwrap
import warnings
from pathlib import Path

HERE = Path(__file__).parent

PAGE = """\
Which models are trained
========================

What `OrtSGDRegressor(model)` and `OrtSGDClassifier(model)` do with every regressor and classifier of scikit-learn
{sklearn}, at its default parameters: {n_trained} are trained, {n_refused} refused, before anything is fitted. This page
is written by a script that tries each of them with solver {solvers}.

A model is trained with its own loss and penalty, to the optimum of its own `fit`; see :doc:`objective`. The last column
says what is trained instead where a model minimises nothing of that form.

A fitted model of any type, scikit-learn's or your own, is trained as `FrozenEstimator(model)` where its ONNX graph has
weights and its operators have gradients: see :doc:`pipelines_and_fine_tuning`. `positive=True` of a model is
refused. Models that hold others (voting, stacking, searches, ...) are not trained as a whole; put the
estimator of skort inside them.

{tables}"""

TABLE = """\
{title}
{line}

.. list-table::
    :header-rows: 1
    :widths: 30 35 35

    * - model
      - outcome
      - trained as
{rows}
"""


def write(path):
    """Write the page."""
    import sklearn

    measure = runpy.run_path(str(HERE.parent / "benchmarks" / "models.py"))
    tables, outcomes = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for title in ("Regressors", "Classifiers"):
            models = measure["scikit_learn_models"](title.lower().removesuffix("s"))
            found = [measure["outcome"](name, model) for name, model in models]
            rows = "\n".join(f"    * - `{o.name}`\n      - {_cell(o)}\n      - {_trained_as(o)}" for o in found)
            tables.append(TABLE.format(title=title, line="-" * len(title), rows=rows))
            outcomes += found
    n_refused = sum(o.refusal is not None for o in outcomes)
    n_trained = sum(o.refusal is None and "(" not in o.name for o in outcomes)
    path.write_text(
        PAGE.format(
            sklearn=sklearn.__version__,
            n_trained=n_trained,
            n_refused=n_refused,
            solvers=" and ".join(f'`"{solver}"`' for solver in measure["available_solvers"]()),
            tables="\n".join(tables),
        )
    )


def _cell(outcome):
    if outcome.refusal is None:
        return "**trained**"
    reason = textwrap.shorten(outcome.refusal, 110, placeholder=" ...")
    return "refused: " + re.sub(r"(?<=operator )\w+|OrtSGD\w+", r"`\g<0>`", re.sub(r"'(\w+)'", r"`\1`", reason))


def _trained_as(outcome):
    """Return "a `LinearRegression`: squared error, no penalty.", or nothing."""
    said = (outcome.trained_as or "").partition(" trained ")[2]
    return re.sub(r"\b[A-Z]\w*[A-Z]\w*", r"`\g<0>`", said.removeprefix("as "))


if __name__ == "__main__":
    write(HERE / "models.rst")
