"""Statistics of partitions, merged, against scikit-learn's fit to all rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

pytest.importorskip("distributed")

import dask.dataframe as dd

import skort
from skort.dask import OrtSGDRegressor
from skort.dask.fitted_steps import statistic_of

TEXT = ["a", "b", "c", "d"]


def merged_fit(step, parts):
    statistic = statistic_of(step)
    values = [statistic.collected(clone(step), part) for part in parts]
    return statistic.fitted(clone(step), statistic.merged(values), parts[0][:3])


@pytest.fixture
def numbers(rng):
    X = rng.normal(size=(101, 5)) * [1, 100, 1e-3, 1, 0] + [0, 1e3, 5, -2, 7]
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 4] = 7.0
    return X


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        MinMaxScaler((-1, 2)),
        MaxAbsScaler(),
        SimpleImputer(),
        SimpleImputer(strategy="most_frequent"),
        SimpleImputer(strategy="constant", fill_value=3.0),
    ],
    ids=repr,
)
def test_numbers(step, numbers):
    parts = np.split(numbers, [1, 40, 41])
    expected, found = clone(step).fit(numbers), merged_fit(step, parts)
    np.testing.assert_allclose(
        found.transform(numbers), expected.transform(numbers), rtol=1e-10, atol=1e-10
    )
    for name in (
        "mean_",
        "var_",
        "scale_",
        "data_range_",
        "max_abs_",
        "statistics_",
        "n_samples_seen_",
    ):
        if getattr(expected, name, None) is not None:
            own, theirs = (
                np.asarray(getattr(each, name), dtype=float) for each in (found, expected)
            )
            np.testing.assert_allclose(own, theirs, rtol=1e-10, err_msg=name)


@pytest.mark.parametrize("step", [StandardScaler(with_mean=False), MaxAbsScaler()], ids=repr)
def test_sparse_rows(step, rng):
    X = scipy.sparse.random(60, 8, 0.2, format="csr", random_state=0)
    expected, found = clone(step).fit(X), merged_fit(step, [X[:7], X[7:]])
    np.testing.assert_allclose(
        found.transform(X).toarray(), expected.transform(X).toarray(), rtol=1e-10
    )


@pytest.mark.parametrize(
    "step",
    [
        OneHotEncoder(),
        OneHotEncoder(drop="if_binary", sparse_output=False),
        OneHotEncoder(handle_unknown="ignore", categories=[TEXT, [1, 2, 3]]),
        OrdinalEncoder(),
        SimpleImputer(strategy="most_frequent"),
        SimpleImputer(strategy="constant", fill_value="?"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("as_frame", [False, True])
def test_categories(step, as_frame, rng):
    X = np.column_stack([rng.choice(TEXT, 50), rng.integers(1, 4, 50).astype(object)]).astype(
        object
    )
    if isinstance(step, SimpleImputer):
        # Ties: the smallest value.
        X = np.array(
            [["b", "a"], ["b", "c"], ["a", np.nan], ["a", "c"], [np.nan, "a"]], dtype=object
        )
    parts = [X[:1], X[1:4], X[4:]]
    if as_frame:
        X, *parts = (pd.DataFrame(each, columns=["x", "z"]) for each in (X, *parts))
    expected, found = clone(step).fit(X), merged_fit(step, parts)
    wanted, transformed = expected.transform(X), found.transform(X)
    if scipy.sparse.issparse(wanted):
        wanted, transformed = wanted.toarray(), transformed.toarray()
    np.testing.assert_array_equal(np.asarray(transformed), np.asarray(wanted))
    for name, value in vars(expected).items():
        if name == "categories_":
            for own, theirs in zip(found.categories_, value, strict=True):
                assert own.tolist() == theirs.tolist()


def test_missing_categories():
    X = np.array([[1.0], [np.nan], [3.0], [1.0]])
    found = merged_fit(OrdinalEncoder(encoded_missing_value=-1), [X[:1], X[1:]])
    np.testing.assert_array_equal(found.transform(X), [[0], [-1], [1], [0]])


def test_a_column_that_is_empty_everywhere_or_in_one_partition():
    X = np.array([[np.nan, np.nan, 1.0], [np.nan, 2.0, 3.0], [np.nan, 4.0, np.nan]])
    step = SimpleImputer()
    with pytest.warns(UserWarning, match="Skipping features without any observed values"):
        expected = clone(step).fit(X).transform(X)
    with pytest.warns(UserWarning, match="Skipping features without any observed values"):
        np.testing.assert_allclose(merged_fit(step, [X[:1], X[1:]]).transform(X), expected)


@pytest.mark.parametrize(
    "step",
    [
        SimpleImputer(strategy="median"),
        SimpleImputer(add_indicator=True),
        OneHotEncoder(min_frequency=3),
    ],
)
def test_no_statistic(step):
    assert statistic_of(step) is None


@pytest.mark.parametrize(
    "encoder",
    [OneHotEncoder(), make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())],
    ids=["encoder", "imputer"],
)
def test_a_missing_text_has_the_error_of_rows_in_memory(client, encoder):
    # The missing text is in the last partition only.
    table = pd.DataFrame({"area": np.arange(300.0), "city": ["a", "b", "c"] * 100})
    table.loc[299, "city"] = None
    collection = dd.from_pandas(table, npartitions=3)
    X, y = collection[["area", "city"]], collection["area"]

    steps = make_column_transformer((encoder, ["city"]), remainder="passthrough")
    parameters = {"estimator": make_pipeline(steps, LinearRegression()), "max_iter": 2}
    with pytest.raises(ValueError) as of_memory:
        skort.OrtSGDRegressor(**parameters).fit(X.compute(), y.compute())
    with pytest.raises(ValueError) as of_partitions:
        OrtSGDRegressor(**parameters).fit(X, y)

    assert "column 'city'" in str(of_memory.value) and "fillna(" in str(of_memory.value)
    assert str(of_partitions.value) == str(of_memory.value)


def test_text_for_a_step_of_numbers_names_its_column(client):
    table = pd.DataFrame({"area": np.arange(60.0), "city": ["a", "b", "c"] * 20})
    collection = dd.from_pandas(table, npartitions=2)
    model = OrtSGDRegressor(make_pipeline(StandardScaler(), LinearRegression()))
    with pytest.raises(ValueError, match=r"text in column 'city', such as 'a'.*OneHotEncoder"):
        model.fit(collection, collection["area"])
