"""
What holds for any data: hypothesis draws them.
`pytest --hypothesis-profile=nightly` draws ten times as many.
"""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.optim.optimizers import OPTIMIZERS

slow_data = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

REGRESSION_LOSSES = ["squared_error", "absolute_error", "huber", "epsilon_insensitive", "quantile"]
CLASSIFICATION_LOSSES = ["log_loss", "hinge", "squared_hinge", "modified_huber", "perceptron"]


@st.composite
def numbers(draw, n_rows, n_columns):
    """
    Columns of normal numbers of very different sizes;
    some are constant, some are copies of the first one.
    """
    random_state = np.random.RandomState(draw(st.integers(0, 2**16)))
    columns = []
    for _ in range(n_columns):
        kind = draw(st.sampled_from(["normal", "normal", "integers", "constant", "copy", "far"]))
        scale = 10.0 ** draw(st.sampled_from([-30, -6, -1, 0, 0, 0, 2, 8, 30]))
        column = random_state.normal(size=n_rows)
        if kind == "integers":
            column = np.round(2 * column)
        elif kind == "constant":
            column = np.ones(n_rows)
        elif kind == "copy" and columns:
            column, scale = columns[0], 1.0
        elif kind == "far":
            column = column + 1e4
        columns.append(column * scale)
    return np.column_stack(columns)


@st.composite
def tables(draw, least=1):
    """X, a y of numbers, and sample weights or None."""
    n_rows, n_columns = draw(st.integers(least, 25)), draw(st.integers(1, 4))
    X, y = draw(numbers(n_rows, n_columns)), draw(numbers(n_rows, 1))[:, 0]
    weights = None
    if draw(st.booleans()):
        weights = (
            np.random.RandomState(draw(st.integers(0, 99))).randint(0, 4, n_rows).astype(float)
        )
        weights[draw(st.integers(0, n_rows - 1))] = 1.0
    return X, y, weights


@st.composite
def options(draw, losses):
    """Parameters that are valid by themselves."""
    return {
        "loss": draw(st.sampled_from(losses)),
        "penalty": draw(st.sampled_from([None, "auto", "l1", "l2", "elasticnet"])),
        "alpha": draw(st.sampled_from([0.0, 1e-4, 1.0, 1e6])),
        "l1_ratio": draw(st.sampled_from([0.0, 0.5, 1.0])),
        "optimizer": draw(st.sampled_from([name for name in OPTIMIZERS if name != "lbfgs"])),
        "learning_rate": draw(st.sampled_from(["constant", "invscaling", "adaptive"])),
        "eta0": draw(st.sampled_from(["auto", 1e-3, 0.1])),
        "batch_size": draw(st.sampled_from(["auto", 1, 7, 100])),
        "standardize": draw(st.sampled_from(["auto", False])),
        "average": draw(st.sampled_from([False, True, 3])),
        "max_grad_norm": draw(st.sampled_from([None, 1.0])),
        "shuffle": draw(st.booleans()),
        "dtype": draw(st.sampled_from(["float32", "float64"])),
        "max_iter": draw(st.integers(1, 6)),
        "random_state": 0,
        "tol": None,
    }


def ends_well(model, X, y, weights):
    """
    Fit; return whether there is a model, which must be finite.
    Only documented errors may say that there is none.
    """
    before = dict(vars(model))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # What a training has to say of itself.
            warnings.simplefilter("ignore", ConvergenceWarning)
            # Columns near 1e-26 that differ by 1e-30, say: the file loses their digits.
            far = "The means? of .* more than 16,384 standard deviations from zero"
            warnings.filterwarnings("ignore", far, UserWarning)
            warnings.filterwarnings("ignore", ".* has no effect: penalty=", UserWarning)
            warnings.filterwarnings("ignore", "average=3 has no effect: ", UserWarning)
            model.fit(X, y, weights)
    except ValueError as error:
        assert any(words in str(error) for words in ("diverged", "too large for dtype", "class")), (
            error
        )
        assert vars(model) == before
        return False
    assert all(np.isfinite(array).all() for array in model.weights_.values())
    with np.errstate(over="ignore"):
        prediction = model.predict(X)
    assert prediction.shape == y.shape
    return True


def network(model, size):
    return None if size is None else model(hidden_layer_sizes=(size,))


@slow_data
@given(tables(), options(REGRESSION_LOSSES), st.sampled_from([None, 3]))
def test_any_regression_ends_in_a_finite_model_or_in_words(table, parameters, size):
    X, y, weights = table
    ends_well(OrtSGDRegressor(network(MLPRegressor, size), **parameters), X, y, weights)


@slow_data
@given(
    tables(least=2), options(CLASSIFICATION_LOSSES), st.sampled_from([None, 3]), st.integers(2, 4)
)
def test_any_classification_ends_in_a_finite_model_or_in_words(table, parameters, size, n_classes):
    X, y, weights = table
    labels = np.argsort(np.argsort(y)) % n_classes
    ends_well(OrtSGDClassifier(network(MLPClassifier, size), **parameters), X, labels, weights)


def same(ours, theirs, rtol=1e-7):
    for name, array in theirs.weights_.items():
        # Where gradients of size one cancel, each step rounds at eta times 2e-16.
        size = max(np.abs(array).max(), 1e-9)
        np.testing.assert_allclose(ours.weights_[name], array, rtol=rtol, atol=rtol * size)


def exact(model, **others):
    """Full batches in float64: sums over all rows, in whichever order."""
    steps = {
        "batch_size": 100,
        "learning_rate": "constant",
        "max_iter": 5,
        "tol": None,
        "random_state": 0,
    }
    return model(**{"dtype": "float64", "eta0": 0.01, "shuffle": False, **steps, **others})


@st.composite
def plain_tables(draw):
    """X and y of normal numbers, and small whole sample weights."""
    n_rows, n_columns = draw(st.integers(4, 25)), draw(st.integers(1, 4))
    random_state = np.random.RandomState(draw(st.integers(0, 2**16)))
    X, y = random_state.normal(size=(n_rows, n_columns)), random_state.normal(size=n_rows)
    weights = random_state.randint(0, 4, n_rows).astype(float)
    weights[:2] = 1.0
    return X, y, weights


# The others have a kink at scores of zero, or at the median, where a training begins: a rounding
# decides the gradient.
PROBLEMS = st.sampled_from(
    [
        (OrtSGDRegressor, "squared_error"),
        (OrtSGDRegressor, "huber"),
        (OrtSGDRegressor, "squared_epsilon_insensitive"),
        (OrtSGDClassifier, "log_loss"),
        (OrtSGDClassifier, "hinge"),
        (OrtSGDClassifier, "squared_hinge"),
        (OrtSGDClassifier, "modified_huber"),
    ]
)


def target(model, y):
    return y if model is OrtSGDRegressor else (y > np.median(y)).astype(int)


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@given(plain_tables(), PROBLEMS, st.sampled_from(["auto", False]))
def test_the_order_of_the_rows_does_not_matter(table, problem, standardize):
    (X, y, weights), (model, loss) = table, problem
    y, order = target(model, y), np.random.RandomState(0).permutation(len(y))
    others = {"loss": loss, "standardize": standardize}
    same(
        exact(model, **others).fit(X[order], y[order], weights[order]),
        exact(model, **others).fit(X, y, weights),
    )


@given(plain_tables(), PROBLEMS, st.sampled_from([2.0**-40, 0.3, 1e12]))
def test_the_scale_of_the_sample_weights_does_not_matter(table, problem, scale):
    (X, y, weights), (model, loss) = table, problem
    y = target(model, y)
    same(
        exact(model, loss=loss).fit(X, y, scale * weights),
        exact(model, loss=loss).fit(X, y, weights),
    )


@given(plain_tables(), PROBLEMS)
def test_rows_of_weight_zero_are_rows_that_are_not_there(table, problem):
    (X, y, weights), (model, loss) = table, problem
    y, used = target(model, y), weights > 0
    if model is OrtSGDClassifier and len(set(y[used])) < 2:
        return
    same(
        exact(model, loss=loss).fit(X, y, weights),
        exact(model, loss=loss).fit(X[used], y[used], weights[used]),
    )


# A robust loss takes the median of y, which weights move otherwise than repeated rows do where it
# is between two.
@given(plain_tables(), PROBLEMS)
def test_whole_weights_are_repeated_rows(table, problem):
    (X, y, weights), (model, loss) = table, problem
    y, rows = target(model, y), np.repeat(np.arange(len(y)), weights.astype(int))
    if model is OrtSGDClassifier and len(set(y[rows])) < 2:
        return
    # A number as batch_size counts rows, whatever their weights are.
    others = {"loss": loss, "standardize": False, "batch_size": "auto"}
    same(exact(model, **others).fit(X, y, weights), exact(model, **others).fit(X[rows], y[rows]))


@given(plain_tables(), st.sampled_from(CLASSIFICATION_LOSSES), st.permutations(["a", "bee", "sea"]))
def test_names_of_classes_do_not_matter(table, loss, names):
    X, y, _ = table
    y = np.argsort(np.argsort(y)) % 3
    names = np.array(sorted(names))
    ours, theirs = (
        exact(OrtSGDClassifier, loss=loss).fit(X, names[y]),
        exact(OrtSGDClassifier, loss=loss).fit(X, y),
    )
    same(ours, theirs, rtol=0)
    np.testing.assert_array_equal(ours.predict(X), names[theirs.predict(X)])


@given(plain_tables(), st.sampled_from([1e-30, 1e-3, 1e5, 1e30]), st.sampled_from([1e-20, 1e20]))
def test_units_of_x_and_y_do_not_matter_without_a_penalty(table, unit_X, unit_y):
    X, y, _ = table
    ours, theirs = (
        exact(OrtSGDRegressor, eta0="auto", penalty=None).fit(X * a, y * b)
        for a, b in ((unit_X, unit_y), (1.0, 1.0))
    )
    np.testing.assert_allclose(
        ours.predict(X * unit_X) / unit_y, theirs.predict(X), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("model", [OrtSGDRegressor, OrtSGDClassifier])
def test_one_row_and_one_feature(model):
    X, y = np.array([[3.0], [3.0]]), np.array([0, 1])
    fitted = exact(model).fit(X, y)
    np.testing.assert_allclose(fitted.coef_, 0 if model is OrtSGDRegressor else fitted.coef_)
    if model is OrtSGDRegressor:
        np.testing.assert_allclose(exact(model).fit(X[:1], [5.0]).predict(X[:1]), [5.0])
