"""What a training has to know of all its rows before it begins."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from skort.optim.standardization import (
    Standardization,
    common_scale,
    largest_norm,
    moments,
    relative_weights,
    robust_moments,
    smoothness,
)

__all__ = ["Facts", "RowFacts"]


class Facts(Protocol):
    """What the variables and the learning rate of a training come from, wherever its rows are."""

    @property
    def n_features(self) -> int:
        """The number of columns of X."""

    @property
    def dtype(self) -> np.dtype:
        """The dtype of X and of the target."""

    @property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix."""

    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the weighted means and standard deviations of the columns of X, as `moments` does."""

    def targets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return those of the target."""

    def robust_targets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the medians and scales of the target, as `robust_moments` does."""

    def common_scale(self, batch_size: int) -> float:
        """Return the number by which a sparse X is divided, as the function `common_scale` does."""

    def largest_norm(self, used: Standardization | None) -> float:
        """Return the largest squared norm of a row times what it counts, as the function `largest_norm` does."""

    def smoothness(self, batch_size: int, used: Standardization | None, norm: float) -> float:
        """Return how fast the gradient changes along a step, as the function `smoothness` does."""


@dataclass(frozen=True, eq=False)
class RowFacts:
    """
    The facts of rows in memory.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    target : ndarray of shape (n_samples, n_outputs)
    sample_weight : ndarray of shape (n_samples,) or None
    """

    X: Any
    target: np.ndarray
    sample_weight: np.ndarray | None

    @property
    def n_features(self) -> int:
        """The number of columns of X."""
        return self.X.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """The dtype of X and of the target."""
        return self.X.dtype

    @property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return scipy.sparse.issparse(self.X)

    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the means and standard deviations of the columns of X."""
        return moments(self.X, self.sample_weight)

    def targets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return those of the target."""
        return moments(self.target, self.sample_weight)

    def robust_targets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the medians and scales of the target."""
        return robust_moments(self.target, self.sample_weight)

    def common_scale(self, batch_size: int) -> float:
        """Return the number by which a sparse X is divided."""
        return common_scale(self.X, self.sample_weight, batch_size)

    def largest_norm(self, used: Standardization | None) -> float:
        """Return the largest squared norm of a row times what it counts."""
        return largest_norm(self.X, relative_weights(self.sample_weight), used)

    def smoothness(self, batch_size: int, used: Standardization | None, norm: float) -> float:
        """Return how fast the gradient changes along a step."""
        return smoothness(self.X, self.sample_weight, batch_size, used, norm)
