"""How much each column says about y, as means of y in bins of the column tell it."""

import numpy as np
import pytest
import scipy.sparse

from skort.estimators.data.relevance import explained_parts
from skort.estimators.data.rows import DataStatistics, TrainingData

N = 100
TENTHS = np.repeat(np.arange(10.0), 10)


def test_ten_bins_explain_what_their_means_do(rng):
    y = (TENTHS - 4.5) ** 2 + rng.normal(size=N)
    means = np.repeat(y.reshape(10, 10).mean(axis=1), 10)
    shuffled = rng.permutation(N)
    # A column that falls, and one of 100 values, have the same bins.
    X = np.column_stack([TENTHS, -3 * TENTHS, np.exp(np.arange(N) / 10), np.full(N, 7.0)])
    found = explained_parts(X[shuffled], y[shuffled, None], None)
    expected = means.var() / y.var()
    assert expected > 0.9
    np.testing.assert_allclose(found, [expected, expected, expected, 0.0], atol=1e-12)


def test_a_column_of_two_values_explains_the_square_of_its_correlation(rng):
    X = (rng.uniform(size=(N, 300)) < 0.3).astype(np.float32)
    y = X[:, :1] + rng.normal(size=(N, 1))
    correlation = np.corrcoef(X.T, y.T)[-1, :-1]
    np.testing.assert_allclose(explained_parts(X, y, None), correlation**2, atol=1e-12)


def test_outputs_count_by_their_variance(rng):
    y = np.column_stack([TENTHS, 3 * rng.normal(size=N)])
    means = np.repeat(y.reshape(10, 10, 2).mean(axis=1), 10, axis=0)
    part = means.var(axis=0).sum() / y.var(axis=0).sum()
    assert explained_parts(TENTHS[:, None], y, None) == pytest.approx(part)


@pytest.mark.parametrize("factor", [1e200, -3.0, 1e-200])
def test_the_units_do_not_matter(factor, rng):
    y = TENTHS[:, None] + rng.normal(size=(N, 1))
    X = np.column_stack([TENTHS, rng.normal(size=N)])
    expected = explained_parts(X, y, None)
    np.testing.assert_allclose(explained_parts(X, factor * y, None), expected, rtol=1e-9)
    np.testing.assert_allclose(explained_parts(abs(factor) * X, y, None), expected, rtol=1e-9)


def test_rows_count_by_their_weight(rng):
    X = (np.arange(N) % 2).astype(float)[:, None]
    y = X + rng.normal(size=(N, 1))
    weights = rng.uniform(1, 5, size=N)
    mean = np.average(y[:, 0], weights=weights)
    variance = np.average((y[:, 0] - mean) ** 2, weights=weights)
    of_group = [np.average(y[i::2, 0], weights=weights[i::2]) for i in (0, 1)]
    shares = [weights[i::2].sum() / weights.sum() for i in (0, 1)]
    part = np.dot(shares, np.square(np.array(of_group) - mean)) / variance
    found = explained_parts(X, y, weights)
    assert found == pytest.approx(part, rel=1e-9)
    # Rows without weight are no rows.
    more = np.concatenate([X, X + 9]), np.concatenate([y, 50 - y])
    assert explained_parts(*more, np.append(weights, np.zeros(N))) == pytest.approx(found)


def test_a_weight_of_two_is_a_row_twice(rng):
    X, y = rng.normal(size=(N, 3)), rng.normal(size=(N, 1))
    weights = rng.integers(1, 4, size=N)
    copies = np.repeat(np.arange(N), weights)
    np.testing.assert_allclose(
        explained_parts(X, y, weights), explained_parts(X[copies], y[copies], None), rtol=1e-9
    )


def test_many_rows_are_those_that_are_evenly_spaced(rng):
    X, y = rng.normal(size=(4999, 2)), rng.normal(size=(4999, 1))
    some = np.linspace(0, 4998, 2000).astype(int)
    np.testing.assert_array_equal(
        explained_parts(X, y, None), explained_parts(X[some], y[some], None)
    )


def test_few_rows_are_in_bins_of_their_own(rng):
    X = rng.normal(size=(10, 3))
    np.testing.assert_allclose(explained_parts(X, X[:, :1], None), np.ones(3))
    few = rng.normal(size=(15, 3))
    weights = rng.integers(0, 5, size=15)
    copies = np.repeat(np.arange(15), weights)
    np.testing.assert_allclose(
        explained_parts(few, few[:, :1], weights),
        explained_parts(few[copies], few[copies, :1], None),
    )


def test_one_y_and_sparse_rows_do_not_tell_it(rng):
    X = rng.normal(size=(N, 2))
    assert explained_parts(X, np.full((N, 1), 3.0), None) is None
    assert explained_parts(X[:1], X[:1], None) is None
    rows = TrainingData(scipy.sparse.csr_matrix(X), X[:, :1], None)
    assert DataStatistics(rows).explained is None
