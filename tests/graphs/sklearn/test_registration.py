"""
Models of scikit-learn that hold fitted estimators, converted by skl2onnx, against
scikit-learn's predictions.
"""

import pickle
import subprocess
import sys

import numpy as np
import onnx.parser
import pandas as pd
import pytest
import skl2onnx
from sklearn import ensemble
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_transformer,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.common.onnx_text import OPSET
from skort.graphs.sklearn.registration import register

# What every supported runtime reads; skl2onnx writes newer models unless told not to.
OPSETS = (OPSET, 18)

rng = np.random.default_rng(0)
X = 3 * rng.normal(size=(120, 4)) + 1
TARGET = X @ [0.1, -0.2, 0.3, 0.0] + np.abs(X[:, 0])
TARGETS = np.column_stack([TARGET, X[:, 0] - TARGET])
CLASSES = np.digitize(TARGET, np.quantile(TARGET, [0.4, 0.7]))
TEXTS = np.array(["low", "middle", "high"])[CLASSES]


def regressor(*layers, **parameters):
    estimator = MLPRegressor(hidden_layer_sizes=layers) if layers else None
    return OrtSGDRegressor(
        estimator, max_iter=5, tol=None, random_state=0, batch_size=20, **parameters
    )


def classifier(*layers, **parameters):
    estimator = MLPClassifier(hidden_layer_sizes=layers) if layers else None
    return OrtSGDClassifier(
        estimator, max_iter=5, tol=None, random_state=0, batch_size=20, **parameters
    )


def inner(*steps, **parameters):
    return regressor(**parameters).set_params(
        estimator=make_pipeline(*steps, MLPRegressor(hidden_layer_sizes=(3,)))
    )


def inner_classifier():
    return classifier().set_params(estimator=make_pipeline(StandardScaler(), LogisticRegression()))


COLUMNS = ColumnTransformer([("scaled", StandardScaler(), [0, 3]), ("other", "passthrough", [1])])
TWO = [
    ("a", regressor(3)),
    ("b", make_pipeline(StandardScaler(), regressor())),
    ("c", LinearRegression()),
]
TWO_CLASSIFIERS = [("a", classifier(3)), ("b", make_pipeline(StandardScaler(), classifier()))]
REGRESSORS = {
    "alone": regressor(3),
    "pipeline": make_pipeline(StandardScaler(), regressor(3)),
    "float64": make_pipeline(StandardScaler(), regressor(3, dtype="float64")),
    "columns": make_pipeline(COLUMNS, regressor(3)),
    "inner pipeline": make_pipeline(MinMaxScaler(), inner(StandardScaler())),
    "inner Reduce": make_pipeline(MinMaxScaler(), inner(Normalizer(), dtype="float64")),
    "voting": ensemble.VotingRegressor(TWO),
    "stacking": ensemble.StackingRegressor(
        TWO, final_estimator=regressor(), cv=2, passthrough=True
    ),
    "bagging": ensemble.BaggingRegressor(regressor(3), 2, random_state=0, max_features=0.5),
    "grid": GridSearchCV(
        make_pipeline(StandardScaler(), regressor()), {"ortsgdregressor__eta0": [0.02]}, cv=2
    ),
}
CLASSIFIERS = {
    "alone": classifier(3),
    "pipeline": make_pipeline(StandardScaler(), classifier(3)),
    "voting": ensemble.VotingClassifier(
        [*TWO_CLASSIFIERS, ("c", LogisticRegression())], voting="soft", flatten_transform=False
    ),
    "stacking": ensemble.StackingClassifier(TWO_CLASSIFIERS, final_estimator=classifier(), cv=2),
    "bagging": ensemble.BaggingClassifier(classifier(3), 2, random_state=0),
    "calibrated": CalibratedClassifierCV(classifier(3), cv=2),
    "one against the rest": OneVsRestClassifier(classifier(3)),
    "grid": GridSearchCV(classifier(), {"eta0": [0.05]}, cv=2),
}
LABELS = {
    "two ints": (CLASSES > 0) * 7,
    "two texts": np.where(CLASSES > 0, "a", "b"),
    "texts": TEXTS,
    "ints": CLASSES,
}


@pytest.fixture
def converted(run_onnx):
    """Convert a model and run it on X: its results in order."""

    def run(model, X, opset=OPSET, **options):
        options = {id(model): options} if options else None
        onnx_model = skl2onnx.to_onnx(model, X[:1], target_opset=opset, options=options)
        (name,) = (i.name for i in onnx_model.graph.input)
        return list(run_onnx(onnx_model, **{name: X}).values())

    return run


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("model", REGRESSORS.values(), ids=REGRESSORS)
def test_regressors(model, dtype, opset, converted):
    model.fit(X, TARGET)
    (prediction,) = converted(model, X.astype(dtype), opset)
    assert prediction.dtype == dtype
    np.testing.assert_allclose(prediction.ravel(), model.predict(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [make_pipeline(StandardScaler(), regressor(3)), MultiOutputRegressor(regressor(3))],
    ids=["ours", "theirs"],
)
def test_several_outputs(model, converted):
    model.fit(X, TARGETS)
    (prediction,) = converted(model, X.astype(np.float32))
    np.testing.assert_allclose(prediction, model.predict(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("model", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classifiers(model, y, dtype, converted):
    model.fit(X, y)
    labels, probabilities = converted(model, X.astype(dtype), zipmap=False)
    assert probabilities.dtype == dtype
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-5)


def test_several_targets(converted):
    model = MultiOutputClassifier(classifier()).fit(X, np.column_stack([CLASSES, CLASSES > 1]))
    labels, probabilities = converted(model, X.astype(np.float32), zipmap=False)
    np.testing.assert_array_equal(labels, model.predict(X))
    for ours, theirs in zip(probabilities, model.predict_proba(X), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_probabilities_are_dicts_as_with_every_classifier(converted):
    model = make_pipeline(StandardScaler(), classifier()).fit(X, TEXTS)
    labels, probabilities = converted(model, X.astype(np.float32))
    np.testing.assert_array_equal(labels, model.predict(X))
    expected = [dict(zip(model.classes_, row, strict=True)) for row in model.predict_proba(X)]
    for row, other in zip(probabilities, expected, strict=True):
        assert row == pytest.approx(other, abs=1e-5)


def test_probabilities_by_column(run_onnx):
    model = classifier().fit(X, CLASSES)
    onnx_model = skl2onnx.to_onnx(
        model, X[:1], target_opset=OPSET, options={id(model): {"zipmap": "columns"}}
    )
    results = run_onnx(onnx_model, X=X)
    np.testing.assert_allclose(
        np.column_stack([results[f"i{i}"] for i in range(3)]), model.predict_proba(X), atol=1e-5
    )


def test_labels_as_a_result(converted):
    model = classifier().fit(X, TEXTS)
    *_, classes = converted(model, X.astype(np.float32), zipmap=False, output_class_labels=True)
    np.testing.assert_array_equal(classes, model.classes_)


@pytest.mark.parametrize("y", [CLASSES > 0, CLASSES])
def test_raw_scores(y, converted):
    model = classifier(3).fit(X, y)
    _, scores = converted(model, X.astype(np.float32), zipmap=False, raw_scores=True)
    expected = model.decision_function(X)
    if expected.ndim == 1:
        expected = np.column_stack([-expected, expected])
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "y", [CLASSES > 0, (CLASSES > 0).astype(float), (CLASSES > 0).astype(np.uint8)]
)
def test_labels_become_int64_as_with_every_classifier(y, converted):
    labels, _ = converted(classifier().fit(X, y), X.astype(np.float32), zipmap=False)
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(labels, classifier().fit(X, y).predict(X))


def test_labels_that_are_no_int64_are_refused():
    model = classifier().fit(X, np.array([2**63, 2**63 + 1], dtype=np.uint64)[CLASSES // 2])
    with pytest.raises(
        ValueError, match=r"ints or strings, not such as .*9223372036854775808.*to_onnx\(\)"
    ):
        skl2onnx.to_onnx(model, X[:1], target_opset=OPSET, options={id(model): {"zipmap": False}})


def test_opsets_before_ours_are_refused():
    with pytest.raises(RuntimeError, match="requires at least opset 17"):
        skl2onnx.to_onnx(regressor().fit(X, TARGET), X[:1], target_opset=15)


def test_text_in_place_of_numbers_is_refused():
    model = regressor().fit(X, TARGET)
    with pytest.raises(ValueError, match="'X' is text where the fitted estimator has numbers"):
        skl2onnx.to_onnx(model, X[:1].astype(str), target_opset=OPSET)


@pytest.fixture(scope="module")
def frame():
    frame = pd.DataFrame(X, columns=list("abcd")).astype(np.float32)
    return frame.assign(kind=np.array(["x", "y", "z"])[CLASSES])


def feeds(frame):
    return {name: frame[[name]].to_numpy() for name in frame}


def test_columns_of_a_frame(frame, run_onnx):
    encoder = OneHotEncoder(sparse_output=False)
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), list("abcd")), ("kind", encoder, ["kind"])]
    )
    model = make_pipeline(columns, regressor(3)).fit(frame, TARGET)
    onnx_model = skl2onnx.to_onnx(model, frame[:1], target_opset=OPSET)
    (prediction,) = run_onnx(onnx_model, **feeds(frame)).values()
    np.testing.assert_allclose(prediction.ravel(), model.predict(frame), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("raw_scores", [False, True])
def test_columns_with_the_names_of_outputs_and_of_the_score(raw_scores, run_onnx):
    names = ["label", "probabilities", "skort_score"]
    rows = pd.DataFrame(X[:, :3].astype(np.float32), columns=names)
    model = inner_classifier().fit(rows, CLASSES)
    options = {"zipmap": False, "raw_scores": raw_scores}
    proto = skl2onnx.to_onnx(model, rows[:1], target_opset=OPSET, options={id(model): options})
    inputs = {
        i.name: rows[[name]].to_numpy() for i, name in zip(proto.graph.input, names, strict=True)
    }
    _, numbers = run_onnx(proto, **inputs).values()
    expected = model.decision_function(rows) if raw_scores else model.predict_proba(rows)
    np.testing.assert_allclose(numbers, expected, rtol=1e-4, atol=1e-5)

    rows = rows.rename(columns={"label": "variable"})
    regressor = inner(StandardScaler()).fit(rows, TARGET)
    proto = skl2onnx.to_onnx(regressor, rows[:1], target_opset=OPSET)
    inputs = dict(zip([i.name for i in proto.graph.input], inputs.values(), strict=True))
    (numbers,) = run_onnx(proto, **inputs).values()
    np.testing.assert_allclose(numbers[:, 0], regressor.predict(rows), rtol=1e-4)


def test_columns_of_a_frame_without_a_transformer(frame, run_onnx):
    numbers = frame[list("abcd")]
    model = ensemble.VotingRegressor([("a", regressor(3)), ("b", regressor())]).fit(numbers, TARGET)
    onnx_model = skl2onnx.to_onnx(model, numbers[:1], target_opset=OPSET)
    (prediction,) = run_onnx(onnx_model, **feeds(numbers)).values()
    np.testing.assert_allclose(prediction.ravel(), model.predict(numbers), rtol=1e-5, atol=1e-5)


OF_REGRESSORS = {
    "stacking": REGRESSORS["stacking"],
    "bagging": REGRESSORS["bagging"],
    "voting": REGRESSORS["voting"],
    "transformed target": TransformedTargetRegressor(regressor(), transformer=MinMaxScaler()),
}


@pytest.mark.parametrize("model", OF_REGRESSORS.values(), ids=OF_REGRESSORS)
def test_regressors_around_take_no_options(model, converted):
    rows = X.astype(np.float32)
    model = clone(model).fit(rows, TARGET)
    (prediction,) = converted(model, rows)
    np.testing.assert_allclose(prediction.ravel(), model.predict(rows), rtol=1e-4, atol=1e-4)
    with pytest.raises(NameError, match="Option 'zipmap' not in"):
        converted(model, rows, zipmap=False)


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_a_voting_classifier_needs_flatten_transform_false(voting, converted):
    rows = X.astype(np.float32)
    model = ensemble.VotingClassifier(TWO_CLASSIFIERS, voting=voting).fit(rows, TEXTS)
    with pytest.raises(NotImplementedError, match="flatten_transform==True is not implemented yet"):
        converted(model, rows, zipmap=False)
    labels, *_ = converted(model.set_params(flatten_transform=False), rows, zipmap=False)
    assert (labels == model.predict(rows)).all()


def test_an_imputer_of_texts_around_needs_a_text_for_what_is_missing(run_onnx):
    text = np.where(CLASSES == 1, None, TEXTS)
    table = pd.DataFrame({"number": X[:, 0].astype(np.float32), "text": text})
    filled = table.fillna({"text": "nan"})

    def around(missing):
        imputer = SimpleImputer(strategy="most_frequent", missing_values=missing)
        columns = make_column_transformer(
            (StandardScaler(), ["number"]), (make_pipeline(imputer, OneHotEncoder()), ["text"])
        )
        return make_pipeline(columns, CalibratedClassifierCV(classifier(), cv=2))

    options = {"target_opset": OPSET, "options": {"zipmap": False}}
    with pytest.raises(NotImplementedError, match="missing values are string not <class 'float'>"):
        skl2onnx.to_onnx(around(np.nan).fit(filled, CLASSES), filled[:1], **options)
    model = around("nan").fit(filled, CLASSES)
    proto = skl2onnx.to_onnx(model, filled[:1], **options)
    _, probabilities = run_onnx(proto, **feeds(filled)).values()
    np.testing.assert_allclose(probabilities, model.predict_proba(filled), atol=1e-5)


AROUND = {
    "calibrated": CalibratedClassifierCV(classifier(3), cv=2),
    "bagging": ensemble.BaggingClassifier(classifier(3), 2, random_state=0),
    "stacking": ensemble.StackingClassifier(TWO_CLASSIFIERS, final_estimator=classifier(), cv=2),
    "one against the rest": OneVsRestClassifier(classifier(3)),
}


@pytest.mark.parametrize("model", AROUND.values(), ids=AROUND)
def test_models_of_one_input_take_an_array_or_columns_transformed_before(frame, model, run_onnx):
    numbers = frame[list("abcd")]
    alone = clone(model).fit(numbers, CLASSES)
    with pytest.raises(Exception, match=r"at most 1 input\(s\) is\(are\) supported"):
        skl2onnx.to_onnx(alone, numbers[:1], target_opset=OPSET)
    onnx_model = skl2onnx.to_onnx(alone, numbers[:1].to_numpy(np.float32), target_opset=OPSET)
    labels, *_ = run_onnx(onnx_model, X=numbers.to_numpy(np.float32)).values()
    assert (labels == alone.predict(numbers)).all()

    columns = ColumnTransformer(
        [("numbers", StandardScaler(), list("abcd")), ("kind", OneHotEncoder(), ["kind"])]
    )
    whole = make_pipeline(columns, clone(model)).fit(frame, CLASSES)
    onnx_model = skl2onnx.to_onnx(whole, frame[:1], target_opset=OPSET)
    labels, *_ = run_onnx(onnx_model, **feeds(frame)).values()
    assert (labels == whole.predict(frame)).all()


def from_columns():
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), ["a", "d"]), ("kind", OneHotEncoder(), ["kind"])]
    )
    return regressor().set_params(estimator=make_pipeline(columns, LinearRegression()))


@pytest.mark.parametrize(
    "model",
    [from_columns(), ensemble.VotingRegressor([("a", from_columns()), ("b", from_columns())])],
)
def test_inner_pipelines_take_the_columns_of_a_frame(frame, model, run_onnx):
    model.fit(frame, TARGET)
    onnx_model = skl2onnx.to_onnx(model, frame[:1], target_opset=OPSET)
    (prediction,) = run_onnx(onnx_model, **feeds(frame)).values()
    np.testing.assert_allclose(prediction.ravel(), model.predict(frame), rtol=1e-5, atol=1e-5)


def test_a_frame_inside_the_pipeline(frame, run_onnx):
    numbers = frame[list("abcd")]
    scaler = StandardScaler().set_output(transform="pandas")
    model = make_pipeline(scaler, inner(MinMaxScaler())).fit(numbers, TARGET)
    onnx_model = skl2onnx.to_onnx(model, numbers[:1], target_opset=OPSET)
    (prediction,) = run_onnx(onnx_model, **feeds(numbers)).values()
    np.testing.assert_allclose(prediction.ravel(), model.predict(numbers), rtol=1e-5, atol=1e-5)


class Difference(RegressorMixin, BaseEstimator):
    """A model with two inputs, as of one that was fitted on the columns of a frame."""

    onnx_ = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    difference (float[n, 1] a, float[n, 1] b) => (float[n, 1] variable) {
    variable = Sub (a, b) }""")

    def to_onnx(self):
        return self.onnx_

    def predict(self, X):
        return X[:, 0] - X[:, 1]


class Sign(ClassifierMixin, Difference):
    """A classifier without probabilities."""

    classes_ = np.array([3, 5])
    onnx_ = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    sign (float[n, 1] X) => (int64[n] label) <int64 no = {3}, int64 yes = {5}, float zero = {0},
    int64[1] axis = {1}>
    {
        skort_score = Identity (X)
        positive = Greater (skort_score, zero)
        labels = Where (positive, yes, no)
        label = Squeeze (labels, axis)
    }""")


class TestModelsWithOtherEnds:
    @pytest.fixture(autouse=True)
    def _registered(self):
        register(Difference)
        register(Sign)

    @pytest.mark.parametrize("order", ["ab", "ba"])
    def test_columns_are_found_by_name(self, frame, order, run_onnx):
        onnx_model = skl2onnx.to_onnx(Difference(), frame[list(order)][:1], target_opset=OPSET)
        (difference,) = run_onnx(onnx_model, **feeds(frame[list(order)])).values()
        np.testing.assert_array_equal(difference.ravel(), frame.a - frame.b)

    def test_a_matrix_has_the_columns_in_order(self, converted):
        (difference,) = converted(Difference(), X[:, :2])
        np.testing.assert_array_equal(
            difference.ravel(), (X[:, 0].astype("f") - X[:, 1].astype("f")).astype(float)
        )

    def test_missing_columns_are_named(self, frame):
        with pytest.raises(
            ValueError, match=r"fitted on the columns \['a', 'b'\], .* has \['c', 'a'\]"
        ):
            skl2onnx.to_onnx(Difference(), frame[["c", "a"]][:1], target_opset=OPSET)

    def test_without_probabilities_the_scores_are_returned(self, converted):
        labels, scores = converted(Sign(), X[:, :1].astype(np.float32), zipmap=False)
        np.testing.assert_array_equal(labels, np.where(X[:, 0] > 0, 5, 3))
        np.testing.assert_array_equal(
            scores, np.column_stack([-X[:, 0], X[:, 0]]).astype(np.float32)
        )


class Renamed(OrtSGDRegressor):
    pass


def test_subclasses_are_registered(converted):
    model = Renamed(max_iter=5, tol=None).fit(X, TARGET)
    (prediction,) = converted(
        ensemble.VotingRegressor([("a", model)]).fit(X, TARGET), X.astype(np.float32)
    )
    assert prediction.shape == (len(X), 1)


@pytest.mark.parametrize(
    "imports",
    [
        *(
            pytest.param(f"import {both}", marks=pytest.mark.slow)
            for both in ("skl2onnx, skort", "skort, skl2onnx")
        ),
        "import skl2onnx",
    ],
)
def test_a_pickled_model_in_a_new_process(imports, tmp_path, run_onnx):
    model = ensemble.VotingRegressor([("a", regressor()), ("b", regressor(3))]).fit(X, TARGET)
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    code = (
        f"import pickle, pathlib, numpy as np; {imports}; folder = pathlib.Path({str(tmp_path)!r});"
        "model = pickle.loads((folder / 'model.pickle').read_bytes());"
        f"onnx_model = skl2onnx.to_onnx(model, np.zeros((1, 4), np.float32), target_opset={OPSET});"
        "(folder / 'model.onnx').write_bytes(onnx_model.SerializeToString())"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    (prediction,) = run_onnx(onnx.load(tmp_path / "model.onnx"), X=X.astype(np.float32)).values()
    np.testing.assert_allclose(prediction.ravel(), model.predict(X), rtol=1e-5, atol=1e-5)


THRESHOLDS = {
    "skort": classifier(),
    "skort in a pipeline": make_pipeline(StandardScaler(), classifier()),
    "skort without probabilities": classifier().set_params(estimator=LinearSVC()),
    "scikit-learn": LogisticRegression(),
    "scikit-learn in a pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "scikit-learn without probabilities": LinearSVC(),
}


@pytest.mark.parametrize("y", ["two ints", "two texts"])
@pytest.mark.parametrize("inside", THRESHOLDS.values(), ids=THRESHOLDS)
def test_labels_are_those_of_a_moved_threshold(inside, y, converted):
    # A fit registers the converters.
    classifier().fit(X, CLASSES)
    y = LABELS[y]
    for parameters in ({"threshold": 0.3}, {"threshold": 0.8, "pos_label": np.unique(y)[0]}):
        for method in ("auto", "decision_function"):
            model = FixedThresholdClassifier(inside, response_method=method, **parameters)
            model.fit(X, y)
            label, probabilities = converted(model, X.astype(np.float32), zipmap=False)
            assert (model.predict(X) != model.estimator_.predict(X)).any()
            np.testing.assert_array_equal(label, model.predict(X))
            if hasattr(model, "predict_proba"):
                np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("inside", [classifier(), LogisticRegression()])
def test_labels_are_those_of_a_tuned_threshold(inside, converted):
    classifier().fit(X, CLASSES)
    y = CLASSES == 2
    model = TunedThresholdClassifierCV(inside, cv=2).fit(X, y.astype(int))
    label, _ = converted(model, X.astype(np.float32), zipmap=False)
    assert model.best_threshold_ != 0.5
    np.testing.assert_array_equal(label, model.predict(X))


def test_a_threshold_of_a_frozen_classifier(converted):
    fitted = classifier().fit(X, CLASSES > 0)
    model = FixedThresholdClassifier(FrozenEstimator(fitted), threshold=0.9).fit(X, CLASSES > 0)
    label, probabilities = converted(model, X.astype(np.float32))
    np.testing.assert_array_equal(label, model.predict(X))
    assert list(probabilities[0]) == [0, 1]
