"""
What is refused: for each call its exception and words of its message, and that nothing has changed.

The rows of a table are what is wrong, the type of the exception where it is not ValueError, and
words of its message.
"""

import copy
import functools
import pickle
from types import SimpleNamespace

import numpy as np
import onnx
import pandas
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    QuantileRegressor,
    SGDClassifier,
)
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skort import OrtSGDClassifier, OrtSGDRegressor, Step, objective, optimizers, schedules
from skort.artifacts import OnDeviceTraining, load_checkpoint, save_training_artifacts
from skort.callbacks import Checkpoint, EarlyStopping, EpochScoring
from skort.exceptions import NotTrainableError
from skort.gradients import ForwardBackward, gradient_graphs, initial_model
from skort.model_selection import OrtGridSearchCV
from skort.runtime.checkpoint_file import release_here
from skort.runtime.installed import training_api
from skort.solvers import available_solvers

X = np.random.default_rng(0).normal(size=(30, 3))
Y, LABELS = X[:, 0] + 1, (X[:, 0] > 0).astype(int)
X32 = X.astype(np.float32)
WITH_NAN, WITH_INF = X.copy(), X.copy()
WITH_NAN[3, 1], WITH_INF[3, 1] = np.nan, np.inf
DAMAGED = scipy.sparse.csr_matrix(X)
DAMAGED.indices = np.where(np.arange(DAMAGED.nnz) == 0, 77, DAMAGED.indices).astype(np.int32)
OPTIONS = {"max_iter": 3, "tol": None, "random_state": 0, "eta0": 0.1, "learning_rate": "constant"}
PIPELINE = make_pipeline(StandardScaler(), LinearRegression())
NETWORK = MLPRegressor(hidden_layer_sizes=(3,))
FRAME = pandas.DataFrame(X, columns=list("abc"))
BATCHES = [(X[:10], Y[:10]), (X[10:20], Y[10:20])]


@functools.cache
def _fitted(name):
    return {
        "regressor": lambda: OrtSGDRegressor(**OPTIONS).fit(X, Y),
        "classifier": lambda: OrtSGDClassifier(**OPTIONS).fit(X, LABELS),
        "network": lambda: OrtSGDRegressor(NETWORK, **OPTIONS).fit(X, Y),
        "pipeline": lambda: OrtSGDRegressor(PIPELINE, **OPTIONS).fit(X, Y),
        "frame": lambda: OrtSGDRegressor(**OPTIONS).fit(FRAME, Y),
        "hinge": lambda: OrtSGDClassifier(loss="hinge", **OPTIONS).fit(X, LABELS),
    }[name]()


def deep(value, above=()):
    """Return all values inside a value, for comparisons."""
    if id(value) in above:
        return "itself"
    inside = functools.partial(deep, above=(*above, id(value)))
    if isinstance(value, np.ndarray):
        return (
            value.dtype.str,
            value.shape,
            value.tolist() if value.dtype == object else value.tobytes(),
        )
    if isinstance(value, onnx.ModelProto):
        return value.SerializeToString()
    if isinstance(value, np.random.RandomState):
        return inside(value.get_state(legacy=False))
    if isinstance(value, dict):
        return {repr(name): inside(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [inside(item) for item in value]
    if hasattr(value, "__dict__") and not callable(value):
        # What a value has found of itself is no part of it.
        found = functools.cached_property
        own = {
            name: item
            for name, item in vars(value).items()
            if not isinstance(getattr(type(value), name, None), found)
        }
        return type(value).__name__, inside(own)
    return repr(value)


def refused(call, error_type, phrase):
    """Check the error of a call."""
    with pytest.raises(error_type) as raised:
        call()
    message = " ".join(str(raised.value).split())
    assert phrase in message
    for trace in ("onnxruntime_src", ".cc:", "[ONNXRuntimeError]"):
        assert trace not in message


def ids(table):
    return [f"{i}-{row[-1]}" for i, row in enumerate(table)]


def nan_rate(t):
    return np.nan


def two_arguments(y, prediction):
    return 1.0


def text_scorer(model, X, y):
    return "good"


PARAMETERS = [
    (
        "regressor",
        {"estimator": 3},
        "'estimator' parameter must be a regressor or classifier of scikit-learn",
    ),
    ("regressor", {"estimator": "lasso"}, "Got 'lasso'"),
    (
        "regressor",
        {"estimator": "m.keras"},
        "Got 'm.keras'. If it is a path, load the model: tf2onnx converts one of Keras.",
    ),
    (
        "regressor",
        {"estimator": b"onnx"},
        "Got 4 bytes. If they are an ONNX file, use onnx.load_from_string",
    ),
    ("regressor", {"estimator": []}, "Got []"),
    (
        "regressor",
        {"estimator": LinearRegression},
        "is a class: pass an instance, LinearRegression()",
    ),
    (
        "regressor",
        {"estimator": KMeans()},
        "estimator=KMeans is a clusterer: it does not predict y",
    ),
    (
        "regressor",
        {"estimator": RandomForestRegressor()},
        "operator TreeEnsembleRegressor, which has no gradient",
    ),
    ("regressor", {"estimator": LogisticRegression()}, "use OrtSGDClassifier for classifiers"),
    ("classifier", {"estimator": LinearRegression()}, "use OrtSGDRegressor for regressors"),
    (
        "regressor",
        {"estimator": FrozenEstimator(LinearRegression())},
        "LinearRegression instance is not fitted yet",
    ),
    ("regressor", {"estimator": make_pipeline(StandardScaler())}, "a Pipeline that ends in one"),
    (
        "regressor",
        {"estimator": make_pipeline("scaler", LinearRegression())},
        "'scaler' before the model is no",
    ),
    (
        "regressor",
        {"estimator": make_pipeline(Lasso(), LinearRegression())},
        "the step 'lasso' before the model is no",
    ),
    ("regressor", {"estimator": onnx.ModelProto()}, "the ONNX model is not valid"),
    ("regressor", {"estimator": OrtSGDRegressor()}, "it is an OrtSGDRegressor already"),
    (
        "regressor",
        {"estimator": MLPRegressor(hidden_layer_sizes=(0,))},
        "hidden_layer_sizes of MLPRegressor must be",
    ),
    (
        "regressor",
        {"estimator": MLPRegressor(hidden_layer_sizes="a")},
        "'hidden_layer_sizes' parameter of MLPRegressor",
    ),
    (
        "regressor",
        {"estimator": MLPRegressor(activation="swish")},
        "'activation' parameter of MLPRegressor",
    ),
    ("regressor", {"estimator": Lasso(alpha=-1)}, "'alpha' parameter of Lasso"),
    (
        "regressor",
        {"estimator": QuantileRegressor(quantile=2)},
        "'quantile' parameter of QuantileRegressor",
    ),
    ("classifier", {"estimator": LogisticRegression(C=-1)}, "'C' parameter of LogisticRegression"),
    ("regressor", {"solver": "lbfgs"}, "'solver' parameter"),
    ("regressor", {"solver": None}, "'solver' parameter"),
    ("regressor", {"loss": "log_loss"}, "'loss' parameter of OrtSGDRegressor"),
    ("classifier", {"loss": "squared"}, "'loss' parameter of OrtSGDClassifier"),
    ("regressor", {"loss": None}, "loss=None needs an estimator that is a training graph"),
    (
        "regressor",
        {"loss": objective.SquaredError},
        "loss: SquaredError is a class: give an instance",
    ),
    (
        "regressor",
        {"loss": {"a": "huber"}},
        "loss by the names of outputs needs an estimator that is an onnx.ModelProto",
    ),
    (
        "regressor",
        {"loss": objective.LogLoss()},
        "loss=LogLoss is not a loss of a regressor. Use one of",
    ),
    ("classifier", {"loss": objective.Huber()}, "loss=Huber is not a loss of a classifier"),
    ("regressor", {"loss": objective.Huber(epsilon=-1)}, "'epsilon' parameter of Huber"),
    ("regressor", {"loss": objective.Quantile(quantile=3)}, "'quantile' parameter of Quantile"),
    ("regressor", {"loss": "poisson"}, 'loss="poisson" needs y >= 0'),
    ("regressor", {"loss": "gamma"}, 'loss="gamma" needs y > 0'),
    ("regressor", {"epsilon": -1}, "'epsilon' parameter"),
    ("regressor", {"epsilon": np.nan}, "'epsilon' parameter"),
    ("regressor", {"quantile": 0}, "'quantile' parameter"),
    ("regressor", {"quantile": None}, "'quantile' parameter"),
    ("regressor", {"penalty": "l3"}, "write it with skort.objective.Penalty."),
    (
        "regressor",
        {"penalty": objective.L1},
        "penalty: L1 is a class: give an instance of it, L1()",
    ),
    ("regressor", {"penalty": objective.L2(alpha=-1)}, "'alpha' parameter of L2"),
    (
        "regressor",
        {"penalty": "elasticnet", "l1_ratio": None},
        "l1_ratio must be set when penalty is 'elasticnet'",
    ),
    ("regressor", {"alpha": -1e-9}, "'alpha' parameter"),
    ("regressor", {"alpha": np.nan}, "'alpha' parameter"),
    ("regressor", {"alpha": np.inf}, "'alpha' parameter"),
    ("regressor", {"alpha": "1"}, "'alpha' parameter"),
    ("regressor", {"alpha": [1]}, "'alpha' parameter"),
    ("regressor", {"l1_ratio": 1.5}, "'l1_ratio' parameter"),
    ("regressor", {"n_total": 0}, "'n_total' parameter"),
    ("regressor", {"n_total": 1.5}, "'n_total' parameter"),
    ("regressor", {"optimizer": "rmsprop"}, "'optimizer' parameter"),
    (
        "regressor",
        {"optimizer": optimizers.Adam},
        "optimizer: Adam is a class: give an instance of it, Adam()",
    ),
    (
        "regressor",
        {"optimizer": optimizers.Momentum(momentum="a")},
        "'momentum' parameter of Momentum",
    ),
    ("regressor", {"optimizer": optimizers.Adam(beta_1=1.0)}, "'beta_1' parameter of Adam"),
    (
        "regressor",
        {"optimizer": optimizers.Adam(weight_decay=-1)},
        "'weight_decay' parameter of Adam",
    ),
    ("regressor", {"max_grad_norm": 0}, "'max_grad_norm' parameter"),
    ("regressor", {"max_grad_norm": "1"}, "'max_grad_norm' parameter"),
    ("regressor", {"learning_rate": 0.01}, "To set the rate, give eta0=0.01"),
    ("regressor", {"learning_rate": "cosine"}, "'learning_rate' parameter"),
    ("regressor", {"learning_rate": schedules.Cosine}, "learning_rate: Cosine is a class"),
    (
        "regressor",
        {"learning_rate": schedules.Cosine(n_updates=0)},
        "'n_updates' parameter of Cosine",
    ),
    ("regressor", {"learning_rate": schedules.Cyclic(eta1=-1.0)}, "'eta1' parameter of Cyclic"),
    (
        "regressor",
        {"learning_rate": schedules.Warmup(schedule=3)},
        "'schedule' parameter of Warmup",
    ),
    (
        "regressor",
        {"learning_rate": nan_rate},
        "must return a finite number >= 0, got nan for update 1",
    ),
    ("regressor", {"learning_rate": "optimal", "alpha": 0.0}, "divides by alpha, got alpha=0.0"),
    ("regressor", {"eta0": 0}, "'eta0' parameter"),
    ("regressor", {"eta0": np.nan}, "'eta0' parameter"),
    ("regressor", {"eta0": None}, "'eta0' parameter"),
    ("regressor", {"eta0": 1e30}, "Training diverged: the loss became infinite or NaN in epoch 2"),
    ("regressor", {"power_t": -1}, "'power_t' parameter"),
    ("regressor", {"batch_size": 0}, "'batch_size' parameter"),
    ("regressor", {"batch_size": 2.5}, "'batch_size' parameter"),
    ("regressor", {"batch_size": "all"}, "'batch_size' parameter"),
    ("regressor", {"max_iter": 0}, "'max_iter' parameter"),
    ("regressor", {"max_iter": np.inf}, "'max_iter' parameter"),
    ("regressor", {"tol": -1}, "'tol' parameter"),
    ("regressor", {"tol": np.nan}, "'tol' parameter"),
    ("regressor", {"n_iter_no_change": 0}, "'n_iter_no_change' parameter"),
    ("regressor", {"early_stopping": "yes"}, "'early_stopping' parameter"),
    (
        "regressor",
        {"early_stopping": True, "validation_fraction": 1e-9},
        "validation set is too small: 1 of 30 rows",
    ),
    ("regressor", {"validation_fraction": 1.0}, "'validation_fraction' parameter"),
    (
        "regressor",
        {"early_stopping": True, "scoring": "no_such"},
        "scoring='no_such' is not a scorer of scikit-learn",
    ),
    (
        "regressor",
        {"early_stopping": True, "scoring": "roc_auc"},
        "Scorers of regressors are 'r2', 'neg_mean_absolute_error' and others.",
    ),
    (
        "regressor",
        {"early_stopping": True, "scoring": "rmse"},
        "Did you mean scoring='neg_root_mean_squared_error'?",
    ),
    (
        "regressor",
        {"early_stopping": True, "scoring": two_arguments},
        "For one of (y, prediction), give scoring=make_scorer(two_arguments).",
    ),
    (
        "regressor",
        {"early_stopping": True, "scoring": text_scorer},
        "must return a number, got 'good'",
    ),
    ("regressor", {"scoring": 3}, "'scoring' parameter"),
    ("regressor", {"shuffle": 2}, "'shuffle' parameter"),
    ("regressor", {"standardize": "yes"}, "'standardize' parameter"),
    (
        "regressor",
        {"trainable": "no_such"},
        "trainable=['no_such'] matches no weight. The weights are ['coef', 'inter",
    ),
    ("regressor", {"trainable": []}, "trainable=[] matches no weight"),
    ("regressor", {"trainable": [3]}, "trainable must be names or patterns of weights, got [3]"),
    ("regressor", {"trainable": ["coef", "x*"]}, "trainable=['x*'] matches no weight"),
    ("regressor", {"dtype": "float16"}, "Did you mean dtype='float32'?"),
    ("regressor", {"dtype": np.float32}, "'dtype' parameter"),
    ("regressor", {"device": "gpu"}, "device='gpu' is unknown"),
    ("regressor", {"device": "cuda:99999999999999999999"}, 'is unknown. Use "cpu", "cuda"'),
    ("regressor", {"device": None}, "'device' parameter"),
    ("regressor", {"n_jobs": 0}, "'n_jobs' parameter"),
    ("regressor", {"n_jobs": "2"}, "'n_jobs' parameter"),
    ("regressor", {"average": -1}, "'average' parameter"),
    ("regressor", {"random_state": -1}, "'random_state' parameter"),
    ("regressor", {"random_state": 2**40}, "'random_state' parameter"),
    ("regressor", {"warm_start": "yes"}, "'warm_start' parameter"),
    ("regressor", {"verbose": "a"}, "'verbose' parameter"),
    ("regressor", {"callbacks": Checkpoint()}, "'callbacks' parameter"),
    (
        "regressor",
        {"callbacks": [1]},
        "callbacks: 1 is not a callback: it has none of the methods on_train_begin",
    ),
    (
        "regressor",
        {"callbacks": [Checkpoint]},
        "callbacks: Checkpoint is a class: pass an instance, Checkpoint()",
    ),
    ("regressor", {"callbacks": [Checkpoint(every=0)]}, "'every' parameter of Checkpoint"),
    ("regressor", {"callbacks": [Checkpoint(path=3)]}, "'path' parameter of Checkpoint"),
    (
        "regressor",
        {"callbacks": [EarlyStopping(patience=0)]},
        "'patience' parameter of EarlyStopping",
    ),
    (
        "regressor",
        {"callbacks": [EarlyStopping("loss", tol=-1)]},
        "'tol' parameter of EarlyStopping",
    ),
    (
        "regressor",
        {"callbacks": [EpochScoring(X[:, :2], Y)]},
        "X of EpochScoring: X has 2 features, but OrtSGDRegressor is expecting 3",
    ),
    (
        "regressor",
        {"callbacks": [EpochScoring(X, Y[:3])]},
        "inconsistent numbers of samples: [3, 30]",
    ),
    ("classifier", {"class_weight": "even"}, "'class_weight' parameter"),
    ("classifier", {"class_weight": {5: 1.0}}, "The classes, [0, 1], are not in class_weight"),
    ("classifier", {"class_weight": {0: -1.0}}, "has weights that are negative or not finite"),
    (
        "classifier",
        {"class_weight": {0: "a"}},
        "class_weight={0: 'a'} has weights that are not numbers",
    ),
    ("classifier", {"class_weight": {0: 0.0, 1: 0.0}}, "leave no row of positive weight"),
    (
        "classifier",
        {"class_weight": {0: 1e308, 1: 1e308}},
        "is too large for float64. Make one of them smaller",
    ),
]


@pytest.mark.parametrize("name, parameters, phrase", PARAMETERS, ids=ids(PARAMETERS))
def test_parameters(name, parameters, phrase):
    model = copy.deepcopy(_fitted(name))
    expected, old = model.predict(X), model.get_params(deep=False)
    model.set_params(**parameters)
    before = deep(vars(model))
    y = LABELS if name == "classifier" else Y - 5
    refused(lambda: model.fit(X, y), ValueError, phrase)
    assert deep(vars(model)) == before
    model.set_params(**{parameter: old[parameter] for parameter in parameters})
    np.testing.assert_array_equal(model.predict(X), expected)


SOLVERS = [
    ({"solver": "session", "max_grad_norm": 1.0}, "cannot clip gradients (max_grad_norm=1.0)"),
    ({"solver": "session", "dtype": "float64"}, 'Use dtype="float32" or solver="graph"'),
    ({"solver": "session", "optimizer": "momentum"}, "has no optimizer=Momentum()"),
    ({"solver": "module", "dtype": "float64"}, 'Use dtype="float32" or solver="graph"'),
    ({"solver": "module", "penalty": "l1"}, "has no l1 term, got penalty=L1("),
    ({"solver": "module", "optimizer": "nesterov"}, "has no optimizer=Nesterov()"),
]


@pytest.mark.parametrize("parameters, phrase", SOLVERS, ids=ids(SOLVERS))
def test_what_a_solver_does_not_have(parameters, phrase):
    if parameters["solver"] not in available_solvers():
        pytest.skip("this runtime has no such solver")
    test_parameters("regressor", parameters, phrase)


R, C, P = "regressor", "classifier", "pipeline"
ROWS = [
    (R, lambda m: m.fit(X[:, 0], Y), "Expected 2D array, got 1D array"),
    (R, lambda m: m.fit(X[:, :, None], Y), "Found array with dim 3"),
    (R, lambda m: m.fit(3.0, Y), "Expected 2D array, got scalar array"),
    (R, lambda m: m.fit(None, Y), "X is None: give the rows."),
    (R, lambda m: m.fit("abc", Y), "X is 'abc', and no table."),
    (R, lambda m: m.fit(X[:0], Y[:0]), "Found array with 0 sample(s)"),
    (R, lambda m: m.fit(X[:, :0], Y), "Found array with 0 feature(s)"),
    (R, lambda m: m.fit(WITH_NAN, Y), "Input X contains NaN"),
    (
        R,
        lambda m: m.fit(WITH_INF, Y),
        "Input X contains infinity or a value too large for dtype('float64')",
    ),
    (
        R,
        lambda m: m.fit(1e300 * X, Y),
        "Input X contains infinity or a value too large for dtype('float32')",
    ),
    (R, lambda m: m.fit(1j * X, Y), "Complex data not supported"),
    (
        R,
        lambda m: m.fit([[1, 2], [3]], [1, 2]),
        "X has rows of several lengths: row 0 has 2 values, and row 1 has 1.",
    ),
    (
        R,
        lambda m: m.fit(pandas.DataFrame({"a": ["x"] * 30}), Y),
        "X has text in column 'a', such as 'x', but the",
    ),
    (R, lambda m: m.fit(scipy.sparse.csr_matrix(WITH_NAN), Y), "Input X contains NaN"),
    (R, lambda m: m.fit(DAMAGED, Y), "X has the shape (30, 3). Build X again"),
    (R, lambda m: m.fit(X, None), "requires y to be passed"),
    (R, lambda m: m.fit(X, WITH_NAN[:, 1]), "Input y contains NaN"),
    (R, lambda m: m.fit(X, WITH_INF[:, 1]), "Input y contains infinity"),
    (
        R,
        lambda m: m.fit(X, ["a"] * 30),
        "y has 'a' in row 0: a regressor takes numbers. OrtSGDClassifier takes labels.",
    ),
    (R, lambda m: m.fit(X, Y[:5]), "inconsistent numbers of samples: [30, 5]"),
    (R, lambda m: m.fit(X, X[:, :, None]), "Found array with dim 3"),
    (R, lambda m: m.fit(X, 1e300 * Y), "y contains values too large for dtype='float32'"),
    (R, lambda m: m.fit(X, X[:, :0]), "Found array with 0 feature(s)"),
    (R, lambda m: m.fit(X, 1j * Y), "Complex data not supported"),
    (
        R,
        lambda m: m.fit(X, {"y": Y}),
        "y is a dict of the outputs y: give loss as a dict by the same names",
    ),
    (R, lambda m: m.fit(X, Y, np.ones(3)), "sample_weight.shape == (3,), expected (30,)"),
    (R, lambda m: m.fit(X, Y, np.ones((30, 2))), "Sample weights must be 1D array or scalar"),
    (R, lambda m: m.fit(X, Y, WITH_NAN[:, 1]), "Input sample_weight contains NaN"),
    (R, lambda m: m.fit(X, Y, -np.ones(30)), "Negative values in data passed to `sample_weight`"),
    (
        R,
        lambda m: m.fit(X, Y, np.zeros(30)),
        "Sample weights must contain at least one non-zero number",
    ),
    (
        R,
        lambda m: m.fit(X, Y, np.full(30, 1e308)),
        "The sum of sample_weight is too large for float64",
    ),
    (R, lambda m: m.fit(X, Y, "balanced"), "a number for each row, got 'balanced'"),
    (R, lambda m: m.fit(X, Y, X_val=X), "X_val was given without y_val"),
    (R, lambda m: m.fit(X, Y, y_val=Y), "y_val was given without X_val"),
    (
        R,
        lambda m: m.fit(X, Y, X_val=X[:, :2], y_val=Y),
        "X_val: X has 2 features, but OrtSGDRegressor is expecting 3",
    ),
    (R, lambda m: m.fit(X, Y, X_val=WITH_NAN, y_val=Y), "X_val: Input X contains NaN in column 1."),
    (R, lambda m: m.fit(X, Y, X_val=X, y_val=Y[:3]), "X_val has 30 rows, and y_val has 3."),
    (
        R,
        lambda m: m.fit(X, Y, X_val=X, y_val=np.column_stack([Y, Y])),
        "y_val has another number of columns than y: 2, not 1.",
    ),
    (
        R,
        lambda m: m.fit(X, np.column_stack([Y, Y]), X_val=X, y_val=Y),
        "y_val has another number of columns than y: 1, not 2.",
    ),
    (
        R,
        lambda _: OrtSGDRegressor(loss="poisson").fit(X, Y**2, X_val=X, y_val=-(Y**2)),
        "needs y >= 0",
    ),
    (R, lambda m: m.fit(X, Y, coef_init=np.ones(5)), "Provided coef_init does not match dataset"),
    (
        R,
        lambda m: m.fit(X, Y, coef_init=[np.nan] * 3),
        "coef_init has numbers that are not finite in float32",
    ),
    (
        R,
        lambda m: m.fit(X, Y, coef_init="a"),
        "coef_init is not an array of numbers: could not convert",
    ),
    (
        R,
        lambda m: m.fit(X, Y, intercept_init=[1, 2]),
        "Provided intercept_init does not match dataset",
    ),
    (
        "network",
        lambda m: m.fit(X, Y, coef_init=[1, 2, 3]),
        "coef_init and intercept_init are for linear models",
    ),
    (
        C,
        lambda m: m.fit(X, np.zeros(30)),
        "The number of classes has to be greater than one; got 1 class",
    ),
    (C, lambda m: m.fit(X, Y), "Unknown label type: continuous"),
    (C, lambda m: m.fit(X, WITH_NAN[:, 1]), "Input y contains NaN"),
    (
        C,
        lambda m: m.fit(X, np.array([None, "a"] * 15, object)),
        "y has None in row 0: each row needs a label",
    ),
    (
        C,
        lambda m: m.fit(X, np.stack([LABELS, 2 * LABELS], 1)),
        "y should be a 1d array, got an array of shape (30, 2)",
    ),
    (
        R,
        lambda m: m.partial_fit(X[:, :2], Y),
        "X has 2 features, but OrtSGDRegressor is expecting 3 features",
    ),
    (R, lambda m: m.partial_fit(WITH_NAN, Y), "Input X contains NaN"),
    (R, lambda m: m.partial_fit(X[:0], Y[:0]), "Found array with 0 sample(s)"),
    (R, lambda m: m.partial_fit(X, X[:, :2]), "y has 2 outputs, earlier calls had 1"),
    (R, lambda m: m.partial_fit(X, Y[:2]), "inconsistent numbers of samples: [30, 2]"),
    (R, lambda m: m.partial_fit(X, Y, np.ones(2)), "sample_weight.shape == (2,), expected (30,)"),
    (R, lambda m: m.partial_fit(DAMAGED, Y), "Build X again"),
    (
        C,
        lambda m: m.partial_fit(X, LABELS + 1),
        "y has the labels [2], and the known classes are [0, 1]. Give y these labels.",
    ),
    (
        C,
        lambda m: m.partial_fit(X, LABELS, classes=[0, 1, 2]),
        "is not the same as on last call to partial_fit",
    ),
    (
        C,
        lambda m: OrtSGDClassifier().partial_fit(X, LABELS),
        "classes must be passed on the first call",
    ),
    (
        C,
        lambda m: OrtSGDClassifier().partial_fit(X, LABELS, classes=[5, 6]),
        "y has the labels [0, 1], and the known classes are [5, 6]. Give y these labels.",
    ),
    (
        C,
        lambda m: OrtSGDClassifier().partial_fit(X, LABELS, classes=[[0], [1]]),
        "classes must be an array-like of shape",
    ),
    (
        C,
        lambda m: OrtSGDClassifier().partial_fit(X, LABELS, classes="ab"),
        "classes must be an array-like of shape",
    ),
    (
        R,
        lambda m: OrtSGDRegressor(early_stopping=True).partial_fit(X, Y),
        "partial_fit does not support early_stopping",
    ),
    (
        P,
        lambda m: clone(m).partial_fit(X, Y),
        AttributeError,
        "partial_fit does not fit the step 'standardscaler'",
    ),
    (
        "frame",
        lambda m: m.partial_fit(pandas.DataFrame(X, columns=list("abd")), Y),
        "Feature names unseen at fit time",
    ),
    (
        "frame",
        lambda m: m.predict(pandas.DataFrame(X, columns=list("abd"))),
        "Feature names unseen at fit time",
    ),
    (R, lambda m: m.predict(DAMAGED), "Build X again"),
    (
        P,
        lambda m: m.predict(X[:, :2]),
        "X has 2 features, but OrtSGDRegressor is expecting 3 features",
    ),
    (P, lambda m: m.predict(WITH_NAN), "contains NaN"),
    (
        R,
        lambda m: OrtSGDRegressor().predict(X),
        NotFittedError,
        "OrtSGDRegressor instance is not fitted yet",
    ),
    (
        C,
        lambda m: OrtSGDClassifier().predict_proba(X),
        NotFittedError,
        "OrtSGDClassifier instance is not fitted yet",
    ),
    (
        "hinge",
        lambda m: m.predict_proba(X),
        AttributeError,
        "probability estimates are not available for loss='hinge'. Use loss=\"log_loss\"",
    ),
    (R, lambda m: m.score(X, Y[:3]), "inconsistent numbers of samples: [3, 30]"),
]
for _name, _method in (
    (R, "predict"),
    (C, "predict"),
    (C, "predict_proba"),
    (C, "decision_function"),
):

    def _predicting(rows, method=_method):
        return lambda m: getattr(m, method)(rows)

    ROWS += [
        (_name, _predicting(X[:, :2]), "X has 2 features"),
        (_name, _predicting(X[0]), "Expected 2D array, got 1D array"),
        (_name, _predicting(WITH_NAN), "Input X contains NaN"),
        (
            _name,
            _predicting([["a", "b", "c"]]),
            "X has text in columns 0, 1, 2, such as 'a', but the model takes numbers",
        ),
        (_name, _predicting(X[:0]), "Found array with 0 sample(s)"),
        (_name, _predicting(None), "X is None: give the rows."),
        (
            _name,
            _predicting(1e300 * X),
            "Input X contains infinity or a value too large for dtype('float32')",
        ),
    ]

EXPORTS = [
    (
        R,
        lambda m: m.to_onnx(99),
        "cannot be written with target_opset=99: it is an integer between 13 and",
    ),
    (R, lambda m: m.to_onnx(1), "cannot be written with target_opset=1:"),
    (R, lambda m: m.to_onnx("17"), "cannot be written with target_opset='17'"),
    (R, lambda m: m.to_onnx(17.5), "cannot be written with target_opset=17.5"),
    (R, lambda m: m.to_onnx(original=True), "estimator=LinearRegression is not one. Use to_onnx()"),
    (R, lambda m: m.to_onnx(17, original=True), "leave out target_opset=17"),
    (R, lambda m: OrtSGDRegressor().to_onnx(), NotFittedError, "is not fitted yet"),
    (R, lambda m: OrtSGDRegressor().training_graphs(), NotFittedError, "is not fitted yet"),
    (R, lambda m: OrtSGDRegressor().to_sklearn(), NotFittedError, "is not fitted yet"),
    (R, lambda m: m.save_onnx(None), "The name of a file must be a str or path-like, got None"),
    (R, lambda m: m.save_onnx(3), "The name of a file must be a str or path-like, got 3"),
    (R, lambda m: m.save_onnx("."), IsADirectoryError, "is a folder. Give the name of a file"),
    (R, lambda m: m.save_onnx("no/such/x"), FileNotFoundError, "x' cannot be written: the folder"),
    (R, lambda m: m.save_training_graphs(__file__), FileExistsError, "File exists"),
    ("network", lambda m: m.sparsify(), AttributeError, "the model is not linear"),
]
for _method in ("set_weights", "with_weights"):

    def _giving(weights, method=_method):
        return lambda m: getattr(m, method)(weights)

    EXPORTS += [
        (
            R,
            _giving({"x": [1]}),
            "weights: the model has no weight 'x'. Its weights are coef, intercept",
        ),
        (R, _giving({"coef": [1]}), "weights['coef'] has shape (1,), but the weight has (3, 1)"),
        (
            R,
            _giving({"intercept": [np.nan]}),
            "weights['intercept'] has numbers that are not finite in float32",
        ),
        (
            R,
            _giving({"intercept": [1e300]}),
            "weights['intercept'] has numbers that are not finite in float32",
        ),
        (R, _giving({"intercept": ["a"]}), "weights['intercept'] is not an array of numbers"),
        (R, _giving({"intercept": [1j]}), "weights['intercept'] is not an array of numbers"),
        (R, _giving({"coef": [[1], [1, 2]]}), "weights['coef'] is not an array of numbers"),
        (R, _giving([1]), "weights must be a dict: name -> array, got list"),
        (R, _giving(np.ones(3)), "weights must be a dict: name -> array, got ndarray"),
    ]


def unequal_passes():
    sizes = iter([2, 1, 1, 1, 1])
    return lambda: BATCHES[: next(sizes)]


FIT_BATCHES = [
    (R, lambda m: m.fit_batches(3), "batches must be something to iterate over, got int"),
    (
        R,
        lambda m: m.fit_batches(iter(BATCHES)),
        "batches is an iterator, which gives its batches only once",
    ),
    (R, lambda m: m.fit_batches([]), "batches is empty: it gave no rows"),
    (R, lambda m: m.fit_batches([(X[:0], Y[:0])]), "batches is empty: it gave no rows"),
    (
        R,
        lambda m: m.fit_batches([X]),
        "batch 0 is a ndarray, and not (X, y) or (X, y, sample_weight)",
    ),
    (R, lambda m: m.fit_batches([(X, Y, Y, Y)]), "batch 0 is a tuple of 4"),
    (R, lambda m: m.fit_batches((X, Y)), "fit takes X and y; batches is a list of (X, y)."),
    (R, lambda m: m.fit_batches({"a": 1}), "batch 0 is a str"),
    (
        R,
        lambda m: m.fit_batches(pandas.DataFrame(X, columns=[*"abc"])),
        "These are names of columns: fit",
    ),
    (
        R,
        lambda m: m.fit_batches([pandas.DataFrame(X)]),
        'Divide its columns: (batch.drop(columns="target"), batch["target"]).',
    ),
    (R, lambda m: m.fit_batches([{"X": X, "y": Y}]), "Give its values: (batch['X'], batch['y'])."),
    (
        R,
        lambda m: m.fit_batches([*BATCHES, (X[:10, :2], Y[:10])]),
        "batch 2: X has the shape (10, 2), the first one",
    ),
    (R, lambda m: m.fit_batches([*BATCHES, (WITH_NAN, Y)]), "batch 2: Input X contains NaN"),
    (R, lambda m: m.fit_batches([*BATCHES, (X, WITH_NAN[:, 1])]), "batch 2: Input y contains NaN"),
    (
        R,
        lambda m: m.fit_batches([*BATCHES, (X, Y[:3])]),
        "batch 2: X has the shape (30, 3), but y has (3,)",
    ),
    (R, lambda m: m.fit_batches([(X, None)]), "batch 0: X has the shape (30, 3), but y has ()"),
    (
        R,
        lambda m: m.fit_batches([*BATCHES, (X, Y, np.ones(30))]),
        "batch 2: either all batches have a sample_weight",
    ),
    (
        R,
        lambda m: m.fit_batches([(X, Y, -np.ones(30))]),
        "Negative values in data passed to `sample_weight`",
    ),
    (R, lambda m: m.fit_batches([(DAMAGED, Y)]), "batch 0: X: its indices are from 0 to 77"),
    (
        R,
        lambda m: m.fit_batches(unequal_passes()),
        "batches gave 10 rows of positive sample weight in an epoch, and 20",
    ),
    (
        R,
        lambda m: m.fit_batches(lambda: 3),
        "batches: the function returned 3, which cannot be iterated over",
    ),
    (R, lambda m: m.fit_batches(BATCHES, classes=[0, 1]), "classes is for classifiers"),
    (R, lambda m: m.fit_batches(BATCHES, X_val=X), "X_val was given without y_val"),
    (
        C,
        lambda m: m.fit_batches([(X, LABELS + 5)], classes=[0, 1]),
        "batches: y has the labels [5, 6], and the known classes are [0, 1]. Give y these",
    ),
    (
        C,
        lambda m: m.fit_batches([(X, LABELS)], classes=[[0, 1]]),
        "classes must be an array-like of shape (n_classes,)",
    ),
    (
        P,
        lambda m: m.fit_batches(BATCHES),
        "fit_batches does not fit the step 'standardscaler' before the model",
    ),
]
CALLS = [*ROWS, *EXPORTS, *FIT_BATCHES]


@pytest.mark.parametrize("row", CALLS, ids=ids(CALLS))
def test_calls(row):
    name, call, *error_type, phrase = row
    model = copy.deepcopy(_fitted(name))
    rows = FRAME if name == "frame" else X
    expected = model.predict(rows), model.onnx_.SerializeToString()
    before = deep(vars(model))
    refused(lambda: call(model), *(error_type or [ValueError]), phrase)
    assert deep(vars(model)) == before
    np.testing.assert_array_equal(model.predict(rows), expected[0])
    assert model.onnx_.SerializeToString() == expected[1]


class Fails:
    def on_train_begin(self, training):
        raise KeyError("mine")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a checkpoint, artifacts of two models, and a file that is nothing."""
    folder = tmp_path_factory.mktemp("files")
    OrtSGDRegressor(**OPTIONS, callbacks=[Checkpoint(folder / "checkpoint.npz")]).fit(X, Y)
    (folder / "garbage").write_bytes(bytes(100))
    for name in (R, "network"):
        save_training_artifacts(
            _fitted(name), folder / name, batch_size=10, ort_version=release_here()
        )
    save_training_artifacts(
        _fitted(R), folder / "no", batch_size=10, optimizer=None, ort_version=release_here()
    )
    return folder


RESUMED = [
    ({}, "missing", FileNotFoundError, "missing"),
    ({}, "garbage", "garbage' is no checkpoint of a training"),
    ({}, ".", IsADirectoryError, "Is a directory"),
    (
        {"estimator": NETWORK},
        "checkpoint.npz",
        "is the checkpoint of another model: its weights are {'coef'",
    ),
    (
        {"optimizer": "adam"},
        "checkpoint.npz",
        "state does not fit: it comes from a training with another model,",
    ),
    ({"average": True}, "checkpoint.npz", "dtype, optimizer or average"),
    (
        {"standardize": False},
        "checkpoint.npz",
        "that of a training on other rows, or with another value of standardize",
    ),
    ({"early_stopping": True}, "checkpoint.npz", "that of a training on other rows"),
]


@pytest.mark.parametrize("row", RESUMED, ids=ids(RESUMED))
def test_resumed_trainings(row, files):
    parameters, file, *error_type, phrase = row
    model = copy.deepcopy(_fitted(R)).set_params(
        callbacks=[Checkpoint(resume_from=files / file)], **parameters
    )
    before = deep(vars(model))
    refused(lambda: model.fit(X, Y), *(error_type or [ValueError]), phrase)
    assert deep(vars(model)) == before


@pytest.mark.parametrize(
    "callback, error_type, phrase",
    [
        (lambda folder: Fails(), KeyError, "mine"),
        (
            lambda folder: Checkpoint(folder),
            IsADirectoryError,
            "is a folder. Give the name of a file",
        ),
        (
            lambda folder: Checkpoint(folder / "no such" / "x"),
            FileNotFoundError,
            "no such' does not exist",
        ),
    ],
)
def test_callbacks_that_fail_at_the_beginning(callback, error_type, phrase, files):
    model = copy.deepcopy(_fitted(R)).set_params(callbacks=[callback(files)])
    before = deep(vars(model))
    refused(lambda: model.fit(X, Y), error_type, phrase)
    assert deep(vars(model)) == before


save = functools.partial(save_training_artifacts, batch_size=3)
ARTIFACTS = [
    (lambda m, at: save(OrtSGDRegressor(), at), NotFittedError, "is not fitted yet"),
    (
        lambda m, at: save(LinearRegression(), at),
        "must be a fitted OrtSGDRegressor or OrtSGDClassifier, or an onnx.",
    ),
    (
        lambda m, at: save(onnx.ModelProto(), at, loss="huber"),
        NotTrainableError,
        "the ONNX model is not valid",
    ),
    (lambda m, at: save(m, at, loss="huber"), "loss='huber': an estimator has its own"),
    (lambda m, at: save(m, at, optimizer="rmsprop"), 'optimizer must be "SGD", "AdamW"'),
    (
        lambda m, at: save(m, at, optimizer=optimizers.Momentum()),
        'optimizer must be "SGD", "AdamW"',
    ),
    (lambda m, at: save(m, at, batch_size=0), "batch_size must be an int > 0, or None, got 0"),
    (lambda m, at: save(m, at, batch_size=1.5), "batch_size must be an int > 0, or None, got 1.5"),
    (
        lambda m, at: save(m, at, ort_version="1.20"),
        "ort_version must be one of ['auto', '1.16', '1.17', '1.18', '1.19'], got '1.20'",
    ),
    (lambda m, at: save(m, at, trainable="zz"), "trainable=['zz'] matches no weight"),
    (
        lambda m, at: save(m, at, trainable=3),
        "trainable must be names or patterns of weights, got 3",
    ),
    (
        lambda m, at: save(m, at, additional_output_names=["zz"]),
        "additional_output_names: the model has no results ['zz']",
    ),
    (lambda m, at: save(m, at, ort_format=True), "ort_format=True is not possible"),
    (
        lambda m, at: save(m, at, custom_op_library="a.so"),
        "custom_op_library='a.so' is not possible",
    ),
    (lambda m, at: save(m, at / "garbage"), FileExistsError, "garbage"),
    (lambda m, at: save(m, None), "folder must be a str or path-like, got None"),
    (lambda m, at: save(m, at, prefix=3), "prefix must be a str, got 3"),
    (lambda m, at: save(m, at, prefix="no/such/"), FileNotFoundError, "such' does not exist"),
    (lambda m, at: save(m.onnx_, at), 'loss="auto" is for estimators'),
    (lambda m, at: save(m.onnx_, at, loss="zz"), "gamma, or an instance, got 'zz'."),
    (
        lambda m, at: save(m.onnx_, at, loss=None),
        "loss=None: the first output 'variable' must be the loss, one number",
    ),
    (
        lambda m, at: save(m.onnx_, at, loss={"zz": (1, "huber")}),
        "loss: the model has no outputs ['zz']",
    ),
    (
        lambda m, at: save(m.onnx_, at, loss={"variable": "huber"}),
        "loss['variable'] must be (weight, loss)",
    ),
    (
        lambda m, at: save(m.onnx_, at, loss={"variable": (np.nan, "huber")}),
        "with a finite weight, got (nan, 'huber')",
    ),
    (
        lambda m, at: load_checkpoint(at / "zz", m),
        FileNotFoundError,
        "zz' does not exist: give a checkpoint, or the folder that has one",
    ),
    (
        lambda m, at: load_checkpoint(at / "network", m),
        "is the checkpoint of another model: it has the parameters",
    ),
    (
        lambda m, at: load_checkpoint(at / "garbage", m),
        "garbage' cannot be read: it is no checkpoint of ONNX Runtime's",
    ),
    (lambda m, at: load_checkpoint(at / R, OrtSGDRegressor()), NotFittedError, "is not fitted yet"),
    (
        lambda m, at: load_checkpoint(at / R, 3),
        (
            "estimator must be the fitted OrtSGDRegressor or OrtSGDClassifier of the "
            "artifacts, got int"
        ),
    ),
    (lambda m, at: load_checkpoint(None, m), "folder must be a str or path-like, got None"),
]
ON_DEVICE = [
    (
        lambda m, at: OnDeviceTraining(at / "zz"),
        FileNotFoundError,
        "training_model.onnx' does not exist",
    ),
    (lambda m, at: OnDeviceTraining(at / R, checkpoint=at / "garbage"), "garbage' cannot be read"),
    (
        lambda m, at: OnDeviceTraining(at / R, checkpoint=at / "network" / "checkpoint"),
        "the checkpoint of another model",
    ),
    (
        lambda m, at: OnDeviceTraining(at / R).train_step(X[:10]),
        "A step takes the arrays ['X', 'target'], got 1",
    ),
    (
        lambda m, at: OnDeviceTraining(at / R).train_step(X[:10], Y[:10]),
        "target has the shape (10,)",
    ),
    (
        lambda m, at: OnDeviceTraining(at / R).train_step(X[:7], Y[:7, None]),
        "X has the shape (7, 3), but the model was written for (10, 3)",
    ),
    (
        lambda m, at: OnDeviceTraining(at / R).train_step([["a"] * 3] * 10, Y[:10, None]),
        "X cannot be read as an array of float32",
    ),
    (
        lambda m, at: OnDeviceTraining(at / "no").train_step(X[:10], Y[:10, None]),
        "The folder has no optimizer_model.onnx",
    ),
    (
        lambda m, at: OnDeviceTraining(at / R).eval_step(X[:3], Y[:4, None]),
        "All arrays must have the same number of rows",
    ),
    (lambda m, at: OnDeviceTraining(at / R).eval_step(X[:0], Y[:0, None]), "X has no rows."),
    (
        lambda m, at: setattr(OnDeviceTraining(at / R), "learning_rate", np.nan),
        "learning_rate must be a finite number",
    ),
    (lambda m, at: OnDeviceTraining(at / R).save_checkpoint(at), IsADirectoryError, "is a folder"),
    (
        lambda m, at: OnDeviceTraining(at / R).export_model_for_inferencing(at / "e", ["zz"]),
        "the eval model has no results ['zz']",
    ),
]


@pytest.mark.parametrize("row", ARTIFACTS, ids=ids(ARTIFACTS))
def test_artifacts(row, files):
    call, *error_type, phrase = row
    model = copy.deepcopy(_fitted(R))
    expected = model.predict(X), model.onnx_
    before, contents = (
        deep(vars(model)),
        {p: p.read_bytes() for p in files.rglob("*") if p.is_file()},
    )
    refused(lambda: call(model, files), *(error_type or [ValueError]), phrase)
    assert deep(vars(model)) == before
    np.testing.assert_array_equal(model.predict(X), expected[0])
    assert {p: p.read_bytes() for p in files.rglob("*") if p.is_file()} == contents


@pytest.mark.skipif("Module" not in training_api(), reason="this runtime is no build for training")
@pytest.mark.parametrize("row", ON_DEVICE, ids=ids(ON_DEVICE))
def test_training_from_artifacts(row, files):
    test_artifacts(row, files)


graphs = functools.partial(gradient_graphs, batch_size=1)
GRADIENTS = [
    (lambda at: graphs(at.linear, batch_size=0), "batch_size must be an int of at least 1, got 0"),
    (
        lambda at: graphs(at.linear, batch_size="a"),
        "batch_size must be an int of at least 1, got 'a'",
    ),
    (lambda at: graphs(3), "model must be an onnx.ModelProto, a fitted estimator that predicts"),
    (
        lambda at: graphs(LinearRegression),
        "model must be an onnx.ModelProto, a fitted estimator that predicts",
    ),
    (lambda at: graphs(LinearRegression()), NotFittedError, "is not fitted yet"),
    (lambda at: graphs(onnx.ModelProto()), NotTrainableError, "the ONNX model is not valid"),
    (lambda at: graphs(at.linear, trainable="zz"), "trainable=['zz'] matches no weight"),
    (
        lambda at: graphs(at.linear, dtype="float16"),
        'dtype must be "float32" or "float64", got \'float16\'',
    ),
    (
        lambda at: graphs(at.linear, dtype="float64"),
        "dtype='float64', but the model computes in float32",
    ),
    (lambda at: initial_model("a", 3), "estimator must be an estimator of scikit-learn, got str"),
    (
        lambda at: initial_model(RandomForestRegressor(), 3),
        NotTrainableError,
        "TreeEnsembleRegressor",
    ),
    (lambda at: initial_model(LinearRegression(), 0), "n_features must be a positive int, got 0"),
    (
        lambda at: initial_model(LinearRegression(), "3"),
        "n_features must be a positive int, got '3'",
    ),
    (lambda at: initial_model(LinearRegression(), 3, 0), "n_outputs must be a positive int, got 0"),
    (
        lambda at: initial_model(LinearRegression(), 3, dtype="zz"),
        'dtype must be "float32" or "float64", got \'zz\'',
    ),
    (
        lambda at: at.layer.forward(X),
        "X has the dtype float64, and the model computes in float32: cast it",
    ),
    (
        lambda at: at.layer.forward(X32[:, :2]),
        "X has the shape (30, 2), and the model takes (any, 3)",
    ),
    (lambda at: at.layer.forward(X32[:0]), "X has no rows"),
    (lambda at: at.layer.forward("a"), "X has the dtype <U1"),
    (
        lambda at: at.layer.forward(X32, weights=np.ones(2, np.float32)),
        "weights has the shape (2,), and the model takes",
    ),
    (
        lambda at: at.layer.backward(None, X32[:, :1]),
        "saved must be the second value that forward(X) returns",
    ),
    (
        lambda at: at.layer.backward(at.saved, X32[:3, :1]),
        "score_gradient has the shape (3, 1), and the model takes",
    ),
    (
        lambda at: at.layer.views(np.ones(9, np.float32)),
        "vector must have the shape (4,) of the weights, got (9,)",
    ),
    (
        lambda at: at.layer.to_estimator(),
        "The model is an ONNX model, not an estimator: use to_onnx()",
    ),
    (
        lambda at: ForwardBackward(at.linear, n_jobs=0),
        "n_jobs must be an int other than 0, or None, got 0",
    ),
    (
        lambda at: ForwardBackward(at.linear, n_jobs="a"),
        "n_jobs must be an int other than 0, or None, got 'a'",
    ),
]


@pytest.mark.parametrize("row", GRADIENTS, ids=ids(GRADIENTS))
def test_gradients(row):
    call, *error_type, phrase = row
    linear = initial_model(LinearRegression(), 3)
    layer = ForwardBackward(linear)
    layer.weights += 1
    score, saved = layer.forward(X32)
    at = SimpleNamespace(linear=linear, layer=layer, saved=saved)
    refused(lambda: call(at), *(error_type or [ValueError]), phrase)
    np.testing.assert_array_equal(layer.forward(X32)[0], score)


linear_step = functools.partial(Step, LinearRegression(), n_features=3)
STEPS = [
    (lambda s: Step(3), "'estimator' parameter must be a regressor or classifier"),
    (
        lambda s: Step(LinearRegression()),
        "Give n_features: the model does not say how many columns X has",
    ),
    (lambda s: Step(LinearRegression(), n_features=0), "n_features must be a positive int, got 0"),
    (lambda s: linear_step(n_outputs=0), "n_outputs must be a positive int, got 0"),
    (
        lambda s: linear_step(classes=[0, 1]),
        "is not a classifier: use OrtSGDRegressor for regressors",
    ),
    (lambda s: linear_step(loss="zz"), "'loss' parameter"),
    (
        lambda s: linear_step(loss="log_loss"),
        "Give classes: loss='log_loss' is that of a classifier",
    ),
    (lambda s: linear_step(penalty="zz"), "'penalty' parameter"),
    (lambda s: linear_step(optimizer="zz"), "'optimizer' parameter"),
    (lambda s: linear_step(solver="zz"), "'solver' parameter"),
    (lambda s: linear_step(batch_size=0), "'batch_size' parameter"),
    (lambda s: Step(PIPELINE, n_features=3), "transforms whole data, and not single batches"),
    (
        lambda s: Step(RandomForestRegressor(), n_features=3),
        NotTrainableError,
        "TreeEnsembleRegressor",
    ),
    (
        lambda s: Step(LogisticRegression(), n_features=3),
        "Give classes: a batch may lack some of the labels",
    ),
    (
        lambda s: Step(LogisticRegression(), n_features=3, classes=[1]),
        "The number of classes has to be greater than one",
    ),
    (
        lambda s: Step(LogisticRegression(), n_features=3, classes=[0, 1]),
        "n_total=...) with the number of all rows",
    ),
    (lambda s: Step(_fitted(R), n_features=4), "n_features=4, but the fitted estimator has 3"),
    (
        lambda s: Step(_fitted(C), classes=[0, 5]),
        "classes=[0 5], but the fitted estimator has [0 1]",
    ),
    (
        lambda s: s.step(X[:10, :2], Y[:10], 0.1),
        "X has 2 features, but OrtSGDRegressor is expecting 3",
    ),
    (lambda s: s.step(X[:20], Y[:20], 0.1), "X has 20 rows, but batch_size=10: give fewer rows"),
    (lambda s: s.step(X[:0], Y[:0], 0.1), "Found array with 0 sample(s)"),
    (lambda s: s.step(X[0], Y[:1], 0.1), "Expected 2D array, got 1D array"),
    (lambda s: s.step(WITH_NAN[:10], Y[:10], 0.1), "Input X contains NaN"),
    (lambda s: s.step(X[:10], Y[:5], 0.1), "inconsistent numbers of samples: [10, 5]"),
    (lambda s: s.step(X[:10], None, 0.1), "y is needed: the loss depends on it"),
    (lambda s: s.step(X[:10], X[:10, :2], 0.1), "y has 2 outputs, but the model has 1"),
    (lambda s: s.step(X[:10], WITH_NAN[:10, 1], 0.1), "Input y contains NaN"),
    (
        lambda s: s.step(X[:10], Y[:10], "a"),
        "eta must be a finite number that is not negative, got 'a'",
    ),
    (
        lambda s: s.step(X[:10], Y[:10], np.nan),
        "eta must be a finite number that is not negative, got nan",
    ),
    (
        lambda s: s.step(X[:10], Y[:10], -1),
        "eta must be a finite number that is not negative, got -1",
    ),
    (
        lambda s: s.step(X[:10], Y[:10], 0.1, np.ones(3)),
        "sample_weight.shape == (3,), expected (10,)",
    ),
    (
        lambda s: s.step(X[:10], Y[:10], 0.1, -np.ones(10)),
        "Negative values in data passed to `sample_weight`",
    ),
    (lambda s: s.forward(X, Y, training=True), 'Use step, or solver="agent"'),
    (lambda s: s.restore(None), "state must be what state() returned, got NoneType"),
    (lambda s: s.restore({}), "state does not fit: it comes from a training with another model"),
    (lambda s: s.restore({"weights": "a"}), "state does not fit"),
    (lambda s: s.restore({"weights": np.ones(99)}), "It has [('weights', (99,), '<f8')], expected"),
    (lambda s: pickle.dumps(s), TypeError, "Keep its state(), and restore it in a new Step"),
]


@pytest.mark.parametrize("row", STEPS, ids=ids(STEPS))
def test_steps(row):
    call, *error_type, phrase = row
    step = linear_step(solver="graph", batch_size=10)
    step.step(X[:10], Y[:10], 0.1)
    state, score, loss = deep(step.state()), step.forward(X), step.objective
    refused(lambda: call(step), *(error_type or [ValueError]), phrase)
    assert (deep(step.state()), step.objective) == (state, loss)
    np.testing.assert_array_equal(step.forward(X), score)


grid_search = functools.partial(OrtGridSearchCV, cv=2, error_score="raise")
SEARCHES = [
    (lambda m: grid_search(m, {"alpha": [0.1, -1.0]}).fit(X, Y), "'alpha' parameter"),
    (lambda m: grid_search(m, {"eta0": [0.1, np.nan]}).fit(X, Y), "'eta0' parameter"),
    (lambda m: grid_search(m, {"no_such": [1, 2]}).fit(X, Y), "Invalid parameter 'no_such'"),
    (lambda m: grid_search(m, {"alpha": 0.1}).fit(X, Y), TypeError, "alpha"),
    (lambda m: grid_search(m, {"alpha": []}).fit(X, Y), "non-empty sequence"),
    (lambda m: grid_search(m, {"alpha": [0.1, 0.2]}).fit(WITH_NAN, Y), "Input X contains NaN"),
    (
        lambda m: grid_search(m, {"alpha": [0.1, 0.2]}).fit(X, Y[:5]),
        "inconsistent numbers of samples: [30, 5]",
    ),
    (
        lambda m: grid_search(m, {"alpha": [0.1]}, scoring="no_such").fit(X, Y),
        "scoring='no_such' is not a scorer of scikit-learn",
    ),
    (
        lambda m: grid_search(m, {"alpha": [0.1, 0.2]}).predict(X),
        NotFittedError,
        "is not fitted yet",
    ),
]


@pytest.mark.parametrize("row", SEARCHES, ids=ids(SEARCHES))
def test_searches(row):
    call, *error_type, phrase = row
    model = copy.deepcopy(_fitted(R))
    expected, before = model.predict(X), deep(vars(model))
    refused(lambda: call(model), *(error_type or [ValueError]), phrase)
    assert deep(vars(model)) == before
    np.testing.assert_array_equal(model.predict(X), expected)


TORCH = [
    (lambda torch, layer: layer(X32), "X must be a tensor, got ndarray: use torch.from_numpy"),
    (
        lambda torch, layer: layer(torch.ones(4, 3, dtype=torch.float64)),
        "X has the dtype torch.float64",
    ),
    (
        lambda torch, layer: layer(torch.ones(4, 2)),
        "X has the shape (4, 2), and the model takes (any, 3)",
    ),
    (lambda torch, layer: layer(torch.ones(0, 3)), "X has no rows"),
    (lambda torch, layer: layer(torch.ones(4, 3, device="meta")), "X is on the device meta"),
    (
        lambda torch, layer: copy.deepcopy(layer).double()(torch.ones(4, 3)),
        "The module has the dtype torch.float64",
    ),
    (
        lambda torch, layer: type(layer)(3),
        "model must be an onnx.ModelProto, a fitted estimator that predicts",
    ),
    (lambda torch, layer: type(layer)(LinearRegression()), NotFittedError, "is not fitted yet"),
    (
        lambda torch, layer: type(layer)(_fitted(R), trainable="zz"),
        "trainable=['zz'] matches no weight",
    ),
    (
        lambda torch, layer: type(layer)(_fitted(R), dtype="float64"),
        "but the model computes in float32",
    ),
    (
        lambda torch, layer: type(layer)(_fitted(R), n_jobs=0),
        "n_jobs must be an int other than 0, or None, got 0",
    ),
    (
        lambda torch, layer: layer.to_estimator(),
        "The model is an ONNX model, not an estimator: use to_onnx()",
    ),
]


@pytest.mark.parametrize("row", TORCH, ids=ids(TORCH))
def test_torch(row):
    torch = pytest.importorskip("torch", reason="needs torch")
    from skort.torch import OnnxModule

    call, *error_type, phrase = row
    layer = OnnxModule(initial_model(LinearRegression(), 3))
    score = layer(torch.ones(2, 3))
    refused(lambda: call(torch, layer), *(error_type or [ValueError]), phrase)
    assert torch.equal(layer(torch.ones(2, 3)), score)


def test_there_are_as_many_as_the_documentation_says():
    tables = (
        PARAMETERS,
        SOLVERS,
        CALLS,
        RESUMED,
        ARTIFACTS,
        ON_DEVICE,
        GRADIENTS,
        STEPS,
        SEARCHES,
        TORCH,
    )
    assert sum(map(len, tables)) >= 380


@pytest.mark.parametrize("inside", [SGDClassifier(), LinearSVC(loss="hinge")], ids=repr)
def test_a_loss_without_probabilities_that_comes_from_inside_is_named(inside):
    model = OrtSGDClassifier(inside)
    with pytest.raises(AttributeError) as refused:
        model.predict_proba(X)
    assert (
        "probability estimates are not available for loss=Hinge(), which the model inside has. Use"
        in str(refused.value)
    )


def test_an_unfitted_step_in_a_stream_is_frozen_first():
    model = OrtSGDRegressor(make_pipeline(StandardScaler(), LinearRegression()))
    with pytest.raises(AttributeError) as refused:
        model.partial_fit(X, Y)
    assert str(refused.value).endswith(
        "partial_fit does not fit the step 'standardscaler' before the model. Put "
        "FrozenEstimator(fitted_step) in its place, fitted on rows that are typical of all rows. Or "
        "call fit first: partial_fit then keeps its steps, and trains a network at a tenth of the "
        "rate."
    )


@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_column_that_the_steps_lack_is_named_beside_those_of_x(is_frozen):
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    pipeline = make_pipeline(
        make_column_transformer((StandardScaler(), ["a", "b"])), LogisticRegression()
    )
    inside = FrozenEstimator(pipeline.fit(frame, y)) if is_frozen else pipeline
    with pytest.raises(
        ValueError, match=r"X lacks a column .* takes: 'b'\. X has 2 columns: 'a', 'c'\."
    ):
        OrtSGDClassifier(inside).fit(frame[["a", "c"]], y)
