"""Batches: every row once an epoch, weights as they are defined."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from skort.descent.batches import Batch, Batches


def epoch(n, batch_size, sample_weight=None, shuffle=True, seed=0, scale=1.0):
    """Return [(rows, sample weights, share)] of one epoch over X = row numbers."""
    X = np.arange(n, dtype=np.float64)[:, None]
    batches = Batches(
        X,
        X,
        sample_weight,
        batch_size=batch_size,
        shuffle=shuffle,
        random_state=np.random.RandomState(seed),
        sample_weight_scale=scale,
    )
    batch = Batch.empty(batches.batch_size, 1, 1, np.float64)
    seen = []
    for share in batches.epoch(batch):
        np.testing.assert_array_equal(batch.X, batch.target)
        seen.append((batch.X.ravel().astype(int), batch.sample_weight.ravel().copy(), share))
    return seen


@given(n=st.integers(1, 60), batch_size=st.integers(1, 70), seed=st.integers(0, 99))
@settings(deadline=None)
def test_every_row_is_used_once_as_one_of_its_batch(n, batch_size, seed):
    used = []
    for rows, weights, share in epoch(n, batch_size, seed=seed):
        real = weights > 0
        used += rows[real].tolist()
        np.testing.assert_allclose(weights[real], 1 / real.sum())
        assert share == pytest.approx(real.sum() / n)
    assert sorted(used) == list(range(n))


@given(data=st.data(), n=st.integers(1, 40), batch_size=st.integers(1, 50))
@settings(deadline=None)
def test_an_epoch_sums_to_the_weighted_mean(data, n, batch_size):
    weight = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=n, max_size=n)))
    weight[data.draw(st.integers(0, n - 1))] = 3.0
    mean, n_rows = weight[weight > 0].mean(), np.count_nonzero(weight)
    total, used = np.zeros(n), []
    for rows, weights, share in epoch(n, batch_size, weight, scale=0.5):
        real = weights > 0
        np.testing.assert_allclose(weights[real], 0.5 * weight[rows[real]] / (mean * real.sum()))
        assert share == pytest.approx(real.sum() / n_rows)
        np.add.at(total, rows, share * weights)
        used += rows[real].tolist()
    assert sorted(used) == np.flatnonzero(weight).tolist()
    np.testing.assert_allclose(total, 0.5 * weight / weight.sum())


def test_only_the_ratios_of_the_weights_count():
    weight = np.array([1.0, 2, 0.5, 4, 1])
    expected = epoch(5, 2, weight)
    for scaled in (weight * 2.0**1021, weight * 2.0**-1000):
        for (rows, weights, share), (scaled_rows, scaled_weights, scaled_share) in zip(
            expected, epoch(5, 2, scaled), strict=True
        ):
            np.testing.assert_array_equal(rows, scaled_rows)
            np.testing.assert_array_equal(weights, scaled_weights)
            assert share == scaled_share


def test_order_without_shuffle_and_short_last_batch():
    seen = epoch(5, 2, shuffle=False)
    assert [rows.tolist() for rows, _, _ in seen] == [[0, 1], [2, 3], [4, 0]]
    assert [weights.tolist() for _, weights, _ in seen] == [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]]
    assert [share for _, _, share in seen] == pytest.approx([0.4, 0.4, 0.2])


def test_order_is_a_new_seeded_permutation_each_epoch():
    X = np.arange(50.0)[:, None]

    def two_epochs(seed):
        batches = Batches(X, X, None, batch_size=50, shuffle=True, random_state=np.random.RandomState(seed))
        batch = Batch.empty(50, 1, 1, np.float64)
        return [batch.X.ravel().tolist() for _ in range(2) for _ in batches.epoch(batch)]

    first, second = two_epochs(3)
    assert first != second
    assert [first, second] == two_epochs(3)
    assert [first, second] != two_epochs(4)


def with_long_indices(X):
    rows = scipy.sparse.csr_array(X)
    rows.indptr, rows.indices = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
    return rows


@pytest.mark.parametrize("container", [scipy.sparse.csr_matrix, scipy.sparse.csr_array, with_long_indices])
def test_sparse_rows_make_the_same_batches(rng, container):
    X = rng.normal(size=(25, 4)).astype(np.float32) * (rng.random((25, 4)) < 0.3)
    seen = []
    for rows in (X, container(X)):
        random_state = np.random.RandomState(0)
        batches = Batches(rows, X, None, batch_size=10, shuffle=True, random_state=random_state)
        batch = Batch.empty(10, 4, 4, np.float32)
        seen.append([batch.X.copy() for _ in batches.epoch(batch)])
    np.testing.assert_array_equal(*seen)
