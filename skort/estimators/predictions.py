"""The predictions of a fitted estimator: numbers; labels, raw scores, probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit, log_softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from skort.estimators.base import BaseOrtSGD
from skort.estimators.before_fit import loss_before_fit
from skort.estimators.data.outputs import columns_of

# ONNX Runtime adds up the values of a row one after the other: of more classes, the sum may be off by 1e-15.
_MANY_CLASSES = 20


def gives_probabilities(classifier):
    """Return True if the loss (after a fit, that of the fit) gives probabilities; otherwise raise AttributeError."""
    result = vars(classifier).get("_result")
    loss = loss_before_fit(classifier) if result is None else result.model.loss
    if loss is None or "classifier" not in loss.estimator_types or loss.inverse_link_function(1) is None:
        raise AttributeError(f"probability estimates are not available for loss={classifier.loss!r}.")
    return True


class RegressorPredictions(RegressorMixin, BaseOrtSGD):
    """The predicting methods of `OrtSGDRegressor`."""

    def predict(self, X: ArrayLike) -> np.ndarray | dict[str, np.ndarray]:
        """
        Predict targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs), or dict of str to such arrays
            In float64, in the shape of the y of `fit`. If that was a dict: a dict with the same names.
        """
        from skort.graphs.export import PREDICTION

        model = self._model()
        trained = self._run(model, PREDICTION, X).astype(np.float64)
        prediction = model.target_transform.inverse(trained)
        if model.outputs is not None and model.outputs.by_name:
            return model.outputs.split(prediction)
        return prediction.ravel() if model.single_output else prediction

    def score(self, X, y, sample_weight=None):
        """
        Return the coefficient of determination of the predictions, R², the mean over all columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or dict of str to array-like
            In the form of the y of `fit`; a dict by the names of the outputs of an ONNX model.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        from sklearn.metrics import r2_score

        prediction = self.predict(X)
        target, prediction = (columns_of(self.loss, each) for each in (y, prediction))
        return r2_score(target, prediction, sample_weight=sample_weight)


class ClassifierPredictions(ClassifierMixin, BaseOrtSGD):
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
            Labels. After a multi-label y: 1 in int64 where a row has the label, 0 elsewhere.
        """
        from skort.graphs.export import LABEL

        fitted = self._model()
        return fitted.labels(self._run(fitted, LABEL, X))

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """
        Return the raw scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        score : ndarray of shape (n_samples,) or (n_samples, n_classes)
            In float64. With two classes there is one score: `classes_[1]` is predicted if it is positive. Each label of
            a multi-label y has a score of its own.
        """
        score = self._score(self._model(), X)
        return score.ravel() if score.shape[1] == 1 else score

    def _score(self, fitted, X):
        from skort.graphs.export import SCORE

        return self._run(fitted, SCORE, X).astype(np.float64)

    @available_if(gives_probabilities)
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """
        Return the probabilities of the classes, with the losses "log_loss" and "modified_huber" only.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In float64, computed from the raw scores: each row sums to one within 1e-15. After a multi-label y, each
            label has its own probability.
        """
        from skort.graphs.export import PROBABILITIES

        fitted = self._model()
        probabilities = self._run(fitted, PROBABILITIES, X)
        if probabilities.shape[1] > _MANY_CLASSES and not fitted.multi_label:
            probabilities /= np.add.reduce(probabilities, axis=1, keepdims=True)
        return probabilities

    @available_if(gives_probabilities)
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
        from skort.graphs.export import PROBABILITIES

        fitted = self._model()
        if not fitted.loss.is_logistic:
            with np.errstate(divide="ignore"):
                return np.log(self._run(fitted, PROBABILITIES, X))
        score = self._score(fitted, X)
        if fitted.multi_label:
            return log_expit(score)
        if score.shape[1] == 1:
            return log_expit(np.hstack([-score, score]))
        return log_softmax(log_expit(score) if fitted.loss.one_against_rest else score, axis=1)
