"""The error for a column of another type than the one that an encoder was fitted on."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from skort import OrtSGDRegressor

N = np.arange(60) % 3
SIZE = np.linspace(-1, 1, 60)
Y = N + SIZE
DAYS = pd.to_timedelta(N, unit="D")
COLUMNS = {
    "text": np.array(["0", "1", "2"])[N],
    "numbers": N,
    "Int64": pd.array(N, dtype="Int64"),
    "durations": DAYS,
    "dates": pd.Timestamp(2020, 1, 1) + DAYS,
    "missing": pd.array([pd.NA] * 60, dtype="Int64"),
}


def frame(kind):
    return pd.DataFrame({"size": SIZE, "code": COLUMNS[kind]})


def pipeline(encoder):
    columns = make_column_transformer((StandardScaler(), ["size"]), (encoder, ["code"]))
    return make_pipeline(columns, LinearRegression())


@pytest.mark.parametrize(
    "fitted, given, told",
    [
        ("text", "numbers", "numbers in column 'code', where {0} was fitted on text. {1}"),
        ("text", "Int64", "numbers in column 'code', where {0} was fitted on text. {1}"),
        ("text", "durations", "durations in column 'code', where {0} was fitted on text. {1}"),
        ("text", "dates", "dates in column 'code', where {0} was fitted on text. {1}"),
        ("text", "missing", "missing values in column 'code', where {0} was fitted on text. {1}"),
        ("dates", "durations", "durations in column 'code', where {0} was fitted on dates. {2}"),
        ("durations", "dates", "dates in column 'code', where {0} was fitted on durations. {2}"),
    ],
)
@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(handle_unknown="ignore"),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    ],
    ids=lambda encoder: type(encoder).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_a_column_of_another_type_is_named(encoder, fitted, given, told):
    text = "Give the column that type: X['code'] = X['code'].astype(str)."
    told = told.format(type(encoder).__name__, text, "Give the column that type.")
    inside = pipeline(encoder).fit(frame(fitted), Y)
    model = OrtSGDRegressor(pipeline(encoder), random_state=0).fit(frame(fitted), Y)
    frozen = OrtSGDRegressor(FrozenEstimator(inside), random_state=0)
    for call in (
        lambda X: model.predict(X),
        lambda X: model.partial_fit(X, Y),
        lambda X: frozen.fit(X, Y),
        lambda X: frozen.partial_fit(X, Y),
    ):
        with pytest.raises(ValueError, match=f"^X has {re.escape(told)}$"):
            call(frame(given))


def test_the_cure_works():
    model = OrtSGDRegressor(pipeline(OneHotEncoder()), random_state=0).fit(frame("text"), Y)
    X = frame("numbers")
    X["code"] = X["code"].astype(str)
    assert np.array_equal(model.predict(X), model.predict(frame("text")))
    told = r"^X has text in column 'code', .* on numbers\. .*: X\['code'\] = pandas\.to_numeric\("
    model = OrtSGDRegressor(pipeline(OneHotEncoder()), random_state=0).fit(frame("numbers"), Y)
    with pytest.raises(ValueError, match=told):
        model.predict(frame("text"))
    X = frame("text")
    X["code"] = pd.to_numeric(X["code"])
    assert np.array_equal(model.predict(X), model.predict(frame("numbers")))


def test_the_cure_of_whole_floats_gives_the_texts_of_ints():
    model = OrtSGDRegressor(pipeline(OneHotEncoder()), random_state=0).fit(frame("text"), Y)
    X = frame("numbers").astype({"code": float})
    cure = "X['code'] = X['code'].astype(str).str.removesuffix(\".0\")."
    with pytest.raises(ValueError, match=f"{re.escape(cure)}$"):
        model.predict(X)
    X["code"] = X["code"].astype(str).str.removesuffix(".0")
    assert np.array_equal(model.predict(X), model.predict(frame("text")))


def test_texts_of_floats_have_their_own_cure():
    X = frame("numbers").astype({"code": float})
    texts = X.astype({"code": str})
    model = OrtSGDRegressor(pipeline(OneHotEncoder()), random_state=0).fit(texts, Y)
    with pytest.raises(ValueError, match=r"X\['code'\]\.astype\(str\)\.$"):
        model.predict(X)
    assert np.array_equal(model.predict(X.astype({"code": str})), model.predict(texts))


TEXTS = np.array(["a", "b", "c"])[N]
TABLE = pd.DataFrame({"size": SIZE, "code": TEXTS})
FILLED = SimpleImputer(strategy="most_frequent")


@pytest.mark.parametrize(
    "steps",
    [
        [make_column_transformer((StandardScaler(), [0]), (OneHotEncoder(), slice(1, 2)))],
        [make_column_transformer((make_pipeline(FILLED, OneHotEncoder()), [1]))],
        [FILLED, make_column_transformer((OneHotEncoder(), [1]), remainder="passthrough")],
        [make_column_transformer((FrozenEstimator(OneHotEncoder().fit(TEXTS[:, None])), [1]))],
    ],
    ids=["columns", "pipeline", "after a step", "frozen"],
)
@pytest.mark.parametrize("has_names", [True, False])
@pytest.mark.filterwarnings(
    "ignore:The fitted model will have no ONNX",
    "ignore:X has feature names",
    # numpy 1.24, where scikit-learn compares numbers with text.
    "ignore:elementwise comparison failed:FutureWarning",
)
def test_the_column_is_that_of_x(steps, has_names):
    X, other = TABLE, TABLE.assign(code=N)
    told = (
        "X has numbers in column {}, where OneHotEncoder was fitted on text. Give the column that "
    )
    told = told.format("'code'") + "type: X['code'] = X['code'].astype(str)."
    if not has_names:
        X, other = X.to_numpy(), other.to_numpy()
        told = "X has numbers in column 1, where OneHotEncoder was fitted on text. Give the column that type."
    model = OrtSGDRegressor(make_pipeline(*steps, LinearRegression()), random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=f"^{re.escape(told)}$"):
        model.predict(other)


@pytest.mark.filterwarnings("ignore:The fitted model will have no ONNX")
def test_a_column_that_steps_have_made_has_no_name():
    encoded = make_column_transformer((OneHotEncoder(), [1]))
    moved = make_column_transformer((StandardScaler(), ["size"]), ("passthrough", ["code"]))
    model = OrtSGDRegressor(make_pipeline(moved, encoded, LinearRegression()), random_state=0)
    model.fit(TABLE, Y)
    told = "The steps before the model make numbers of a column, where OneHotEncoder was fitted on text."
    with pytest.raises(ValueError, match=f"^{told} Give X the types of the fit\\.$"):
        model.predict(TABLE.assign(code=N))


def test_a_frozen_encoder_in_a_step_that_is_not_fitted_is_told():
    frozen = FrozenEstimator(OneHotEncoder().fit(TABLE[["code"]]))
    told = r"^X has numbers in column 'code', where OneHotEncoder was fitted on text\. Give the"
    with pytest.raises(ValueError, match=told):
        OrtSGDRegressor(pipeline(frozen)).fit(frame("numbers"), Y)


@pytest.mark.parametrize("given", [N, N.astype(float), pd.array(N, dtype="Int64")], ids=range(3))
def test_numbers_are_told_where_numbers_as_objects_were_fitted(given):
    fitted = frame("numbers").assign(code=N.astype(object))
    model = OrtSGDRegressor(pipeline(OneHotEncoder()), random_state=0).fit(fitted, Y)
    X = fitted.assign(code=given)
    dtype = X["code"].dtype
    told = (
        f"X has values of dtype {dtype} in column 'code', where OneHotEncoder was fitted on objects. "
        "Give the column that type: X['code'] = X['code'].astype(object)."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(told)}$"):
        model.predict(X)
    X["code"] = X["code"].astype(object)
    assert np.array_equal(model.predict(X), model.predict(fitted))


def test_bytes_in_place_of_text_are_decoded():
    model = OrtSGDRegressor(pipeline(OneHotEncoder()), random_state=0).fit(TABLE, Y)
    X = TABLE.assign(code=[text.encode() for text in TEXTS])
    told = r"values of type bytes in column 'code', .*: X\['code'\] = X\['code'\]\.str\.decode\(\"utf-8\"\)\.$"
    with pytest.raises(ValueError, match=told):
        model.predict(X)
    X["code"] = X["code"].str.decode("utf-8")
    assert np.array_equal(model.predict(X), model.predict(TABLE))


def test_columns_of_polars_are_told():
    polars = pytest.importorskip("polars")
    X = polars.DataFrame({"size": SIZE, "code": TEXTS})
    model = OrtSGDRegressor(pipeline(OneHotEncoder()), random_state=0).fit(X, Y)
    told = r"^X has numbers in column 'code', .* was fitted on text\. Give the column that type\.$"
    with pytest.raises(ValueError, match=told):
        model.predict(X.with_columns(polars.Series("code", N)))
    told = r"^Found unknown categories \['z'\] in column 0 during transform, column 'code' of X\."
    with pytest.raises(ValueError, match=told):
        model.predict(X.with_columns(polars.lit("z").alias("code")))


def test_new_categories_are_told_with_their_column_whatever_they_are():
    periods = frame("dates")
    periods["code"] = periods["code"].dt.to_period("D")
    model = OrtSGDRegressor(pipeline(OneHotEncoder()), random_state=0).fit(periods, Y)
    new = periods.assign(code=periods["code"] + 10)
    told = (
        r"^Found unknown categories \[Period\(.* in column 0 during transform, column 'code' of X\."
    )
    with pytest.raises(ValueError, match=told):
        model.predict(new)
    model = OrtSGDRegressor(pipeline(OneHotEncoder()), random_state=0).fit(frame("numbers"), Y)
    told = r"^Found unknown categories \[7\] in column 0 during transform, column 'code' of X\."
    with pytest.raises(ValueError, match=told):
        model.predict(frame("numbers").replace({"code": {1: 7}}))
    told = r"^Found unknown categories \[nan\] in column 0 during transform"
    with pytest.raises(ValueError, match=told):
        model.predict(frame("missing"))
