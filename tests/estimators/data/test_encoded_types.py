"""The error for a column of another type than the one that an encoder was fitted on."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
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
    told = r"^Found unknown categories \[nan\] in column 0 during transform"
    with pytest.raises(ValueError, match=told):
        model.predict(frame("missing"))
