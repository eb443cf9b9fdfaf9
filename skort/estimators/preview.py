"""The estimator as it would be if the training ended now."""

import copy
import dataclasses

from skort.estimators.deployed import Deployed

__all__ = ["Preview"]


class Preview:
    """
    A fitted estimator whose weights are replaced at no cost: they are inputs of one session.

    It predicts through the estimator's own methods, on data that went through the steps before the model once.

    Parameters
    ----------
    estimator : BaseOrtSGD
        With everything that a training makes but the trained weights.
    """

    def __init__(self, estimator):
        self._estimator = estimator
        self._model = None

    def prepare(self, X):
        """Return X, as `fit` takes it, as the model takes it: validated, and after the steps before the model."""
        return self._estimator._prepared(X)

    def at(self, weights):
        """Return the estimator with other weights. It holds until the next call."""
        if self._model is None:
            self._model = self._without_steps(weights)
        self._model._deployed.inference.weights = weights
        return self._model

    def _without_steps(self, weights):
        model = copy.copy(self._estimator)
        vars(model).pop("feature_names_in_", None)
        model._preprocessing = dataclasses.replace(model._preprocessing, transformers=None, graph=None)
        model.n_features_in_ = model._score_graph.n_features
        model._deployed = Deployed(model._deployable(), None, model._runner(weights=weights))
        return model
