"""What a fitted classifier predicts: labels, raw scores, probabilities."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit, log_softmax
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skort.estimators.base import BaseOrtSGD
from skort.objective.classification_losses import LogLoss

__all__ = ["ClassifierPredictions"]


def _gives_probabilities(classifier):
    """Return whether the loss, that of the fit where there was one, gives probabilities."""
    loss = classifier._fitted.loss if hasattr(classifier, "_fitted") else classifier.loss
    if isinstance(loss, str):
        loss = classifier._losses[loss]() if loss in classifier._losses else None
    if "classifier" not in getattr(loss, "estimator_types", ()) or loss.inverse_link_function(1) is None:
        raise AttributeError(f"probabilities are not available for loss={classifier.loss!r}.")
    return True


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
            In float64. Two classes: one score, of `classes_[1]`; it is predicted where the score is positive, as
            each label of a multi-label y is.
        """
        from skort.graphs.export import SCORE

        score = self._run(SCORE, X).astype(np.float64)
        return score.ravel() if score.shape[1] == 1 else score

    @available_if(_gives_probabilities)
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """
        Return the probabilities of the classes; exists for the losses "log_loss" and "modified_huber".

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the `dtype` of the fit: they sum to one in its precision, but for those of a multi-label y, which are
            the probabilities of each label by itself.
        """
        from skort.graphs.export import PROBABILITIES

        return self._run(PROBABILITIES, X)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: ArrayLike) -> np.ndarray:
        """
        Return the logarithms of the probabilities of the classes; exists where `predict_proba` does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In float64. Those of "log_loss" are computed from the raw scores, finite even where a probability is
            rounded to zero; the others are minus infinity there.
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
        return log_softmax(score, axis=1)
