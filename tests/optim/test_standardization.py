"""Means, scales and the expected smoothness of the columns of X."""

import numpy as np
import pytest
import scipy.sparse
from threadpoolctl import threadpool_limits

from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.optim import standardization
from skort.optim.standardization import (
    Standardization,
    largest_eigenvalue,
    largest_norm,
    moments,
    robust_moments,
    smoothness,
    usable_scale,
)
from skort.optim.transforms import norm


def after(renewed, X, target, sample_weight, **options):
    """Return a standardization after rows, by its method; None: y is not standardized."""
    facts = DataStatistics(TrainingData(X, target, sample_weight))
    return renewed(facts, of_target=target is not None, **options)


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
        assert deviation[1] == pytest.approx(np.sqrt(np.average((X[:, 1] - expected) ** 2, weights=shares)), rel=1e-12)
    # The blocks do not have these rows.
    assert moments(X, None)[1][0] < 2


def test_squares_that_overflow_have_a_mean(rng):
    X = rng.normal(size=(50, 3)) * [1e200, 1.0, 1e307]
    mean, deviation = moments(X, None)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(deviation[1], X[:, 1].std(), rtol=1e-12)
    np.testing.assert_allclose(deviation[[0, 2]], (X[:, [0, 2]] * 1e-200).std(axis=0) * 1e200, rtol=1e-12)


def test_the_blocks_are_in_the_middle_of_equal_parts(monkeypatch, rng):
    X = rng.normal(size=(10_000, 1))
    monkeypatch.setattr(standardization, "_MANY_VALUES", 2560)
    starts = [int((i + 0.5) * 10_000 / 256 - 5) for i in range(256)]
    rows = np.concatenate([X[start : start + 10] for start in starts])
    np.testing.assert_allclose(moments(X, None), [rows.mean(axis=0), rows.std(axis=0)], rtol=1e-12)


def test_few_long_rows_count_once_each(monkeypatch, rng):
    X = rng.normal(size=(100, 50))
    monkeypatch.setattr(standardization, "_MANY_VALUES", 2560)
    np.testing.assert_allclose(moments(X, None), [X.mean(axis=0), X.std(axis=0)], rtol=1e-12, atol=1e-15)


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
    np.testing.assert_array_equal(usable_scale(np.array([2.0, 0.0, 1e-42, np.inf]), "float32"), [2, 1, 1, 1])
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
    np.testing.assert_allclose(largest_norm(X, None, used), (rows**2).sum(axis=1).max() + 1, rtol=1e-12)
    np.testing.assert_allclose(smoothness(X, None, 10, used), expected_smoothness(rows, 10), rtol=1e-6)


def test_one_row_and_rows_of_zeros_have_a_finite_smoothness():
    assert smoothness(np.zeros((1, 3)), None, 200, None) == 1.0
    assert smoothness(np.zeros((5, 3)), None, 2, None) == pytest.approx(1.0)


def test_a_column_gets_a_scale_when_it_varies_for_the_first_time():
    means, is_flat = np.array([5.0, 1.0]), np.array([True, False])
    used = Standardization(means, np.array([1.0, 2.0]), np.array([7.0]), 1.0, is_flat=is_flat, is_target_flat=True)
    target = np.array([[7.0], [7.0]])
    assert after(used.with_new_scales, np.array([[5.0, 9.0], [5.0, 9.0]]), target, None) is used
    renewed = after(used.with_new_scales, np.array([[8.0, 9.0], [2.0, 9.0]]), target + 4, None)
    np.testing.assert_array_equal(renewed.scale, [3, 2])
    assert renewed.target_scale == 4.0
    np.testing.assert_array_equal(renewed.mean, used.mean)


def test_a_target_of_zeros_gets_a_scale_when_it_varies_for_the_first_time():
    used, X = Standardization(None, None, np.zeros(2), 1.0, is_target_flat=True), np.zeros((2, 1))
    assert after(used.with_new_scales, X, np.zeros((2, 2)), None) is used
    assert after(used.with_new_scales, X, np.array([[3.0, 4.0], [-3.0, -4.0]]), None).target_scale == pytest.approx(
        12.5**0.5
    )
    assert after(used.with_new_scales, X, None, None) is used


def rows_of(deviation, mean=0.0, n=100):
    """Return a column that has these moments."""
    return np.tile([-1.0, 1.0], n // 2)[:, None] * deviation + mean


def test_means_and_scales_follow_a_column_that_leaves_them():
    used = Standardization(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]), None, 1.0)
    usual = np.hstack([rows_of(2.5, 1), rows_of(0.4, 2), rows_of(1, 5)])
    assert after(used.following, usual, None, None) is used
    louder = after(used.following, np.hstack([rows_of(4, 7), rows_of(1, 2), rows_of(0.1, 8)]), None, None)
    np.testing.assert_allclose(louder.mean, [7, 2, 8])
    # What has moved only need not vary less.
    np.testing.assert_allclose(louder.scale, [4, 1, 1])
    # A scale falls in steps, to that of the rows at last; no variation at all says nothing.
    quiet = np.hstack([rows_of(0.02, 1), rows_of(0, 2), rows_of(1, 3)])
    scales = []
    for _ in range(4):
        used = after(used.following, quiet, None, None)
        scales.append(used.scale.tolist())
    np.testing.assert_allclose(scales, [[1 / 3.3, 1, 1], [1 / 3.3**2, 1, 1], [0.02, 1, 1], [0.02, 1, 1]])
    # One call takes all steps back.
    np.testing.assert_allclose(after(used.following, usual / 2.5 + [0.6, 1.2, 3], None, None).scale, [1, 0.16, 1])


def test_few_rows_change_scales_only_where_they_are_much_larger():
    used = Standardization(np.array([1.0]), np.array([2.0]), np.array([1.0]), 2.0)
    for n, far in ((4, 15.0), (36, 5.0)):
        column = rows_of(1.01 * far * 2, 1, n)
        assert after(used.following, column / 1.1, column / 1.1, None) is used
        renewed = after(used.following, column, column, None)
        np.testing.assert_allclose((renewed.scale[0], renewed.target_scale), 1.01 * far * 2, rtol=1e-6)
        np.testing.assert_array_equal((renewed.mean, renewed.target_mean), [[1], [1]])
        assert after(used.following, column / 1e6, column / 1e6, None) is used
    # Rows of weight zero are none.
    column, weight = rows_of(10, 1), np.repeat([1.0, 0.0], [4, 96])
    assert after(used.following, column, column, weight) is used
    assert after(used.following, column, column, None).target_scale == pytest.approx(10)


def test_means_of_zero_stay_zero():
    used = Standardization(np.zeros(1), np.ones(1), np.zeros(1), 1.0)
    column = rows_of(3.0, 4.0)
    renewed = after(used.following, column, column, None)
    np.testing.assert_allclose((renewed.scale[0], renewed.target_scale), 5)
    np.testing.assert_array_equal((renewed.mean, renewed.target_mean), [[0], [0]])
    # All columns of a sparse X have one scale.
    assert after(used.following, scipy.sparse.csr_matrix(column), None, None) is used


def test_outliers_of_y_do_not_count_with_a_robust_loss():
    used, X = Standardization(None, None, np.array([1.0]), 1.0), np.zeros((100, 1))
    y = np.linspace(0, 2, 100)[:, None]
    y[::10] = 1e6
    assert after(used.following, X, y, None, is_robust=True) is used
    assert after(used.following, X, y, None).target_scale == pytest.approx(y.std())
    np.testing.assert_allclose(after(used.following, X, 10 * y, None, is_robust=True).target_mean, np.median(10 * y))


def test_columns_and_targets_without_a_scale_are_left_to_their_first_one():
    used = Standardization(
        np.ones(2), np.ones(2), np.ones(1), 1.0, is_flat=np.array([True, False]), is_target_flat=True
    )
    X = np.hstack([rows_of(50.0), rows_of(50.0)])
    renewed = after(used.following, X, X[:, :1], None)
    np.testing.assert_allclose((renewed.mean, renewed.scale), [[1, 0], [1, 50]], atol=1e-12)
    assert renewed.target_scale == 1.0 and renewed.is_flat is used.is_flat


def test_a_column_whose_deviation_is_one_keeps_its_scale():
    used = Standardization(np.zeros(1), np.ones(1), np.zeros(1), 1.0)
    rows = np.array([[9.0], [-9.0]])
    assert after(used.with_new_scales, rows, rows, None) is used


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
            found.append((largest_eigenvalue(X, None, None), norm(X.ravel()), moments(X, weights)[0].tolist()))
    assert found[0] == found[1]
