"""Converters of skort's own, and what skl2onnx's are given."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA, KernelPCA
from sklearn.feature_selection import RFE
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    StandardScaler,
)

from skort.exceptions import NotExportableError
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


NEW_ROWS = np.array(
    [
        [-20.0, -6.0, 0.5],
        [0.0, 0.0, 0.0],
        [1e30, -1e30, 1.0],
        [1e-20, 0.0, 0.0],
        [-9.0, 9.0, 2.0],
    ]
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_norms_of_rows_of_any_sign_and_size(norm, dtype, run_onnx):
    normalizer = Normalizer(norm).fit(NEW_ROWS)
    model = to_onnx(normalizer, (RawInput("X", False, 3),), dtype)
    (values,) = run_onnx(model, X=NEW_ROWS.astype(dtype)).values()
    np.testing.assert_allclose(values, normalizer.transform(NEW_ROWS), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Feature 2 is constant", "ignore:Bins whose width")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("encode", ["onehot", "onehot-dense", "ordinal"])
@pytest.mark.parametrize("n_bins", [2, 5])
def test_bins_of_rows_beyond_the_edges(n_bins, encode, dtype, rng, run_onnx):
    # One of the columns has several bins, one fewer, and one a single one.
    X = np.column_stack([rng.normal(size=80), rng.integers(0, 3, 80), np.ones(80)])
    bins = KBinsDiscretizer(n_bins, encode=encode, strategy="kmeans" if n_bins == 2 else "uniform")
    expected = bins.fit(X).transform(NEW_ROWS)
    model = to_onnx(bins, (RawInput("X", False, 3),), dtype)
    (values,) = run_onnx(model, X=NEW_ROWS.astype(dtype)).values()
    np.testing.assert_array_equal(values, expected.toarray() if encode == "onehot" else expected)


@pytest.mark.parametrize("encoder", [OneHotEncoder(), OrdinalEncoder(), make_pipeline(PCA())])
def test_a_part_that_selects_no_column_is_left_out(encoder, rng, run_onnx):
    X = rng.normal(size=(20, 2))
    parts = make_column_transformer((StandardScaler(), [0, 1]), (encoder, [])).fit(X)
    model = to_onnx(parts, (RawInput("X", False, 2),), "float64")
    (values,) = run_onnx(model, X=X).values()
    np.testing.assert_allclose(values, parts.transform(X))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", ["yeo-johnson", "box-cox"])
def test_powers_leave_what_is_missing(method, dtype, rng, run_onnx):
    X = np.abs(rng.normal(size=(30, 2))) + 0.5
    X[:, 1] = np.log(X[:, 1]) if method == "yeo-johnson" else X[:, 1]
    power = PowerTransformer(method=method).fit(X)
    new = np.array([[0.25, np.nan], [np.nan, 7.0], [300.0, 1e-3]], dtype)
    model = to_onnx(power, (RawInput("X", False, 2),), dtype)
    (values,) = run_onnx(model, X=new).values()
    rtol = 1e-5 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(values, power.transform(new.astype(float)), rtol=rtol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_number_at_the_threshold_is_not_above_it(dtype, run_onnx):
    binarizer = Binarizer(threshold=0.5).fit([[0.0]])
    (values,) = run_onnx(
        to_onnx(binarizer, (RawInput("X", False, 1),), dtype), X=np.array([[0.5], [0.75]], dtype)
    ).values()
    assert values.tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "function",
    [np.exp, np.expm1, np.log, np.log1p, np.negative, np.reciprocal, np.sqrt, np.square],
)
def test_functions_of_numpy_are_as_exact_as_theirs(function, dtype, run_onnx):
    new = np.array([[1e-6, 3.0], [0.25, 7e3], [1.0, np.nan]], dtype) / 1e3
    step = FunctionTransformer(function).fit(new)
    (values,) = run_onnx(to_onnx(step, (RawInput("X", False, 2),), dtype), X=new).values()
    assert values.dtype == dtype
    # 1 + x has lost the last digits of a small x.
    rtol = 1e-6 if dtype == "float32" else 1e-6 if function in (np.log1p, np.expm1) else 1e-14
    # Old numpy's expm1 warns of NaN.
    with np.errstate(invalid="ignore"):
        expected = step.transform(new.astype(float))
    np.testing.assert_allclose(values, expected, rtol=rtol)


def test_a_function_without_onnx_is_named_with_those_that_have_it():
    step = FunctionTransformer(np.cbrt).fit(np.ones((3, 1)))
    with pytest.raises(RuntimeError, match=r"no ONNX for func=cbrt. It has for numpy's exp, expm1"):
        to_onnx(step, (RawInput("X", False, 1),), "float32")


def test_rows_of_zeros_have_no_cosine_as_onnx(rng):
    kernel = KernelPCA(n_components=2, kernel="cosine").fit(rng.normal(size=(10, 3)))
    with pytest.raises(NotExportableError, match=r"Use Normalizer\(\) before KernelPCA\(kernel"):
        to_onnx(kernel, (RawInput("X", False, 3),), "float32")


def test_a_selector_around_a_classifier_is_no_classifier(rng, run_onnx):
    X = rng.normal(size=(30, 4)).astype(np.float32)
    selector = RFE(LogisticRegression(), n_features_to_select=2).fit(X, X[:, 1] > 0)
    (values,) = run_onnx(to_onnx(selector, (RawInput("X", False, 4),), "float32"), X=X).values()
    np.testing.assert_array_equal(values, selector.transform(X))
