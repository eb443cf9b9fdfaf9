"""The validation set of a training: that of the user, or rows that are held out."""

import numpy as np
import scipy.sparse
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from skort.descent.callbacks import EpochScoring

__all__ = ["VALIDATION_SCORE", "given_scoring", "held_out_scoring", "hold_out"]

#: The column of the history that has the scores of the validation set.
VALIDATION_SCORE = "validation_score"


def given_scoring(X_val, y_val, scoring):
    """
    Return what scores the user's own validation set.

    Parameters
    ----------
    X_val, y_val : array-like or None
    scoring : str, callable or None

    Returns
    -------
    scoring : EpochScoring or None
        None where there is no such set.

    Raises
    ------
    ValueError
        Where one of X_val and y_val is missing.
    """
    if X_val is None and y_val is None:
        return None
    if X_val is None or y_val is None:
        given, missing = ("y_val", "X_val") if X_val is None else ("X_val", "y_val")
        raise ValueError(f"{given} was given without {missing}: a validation set needs both.")
    return EpochScoring(X_val, y_val, scoring, name=VALIDATION_SCORE)


def hold_out(estimator, y, sample_weight, random_state):
    """
    Choose the rows that a training is scored on.

    Parameters
    ----------
    estimator : BaseOrtSGD
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    sample_weight : ndarray of shape (n_samples,) or None
        What the rows count in the training.
    random_state : numpy.random.RandomState

    Returns
    -------
    rows : ndarray of int
        The numbers of the rows that are held out.
    sample_weight : ndarray of shape (n_samples,)
        Zero for these rows.

    Raises
    ------
    ValueError
        Where the rows are too few to be split.
    """
    sample_weight = np.ones(len(y)) if sample_weight is None else sample_weight.copy()
    rows = _random_part(estimator, y, np.flatnonzero(sample_weight), random_state)
    sample_weight[rows] = 0.0
    if not sample_weight.any():
        raise ValueError(f"validation_fraction={estimator.validation_fraction} leaves no row to train on.")
    return rows, sample_weight


def held_out_scoring(X, y, sample_weight, rows, scoring):
    """
    Return what scores the rows that are held out.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        As given to `fit`.
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    sample_weight : array-like of shape (n_samples,) or None
        As given to `fit`, and validated.
    rows : ndarray of int
    scoring : str, callable or None

    Returns
    -------
    scoring : EpochScoring
    """
    if sample_weight is not None:
        sample_weight = np.broadcast_to(sample_weight, len(y))[rows]
    X = X.tocsr() if scipy.sparse.issparse(X) else X
    return EpochScoring(_safe_indexing(X, rows), y[rows], scoring, sample_weight, name=VALIDATION_SCORE)


def _random_part(estimator, y, rows, random_state):
    """Return a random part of the rows, of each class the same part."""
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
