"""OrtSGDClassifier."""

import numpy as np
from scipy.special import log_expit, log_softmax
from sklearn.base import ClassifierMixin, _fit_context, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets

from skort.estimators.base import BaseOrtSGD, refitting
from skort.exceptions import NotTrainableError

__all__ = ["OrtSGDClassifier"]


class OrtSGDClassifier(ClassifierMixin, BaseOrtSGD):
    """DOC"""

    _parameter_constraints = {**BaseOrtSGD._parameter_constraints, "loss": [StrOptions({"log_loss"})]}

    def __init__(
        self,
        estimator=None,
        *,
        solver="agent",
        loss="log_loss",
        penalty="l2",
        alpha=1e-4,
        optimizer="sgd",
        learning_rate="constant",
        eta0=0.1,
        power_t=0.25,
        batch_size="auto",
        max_iter=1000,
        tol=1e-4,
        n_iter_no_change=5,
        shuffle=True,
        dtype="float32",
        random_state=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.solver = solver
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose

    # False: the steps of a pipeline in `estimator` are fitted, and validate their own parameters.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None):
        """DOC"""
        from skort.graphs.export import classifier_model, with_score

        with refitting(self):
            if self.estimator is not None and not is_classifier(self.estimator):
                raise NotTrainableError(
                    f"estimator={type(self.estimator).__name__} is not a classifier: use OrtSGDRegressor for regressors."
                )
            X, y = self._validate_training_data(X, y, y_dtype=None)
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
            self.classes_, codes = np.unique(y, return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError(
                    f"The number of classes has to be greater than one; got {len(self.classes_)} class."
                )
            self._train(X, y, self._target(codes), sample_weight, default=LogisticRegression())
            linear = self._score_graph.linear_weights()
            if linear is not None:
                self.coef_, self.intercept_ = linear
            model = classifier_model(self._score_graph, self.classes_, self._transformers)
            self._set_onnx(model, with_score(model))
        return self

    def _target(self, codes):
        """Return one column of 0 and 1 for two classes, one-hot columns for more."""
        if len(self.classes_) == 2:
            return codes.reshape(-1, 1).astype(self.dtype)
        target = np.zeros((len(codes), len(self.classes_)), self.dtype)
        target[np.arange(len(codes)), codes] = 1
        return target

    def predict(self, X):
        """DOC"""
        from skort.graphs.export import LABEL

        return np.asarray(self._run(LABEL, X)).astype(self.classes_.dtype)

    def decision_function(self, X):
        """DOC"""
        from skort.graphs.export import SCORE

        score = self._run(SCORE, X).astype(np.float64)
        return score.ravel() if score.shape[1] == 1 else score

    def predict_proba(self, X):
        """DOC"""
        from skort.graphs.export import PROBABILITIES

        return self._run(PROBABILITIES, X).astype(np.float64)

    def predict_log_proba(self, X):
        """DOC"""
        score = self.decision_function(X)
        if score.ndim == 1:
            return log_expit(np.column_stack([-score, score]))
        return log_softmax(score, axis=1)
