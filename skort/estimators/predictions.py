"""The predictions of a fitted estimator: numbers; labels, raw scores, probabilities."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit, log_softmax
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skort.estimators.base import BaseOrtSGD
from skort.estimators.before_fit import loss_before_fit
from skort.objective.log_losses import LogLoss

__all__ = ["ClassifierPredictions", "RegressorPredictions"]


def _gives_probabilities(classifier):
    """Return True if the loss (after a fit, that of the fit) gives probabilities; otherwise raise AttributeError."""
    loss = classifier._fitted.loss if hasattr(classifier, "_fitted") else loss_before_fit(classifier)
    if "classifier" not in getattr(loss, "estimator_types", ()) or loss.inverse_link_function(1) is None:
        raise AttributeError(f"probability estimates are not available for loss={classifier.loss!r}.")
    return True


class RegressorPredictions(BaseOrtSGD):
    """The predicting method of `OrtSGDRegressor`."""

    def predict(self, X: ArrayLike) -> np.ndarray:
        """
        Predict targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            In float64, in the shape of the y of `fit`.
        """
        from skort.graphs.export import PREDICTION

        trained = self._run(PREDICTION, X).astype(np.float64)
        prediction = self._fitted.target_transform.inverse(trained)
        return prediction.ravel() if self._fitted.single_output else prediction


class ClassifierPredictions(BaseOrtSGD):
    """The predicting methods of `OrtSGDClassifier`."""

    classes_: np.ndarray

    def predict(self, X: ArrayLike) -> np.ndarray:
        """
        Predict class labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels; after a multi-label y 1 in int64 where a row has the label, 0 elsewhere.
        """
        from skort.graphs.export import LABEL

        numbers = self._run(LABEL, X)
        return self._fitted.labels(numbers)

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """
        Return the raw scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        score : ndarray of shape (n_samples,) or (n_samples, n_classes)
            In float64. Two classes have one score, that of `classes_[1]`, which is predicted if the score is positive.
            Each label of a multi-label y has a score of its own.
        """
        from skort.graphs.export import SCORE

        score = self._run(SCORE, X).astype(np.float64)
        return score.ravel() if score.shape[1] == 1 else score

    @available_if(_gives_probabilities)
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """
        Return the probabilities of the classes, with the losses "log_loss" and "modified_huber" only.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the `dtype` of the fit; a row sums to one in this precision. After a multi-label y, each label has
            its own probability.
        """
        from skort.graphs.export import PROBABILITIES

        return self._run(PROBABILITIES, X)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: ArrayLike) -> np.ndarray:
        """
        Return the logarithms of the probabilities of the classes, with the losses that have `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In float64. With "log_loss" they are computed from the raw scores and stay finite even if a probability is
            rounded to zero. With "modified_huber" they are minus infinity for a probability of zero.
        """
        check_is_fitted(self)
        if self._fitted.multi_label:
            return log_expit(self.decision_function(X))
        if not isinstance(self._fitted.loss, LogLoss):
            with np.errstate(divide="ignore"):
                return np.log(self.predict_proba(X), dtype=np.float64)
        score = self.decision_function(X)
        if score.ndim == 1:
            return log_expit(np.column_stack([-score, score]))
        return log_softmax(log_expit(score) if self._fitted.loss.one_against_rest else score, axis=1)
