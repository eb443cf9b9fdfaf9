"""The columns that vectorizers take, in each form that a `ColumnTransformer` knows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder

from skort.estimators.data.documents import columns_of_documents

TABLE = pd.DataFrame({"city": ["a", "b"], "age": [1.0, 2.0], "note": ["x y", "z"]})


def steps(vectorizer, columns):
    encoder = ("city", OneHotEncoder(), ["city"] if isinstance(columns, str) else [0])
    dropped = [("rest", "drop", [1]), ("same", "passthrough", [1])]
    return ColumnTransformer([encoder, ("note", vectorizer, columns), *dropped])


@pytest.mark.parametrize(
    "columns",
    [
        "note",
        2,
        -1,
        ["note"],
        [2],
        np.array([2]),
        slice(2, None),
        [False, False, True],
        make_column_selector("note"),
        lambda X: "note",
    ],
)
def test_every_form_of_columns_is_read(columns):
    assert columns_of_documents(steps(TfidfVectorizer(), columns), TABLE) == ["note"]


@pytest.mark.parametrize(
    "vectorizer",
    [
        CountVectorizer(),
        HashingVectorizer(),
        make_pipeline(TfidfVectorizer(), MaxAbsScaler()),
        FeatureUnion([("words", TfidfVectorizer()), ("letters", CountVectorizer(analyzer="char"))]),
        FrozenEstimator(TfidfVectorizer()),
    ],
)
def test_vectorizers_are_known_inside_other_steps(vectorizer):
    inside = make_pipeline(steps(vectorizer, "note"), MaxAbsScaler())
    assert columns_of_documents(inside, TABLE) == ["note"]


def test_columns_of_an_array_are_numbers():
    assert columns_of_documents(steps(TfidfVectorizer(), 2), TABLE.to_numpy()) == [2]


@pytest.mark.parametrize(
    "of, X",
    [
        (steps(OneHotEncoder(), ["note"]), TABLE),
        (TfidfVectorizer(), TABLE["note"]),
        (make_pipeline(MaxAbsScaler(), steps(TfidfVectorizer(), 0)), TABLE),
        (steps(TfidfVectorizer(), "note"), ["a", "b"]),
    ],
)
def test_other_steps_give_no_column_to_a_vectorizer(of, X):
    assert columns_of_documents(of, X) == []
