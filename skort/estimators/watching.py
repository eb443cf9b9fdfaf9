"""What watches the training of an estimator: its validation set, what stops it, its callbacks."""

import numpy as np
import scipy.sparse
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from skort.descent.callbacks import EarlyStopping, EpochLines, EpochScoring, ProgressBar

__all__ = ["VALIDATION_SCORE", "validation_scoring", "watchers"]

VALIDATION_SCORE = "validation_score"


def watchers(estimator, scoring=None, *, one_epoch=False):
    """
    Return the callbacks of a training, in their order.

    Parameters
    ----------
    estimator : BaseOrtSGD
    scoring : EpochScoring or None, default=None
        Of the validation set.
    one_epoch : bool, default=False
        Whether it is the training of a `partial_fit`, which nothing stops and no bar shows.
    """
    users, lines = estimator.callbacks or (), [EpochLines()] if estimator.verbose > 1 else []
    if one_epoch:
        return [*users, *lines]
    early = estimator.early_stopping
    stopping = EarlyStopping(
        VALIDATION_SCORE if early else "objective",
        patience=estimator.n_iter_no_change,
        tol=estimator.tol,
        restore_best=early,
    )
    # A bar or lines come last: they show what the others have written down.
    shown = [ProgressBar()] if estimator.verbose == 1 else lines
    return [*([] if scoring is None else [scoring]), stopping, *users, *shown]


def validation_scoring(estimator, X, y, sample_weight, weights, random_state, X_val, y_val):
    """
    Choose the rows that a training is scored on.

    Parameters
    ----------
    estimator : BaseOrtSGD
    X : array-like of shape (n_samples, n_features)
        As given to `fit`.
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    sample_weight : array-like of shape (n_samples,) or None
        As given to `fit`, and validated.
    weights : ndarray of shape (n_samples,) or None
        What the rows count in the training.
    random_state : numpy.random.RandomState
    X_val, y_val : array-like or None
        The user's own validation set.

    Returns
    -------
    scoring : EpochScoring or None
    weights : ndarray of shape (n_samples,) or None
        Zero for rows that are held out.

    Raises
    ------
    ValueError
        Where one of X_val and y_val is missing, or the rows are too few to be split.
    """
    if X_val is not None or y_val is not None:
        if X_val is None or y_val is None:
            given, missing = ("y_val", "X_val") if X_val is None else ("X_val", "y_val")
            raise ValueError(f"{given} was given without {missing}: a validation set needs both.")
        return EpochScoring(X_val, y_val, estimator.scoring, name=VALIDATION_SCORE), weights
    if not estimator.early_stopping:
        return None, weights
    weights = np.ones(len(y)) if weights is None else weights.copy()
    held_out = _held_out(estimator, y, np.flatnonzero(weights), random_state)
    weights[held_out] = 0.0
    if not weights.any():
        raise ValueError(f"validation_fraction={estimator.validation_fraction} leaves no row to train on.")
    if sample_weight is not None:
        sample_weight = np.broadcast_to(sample_weight, len(y))[held_out]
    rows = X.tocsr() if scipy.sparse.issparse(X) else X
    X_val, y_val = _safe_indexing(rows, held_out), y[held_out]
    return EpochScoring(X_val, y_val, estimator.scoring, sample_weight, name=VALIDATION_SCORE), weights


def _held_out(estimator, y, rows, random_state):
    """Return a random part of the rows, of each class the same part."""
    from sklearn.model_selection import train_test_split

    fraction = estimator.validation_fraction
    stratify = y[rows] if is_classifier(estimator) else None
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
