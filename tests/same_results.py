"""
Whether two versions of skort have the same results:
300 random configurations of what `docs/api.rst` lists.

``python tests/same_results.py write FILE.npz [--only K:L]`` runs them with the skort that is
imported, and writes what they gave. ``compare A.npz B.npz`` prints each difference of two such
files, to the bit, but for probabilities of two types, within 1e-6. ``against CHECKOUT`` runs them
in CHECKOUT and in the tree of this file, and compares: what it takes to know that a change of the
code changes nothing. Both fail where more than half end with an error on both sides. ``digest``
renews `tests/data/same_results.npz`, see `tests/test_same_results.py`.

A configuration is drawn from its number alone. It uses public names only, so that older versions
run it, too. One that raises has the error as its result. The ones that a name in `RESEEDED` gives
another draw were badly conditioned: their results depended on rounding. A linear model whose loss
has no bounded curvature has a learning rate of its own.
"""

import argparse
import hashlib
import os
import pathlib
import pickle
import random
import re
import subprocess
import sys
import tempfile
import warnings

# Read when numpy and onnxruntime are imported
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import onnx.parser
import scipy.sparse
import sklearn.linear_model as linear
import sklearn.svm as svm
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PolynomialFeatures, StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor, Step, objective, optimizers, schedules
from skort.callbacks import Checkpoint, EarlyStopping, EpochScoring
from skort.model_selection import OrtGridSearchCV

__all__ = [
    "COUNT",
    "configuration",
    "description",
    "differences",
    "digested",
    "distance",
    "read_digests",
    "run",
]

ROOT = pathlib.Path(__file__).resolve().parents[1]
STORED = ROOT / "tests" / "data" / "same_results.npz"
COUNT = 300
# number -> draw
RESEEDED = {173: 1, 220: 1}

SMOOTH_L1 = """
smooth_l1 (weight) => (penalty) {
    small = Constant <value = float {0.01}> ()
    square = Mul (weight, weight)
    sum = Add (square, small)
    root = Sqrt (sum)
    penalty = ReduceSum <keepdims = 0> (root)
}"""
PULL = """
pull (weight, start) => (penalty) {
    distance = Sub (weight, start)
    square = Mul (distance, distance)
    penalty = ReduceSum <keepdims = 0> (square)
}"""
PSEUDO_HUBER = """
pseudo_huber (score, target) => (loss) {
    one = Constant <value = float {1.0}> ()
    residual = Sub (score, target)
    square = Mul (residual, residual)
    sum = Add (square, one)
    root = Sqrt (sum)
    loss = Sub (root, one)
}"""
ONNX_MODEL = """
<ir_version: 8, opset_import: ["" : 17]> own (float[N, 5] X) => (float[N, %d] y)
<float[5, 3] W = {0.5, -0.2, 0.1, 0.3, 0.4, -0.5, 0.1, 0.2, 0.6, -0.3, 0.2, 0.1, 0.7, -0.1, -0.4},
 float[3] b = {0.1, 0.2, -0.1}, float[3, %d] V = {%s}> {
    a = MatMul (X, W)
    c = Add (a, b)
    h = Tanh (c)
    y = MatMul (h, V)
}"""
DROPOUT = """
<ir_version: 8, opset_import: ["" : 17]> dropout (float[N, 5] X) => (float[N, 1] y)
<float[5, 3] W = {0.5, -0.2, 0.1, 0.3, 0.4, -0.5, 0.1, 0.2, 0.6, -0.3, 0.2, 0.1, 0.7, -0.1, -0.4},
 float[3, 1] V = {0.5, -0.3, 0.2}, float ratio = {0.25}, bool training = {1}> {
    a = MatMul (X, W)
    h = Tanh (a)
    d = Dropout (h, ratio, training)
    y = MatMul (d, V)
}"""
TWO_OUTPUTS = """
<ir_version: 8, opset_import: ["" : 17]> two (float[N, 5] X)
=> (float[N, 1] price, float[N, 1] size)
<float[5, 1] W = {0.5, -0.2, 0.1, 0.3, 0.4}, float[5, 1] V = {0.1, 0.2, -0.3, 0.4, 0.5},
    float[1] b = {0.2}> {
    a = MatMul (X, W)
    price = Add (a, b)
    size = MatMul (X, V)
}"""

REGRESSORS = {
    "default": lambda: None,
    "ols": linear.LinearRegression,
    "ols-origin": lambda: linear.LinearRegression(fit_intercept=False),
    "ridge": lambda: linear.Ridge(alpha=2.0),
    "lasso": lambda: linear.Lasso(alpha=0.1),
    "elastic": lambda: linear.ElasticNet(alpha=0.1),
    "multi-lasso": lambda: linear.MultiTaskLasso(alpha=0.1),
    "huber-model": linear.HuberRegressor,
    "sgd-model": lambda: linear.SGDRegressor(loss="huber", penalty="elasticnet", alpha=0.01),
    "svr": lambda: svm.LinearSVR(C=0.5, epsilon=0.1),
    "quantile-model": lambda: linear.QuantileRegressor(quantile=0.3, alpha=0.01),
    "poisson-model": lambda: linear.PoissonRegressor(alpha=0.1),
    "gamma-model": lambda: linear.GammaRegressor(alpha=0.1),
    "tweedie-model": lambda: linear.TweedieRegressor(power=1.5, link="log", alpha=0.1),
    "mlp-relu": lambda: MLPRegressor(hidden_layer_sizes=(8,)),
    "mlp-tanh": lambda: MLPRegressor(hidden_layer_sizes=(6, 4), activation="tanh", alpha=0.01),
    "mlp-logistic": lambda: MLPRegressor(hidden_layer_sizes=(5,), activation="logistic"),
    "mlp-identity": lambda: MLPRegressor(hidden_layer_sizes=(4,), activation="identity"),
    "scaled-ridge": lambda: make_pipeline(StandardScaler(), linear.Ridge()),
    "imputed-mlp": lambda: make_pipeline(
        SimpleImputer(), MinMaxScaler(), MLPRegressor(hidden_layer_sizes=(6,), activation="tanh")
    ),
    "polynomial": lambda: make_pipeline(
        PolynomialFeatures(2), StandardScaler(), linear.Lasso(alpha=0.05)
    ),
    "log-target": lambda: TransformedTargetRegressor(
        linear.LinearRegression(), func=np.log1p, inverse_func=np.expm1
    ),
    "scaled-target": lambda: TransformedTargetRegressor(
        MLPRegressor(hidden_layer_sizes=(5,)), transformer=StandardScaler()
    ),
    "frozen-ridge": lambda: "frozen",
    "frozen-mlp": lambda: "frozen",
    "onnx": lambda: onnx.parser.parse_model(ONNX_MODEL % (1, 1, "0.5, -0.3, 0.2")),
    "onnx-two": lambda: onnx.parser.parse_model(TWO_OUTPUTS),
    "onnx-dropout": lambda: onnx.parser.parse_model(DROPOUT),
}
CLASSIFIERS = {
    "default": lambda: None,
    "logistic-model": linear.LogisticRegression,
    "logistic-l1": lambda: linear.LogisticRegression(l1_ratio=1, C=0.5, solver="saga"),
    "logistic-liblinear": lambda: linear.LogisticRegression(C=2.0, solver="liblinear"),
    "ridge-classifier": lambda: linear.RidgeClassifier(alpha=2.0, class_weight="balanced"),
    "sgd-model": lambda: linear.SGDClassifier(loss="modified_huber", alpha=0.01),
    "svc": lambda: svm.LinearSVC(C=0.5),
    "perceptron-model": lambda: linear.Perceptron(penalty="l2", alpha=0.01),
    "mlp-relu": lambda: MLPClassifier((8,)),
    "mlp-tanh": lambda: MLPClassifier((6, 4), activation="tanh", alpha=0.01),
    "mlp-logistic": lambda: MLPClassifier((5,), activation="logistic"),
    "scaled-logistic": lambda: make_pipeline(StandardScaler(), linear.LogisticRegression()),
    "maxabs-mlp": lambda: make_pipeline(MaxAbsScaler(), MLPClassifier((6,))),
    "frozen-logistic": lambda: "frozen",
    "frozen-mlp": lambda: "frozen",
    "onnx": lambda: onnx.parser.parse_model(ONNX_MODEL % (1, 1, "0.5, -0.3, 0.2")),
    "onnx-three": lambda: onnx.parser.parse_model(
        ONNX_MODEL % (3, 3, "1, 0.5, -0.3, 0.2, 1, 0.1, -0.4, 0.3, 1")
    ),
}
# What a name is where it is not the value of the parameter
VALUES = {
    "loss": {
        "Huber(1.5)": lambda: objective.Huber(1.5),
        "Quantile(0.8)": lambda: objective.Quantile(0.8),
        "ElasticLoss": objective.ElasticLoss,
        "ConcomitantHuber": objective.ConcomitantHuber,
        "TweedieLoss": objective.TweedieLoss,
        "WeightedSum": lambda: objective.WeightedSum(
            [(0.4, objective.SquaredError()), (0.6, objective.Huber(1.0))]
        ),
        "own": lambda: objective.Loss(PSEUDO_HUBER),
        "by-name": lambda: {"price": "squared_error", "size": objective.Huber(1.0)},
        "LabelHuber": lambda: objective.LabelHuber(0.5),
        "OneVsRestLogLoss": objective.OneVsRestLogLoss,
    },
    "penalty": {
        "none": lambda: None,
        "L1": lambda: objective.L1(0.01),
        "L2": lambda: objective.L2(0.05),
        "Elastic": lambda: objective.ElasticPenalty(0.02, l1_ratio=0.4),
        "Elastic-by-name": lambda: objective.ElasticPenalty(
            {"*": 0.02}, l1_ratio=0.3, intercepts=0.01
        ),
        "own": lambda: objective.Penalty(SMOOTH_L1, alpha=0.01),
        "own-pull": lambda: objective.Penalty(PULL, alpha=0.1, intercepts="*"),
    },
    "optimizer": {
        "Momentum(0.5)": lambda: optimizers.Momentum(momentum=0.5),
        "Nesterov(0.8)": lambda: optimizers.Nesterov(momentum=0.8),
        "Adam(0.8, 0.99)": lambda: optimizers.Adam(beta_1=0.8, beta_2=0.99, epsilon=1e-6),
        "AdamW": lambda: optimizers.Adam(weight_decay=0.05),
        "Adam-lazy": lambda: optimizers.Adam(lazy=True),
    },
    "learning_rate": {
        "Cosine": lambda: schedules.Cosine(12, eta0=0.03, eta1=0.001),
        "Warmup": lambda: schedules.Warmup(schedules.Constant(0.02), n_updates=5),
        "Warmup-InvScaling": lambda: schedules.Warmup(schedules.InvScaling(0.03, 0.4), n_updates=4),
        "Adaptive": lambda: schedules.Adaptive(0.02, max_falls=2),
        "Optimal": lambda: schedules.Optimal(0.5),
    },
    "class_weight": {"none": lambda: None, "by-label": lambda: {"b": 2.0, "c": 0.5}},
    "callbacks": {
        "none": lambda: None,
        "EpochScoring": lambda: [],
        "EarlyStopping": lambda: [EarlyStopping("objective", patience=2)],
        "error": lambda: [_AtEpoch(ValueError)],
        "interrupt": lambda: [_AtEpoch(KeyboardInterrupt)],
    },
    "random_state": {"instance": lambda: np.random.RandomState(5)},
    "tol": {"none": lambda: None},
}
REGRESSION_LOSSES = [
    *[
        "squared_error",
        "absolute_error",
        "huber",
        "epsilon_insensitive",
        "squared_epsilon_insensitive",
        "quantile",
    ],
    *[
        "poisson",
        "gamma",
        "Huber(1.5)",
        "Quantile(0.8)",
        "ElasticLoss",
        "ConcomitantHuber",
        "TweedieLoss",
    ],
    *["WeightedSum", "own"],
]
CLASSIFICATION_LOSSES = [
    *[
        "log_loss",
        "hinge",
        "squared_hinge",
        "modified_huber",
        "perceptron",
        "squared_error",
        "huber",
    ],
    *[
        "epsilon_insensitive",
        "squared_epsilon_insensitive",
        "LabelHuber",
        "OneVsRestLogLoss",
        "own",
    ],
]
# For which "auto" finds the learning rate of a linear model from the curvature
CURVED_LOSSES = {
    *[
        "squared_error",
        "huber",
        "Huber(1.5)",
        "squared_epsilon_insensitive",
        "WeightedSum",
        "log_loss",
    ],
    *["squared_hinge", "modified_huber", "LabelHuber", "OneVsRestLogLoss"],
}
CURVED_MODELS = {
    *[
        "default",
        "ols",
        "ols-origin",
        "ridge",
        "lasso",
        "elastic",
        "sgd-model",
        "scaled-ridge",
        "polynomial",
    ],
    *[
        "logistic-model",
        "logistic-l1",
        "logistic-liblinear",
        "ridge-classifier",
        "svc",
        "scaled-logistic",
    ],
    *["frozen-ridge", "frozen-logistic"],
}
PIPELINES = {
    *[
        "scaled-ridge",
        "imputed-mlp",
        "polynomial",
        "log-target",
        "scaled-target",
        "scaled-logistic",
        "maxabs-mlp",
    ],
}
SEVERAL_OUTPUTS = {
    "default",
    "ols",
    "ridge",
    "multi-lasso",
    "mlp-relu",
    "mlp-tanh",
    "mlp-logistic",
    "scaled-ridge",
}
SPARSE = SEVERAL_OUTPUTS | {
    "lasso",
    "logistic-model",
    "svc",
    "sgd-model",
    "logistic-l1",
    "maxabs-mlp",
}
WAYS = {
    "fit": 9,
    "warm start": 2,
    "stream": 4,
    "pickled stream": 2,
    "fit and stream": 2,
    "batches": 3,
    "step": 4,
    "search": 2,
    "resumed": 2,
    "coef_init": 1,
    "set_weights": 1,
}


class _AtEpoch:
    """A callback that raises an error after the second epoch."""

    def __init__(self, error):
        self.error = error

    def on_epoch_end(self, training):
        if training.n_epochs == 2:
            raise self.error("after two epochs")


def configuration(index):
    """Return the configuration of a number: names by what they are the value of."""
    draw = random.Random(f"{index}, {RESEEDED.get(index, 0)}")
    kind = draw.choice(["regressor", "classifier"])
    way = draw.choices(list(WAYS), list(WAYS.values()))[0]
    inside = draw.choice(sorted(REGRESSORS if kind == "regressor" else CLASSIFIERS))
    if (inside in PIPELINES and way not in ("fit", "warm start", "search", "resumed")) or (
        way == "coef_init" and inside not in CURVED_MODELS - PIPELINES
    ):
        # These raise errors, of which a few are enough.
        way = way if draw.random() < 0.1 else "fit"
    solver = draw.choices(["auto", "graph", "agent", "session", "module"], [3, 9, 3, 2, 1])[0]
    chosen = {"kind": kind, "way": way, "inside": inside, "solver": solver}
    chosen |= _drawn_data(draw, kind, inside)
    parameters = _drawn_objective(draw, kind, inside, chosen) | _drawn_training(draw, chosen)
    if solver in ("session", "module"):
        parameters |= {
            "optimizer": draw.choice(["sgd", "adam"]),
            "dtype": "float32",
            "max_grad_norm": None,
        }
    if solver == "module":
        parameters |= {"average": None, "penalty": draw.choice(["none", "l2"])}
    if "onnx" in inside:
        parameters["dtype"] = "float32"
    if "stream" in way and parameters["callbacks"] == "EarlyStopping":
        parameters["callbacks"] = "EpochScoring"
    if way in ("stream", "pickled stream", "step") and parameters.get("class_weight") == "balanced":
        parameters["class_weight"] = "by-label"
    if way in ("stream", "pickled stream", "step") and draw.random() < 0.8:
        parameters["n_total"] = 500
    is_network = "mlp" in inside or "onnx" in inside or inside == "scaled-target"
    loss = parameters["loss"]
    is_curved = is_network or (inside in CURVED_MODELS if loss == "auto" else loss in CURVED_LOSSES)
    if draw.random() < 0.6 or not is_curved or "own" in parameters.get("penalty", ""):
        adam = "dam" in parameters["optimizer"]
        parameters["eta0"] = draw.choice(
            [0.001, 0.004] if adam or inside == "onnx-two" else [0.01, 0.03]
        )
    chosen["parameters"] = {
        name: value for name, value in parameters.items() if value not in ("auto", "", None)
    }
    return chosen


def _drawn_data(draw, kind, inside):
    """Return what the rows, targets and weights are like."""
    y = draw.choices(["two", "three", "labels"], [4, 4, 1])[0] if kind == "classifier" else "one"
    if (
        inside in SEVERAL_OUTPUTS
        and kind == "regressor"
        and (inside == "multi-lasso" or draw.random() < 0.3)
    ):
        y = "several"
    if inside == "onnx-two":
        y = "several"
    if inside == "onnx-three":
        y = "three"
    elif inside == "onnx" and kind == "classifier":
        y = "two"
    elif y == "labels" and "mlp" not in inside:
        y = "three"
    is_sparse = inside in SPARSE and draw.random() < 0.45
    return {
        "y": y,
        "X": draw.choice(["sparse", "wide"])
        if is_sparse
        else draw.choices(["plain", "units", "float32"], [3, 2, 1])[0],
        "n": draw.randrange(40, 200),
        "weights": draw.choices(["", "weighted", "with zeros"], [4, 2, 1])[0],
        "validation": draw.choices(["", "X_val", "early", "early X_val"], [6, 1, 1, 1])[0],
    }


def _drawn_objective(draw, kind, inside, chosen):
    """Return the parameters of the objective."""
    losses = REGRESSION_LOSSES if kind == "regressor" else CLASSIFICATION_LOSSES
    loss = "auto" if draw.random() < 0.5 or chosen["y"] == "labels" else draw.choice(losses)
    if inside == "onnx-two":
        loss = "by-name"
    penalties = ["", "none", "l1", "l2", "elasticnet", *VALUES["penalty"]]
    penalty = draw.choice(penalties) if draw.random() < 0.6 else ""
    parameters = {"loss": loss, "penalty": penalty}
    if penalty in ("l1", "l2", "elasticnet"):
        parameters["alpha"] = draw.choice([0.001, 0.05])
    if kind == "classifier" and draw.random() < 0.3 and chosen["y"] != "labels":
        parameters["class_weight"] = draw.choice(["balanced", "none", "by-label"])
    return parameters


def _drawn_training(draw, chosen):
    """Return the parameters of the training."""
    own = list(VALUES["optimizer"])
    parameters = {
        "optimizer": draw.choice(["sgd", "sgd", "sgd", "momentum", "nesterov", "adam", *own]),
        "learning_rate": draw.choice(
            ["adaptive", "adaptive", "constant", "invscaling", "optimal", *VALUES["learning_rate"]]
        ),
        "max_grad_norm": draw.choice([None, None, None, 0.5]),
        "average": draw.choice([None, None, None, True, 4]),
        "batch_size": draw.choice([None, 16, 25, 64]),
        "dtype": draw.choice(["float32", "float64"]),
        "standardize": draw.choice([None, None, None, False]),
        "shuffle": draw.choice([None, None, None, False]),
        "trainable": draw.choice([None] * 12 + ["co*"]),
        "callbacks": draw.choice([None] * 9 + list(VALUES["callbacks"])),
        "random_state": draw.choice(["instance", 3, 4, 5]),
        "max_iter": draw.choice([2, 3, 4, 6]),
        "n_iter_no_change": draw.choice([None, None, None, 1]),
        "tol": draw.choice([None, "none", 0.05]),
    }
    if chosen["way"] in ("search", "resumed"):
        parameters |= {"random_state": 3, "callbacks": None}
    if parameters["learning_rate"] == "optimal":
        parameters["alpha"] = 0.5
    return parameters


def description(index):
    """Return the number and the names of a configuration, on one line."""
    chosen = configuration(index)
    parameters = " ".join(
        f"{name}={value}" for name, value in sorted(chosen.pop("parameters").items())
    )
    return (
        f"{index:03d} "
        + " ".join(str(value) for value in chosen.values() if value)
        + " | "
        + parameters
    )


class Data:
    """The rows of a configuration: X, y and weights as keyword arguments of a fit."""

    def __init__(self, chosen, index):
        numbers = np.random.RandomState(1000 + index)
        self.chosen, n = chosen, chosen["n"]
        X = numbers.normal(size=(n, 5))
        score = X @ numbers.normal(size=(5, 3)) / 2 + 0.3 * numbers.normal(size=(n, 3))
        self.y = self._target(score)
        if chosen["X"] == "units":
            X = X * [3.0, 0.2, 1.0, 2.0, 0.5] + [1.0, 0.0, -2.0, 0.5, 0.1]
        if chosen["X"] == "sparse":
            X = scipy.sparse.csr_matrix(np.where(numbers.uniform(size=X.shape) < 0.6, 0, X))
        if chosen["X"] == "wide":
            # So many columns that products of sparse rows make the steps
            others = scipy.sparse.random(n, 1200, density=0.01, format="csr", random_state=numbers)
            X = scipy.sparse.hstack(
                [np.where(numbers.uniform(size=X.shape) < 0.5, 0, X), others], format="csr"
            )
        self.X = X.astype(np.float32) if chosen["X"] == "float32" else X
        weight = numbers.uniform(0.5, 2.0, size=n)
        if chosen["weights"] == "with zeros":
            weight[::7] = 0
        self.weight = weight if chosen["weights"] else None
        self.classes = np.arange(3) if chosen["y"] == "labels" else np.unique(self.y)
        self.classes = self.classes if chosen["kind"] == "classifier" else None

    def _target(self, score):
        y = self.chosen["y"]
        if y in ("one", "several"):
            # Positive, for losses of the logarithm
            score = np.exp(np.clip(score, -2, 2) / 2)
            return score[:, 0] if y == "one" else score[:, :2]
        if y == "labels":
            return (score > 0).astype(int)
        names = np.array(["a", "b", "c"])
        return names[(score[:, 0] > 0).astype(int) + (y == "three") * (score[:, 1] > 0)]

    def rows(self, start=0, stop=None):
        """Return X, y and, where there are any, the weights of some rows, as arguments of a fit."""
        weight = {} if self.weight is None else {"sample_weight": self.weight[start:stop]}
        return {"X": self.X[start:stop], "y": self.y[start:stop], **weight}

    def parts(self):
        """Return three parts of the rows."""
        n = len(self.y)
        return [self.rows(start, start + n // 3) for start in (0, n // 3, n // 3 * 2)]


def _value(name, label):
    """Return the value of a parameter from its name in a configuration."""
    known = VALUES.get(name, {})
    return known[label]() if isinstance(label, str) and label in known else label


def _model(chosen, data, **others):
    """Return the estimator of a configuration, not fitted."""
    parameters = {name: _value(name, label) for name, label in chosen["parameters"].items()}
    if chosen["parameters"].get("class_weight") == "by-label" and chosen["y"] == "two":
        parameters["class_weight"] = {"b": 2.0}
    if chosen["kind"] == "regressor":
        inside, made = REGRESSORS[chosen["inside"]](), OrtSGDRegressor
    else:
        inside, made = CLASSIFIERS[chosen["inside"]](), OrtSGDClassifier
    if chosen["parameters"].get("callbacks") == "EpochScoring" and "callbacks" not in others:
        parameters["callbacks"] = [EpochScoring(data.X[:20], data.y[:20], name="same")]
    if isinstance(inside, str):
        inside = FrozenEstimator(_fitted(chosen, data))
    if "early" in chosen["validation"] and chosen["way"] in ("fit", "warm start", "resumed"):
        parameters["early_stopping"] = True
    return made(inside, solver=chosen["solver"], **{**parameters, **others})


def _fitted(chosen, data):
    """Return the fitted model in a `FrozenEstimator`."""
    models = {
        ("regressor", "frozen-ridge"): linear.Ridge(),
        ("regressor", "frozen-mlp"): MLPRegressor(
            hidden_layer_sizes=(6,), max_iter=3, random_state=0
        ),
        ("classifier", "frozen-logistic"): linear.LogisticRegression(max_iter=5),
        ("classifier", "frozen-mlp"): MLPClassifier((6,), max_iter=3, random_state=0),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return models[chosen["kind"], chosen["inside"]].fit(data.X, data.y)


def _fit(chosen, data, folder):
    model = _model(chosen, data)
    try:
        return [model.fit(**data.rows(), **_validation(chosen, data))]
    except ValueError as error:
        if not hasattr(model, "n_iter_"):
            raise
        # After an error of a callback, it is fitted up to the last whole epoch.
        return [model, {"raised": str(error)}]


def _warm_start(chosen, data, folder):
    model = _model(chosen, data, warm_start=True).fit(**data.rows(), **_validation(chosen, data))
    middle = pickle.loads(pickle.dumps(model))
    return [middle, model.fit(**data.rows(0, len(data.y) // 2))]


def _stream(chosen, data, folder, pickled=False):
    model = _model(chosen, data)
    classes = {} if data.classes is None else {"classes": data.classes}
    for part in data.parts():
        model.partial_fit(**part, **classes)
        classes = {}
        if pickled:
            model = pickle.loads(pickle.dumps(model))
    return [model]


def _pickled_stream(chosen, data, folder):
    return _stream(chosen, data, folder, pickled=True)


def _fit_and_stream(chosen, data, folder):
    model = _model(chosen, data).fit(**data.rows())
    middle = pickle.loads(pickle.dumps(model))
    first, second, _ = data.parts()
    return [middle, model.partial_fit(**first).partial_fit(**second)]


def _batches(chosen, data, folder):
    n = len(data.y)
    batches = [tuple(data.rows(start, start + 30).values()) for start in range(0, n, 30)]
    given = batches if n % 2 else lambda: iter(batches)
    return [_model(chosen, data).fit_batches(given, **_validation(chosen, data))]


def _resumed(chosen, data, folder):
    path = pathlib.Path(folder) / "training.npz"
    first = _model(chosen, data, callbacks=[Checkpoint(path)], tol=None, max_iter=3)
    first.fit(**data.rows(), **_validation(chosen, data))
    rest = _model(chosen, data, callbacks=[Checkpoint(resume_from=path)], tol=None, max_iter=5)
    return [first, rest.fit(**data.rows(), **_validation(chosen, data))]


def _coef_init(chosen, data, folder):
    n_scores = {"one": 1, "two": 1, "several": 2, "three": 3, "labels": 3}[chosen["y"]]
    n_features = data.X.shape[1]
    shape = (n_features,) if chosen["y"] == "one" else (n_scores, n_features)
    init = {
        "coef_init": np.linspace(-1, 1, n_scores * n_features).reshape(shape),
        "intercept_init": np.full(n_scores, 0.25),
    }
    return [_model(chosen, data).fit(**data.rows(), **init)]


def _set_weights(chosen, data, folder):
    model = _model(chosen, data).fit(**data.rows())
    changed = model.with_weights({name: array * 0.5 for name, array in model.weights_.items()})
    model.set_weights({name: array + 0.125 for name, array in model.weights_.items()})
    return [changed, model, pickle.loads(pickle.dumps(model)).partial_fit(**data.parts()[0])]


def _search(chosen, data, folder):
    grid = {"alpha": [0.001, 0.1], "eta0": [0.005, 0.02]}
    model = _model(chosen, data)
    search = OrtGridSearchCV(model, grid, cv=2, error_score="raise").fit(
        data.X, data.y, sample_weight=data.weight
    )
    found = {
        "scores": search.cv_results_["mean_test_score"],
        "best": np.array([search.best_params_["alpha"], search.best_params_["eta0"]]),
        "n_together": np.array(search.n_fits_together_),
    }
    return [search.best_estimator_, found]


def _step(chosen, data, folder):
    options = {"n_outputs": data.y[:1].size} if data.classes is None else {"classes": data.classes}

    def begin():
        return Step(_model(chosen, data), n_features=data.X.shape[1], batch_size=32, **options)

    step, losses, n = begin(), [], len(data.y)
    for start in range(0, 2 * n, 25):
        rows = data.rows(start % n, start % n + 25)
        if step.solver == "agent":
            losses.append(step.forward(**rows, training=True))
            step.backward()
            step.update(0.01)
        else:
            losses.append(step.step(**rows, eta=0.01))
        if start == 75:
            state, step = step.state(), begin()
            step.restore(state)
    result = {
        "loss": np.array(losses),
        "score": step.forward(data.X),
        "solver": np.array(step.solver),
    }
    result |= {f"state of {name}": array for name, array in step.state().items()}
    result |= {f"weight {name}": array for name, array in step.weights().items()}
    return [result | {"onnx": _hash(step.to_onnx())}]


def _validation(chosen, data):
    """Return the arguments of a validation set."""
    if "X_val" not in chosen["validation"]:
        return {}
    return {"X_val": data.X[:30], "y_val": data.y[:30]}


RUNS = {
    "fit": _fit,
    "warm start": _warm_start,
    "stream": _stream,
    "pickled stream": _pickled_stream,
    "fit and stream": _fit_and_stream,
    "batches": _batches,
    "step": _step,
    "search": _search,
    "resumed": _resumed,
    "coef_init": _coef_init,
    "set_weights": _set_weights,
}


def run(index):
    """Run a configuration; return its results as arrays by name."""
    chosen = configuration(index)
    data, results = Data(chosen, index), {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for number, result in enumerate(RUNS[chosen["way"]](chosen, data, folder)):
                result = result if isinstance(result, dict) else _results(result, data)
                results |= {f"{name} {number}": np.asarray(value) for name, value in result.items()}
        except Exception as error:
            results["error"] = np.array(_words(error, folder))
        # Those of imports and of deprecated things depend on what ran before.
        ignored = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
        texts = [_words(w.message, folder) for w in caught if not issubclass(w.category, ignored)]
    results["warnings"] = np.array("\n".join(texts))
    return results


def _words(error, folder):
    """Return the type and the text of an error, without paths and addresses of this run."""
    return re.sub(
        r"0x[0-9a-f]+", "0x", f"{type(error).__name__}: {error}".replace(folder, "FOLDER")
    )


def _results(model, data):
    """Return what a fitted estimator shows."""
    history = model.history_
    found = {f"weight {name}": array for name, array in model.weights_.items()}
    found |= {
        "trainable": "\n".join(model.trainable_),
        "loss_curve": model.loss_curve_,
        "validation": model.validation_scores_ or (),
        "rates": history["eta"],
        "norms": history["gradient_norm"],
        "counts": (model.n_iter_, model.t_),
        "eta0": model.eta0_,
        "ending": str(model.stopping_reason_),
        "solver": model.solver_,
    }
    if model.standardization_ is not None:
        found |= {name: getattr(model.standardization_, name) for name in ("mean", "scale")}
    for name in ("coef_", "intercept_", "scale_", "best_loss_", "same"):
        value = history.get(name) if name == "same" else getattr(model, name, None)
        found |= {} if value is None else {name: value}
    prediction = model.predict(data.X)
    if isinstance(prediction, dict):
        return found | {f"prediction {name}": value for name, value in prediction.items()}
    found["prediction"] = prediction
    for name in ("decision_function", "predict_proba"):
        if hasattr(model, name):
            found[name] = getattr(model, name)(data.X)
    try:
        found["onnx"] = _hash(model.to_onnx())
    except ValueError as error:
        found["onnx"] = f"{type(error).__name__}: {error}"
    return found


def _hash(model):
    """Return a short text that stands for the bytes of an ONNX model."""
    return np.array(hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()[:16])


def differences(first, second):
    """Return a line for each difference, to the bit, of the results of two runs."""
    lines = []
    for name in sorted(first.keys() | second.keys()):
        if name not in first or name not in second:
            found = first[name] if name in first else second[name]
            lines.append(f"{name}: only in {'A' if name in first else 'B'}: {_short(found)}")
        elif not (
            _is_same(first[name], second[name]) or _is_wider(name, first[name], second[name])
        ):
            lines.append(
                f"{name}: {_short(first[name])} and "
                f"{_short(second[name])}{_distance(first[name], second[name])}"
            )
    return lines


def _is_same(a, b):
    return a.dtype.kind == b.dtype.kind and (
        str(a) == str(b) if a.dtype.kind == "U" and a.ndim == 0 else _bits(a) == _bits(b)
    )


def _is_wider(name, a, b):
    """
    Return whether probabilities differ by their type:
    they were rounded to float32, and are float64 now.
    """
    is_other_type = name.startswith("predict_proba") and a.dtype != b.dtype
    return is_other_type and a.shape == b.shape and np.allclose(a, b, rtol=0, atol=1e-6)


def _bits(array):
    """Return what two equal arrays share: shape, type and bytes."""
    values = array.tolist() if array.dtype.kind == "U" else array.tobytes()
    return array.shape, array.dtype.str if array.dtype.kind != "U" else "U", values


def _short(array):
    text = str(array.ravel()[:4].tolist() if array.ndim else array.item())
    return f"{array.dtype} {array.shape} {text[:300]}"


def _distance(a, b):
    if a.shape != b.shape or a.dtype.kind != "f" or b.dtype.kind != "f":
        return ""
    largest = np.max(np.abs(a.astype(float) - b.astype(float)), initial=0)
    return (
        f" (they differ by {largest:.3g} at most; values are up to "
        f"{np.max(np.abs(a), initial=0):.3g})"
    )


def digested(results):
    """
    Return a few numbers that stand for the results of a run:
    some values of each array, and its largest one.
    """
    names = [
        n
        for n in sorted(results)
        if n.split()[0] in ("weight", "loss", "loss_curve", "decision_function", "score")
    ]
    names += [
        n for n in sorted(results) if n.split()[0] == "prediction" and results[n].dtype.kind == "f"
    ]
    numbers = np.zeros((len(names), 6))
    for row, name in zip(numbers, names, strict=True):
        flat = results[name].astype(np.float64).ravel()
        if len(flat):
            row[0], row[1:] = (
                np.max(np.abs(flat)),
                flat[np.linspace(0, len(flat) - 1, 5).astype(int)],
            )
    return numbers


def distance(numbers, others):
    """Return the largest distance of two digests, relative to the largest value of each array."""
    if numbers.shape != others.shape:
        return np.inf
    scale = np.maximum(np.maximum(numbers[:, :1], others[:, :1]), np.finfo(np.float32).tiny)
    return float(np.max(np.abs(numbers - others) / scale, initial=0))


def write(path, numbers, checkout=None):
    """Run configurations, and write their results to a file."""
    import skort

    home = pathlib.Path(skort.__file__).resolve().parents[1]
    if checkout is not None and home != pathlib.Path(checkout).resolve():
        raise SystemExit(f"skort was imported from {home}, not from {checkout}")
    arrays = {f"{description(i)}\t{name}": value for i in numbers for name, value in run(i).items()}
    np.savez_compressed(
        path,
        names=np.array(list(arrays)),
        **{str(i): value for i, value in enumerate(arrays.values())},
    )
    n_errors = sum(name.endswith("\terror") for name in arrays)
    print(f"{len(numbers)} configurations of {home}, {n_errors} of them with an error")


def read(path):
    """Return the results of a file of `write`: arrays by name, by configuration."""
    found = {}
    with np.load(path) as file:
        for i, name in enumerate(file["names"].tolist()):
            configuration, result = name.split("\t")
            found.setdefault(configuration, {})[result] = file[str(i)]
    return found


def compare(first, second):
    """Print the differences of two files; return the number of configurations that differ."""
    a, b, n_differ = read(first), read(second), 0
    n_errors = sum("error" in a[name] and "error" in b[name] for name in a.keys() & b.keys())
    for name in sorted(a.keys() | b.keys()):
        lines = (
            differences(a[name], b[name])
            if name in a and name in b
            else ["only in one of the files"]
        )
        if lines:
            n_differ += 1
            print(f"{name}\n    " + "\n    ".join(lines))
    print(f"{n_differ} of {len(a.keys() | b.keys())} configurations differ")
    if n_errors > len(a) / 2:
        error = next(results["error"] for results in a.values() if "error" in results)
        raise SystemExit(
            f"{n_errors} of them end with an error in both: nothing was compared. One "
            f"of them: {error}"
        )
    return n_differ


def against(checkout, only):
    """
    Run configurations in another checkout and in this tree;
    return the number of those that differ.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [str(pathlib.Path(folder) / name) for name in ("A.npz", "B.npz")]
        for home, file in zip((pathlib.Path(checkout).resolve(), ROOT), files, strict=True):
            environment = {
                **os.environ,
                "PYTHONPATH": str(home),
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
            }
            command = [
                sys.executable,
                str(pathlib.Path(__file__).resolve()),
                "write",
                file,
                "--checkout",
                str(home),
            ]
            subprocess.run([*command, "--only", only], check=True, cwd=folder, env=environment)
        return compare(*files)


def digest(path):
    """Write the digests of all configurations: what `tests/test_same_results.py` compares with."""
    names, numbers, errors = [], [], []
    for i in range(COUNT):
        results = run(i)
        names.append(description(i))
        numbers.append(digested(results))
        errors.append(str(results.get("error", "")).split(":")[0])
    sizes = [len(rows) for rows in numbers]
    np.savez_compressed(
        path, names=names, errors=errors, sizes=sizes, numbers=np.concatenate(numbers)
    )


def read_digests(path=STORED):
    """
    Return the name of the error and the digest of each configuration of a file of `digest`,
    by description.
    """
    with np.load(path) as file:
        numbers = np.split(file["numbers"], np.cumsum(file["sizes"])[:-1])
        return dict(
            zip(
                file["names"].tolist(),
                zip(file["errors"].tolist(), numbers, strict=True),
                strict=True,
            )
        )


def _main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["write", "compare", "against", "digest"])
    parser.add_argument("paths", nargs="*")
    parser.add_argument(
        "--only", default=f"0:{COUNT}", help="K:L, the numbers of the configurations"
    )
    parser.add_argument("--checkout", help="where skort has to come from")
    given = parser.parse_args()
    if given.command == "compare":
        sys.exit(compare(*given.paths) > 0)
    if given.command == "against":
        sys.exit(against(*given.paths, given.only) > 0)
    if given.command == "digest":
        return digest(*(given.paths or [STORED]))
    start, stop = (int(number) for number in given.only.split(":"))
    write(given.paths[0], range(start, min(stop, COUNT)), given.checkout)


if __name__ == "__main__":
    _main()
