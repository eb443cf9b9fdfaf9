"""Fitted estimators in files: pickle, skops."""

import copy
import importlib
import pickle
import pickletools
import subprocess
import sys

import numpy as np
import onnx.parser
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import HuberRegressor, LinearRegression, LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor, callbacks, objective, optimizers, schedules
from skort.estimators import persistence
from skort.estimators.persistence import from_plain, to_plain
from skort.optim.update import Update

X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)
OPTIONS = {"max_iter": 3, "tol": None, "random_state": 0}
MODELS = [
    OrtSGDClassifier(**OPTIONS),
    OrtSGDClassifier(
        make_pipeline(StandardScaler(), MLPClassifier((3,))), optimizer="adam", **OPTIONS
    ),
    OrtSGDRegressor(HuberRegressor(), **OPTIONS),
]


@pytest.mark.parametrize("model", MODELS, ids=["logistic", "pipeline", "huber"])
def test_files_of_skops_need_no_type_but_skorts_and_scikit_learns(model):
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    fitted = model.fit(X, Y)
    written = io.dumps(fitted)
    types = io.get_untrusted_types(data=written)
    assert {name.partition(".")[0] for name in types} <= {"skort", "sklearn"}
    back = io.loads(written, trusted=types)
    np.testing.assert_array_equal(back.predict(X), fitted.predict(X))
    assert back.onnx_.SerializeToString() == fitted.onnx_.SerializeToString()
    if hasattr(fitted, "partial_fit"):
        np.testing.assert_array_equal(
            back.partial_fit(X, Y).predict(X), fitted.partial_fit(X, Y).predict(X)
        )


@pytest.mark.parametrize("model", MODELS, ids=["logistic", "pipeline", "huber"])
@pytest.mark.parametrize("n_kept", [0, 100, -50])
def test_a_pickle_that_is_cut_off_is_an_error(model, n_kept):
    pickled = pickle.dumps(model.fit(X, Y))
    with pytest.raises((EOFError, pickle.UnpicklingError)):
        pickle.loads(pickled[:n_kept])


@pytest.mark.parametrize(
    "options", [{}, {"early_stopping": True}, {"standardize": False}], ids=repr
)
def test_a_pickle_has_the_weights_once(options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 20))
    y = 3 + X.sum(axis=1)
    model = OrtSGDRegressor(
        MLPRegressor(hidden_layer_sizes=(1000,)), optimizer="adam", max_iter=3, tol=None, **options
    )
    model.set_params(random_state=0).fit(X, y)
    pickled = pickle.dumps(model)
    # Those of the training, and Adam's two means.
    assert len(pickled) <= 3.2 * sum(array.nbytes for array in model.weights_.values())
    again = pickle.loads(pickled)
    for name, array in model.weights_.items():
        np.testing.assert_array_equal(again.weights_[name], array)
    model.set_params(early_stopping=False)
    again.set_params(early_stopping=False)
    for each in (model, again):
        each.partial_fit(X, y)
    for name, array in model.weights_.items():
        np.testing.assert_array_equal(again.weights_[name], array)


class LogCosh:
    """A loss of a user's own, which has what it needs and no more."""

    estimator_types = ("regressor",)

    def __init__(self, scale):
        self.scale = scale

    def value_function(self, n_outputs):
        return "square (score, target) => (loss) { d = Sub (score, target) loss = Mul (d, d) }"

    def gradient_function(self, n_outputs):
        return (
            "twice (score, target) => (gradient) { d = Sub (score, target) gradient = Add (d, d) }"
        )


class Shrinking:
    """A penalty of a user's own."""

    def strengths(self, names):
        return dict.fromkeys(names, (0.01, 0.1))


def a_tenth(t):
    return 0.1


ONNX_MODEL = """\
<ir_version: 8, opset_import: ["" : 17]>
heads (float[N, 3] X) => (float[N, 1] price, float[N, 2] parts)
<float[3, 4] W = {0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 0.7, 0.8, 0.9, -1, 1.1, 1.2},
 float[4, 1] V = {1, -1, 1, -1}, float[4, 2] U = {1, -1, 1, -1, 2, 2, 2, 2}>
{
    hidden = MatMul (X, W)
    active = Tanh (hidden)
    price = MatMul (active, V)
    parts = MatMul (active, U)
}"""
PULL = (
    "pull (weight) => (penalty) { square = Mul (weight, weight) penalty = ReduceSum "
    "<keepdims = 0> (square) }"
)
SQUARE = "square (score, target) => (loss) { d = Sub (score, target) loss = Mul (d, d) }"
COMPONENTS = {
    "loss": objective.Huber(0.5),
    "penalty": objective.ElasticPenalty(0.01, 0.5),
    "optimizer": optimizers.Nesterov(),
    "learning_rate": schedules.Warmup(schedules.Cosine(50), 5),
}
CALLBACKS = [callbacks.EpochScoring(X, X[:, 0]), callbacks.EarlyStopping(monitor="objective")]
REAL = X @ [1.0, 2.0, 3.0]
THREE = np.where(X[:, 1] > 0.3, "c", np.where(X[:, 0] > 0, "a", "b"))
LABELS = (X[:, :2] > 0).astype(int)
NAMED = {"price": REAL, "parts": np.column_stack([REAL, -REAL])}


def regressor(estimator=None, **options):
    return OrtSGDRegressor(estimator, **{**OPTIONS, **options})


def classifier(estimator=None, **options):
    return OrtSGDClassifier(estimator, **{**OPTIONS, **options})


def twice(model, *data):
    """Return a model in the middle of a stream."""
    return model.partial_fit(*data).partial_fit(*data)


FROZEN = FrozenEstimator(
    make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(3,), max_iter=200))
)
KINDS = {
    "linear": lambda: (regressor().fit(X, REAL), REAL),
    "three classes": lambda: (classifier(class_weight={"a": 2.0}).fit(X, THREE), THREE),
    "class weights of one against the rest": lambda: (
        classifier(SGDClassifier(loss="log_loss", class_weight={"a": 2.0, "b": 1.0, "c": 0.5})).fit(
            X, THREE
        ),
        THREE,
    ),
    "liblinear": lambda: (classifier(LogisticRegression(solver="liblinear", C=0.1)).fit(X, Y), Y),
    "pipeline": lambda: (
        classifier(make_pipeline(StandardScaler(), MLPClassifier((3,)))).fit(X, Y),
        Y,
    ),
    "frozen": lambda: (regressor(fitted(FROZEN)).fit(X, REAL), REAL),
    "column names": lambda: (
        regressor(MLPRegressor(hidden_layer_sizes=(4,)), trainable="coef*").fit(
            pd.DataFrame(X, columns=list("abc")), REAL
        ),
        REAL,
    ),
    "several labels": lambda: (classifier(MLPClassifier((3,))).fit(X, LABELS), LABELS),
    "transformed target": lambda: (
        regressor(TransformedTargetRegressor(LinearRegression(), transformer=StandardScaler())).fit(
            X, REAL
        ),
        REAL,
    ),
    "batches": lambda: (regressor().fit_batches([(X[:30], REAL[:30]), (X[30:], REAL[30:])]), REAL),
    "stream": lambda: (twice(regressor(optimizer="adam"), X, REAL), REAL),
    "scale of Huber": lambda: (regressor(HuberRegressor()).fit(X, REAL), REAL),
    "Huber in a stream": lambda: (twice(regressor(loss="huber", average=True), X, REAL), REAL),
    "ONNX": lambda: (
        regressor(
            onnx.parser.parse_model(ONNX_MODEL), loss={"price": "huber", "parts": "squared_error"}
        ).fit(X, NAMED),
        NAMED,
    ),
    "own functions": lambda: (
        regressor(loss=objective.Loss(SQUARE), penalty=objective.Penalty(PULL, alpha=0.1)).fit(
            X, REAL
        ),
        REAL,
    ),
    "parsed function": lambda: (
        regressor(
            loss=objective.Loss(
                onnx.parser.parse_function(f'<domain: "own", opset_import: ["" : 17]> {SQUARE}')
            )
        ).fit(X, REAL),
        REAL,
    ),
    "own objects": lambda: (
        regressor(loss=LogCosh(2.0), penalty=Shrinking(), learning_rate=a_tenth).fit(X, REAL),
        REAL,
    ),
    "components": lambda: (regressor(**COMPONENTS, callbacks=CALLBACKS).fit(X, REAL), REAL),
    "sum of losses": lambda: (
        regressor(
            loss=objective.WeightedSum([(1.0, objective.SquaredError()), (0.5, objective.Huber())])
        ).fit(X, REAL),
        REAL,
    ),
    "early stopping": lambda: (
        regressor(MLPRegressor(hidden_layer_sizes=(3,)), early_stopping=True).fit(X, REAL),
        REAL,
    ),
    "sparse": lambda: (regressor(penalty="l1").fit(scipy.sparse.csr_matrix(X), REAL), REAL),
}


def fitted(frozen):
    return FrozenEstimator(
        clone(frozen.estimator).set_params(mlpregressor__random_state=0).fit(X, REAL)
    )


def gone_on(model, X, y):
    """Return a model after one more epoch, or a fit that begins at its weights."""
    if hasattr(model, "partial_fit") and not model.early_stopping:
        return model.partial_fit(X, y)
    return model.set_params(warm_start=True).fit(X, y)


def flat(value):
    return np.column_stack(list(value.values())) if isinstance(value, dict) else value


def in_skops(estimator):
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    written = io.dumps(estimator)
    return io.loads(written, trusted=io.get_untrusted_types(data=written))


COPIES = {
    "pickle": lambda e: pickle.loads(pickle.dumps(e)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}
PUBLIC = {"skort", "skort.callbacks", "skort.objective", "skort.optimizers", "skort.schedules"}


def modules_of_skort(pickled):
    """
    Return the modules that a pickle of protocol 2 takes classes and functions from,
    those of skort.
    """
    names = {arg.split()[0] for op, arg, _ in pickletools.genops(pickled) if op.name == "GLOBAL"}
    return {name for name in names if name.partition(".")[0] == "skort"}


@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:estimator. :UserWarning"
)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_goes_on_from_a_copy_and_a_file(kind):
    model, y = KINDS[kind]()
    assert modules_of_skort(pickle.dumps(model, protocol=2)) == {"skort"}
    rows = model.feature_names_in_ if hasattr(model, "feature_names_in_") else None
    data = X if rows is None else pd.DataFrame(X, columns=rows)
    copies = {name: make(model) for name, make in COPIES.items()}
    if kind != "own objects":
        copies["skops"] = in_skops(model)
    expected = flat(gone_on(copy.deepcopy(model), data, y).predict(data))
    for name, again in copies.items():
        assert vars(again).keys() == vars(model).keys(), name
        assert str(again.get_params()) == str(model.get_params()) or kind == "own objects"
        assert again.history_ == model.history_
        np.testing.assert_array_equal(flat(again.predict(data)), flat(model.predict(data)))
        assert again.onnx_.SerializeToString() == model.onnx_.SerializeToString()
        np.testing.assert_array_equal(flat(gone_on(again, data, y).predict(data)), expected, name)


def test_skops_needs_to_trust_one_class_for_a_linear_classifier():
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    assert io.get_untrusted_types(data=io.dumps(classifier().fit(X, Y))) == [
        "skort.OrtSGDClassifier"
    ]


@pytest.mark.parametrize("face", ["callbacks", "objective", "optimizers", "schedules"])
def test_parts_are_pickled_as_what_users_import(face):
    module = importlib.import_module(f"skort.{face}")
    parts = [getattr(module, name) for name in module.__all__]
    protocols = {part for part in parts if getattr(part, "_is_protocol", False)}
    made = {
        part for part in parts if part not in (*protocols, schedules.Schedule, callbacks.Training)
    }
    assert {part.__module__ for part in made} == {f"skort.{face}"}


def test_an_unfitted_estimator_is_plain():
    model = regressor(**COMPONENTS, callbacks=CALLBACKS)
    pickled = pickle.dumps(model, protocol=2)
    assert modules_of_skort(pickled) == {"skort"}
    assert str(pickle.loads(pickled).get_params()) == str(model.get_params())
    assert (
        modules_of_skort(pickle.dumps(list(COMPONENTS.values()) + CALLBACKS, protocol=2)) <= PUBLIC
    )


def test_what_is_there_twice_is_so_afterwards():
    loss = objective.Huber()
    again = pickle.loads(pickle.dumps(regressor(loss=loss, callbacks=[loss, {"skort": loss}])))
    assert again.loss is again.callbacks[0] is again.callbacks[1]["skort"]


def test_a_pickle_leaves_the_estimator_as_it_was():
    model = twice(regressor(), X, REAL)
    before = dict(vars(model))
    pickle.dumps(model)
    assert all(vars(model)[name] is value for name, value in before.items())


def test_a_file_of_a_newer_version_is_named():
    state = regressor().fit(X, REAL).__getstate__()
    with pytest.raises(
        ValueError, match=r"written by skort 9\.0, a newer version, in format 99\. .*: update skort"
    ):
        OrtSGDRegressor().__setstate__({**state, "skort_format": 99, "skort_version": "9.0"})


@pytest.mark.parametrize(
    "part",
    [
        {"skort": "FitResulu"},
        {"skort": "Plan", "moss": None},
        {"skort": "objective.LogLos"},
        {"skort": "onnx", "name": "ModelProto", "bytes": b"damaged"},
    ],
)
def test_a_part_that_cannot_be_read_is_said(part):
    state = {**OrtSGDRegressor().__getstate__(), "_result": part}
    with pytest.raises(
        ValueError, match="cannot be read: its file is damaged, or holds parts that this version"
    ):
        OrtSGDRegressor().__setstate__(state)


def test_fields_that_a_file_lacks_are_at_their_defaults():
    plain = to_plain({"loss": objective.Huber(0.5), "update": Update(optimizers.SGD())})
    assert plain["update"] == {"skort": "Update", "optimizer": {"skort": "optimizers.SGD"}}
    del plain["loss"]["epsilon"]
    assert from_plain(plain)["loss"].epsilon == objective.Huber().epsilon


def test_the_names_of_inner_classes_are_where_the_classes_are():
    for name, path in persistence._INNER.items():
        module, _, attribute = path.rpartition(".")
        assert (
            f"{getattr(importlib.import_module(module), attribute).__module__}.{attribute}" == path
        ), name


WITHOUT_RUNTIME = """\
import pickle, sys
sys.modules["onnxruntime"] = None
model = pickle.loads(open(sys.argv[1], "rb").read())
from skort.exceptions import RuntimeNotAvailableError
for method in (model.predict, lambda X: model.fit(X, [0, 1]), lambda X: model.partial_fit(X, [0, 1])):
    try:
        method([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    except RuntimeNotAvailableError:
        pass
    else:
        raise AssertionError
model.onnx_, model.coef_, model.to_sklearn()
open(sys.argv[1], "wb").write(pickle.dumps(model))
"""


def test_without_a_runtime_a_fitted_estimator_stays_whole(tmp_path):
    model = classifier(optimizer="adam").fit(X, Y)
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(model))
    subprocess.run([sys.executable, "-c", WITHOUT_RUNTIME, str(path)], check=True)
    again = pickle.loads(path.read_bytes())
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.partial_fit(X, Y).coef_, model.partial_fit(X, Y).coef_)
