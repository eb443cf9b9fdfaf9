"""The scikit-learn models that gradient descent can train: linear models and neural networks."""

import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from sklearn import cross_decomposition, linear_model, neural_network, svm
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import LabelBinarizer

# A stand-in is a fitted regressor of scikit-learn that predicts the raw score of a model, with its
# initial or fitted weights. skl2onnx can convert it without a fit of the model, and without a
# classifier's head.
StandIn: TypeAlias = Any  # scikit-learn has no types

_LINEAR_REGRESSORS = """
ARDRegression BayesianRidge ElasticNet ElasticNetCV GammaRegressor HuberRegressor Lars LarsCV Lasso LassoCV LassoLars
LassoLarsCV LassoLarsIC LinearRegression MultiTaskElasticNet MultiTaskElasticNetCV MultiTaskLasso MultiTaskLassoCV
OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV PassiveAggressiveRegressor PoissonRegressor QuantileRegressor
Ridge RidgeCV SGDRegressor TheilSenRegressor TweedieRegressor
"""
_LINEAR_CLASSIFIERS = """
LogisticRegression LogisticRegressionCV PassiveAggressiveClassifier Perceptron RidgeClassifier RidgeClassifierCV
SGDClassifier
"""
_PLS = (
    cross_decomposition.CCA,
    cross_decomposition.PLSCanonical,
    cross_decomposition.PLSRegression,
)
_LINEAR = {
    # Some versions of scikit-learn lack some of these models: PassiveAggressive* end with 1.10.
    *(
        vars(linear_model)[n]
        for n in (_LINEAR_REGRESSORS + _LINEAR_CLASSIFIERS).split()
        if n in vars(linear_model)
    ),
    *_PLS,
    LinearDiscriminantAnalysis,
    svm.LinearSVC,
    svm.LinearSVR,
}

#: Type of a model -> "linear" or "neural network". Subclasses do not count: they may predict in
#: another way.
FAMILY: dict[Any, str] = {
    **dict.fromkeys(_LINEAR, "linear"),
    **dict.fromkeys((neural_network.MLPRegressor, neural_network.MLPClassifier), "neural network"),
}


def score_model(model: Any) -> Any:
    """
    Return the model that computes the raw score:
    the one inside a `RANSACRegressor`, or the model itself.
    """
    if isinstance(model, linear_model.RANSACRegressor):
        return getattr(model, "estimator_", None) or model.estimator or LinearRegression()
    return model


def has_log_link(model: Any) -> bool:
    """Return whether the model predicts the exponential of its raw score (Poisson, gamma)."""
    model = score_model(model)
    if isinstance(model, linear_model.TweedieRegressor):
        return model.link == "log" or (model.link == "auto" and model.power > 0)
    exponential = (linear_model.PoissonRegressor, linear_model.GammaRegressor)
    return isinstance(model, exponential) or getattr(model, "loss", None) == "poisson"


def initial_stand_in(
    model: Any, n_features: int, n_outputs: int, random_state: np.random.RandomState
) -> StandIn:
    """Return the stand-in of an unfitted `score_model`, with its initial weights."""
    if FAMILY[type(model)] == "linear":
        stand_in = LinearRegression(fit_intercept=getattr(model, "fit_intercept", True))
        return _write_linear(stand_in, np.zeros((n_outputs, n_features)), np.zeros(n_outputs))

    sizes = [n_features, *np.ravel(model.hidden_layer_sizes).tolist(), n_outputs]
    return _write_network(
        MLPRegressor(activation=model.activation), *drawn_layers(model, sizes, random_state)
    )


def drawn_layers(
    network: Any, sizes: Sequence[int], random_state: np.random.RandomState
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return initial weights of a network by Glorot's rule, drawn in the order of scikit-learn."""
    factor = 2.0 if network.activation == "logistic" else 6.0
    coefs = []
    intercepts = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        bound = np.sqrt(factor / (fan_in + fan_out))
        coefs.append(random_state.uniform(-bound, bound, (fan_in, fan_out)))
        intercepts.append(random_state.uniform(-bound, bound, fan_out))

    return coefs, intercepts


def fitted_stand_in(model: Any) -> StandIn:
    """Return the stand-in of a fitted model."""
    model = score_model(model)
    if FAMILY[type(model)] == "neural network":
        return _write_network(
            MLPRegressor(activation=model.activation), model.coefs_, model.intercepts_
        )

    coef = model.coef_.toarray() if scipy.sparse.issparse(model.coef_) else model.coef_
    coef = np.atleast_2d(coef)
    intercept = np.broadcast_to(np.ravel(model.intercept_), len(coef))
    if isinstance(model, _PLS):
        intercept = intercept - coef @ model._x_mean

    return _write_linear(
        LinearRegression(fit_intercept=getattr(model, "fit_intercept", True)), coef, intercept
    )


def any_stand_in(sizes: tuple[int, ...], activation: str | None) -> StandIn:
    """
    Return a stand-in with weights that all differ.

    `sizes` are the numbers of columns of X, of each hidden layer, and of the score.
    """
    random_state = np.random.RandomState(0)
    coefs = [random_state.uniform(size=shape) for shape in itertools.pairwise(sizes)]
    intercepts = [random_state.uniform(size=size) for size in sizes[1:]]
    if activation is None:
        return _write_linear(LinearRegression(), coefs[0].T, intercepts[0])

    return _write_network(MLPRegressor(activation=activation), coefs, intercepts)


def layers(stand_in: StandIn) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """
    Return the weights of a stand-in: lists of arrays of shapes (fan_in,
    fan_out) and (fan_out,).
    """
    if hasattr(stand_in, "coefs_"):
        return stand_in.coefs_, stand_in.intercepts_
    return [stand_in.coef_.T], [stand_in.intercept_]


def trained_model(
    model: Any,
    coefs: list[np.ndarray],
    intercepts: list[np.ndarray],
    classes: np.ndarray | None = None,
    *,
    single_output: bool = True,
) -> Any:
    """
    Return a copy of a model that is fitted to some weights. They are not copied.

    Their shapes are (fan_in, fan_out) and (fan_out,).
    """
    fitted = clone(model)
    if isinstance(model, linear_model.RANSACRegressor):
        fitted.n_features_in_ = len(coefs[0])
        fitted.estimator_ = trained_model(
            score_model(model), coefs, intercepts, single_output=single_output
        )
        return fitted
    if FAMILY[type(model)] == "neural network":
        return _write_network(fitted, coefs, intercepts, classes, single_output)

    return _write_linear(fitted, coefs[0].T, intercepts[0], classes, single_output)


def _write_network(model, coefs, intercepts, classes=None, single_output=True):
    """Write the weights into a network; return it."""
    model.coefs_, model.intercepts_, model.n_features_in_ = coefs, intercepts, len(coefs[0])
    model.n_layers_, model.n_outputs_ = len(coefs) + 1, len(intercepts[-1])
    model.out_activation_ = "exp" if has_log_link(model) else "identity"

    if classes is not None:
        model.out_activation_ = "softmax" if single_output and model.n_outputs_ > 1 else "logistic"
        model._label_binarizer = LabelBinarizer().fit(
            classes if single_output else np.eye(len(classes), dtype=int)
        )
        model.classes_ = classes

    return model


def _write_linear(model, coef, intercept, classes=None, single_output=False):
    """Write the weights into a linear model; return it."""
    model.coef_, model.intercept_, model.n_features_in_ = coef, intercept, coef.shape[1]
    if isinstance(model, _PLS):
        model._x_mean = np.zeros(coef.shape[1])
        model._predict_1d = single_output
    elif classes is None and single_output:
        model.coef_, model.intercept_ = coef[0], intercept[0]

    if hasattr(model, "_get_loss"):  # generalized linear models
        model._base_loss = model._get_loss()
    if isinstance(model, (linear_model.RidgeClassifier, linear_model.RidgeClassifierCV)):
        model._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1).fit(classes)

    # Before scikit-learn 1.9, classes_ is a property of the ridge classifiers.
    if classes is not None and not hasattr(model, "classes_"):
        model.classes_ = classes
    return model
