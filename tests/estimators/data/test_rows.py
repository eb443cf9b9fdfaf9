"""
X and y that skip scikit-learn's validation give the same results,
errors and warnings as with it.
"""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.data import rows as rows_module
from skort.estimators.data.rows import (
    TrainingData,
    blocks,
    is_plain,
    kept_dtypes,
    knowing,
    plain_rows,
    prepared,
    training_rows,
)
from skort.estimators.model.wrapped import Preprocessing

X = np.random.default_rng(0).normal(size=(20, 3))
Y = (X[:, 0] > 0).astype(int)
PLAIN = [
    X,
    X.astype(np.float32),
    np.asfortranarray(X),
    X[::2],
    X.astype(np.float16),
    X.astype(">f8"),
    X.astype(np.longdouble),
    X > 0,
    (9 * X).astype(np.int64),
    (X > 0).astype(np.uint8),
    np.zeros((1, 3)),
    np.broadcast_to(X[0], (4, 3)),
    1e30 * X,
]
# Taken, or refused, by a closer look.
OTHERS = [
    (1e30 * X).astype(np.float32),
    1e300 * X,
    np.where(X > 1, np.nan, X),
    np.where(X > 1, -np.inf, X),
    np.where(X > 1, np.inf, np.where(X < -1, -np.inf, X)),
    X[:, :2],
    X[:0],
    X[0],
    X[None],
    np.float64(1),
    X + 1j,
    X.astype(object),
    X.astype(str),
    np.full(X.shape, "text"),
    X.tolist(),
    np.ma.masked_array(X),
    pd.DataFrame(X, columns=list("abc")),
    pd.DataFrame(X),
    scipy.sparse.csr_matrix(X),
    scipy.sparse.coo_array(X),
    None,
    "text",
]


def described(rows):
    """Return the name of a case."""
    return f"{type(rows).__name__}-{getattr(rows, 'dtype', '')}-{getattr(rows, 'shape', '')}"


def told(call):
    """Return what a call gives, or the error that it raises, and its warnings."""
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        try:
            result = call()
        except Exception as error:
            result = type(error), str(error)
    return result, [(w.category, str(w.message)) for w in record]


@pytest.fixture(scope="module", params=[OrtSGDRegressor, OrtSGDClassifier])
def fitted(request):
    return request.param(max_iter=2, tol=None, random_state=0).fit(X, Y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", PLAIN, ids=described)
def test_plain_rows_are_those_of_scikit_learn(fitted, rows, dtype):
    expected = validate_data(fitted, rows, reset=False, dtype=kept_dtypes(rows, dtype), order="C")
    plain = plain_rows(fitted, rows, dtype)
    np.testing.assert_array_equal(plain, expected)
    assert plain.dtype == expected.dtype
    assert plain.flags.c_contiguous
    assert (plain is rows) == (expected is rows)


@pytest.mark.parametrize("rows", OTHERS, ids=described)
def test_all_others_take_a_closer_look(fitted, rows):
    assert plain_rows(fitted, rows, "float32") is None


@pytest.mark.parametrize("rows", PLAIN + OTHERS, ids=described)
def test_predictions_errors_and_warnings_are_those_of_the_closer_look(fitted, rows, monkeypatch):
    short, short_warnings = told(lambda: fitted.predict(rows))
    monkeypatch.setattr(rows_module, "plain_rows", lambda *_: None)
    long, long_warnings = told(lambda: fitted.predict(rows))
    np.testing.assert_array_equal(short, long)
    assert short_warnings == long_warnings


def test_rows_without_the_names_of_the_fit_are_a_warning():
    model = OrtSGDRegressor(max_iter=1, tol=None).fit(pd.DataFrame(X, columns=list("abc")), Y)
    for call in (lambda: model.predict(X), lambda: model.partial_fit(X, Y)):
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            call()


@pytest.mark.parametrize("y", [*PLAIN, Y, X[:, 0], Y.astype(str)], ids=described)
def test_plain_arrays_are_those_that_scikit_learn_returns_as_they_are(y):
    assert is_plain(y)
    assert check_array(y, dtype=None, ensure_2d=False) is y


@pytest.mark.parametrize(
    "y", [1e200 * X, *OTHERS[2:5], *OTHERS[6:7], *OTHERS[8:12], *OTHERS[14:]], ids=described
)
def test_others_are_not_plain(y):
    assert not is_plain(y)


@pytest.mark.parametrize("n_rows", [1, 2**10, 2**10 + 1, 2**11 + 3])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix])
def test_blocks_are_all_rows_in_their_order(n_rows, kind):
    rows = np.random.default_rng(0).normal(size=(n_rows, 2**10)).astype(np.float32)
    parts = list(blocks(kind(rows)))
    assert {len(part) for part in parts} <= {2**10, 4}
    blocked = np.concatenate(parts)
    np.testing.assert_array_equal(blocked[:n_rows], rows)
    np.testing.assert_array_equal(blocked[n_rows:], rows[[-1] * (-n_rows % 4)])


@pytest.mark.parametrize(
    "inner", [None, MLPClassifier(hidden_layer_sizes=(30, 10))], ids=["linear", "network"]
)
def test_a_row_is_predicted_alone_as_among_others(inner):
    many = np.random.default_rng(1).normal(size=(30, 7))
    model = OrtSGDClassifier(inner, max_iter=5, tol=None).fit(many, many[:, 0] > 0)
    scores = model.decision_function(many)
    for n in (1, 2, 3, 5, 29):
        np.testing.assert_array_equal(model.decision_function(many[-n:]), scores[-n:])


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_predictions_of_many_rows_are_those_of_each(method):
    model = OrtSGDClassifier(max_iter=2, tol=None).fit(X, Y)
    many = np.random.default_rng(1).normal(size=(400_000, 3))
    last = getattr(model, method)(many[-5:])
    np.testing.assert_allclose(getattr(model, method)(many)[-5:], last, rtol=1e-6)
    assert len(getattr(model, method)(many)) == len(many)


def test_a_fit_takes_numbers_and_steps_take_anything():
    model, y = OrtSGDRegressor(), np.arange(len(X))
    rows, target, columns = training_rows(model, X.tolist(), y.tolist(), has_steps=False)
    assert (rows.dtype, columns.n_features, columns.names) == (np.float64, 3, None)
    assert not hasattr(model, "n_features_in_")
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(target, y)
    known = knowing(model, columns)
    steps = Preprocessing(None, None, "float64")
    fitted = SimpleNamespace(
        preprocessing=steps,
        has_steps=False,
        transform=steps.transform,
        inner=SimpleNamespace(model=LinearRegression()),
    )
    np.testing.assert_array_equal(prepared(known, fitted, X), X)
    with pytest.raises(ValueError, match="X has 2 features, but OrtSGDRegressor is expecting 3"):
        prepared(known, fitted, X[:, :2])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        training_rows(model, X, y[1:], has_steps=True)
    texts = ["a text"] * len(X)
    rows, *_ = training_rows(model, texts, y, has_steps=True)
    assert rows.tolist() == texts
    for y in (1.0, np.float64(1), np.array(1)):
        with pytest.raises(
            ValueError, match="y should be an array of one or two dimensions, got a single value"
        ):
            training_rows(model, X, y, has_steps=False)
    for wrong, given in (("price", "'price'"), ({1.0, 2.0}, "a set"), ({"a": y}, "a dict")):
        with pytest.raises(ValueError, match=f"y should be an array .*, got {given}\\.$"):
            training_rows(model, X, wrong, has_steps=False)


def test_rows_count_where_their_weight_is_positive():
    X = np.arange(10.0).reshape(5, 2)
    target = np.arange(5.0)[:, None]
    rows = TrainingData(X, target, np.array([0.5, 0.0, 2.0, 0.0, 1e-300]))
    np.testing.assert_array_equal(rows.counted(target), [[0], [2], [4]])
    np.testing.assert_array_equal(rows.counted(rows.sample_weight), [0.5, 2.0, 1e-300])
    assert rows.n_rows == 3

    every = TrainingData(X, target, None)
    assert every.counted(X) is X and every.counted(every.sample_weight) is None
