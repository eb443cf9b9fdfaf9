"""Means, scales and the expected smoothness of the columns of X."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.covariance import ledoit_wolf
from threadpoolctl import threadpool_limits

from skort.optim import standardization
from skort.optim.standardization import (
    Standardization,
    column_sums,
    half_decorrelation,
    largest_eigenvalue,
    largest_norm,
    moments,
    robust_moments,
    smoothness,
    spread_of_gram,
    spreads_of_some,
    unit_scales,
    usable_scale,
)
from skort.optim.transforms import norm


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_moments_are_those_of_numpy(weighted, dtype, rng):
    X = (rng.normal(size=(1000, 7)) * 10.0 ** np.arange(-3, 4) + 1e4).astype(dtype)
    weights = rng.uniform(0, 2, size=1000) * rng.integers(0, 2, size=1000) if weighted else None
    mean, deviation = moments(X, weights)
    exact = X.astype(np.float64)
    expected = np.average(exact, axis=0, weights=weights)
    np.testing.assert_allclose(mean, expected, rtol=1e-12)
    variance = np.average((exact - expected) ** 2, axis=0, weights=weights)
    np.testing.assert_allclose(deviation, np.sqrt(variance), rtol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_moments_of_zeros_and_of_the_least_values(dtype, rng):
    least = float(np.finfo(dtype).smallest_subnormal)
    column = rng.integers(-3, 4, size=37)
    mean, deviation = moments(np.column_stack([np.zeros(37), least * column]).astype(dtype), None)
    np.testing.assert_allclose(
        mean, [0, least * column.mean()], rtol=1e-12, atol=least / 2 if dtype == "float64" else 0
    )
    np.testing.assert_allclose(deviation, [0, least * column.std()], rtol=1e-12, atol=least / 2)


def test_the_deviation_of_a_constant_column_is_zero():
    X = np.column_stack([np.full(50, 0.1), np.full(50, -3e7), np.arange(50.0)])
    np.testing.assert_array_equal(moments(X, None)[1][:2], 0)
    np.testing.assert_array_equal(moments(X, np.linspace(0.1, 1, 50))[1][:2], 0)


def test_evenly_spaced_blocks_stand_for_many_rows(monkeypatch, rng):
    X = np.sort(rng.normal(size=(200_000, 2)), axis=0)
    exact = moments(X, None)
    monkeypatch.setattr(standardization, "_MANY_VALUES", 2**15)
    mean, deviation = moments(X, None)
    np.testing.assert_allclose(mean, exact[0], atol=0.02)
    np.testing.assert_allclose(deviation, exact[1], rtol=0.02)


def test_a_column_that_is_constant_in_the_blocks_has_the_moments_of_all_rows(monkeypatch, rng):
    X = rng.normal(size=(10_000, 2))
    X[:, 1] = 0.0
    monkeypatch.setattr(standardization, "_MANY_VALUES", 5120)
    X[[3, 4]] = 1e3
    weights = rng.uniform(1, 2, size=len(X))
    for shares in (None, weights):
        mean, deviation = moments(X, shares)
        expected = np.average(X[:, 1], weights=shares)
        assert mean[1] == pytest.approx(expected, rel=1e-12)
        assert deviation[1] == pytest.approx(
            np.sqrt(np.average((X[:, 1] - expected) ** 2, weights=shares)), rel=1e-12
        )
    # The blocks do not have these rows.
    assert moments(X, None)[1][0] < 2


def test_squares_that_overflow_have_a_mean(rng):
    X = rng.normal(size=(50, 3)) * [1e200, 1.0, 1e307]
    mean, deviation = moments(X, None)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(deviation[1], X[:, 1].std(), rtol=1e-12)
    np.testing.assert_allclose(
        deviation[[0, 2]], (X[:, [0, 2]] * 1e-200).std(axis=0) * 1e200, rtol=1e-12
    )


def test_the_blocks_are_in_the_middle_of_equal_parts(monkeypatch, rng):
    X = rng.normal(size=(10_000, 1))
    monkeypatch.setattr(standardization, "_MANY_VALUES", 2560)
    starts = [int((i + 0.5) * 10_000 / 256 - 5) for i in range(256)]
    rows = np.concatenate([X[start : start + 10] for start in starts])
    np.testing.assert_allclose(moments(X, None), [rows.mean(axis=0), rows.std(axis=0)], rtol=1e-12)


def test_few_long_rows_count_once_each(monkeypatch, rng):
    X = rng.normal(size=(100, 50))
    monkeypatch.setattr(standardization, "_MANY_VALUES", 2560)
    np.testing.assert_allclose(
        moments(X, None), [X.mean(axis=0), X.std(axis=0)], rtol=1e-12, atol=1e-15
    )


def test_the_eigenvalue_is_that_of_2000_evenly_spaced_rows(rng):
    X = rng.normal(size=(5001, 3))
    rows = np.column_stack([X[np.linspace(0, 5000, 2000).astype(int)], np.ones(2000)])
    expected = np.linalg.eigvalsh(rows.T @ rows / 2000)[-1]
    assert largest_eigenvalue(X, None, None) == pytest.approx(expected, rel=1e-12)
    assert largest_eigenvalue(scipy.sparse.csr_matrix((3, 2)), None, None, ones=0.0) == 0


def test_quartiles_less_than_one_apart_are_a_scale_and_equal_ones_are_not():
    columns = np.column_stack([np.arange(7) / 10, [1, 1, 1, 1, 1, 1, 6]])
    median, scale = robust_moments(columns, None)
    np.testing.assert_allclose(median, [0.3, 1.0])
    # The share of the rows up to the middle of each one.
    quartiles = np.interp([0.25, 0.75], (np.arange(7) + 0.5) / 7, columns[:, 0])
    np.testing.assert_allclose(scale, [(quartiles[1] - quartiles[0]) / 1.349, columns[:, 1].std()])


def test_scales_whose_inverse_overflows_are_not_used():
    np.testing.assert_array_equal(
        usable_scale(np.array([2.0, 0.0, 1e-42, np.inf]), "float32"), [2, 1, 1, 1]
    )
    np.testing.assert_array_equal(usable_scale(np.array([1e-42]), "float64"), [1e-42])


def expected_smoothness(X, batch_size):
    """Gower et al. 2019, proposition 3.8, in numpy."""
    n = len(X)
    ones = np.column_stack([X, np.ones(n)])
    largest = np.linalg.eigvalsh(ones.T @ ones / n)[-1]
    norm = np.max(np.sum(ones**2, axis=1))
    b = batch_size
    return n * (b - 1) / (b * (n - 1)) * largest + (n - b) / (b * (n - 1)) * norm


@pytest.mark.parametrize("batch_size", [1, 10, 99, 100, 1000])
@pytest.mark.parametrize("n_columns", [3, 300])
def test_smoothness_is_the_formula(batch_size, n_columns, rng):
    X = rng.normal(size=(100, n_columns)) + 1
    found = smoothness(X, None, batch_size, None)
    np.testing.assert_allclose(found, expected_smoothness(X, min(batch_size, 100)), rtol=1e-3)


def test_smoothness_is_that_of_the_standardized_rows(rng):
    X = rng.normal(size=(100, 4)) * [1, 10, 1000, 0.1] + [0, 5, 5000, 1]
    mean, scale = moments(X, None)
    found = smoothness(X, None, 20, Standardization(mean, scale, None, 1.0))
    np.testing.assert_allclose(found, expected_smoothness((X - mean) / scale, 20), rtol=1e-9)


def test_integer_weights_of_a_full_batch_are_repeated_rows(rng):
    X, counts = rng.normal(size=(60, 4)), rng.integers(0, 4, size=60)
    repeated = np.repeat(X, counts, axis=0)
    found = smoothness(X, counts.astype(float), 60, None)
    np.testing.assert_allclose(found, expected_smoothness(repeated, len(repeated)), rtol=1e-9)


def test_sparse_rows_are_those_of_a_dense_array(rng):
    X = scipy.sparse.random(300, 200, 0.05, format="csr", random_state=0)
    weights = rng.uniform(0.5, 2, size=300)
    dense = smoothness(X.toarray(), weights, 10, None)
    np.testing.assert_allclose(smoothness(X, weights, 10, None), dense, rtol=1e-3)
    norms = (X.toarray() ** 2).sum(axis=1) + 1
    np.testing.assert_allclose(largest_norm(X, None, None), norms.max())
    np.testing.assert_allclose(largest_norm(X, weights, None), (norms * weights).max())


def test_sparse_rows_are_divided_by_their_scales(rng):
    X = scipy.sparse.random(300, 20, 0.2, format="csr", random_state=0)
    used = Standardization(np.zeros(20), rng.uniform(0.1, 4, size=20), None, 1.0)
    rows = X.toarray() / used.scale
    np.testing.assert_allclose(
        largest_norm(X, None, used), (rows**2).sum(axis=1).max() + 1, rtol=1e-12
    )
    np.testing.assert_allclose(
        smoothness(X, None, 10, used), expected_smoothness(rows, 10), rtol=1e-6
    )


def test_one_row_and_rows_of_zeros_have_a_finite_smoothness():
    assert smoothness(np.zeros((1, 3)), None, 200, None) == 1.0
    assert smoothness(np.zeros((5, 3)), None, 2, None) == pytest.approx(1.0)


def rows_of(deviation, mean=0.0, n=100):
    """Return a column that has these moments."""
    return np.tile([-1.0, 1.0], n // 2)[:, None] * deviation + mean


def test_equal_means_equal_numbers():
    def make(scale=2.0, mean=None):
        return Standardization(mean, np.array([scale]), np.array([0.0]), 1.0)

    assert make() == make()
    assert make() != make(3.0)
    assert make() != make(mean=np.zeros(1))
    assert make() != "make"
    assert Standardization.of_arrays(make().arrays()) == make()
    assert Standardization.of_arrays({}) is None


def test_bits_do_not_depend_on_the_threads_of_numpy(rng):
    X, weights = rng.normal(size=(2000, 300)), rng.uniform(size=2000)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, "blas"):
            found.append(
                (
                    largest_eigenvalue(X, None, None),
                    norm(X.ravel()),
                    moments(X, weights)[0].tolist(),
                )
            )
    assert found[0] == found[1]


def test_the_spread_of_a_gram_matrix_is_that_of_its_rows(rng):
    X = rng.normal(size=(101, 4)) * [1, 2, 3, 10]
    weights = rng.uniform(0.5, 1.5, size=101)
    rows = np.column_stack([X, np.ones(101)]) * np.sqrt(weights / weights.mean())[:, None]
    found = spread_of_gram(rows.T @ rows / 101)
    # Both take the same steps towards the eigenvalue.
    of_rows = next(spreads_of_some(X, weights, None))[0]
    assert found[0] == pytest.approx(of_rows[0], rel=1e-9)
    assert found[0] == pytest.approx(np.linalg.eigvalsh(rows.T @ rows / 101)[-1], rel=1e-3)
    assert found[1] == pytest.approx(np.square(rows).sum() / 101)


def test_the_norm_of_some_rows_weighs_each_by_its_own(rng):
    X = rng.lognormal(sigma=1.5, size=(200, 3))
    weights = rng.integers(0, 3, size=200)
    squares = (weights * (np.square(X).sum(axis=1) + 1))[weights > 0] / weights[weights > 0].mean()
    for rows in (X, scipy.sparse.csr_matrix(X)):
        expected = np.square(squares).sum() / squares.sum()
        for spread, _ in spreads_of_some(rows, weights.astype(float), None):
            assert spread[1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n_rows", [50, 300])
def test_better_estimates_of_a_spread_are_nearer_to_its_eigenvalue(rng, n_rows):
    X = scipy.sparse.random(n_rows, 400, 0.05, format="csr", random_state=0)
    weights = rng.uniform(0.5, 1.5, size=n_rows)
    rows = np.column_stack([X.toarray(), np.ones(n_rows)])
    rows *= np.sqrt(weights / weights.mean())[:, None]
    largest = np.linalg.norm(rows, 2) ** 2 / n_rows

    spreads, parts = zip(*spreads_of_some(X, weights, None), strict=True)
    assert parts == pytest.approx((0.5, 0.5**0.5, 0.5**0.25))
    found = [spread[0] for spread in spreads]
    assert all(part * largest < each for part, each in zip(parts, found, strict=True))
    assert found[-1] == pytest.approx(largest, rel=1e-6)
    assert found[-1] == pytest.approx(largest_eigenvalue(X, weights / weights.mean(), None))


def test_repeated_indices_of_sparse_rows_count_as_their_sum():
    parts = np.array([3.0, 1, 4, -2]), np.array([2, 0, 2, 1]), np.array([0, 3, 3, 4])
    X = scipy.sparse.csr_matrix(parts, shape=(3, 3))
    whole = np.array([[1.0, 0, 7], [0, 0, 0], [0, -2, 0]])
    of_dense, of_sparse = (next(spreads_of_some(rows, None, None))[0] for rows in (whole, X))
    assert of_sparse == pytest.approx(of_dense)
    # With the column of ones, the squared norms are 51, 1 and 5.
    assert of_dense[1] == pytest.approx((51**2 + 1 + 5**2) / 57)
    assert X.data.tolist() == [3, 1, 4, -2]


def test_the_norm_of_rows_that_overflow_is_infinite():
    (_, norm), _ = next(spreads_of_some(np.full((3, 2), 1e200), None, None))
    assert norm == np.inf


def test_a_gram_matrix_that_overflows_has_no_spread():
    assert spread_of_gram(np.diag([1.0, np.inf])) is None
    assert spread_of_gram(np.zeros((2, 2))) == (0.0, 0.0)


def test_the_sums_of_sparse_columns_are_those_of_rows_that_count():
    X = scipy.sparse.csr_matrix([[1.0, -2, 0], [0, 3, 0], [7, 7, 7]])
    sums, counts = column_sums(X, np.array([1.0, 2.0, 0.0]))
    np.testing.assert_array_equal(sums, [1, 5, 0])
    np.testing.assert_array_equal(counts, [1, 2, 0])
    # A stored zero is no value.
    X.data[0] = 0
    np.testing.assert_array_equal(column_sums(X, None)[1], [1, 3, 1])


def test_sparse_columns_far_from_the_median_have_scales():
    counts = np.array([10, 20, 1, 10, 9, 0, 10])
    means = np.array([1.0, 2.0, 56.0, 0.11, 1e-3, 0.0, 2.0])
    # Nine small values are no unit.
    expected = [1, 1, 56 / 1.5, 1, 1, 1, 1]
    for unit in (1.0, 1e-30):
        np.testing.assert_allclose(unit_scales(unit * means * counts, counts), expected, rtol=1e-12)
    means[3] = 0.05
    assert unit_scales(means * counts, counts)[3] == pytest.approx(0.05 / 1.5)
    assert unit_scales(np.array([10.0, 199.0, 11.0]), np.full(3, 10)) is None
    assert unit_scales(np.zeros(3), np.zeros(3)) is None


def in_units(X):
    """Return what standardizes X."""
    deviation = X.std(axis=0)
    return Standardization(X.mean(axis=0), np.where(deviation > 0, deviation, 1.0), None, 1.0)


@pytest.mark.parametrize("n_rows", [12, 300])
def test_the_fourth_root_is_that_of_the_covariance_of_ledoit_and_wolf(n_rows, rng):
    X = 100.0 * rng.normal(size=(n_rows, 8)) @ (rng.normal(size=(8, 8)) + 4 * np.eye(8)) + 7.0
    used = in_units(X)
    covariance, _ = ledoit_wolf((X - used.mean) / used.scale, assume_centered=True)
    root = half_decorrelation(X, None, used)
    np.testing.assert_allclose(root, root.T, rtol=1e-10, atol=1e-12)
    square = np.linalg.matrix_power(root, 4)
    np.testing.assert_allclose(square @ covariance, np.eye(8), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        half_decorrelation(X, np.full(n_rows, 3.0), used), root, rtol=1e-10, atol=1e-12
    )


def test_columns_that_do_not_vary_are_not_decorrelated(rng):
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3))
    root = half_decorrelation(X, None, in_units(X))
    wide = np.insert(X, 1, 5.0, axis=1)
    expected = np.insert(np.insert(root, 1, 0.0, axis=0), 1, [0.0, 1.0, 0.0, 0.0], axis=1)
    np.testing.assert_allclose(half_decorrelation(wide, None, in_units(wide)), expected, rtol=1e-12)
    assert half_decorrelation(wide[:, :2], None, in_units(wide[:, :2])) is None


def test_independent_columns_are_not_decorrelated(rng):
    X = np.array(np.meshgrid(*[[-1.0, 1.0]] * 5)).reshape(5, -1).T
    assert half_decorrelation(X, None, in_units(X)) is None


def test_no_direction_has_a_step_more_than_six_times_as_long(rng):
    X = np.repeat(rng.normal(size=(1000, 1)), 4, axis=1)
    root = half_decorrelation(X, None, in_units(X))
    factors = np.linalg.eigvalsh(root @ root)
    np.testing.assert_allclose(factors, [0.5, 6.0, 6.0, 6.0], rtol=2e-3)


def test_rows_whose_products_overflow_have_no_root(rng):
    X = 1e100 * rng.normal(size=(40, 3))
    used = Standardization(np.zeros(3), np.ones(3), None, 1.0)
    assert half_decorrelation(X, None, used) is None
