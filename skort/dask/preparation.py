"""How partitions become rows that are ready for the training."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skort.dask.packed import Packed
from skort.dask.parts import Part
from skort.dask.rows import Rows
from skort.estimators.fitted_model import FittedModel

__all__ = ["Preparation", "prepared"]


@dataclass(frozen=True, eq=False)
class Preparation:
    """
    What makes rows of partitions.

    Parameters
    ----------
    estimator : DaskFit
        Knows the features.
    fitted : FittedModel
        With the fitted steps before the model, the classes and the transformer of y.
    by_class : ndarray of shape (n_classes,) or None
        What the sample weights of each class are multiplied by.
    is_weighted : bool
        Whether rows count differently.
    """

    estimator: Any
    fitted: FittedModel
    by_class: np.ndarray | None
    is_weighted: bool

    def rows(self, part: Part) -> Rows:
        """Return the rows of a partition; those of sample weight zero are left out."""
        if part.n_rows == 0:
            return Rows(np.empty((0, 0)), np.empty((0, 0)), None)
        X, encoded = self.estimator.validated_part(part, self.fitted)
        self.fitted.loss.check_target(encoded.target)
        if not self.is_weighted:
            return Rows(X, encoded.target, None)
        weights = np.ones(part.n_rows)
        if part.sample_weight is not None:
            weights = np.array(part.sample_weight, dtype=np.float64)
        if self.by_class is not None and self.fitted.classes is not None:
            weights *= self.by_class[np.searchsorted(self.fitted.classes, encoded.y)]
        rows = Rows(X, encoded.target, weights)
        return rows if weights.all() else rows.taken(np.flatnonzero(weights))


def prepared(part: Part, packed: Packed[Preparation]) -> Rows:
    """
    Return the rows of a partition.

    Raises
    ------
    ValueError
        For a part that cannot be trained on, with its number.
    """
    try:
        return packed.value().rows(part)
    except ValueError as error:
        raise ValueError(f"Partition {part.number}: {error}") from error
