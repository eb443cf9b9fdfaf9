"""Converters of skort's own, and what skl2onnx's are given."""

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import PolynomialFeatures

from skort.graphs.sklearn.conversion import to_onnx
from skort.graphs.sklearn.raw_inputs import RawInput


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-13)])
@pytest.mark.parametrize(
    "parameters", [{}, {"degree": (2, 3)}, {"interaction_only": True}, {"include_bias": False}]
)
def test_polynomials(parameters, dtype, rtol, rng, run_onnx):
    X = rng.normal(size=(20, 4)).astype(dtype)
    polynomial = PolynomialFeatures(**parameters).fit(X)
    (values,) = run_onnx(to_onnx(polynomial, (RawInput("X", False, 4),), dtype), X=X).values()
    np.testing.assert_allclose(values, polynomial.transform(X), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("marker", [np.nan, -1.0])
@pytest.mark.parametrize("add_indicator", [False, True])
def test_missing_numbers(add_indicator, marker, dtype, rng, run_onnx):
    X = np.where(rng.random((20, 3)) < 0.3, marker, rng.normal(size=(20, 3))).astype(dtype)
    X[:, 1] = 0.5  # no value missing: no indicator
    imputer = SimpleImputer(missing_values=marker, add_indicator=add_indicator).fit(X)
    (values,) = run_onnx(to_onnx(imputer, (RawInput("X", False, 3),), dtype), X=X).values()
    np.testing.assert_allclose(values, imputer.transform(X), rtol=1e-6)
    # Several columns as one.
    columns = tuple(RawInput(name, False, 1) for name in "abc")
    a, b, c = np.split(X, 3, axis=1)
    (values,) = run_onnx(to_onnx(imputer, columns, dtype), a=a, b=b, c=c).values()
    np.testing.assert_allclose(values, imputer.transform(X), rtol=1e-6)


@pytest.mark.parametrize("marker, cell", [(np.nan, np.nan), (None, None), ("?", "?")])
def test_missing_text(marker, cell, run_onnx):
    X = np.array([["a", "x"], [cell, "y"], ["a", cell], ["b", "y"]], dtype=object)
    imputer = SimpleImputer(missing_values=marker, strategy="most_frequent").fit(X)
    fed = np.where(np.array([[False, False], [True, False], [False, True], [False, False]]), "", X)
    fed = X if marker == "?" else fed
    (values,) = run_onnx(
        to_onnx(imputer, (RawInput("X", True, 2),), "float32"), X=fed.astype(object)
    ).values()
    assert (
        values.tolist()
        == imputer.transform(X).tolist()
        == [["a", "x"], ["a", "y"], ["a", "y"], ["b", "y"]]
    )
