"""The validation set of a training: the user's own rows, or held-out rows."""

import math
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from skort.common.named_errors import errors_of
from skort.common.sklearn_private import num_samples
from skort.estimators.data.row_forms import check_in_memory, check_no_iterator
from skort.estimators.data.rows import TrainingData
from skort.optim.callbacks import EpochScoring
from skort.optim.training import Training

#: The column of the history that holds the scores of the validation set.
VALIDATION_SCORE = "validation_score"
# Fewer rows may have a constant that is better than a good model by chance. No benchmark chose it.
_TELLING_ROWS = 20
# What errors call the rows: those that are held out have passed the checks of X.
_ROWS = "X_val"


class ValidationSet:
    """The traits of a callback that scores a validation set, by default those of any score."""

    #: The loss of the best constant prediction, once the training has begun. None: it is not known,
    #: or no model can be better.
    constant_loss: float | None = None
    #: The score of the weights that the training began with. None: it is not known.
    initial: float | None = None
    #: Whether there are enough rows to say that a model is no better than their constant.
    is_telling: bool = True


class ValidationLoss(ValidationSet):
    """A callback that records minus the loss of a validation set in the history."""

    def __init__(
        self, X: Any, target: np.ndarray, sample_weight: np.ndarray | None, *, decides: bool = False
    ):
        self._rows = TrainingData(X, target, sample_weight)
        self.is_telling = len(target) >= _TELLING_ROWS
        #: Whether the training asks it whether the last weights are worse than the best ones.
        self.judges = decides

    def on_train_begin(self, training: Training) -> None:
        """Prepare the rows, and compute the loss of the best constant prediction."""
        with errors_of(_ROWS):
            X = training.prepare(self._rows.X)
        self._loss = loss = training.loss_of(self._rows._replace(X=X))
        self.initial = -loss.at(training.step.weights())
        # Nothing is better than the constant of rows that have one target.
        if np.any(self._rows.target != self._rows.target[:1]):
            self.constant_loss = loss.best_constant(training.step.weights())

    def rise(self, weights: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> np.ndarray:
        """
        Return how far the sum of losses at weights is above that at others,
        and its squared standard error.
        """
        return self._loss.total * self._loss.rise(weights, others)

    def on_epoch_end(self, training: Training) -> None:
        """Record minus the loss in the history."""
        training.history.record(VALIDATION_SCORE, -self._loss.at(training.step.weights()))

    def on_train_end(self, training: Training) -> None:
        """Release the rows."""
        self.__dict__.pop("_loss", None)


class ValidationScoring(ValidationSet, EpochScoring):
    """A callback that records the score of a validation set in the history."""

    _rows = _ROWS


def check_lengths(X_val: Any, y_val: Any) -> None:
    """Raise an error if a validation set has other numbers of rows in X_val and in y_val."""
    check_in_memory(X_val, "X_val")
    check_no_iterator(X_val, "X_val")
    n_rows = _n_rows(X_val, "X_val")
    n_targets = _n_rows(y_val, "y_val")
    if n_rows != n_targets:
        raise ValueError(f"X_val has {n_rows} rows, and y_val has {n_targets}.")


def _n_rows(rows, name):
    try:
        return num_samples(rows)
    except TypeError as error:
        raise ValueError(f"{name}: {error}") from None


def hold_out(
    estimator: Any,
    y: np.ndarray,
    sample_weight: np.ndarray | None,
    random_state: np.random.RandomState,
    *,
    may_lack_classes: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the held-out rows, and sample weights that are zero for them."""
    sample_weight = np.ones(len(y)) if sample_weight is None else sample_weight.copy()
    rows = np.flatnonzero(sample_weight)
    rows = _random_part(estimator, y, rows, random_state, may_lack_classes=may_lack_classes)
    sample_weight[rows] = 0.0
    if not sample_weight.any():
        raise ValueError(
            f"validation_fraction={estimator.validation_fraction} leaves no row to train on."
        )

    return rows, sample_weight


def _why_not_stratified(labels, error):
    """Say why no rows of each class can be held out, or repeat the error."""
    classes, counts = np.unique(labels, return_counts=True)
    rare = classes[counts < 2]
    if len(rare):
        return (
            f"the class {rare.tolist()[0]!r} has one row, and the training and the validation set need one "
            "each. Give fit X_val and y_val, or leave the class out."
        )
    if len(labels) < 10 * len(classes):
        return (
            f"{len(labels)} rows of {len(classes)} classes are too few. Increase "
            "validation_fraction, or give fit X_val and y_val."
        )
    return str(error)


def _random_part(estimator, y, rows, random_state, *, may_lack_classes):
    """
    Return a random part of the rows. For a classifier, it has the same share of each class. If it
    may lack classes, and they have too few rows, it has any rows.
    """
    from sklearn.model_selection import train_test_split

    fraction = estimator.validation_fraction
    stratify = y[rows] if is_classifier(estimator) and y.ndim == 1 else None
    # A row of each class is held out, and one is left.
    if stratify is not None and may_lack_classes:
        counts = np.unique(stratify, return_counts=True)[1]
        n_held_out = math.ceil(fraction * len(rows))
        if counts.min() < 2 or min(n_held_out, len(rows) - n_held_out) < len(counts):
            stratify = None

    try:
        _, held_out = train_test_split(
            rows, test_size=fraction, random_state=random_state, stratify=stratify
        )
    except ValueError as error:
        reason = str(error) if stratify is None else _why_not_stratified(stratify, error)
        raise ValueError(
            f"early_stopping=True cannot hold out validation_fraction={fraction}: {reason}"
        ) from error

    if len(held_out) < 2:
        raise ValueError(
            f"The validation set is too small: {len(held_out)} of {len(rows)} rows. Increase "
            "validation_fraction or pass X_val and y_val."
        )

    return held_out
