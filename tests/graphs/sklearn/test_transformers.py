"""
Converted transformers against scikit-learn's,
and the names of those that cannot be converted.
"""

import re
import warnings

import numpy as np
import onnx
import pandas as pd
import pytest
import scipy.sparse
from onnx import helper
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from skort.common.onnx_text import IR_VERSION, OPSET
from skort.exceptions import NotExportableError
from skort.graphs.sklearn.conversion import to_onnx
from skort.graphs.sklearn.raw_inputs import feeds, raw_inputs
from skort.graphs.sklearn.transformers import (
    DatesError,
    Difference,
    Obstacle,
    UnlikeError,
    largest_difference,
    sample,
    trainable_steps,
    transformer_graph,
)
from skort.runtime.sessions import InferenceModel


def fitted(*steps, X, y=None):
    return make_pipeline(*steps).fit(X, y)


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-4), ("float64", 1e-12)])
def test_values_are_scikit_learns(dtype, rtol, rng, run_onnx):
    X = rng.normal(3, 2, size=(40, 4))
    transformers = fitted(
        StandardScaler(), PCA(3, random_state=0), SelectKBest(k=2), X=X, y=X[:, 0] > 3
    )
    (values,) = run_onnx(transformer_graph(transformers, X, dtype), X=X.astype(dtype)).values()
    np.testing.assert_allclose(values, transformers.transform(X), rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    "steps, dtype, name",
    [
        ((StandardScaler(), RBFSampler(n_components=4)), "float32", "rbfsampler"),
        ((RBFSampler(n_components=4), StandardScaler()), "float32", "rbfsampler"),
        ((StandardScaler(), RBFSampler(n_components=4), PCA(2)), "float64", "rbfsampler"),
        # Predictors whose conversion predicts and does not transform.
        ((StandardScaler(), LinearDiscriminantAnalysis()), "float32", "lineardiscriminantanalysis"),
        ((KMeans(2, random_state=0, n_init=1), StandardScaler()), "float32", "kmeans"),
        # Squares that are no float32.
        ((PolynomialFeatures(2), StandardScaler()), "float32", "polynomialfeatures"),
    ],
    ids=["last", "first", "middle", "labels", "index", "nan"],
)
def test_a_step_that_cannot_be_converted_is_named(steps, dtype, name, rng, capfd):
    X = rng.normal(size=(30, 3)) * (1e25 if name == "polynomialfeatures" else 1)
    transformers = fitted(*steps, X=X, y=X[:, 0] > 0)
    with pytest.raises(
        ValueError,
        match=f"the step '{name}' cannot be part of an ONNX model in {dtype}: .* Pipeline",
    ):
        transformer_graph(transformers, X, dtype)
    assert capfd.readouterr().err == ""


def test_a_step_that_gives_text_is_not_taken_for_the_one_that_fails():
    X = np.array([["red"], ["blue"], ["red"]] * 10, dtype=object)
    steps = SimpleImputer(strategy="most_frequent"), OneHotEncoder()
    transformer_graph(fitted(*steps, X=X), X, "float32")
    with pytest.raises(NotExportableError, match="the step 'rbfsampler' cannot be part"):
        transformer_graph(fitted(*steps, RBFSampler(), StandardScaler(), X=X), X, "float32")


def test_a_frozen_column_transformer_takes_the_columns_of_a_table_by_name(rng, run_onnx):
    table = pd.DataFrame(
        {
            "unused": rng.normal(size=30),
            "size": rng.normal(size=30),
            "colour": ["red", "blue", "green"] * 10,
            "age": rng.normal(100, 50, size=30),
        }
    )
    columns = make_column_transformer(
        (StandardScaler(), ["size", "age"]), (OneHotEncoder(), ["colour"])
    )
    union = make_pipeline(make_union(FrozenEstimator(columns.fit(table)), columns)).fit(table)
    # It has another order, a new column, and lacks one that no transformer takes.
    other = table.assign(new="new")[["new", "age", "colour", "size"]]
    expected = union.transform(other)
    assert expected.shape == (30, 10)

    model = transformer_graph(union, other, "float32")
    assert [i.name for i in model.graph.input] == ["new", "age", "colour", "size"]
    (values,) = run_onnx(model, **feeds(other, raw_inputs(other), "float32")).values()
    np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-6)


def test_a_column_transformer_of_positions_keeps_them_for_an_array(rng, run_onnx):
    table = pd.DataFrame(rng.normal([0, 10], [1, 5], size=(30, 2)), columns=["b", "a"])
    columns = fitted(make_column_transformer((StandardScaler(), [1])), X=table)
    X = table.to_numpy()
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model = transformer_graph(columns, X, "float32")
    (values,) = run_onnx(model, X=X.astype(np.float32)).values()
    np.testing.assert_allclose(values, StandardScaler().fit_transform(X[:, 1:]), rtol=1e-5)


def test_a_step_that_differs_in_float32_is_named(rng):
    X = rng.normal(size=(500, 3))
    near_zero, far_away = X, X + 1e7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        transformer_graph(fitted(StandardScaler(), PCA(2), X=near_zero), near_zero, "float32")
        transformer_graph(fitted(StandardScaler(), PCA(2), X=far_away), far_away, "float64")
    with pytest.warns(
        UserWarning, match=r"the step 'standardscaler' gives other .* feature \('x\d'\)\. .*float64"
    ):
        transformer_graph(fitted(StandardScaler(), PCA(2), X=far_away), far_away, "float32")


def test_a_step_whose_conversion_rounds_to_another_bin_is_named():
    # Values on the edges of the bins, which are rounded to the other side in float32.
    X = (np.arange(50) / 10)[:, None]
    bins = KBinsDiscretizer(7, encode="onehot-dense", strategy="uniform")
    with pytest.warns(UserWarning, match="the step 'kbinsdiscretizer' gives other values"):
        transformer_graph(fitted(bins, StandardScaler(), X=X), X, "float32")


@pytest.mark.parametrize(
    "text, letters",
    [
        ("A film from İzmir", r"'İ' \(U\+0130\)"),
        ("ODYSSEUS ΟΔΥΣΣΕΥΣ", r"'Σ' \(U\+03A3\)"),
    ],
)
def test_a_letter_that_is_made_small_otherwise_is_named_with_its_text(text, letters, run_onnx):
    texts = ["a good film", "a bad film"] * 10 + [text]
    transformers = fitted(CountVectorizer(analyzer="char"), X=texts)
    message = (
        f"the step 'countvectorizer' gives other .* in the text '{text}': ONNX does not "
        f"change {letters} to"
    )
    with pytest.warns(
        UserWarning, match=message + ".* texts with such letters.* other predictions .*str.lower"
    ):
        model = transformer_graph(transformers, texts, "float32")
    # It is written all the same; other texts, and small letters, have the same values.
    rows = np.array([[t] for t in [*texts[:2], text.lower()]], dtype=object)
    (values,) = run_onnx(model, X=rows).values()
    np.testing.assert_array_equal(values, transformers.transform(rows.ravel()).toarray())


@pytest.mark.parametrize("middle", [[], ["ΣΑ is no end"]])
def test_all_letters_that_are_made_small_otherwise_are_named(middle):
    # The larger difference is that of the first; the second is in a text of its own.
    texts = ["a good film", "a bad film"] * 10 + ["İzmir İİ", "ΣΑΣ ΣΑΣ", *middle]
    transformers = fitted(CountVectorizer(analyzer="char"), X=texts)
    with pytest.warns(UserWarning) as warned:
        transformer_graph(transformers, texts, "float32")
    assert (
        r"ONNX does not change 'İ' (U+0130), 'Σ' (U+03A3) to small letters as Python does. For "
        "texts with such letters, the exported model may give other predictions than this estimator."
    ) in str(warned[0].message)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_have_named_weights(dtype, rng):
    X = rng.normal(3, 2, size=(30, 4))
    transformers = fitted(MinMaxScaler(), StandardScaler(), X=X)
    steps = trainable_steps(transformers, dtype)
    assert steps.obstacle is None
    assert list(steps.graphs) == [0, 1]
    weights = {
        name: array for graph in steps.graphs.values() for name, array in graph.arrays.items()
    }
    assert sorted(weights) == [
        f"{step}/{what}"
        for step in ("minmaxscaler", "standardscaler")
        for what in ("offset", "scale")
    ]
    assert {array.dtype for array in weights.values()} == {np.dtype(dtype)}
    np.testing.assert_allclose(weights["standardscaler/offset"], transformers[1].mean_, rtol=1e-6)
    np.testing.assert_allclose(weights["standardscaler/scale"], transformers[1].scale_, rtol=1e-6)


def test_without_steps_there_are_no_graphs():
    steps = trainable_steps(None, "float32")
    assert (steps.graphs, steps.obstacle) == ({}, None)


@pytest.mark.parametrize(
    "step, reason",
    [
        (FunctionTransformer(np.cbrt), "skl2onnx gives no graph of it: .*FunctionTransformer"),
        (
            make_column_transformer((StandardScaler(), [0, 1])),
            "takes columns by their names or positions",
        ),
        (CountVectorizer(), "takes something else than a matrix of numbers"),
    ],
    ids=["no converter", "columns", "text"],
)
def test_the_step_that_has_no_graph_is_named_with_the_reason(step, reason, rng):
    X = (
        np.array(["red", "blue red"] * 10)
        if isinstance(step, CountVectorizer)
        else rng.normal(size=(20, 4))
    )
    transformers = fitted(step, StandardScaler(with_mean=False), X=X)
    steps = trainable_steps(transformers, "float32")
    assert list(steps.graphs) == [1]
    assert steps.obstacle == Obstacle(transformers.steps[0][0], steps.obstacle.reason)
    assert re.search(reason, steps.obstacle.reason)


@pytest.mark.parametrize("n, size", [(1, 1), (100, 100), (101, 100), (5000, 100)])
def test_a_sample_is_a_copy_of_different_rows_in_their_order(n, size):
    X = np.arange(n)[:, None]
    rows = sample(X)
    assert rows.shape == (size, 1)
    assert (np.diff(rows.ravel()) > 0).all()
    np.testing.assert_array_equal(sample(X), rows)
    rows[...] = -1
    assert X.min() == 0


@pytest.mark.parametrize("period", [2, 3, 4, 5, 7, 10])
def test_a_sample_has_every_kind_of_periodic_rows(period):
    phases = sample(np.arange(5000)[:, None]).ravel() % period
    assert set(phases.tolist()) == set(range(period))


def test_a_sample_of_text_has_rows_of_every_character():
    texts = [f"text {i}" for i in range(1000)]
    rows = sample(texts)
    places = [i for i in range(1000) if texts[i] not in rows][:4]
    for i, text in zip(places, ["é", "plain", "éü", "ü é"], strict=True):
        texts[i] = text
    expected = sorted([*rows, "é", "éü"], key=texts.index)
    for X in (texts, np.array(texts, dtype=object), pd.Series(texts)):
        assert list(sample(X)) == expected
    frame = pd.DataFrame({"number": range(1000), "text": texts})
    assert sample(frame)["text"].tolist() == expected
    # No more than as many again.
    letters = [chr(0x4E00 + i) for i in range(1000)]
    chosen = sample(letters)
    assert set(letters[:100]) <= set(chosen)
    assert len(chosen) <= 200


def test_a_sample_has_the_first_of_each_missing_value_of_a_column():
    flags = pd.Series([True, False] * 500, dtype=object)
    texts = pd.Series(["a", "b"] * 500, dtype=object)
    outside = sorted(set(range(1000)) - set(sample(pd.DataFrame({"a": range(1000)}))["a"]))
    texts[outside[:6]] = [None, None, np.nan, "", pd.NA, np.nan]
    flags[outside[6]] = None
    frame = pd.DataFrame({"row": range(1000), "text": texts, "flag": flags})
    rows = sample(frame)["row"].tolist()
    assert [i for i in outside if i in rows] == [outside[i] for i in (0, 2, 3, 4, 6)]


def multiplied(factor, n_columns):
    """Return X -> factor * X."""
    value = helper.make_tensor("factor", onnx.TensorProto.FLOAT, [], [factor])
    ports = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, n_columns])
        for name in "XY"
    ]
    node = helper.make_node("Mul", ["X", "factor"], ["Y"])
    graph = helper.make_graph([node], "multiplied", ports[:1], ports[1:], [value])
    return helper.make_model(
        graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)]
    )


FILLED = SimpleImputer(strategy="most_frequent"), OneHotEncoder()
PERIODIC = pd.DataFrame({"k": pd.Series(["x", None, "y", "x"] * 500, dtype=object)})


@pytest.mark.parametrize("n", [100, 200, 2000])
def test_none_that_an_imputer_leaves_is_named_with_its_column_and_a_cure(n, run_onnx):
    X = PERIODIC[:n].copy()
    with pytest.warns(
        UserWarning,
        match=r"the step 'onehotencoder' gives other .* \('k_None'\)\. This happens for None in "
        r"X\['k'\]: .* SimpleImputer fills None with missing_values=None only\. Write .* way: "
        r"X\['k'\] = X\['k'\]\.astype\(object\)\.fillna\(numpy\.nan\)\.$",
    ):
        transformer_graph(fitted(*FILLED, X=X), X, "float32")

    for_none = SimpleImputer(missing_values=None, strategy="most_frequent"), FILLED[1]
    nan = X.assign(k=X["k"].astype(object).fillna(np.nan))
    for cured, steps in ((nan, FILLED), (X, for_none)):
        transformers = fitted(*steps, X=cured)
        model = transformer_graph(transformers, cured, "float32")
        (values,) = run_onnx(model, k=np.array([["x"], [""], ["y"], ["x"]], object)).values()
        assert values.tolist() == [[1, 0], [1, 0], [0, 1], [1, 0]]
        assert transformers.transform(cured[:4]).toarray().tolist() == values.tolist()


def test_none_in_an_array_or_among_booleans_is_named_and_no_other_text():
    table = pd.DataFrame({"brand": ["VW", "Škoda"] * 100, "old": [True, None, False, True] * 50})
    columns = make_column_transformer(
        (OneHotEncoder(), ["brand"]), (make_pipeline(*FILLED), ["old"])
    )
    with pytest.warns(UserWarning, match=r"This happens for None in X\['old'\]: "):
        transformer_graph(fitted(columns, X=table), table, "float32")

    rows = PERIODIC[:40].to_numpy()
    with pytest.warns(UserWarning, match=r"for None in X\[:, 0\]: .* is missing in one way\.$"):
        transformer_graph(fitted(*FILLED, X=rows), rows, "float32")


def test_the_empty_text_beside_nan_is_named():
    X = pd.DataFrame({"k": ["x", "x", "", "y", np.nan] * 20})
    with pytest.warns(
        UserWarning, match=r"for the empty text in X\['k'\]: .* X\['k'\]\.replace\('', numpy\.nan\)"
    ):
        transformer_graph(fitted(*FILLED, X=X), X, "float32")


def test_letters_are_blamed_only_where_a_step_makes_them_small():
    table = pd.DataFrame({"number": np.arange(50) + 1e8, "brand": ["Škoda"] + ["VW"] * 49})
    columns = make_column_transformer((StandardScaler(), ["number"]), (OneHotEncoder(), ["brand"]))
    with pytest.warns(UserWarning, match=r"'standardscaler__number'\)\. The predictions of "):
        transformer_graph(fitted(columns, X=table), table, "float32")


def test_none_with_which_a_file_fails_is_named(capfd):
    X = PERIODIC[:100]
    constant = SimpleImputer(strategy="constant", fill_value="other")
    with pytest.raises(
        NotExportableError,
        match=r"'onehotencoder' .* Unknown Category .*\. This happens for None in X\['k'\]: .*nan\)\.$",
    ):
        transformer_graph(fitted(constant, OneHotEncoder(), X=X), X, "float32")
    assert capfd.readouterr().err == ""


def test_none_and_nan_among_booleans_are_no_categories_of_a_file():
    X = pd.DataFrame({"old": pd.Series([True, None, False, np.nan] * 10, dtype=object)})
    with pytest.raises(NotExportableError, match=r"its categories have None and NaN, .* as NaN"):
        transformer_graph(fitted(OneHotEncoder(), X=X), X, "float32")


def test_a_text_that_no_file_has_is_no_filling():
    X = pd.DataFrame({"k": pd.Series(["x", None, None, np.nan] * 10, dtype=object)})
    with pytest.raises(
        NotExportableError,
        match=r"'simpleimputer' cannot .* it fills texts with None, .* X\.fillna\(numpy\.nan\)",
    ):
        transformer_graph(fitted(*FILLED, X=X), X, "float32")


@pytest.mark.parametrize("value", [10115, True, 0.5], ids=["integer", "bool", "float"])
@pytest.mark.parametrize("names", [["city", "value"], ["value", "city"]], ids="-".join)
@pytest.mark.parametrize("step", ["pipeline", "columntransformer"])
def test_an_imputer_of_numbers_and_texts_names_both(value, names, step, run_onnx):
    X = pd.DataFrame({"city": ["Rome", "Oslo", None, "Rome"] * 10, "value": [value, 0] * 20})
    X = X.astype({"value": type(value)})[names]
    encoder = OneHotEncoder(sparse_output=False)
    pipeline = make_pipeline(SimpleImputer(strategy="most_frequent"), encoder)
    X["city"] = X["city"].astype(object).fillna(np.nan)
    whole = pipeline if step == "pipeline" else make_column_transformer((pipeline, names))
    with pytest.raises(NotExportableError) as raised:
        transformer_graph(fitted(whole, X=X), X, "float32")
    assert str(raised.value) == (
        f"estimator: the step '{step}' cannot be part of an ONNX model in float32: SimpleImputer "
        "gets numbers (value) and texts (city) together. Give each kind a transformer of its own, "
        "or make texts of the numbers before, as X.astype({'value': str}) does. Replace the step, "
        "to keep one file; or put it in a Pipeline before this estimator, and the file takes what "
        "the step returns."
    )

    apart = make_column_transformer((pipeline, ["city"]), (encoder, ["value"]))
    for cured, rows in ((whole, X.astype({"value": str})), (apart, X)):
        transformers = fitted(cured, X=rows)
        model = transformer_graph(transformers, rows, "float32")
        (values,) = run_onnx(model, **feeds(rows, raw_inputs(rows), "float32")).values()
        np.testing.assert_array_equal(values, transformers.transform(rows))


def test_an_imputer_of_numbers_and_texts_that_fills_one_text_has_no_names_to_tell():
    X = pd.DataFrame({"value": [1, 2] * 20, "city": ["Rome", "Oslo"] * 20})
    constant = SimpleImputer(strategy="constant", fill_value="other")
    whole = make_column_transformer((make_pipeline(constant, OneHotEncoder()), [0, 1]))
    with pytest.raises(
        NotExportableError,
        match=r"SimpleImputer gets numbers and texts together\. .* as X\.astype\(str\) does\.",
    ):
        transformer_graph(fitted(whole, X=X), X, "float32")


def test_a_column_whose_name_no_file_has_is_named(rng):
    X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["", "b"])
    with pytest.raises(NotExportableError, match="ValueError: X has a column whose name is empty"):
        transformer_graph(fitted(StandardScaler(), X=X), X, "float32")


@pytest.mark.parametrize(
    "encoder", [OneHotEncoder(), OneHotEncoder(handle_unknown="ignore"), OrdinalEncoder()], ids=str
)
def test_categories_that_are_dates_are_named(encoder):
    X = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=40)})
    with pytest.raises(
        NotExportableError,
        match=r"its categories are dates or times, .* as X\.astype\(str\) does\.",
    ):
        transformer_graph(fitted(encoder, X=X), X, "float32")
    texts = X.assign(day=X["day"].astype(str))
    transformer_graph(fitted(encoder, X=texts), texts, "float32")


@pytest.mark.parametrize("step", [SimpleImputer(), StandardScaler(), MinMaxScaler()], ids=str)
def test_a_step_that_takes_dates_for_numbers_is_refused(step):
    X = pd.DataFrame({"size": np.arange(40.0), "day": pd.date_range("2024-01-01", periods=40)})
    columns = make_column_transformer((step, ["day"]), remainder="passthrough")
    with pytest.raises(DatesError) as error:
        transformer_graph(fitted(columns, X=X), X, "float32")
    assert error.value.args == ("day",)


@pytest.mark.parametrize("step", [SimpleImputer(), StandardScaler(), MinMaxScaler()], ids=str)
def test_texts_that_a_step_takes_for_numbers_are_numbers_in_the_file(step, rng, run_onnx):
    values = rng.normal(20, 5, size=40).round(2)
    X = pd.DataFrame({"price": [f"{value:.2f}" for value in values], "shop": ["a", "b"] * 20})
    columns = make_column_transformer((step, ["price"]), (OneHotEncoder(), ["shop"]))
    transformers = fitted(columns, X=X)
    model = transformer_graph(transformers, X, "float32")
    given = {"price": values[:, None].astype(np.float32), "shop": X[["shop"]].to_numpy(object)}
    (result,) = run_onnx(model, **given).values()
    np.testing.assert_allclose(result, transformers.transform(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix])
def test_the_difference_is_in_standard_deviations_of_a_column(container, rng):
    X = rng.normal(size=(50, 3)) * [1, 10, 100]
    X[:, 2] = 0
    model = multiplied(1.5, 3)
    expected = 0.5 * np.abs(X[:, :2]) / X[:, :2].std(axis=0)
    row, column = np.unravel_index(expected.argmax(), expected.shape)
    difference = largest_difference(container(X), model, container(X), raw_inputs(X), "float32")
    largest = pytest.approx(expected.max(), rel=1e-5)
    assert difference == Difference(largest, column, row, rows=tuple(range(50)))
    assert (
        largest_difference(container(1.5 * X), model, container(X), raw_inputs(X), "float32").size
        < 1e-6
    )


def test_long_texts_are_compared_in_small_blocks(monkeypatch):
    texts = ["a text"] * 20 + ["word " * 2**14] + ["another one"] * 20
    vectorizer = CountVectorizer().fit(texts)
    sizes, run = [], InferenceModel.run
    monkeypatch.setattr(
        InferenceModel, "run", lambda self, *a: sizes.append(len(a[1]["X"])) or run(self, *a)
    )
    inputs = raw_inputs(texts)
    model = to_onnx(vectorizer, inputs, "float32")
    assert (
        largest_difference(vectorizer.transform(texts), model, texts, inputs, "float32").size == 0
    )
    # The longest has 81,920 characters.
    assert sizes == [3] * 13 + [2]


@pytest.mark.filterwarnings("ignore:Degrees of freedom")
def test_what_is_missing_is_not_compared():
    X = np.array([[1.0, np.nan], [2.0, 5.0], [np.nan, 7.0]])
    assert largest_difference(X, multiplied(1, 2), X, raw_inputs(X), "float32").size == 0


def test_other_shapes_and_infinities_are_errors():
    X = np.ones((3, 2))
    with pytest.raises(UnlikeError, match="something else than its transform"):
        largest_difference(X[:, :1], multiplied(1, 2), X, raw_inputs(X), "float32")
    with pytest.raises(UnlikeError, match="infinities"):
        largest_difference(X, multiplied(np.inf, 2), X, raw_inputs(X), "float32")


def test_no_large_part_of_a_sparse_x_is_dense_at_once(monkeypatch):
    X = scipy.sparse.random(12, 2**17, density=1e-4, format="csr", random_state=0)
    sizes, toarray = [], scipy.sparse.csr_matrix.toarray
    monkeypatch.setattr(
        scipy.sparse.csr_matrix,
        "toarray",
        lambda self, *a, **k: sizes.append(self.shape[0]) or toarray(self, *a, **k),
    )
    assert largest_difference(X, multiplied(1, 2**17), X, raw_inputs(X), "float32").size < 1e-5
    assert set(sizes) == {2}


@pytest.mark.parametrize(
    "selector",
    [
        SelectKBest(k=1),
        SelectFromModel(LogisticRegression(), max_features=1),
        VarianceThreshold(2.0),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("column", [0, 1])
def test_a_selector_may_keep_one_column_whichever(column, selector, rng, run_onnx):
    X = rng.normal(size=(60, 3)).astype(np.float32)
    X[:, column] *= 2
    transformers = fitted(selector, X=X, y=X[:, column] > 0)
    (values,) = run_onnx(transformer_graph(transformers, X, "float32"), X=X).values()
    np.testing.assert_array_equal(values, X[:, [column]])


@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
@pytest.mark.parametrize("add_indicator", [False, True])
@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent"])
def test_an_imputer_drops_a_column_without_values(strategy, add_indicator, rng, run_onnx):
    X = rng.normal(size=(30, 3)).astype(np.float32)
    X[:, 1] = np.nan
    X[::4, 2] = np.nan
    imputer = SimpleImputer(strategy=strategy, add_indicator=add_indicator)
    transformers = fitted(imputer, StandardScaler(), X=X)
    (values,) = run_onnx(transformer_graph(transformers, X, "float32"), X=X).values()
    expected = transformers.transform(X)
    assert expected.shape[1] == (4 if add_indicator else 2)
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)
