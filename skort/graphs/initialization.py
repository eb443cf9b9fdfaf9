"""
The models of scikit-learn that gradient descent can train, and the score graph that a training
starts from: a model of any kind with its initial or its fitted weights.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
import scipy.sparse
from numpy.typing import DTypeLike
from onnx import helper
from sklearn import cross_decomposition, linear_model, neural_network, svm
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.validation import check_is_fitted

from skort.common.onnx_text import onnx_dtype, pruned
from skort.common.own_graph import makes_graph
from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models.onnx_score_graph import onnx_score_graph, without_idle_nodes
from skort.graphs.score_graph import ScoreGraph, ScoreSpec
from skort.graphs.sklearn.conversion import to_onnx
from skort.graphs.sklearn.raw_inputs import RawInput

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


def initial_score_graph(
    model: Any, spec: ScoreSpec, random_state: np.random.RandomState, *, is_fitted: bool = False
) -> ScoreGraph:
    """
    Return the score graph of a model.

    All weights are trained, except the scales of an ONNX model.
    """
    of_score = score_model(model)
    if type(of_score) not in FAMILY:
        return _of_other_model(model, spec, random_state, is_fitted=is_fitted)

    if is_fitted:
        _check_columns(model, spec)
        stand_in = fitted_stand_in(model)
    else:
        stand_in = initial_stand_in(of_score, spec.n_features, spec.n_outputs, random_state)

    log_link = spec.keeps_link and not is_classifier(model) and has_log_link(model)
    score_graph = stand_in_graph(stand_in, spec.dtype, log_link=log_link)
    if score_graph.n_outputs != spec.n_outputs:
        raise ValueError(
            f"y asks for {spec.n_outputs} outputs, which the fitted {type(model).__name__} does "
            f"not have: it has {score_graph.n_outputs}."
        )
    return score_graph


def _of_other_model(model, spec, random_state, *, is_fitted):
    """Return the score graph of an ONNX model, of a model that makes its own, or of any other type."""
    if isinstance(model, onnx.ModelProto):
        return onnx_score_graph(model, spec)
    if makes_graph(model):
        return model.initial_score_graph(spec, random_state)

    if is_fitted:
        _check_columns(model, spec)
    return onnx_score_graph(_converted(model, spec), spec)


def _check_columns(model, spec):
    """Raise an error if X does not have the columns of a fitted model."""
    if getattr(model, "n_features_in_", spec.n_features) != spec.n_features:
        raise ValueError(
            f"X has {spec.n_features} features, but the fitted {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input."
        )


def drawn_weights(
    model: Any, score_graph: ScoreGraph, spec: ScoreSpec, random_state: np.random.RandomState
) -> dict[str, np.ndarray] | None:
    """
    Return new initial weights for a network of scikit-learn, or one that makes its own graph, by
    name; None for other models, and where a new network for such rows would have other weights.
    """
    known = score_graph.trained_arrays
    if makes_graph(model):
        # A file of an estimator of skort puts the name of its class before each name.
        names = {name.rpartition("/")[2]: name for name in known}
        new = model.initial_score_graph(spec, random_state).trained_arrays
        drawn = {names.get(name, name): w for name, w in new.items()}
    elif FAMILY.get(type(score_model(model))) == "neural network":
        drawn = _drawn_of_family(score_model(model), score_graph, random_state)
    else:
        return None

    if {name: w.size for name, w in drawn.items()} != {name: w.size for name, w in known.items()}:
        return None
    return {
        name: w.astype(score_graph.dtype).reshape(known[name].shape) for name, w in drawn.items()
    }


def _drawn_of_family(network, score_graph, random_state):
    """Return new weights of a network of scikit-learn, by the names in a graph of its layers."""
    names = score_graph.weight_names
    sizes = [
        score_graph.n_features,
        *(score_graph.arrays[name].shape[1] for name in names.coefficients),
    ]
    coefs, intercepts = drawn_layers(network, sizes, random_state)
    return dict(zip([*names.coefficients, *names.intercepts], [*coefs, *intercepts], strict=False))


def given_model(model: Any) -> Any:
    """Return the model that a user gave. An estimator of skort gives its ONNX model."""
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
        return getattr(model, "onnx_", model)
    if isinstance(model, onnx.ModelProto):
        return model

    raise ValueError(f"model must be an onnx.ModelProto or a fitted estimator, got {model!r}.")


def fitted_score_graph(
    model: Any, dtype: DTypeLike = np.float32, *, keeps_link: bool = True
) -> ScoreGraph:
    """Return the score graph of a fitted predictor of scikit-learn, or of a pipeline with one."""
    spec = ScoreSpec(
        model.n_features_in_,
        n_score_columns(model),
        np.dtype(dtype),
        is_classifier(model),
        keeps_link,
    )
    return initial_score_graph(model, spec, np.random.RandomState(0), is_fitted=True)


def n_score_columns(model: Any) -> int:
    """Return the number of columns of the raw score of a fitted model of scikit-learn."""
    if type(score_model(model)) in FAMILY:
        return layers(fitted_stand_in(model))[0][-1].shape[1]
    if is_classifier(model):
        return 1 if len(model.classes_) == 2 else len(model.classes_)

    prediction = model.predict(np.zeros((1, model.n_features_in_)))
    return 1 if np.ndim(prediction) == 1 else np.shape(prediction)[1]


def _converted(model: Any, spec: ScoreSpec) -> onnx.ModelProto:
    """Return a fitted model of any type as ONNX."""
    try:
        return to_onnx(model, (RawInput("X", False, spec.n_features),), spec.dtype)
    except Exception as error:  # skl2onnx raises errors of many kinds
        raise NotTrainableError(
            f"estimator={type(model).__name__} cannot be trained by gradient descent: skl2onnx "
            f"cannot convert it: {type(error).__name__}: "
            f"{(str(error) or 'no reason given').splitlines()[0]}"
        ) from error


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


def stand_in_graph(stand_in: Any, dtype: DTypeLike, *, log_link: bool = False) -> ScoreGraph:
    """
    Return the score graph of a stand-in.

    With `log_link`, the score is the exponential of the prediction of the stand-in.
    """
    coefs, intercepts = layers(stand_in)
    sizes = (stand_in.n_features_in_, *(coef.shape[1] for coef in coefs))
    options = getattr(stand_in, "activation", None), getattr(stand_in, "fit_intercept", True)
    template = _template(sizes, *options, np.dtype(dtype), log_link)

    # A model without intercepts has none in its graph.
    values = zip(template.arrays.items(), [*coefs, *intercepts], strict=False)
    return template.with_weights(
        {name: w.astype(dtype, "C").reshape(like.shape) for (name, like), w in values}
    )


@functools.lru_cache(maxsize=8)
def _template(
    sizes: tuple[int, ...],
    activation: str | None,
    fit_intercept: bool,
    dtype: np.dtype,
    log_link: bool,
) -> ScoreGraph:
    """
    Return the graph of a stand-in with arbitrary weights.

    Fits share its structure, because the conversion takes long.
    """
    model = to_onnx(any_stand_in(sizes, activation), (RawInput("X", False, sizes[0]),), dtype)
    without_idle_nodes(model.graph)
    last = model.graph.node[-1]

    # skl2onnx reshapes all scores of a network to one column.
    graph = pruned(model, [last.input[0] if last.op_type == "Reshape" else last.output[0]]).graph
    name = graph.output[0].name
    graph.output[0].CopyFrom(
        helper.make_tensor_value_info(name, onnx_dtype(dtype), [None, sizes[-1]])
    )

    if not fit_intercept:
        graph.output[0].name = graph.node.pop().input[0]
        graph.initializer.pop()

    if log_link:
        graph.node.append(helper.make_node("Exp", [graph.output[0].name], ["prediction"]))
        graph.output[0].name = "prediction"

    return ScoreGraph.of(model).explored()


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
