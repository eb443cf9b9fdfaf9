"""The scorer of a validation set, and advice for one that cannot score a model."""

from collections.abc import Callable
from typing import Any

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
    from difflib import get_close_matches

    from sklearn.metrics import check_scoring, get_scorer_names

    names = get_scorer_names() if isinstance(scoring, str) else [scoring]
    if scoring in names:
        return check_scoring(model, scoring)

    similar = _SYNONYMS.get(scoring.lower()) or next(iter(get_close_matches(scoring, names, 1)), "")
    suggestion = f" Did you mean scoring={similar!r}?" if similar else ""
    raise ValueError(
        f"scoring={scoring!r} is not a scorer of scikit-learn.{suggestion} "
        "sklearn.metrics.get_scorer_names() lists them."
    )


def scoring_advice(model: Any, scoring: Any) -> str:
    """Return a sentence, after a space, for a name of a scorer that cannot score a model."""
    classes = getattr(model, "classes_", None)
    if classes is None or not isinstance(scoring, str):
        return ""
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
        f"{method}, pos_label={classes[1].item()!r})."
    )
