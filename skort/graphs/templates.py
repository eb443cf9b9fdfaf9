"""
Fitted stand-ins of unfitted models.

skl2onnx converts fitted models only, and classifiers with their probabilities and labels. A stand-in is a fitted
scikit-learn regressor that predicts a model's raw score at its initial weights: nothing is fitted to get it, and no
head has to be cut off its graph.
"""

import itertools

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort.exceptions import NotTrainableError

__all__ = ["score_template"]


def score_template(estimator, n_features, n_outputs, random_state):
    """
    Return a fitted regressor that predicts the raw score of an unfitted model at its initial weights.

    Linear weights are zero. The layers of a neural network follow scikit-learn's Glorot rule: weights and intercepts
    are uniform on [-b, b], b = sqrt(6 / (fan_in + fan_out)), with 2 in place of 6 for logistic activations; drawn in
    the same order as `sklearn.neural_network` does, so that the same `random_state` gives the same weights.

    Parameters
    ----------
    estimator : LinearRegression, LogisticRegression, MLPRegressor or MLPClassifier
    n_features : int
    n_outputs : int
        Number of columns of the raw score.
    random_state : numpy.random.RandomState

    Returns
    -------
    template : LinearRegression or MLPRegressor

    Raises
    ------
    NotTrainableError
        For any other model, and for options that its weights alone do not say.
    ValueError
        For parameters of the model that scikit-learn refuses.
    """
    if isinstance(estimator, (LinearRegression, LogisticRegression, MLPRegressor, MLPClassifier)):
        estimator._validate_params()
    if isinstance(estimator, (LinearRegression, LogisticRegression)):
        return _linear(estimator, n_features, n_outputs)
    if isinstance(estimator, (MLPRegressor, MLPClassifier)):
        return _neural_network(estimator, n_features, n_outputs, random_state)
    raise NotTrainableError(
        f"estimator={type(estimator).__name__} cannot be trained by gradient descent here: skort trains "
        "LinearRegression, LogisticRegression, MLPRegressor and MLPClassifier, alone or at the end of a Pipeline."
    )


def _linear(estimator, n_features, n_outputs):
    if getattr(estimator, "positive", False):
        raise NotTrainableError(
            "estimator=LinearRegression(positive=True) cannot be trained: gradient steps do not keep the weights "
            "positive. Use positive=False."
        )
    template = LinearRegression(fit_intercept=estimator.fit_intercept)
    template.coef_ = np.zeros((n_outputs, n_features))
    template.intercept_ = np.zeros(n_outputs)
    template.n_features_in_ = n_features
    return template


def _neural_network(estimator, n_features, n_outputs, random_state):
    if getattr(estimator, "loss", "squared_error") == "poisson":
        raise NotTrainableError(
            'estimator=MLPRegressor(loss="poisson") cannot be trained: its predictions are exponentials of the score. '
            'Use loss="squared_error".'
        )
    template = MLPRegressor(activation=estimator.activation)
    sizes = [n_features, *np.atleast_1d(estimator.hidden_layer_sizes).tolist(), n_outputs]
    if min(sizes) < 1:
        raise ValueError(f"hidden_layer_sizes must be > 0, got {estimator.hidden_layer_sizes}.")
    factor = 2.0 if estimator.activation == "logistic" else 6.0
    template.coefs_, template.intercepts_ = [], []
    for fan_in, fan_out in itertools.pairwise(sizes):
        bound = np.sqrt(factor / (fan_in + fan_out))
        template.coefs_.append(random_state.uniform(-bound, bound, (fan_in, fan_out)))
        template.intercepts_.append(random_state.uniform(-bound, bound, fan_out))
    template.n_features_in_ = n_features
    template.n_layers_ = len(sizes)
    template.n_outputs_ = n_outputs
    template.out_activation_ = "identity"
    return template
