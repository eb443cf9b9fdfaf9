"""Models that skort did not make: each is trained by every solver, exported, served, and fine-tuned in part."""

import copy
import functools
import warnings

import numpy as np
import onnxruntime
import pytest
import skl2onnx
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from scipy.special import expit, log_softmax, softmax
from sklearn import linear_model as lm
from sklearn import preprocessing as pre
from sklearn.base import clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC, LinearSVR

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.common.onnx_text import import_each_domain_once
from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models.onnx_score_graph import onnx_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.solvers import available_solvers

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::FutureWarning", "ignore::RuntimeWarning"
)

N_STEPS, RATE = 3, 0.05
_RNG = np.random.RandomState(0)
X = _RNG.normal(size=(40, 4)).astype(np.float32)
Y = (X @ [1, -2, 0.5, 1] + 0.1 * _RNG.normal(size=40)).astype(np.float32)
TARGETS = {
    "numbers": Y,
    "counts": np.abs(Y) + 0.5,
    "two numbers": np.c_[Y, 0.5 * Y + X[:, 0]],
    "two": (Y > 0).astype(int),
    "three": np.digitize(Y, [-1, 1]),
    "text": np.array(["no", "yes"])[(Y > 0).astype(int)],
}


def mlp(kind, activation="relu"):
    return kind(hidden_layer_sizes=(3,), activation=activation, max_iter=3, random_state=0)


# (scikit-learn's model, its target, options of skl2onnx)
SKL2ONNX = {
    "LinearRegression": (lm.LinearRegression(), "numbers", {}),
    "LinearRegression, two outputs": (lm.LinearRegression(), "two numbers", {}),
    "LinearRegression, no intercept": (lm.LinearRegression(fit_intercept=False), "numbers", {}),
    "Ridge": (lm.Ridge(), "numbers", {}),
    "Lasso": (lm.Lasso(alpha=0.1), "numbers", {}),
    "ElasticNet": (lm.ElasticNet(alpha=0.1), "numbers", {}),
    "BayesianRidge": (lm.BayesianRidge(), "numbers", {}),
    "HuberRegressor": (lm.HuberRegressor(), "numbers", {}),
    "QuantileRegressor": (lm.QuantileRegressor(alpha=0.01), "numbers", {}),
    "SGDRegressor": (lm.SGDRegressor(max_iter=5, random_state=0), "numbers", {}),
    "TheilSenRegressor": (lm.TheilSenRegressor(max_subpopulation=50, random_state=0), "numbers", {}),
    "LinearSVR": (LinearSVR(random_state=0), "numbers", {}),
    "PLSRegression": (PLSRegression(2), "numbers", {}),
    "PoissonRegressor": (lm.PoissonRegressor(), "counts", {}),
    "TweedieRegressor": (lm.TweedieRegressor(power=1.5, link="log"), "counts", {}),
    "MLPRegressor": (mlp(MLPRegressor), "numbers", {}),
    "MLPRegressor, tanh": (mlp(MLPRegressor, "tanh"), "numbers", {}),
    "scaled": (make_pipeline(pre.StandardScaler(), lm.LinearRegression()), "numbers", {}),
    "ranges": (make_pipeline(pre.MinMaxScaler(), lm.Ridge()), "numbers", {}),
    "norms": (make_pipeline(pre.Normalizer("l1"), lm.Ridge()), "numbers", {}),
    "largest": (make_pipeline(pre.Normalizer("l2"), lm.Ridge()), "numbers", {}),
    "imputed": (make_pipeline(SimpleImputer(), pre.RobustScaler(), lm.Ridge()), "numbers", {}),
    "scaled network": (make_pipeline(pre.StandardScaler(), mlp(MLPRegressor)), "numbers", {}),
    "LogisticRegression": (lm.LogisticRegression(), "two", {}),
    "LogisticRegression, columns": (lm.LogisticRegression(), "two", {"zipmap": False}),
    "LogisticRegression, scores": (lm.LogisticRegression(), "two", {"raw_scores": True}),
    "LogisticRegression, text": (lm.LogisticRegression(), "text", {}),
    "LogisticRegression, numbers of classes": (lm.LogisticRegression(), "text", {"nocl": True}),
    "LogisticRegression, three": (lm.LogisticRegression(), "three", {}),
    "LogisticRegression, three scores": (lm.LogisticRegression(), "three", {"raw_scores": True, "zipmap": False}),
    "SGDClassifier": (lm.SGDClassifier(max_iter=5, random_state=0), "two", {}),
    "SGDClassifier, three": (lm.SGDClassifier(max_iter=5, random_state=0), "three", {"zipmap": False}),
    "SGDClassifier, log loss": (lm.SGDClassifier("log_loss", max_iter=5, random_state=0), "two", {"zipmap": False}),
    "Perceptron": (lm.Perceptron(random_state=0), "three", {"zipmap": False}),
    "LinearSVC": (LinearSVC(random_state=0), "two", {}),
    "LinearSVC, three": (LinearSVC(random_state=0), "three", {}),
    "RidgeClassifier": (lm.RidgeClassifier(), "two", {}),
    "RidgeClassifier, three": (lm.RidgeClassifier(), "three", {"zipmap": False}),
    "LinearDiscriminantAnalysis": (LinearDiscriminantAnalysis(), "three", {}),
    "OneVsRestClassifier": (OneVsRestClassifier(lm.LogisticRegression()), "two", {}),
    "MLPClassifier": (mlp(MLPClassifier), "two", {}),
    "MLPClassifier, three": (mlp(MLPClassifier, "tanh"), "three", {"zipmap": False}),
    "scaled MLPClassifier": (make_pipeline(pre.StandardScaler(), mlp(MLPClassifier, "logistic")), "two", {}),
    "scaled MLPClassifier, three": (make_pipeline(pre.StandardScaler(), mlp(MLPClassifier)), "three", {"nocl": True}),
}


@functools.lru_cache
def case(name):
    """Return an ONNX model, its target, and what it gives for X by itself."""
    model, target, options = SKL2ONNX[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(model).fit(X, TARGETS[target])
    return skl2onnx.to_onnx(model, X[:1], options={id(model): options} if options else None), TARGETS[target]


def served(model):
    """Return what plain ONNX Runtime makes of X: of any opset, as no operator here has changed since 17."""
    model = copy.deepcopy(model)
    import_each_domain_once(model)
    model.ir_version = 8
    for domain in model.opset_import:
        if domain.domain == "":
            domain.version = max(13, min(17, domain.version))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = [o.name for o in session.get_outputs()]
    return dict(zip(outputs, session.run(None, {session.get_inputs()[0].name: X}), strict=True))


def score_graph(model, y):
    """Return the score graph of a model."""
    n_outputs = len(np.unique(y)) if y.dtype.kind in "iU" else np.size(y[0])
    n_outputs = 1 if y.dtype.kind in "iU" and n_outputs == 2 else n_outputs
    return onnx_score_graph(model, ScoreSpec(X.shape[1], n_outputs, "float32", y.dtype.kind in "iU"))


def objective(score, y):
    """Return the mean loss: half of a square for numbers, the log loss for classes."""
    if y.dtype.kind == "f":
        return np.mean((score - y.reshape(score.shape)) ** 2) / 2
    codes = np.unique(y, return_inverse=True)[1]
    if score.shape[1] == 1:
        return np.mean(np.logaddexp(0, np.where(codes == 1, -1, 1) * score[:, 0]))
    return -np.mean(log_softmax(score, axis=1)[np.arange(len(codes)), codes])


def in_float64(model):
    """Return a model that computes in float64."""
    model = copy.deepcopy(model)
    tensors = [*model.graph.initializer, *(a.t for node in model.graph.node for a in node.attribute)]
    for tensor in tensors:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for node in model.graph.node:
        if node.op_type == "Cast" and node.attribute[0].i == TensorProto.FLOAT:
            node.attribute[0].i = TensorProto.DOUBLE
    return model


def descended(graph, y, rate=RATE):
    """Return the weights after `N_STEPS` steps whose gradients are finite differences, in float64."""
    run = ReferenceEvaluator(in_float64(graph.structure)).run
    inputs = {graph.input_name: X.astype(np.float64)} | {
        name: array.astype(np.float64) for name, array in graph.arrays.items()
    }
    for _ in range(N_STEPS):
        gradients = {}
        for name in graph.trainable:
            gradients[name] = np.zeros_like(inputs[name])
            for index in np.ndindex(inputs[name].shape):
                values = []
                for change in (1e-5, -1e-5):
                    moved = inputs[name].copy()
                    moved[index] += change
                    values.append(objective(run(None, inputs | {name: moved})[0], y))
                gradients[name][index] = (values[0] - values[1]) / 2e-5
        inputs |= {name: inputs[name] - rate * gradient for name, gradient in gradients.items()}
    return {name: inputs[name] for name in graph.trainable}


def trained(model, y, solver, rate=RATE, **parameters):
    """Return an estimator after `N_STEPS` steps of plain gradient descent on all rows."""
    is_classifier = y.dtype.kind in "iU"
    estimator = (OrtSGDClassifier if is_classifier else OrtSGDRegressor)(
        model,
        loss="log_loss" if is_classifier else "squared_error",
        **{"penalty": None, "standardize": False, "optimizer": "sgd", "learning_rate": "constant", "eta0": rate},
        **{"batch_size": len(X), "max_iter": N_STEPS, "tol": None, "random_state": 0, "solver": solver},
        **parameters,
    )
    return estimator.fit(X, y)


def check(model, y, rate=RATE):
    """Check what a foreign model is for: training by every solver, both exports, and a frozen part."""
    before = model.SerializeToString()
    graph = score_graph(model, y)
    expected = descended(graph, y, rate)
    for solver in sorted(available_solvers()):
        if solver != "graph" and any(array.ndim == 1 and array.size > 3 for array in expected.values()):
            # A product with a vector: ONNX Runtime computes a wrong gradient.
            with pytest.raises(NotTrainableError, match="operator MatMul"):
                trained(model, y, solver, rate)
            continue
        estimator = trained(model, y, solver, rate)
        assert list(estimator.trainable_) == list(expected)
        for name, array in expected.items():
            np.testing.assert_allclose(estimator.weights_[name], array, rtol=1e-5, atol=1e-5, err_msg=solver)
    prediction = estimator.predict(X)
    exported, original = served(estimator.to_onnx()), served(estimator.to_onnx(original=True))
    check_same_prediction(exported, prediction, y)
    check_same_prediction(original, prediction, y)
    first, *others = expected
    frozen = trained(model, y, "graph", rate, trainable=[first])
    for name in others:
        np.testing.assert_array_equal(frozen.weights_[name], graph.arrays[name])
    assert (frozen.weights_[first] != graph.arrays[first]).any()
    assert model.SerializeToString() == before


def check_same_prediction(original, prediction, y):
    """Check that the given model with other weights predicts the same: numbers, or classes where it gives them."""
    result = next(iter(original.values()))
    if y.dtype.kind == "f":
        np.testing.assert_allclose(np.ravel(result), np.ravel(prediction), rtol=1e-5, atol=1e-5)
    elif result.dtype.kind in "iUO":
        labels = result if result.dtype.kind != "i" or y.dtype.kind == "i" else np.unique(y)[result]
        assert np.ravel(labels).tolist() == prediction.tolist()


OF_SKL2ONNX = pytest.mark.parametrize("name", SKL2ONNX)


@OF_SKL2ONNX
def test_models_of_skl2onnx(name):
    model, y = case(name)
    check(model, y if y.dtype.kind in "iU" else 2 * y)


@OF_SKL2ONNX
def test_the_score_is_that_of_the_model(name):
    """Before any training: what plain ONNX Runtime makes of the score are the results of the given model."""
    model, y = case(name)
    (score,) = served(score_graph(model, y).model).values()
    results = served(model)
    result = (
        np.array([list(row.values()) for row in [*results.values()][-1]])
        if has_zipmap(model)
        else [*results.values()][-1]
    )
    if y.dtype.kind == "f" or result.shape[1] == 1 or not is_probability(result):
        expected = score if result.shape[1] == score.shape[1] else np.hstack([-score, score])
    else:
        expected = softmax(score, axis=1) if score.shape[1] > 1 else np.hstack([expit(-score), expit(score)])
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def has_zipmap(model):
    return any(node.op_type == "ZipMap" for node in model.graph.node)


def is_probability(result):
    return (result >= 0).all() and np.allclose(result.sum(axis=1), 1, atol=1e-5)
