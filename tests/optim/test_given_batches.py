"""Batches that somebody else makes."""

import numpy as np
import pytest

from skort.optim.batches import HostBatch
from skort.optim.given_batches import GivenBatches


def given(parts, batch_size, n_rows, scale=1.0):
    random_state = np.random.RandomState(0)
    return GivenBatches(
        lambda: iter(parts), n_rows=n_rows, n_batches=1, batch_size=batch_size, scale=scale, random_state=random_state
    )


def part(first, n, weight=None):
    X = np.arange(first, first + n, dtype="float64")[:, None]
    return X, -X, weight


def test_an_epoch_is_the_rows_in_their_order_divided_into_parts():
    batches, batch = given([part(1, 5), part(6, 2)], 3, 7), HostBatch.empty(3, 1, 1, "float64")
    seen, shares = [], []
    for share in batches.epoch(batch):
        rows = batch.sample_weight.ravel() > 0
        seen.append(batch.X[rows].ravel().tolist())
        shares.append(share)
        assert batch.sample_weight.sum() == pytest.approx(1)
        np.testing.assert_array_equal(batch.target, -batch.X)
    assert seen == [[1, 2, 3], [4, 5], [6, 7]]
    assert shares == [3 / 7, 2 / 7, 2 / 7]


def test_a_part_without_weight_is_left_out():
    weight = np.array([0.0, 0.0, 2.0, 4.0])
    batches, batch = given([part(1, 4, weight)], 2, 2, scale=1 / 3), HostBatch.empty(2, 1, 1, "float64")
    assert list(batches.epoch(batch)) == [1.0]
    np.testing.assert_allclose(batch.sample_weight.ravel(), [1 / 3, 2 / 3])


@pytest.mark.parametrize("n_rows", [2, 4])
def test_other_numbers_of_rows_are_an_error(n_rows):
    batches, batch = given([part(1, 3)], 3, n_rows), HostBatch.empty(3, 1, 1, "float64")
    with pytest.raises(ValueError, match=f"batches gave 3 rows .* and {n_rows} when they were read first"):
        list(batches.epoch(batch))


def test_nothing_is_drawn():
    batches = given([], 3, 0)
    before = batches.random_state.get_state()[1].copy()
    list(batches.epoch(HostBatch.empty(3, 1, 1, "float64")))
    batches.draw(batches.random_state)
    np.testing.assert_array_equal(batches.random_state.get_state()[1], before)
    assert batches.n_drawn == 0
