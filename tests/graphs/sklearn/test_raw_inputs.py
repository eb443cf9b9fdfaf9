"""Rows of all kinds as ONNX inputs."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from skort.graphs.sklearn.raw_inputs import RawInput, feeds, numeric_inputs, raw_inputs

FRAME = {
    "age": [1.5, None, 3.0],
    "city": ["a", None, "b"],
    "n": [1, 2, 3],
    "yes": [True, False, True],
}


def dataframes():
    yield pytest.param(pd.DataFrame(FRAME), id="pandas")
    nullable = {"age": "Float64", "city": "string", "n": "Int64", "yes": "boolean"}
    yield pytest.param(pd.DataFrame(FRAME).astype(nullable), id="pandas nullable")
    yield pytest.param(pd.DataFrame(FRAME).astype({"city": "category"}), id="pandas category")
    yield pytest.param(pd.DataFrame(FRAME).astype(object), id="pandas object")
    try:
        import polars
    except ImportError:
        return
    yield pytest.param(polars.DataFrame(FRAME), id="polars")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("X", [*dataframes()])
def test_a_dataframe_has_an_input_a_column(X, dtype):
    inputs = raw_inputs(X)
    assert inputs == (
        RawInput("age", False, 1),
        RawInput("city", True, 1),
        RawInput("n", False, 1),
        RawInput("yes", False, 1),
    )
    arrays = feeds(X, inputs, dtype)
    for name, values in {"age": [1.5, np.nan, 3], "n": [1, 2, 3], "yes": [1, 0, 1]}.items():
        np.testing.assert_array_equal(arrays[name], np.array(values, dtype)[:, None])
        assert arrays[name].dtype == dtype
    assert arrays["city"].tolist() == [["a"], [""], ["b"]]


@pytest.mark.parametrize(
    "X, inputs, arrays",
    [
        (np.array([[1, 2], [3, 4]]), (RawInput("X", False, 2),), {"X": [[1, 2], [3, 4]]}),
        (
            scipy.sparse.csr_matrix([[1.0, 0], [0, 4]]),
            (RawInput("X", False, 2),),
            {"X": [[1, 0], [0, 4]]},
        ),
        (np.array(["a b", "c"]), (RawInput("X", True, 1),), {"X": [["a b"], ["c"]]}),
        (
            np.array(["é".encode(), b"c"], dtype=object),
            (RawInput("X", True, 1),),
            {"X": [["é"], ["c"]]},
        ),
        (np.array([["a", "b"]]), (RawInput("X", True, 2),), {"X": [["a", "b"]]}),
        (np.array([[1, 2.5]], dtype=object), (RawInput("X", False, 2),), {"X": [[1, 2.5]]}),
        (
            np.array([["a", 2], ["b", None]], dtype=object),
            (RawInput("x0", True, 1), RawInput("x1", False, 1)),
            {"x0": [["a"], ["b"]], "x1": [[2], [np.nan]]},
        ),
    ],
    ids=["numbers", "sparse", "texts", "bytes", "text columns", "objects", "mixed"],
)
def test_arrays(X, inputs, arrays):
    assert raw_inputs(X) == inputs
    fed = feeds(X, inputs, "float32")
    assert fed.keys() == arrays.keys()
    for name, values in arrays.items():
        np.testing.assert_array_equal(fed[name], np.array(values, fed[name].dtype))


def test_a_part_of_mixed_rows_may_have_no_text():
    X = np.array([["a", 2], [None, 3]], dtype=object)
    fed = feeds(X[1:], raw_inputs(X), "float32")
    assert {name: values.tolist() for name, values in fed.items()} == {"x0": [[""]], "x1": [[3.0]]}


def test_two_columns_of_one_name_are_refused():
    X = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(ValueError, match="X has several columns of the name 'a'"):
        raw_inputs(X)


def test_a_column_without_a_name_is_refused():
    X = pd.DataFrame([[1, 2]], columns=["", "b"])
    with pytest.raises(ValueError, match="X has a column whose name is empty: rename it"):
        raw_inputs(X)


def test_texts_of_numbers_may_count_as_numbers():
    X = pd.DataFrame({"price": ["12.50", None], "zip": ["1", "x"], "size": [1.0, 2.0]})
    assert [i.is_text for i in raw_inputs(X)] == [True, True, False]
    assert [i.is_text for i in numeric_inputs(X)] == [False, True, False]


class Table(dict):
    """As of pyarrow: `columns` are values."""

    @property
    def columns(self):
        return list(self.values())

    column_names = property(list)


def test_a_table_whose_columns_are_values_has_an_input_a_column():
    X = Table(a=np.array([1.0, 2.0]), b=np.array(["u", "v"]))
    assert raw_inputs(X) == (RawInput("a", False, 1), RawInput("b", True, 1))
    fed = feeds(X, raw_inputs(X), "float32")
    assert [fed[name].tolist() for name in "ab"] == [[[1.0], [2.0]], [["u"], ["v"]]]
