"""Scores that are computed from partitions without gathering rows, also for a validation set."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from distributed import Future
from sklearn.base import is_classifier

from skort.dask.cluster import Borrower, Broadcast, Cluster
from skort.dask.part_statistics import Moments, Rows
from skort.dask.partitions import Part
from skort.estimators.data.rows import Columns, prepared
from skort.estimators.data.targets import unknown_error
from skort.estimators.data.validation_set import VALIDATION_SCORE, ValidationSet
from skort.estimators.training.observers import ModelPreview
from skort.estimators.training.result import result_of
from skort.optim.training import Training
from skort.runtime.cache import SessionPool

_PREVIEWS: SessionPool = SessionPool(4)


def _accuracy(model, X, y):
    is_right = model.predict(X) == y
    return is_right.all(axis=1) if is_right.ndim == 2 else is_right


def _log_probability(model, X, y):
    unknown = np.setdiff1d(y, model.classes_)
    if unknown.size:
        raise unknown_error(unknown, model.classes_)

    return model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]


def _square(model, X, y):
    return -np.square(y - model.predict(X))


#: The function of each row whose mean is the score, by name. Two scores transform the mean.
SCORES: dict[str, Callable[..., Any]] = {
    "accuracy": _accuracy,
    "neg_log_loss": _log_probability,
    "neg_mean_squared_error": _square,
    "neg_root_mean_squared_error": _square,
    "neg_mean_absolute_error": lambda model, X, y: -np.abs(y - model.predict(X)),
    "r2": _square,
}
_OF_CLASSIFIERS = ("accuracy", "neg_log_loss")


def check_scoring(estimator: Any, scoring: Any) -> str:
    """Return the name of a score. With None, return the name of the default score."""
    names = [name for name in SCORES if (name in _OF_CLASSIFIERS) == is_classifier(estimator)]
    name = ("accuracy" if is_classifier(estimator) else "r2") if scoring is None else scoring
    if name not in names:
        raise ValueError(
            f"scoring={scoring!r} cannot be computed from partitions. Use one of "
            f"{', '.join(map(repr, names))}, or the callback EpochScoring with rows in memory."
        )

    return name


class Tally(NamedTuple):
    """The sums from which a score is computed."""

    #: The weighted sums of the values of the rows, one for each output.
    values: np.ndarray
    #: The sum of the weights.
    total: float
    #: The moments of y, for a score that is relative to them.
    targets: Moments | None

    @property
    def mean(self) -> np.ndarray:
        """The weighted means over the rows."""
        return self.values / self.total

    def score(self, name: str) -> float:
        """Return the score with a name."""
        if name == "r2":
            assert self.targets is not None
            squares = self.targets.squares
            ratios = np.where(
                squares > 0,
                self.values / np.where(squares > 0, squares, 1.0),
                -1.0 * (self.values < 0),
            )
            return float(np.mean(1 + ratios))

        return float(
            np.mean(-np.sqrt(-self.mean) if name == "neg_root_mean_squared_error" else self.mean)
        )


def tally(model: Any, X: Any, y: Any, sample_weight: np.ndarray | None, name: str) -> Tally | None:
    """Return the tally of the rows of a partition, or None if no row counts."""
    if X.shape[0] == 0:
        return None

    y = np.asarray(y)
    y = y.ravel() if y.ndim == 2 and y.shape[1] == 1 and np.ndim(model.predict(X[:1])) == 1 else y
    values = SCORES[name](model, X, y).astype(np.float64).reshape(len(y), -1)
    weights = (
        np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    )
    total = float(weights.sum())

    targets = None
    if name == "r2" and total > 0:
        columns = y.astype(np.float64).reshape(len(y), -1)
        mean = weights @ columns / total
        targets = Moments(total, mean, weights @ np.square(columns - mean))

    return None if total == 0 else Tally(weights @ values, total, targets)


def merged_tallies(tallies: Sequence[Tally | None]) -> Tally | None:
    """Return the tally of several partitions."""
    some = [each for each in tallies if each is not None]
    if not some:
        return None
    values, totals, targets = zip(*some, strict=True)
    return Tally(sum(values[1:], values[0]), sum(totals), Moments.of_all(targets))


class PartLoss(ValidationSet):
    """A callback like `ValidationLoss`, for a validation set on the workers: futures of `Rows`."""

    def __init__(self, cluster: Cluster, parts: Sequence["Future[Any]"], *, decides: bool):
        self._cluster = cluster
        self._parts = parts
        #: Whether the training asks it whether the last weights are worse than the best ones.
        self.judges = decides

    def on_train_begin(self, training: Training) -> None:
        """Compute the loss of the best constant prediction."""
        estimator = training.trained_model()
        estimator.callbacks = None
        self._parts = self._cluster.each(
            _row_loss, self._parts, self._cluster.broadcast("preview", estimator)
        )
        weights = training.step.weights()
        self.constant_loss = float(
            np.fmin.reduce(self._mean("of_constants", self._mean("summary"), weights))
        )

    def on_epoch_end(self, training: Training) -> None:
        """Record minus the loss in the history."""
        training.history.record(VALIDATION_SCORE, -float(self._mean("at", training.step.weights())))

    def rise(self, weights: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> np.ndarray:
        """
        Return how far the sum of losses at weights is above that at others,
        and its squared standard error.
        """
        return self._tally("rise", weights, others).values

    def _mean(self, name, *arguments):
        return self._tally(name, *arguments).mean

    def _tally(self, name, *arguments):
        """Return the merged tally of the results of a method of `RowLoss` for all partitions."""
        return _merged(self._cluster, self._cluster.each(_tallied, self._parts, name, *arguments))


class PartScoring(ValidationSet):
    """
    A callback that scores a validation set on the workers after every epoch.

    The validation set has futures of `Part`. `scoring` is a name in `SCORES`.
    """

    def __init__(self, cluster: Cluster, parts: Sequence["Future[Any]"], scoring: str):
        self._cluster = cluster
        self._parts = parts
        self._scoring = scoring

    def on_train_begin(self, training: Training) -> None:
        """Score once, so that errors are raised before the training."""
        estimator = training.trained_model()
        estimator.callbacks = None
        self._estimator = self._cluster.broadcast("preview", estimator)
        self._parts = self._cluster.each(_prepared, self._parts, self._estimator)
        self._score(training)

    def on_epoch_end(self, training: Training) -> None:
        """Record the score in the history."""
        training.history.record(VALIDATION_SCORE, self._score(training))

    def _score(self, training):
        tallies = self._cluster.each(
            _tally, self._parts, training.weights(), self._estimator, self._scoring
        )
        return _merged(self._cluster, tallies).score(self._scoring)


def _merged(cluster, tallies):
    """Return the merged tally of a validation set."""
    merged = cluster.value(cluster.merged(merged_tallies, tallies))
    if merged is None:
        raise ValueError(
            "The validation set has no rows: increase validation_fraction, or give X_val and y_val."
        )

    return merged


def _row_loss(rows: Rows, estimator: Broadcast) -> Any:
    """Return the `RowLoss` of a partition, or None if it has no rows."""
    return None if rows.n_rows == 0 else _preview(estimator).loss_of(rows)


def _preview(estimator: Broadcast) -> ModelPreview:
    """Return a preview of the fitted estimator, which can take other weights."""
    fitted = estimator.value()
    return ModelPreview(fitted, Columns.of(fitted), result_of(fitted))


def _tallied(loss: Any, name: str, *arguments: Any) -> Tally | None:
    """Return the result of a method of a `RowLoss` as a tally."""
    return (
        None
        if loss is None
        else Tally(loss.total * getattr(loss, name)(*arguments), loss.total, None)
    )


def _prepared(part: Part, estimator: Broadcast) -> Part:
    """Return a partition with X transformed by the steps before the model."""
    if part.n_rows == 0:
        return part

    try:
        fitted = estimator.value()
        X = prepared(fitted, result_of(fitted).model, part.X)
        return Part(part.number, X, np.asarray(part.y), part.sample_weight)
    except ValueError as error:
        raise ValueError(f"Partition {part.number} of the validation set: {error}") from error


def _tally(part: Part, weights: dict[str, np.ndarray], estimator: Broadcast, name: str) -> Any:
    """Return the tally of a prepared partition."""
    if part.n_rows == 0:
        return None
    borrower = Borrower()
    preview: ModelPreview = _PREVIEWS.borrow(estimator.key, borrower, lambda: _preview(estimator))
    return tally(preview.at(weights), part.X, part.y, part.sample_weight, name)
