"""OrtSGDRegressor."""

import numpy as np
from sklearn.base import RegressorMixin, _fit_context, is_regressor
from sklearn.linear_model import LinearRegression
from sklearn.utils._param_validation import StrOptions

from skort.estimators.base import BaseOrtSGD, refitting
from skort.exceptions import NotTrainableError

__all__ = ["OrtSGDRegressor"]


class OrtSGDRegressor(RegressorMixin, BaseOrtSGD):
    """DOC"""

    _parameter_constraints = {**BaseOrtSGD._parameter_constraints, "loss": [StrOptions({"squared_error"})]}

    def __init__(
        self,
        estimator=None,
        *,
        solver="agent",
        loss="squared_error",
        penalty="l2",
        alpha=1e-4,
        optimizer="sgd",
        learning_rate="constant",
        eta0=0.01,
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
        from skort.graphs.export import regressor_model

        with refitting(self):
            if self.estimator is not None and not is_regressor(self.estimator):
                raise NotTrainableError(
                    f"estimator={type(self.estimator).__name__} is not a regressor: use OrtSGDClassifier for classifiers."
                )
            X, y = self._validate_training_data(X, y, y_dtype="numeric")
            target = y.reshape(len(y), -1).astype(self.dtype)
            if not np.isfinite(target).all():
                raise ValueError(f"y contains values too large for dtype={self.dtype!r}.")
            self._train(X, y, target, sample_weight, default=LinearRegression())
            self._single_output = y.ndim == 1
            linear = self._score_graph.linear_weights()
            if linear is not None:
                coef, self.intercept_ = linear
                self.coef_ = coef[0] if self._single_output else coef
            model = regressor_model(self._score_graph, self._transformers)
            self._set_onnx(model, model)
        return self

    def predict(self, X):
        """DOC"""
        from skort.graphs.export import PREDICTION

        prediction = self._run(PREDICTION, X).astype(np.float64)
        return prediction.ravel() if self._single_output else prediction

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
