"""What a fit reads of its arguments, before it knows how it trains."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skort.estimators.inner_model import InnerModel
from skort.estimators.labels import EncodedTarget
from skort.estimators.own_terms import TrainingSize
from skort.estimators.settings import Settings
from skort.estimators.target_transform import TargetTransform

if TYPE_CHECKING:
    from skort.objective.own import OwnObjective

__all__ = ["Reading"]


@dataclass(frozen=True, eq=False)
class Reading:
    """
    What a fit reads of its arguments and of the model inside: it does not depend on how the model is trained.

    Parameters
    ----------
    inner : InnerModel
    own : OwnObjective
        What the model inside minimises.
    rows : array-like of shape (n_samples, ...)
        X, validated where no steps before the model take it.
    encoded : EncodedTarget
    sample_weight : ndarray of shape (n_samples,) or None
        Class weights included.
    target_transform : TargetTransform
    generator : numpy.random.RandomState
        The training's own.
    """

    inner: InnerModel
    own: "OwnObjective"
    rows: Any
    encoded: EncodedTarget
    sample_weight: np.ndarray | None
    target_transform: TargetTransform
    generator: np.random.RandomState

    def settings(self, estimator, sample_weight: np.ndarray | None) -> Settings:
        """Return the settings of an estimator for this target, and the sample weights that it is trained with."""
        size = TrainingSize.of(self.encoded.target, sample_weight, estimator.batch_size)
        return Settings.of(estimator, self.own, size).for_target(self.encoded)
