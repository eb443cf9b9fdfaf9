"""The scorer of a validation set, and advice for one that cannot score a model."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

# The names of scores in other libraries.
_SYNONYMS = {
    "auc": "roc_auc",
    "acc": "accuracy",
    "logloss": "neg_log_loss",
    "log_loss": "neg_log_loss",
    "mae": "neg_mean_absolute_error",
    "mean_absolute_error": "neg_mean_absolute_error",
    "mse": "neg_mean_squared_error",
    "mean_squared_error": "neg_mean_squared_error",
    "pr_auc": "average_precision",
    "rmse": "neg_root_mean_squared_error",
    "mape": "neg_mean_absolute_percentage_error",
    "mean_absolute_percentage_error": "neg_mean_absolute_percentage_error",
    "msle": "neg_mean_squared_log_error",
    "rmsle": "neg_root_mean_squared_log_error",
    "brier": "neg_brier_score",
    "brier_score": "neg_brier_score",
    "cross_entropy": "neg_log_loss",
    "r2_score": "r2",
    "f1_score": "f1",
}
# What to use for more than two classes.
_SEVERAL_CLASSES = {
    "average_precision": "average_precision",
    "f1": "f1_macro",
    "jaccard": "jaccard_macro",
    "precision": "precision_macro",
    "recall": "recall_macro",
    "roc_auc": "roc_auc_ovr",
}


def scorer_of(model: Any, scoring: Any) -> Callable[..., float]:
    """Return scikit-learn's scorer; for an unknown name, raise an error that suggests one."""
    from sklearn.metrics import check_scoring

    if isinstance(scoring, str):
        check_name(scoring)
    return check_scoring(model, scoring)


def check_name(scoring: str) -> None:
    """Raise a ValueError that suggests a name if scikit-learn has no scorer of a name."""
    similar = nearest_name(scoring)
    if similar == scoring:
        return

    suggestion = "" if similar is None else f" Did you mean scoring={similar!r}?"
    raise ValueError(
        f"scoring={scoring!r} is not a scorer of scikit-learn.{suggestion} "
        "sklearn.metrics.get_scorer_names() lists them."
    )


def nearest_name(scoring: str) -> str | None:
    """Return scikit-learn's name of a scorer that has another name elsewhere, or None."""
    from difflib import get_close_matches

    from sklearn.metrics import get_scorer_names

    names = get_scorer_names()
    if scoring in names:
        return scoring
    similar = _SYNONYMS.get(scoring.lower()) or next(iter(get_close_matches(scoring, names, 1)), "")
    return similar if similar in names else None


def scoring_advice(model: Any, scoring: Any, y: Any) -> str:
    """Return a sentence, after a space, for a scorer that cannot score a model on y, or no text."""
    classes = getattr(model, "classes_", None)
    if not isinstance(scoring, str):
        return _advice_on_metric(scoring)
    if classes is None:
        return " Scorers of regressors are 'r2', 'neg_mean_absolute_error' and others."
    if len(classes) > 2:
        other = _SEVERAL_CLASSES.get(scoring, scoring)
        return f" For several classes, use scoring={other!r}." if other != scoring else ""
    if scoring not in _SEVERAL_CLASSES or 1 in classes.tolist():
        return ""

    from sklearn.metrics import get_scorer

    scorer = get_scorer(scoring)
    response = getattr(scorer, "_response_method", "predict")
    method = "" if response == "predict" else f", response_method={response!r}"
    return (
        f" Name the class that counts as positive: scoring=make_scorer({scorer._score_func.__name__}"
        f"{method}, pos_label={_positive(classes, y)})."
    )


def nan_advice(model: Any, y: Any) -> str:
    """Return a sentence, after a space, for a scorer that is NaN on some rows."""
    labels = np.unique(np.asarray(y)).tolist() if hasattr(model, "classes_") else []
    if len(labels) == 1:
        return f" All these rows have the label {labels[0]!r}: give rows of other labels, too."
    return " Give other rows, or another scoring."


def _positive(classes, y):
    """Return the rarer of two classes as text, or both if they have the same number of rows."""
    labels = np.asarray(y)
    counts = [int(np.sum(labels == label)) for label in classes]
    names = [repr(label) for label in classes.tolist()]
    return " or ".join(names) if counts[0] == counts[1] else names[counts[1] < counts[0]]


def _advice_on_metric(scoring):
    """Return a sentence, after a space, for a function of (y, prediction), which is no scorer."""
    try:
        inspect.signature(scoring).bind("y", "prediction")
    except (TypeError, ValueError):
        return ""

    name = getattr(scoring, "__name__", "metric")
    return (
        " A scorer is a function of (estimator, X, y). For one of (y, prediction), give "
        f"scoring=make_scorer({'metric' if name == '<lambda>' else name})."
    )
