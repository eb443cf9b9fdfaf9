"""Gaps that are filled from neighbours, in an ONNX model as in scikit-learn."""

import numpy as np
import pytest
from sklearn.impute import KNNImputer

from skort.exceptions import NotExportableError
from skort.graphs.sklearn.conversion import to_onnx
from skort.graphs.sklearn.raw_inputs import RawInput

INPUTS = (RawInput("X", False, 4),)


def gaps(rng, marker, n_rows, part):
    X = rng.normal(size=(n_rows, 4))
    return np.where(rng.random(X.shape) < part, marker, X)


@pytest.mark.parametrize("dtype, atol", [("float32", 1e-4), ("float64", 1e-12)])
@pytest.mark.parametrize("marker", [np.nan, -1.0])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"weights": "distance"},
        {"n_neighbors": 100},
        {"add_indicator": True},
        {"keep_empty_features": True},
    ],
    ids=str,
)
def test_new_rows_are_filled_as_in_scikit_learn(parameters, marker, dtype, atol, rng, run_onnx):
    X = gaps(rng, marker, 60, 0.2)
    # A column without a value, and a row without one.
    X[:, 1] = marker
    new = gaps(rng, marker, 30, 0.4)
    new[0] = marker
    imputer = KNNImputer(missing_values=marker, **parameters).fit(X)
    (values,) = run_onnx(to_onnx(imputer, INPUTS, dtype), X=new.astype(dtype)).values()
    np.testing.assert_allclose(values, imputer.transform(new), atol=atol)


@pytest.mark.parametrize("parameters", [{"weights": np.ones_like}, {"metric": lambda a, b: 0.0}])
def test_a_python_function_is_refused_by_name(parameters, rng):
    (name,) = parameters
    imputer = KNNImputer(**parameters).fit(gaps(rng, np.nan, 20, 0.2))
    with pytest.raises(NotExportableError, match=f"KNNImputer: {name} is a Python function"):
        to_onnx(imputer, INPUTS, "float32")
