"""The validation set of a training, in partitions on the workers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from distributed import Future

from skort.dask.cluster import Cluster
from skort.dask.packed import Packed
from skort.dask.parts import Part
from skort.dask.scores import merged_tallies, tally
from skort.estimators.preview import Preview
from skort.estimators.validation_set import VALIDATION_SCORE
from skort.optim.training import Training
from skort.runtime.cache import SessionPool

__all__ = ["PartScoring"]

_VIEWS: SessionPool = SessionPool(4)


class PartScoring:
    """
    A callback that scores the partitions of a validation set after every epoch.

    Parameters
    ----------
    cluster : Cluster
    parts : sequence of Future
        Of `Part`.
    packed : Packed of DaskFit
        As it would be if the training ended now, but for the weights.
    scoring : str
        One of `skort.dask.scores.SCORES`.
    """

    def __init__(self, cluster: Cluster, parts: Sequence[Future], packed: Packed, scoring: str):
        self._cluster, self._packed, self._scoring = cluster, packed, scoring
        self._parts = cluster.each(_prepared, parts, packed)

    def on_train_begin(self, training: Training) -> None:
        """Score once, so that what cannot work fails before the training."""
        self._score(training)

    def on_epoch_end(self, training: Training) -> None:
        """Add the score to the history."""
        training.history.record(VALIDATION_SCORE, self._score(training))

    def _score(self, training):
        arguments = training.weights(), self._packed, self._scoring
        tallies = self._cluster.each(_tally, self._parts, *arguments)
        merged = self._cluster.value(self._cluster.merged(merged_tallies, tallies))
        if merged is None:
            raise ValueError("The validation set has no rows: increase validation_fraction, or give X_val and y_val.")
        return merged.score(self._scoring)


class _Borrower:
    """Has a view for as long as it lives."""


def _prepared(part: Part, packed: Packed) -> Part:
    """Return a partition with X after the steps before the model."""
    if part.n_rows == 0:
        return part
    try:
        return part._replace(X=packed.value().prepared_part(part.X), y=np.asarray(part.y))
    except ValueError as error:
        raise ValueError(f"Partition {part.number} of the validation set: {error}") from error


def _tally(part: Part, weights: dict[str, np.ndarray], packed: Packed, name: str) -> Any:
    """Return what the score of a prepared partition is computed from."""
    if part.n_rows == 0:
        return None
    borrower = _Borrower()
    view: Preview = _VIEWS.borrow(packed.key, borrower, packed.value().view)
    return tally(view.at(weights), part.X, part.y, part.sample_weight, name)
