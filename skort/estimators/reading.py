"""What a fit reads of its arguments, before it knows how it trains."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skort.estimators.inner_model import InnerModel
from skort.estimators.labels import EncodedTarget
from skort.estimators.sample_weight import ClassWeight
from skort.estimators.settings import Settings
from skort.estimators.target_transform import TargetTransform
from skort.estimators.training_rows import TrainingRows

if TYPE_CHECKING:
    from skort.objective.sklearn_objectives import SklearnObjective

__all__ = ["Reading"]


@dataclass(frozen=True, eq=False)
class Reading:
    """
    What a fit reads of its arguments and of the model inside: it does not depend on how the model is trained.

    Parameters
    ----------
    given : TrainingRows
    inner : InnerModel
    own : SklearnObjective
        What the model inside minimises.
    rows : array-like of shape (n_samples, ...)
        X, validated where no steps before the model take it.
    encoded : EncodedTarget
    class_weight : ClassWeight or None
    sample_weight : ndarray of shape (n_samples,) or None
        Class weights included.
    target_transform : TargetTransform
    generator : numpy.random.RandomState
        The training's own.
    """

    given: TrainingRows
    inner: InnerModel
    own: "SklearnObjective"
    rows: Any
    encoded: EncodedTarget
    class_weight: ClassWeight | None
    sample_weight: np.ndarray | None
    target_transform: TargetTransform
    generator: np.random.RandomState

    def settings(self, estimator, sample_weight: np.ndarray | None) -> Settings:
        """Return the settings of an estimator for this target, and the sample weights that it is trained with."""
        size = self.given.size(estimator.batch_size, self.encoded, sample_weight, self.class_weight)
        return self.given.settings(Settings.of(estimator, self.own, size)).for_target(self.encoded)
