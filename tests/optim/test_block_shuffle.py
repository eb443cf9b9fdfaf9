"""Windows: each block is in one of them, and each window has one block of each region."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skort.optim.block_shuffle import WindowShape


@pytest.mark.parametrize(
    "n_features, batch_size, expected",
    [
        (20, 200, WindowShape(256, 204)),
        (20, 1000, WindowShape(1000, 52)),
        (1, 1, WindowShape(256, 4096)),
        (784, 256, WindowShape(256, 5)),
        (2**14, 1, WindowShape(256, 1)),
    ],
)
def test_a_window_has_two_to_the_20_values_and_a_block_for_every_row_of_a_batch(n_features, batch_size, expected):
    assert WindowShape.of(n_features, batch_size) == expected


@given(n=st.integers(1, 400), n_blocks=st.integers(1, 50), seed=st.integers(0, 99))
@settings(deadline=None)
def test_windows_share_all_blocks_one_of_every_stratum(n, n_blocks, seed):
    blocks = 3 * np.arange(n) + 1
    windows = list(WindowShape(n_blocks, 2).draw(blocks, np.random.RandomState(seed)))
    np.testing.assert_array_equal(np.sort(np.concatenate(windows)), blocks)
    assert len(windows) == np.ceil(n / n_blocks)
    for window in windows:
        # The i-th block of a window is of the i-th stratum: of as many consecutive blocks as there are windows.
        np.testing.assert_array_equal((window - 1) // 3 // len(windows), np.arange(len(window)))
        assert len(window) <= n_blocks


def test_windows_are_drawn_anew_from_their_seed():
    def drawn(seed):
        return [window.tolist() for window in WindowShape(8, 2).draw(np.arange(60), np.random.RandomState(seed))]

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)


def test_rows_are_divided_among_blocks_that_have_some_of_positive_weight():
    weight = np.array([0.0, 1, 0, 0, 2, 3, 0, 1, 0, 4])
    blocks, rest = WindowShape(8, 2).divide(weight)
    assert (blocks.tolist(), rest.tolist()) == ([0, 2, 3, 4], [])
    blocks, rest = WindowShape(8, 4).divide(weight)
    assert (blocks.tolist(), rest.tolist()) == ([0, 1], [9])
    blocks, rest = WindowShape(8, 4).divide(np.broadcast_to(1.0, 7))
    assert (blocks.tolist(), rest.tolist()) == ([0], [4, 5, 6])


@given(n_more=st.integers(0, 9), n_blocks=st.integers(1, 9), length=st.integers(1, 9), seed=st.integers(0, 99))
@settings(deadline=None)
def test_each_round_deals_a_row_of_every_block(n_more, n_blocks, length, seed):
    order = WindowShape(9, length).deal(n_more, n_blocks, np.random.RandomState(seed))
    assert sorted(order) == list(range(n_more + n_blocks * length))
    for dealt in (order[order >= n_more] - n_more).reshape(length, n_blocks):
        assert sorted(dealt // length) == list(range(n_blocks))


@pytest.mark.slow
def test_every_place_of_an_order_is_as_likely_for_every_row():
    random_state, shape = np.random.RandomState(0), WindowShape(4, 3)
    orders = np.array([shape.deal(2, 4, random_state) for _ in range(20_000)])
    counts = (orders[:, :, None] == np.arange(14)).sum(axis=0)
    # Standard deviation 36.
    np.testing.assert_allclose(counts[:, :2], 20_000 / 14, atol=180)
    np.testing.assert_allclose(counts[:, 2:], 20_000 / 14, atol=180)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_copies_are_rows_and_then_blocks(rng, n_columns):
    rows, shape = rng.normal(size=(11, n_columns)), WindowShape(4, 2)
    more, blocks = np.array([10, 3]), np.array([0, 2, 4])
    numbers = [10, 3, 0, 1, 4, 5, 8, 9]
    np.testing.assert_array_equal(shape.copier(rows, 2)(more, blocks), rows[numbers])
    np.testing.assert_array_equal(shape.rows(blocks), numbers[2:])
