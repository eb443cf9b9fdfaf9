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

__all__ = ["check_trainable", "score_template"]

_LINEAR = (LinearRegression, LogisticRegression)
_NEURAL_NETWORKS = (MLPRegressor, MLPClassifier)
# Options of these models that change what is minimised or predicted: name, value that does not, what to do instead.
_UNTRAINABLE = [
    ("positive", False, "gradient steps do not keep the weights positive."),
    ("class_weight", None, "give fit a sample_weight in place of class_weight."),
    ("loss", "squared_error", 'its predictions are exponentials of the score. Use loss="squared_error".'),
]


def check_trainable(estimator):
    """
    Raise an error for a model that cannot be trained.

    Raises
    ------
    NotTrainableError
        For any other model than LinearRegression, LogisticRegression, MLPRegressor and MLPClassifier, subclasses
        included, whose predictions may be others; and for options that the weights alone do not say.
    ValueError
        For parameters that scikit-learn refuses.
    """
    if isinstance(estimator, type):
        raise NotTrainableError(f"estimator={estimator.__name__} is a class: pass an instance, {estimator.__name__}().")
    name = type(estimator).__name__
    if type(estimator) not in (*_LINEAR, *_NEURAL_NETWORKS):
        raise NotTrainableError(
            f"estimator={name} cannot be trained by gradient descent here: skort trains LinearRegression, "
            "LogisticRegression, MLPRegressor and MLPClassifier, alone or at the end of a Pipeline."
        )
    estimator._validate_params()
    parameters = estimator.get_params()
    for option, value, cure in _UNTRAINABLE:
        if option in parameters and parameters[option] not in (value, None):
            raise NotTrainableError(f"estimator={name}({option}={parameters[option]!r}) cannot be trained: {cure}")
    for size in np.ravel(parameters.get("hidden_layer_sizes", ())).tolist():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(
                f"hidden_layer_sizes of {name} must be ints > 0, got {parameters['hidden_layer_sizes']!r}."
            )


def score_template(estimator, n_features, n_outputs, random_state):
    """
    Return a fitted regressor that predicts the raw score of an unfitted model at its initial weights.

    Linear weights are zero. The layers of a neural network follow scikit-learn's Glorot rule: weights and intercepts
    are uniform on [-b, b], b = sqrt(6 / (fan_in + fan_out)), with 2 in place of 6 for logistic activations; drawn in
    the same order as `sklearn.neural_network` does, so that the same `random_state` gives the same weights.

    Parameters
    ----------
    estimator : LinearRegression, LogisticRegression, MLPRegressor or MLPClassifier
        One that `check_trainable` accepts.
    n_features : int
    n_outputs : int
        Number of columns of the raw score.
    random_state : numpy.random.RandomState

    Returns
    -------
    template : LinearRegression or MLPRegressor
    """
    if type(estimator) in _LINEAR:
        return _linear(estimator, n_features, n_outputs)
    return _neural_network(estimator, n_features, n_outputs, random_state)


def _linear(estimator, n_features, n_outputs):
    template = LinearRegression(fit_intercept=estimator.fit_intercept)
    template.coef_ = np.zeros((n_outputs, n_features))
    template.intercept_ = np.zeros(n_outputs)
    template.n_features_in_ = n_features
    return template


def _neural_network(estimator, n_features, n_outputs, random_state):
    template = MLPRegressor(activation=estimator.activation)
    sizes = [n_features, *np.ravel(estimator.hidden_layer_sizes).tolist(), n_outputs]
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
