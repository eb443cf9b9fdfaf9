"""The validation set of a training: the user's own, or rows that are held out."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from skort.estimators.model.preprocessing import as_rows
from skort.optim.callbacks import EpochScoring

Scoring: TypeAlias = str | Callable[..., float] | None

#: The column of the history that holds the scores of the validation set.
VALIDATION_SCORE = "validation_score"


def given_scoring(X_val: Any, y_val: ArrayLike | None, scoring: Scoring) -> EpochScoring | None:
    """Return the callback that scores the user's own validation set."""
    return EpochScoring(X_val, y_val, scoring, name=VALIDATION_SCORE) if is_given(X_val, y_val) else None


def is_given(X_val: Any, y_val: Any) -> bool:
    """Return whether there is a validation set; raise an error for a half of one."""
    if (X_val is None) != (y_val is None):
        given, missing = ("y_val", "X_val") if X_val is None else ("X_val", "y_val")
        raise ValueError(f"{given} was given without {missing}: a validation set needs both.")
    return X_val is not None


def hold_out(
    estimator: Any, y: np.ndarray, sample_weight: np.ndarray | None, random_state: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Choose the rows of the validation set."""
    sample_weight = np.ones(len(y)) if sample_weight is None else sample_weight.copy()
    rows = _random_part(estimator, y, np.flatnonzero(sample_weight), random_state)
    sample_weight[rows] = 0.0
    if not sample_weight.any():
        raise ValueError(f"validation_fraction={estimator.validation_fraction} leaves no row to train on.")
    return rows, sample_weight


def held_out_scoring(
    X: Any, y: np.ndarray, sample_weight: ArrayLike | None, rows: np.ndarray, scoring: Scoring
) -> EpochScoring:
    """Return the callback that scores the held-out rows."""
    if sample_weight is not None:
        sample_weight = np.broadcast_to(np.asarray(sample_weight), len(y))[rows]
    return EpochScoring(_safe_indexing(as_rows(X), rows), y[rows], scoring, sample_weight, name=VALIDATION_SCORE)


def _random_part(estimator, y, rows, random_state):
    """Return a random part of the rows, for a classifier with the same share of each class."""
    from sklearn.model_selection import train_test_split

    fraction = estimator.validation_fraction
    stratify = y[rows] if is_classifier(estimator) and y.ndim == 1 else None
    try:
        _, held_out = train_test_split(rows, test_size=fraction, random_state=random_state, stratify=stratify)
    except ValueError as error:
        raise ValueError(f"early_stopping=True cannot hold out validation_fraction={fraction}: {error}") from error
    if len(held_out) < 2:
        raise ValueError(
            f"The validation set is too small: {len(held_out)} of {len(rows)} rows. Increase validation_fraction or "
            "pass X_val and y_val."
        )
    return held_out
