"""The estimator as it would be if the training ended now."""

from collections.abc import Callable
from typing import Any

import numpy as np

from skort.estimators.fitted_model import FittedModel

__all__ = ["Preview"]


class Preview:
    """
    A fitted estimator whose weights are replaced without a new session: they are inputs of it.

    It predicts through the estimator's own methods, on data that went through the steps before the model once.

    Parameters
    ----------
    fitted : FittedModel
        With everything that a training makes but the trained weights.
    prepare : callable
        X, as `fit` takes it -> what the score graph takes.
    estimator_with : callable
        FittedModel -> estimator of its own.
    """

    def __init__(self, fitted: FittedModel, prepare: Callable, estimator_with: Callable):
        self._fitted = fitted
        self._estimator_with = estimator_with
        self._transformed = fitted.without_steps()
        self.prepare = prepare

    def at(self, weights: dict[str, np.ndarray]) -> Any:
        """Return the estimator with other weights, for prepared data. Its predictions hold until the next call."""
        self._transformed = self._transformed.at(weights)
        estimator = self._estimator_with(self._transformed)
        estimator.n_features_in_ = self._transformed.score_graph.n_features
        vars(estimator).pop("feature_names_in_", None)
        return estimator

    def fitted(self, weights: dict[str, np.ndarray]) -> Any:
        """Return an estimator with other weights, for data as `fit` takes it, to be kept."""
        return self._estimator_with(self._fitted.with_weights(weights))
