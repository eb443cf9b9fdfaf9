"""What a training has to know of all its rows before it begins."""

import functools
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from skort.estimators.data.rows import TrainingData
from skort.optim.standardization import (
    Standardization,
    common_scale,
    largest_norm,
    moments,
    relative_weights,
    robust_moments,
    smoothness,
)


class DataStatistics(Protocol):
    """What the variables and the learning rate of a training come from, wherever its rows are."""

    @property
    def some_rows(self) -> TrainingData:
        """All rows, or some that stand for all."""

    @property
    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """The weighted means and standard deviations of the columns of X, as `moments` returns them."""

    @property
    def targets(self) -> tuple[np.ndarray, np.ndarray]:
        """Those of the target."""

    def robust_targets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the medians and scales of the target, as `robust_moments` does."""

    def common_scale(self, batch_size: int) -> float:
        """Return the number by which a sparse X is divided, as the function `common_scale` does."""

    def largest_norm(self, used: Standardization | None) -> float:
        """Return the largest squared norm of a row times what it counts, as the function `largest_norm` does."""

    def smoothness(self, batch_size: int, used: Standardization | None, norm: float) -> float:
        """Return how fast the gradient changes along a step, as the function `smoothness` does."""


@dataclass(frozen=True, eq=False)
class RowStatistics:
    """The facts of rows in memory."""

    some_rows: TrainingData

    @functools.cached_property
    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """The means and standard deviations of the columns of X."""
        return moments(self.some_rows.X, self.some_rows.sample_weight)

    @functools.cached_property
    def targets(self) -> tuple[np.ndarray, np.ndarray]:
        """Those of the target."""
        return moments(self.some_rows.target, self.some_rows.sample_weight)

    def robust_targets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the medians and scales of the target."""
        return robust_moments(self.some_rows.target, self.some_rows.sample_weight)

    def common_scale(self, batch_size: int) -> float:
        """Return the number by which a sparse X is divided."""
        return common_scale(self.some_rows.X, self.some_rows.sample_weight, batch_size)

    def largest_norm(self, used: Standardization | None) -> float:
        """Return the largest squared norm of a row times what it counts."""
        return largest_norm(self.some_rows.X, relative_weights(self.some_rows.sample_weight), used)

    def smoothness(self, batch_size: int, used: Standardization | None, norm: float) -> float:
        """Return how fast the gradient changes along a step."""
        return smoothness(self.some_rows.X, self.some_rows.sample_weight, batch_size, used, norm)
