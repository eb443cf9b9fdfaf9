"""Encoders of categories as ONNX, against scikit-learn's, on rows that no fit has seen."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

from skort.exceptions import NotExportableError
from skort.graphs.sklearn.conversion import to_onnx
from skort.graphs.sklearn.raw_inputs import RawInput, feeds, raw_inputs
from skort.graphs.sklearn.transformers import transformer_graph
from skort.runtime.sessions import InferenceModel

rng = np.random.default_rng(0)
# Rare categories, missing text and numbers, halves, bools, and integers.
X = pd.DataFrame(
    {
        "text": rng.choice(list("abcde"), 60, p=[0.4, 0.3, 0.2, 0.05, 0.05]),
        "gaps": rng.choice(np.array(["x", "y", np.nan], object), 60),
        "half": rng.choice([0.5, 1, 2, np.nan], 60),
        "flag": rng.integers(0, 2, 60).astype(bool),
        "whole": rng.integers(-2, 5, 60),
    }
)
Y = rng.integers(0, 3, 60)
NEW = pd.DataFrame(
    {
        "text": ["new", "", "a", "e", "b"],
        "gaps": [np.nan, "x", "new", "y", "y"],
        "half": [np.nan, -1.0, 1.5, 1e30, 1.0],
        "flag": [True, False, True, True, False],
        "whole": [99, -1, 0, 2, -2],
    }
)


def both(transformer, new, dtype, y=Y, columns=X):
    """Return the result of the ONNX model of a fitted transformer, and scikit-learn's."""
    part = make_pipeline(make_column_transformer((transformer, list(columns.columns))))
    part.fit(columns, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = transformer_graph(part, columns, dtype)

    expected = result_or_error(lambda: part.transform(new))
    name = model.graph.output[0].name
    given_rows = feeds(new, raw_inputs(columns), dtype)
    values = result_or_error(lambda: InferenceModel(model).run(name, given_rows))
    return values, expected.toarray() if hasattr(expected, "toarray") else expected


def result_or_error(call):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except Exception as error:  # the runtime raises errors of many kinds
        return error


def assert_alike(values, expected, dtype):
    """An error stands for an error, and numbers for the same numbers."""
    if isinstance(values, Exception) or isinstance(expected, Exception):
        assert isinstance(values, Exception), values
        assert isinstance(expected, Exception), expected
        return
    tolerance = 1e-5 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)


GROUPS = [{}, {"min_frequency": 5}, {"max_categories": 3}]
ENCODERS = [
    *(
        OneHotEncoder(handle_unknown=new, drop=drop, **groups)
        for new in ("error", "ignore", "infrequent_if_exist", "warn")
        for drop in (None, "first", "if_binary")
        for groups in GROUPS
    ),
    *(
        OrdinalEncoder(**new, **missing, **groups)
        for new in (
            {},
            {"handle_unknown": "use_encoded_value", "unknown_value": -1},
            {"handle_unknown": "use_encoded_value", "unknown_value": np.nan},
        )
        for missing in ({}, {"encoded_missing_value": -2})
        for groups in GROUPS
    ),
    TargetEncoder(),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda e: " ".join(str(e).split()))
def test_new_categories_and_missing_values_are_encoded_as_in_scikit_learn(encoder, dtype):
    for rows in (NEW, X, NEW.iloc[[0]], NEW.iloc[[4]]):
        assert_alike(*both(encoder, rows, dtype), dtype)


def test_a_new_category_is_an_error_where_scikit_learn_raises_one():
    for encoder in (OneHotEncoder(), OrdinalEncoder()):
        values, expected = both(encoder, NEW, "float32")
        assert isinstance(expected, ValueError)
        assert isinstance(values, Exception)


def test_targets_of_two_kinds():
    for y in (Y > 0, rng.normal(size=60)):
        assert_alike(*both(TargetEncoder(), NEW, "float32", y), "float32")


def test_categories_that_are_one_number_in_float32_are_refused():
    encoder = OneHotEncoder().fit([[2**24], [2**24 + 1]])
    with pytest.raises(NotExportableError, match=r'2 categories are one number .*dtype="float64"'):
        to_onnx(encoder, (RawInput("X", False, 1),), "float32")
    to_onnx(encoder, (RawInput("X", False, 1),), "float64")


def test_empty_text_beside_missing_text_is_refused():
    encoder = OrdinalEncoder().fit(pd.DataFrame({"city": ["", np.nan, "Oslo"]}))
    with pytest.raises(NotExportableError, match=r"no missing text\. Replace what is missing"):
        to_onnx(encoder, (RawInput("city", True, 1),), "float32")


# Missing text is "" in a file: "" itself stands for nothing else here.
NEW_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.sampled_from(["a", "e", "new", "A", "1", "nan", "é"]),
            "gaps": st.sampled_from(["x", "y", "new", "None", np.nan]),
            "half": st.sampled_from([0.5, 1.0, 1.5, -1.0, 0.0, 1e30, -1e30, np.nan]),
            "flag": st.booleans(),
            "whole": st.sampled_from([-2, 0, 4, 99, -(2**30)]),
        }
    ),
    min_size=1,
    max_size=6,
).map(lambda rows: pd.DataFrame(rows).astype({"text": object, "gaps": object}))


@pytest.mark.slow
@given(st.sampled_from(ENCODERS), NEW_ROWS, st.sampled_from(["float32", "float64"]))
def test_any_rows_are_encoded_as_in_scikit_learn(encoder, rows, dtype):
    assert_alike(*both(encoder, rows, dtype), dtype)


NUMBERS = pd.DataFrame(rng.normal(3, 2, (60, 3)), columns=list("abc"))
GAPS = NUMBERS.mask(rng.random((60, 3)) < 0.2)
OF_NUMBERS = [
    *((Normalizer(norm), NUMBERS) for norm in ("l1", "l2", "max")),
    *(
        (KBinsDiscretizer(n_bins, encode=encode, strategy=strategy), NUMBERS)
        for n_bins in (2, 5)
        for encode in ("onehot", "ordinal")
        for strategy in ("uniform", "kmeans")
    ),
    *((scaler, NUMBERS) for scaler in (StandardScaler(), RobustScaler(), MaxAbsScaler())),
    *((MinMaxScaler(clip=clip), NUMBERS) for clip in (False, True)),
    *((SimpleImputer(add_indicator=add), GAPS) for add in (False, True)),
    *((KNNImputer(weights=weights), GAPS) for weights in ("uniform", "distance")),
]
NUMBER = st.sampled_from([0.0, -0.0, 1.0, -7.25, 3.5, 1e-20, 1e15, -1e15, 2.75])


@pytest.mark.slow
@given(
    st.sampled_from(OF_NUMBERS),
    st.lists(st.tuples(NUMBER, NUMBER, NUMBER), min_size=1, max_size=6),
    st.sampled_from([None, "a", "b"]),
    st.sampled_from(["float32", "float64"]),
)
def test_any_numbers_are_transformed_as_in_scikit_learn(case, rows, missing, dtype):
    transformer, columns = case
    new = pd.DataFrame(rows, columns=list("abc"))
    if missing and columns is GAPS:
        new[missing] = np.nan
    values, expected = both(transformer, new, dtype, columns=columns)
    if isinstance(transformer, KNNImputer):
        # Far from all neighbours, rounding decides which of them are nearest.
        near = (new.abs().fillna(0) < 10).all(axis=1).to_numpy()
        values, expected = values[near], expected[near]
    assert_alike(values, expected, dtype)
