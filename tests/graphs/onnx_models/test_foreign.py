"""
Models that skort did not make: each is trained by every solver, exported,
served, and fine-tuned in part.
"""

import copy
import functools
import io
import pathlib
import warnings

import numpy as np
import onnx.parser
import onnxruntime
import pandas as pd
import pytest
import skl2onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from scipy.special import erf, expit, log_softmax, softmax
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
from sklearn.tree import DecisionTreeClassifier

from skort import OrtSGDClassifier, OrtSGDRegressor, Step
from skort.common.onnx_text import import_each_domain_once
from skort.estimators.data.row_forms import ids_in_range
from skort.exceptions import NotTrainableError
from skort.gradients import ForwardBackward
from skort.graphs.differentiable import runtime_gradient
from skort.graphs.onnx_models.onnx_score_graph import onnx_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.model_selection import OrtGridSearchCV
from skort.solvers import SOLVERS, available_solvers

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore::FutureWarning",
    "ignore::RuntimeWarning",
)

N_STEPS, RATE = 10, 0.05
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
    "TheilSenRegressor": (
        lm.TheilSenRegressor(max_subpopulation=50, random_state=0),
        "numbers",
        {},
    ),
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
    "LogisticRegression, three scores": (
        lm.LogisticRegression(),
        "three",
        {"raw_scores": True, "zipmap": False},
    ),
    "SGDClassifier": (lm.SGDClassifier(max_iter=5, random_state=0), "two", {}),
    "SGDClassifier, three": (
        lm.SGDClassifier(max_iter=5, random_state=0),
        "three",
        {"zipmap": False},
    ),
    "SGDClassifier, log loss": (
        lm.SGDClassifier("log_loss", max_iter=5, random_state=0),
        "two",
        {"zipmap": False},
    ),
    "Perceptron": (lm.Perceptron(random_state=0), "three", {"zipmap": False}),
    "LinearSVC": (LinearSVC(random_state=0), "two", {}),
    "LinearSVC, three": (LinearSVC(random_state=0), "three", {}),
    "RidgeClassifier": (lm.RidgeClassifier(), "two", {}),
    "RidgeClassifier, three": (lm.RidgeClassifier(), "three", {"zipmap": False}),
    "LinearDiscriminantAnalysis": (LinearDiscriminantAnalysis(), "three", {}),
    "OneVsRestClassifier": (OneVsRestClassifier(lm.LogisticRegression()), "two", {}),
    "MLPClassifier": (mlp(MLPClassifier), "two", {}),
    "MLPClassifier, three": (mlp(MLPClassifier, "tanh"), "three", {"zipmap": False}),
    "scaled MLPClassifier": (
        make_pipeline(pre.StandardScaler(), mlp(MLPClassifier, "logistic")),
        "two",
        {},
    ),
    "scaled MLPClassifier, three": (
        make_pipeline(pre.StandardScaler(), mlp(MLPClassifier)),
        "three",
        {"nocl": True},
    ),
}


@functools.lru_cache
def case(name):
    """Return an ONNX model, its target, and what it gives for X by itself."""
    model, target, options = SKL2ONNX[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(model).fit(X, TARGETS[target])
    return skl2onnx.to_onnx(
        model, X[:1], options={id(model): options} if options else None
    ), TARGETS[target]


def served(model, newest=22):
    """
    Return what plain ONNX Runtime makes of X;
    of an opset that it does not read, what onnx makes of it.
    """
    rows = columns(model)
    if max(o.version for o in model.opset_import) > newest:
        names = [o.name for o in model.graph.output]
        return dict(zip(names, ReferenceEvaluator(model).run(None, rows), strict=True))
    model = copy.deepcopy(model)
    import_each_domain_once(model)
    model.ir_version = 8
    for domain in model.opset_import:
        if domain.domain == "":
            domain.version = max(13, min(17, domain.version))
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    outputs = [o.name for o in session.get_outputs()]
    return dict(zip(outputs, session.run(None, rows), strict=True))


def columns(model):
    """Return the columns of X as the inputs of a model."""
    feeds, begin = {}, 0
    initializers = {i.name for i in model.graph.initializer}
    for info in (i for i in model.graph.input if i.name not in initializers):
        dims = info.type.tensor_type.shape.dim
        width = dims[1].dim_value if len(dims) == 2 else 1
        values = X[:, begin : begin + width].astype(
            helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        )
        feeds[info.name] = values if len(dims) == 2 else values.ravel()
        begin += width
    return feeds


def score_graph(model, y):
    """Return the score graph of a model."""
    n_outputs = len(np.unique(y)) if y.dtype.kind in "iU" else np.size(y[0])
    n_outputs = 1 if y.dtype.kind in "iU" and n_outputs == 2 else n_outputs
    return onnx_score_graph(
        model, ScoreSpec(X.shape[1], n_outputs, "float32", y.dtype.kind in "iU")
    )


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
    tensors = [
        *model.graph.initializer,
        *(a.t for node in model.graph.node for a in node.attribute),
    ]
    for tensor in tensors:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(
                numpy_helper.from_array(
                    numpy_helper.to_array(tensor).astype(np.float64), tensor.name
                )
            )
    for node in model.graph.node:
        if node.op_type == "Cast" and node.attribute[0].i == TensorProto.FLOAT:
            node.attribute[0].i = TensorProto.DOUBLE
    return model


class Erf(OpRun):
    """That of onnx is computed in float32."""

    op_domain = ""

    def _run(self, x):
        return (erf(x),)


def descended(graph, y, rate=RATE):
    """
    Return the weights after `N_STEPS` steps
    whose gradients are finite differences, in float64.
    """
    run = ReferenceEvaluator(in_float64(graph.structure), new_ops=[Erf]).run
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


def trained(model, y, solver, rate=RATE, rows=None, **parameters):
    """Return an estimator after `N_STEPS` steps of plain gradient descent on all rows."""
    is_classifier = y.dtype.kind in "iU"
    estimator = (OrtSGDClassifier if is_classifier else OrtSGDRegressor)(
        model,
        loss="log_loss" if is_classifier else "squared_error",
        **{
            "penalty": None,
            "standardize": False,
            "optimizer": "sgd",
            "learning_rate": "constant",
            "eta0": rate,
        },
        **{
            "batch_size": len(y),
            "max_iter": N_STEPS,
            "tol": None,
            "random_state": 0,
            "solver": solver,
            **parameters,
        },
    )
    return estimator.fit(X if rows is None else rows, y)


def check(model, y, rate=RATE, newest=22):
    """
    Check what a foreign model is for: training by every solver,
    both exports, and a frozen part.
    """
    before = model.SerializeToString()
    graph = score_graph(model, y)
    expected = descended(graph, y, rate)
    for solver in sorted(available_solvers()):
        if SOLVERS[solver].gradient is runtime_gradient and any(
            array.ndim == 1 and array.size > 3 for array in expected.values()
        ):
            # A product with a vector: ONNX Runtime computes a wrong gradient.
            with pytest.raises(NotTrainableError, match="operator MatMul"):
                trained(model, y, solver, rate)
            continue
        estimator = trained(model, y, solver, rate)
        assert list(estimator.trainable_) == list(expected)
        for name, array in expected.items():
            np.testing.assert_allclose(
                estimator.weights_[name], array, rtol=1e-5, atol=1e-5, err_msg=solver
            )
    prediction = estimator.predict(X)
    exported, original = (
        served(estimator.to_onnx()),
        served(estimator.to_onnx(original=True), newest),
    )
    check_same_prediction(exported, prediction, y)
    check_same_prediction(original, prediction, y)
    first, *others = expected
    frozen = trained(model, y, "graph", rate, trainable=[first])
    for name in others:
        np.testing.assert_array_equal(frozen.weights_[name], graph.arrays[name])
    assert (frozen.weights_[first] != graph.arrays[first]).any()
    assert model.SerializeToString() == before


def check_same_prediction(original, prediction, y):
    """
    Check that the given model with other weights predicts the same:
    numbers, or classes where it gives them.
    """
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
    """
    Before any training: what plain ONNX Runtime makes of the score are the results
    of the given model.
    """
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
        expected = (
            softmax(score, axis=1)
            if score.shape[1] > 1
            else np.hstack([expit(-score), expit(score)])
        )
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def has_zipmap(model):
    return any(node.op_type == "ZipMap" for node in model.graph.node)


def is_probability(result):
    return (result >= 0).all() and np.allclose(result.sum(axis=1), 1, atol=1e-5)


LAYERS = (
    "<float[4, 3] W = {1,2,-1,0.5,1,-1,2,0.25,-0.5,1,1,-2}, float[3] b = {0.1,-0.2,0.3}, "
    "float[3, 1] V = {1,-1,0.5}>"
)
ONE = f"m (float[N, 4] X) => (float[N, 1] y) {LAYERS}"
SHAPES = "int64[2] shape = {-1, 4}, int64[1] axis = {1}"
# (opset, target, text): what torch, Keras and people write by hand, in the opsets of their tools.
WRITTEN = {
    "opset 13": (13, "numbers", f"{ONE} {{ h = Gemm (X, W, b) a = Relu (h) y = MatMul (a, V) }}"),
    "opset 15, leaky": (
        15,
        "numbers",
        f"{ONE} {{ h = Gemm (X, W, b) a = LeakyRelu (h) y = MatMul (a, V) }}",
    ),
    "opset 18, means": (
        18,
        "numbers",
        f"""{ONE} {{ axis = Constant <value = int64[1] {{1}}> () m = ReduceMean (X, axis)
        c = Sub (X, m)
        h = Gemm (c, W, b) a = Tanh (h) y = MatMul (a, V) }}""",
    ),
    "opset 18, means as torch writes them": (
        18,
        "numbers",
        f"""{ONE} {{ axis = Constant <value = int64[1] {{1}}> ()
        m = ReduceMean <noop_with_empty_axes = 0> (X, axis) c = Sub (X, m)
        h = Gemm (c, W, b) a = Tanh (h) y = MatMul (a, V) }}""",
    ),
    "opset 18, norms": (
        18,
        "numbers",
        f"""{ONE} {{ axis = Constant <value = int64[1] {{1}}> () m = ReduceL2 (X, axis)
        c = Div (X, m)
        h = Gemm (c, W, b) a = Tanh (h) y = MatMul (a, V) }}""",
    ),
    "opset 18, split": (
        18,
        "numbers",
        f"""{ONE} {{ p, q = Split <axis = 1, num_outputs = 2> (X) c = Concat <axis = 1> (q, p)
        h = Gemm (c, W, b) a = Tanh (h) y = MatMul (a, V) }}""",
    ),
    "opset 19": (
        19,
        "two",
        f"{ONE} {{ h = Gemm (X, W, b) a = Sigmoid (h) s = MatMul (a, V) y = Sigmoid (s) }}",
    ),
    "opset 19, cast": (
        19,
        "numbers",
        f"{ONE} {{ x = Cast <to = 1, saturate = 1> (X) h = Gemm (x, W, b) y = Gemm (h, V) }}",
    ),
    "opset 20, gelu": (
        20,
        "numbers",
        f"{ONE} {{ h = Gemm (X, W, b) a = Gelu (h) y = MatMul (a, V) }}",
    ),
    "opset 20, shapes": (
        20,
        "numbers",
        f"""{ONE} {{ d = Shape (X) ones = ConstantOfShape <value = float[1] {{1}}> (d)
        x = Add (X, ones)
        h = Gemm (x, W, b) a = Tanh (h) y = MatMul (a, V) }}""",
    ),
    "opset 21, gelu": (
        21,
        "two",
        f'{ONE} {{ h = Gemm (X, W, b) a = Gelu <approximate = "tanh"> (h) y = MatMul (a, V) }}',
    ),
    "opset 21, softmax": (
        21,
        "three",
        "m (float[N, 4] X) => (float[N, 3] y)"
        "<float[4, 3] W = {1,2,-1,0.5,1,-1,2,0.25,-0.5,1,1,-2}, float[3] b = {1,2,3}>"
        "{ h = Gemm (X, W, b) y = Softmax (h) }",
    ),
    "opset 22, mish": (
        22,
        "numbers",
        f"{ONE} {{ h = Gemm (X, W, b) a = Mish (h) y = MatMul (a, V) }}",
    ),
    "opset 23, root mean square": (
        23,
        "numbers",
        "m (float[N, 4] X) => (float[N, 1] y)"
        "<float[4] g = {1, 2, 1, 2}, float[4, 1] W = {1, 2, -1, 1}, float[1] b = {0.5}>"
        "{ n = RMSNormalization (X, g) y = Gemm (n, W, b) }",
    ),
    "opset 24, swish": (
        24,
        "numbers",
        f"{ONE} {{ h = Gemm (X, W, b) a = Swish <alpha = 1.5> (h) y = MatMul (a, V) }}",
    ),
    "layers side by side": (
        17,
        "numbers",
        """m (float[N, 4] X) => (float[N, 1] y)
        <float[2, 2] A = {1, 2, 3, 4}, float[4, 1] V = {1, -1, 0.5, 2}, int64[2] i = {0, 1},
        int64[2] j = {2, 3}> {
        p = Gather <axis = 1> (X, i) q = Gather <axis = 1> (X, j) u = MatMul (p, A)
        h = Concat <axis = 1> (u, q)
        y = MatMul (h, V) }""",
    ),
    "normalized columns": (
        17,
        "two",
        f"""{ONE[:-1]}, float[3] g = {{2, 1, 0.5}}, float[3] s = {{0.5, -1, 0}},
        float[3] m = {{1, 2, -1}},
        float[3] v = {{1, 2, 3}}> {{ h = MatMul (X, W) n = BatchNormalization (h, g, s, m, v)
        a = Relu (n)
        y = MatMul (a, V) }}""",
    ),
    "normalized images": (
        17,
        "numbers",
        """m (float[N, 4] X) => (float[N, 1] y)
        <int64[4] image = {-1, 1, 2, 2}, float[2, 1, 2, 2] K = {1, 2, -1, 0.5, 1, -1, 2, 0.25},
        float[2] b = {0.1, -0.2}, float[2] g = {2, 0.5}, float[2] s = {0.5, -1},
        float[2] m = {1, -1},
        float[2] v = {1, 3}, float[2, 1] V = {1, -1}, float[1] c = {0.5}> {
        i = Reshape (X, image) h = Conv <pads = [1, 1, 0, 0]> (i, K, b)
        n = BatchNormalization (h, g, s, m, v)
        r = Relu (n) p = GlobalAveragePool (r) f = Flatten (p) y = Gemm (f, V, c) }""",
    ),
    "two inputs": (
        17,
        "numbers",
        f"""m (float[N, 3] first, float[N] second) => (float[N, 1] y) {LAYERS} {{
        axis = Constant <value = int64[1] {{1}}> () s = Unsqueeze (second, axis)
        x = Concat <axis = 1> (first, s)
        h = Gemm (x, W, b) a = Tanh (h) y = MatMul (a, V) }}""",
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_models_by_hand(name):
    opset, target, text = WRITTEN[name]
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')
    check(model, TARGETS[target], newest=17)


HALVES = f"{ONE} {{ h = Gemm (X, W, b) a = Tanh (h) s = Cast <to = 10> (a) y = MatMul (s, V) }}"


@pytest.mark.parametrize("storage", ["raw", "int32_data"])
def test_a_model_of_float16(storage):
    """It is trained in float32, and its weights are written back as float16."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {HALVES}')
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.elem_type = TensorProto.FLOAT16
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor).astype(np.float16)
        tensor.CopyFrom(
            numpy_helper.from_array(values, tensor.name)
            if storage == "raw"
            else helper.make_tensor(tensor.name, TensorProto.FLOAT16, values.shape, values.ravel())
        )
    assert all(bool(tensor.raw_data) == (storage == "raw") for tensor in model.graph.initializer)
    expected = descended(score_graph(model, Y), Y)
    for solver in available_solvers():
        estimator = trained(model, Y, solver)
        for name, array in expected.items():
            np.testing.assert_allclose(estimator.weights_[name], array, rtol=1e-5, atol=1e-5)
    original = estimator.to_onnx(original=True)
    for tensor in original.graph.initializer:
        half = numpy_helper.to_array(tensor)
        assert half.dtype == np.float16
        np.testing.assert_array_equal(half, estimator.weights_[tensor.name].astype(np.float16))
    (result,) = served(original).values()
    np.testing.assert_allclose(result.ravel(), estimator.predict(X), atol=0.02)


def test_weights_that_are_stored_in_float16():
    """
    Those that a model casts to the type of X before it uses them are trained
    as if they were of this type.
    """
    text = (
        f'<ir_version: 8, opset_import: ["" : 17]> {ONE} {{ h = Gemm (X, W, b) a = Tanh (h) '
        "y = MatMul (a, V) }"
    )
    model, stored = onnx.parser.parse_model(text), onnx.parser.parse_model(text)
    for tensor in stored.graph.initializer:
        name, values = tensor.name, numpy_helper.to_array(tensor).astype(np.float16)
        tensor.CopyFrom(numpy_helper.from_array(values, f"{name}/stored"))
        stored.graph.node.insert(
            0, helper.make_node("Cast", [tensor.name], [name], to=TensorProto.FLOAT)
        )
        model.graph.initializer[-1 if name == "V" else "Wb".index(name)].CopyFrom(
            numpy_helper.from_array(values.astype(np.float32), name)
        )
    direct, cast = (
        OrtSGDRegressor(m, max_iter=5, tol=None, random_state=0).fit(X, Y) for m in (model, stored)
    )
    assert list(cast.weights_) == [f"{name}/stored" for name in direct.weights_]
    for name, array in direct.weights_.items():
        np.testing.assert_allclose(cast.weights_[f"{name}/stored"], array, rtol=1e-6, atol=1e-6)


# Columns of ids, or of ids and numbers, of a DataFrame, of torch's Embedding, or of
# inputs of their own.
TABLES = (
    "<float[5, 2] A = {1,2,-1,0.5,1,-1,2,0.25,-0.5,1}, float[3, 2] B = {0.5,-1,1,2,-2,1}, "
    "float[4, 1] V = {1,-1,0.5,2}"
)
IDS = {
    "two columns": f"""m (int64[N, 2] ids) => (float[N, 1] y) {TABLES}, int64[1] i = {{0}},
        int64[1] j = {{1}},
        int64[1] flat = {{-1}}> {{ p = Gather <axis = 1> (ids, i) q = Gather <axis = 1> (ids, j)
        p1 = Reshape (p, flat) q1 = Reshape (q, flat) u = Gather (A, p1) v = Gather (B, q1)
        h = Concat <axis = 1> (u, v) y = MatMul (h, V) }}""",
    "one table": f"""m (int32[N, 2] ids) => (float[N, 1] y) {TABLES}, int64[2] wide = {{-1, 4}}> {{
        e = Gather (A, ids) h = Reshape (e, wide) t = Tanh (h) y = MatMul (t, V) }}""",
    "ids and numbers": f"""m (int64[N] color, float[N, 2] sizes) => (float[N, 1] y) {TABLES}> {{
        u = Gather (A, color) h = Concat <axis = 1> (u, sizes) y = MatMul (h, V) }}""",
    "two inputs": f"""m (int64[N, 1] color, int64[N, 1] kind) => (float[N, 1] y) {TABLES},
        int64[2] wide = {{-1, 2}}> {{
        u = Gather (A, color) v = Gather (B, kind) u1 = Reshape (u, wide) v1 = Reshape (v, wide)
        h = Concat <axis = 1> (u1, v1) y = MatMul (h, V) }}""",
}
ID_COLUMNS = np.c_[_RNG.randint(3, size=(40, 2)), X[:, 2]].astype(np.float32)


@pytest.mark.parametrize("target", ["numbers", "two"])
@pytest.mark.parametrize("name", IDS)
def test_embeddings_of_ids(name, target, monkeypatch):
    """Rows of tables by ids are trained, and those of ids that no row has stay as they are."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {IDS[name]}')
    width = 3 if name == "ids and numbers" else 2
    monkeypatch.setitem(
        globals(), "X", ID_COLUMNS[:, :width] if width == 2 else ID_COLUMNS[:, [0, 1, 2]]
    )
    check(model, TARGETS[target])
    estimator = trained(model, TARGETS[target], "graph")
    before = score_graph(model, TARGETS[target]).arrays["A"]
    np.testing.assert_array_equal(estimator.weights_["A"][3:], before[3:])
    taken = estimator.to_onnx().graph.input
    given = model.graph.input
    if len(given) == 1:
        assert taken[0].type.tensor_type.elem_type == given[0].type.tensor_type.elem_type


def test_a_transformer_layer_of_torch():
    """
    Its shapes are computed by Mod, Slice and other operators;
    a step is that of torch's gradient, by each solver.
    """
    file = np.load(pathlib.Path(__file__).parents[2] / "data" / "torch_layer.npz")
    model, rows, y = onnx.load_from_string(file["model"].tobytes()), file["X"], file["y"]
    arrays = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    gradients = {name: file[f"gradient/{name}"] for name in arrays}
    assert {"Mod", "Slice", "Shape"} <= {node.op_type for node in model.graph.node}
    layer = ForwardBackward(model, trainable=list(gradients))
    score, saved = layer.forward(rows)
    found = layer.views(layer.backward(saved, (score - y) / len(y)).weights)
    assert len(gradients) == 16
    for name, gradient in gradients.items():
        np.testing.assert_allclose(found[name], gradient, rtol=1e-5, atol=1e-6)
    for solver in available_solvers():
        estimator = trained(
            model, y.ravel(), solver, rows=rows, max_iter=1, trainable=list(gradients)
        )
        for name, gradient in gradients.items():
            np.testing.assert_allclose(
                estimator.weights_[name], arrays[name] - RATE * gradient, rtol=1e-5, atol=1e-6
            )


@pytest.mark.parametrize("opset", range(13, 22))
def test_a_network_of_torch(opset):
    """
    Steps of a convolution, a normalization with its running statistics
    and a layer are those of torch.
    """
    torch = pytest.importorskip("torch", reason="needs torch")
    nn = torch.nn
    torch.manual_seed(0)
    layers = [
        nn.Unflatten(1, (1, 2, 2)),
        nn.Conv2d(1, 3, 2, padding=1),
        nn.BatchNorm2d(3, momentum=0.5),
        nn.ReLU(),
    ]
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 1))
    rows, target = torch.from_numpy(X), torch.from_numpy(Y[:, np.newaxis])
    network(rows)
    network.eval()
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (rows[:2],),
            file,
            input_names=["X"],
            output_names=["y"],
            dynamic_axes={"X": {0: "n"}, "y": {0: "n"}},
            opset_version=opset,
            do_constant_folding=False,
            training=torch.onnx.TrainingMode.PRESERVE,
            dynamo=False,
        )
    model = onnx.load_from_string(file.getvalue())
    assert "BatchNormalization" in {node.op_type for node in model.graph.node}
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE)
    for _ in range(N_STEPS):
        optimizer.zero_grad()
        (0.5 * (network(rows) - target) ** 2).mean().backward()
        optimizer.step()
    expected = {name: weight.detach().numpy() for name, weight in network.named_parameters()}
    for solver in available_solvers():
        estimator = trained(model, Y, solver)
        assert set(estimator.trainable_) == set(expected)
        for name, array in expected.items():
            np.testing.assert_allclose(estimator.weights_[name], array, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("layer, n_gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_layers_stay_as_they_are(layer, n_gates):
    """The layer behind them is trained, and a warning names the weights that are not."""
    initializers = {
        "W": _RNG.normal(size=(1, 3 * n_gates, 2)).astype(np.float32),
        "R": _RNG.normal(size=(1, 3 * n_gates, 3)).astype(np.float32),
        "V": _RNG.normal(size=(3, 1)).astype(np.float32),
        "steps": np.array([-1, 2, 2]),
        "flat": np.array([-1, 3]),
    }
    nodes = [
        helper.make_node("Reshape", ["X", "steps"], ["x"]),
        helper.make_node("Transpose", ["x"], ["by_step"], perm=[1, 0, 2]),
        helper.make_node(layer, ["by_step", "W", "R"], ["", "last"], hidden_size=3),
        helper.make_node("Reshape", ["last", "flat"], ["h"]),
        helper.make_node("MatMul", ["h", "V"], ["y"]),
    ]
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, n])
        for name, n in (("X", 4), ("y", 1))
    ]
    tensors = [numpy_helper.from_array(array, name) for name, array in initializers.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "recurrent", infos[:1], infos[1:], tensors),
        ir_version=8,
        opset_imports=[helper.make_opsetid("", 17)],
    )
    for solver in available_solvers():
        with pytest.warns(
            UserWarning, match=f"weights W, R of the {layer} node .* are not trained"
        ):
            estimator = trained(model, Y, solver)
        assert list(estimator.trainable_) == ["V"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = descended(score_graph(model, Y), Y)
    np.testing.assert_allclose(estimator.weights_["V"], expected["V"], rtol=1e-5, atol=1e-5)


def test_one_output_for_each_class_is_refused():
    y = TARGETS["three"]
    model = lm.LogisticRegression().fit(X, y)
    converted = skl2onnx.to_onnx(model, X[:1], options={id(model): {"zipmap": "columns"}})
    with pytest.raises(NotTrainableError, match=r"needs one output of floats, .* zipmap=False"):
        trained(converted, y, "graph")


def test_probabilities_of_another_kind_are_refused():
    """They are the shares of three sigmoids."""
    y = TARGETS["three"]
    converted = skl2onnx.to_onnx(OneVsRestClassifier(lm.LogisticRegression()).fit(X, y), X[:1])
    with pytest.raises(NotTrainableError, match="neither the sigmoid nor the softmax of one score"):
        trained(converted, y, "graph")


def test_the_loss_of_a_training_graph_is_left_out():
    """A warning says so, and what trains with it; the rest is trained as without it."""
    text = "{ h = Gemm (X, W, b) a = Tanh (h) y = MatMul (a, V) %s }"
    loss = "r = Sub (y, label) s = Mul (r, r) loss = ReduceMean <keepdims = 0> (s)"
    header, outputs = '<ir_version: 8, opset_import: ["" : 17]>', "float[N, 1] y"
    plain = onnx.parser.parse_model(
        f"{header} m (float[N, 4] X) => ({outputs}) {LAYERS} {text % ''}"
    )
    whole = onnx.parser.parse_model(
        f"{header} m (float[N, 4] X, float[N, 1] label) => (float loss, {outputs}) "
        f"{LAYERS} {text % loss}"
    )
    with pytest.warns(
        UserWarning,
        match="The loss 'loss' of the ONNX model is left out: loss=None trains with it",
    ):
        estimator = trained(whole, Y, "graph")
    for name, array in trained(plain, Y, "graph").weights_.items():
        np.testing.assert_array_equal(estimator.weights_[name], array)
    original = estimator.to_onnx(original=True)
    assert [o.name for o in original.graph.output] == ["loss", "y"]
    session = onnxruntime.InferenceSession(
        original.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (value,) = session.run(["loss"], {"X": X, "label": Y[:, np.newaxis]})
    np.testing.assert_allclose(value, np.mean((estimator.predict(X) - Y) ** 2), rtol=1e-5)


def test_the_score_of_a_mean_squared_error_of_torch_is_not_expanded():
    """
    `F.mse_loss` expands the score to the shape of the labels,
    so that they seem to be columns of X.
    """
    text = "{ h = Gemm (X, W, b) a = Tanh (h) %s = MatMul (a, V) %s }"
    loss = """s = Add (score, label) d = Shape (s) y = Expand (score, d) e = Shape (s)
        t = Expand (label, e)
        r = Sub (y, t) q = Mul (r, r) loss = ReduceMean <keepdims = 0> (q)"""
    header, outputs = '<ir_version: 8, opset_import: ["" : 17]>', "float[N, 1] y"
    plain = onnx.parser.parse_model(
        f"{header} m (float[N, 4] X) => ({outputs}) {LAYERS} {text % ('y', '')}"
    )
    whole = onnx.parser.parse_model(
        f"{header} m (float[N, 4] X, float[N, 1] label) => (float loss, {outputs}) {LAYERS} "
        f"{text % ('score', loss)}"
    )
    with pytest.warns(UserWarning, match="The loss 'loss' of the ONNX model is left out"):
        estimator = trained(whole, Y, "graph")
    for name, array in trained(plain, Y, "graph").weights_.items():
        np.testing.assert_array_equal(estimator.weights_[name], array)


def of_ids():
    """Return a model of ids and numbers, and its columns by name."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        m (int64[N, 1] color, float[N, 1] size) => (float[N, 1] y)
        <float[3, 1] A = {1, 2, 3}, float[2, 1] V = {1, 1}, int64[2] column = {-1, 1}> {
        e = Gather (A, color) f = Reshape (e, column) h = Concat <axis = 1> (f, size)
        y = MatMul (h, V) }"""
    )
    return model, pd.DataFrame({"color": ID_COLUMNS[:, 0].astype(int), "size": ID_COLUMNS[:, 2]})


@pytest.mark.parametrize("wrong", [3, -4])
def test_ids_without_a_row_are_named(wrong):
    model, table = of_ids()
    table.loc[7, "color"] = wrong
    message = f"X has the id {wrong}, but the ids of a table in the ONNX model go from 0 to 2"
    for solver in available_solvers():
        with pytest.raises(ValueError, match=message):
            trained(model, Y, solver, rows=table)
    fitted = trained(model, Y, "graph", rows=of_ids()[1])
    with pytest.raises(ValueError, match=message):
        fitted.predict(table)
    step, layer = Step(model, batch_size=len(Y), n_features=2, n_outputs=1), ForwardBackward(model)
    rows = table.to_numpy(np.float32)
    searched = OrtGridSearchCV(
        OrtSGDRegressor(model, max_iter=2), {"alpha": [0.1, 0.2]}, cv=2, error_score="raise"
    )
    for run in (
        lambda: step.step(rows, Y, eta=0.1),
        lambda: step.forward(rows),
        lambda: layer.forward(rows),
        lambda: layer.forward(rows, training=False),
        lambda: searched.fit(table, Y),
    ):
        with pytest.raises(ValueError, match=message):
            run()


def test_another_error_of_an_index_is_no_id():
    error = RuntimeError(
        "running ScatterElements node. idx=7 must be within the inclusive range [-3,2]"
    )
    with pytest.raises(RuntimeError, match="ScatterElements"), ids_in_range():
        raise error


def test_ids_that_are_no_whole_numbers_are_refused():
    """They were cut off before; whole numbers of any dtype are ids."""
    model, table = of_ids()
    whole, rows = table.to_numpy(), table.to_numpy(copy=True)
    rows[3, 0] = 0.5
    fitted = trained(model, Y, "graph", rows=whole)
    np.testing.assert_array_equal(fitted.predict(whole.astype(np.float32)), fitted.predict(whole))
    step = Step(model, batch_size=len(Y), n_features=2, n_outputs=1)
    for run in (
        lambda: trained(model, Y, "graph", rows=rows),
        lambda: fitted.predict(rows),
        lambda: clone(fitted).partial_fit(whole, Y).partial_fit(rows, Y),
        lambda: step.step(rows, Y, eta=0.1),
        lambda: step.forward(rows),
    ):
        with pytest.raises(
            ValueError, match=r"X has 0.5 in column 0, but the input 'color' of the ONNX model"
        ):
            run()


def test_columns_in_another_order_than_the_inputs_are_refused():
    model, table = of_ids()
    fitted = trained(model, Y, "graph", rows=table)
    assert fitted.feature_names_in_.tolist() == ["color", "size"]
    with pytest.raises(
        ValueError, match=r"X has the columns \['size', 'color'\], .* give X\[\['color', 'size'\]\]"
    ):
        trained(model, Y, "graph", rows=table[["size", "color"]])


@pytest.mark.parametrize("target", ["two", "three"])
def test_dicts_of_probabilities_in_float64(target):
    y, rows = TARGETS[target], X.astype(np.float64)
    model = make_pipeline(pre.StandardScaler(), lm.LogisticRegression()).fit(rows, y)
    estimator = trained(skl2onnx.to_onnx(model, rows[:1]), y, "graph", 1e-12, rows, dtype="float64")
    np.testing.assert_allclose(estimator.predict_proba(rows), model.predict_proba(rows), atol=1e-7)


@pytest.mark.parametrize("options", [{}, {"zipmap": False}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_file_of_trees_names_their_operator(options, n_classes):
    X = np.random.RandomState(0).normal(size=(30, 3)).astype(np.float32)
    y = np.array(["a", "b", "c"])[np.arange(30) % n_classes]
    trees = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    file = skl2onnx.to_onnx(trees, X[:1], target_opset=17, options=options)
    with pytest.raises(NotTrainableError, match="operator TreeEnsembleClassifier, which has no"):
        OrtSGDClassifier(file).fit(X, y)
