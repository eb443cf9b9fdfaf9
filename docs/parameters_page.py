"""Writes the page of all parameters from the docstrings of both estimators."""

import inspect
import re
from pathlib import Path

from skort import OrtSGDClassifier, OrtSGDRegressor

GROUPS = {
    "Model": ("estimator", "trainable", "standardize", "dtype"),
    "Objective": (
        "loss",
        "class_weight",
        "penalty",
        "alpha",
        "l1_ratio",
        "epsilon",
        "quantile",
        "n_total",
    ),
    "Optimizer": ("optimizer", "eta0", "learning_rate", "power_t", "max_grad_norm", "average"),
    "Batches and epochs": ("batch_size", "max_iter", "random_state", "shuffle", "warm_start"),
    "Stopping": (
        "early_stopping",
        "tol",
        "n_iter_no_change",
        "validation_fraction",
        "scoring",
    ),
    "Computing": ("solver", "device", "n_jobs", "callbacks", "verbose"),
}

TITLE = """Parameters
==========

All parameters of :class:`~skort.OrtSGDRegressor` and :class:`~skort.OrtSGDClassifier`, by what they change.

"""

TABLE = """.. list-table::
    :header-rows: 1
    :widths: 20 14 66

    * - parameter
      - default
      - what it does
"""


def parameters(cls) -> dict[str, tuple[str, str]]:
    """Return the default value and the description of each parameter of an estimator."""
    section = re.search(
        r"\nParameters\n-+\n(.*?)\n\nAttributes\n---", inspect.getdoc(cls), re.DOTALL
    )[1]
    entries = re.findall(r"^(\w+) : .*\n((?:    .*\n?)+)", section, re.MULTILINE)
    defaults = {name: repr(p.default) for name, p in inspect.signature(cls).parameters.items()}
    return {
        name: (defaults[name].replace("'", '"'), " ".join(text.split())) for name, text in entries
    }


def page() -> str:
    """Return the page, in reStructuredText."""
    regressor, classifier = parameters(OrtSGDRegressor), parameters(OrtSGDClassifier)
    parts = [TITLE]
    for title, names in GROUPS.items():
        rows = "".join(_row(name, regressor.get(name), classifier.get(name)) for name in names)
        parts.append(f"{title}\n{'-' * len(title)}\n\n{TABLE}{rows}\n")
    return "".join(parts)


def _row(name, regressor, classifier):
    default, text = regressor or classifier
    if regressor is None or classifier is None:
        text = f"{'Regressor' if regressor else 'Classifier'} only. {text}"
    elif classifier[1] != text:
        text = f"Regressor: {text}\n\n        Classifier: {classifier[1]}"
    return f"    * - `{name}`\n      - `{default}`\n      - {text}\n"


if __name__ == "__main__":
    Path(__file__).with_name("parameters.rst").write_text(page())
