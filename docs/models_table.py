"""Writes the page "Which models are trained" from what `benchmarks/models.py` finds out."""

import re
import runpy
import warnings
from pathlib import Path

HERE = Path(__file__).parent

PAGE = """\
Which models are trained
========================

scikit-learn {sklearn} has {n_models} regressors and classifiers. At their default parameters, skort

- trains {n_own} with scikit-learn's loss and penalty;
- trains {n_others} with another loss or penalty, and says so in a warning: `BayesianRidge` as a `LinearRegression`, for
  example. The remarks in the tables name them;
- refuses {n_refused}, before it fits anything, and says why.

More rules:

- **Other models.** Any fitted model, from scikit-learn or elsewhere, can be trained as `FrozenEstimator(model)` if its
  ONNX graph has weights and all its operators have gradients: :doc:`fine_tuning`.
- **TabularNetwork.** :class:`skort.networks.TabularNetwork` has what scikit-learn's networks lack: embeddings of
  categories and of numbers, and dropout. It goes where `MLPClassifier` goes: :doc:`networks`.
- **TransformedTargetRegressor** can be trained if the model in it can. Its transformer is fitted to y first.
- **Models that contain other models**, such as voting, stacking and searches, cannot be inside an estimator of
  skort: put the estimator of skort inside them.
- **positive=True** is refused, because gradient steps do not keep weights positive.

{tables}"""

TRAINED = """\
{title} that are trained
{line}

skort minimises the loss and the penalty of this table. Without a remark, they are those of scikit-learn's model: a long
fit of a linear model ends at the same optimum. A network has many optima. A remark says what skort trains instead; the
weights can then differ from scikit-learn's. :doc:`losses` and :doc:`objective` have the formulas.

.. list-table::
    :header-rows: 1
    :widths: 42 58

    * - model
      - loss, penalty and remark
{rows}
"""

REFUSED = """\
{title} that are refused
{line}

.. list-table::
    :header-rows: 1
    :widths: 50 50

    * - why, and what to do
      - models
{rows}
"""

# The beginning of a refusal, its reason and its cure in short.
REASONS = (
    ("put ", "It holds other models.", "Put `{ours}` inside it."),
    (
        "chooses ",
        "It chooses the strength of its penalty itself.",
        "Give the plain model, and search with `GridSearchCV`.",
    ),
    (
        ".*TreeEnsemble",
        "It decides by trees, which have no gradient.",
        "Convert it with skl2onnx, without skort.",
    ),
    (
        ".*operator (SVM|Scan)",
        "It compares rows with the training rows, without a gradient.",
        "Take a linear model.",
    ),
    (
        ".*operator",
        "An operator of its ONNX graph has no gradient.",
        "Take a linear model or a neural network.",
    ),
    ("skl2onnx", "skl2onnx does not convert it.", "Take a linear model or a neural network."),
)


def write(path):
    """Write the page."""
    import sklearn

    measure = runpy.run_path(str(HERE.parent / "benchmarks" / "models.py"))
    tables, outcomes = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, ours in (("regressor", "OrtSGDRegressor"), ("classifier", "OrtSGDClassifier")):
            models = [
                (n, m)
                for n, m in measure["scikit_learn_models"](kind)
                if n != "TransformedTargetRegressor"
            ]
            found = [(model, measure["outcome"](name, model)) for name, model in models]
            outcomes += [o for _, o in found]
            title = f"{kind.capitalize()}s"
            rows = "\n".join(_trained(model, o) for model, o in found if o.refusal is None)
            tables.append(_table(TRAINED, title, rows))
            tables.append(
                _table(
                    REFUSED, title, _refused([o for _, o in found if o.refusal is not None], ours)
                )
            )
    # "(" is in the name of a model that is listed a second time, with another parameter.
    trained = [o for o in outcomes if o.refusal is None and "(" not in o.name]
    n_refused = sum(o.refusal is not None for o in outcomes)
    path.write_text(
        PAGE.format(
            sklearn=sklearn.__version__,
            n_models=len(trained) + n_refused,
            n_own=sum(o.trained_as is None for o in trained),
            n_others=sum(o.trained_as is not None for o in trained),
            n_refused=n_refused,
            tables="\n".join(tables),
        )
    )


def _table(template, title, rows):
    heading = template.partition("\n")[0].format(title=title)
    return template.format(title=title, line="-" * len(heading), rows=rows)


def _trained(model, outcome):
    """Return a row: the model; its loss, its penalty and what is trained in its place."""
    from sklearn.base import is_classifier

    from skort.objective.sklearn_objectives import sklearn_objective

    own = sklearn_objective(model)
    default = "LogLoss" if is_classifier(model) else "SquaredError"
    loss = default if own.loss is None else type(own.loss).__name__
    trained = f":class:`~skort.objective.{loss}`, {own.penalty or 'no penalty'}"
    return (
        f"    * - `{outcome.name}`\n      - {'. '.join(filter(None, (trained, _remark(outcome))))}"
    )


def _refused(outcomes, ours):
    """Return a row for each reason, with all models that it is of."""
    rows = []
    for i, (pattern, why, cure) in enumerate(REASONS):
        before = [p for p, *_ in REASONS[:i]]
        names = [
            f"`{o.name}`"
            for o in outcomes
            if re.match(pattern, o.refusal) and not any(re.match(p, o.refusal) for p in before)
        ]
        if names:
            rows.append(f"    * - {why} {cure.format(ours=ours)}\n      - {', '.join(names)}")
    return "\n".join(rows)


def _remark(outcome):
    """Return "As a `LinearRegression`.", or nothing: the loss and the penalty stand before it."""
    said = re.sub(
        r": [\w -]+, no penalty", "", (outcome.trained_as or "").partition(" trained ")[2]
    )
    return re.sub(r"\b[A-Z]\w*[A-Z]\w*", r"`\g<0>`", said[:1].upper() + said[1:])


if __name__ == "__main__":
    write(HERE / "models.rst")
