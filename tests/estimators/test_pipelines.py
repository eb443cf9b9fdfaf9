"""
Pipelines inside: raw columns in, the same predictions out of the estimator,
the ONNX file and scikit-learn.
"""

import pickle

import numpy as np
import onnx
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures, StandardScaler
from sklearn.utils import get_tags

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.graphs.sklearn.raw_inputs import feeds, raw_inputs
from skort.runtime.installed import load

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
N = 240
CELLS = {
    "age in years": [
        None if RNG.random() < 0.1 else float(a) for a in RNG.normal(40, 10, N).round(1)
    ],
    "city": RNG.choice(["Bern", "Oslo", "Rome"], N).tolist(),
    "rooms": RNG.integers(1, 6, N).tolist(),
    "garden": (RNG.random(N) > 0.5).tolist(),
    "note": RNG.choice(["quiet street", "Near the lake", "quiet, near a school"], N).tolist(),
}
FRAME = pd.DataFrame(CELLS)
GAPS = FRAME.assign(city=FRAME["city"].where(FRAME["rooms"] != 2))
NUMBERS = FRAME[["rooms", "garden"]].to_numpy(np.float64)
Y = np.array(CELLS["rooms"]) + 2.0 * np.array(CELLS["garden"]) + (np.array(CELLS["city"]) == "Rome")
LABELS = np.where(Y > 4, "dear", "cheap")


def numbers():
    return make_pipeline(SimpleImputer(), StandardScaler())


def columns(text=True, **parameters):
    most_frequent = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    parts = [
        ("numbers", numbers(), ["age in years", "rooms", "garden"]),
        ("city", most_frequent, ["city"]),
    ]
    return ColumnTransformer(parts + [("note", TfidfVectorizer(), "note")] * text, **parameters)


def polars_frame():
    return pytest.importorskip("polars").DataFrame(CELLS)


# name -> (X, or a function that returns it, steps before the model)
PIPELINES = {
    "DataFrame": (FRAME, columns()),
    "missing text": (GAPS, columns()),
    "polars": (polars_frame, columns()),
    "missing text as a category": (
        GAPS,
        make_column_transformer((OneHotEncoder(), ["city"]), (StandardScaler(), ["rooms"])),
    ),
    "constant in place of missing text": (
        GAPS,
        make_column_transformer(
            (
                make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), OrdinalEncoder()),
                ["city"],
            ),
            (StandardScaler(), ["rooms"]),
        ),
    ),
    "columns left as they are": (
        FRAME[["city", "rooms", "garden"]],
        make_column_transformer(
            (OneHotEncoder(), make_column_selector(dtype_exclude="number", pattern="city")),
            remainder="passthrough",
        ),
    ),
    "positions": (
        FRAME[["city", "rooms", "garden"]].to_numpy(object),
        ColumnTransformer([("city", OneHotEncoder(), [0]), ("others", StandardScaler(), [1, 2])]),
    ),
    "a mask": (
        FRAME[["city", "rooms", "garden"]],
        ColumnTransformer(
            [("city", OneHotEncoder(), [True, False, False])], remainder=StandardScaler()
        ),
    ),
    "a slice of names": (
        FRAME[["city", "rooms", "garden"]],
        ColumnTransformer(
            [
                ("city", OneHotEncoder(), ["city"]),
                ("others", StandardScaler(), slice("rooms", "garden")),
            ]
        ),
    ),
    "union": (
        FRAME,
        FeatureUnion(
            [
                ("numbers", make_column_transformer((numbers(), ["age in years", "rooms"]))),
                ("city", make_column_transformer((OneHotEncoder(), ["city"]))),
            ]
        ),
    ),
    "DataFrame of numbers": (FRAME[["rooms", "garden"]], StandardScaler()),
    "encoded DataFrame": (FRAME[["city", "note"]], OneHotEncoder()),
    "encoded mixed DataFrame": (FRAME[["city", "rooms"]], OneHotEncoder()),
    "encoded integers": (NUMBERS.astype(int), OneHotEncoder()),
    "array": (
        NUMBERS,
        make_pipeline(PolynomialFeatures(3), StandardScaler(), PCA(4, random_state=0)),
    ),
    "interactions": (NUMBERS, PolynomialFeatures(2, interaction_only=True, include_bias=False)),
    "gaps in an array": (FRAME[["age in years", "rooms"]].to_numpy(np.float64), numbers()),
    "another marker of gaps": (
        np.where(NUMBERS == 3, -1, NUMBERS),
        SimpleImputer(missing_values=-1),
    ),
    "sparse": (scipy.sparse.csr_matrix(NUMBERS), StandardScaler(with_mean=False)),
    "texts": (FRAME["note"], TfidfVectorizer()),
    "list of texts": (CELLS["note"], TfidfVectorizer()),
    "word pairs": (
        FRAME["note"].str.replace(" a ", " the "),
        make_pipeline(CountVectorizer(ngram_range=(1, 2)), TfidfTransformer()),
    ),
}


def short(estimator, dtype="float32", **parameters):
    estimator_class = OrtSGDClassifier if is_classifier(estimator) else OrtSGDRegressor
    return estimator_class(
        estimator, dtype=dtype, max_iter=10, tol=None, random_state=0, **parameters
    )


def served(estimator, X):
    """Return the outputs of the exported model."""
    model = estimator.to_onnx()
    onnx.checker.check_model(model, full_check=True)
    session = load().InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds(X, raw_inputs(X), estimator.dtype))


@pytest.mark.parametrize(
    "dtype, tolerance", [("float32", 1e-5), pytest.param("float64", 1e-6, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", PIPELINES)
def test_regression(name, dtype, tolerance, solver):
    if (solver, dtype) == ("session", "float64"):
        pytest.skip("TrainingSession has no float64")
    X, steps = PIPELINES[name]
    X = X() if callable(X) else X
    # The same as with the steps outside, which are fitted by scikit-learn.
    transformed, options = clone(steps).fit_transform(X, Y), {"solver": solver}
    if scipy.sparse.issparse(transformed):
        # What is sparse inside is not standardized.
        transformed, options = (
            transformed.toarray(),
            {"solver": solver, "standardize": False, "eta0": 0.01},
        )
    model = short(make_pipeline(steps, LinearRegression()), dtype, **options).fit(X, Y)
    prediction = model.predict(X)
    transformed = np.asarray(transformed, np.float64)
    outside = short(LinearRegression(), dtype, **options).fit(transformed, Y)
    np.testing.assert_allclose(
        prediction, outside.predict(transformed), rtol=tolerance, atol=tolerance
    )
    np.testing.assert_allclose(
        served(model, X)[0].ravel(), prediction, rtol=tolerance, atol=tolerance
    )
    np.testing.assert_allclose(
        model.to_sklearn().predict(X), prediction, rtol=tolerance, atol=tolerance
    )
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), prediction)


@pytest.mark.parametrize("name", ["DataFrame", "missing text", "texts", "array"])
def test_classification(name, solver):
    X, steps = PIPELINES[name]
    model = short(make_pipeline(steps, MLPClassifier((5,))), solver=solver).fit(X, LABELS)
    labels, probabilities = served(model, X)
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-5)
    plain = model.to_sklearn()
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(X), atol=1e-5)


def test_a_dataframe_has_one_onnx_input_a_column():
    model = short(make_pipeline(columns(), LinearRegression())).fit(FRAME, Y)
    inputs = {i.name: i.type.tensor_type.elem_type for i in model.onnx_.graph.input}
    number, text = onnx.TensorProto.FLOAT, onnx.TensorProto.STRING
    assert inputs == {
        "age in years": number,
        "city": text,
        "rooms": number,
        "garden": number,
        "note": text,
    }
    assert [o.name for o in model.onnx_.graph.output] == ["variable"]


class Counting(TransformerMixin, BaseEstimator):
    """Count the calls that scale a whole X."""

    calls = 0

    def fit(self, X, y=None):
        type(self).calls += 1
        return self

    def transform(self, X):
        return np.asarray(X) / 10


def test_steps_are_fitted_and_applied_once_a_fit(monkeypatch):
    monkeypatch.setattr("skort.graphs.sklearn.transformers.transformer_graph", lambda *_: None)
    rows = []
    monkeypatch.setattr(Counting, "transform", lambda self, X: rows.append(len(X)) or X / 10)
    short(make_pipeline(Counting(), LinearRegression()), batch_size=10).fit(NUMBERS, Y)
    assert Counting.calls == 1
    assert rows == [N]


def test_sparse_rows_are_never_made_dense_as_a_whole(monkeypatch):
    X = scipy.sparse.random(1000, 300, density=0.01, format="csr", random_state=0)
    sizes = []
    toarray = scipy.sparse.csr_matrix.toarray
    monkeypatch.setattr(
        scipy.sparse.csr_matrix,
        "toarray",
        lambda self, *a, **k: sizes.append(self.shape[0]) or toarray(self, *a, **k),
    )
    model = short(make_pipeline(StandardScaler(with_mean=False), LinearRegression())).fit(
        X, np.arange(1000) / 1000
    )
    # Batches, and the rows on which the conversion is checked.
    assert set(sizes) <= {200, 100}
    assert model.predict(X).shape == (1000,)


@pytest.mark.parametrize(
    "X, message",
    [
        (FRAME.drop(columns="city"), "now missing:\n- city"),
        (FRAME.rename(columns={"city": "town"}), "unseen at fit time:\n- town"),
        (FRAME[FRAME.columns[::-1]], "must be in the same order"),
        (FRAME.assign(city="Paris"), r"unknown categories \['Paris'\]"),
    ],
    ids=["missing", "renamed", "reordered", "unseen"],
)
def test_another_dataframe_is_refused_by_name(X, message):
    steps = make_column_transformer(
        (OneHotEncoder(), ["city"]), (numbers(), ["age in years", "rooms"])
    )
    model = short(make_pipeline(steps, LinearRegression())).fit(FRAME, Y)
    before = model.predict(FRAME)
    with pytest.raises(ValueError, match=message):
        model.predict(X)
    np.testing.assert_array_equal(model.predict(FRAME), before)


# Columns with the names of an output, of weights and results of a model, of a step, and of skort.
INNER_NAMES = ["label", "variable", "probabilities", "coef", "intercept", "coefficient"]
INNER_NAMES += ["intercepts", "skort_score", "skort_X", "label_"]


def from_file(model, X, run_onnx):
    """Return the last output of the file of a model, and the names of its outputs."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("skort.estimators.model.model.warn_user", lambda message: None)
        file = model.to_onnx()
    assert [i.name for i in file.graph.input] == list(X.columns)
    outputs = run_onnx(
        file,
        **{
            name: X[[name]].to_numpy(np.float32 if X[name].dtype.kind == "f" else object)
            for name in X
        },
    )
    return list(outputs.values())[-1], list(outputs)


@pytest.mark.parametrize("name", INNER_NAMES)
@pytest.mark.parametrize(
    "steps",
    [
        make_column_transformer((StandardScaler(), [0]), (OneHotEncoder(), [1])),
        make_column_transformer((TfidfVectorizer(), 1), remainder="passthrough"),
        make_column_transformer((StandardScaler(), [0])),
    ],
    ids=["encoder", "text", "unused"],
)
@pytest.mark.parametrize("model", [LogisticRegression(), MLPClassifier((2, 2))])
def test_a_column_may_have_a_name_inside_the_file(model, steps, name, run_onnx):
    for names in (["number", name], [name, "text"]):
        X = pd.DataFrame(dict(zip(names, (np.arange(40.0), ["one", "two"] * 20), strict=True)))
        usual = X.set_axis(["number", "text"], axis=1)
        y = np.arange(40) > 15
        fitted = short(make_pipeline(steps, model)).fit(X, y)
        other = short(make_pipeline(steps, model)).fit(usual, y)
        assert list(fitted.weights_) == list(other.weights_)
        given, outputs = from_file(fitted, X, run_onnx)
        expected, _ = from_file(other, usual, run_onnx)
        np.testing.assert_array_equal(given, expected)
        assert outputs == [
            f"{each}_" * (each == name) or each for each in ("label", "probabilities")
        ]


@pytest.mark.parametrize("name", ["variable", "coef", "skort_X"])
def test_a_column_of_a_matrix_may_have_a_name_inside_the_file(name, run_onnx):
    X = FRAME[["rooms", "garden"]].astype(float).rename(columns={"rooms": name})
    model = short(make_pipeline(SimpleImputer(), StandardScaler(), LinearRegression())).fit(X, Y)
    prediction, outputs = from_file(model, X, run_onnx)
    np.testing.assert_allclose(prediction[:, 0], model.predict(X), rtol=1e-5)
    assert outputs == ["variable_" if name == "variable" else "variable"]


def test_an_output_with_another_name_is_told_where_a_file_is_made(tmp_path):
    X = pd.DataFrame({"label": ["a", "b"] * 20, "variable": np.arange(40.0)})
    steps = make_column_transformer((OneHotEncoder(), ["label"]), (StandardScaler(), ["variable"]))
    classifier = short(make_pipeline(steps, LogisticRegression())).fit(X, X["label"])
    message = "in the file, the names of these outputs are 'label_' instead of 'label'.$"
    with pytest.warns(UserWarning, match=message):
        classifier.save_onnx(tmp_path / "model.onnx")
    with pytest.warns(UserWarning, match=message):
        assert classifier.to_onnx(target_opset=18).graph.output[0].name == "label_"
    assert onnx.load(tmp_path / "model.onnx").graph.output[0].name == "label_"

    regressor = short(make_pipeline(steps, LinearRegression())).fit(X, X["variable"])
    with pytest.warns(UserWarning, match="are 'variable_' instead of 'variable'.$"):
        regressor.to_onnx()


def test_a_stream_takes_a_column_with_the_name_of_an_output(run_onnx):
    X = pd.DataFrame({"label": ["a", "b"] * 20, "coef": np.arange(40.0)})
    steps = make_column_transformer((OneHotEncoder(), ["label"]), (StandardScaler(), ["coef"]))
    model = short(make_pipeline(FrozenEstimator(steps.fit(X)), LogisticRegression()))
    model.partial_fit(X, X["label"], classes=["a", "b"])
    probabilities, outputs = from_file(model, X, run_onnx)
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=1e-5)
    assert outputs == ["label_", "probabilities"]


def test_a_column_named_like_a_result_of_a_step_is_written():
    """skl2onnx calls the result of a scaler and of an encoder so."""
    names = ["scaled", "out0", "transformed", "concat_result", "merged_columns"]
    X = pd.DataFrame(np.random.RandomState(0).randn(40, 5), columns=names)
    columns = make_column_transformer((StandardScaler(), names[:2]), remainder="passthrough")
    model = short(make_pipeline(columns, LinearRegression())).fit(X, X["scaled"])
    assert [i.name for i in model.onnx_.graph.input] == names


@pytest.mark.parametrize(
    "estimator, X, error, message",
    [
        (
            make_pipeline(StandardScaler()),
            NUMBERS,
            ValueError,
            "'estimator' parameter must be a regressor or classifier of scikit-learn",
        ),
        (LinearRegression(), FRAME[["city"]], ValueError, "X has text in column .city., such as"),
        (
            make_pipeline(StandardScaler(), LinearRegression()),
            FRAME,
            ValueError,
            "X has text in column .city., such as .*",
        ),
        (
            make_pipeline(TfidfVectorizer(), LinearRegression()),
            NUMBERS,
            ValueError,
            r"X is an array of numbers, of the shape \(240, 2\), where a step takes texts",
        ),
        (
            make_pipeline(StandardScaler(), LinearRegression()),
            NUMBERS[0],
            ValueError,
            "Reshape your data",
        ),
    ],
    ids=["no predictor", "text", "text in a pipeline", "numbers as text", "one row"],
)
def test_what_a_model_cannot_take_is_refused(estimator, X, error, message):
    model = OrtSGDRegressor(estimator)
    with pytest.raises(error, match=message):
        model.fit(X, Y[: len(X)])
    assert list(vars(model)) == list(vars(OrtSGDRegressor()))


def test_tags_are_those_of_the_first_step():
    assert get_tags(
        OrtSGDClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression()))
    ).input_tags.string
    plain = get_tags(
        OrtSGDClassifier(make_pipeline(StandardScaler(), LogisticRegression()))
    ).input_tags
    assert (plain.string, plain.allow_nan, plain.sparse) == (False, False, False)
    encoder = OrtSGDClassifier(make_pipeline(OneHotEncoder(), LogisticRegression()))
    assert get_tags(encoder).input_tags.categorical


def test_raw_columns_in_a_cross_validation():
    model = short(make_pipeline(columns(), MLPRegressor()), eta0=0.02).set_params(max_iter=50)
    scores = cross_val_score(model, GAPS, Y, cv=3)
    by_hand = []
    for fold in range(3):
        test = np.arange(N) // (N // 3) == fold
        by_hand.append(clone(model).fit(GAPS[~test], Y[~test]).score(GAPS[test], Y[test]))
    np.testing.assert_allclose(scores, by_hand)
