"""Where the rows of a training are: in memory, or in batches of the user's own."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from skort.estimators.dlpack import as_array
from skort.estimators.first_pass import FirstPass, numbered
from skort.estimators.labels import EncodedTarget
from skort.estimators.own_terms import TrainingSize
from skort.estimators.row_encoder import RowEncoder
from skort.estimators.sample_weight import ClassWeight
from skort.estimators.settings import Settings
from skort.estimators.variables import Variables
from skort.optim.batches import Batches
from skort.optim.given_batches import GivenBatches

__all__ = ["RowsInBatches", "RowsInMemory", "TrainingRows"]


class TrainingRows(Protocol):
    """
    What a fit asks of the rows that it is to train on.

    Attributes
    ----------
    X, y, sample_weight
        Those that it validates and encodes: all rows, or some that stand for all.
    """

    X: Any
    y: Any
    sample_weight: Any

    def class_weight(self, class_weight: ClassWeight | None, encoded: EncodedTarget) -> ClassWeight | None:
        """Return class weights that are those of all rows."""

    def size(
        self, batch_size: int | str, encoded: EncodedTarget, weights: np.ndarray | None, class_weight
    ) -> TrainingSize:
        """Return the size of the training."""

    def settings(self, settings: Settings) -> Settings:
        """Return the settings with the batch size of the training."""

    def batches(self, encoder: RowEncoder, variables: Variables, data: tuple, random_state) -> Batches | GivenBatches:
        """Return the batches of the training."""


class RowsInMemory:
    """
    All rows.

    Parameters
    ----------
    X, y, sample_weight
        As `fit` takes them.
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any):
        self.X, self.y, self.sample_weight = X, y, sample_weight

    def class_weight(self, class_weight, encoded):
        """Return the class weights as they are."""
        return class_weight

    def size(self, batch_size, encoded, weights, class_weight):
        """Return the size of a training on the encoded rows."""
        return TrainingSize.of(encoded.target, weights, batch_size)

    def settings(self, settings):
        """Return the settings as they are."""
        return settings

    def batches(self, encoder, variables, data, random_state):
        """Return random batches of the rows."""
        return encoder.settings.batches(variables, data, random_state)


class RowsInBatches:
    """
    Rows that stand for all, and the batches that are read anew in every epoch.

    Parameters
    ----------
    batches : callable
        Returns an iterator over (X, y) or (X, y, sample_weight).
    first : FirstPass
        Over the same batches.
    batch_size : int or "auto"
        Larger batches are divided into parts of so many rows. "auto": no batch is divided.
    """

    def __init__(self, batches: Callable[[], Iterator[Any]], first: FirstPass, batch_size: int | str):
        self.X, self.y, self.sample_weight = first.X, first.y, first.sample_weight
        self._batches, self._first = batches, first
        largest = max(first.sizes)
        self._batch_size = largest if isinstance(batch_size, str) else min(int(batch_size), largest)
        self._mean_weight, self._n_rows = 1.0, sum(first.sizes)

    def class_weight(self, class_weight, encoded):
        """Return class weights with the numbers that "balanced" means for the labels of all rows."""
        if class_weight is None or encoded.classes is None or self._first.all_labels is None:
            return class_weight
        by_class = class_weight.by_class(encoded.classes, self._first.all_labels, self._first.all_weights)
        return class_weight._replace(given=dict(zip(encoded.classes.tolist(), by_class.tolist(), strict=True)))

    def size(self, batch_size, encoded, weights, class_weight):
        """Return the size of a training on all rows."""
        weights, labels = self._first.all_weights, self._first.all_labels
        if class_weight is not None and encoded.class_weight is None and labels is not None:
            by_row = class_weight.by_class(encoded.classes, labels, weights)[np.searchsorted(encoded.classes, labels)]
            weights = by_row if weights is None else weights * by_row
        if weights is not None:
            self._n_rows = int(np.count_nonzero(weights))
            self._mean_weight = float(weights[weights > 0].mean())
        size = min(self._batch_size, self._n_rows)
        return TrainingSize(self._mean_weight * self._n_rows, self._mean_weight, size, encoded.target.shape[1])

    def settings(self, settings):
        """Return the settings with the size of the batches."""
        return dataclasses.replace(settings, batch_size=self._batch_size)

    def batches(self, encoder, variables, data, random_state):
        """Return the batches as they are given."""

        def encode(X, y, sample_weight=None):
            # The rows of a batch may all be some that do not count, those of a training not.
            if sample_weight is None or np.any(as_array(sample_weight, "sample_weight")):
                return encoder(X, y, sample_weight)
            X, target, _ = encoder(X, y)
            return X, target, np.zeros(len(target))

        def epoch():
            for X, target, sample_weight in numbered(self._batches(), encode):
                yield X, variables.target(target), sample_weight

        n_outputs = data[1].shape[1]
        return GivenBatches(
            epoch,
            n_rows=self._n_rows,
            n_batches=sum(-(-n // self._batch_size) for n in self._first.sizes),
            batch_size=self._batch_size,
            scale=variables.sample_weight_scale(n_outputs) / self._mean_weight,
            random_state=random_state,
        )
