"""Batches: every row once per epoch, with sample weights by their formula."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skort.optim import row_change
from skort.optim.batches import (
    MANY_ROWS,
    Batches,
    EpochSize,
    HostBatch,
    UserBatches,
    WindowShape,
    fill,
)


def epoch(n, batch_size, sample_weight=None, shuffle=True, seed=0, scale=1.0, copies=1):
    """Return [(rows, sample weights, portion)] of one epoch over X = row numbers."""
    X = np.arange(n, dtype=np.float64)[:, None]
    batches = Batches(
        X,
        X,
        sample_weight,
        batch_size=batch_size,
        shuffle=shuffle,
        random_state=np.random.RandomState(seed),
        sample_weight_scale=scale,
        copies=copies,
    )
    batch = HostBatch.empty(batches.batch_size, 1, 1, np.float64)
    seen = []
    for portion in batches.epoch(batch):
        np.testing.assert_array_equal(batch.X, batch.target)
        seen.append((batch.X.ravel().astype(int), batch.sample_weight.ravel().copy(), portion))
    return seen


@given(n=st.integers(1, 60), batch_size=st.integers(1, 70), seed=st.integers(0, 99))
@settings(deadline=None)
def test_every_row_is_used_once_as_one_of_its_batch(n, batch_size, seed):
    used = []
    for rows, weights, (share, part) in epoch(n, batch_size, seed=seed):
        real = weights > 0
        used += rows[real].tolist()
        np.testing.assert_allclose(weights[real], 1 / real.sum())
        assert share == pytest.approx(real.sum() / n)
        assert part == real.sum() / batch_size
    assert sorted(used) == list(range(n))


@pytest.mark.parametrize("sample_weight", [None, np.array([2.0, 0, 2, 1, 2, 2])])
def test_an_epoch_has_so_many_copies_of_each_row(sample_weight):
    seen = epoch(6, 4, sample_weight, copies=3)
    counted = np.arange(6) if sample_weight is None else np.array([0, 2, 3, 4, 5])
    used = np.concatenate([rows[weights > 0] for rows, weights, _ in seen])
    np.testing.assert_array_equal(np.sort(used), np.repeat(counted, 3))
    # 18 and 15 rows, in batches of 4
    n_last = 2 if sample_weight is None else 3
    assert [portion.part for *_, portion in seen[-2:]] == [1, n_last / 4]
    assert sum(portion.share for *_, portion in seen) == pytest.approx(3)
    if sample_weight is not None:
        rows, weights, _ = seen[0]
        np.testing.assert_allclose(weights, sample_weight[rows] / 1.8 / 4)


@given(data=st.data(), n=st.integers(1, 40), batch_size=st.integers(1, 50))
@settings(deadline=None)
def test_an_epoch_sums_to_the_weighted_mean(data, n, batch_size):
    weight = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=n, max_size=n))
    )
    weight[data.draw(st.integers(0, n - 1))] = 3.0
    mean, n_rows = weight[weight > 0].mean(), np.count_nonzero(weight)
    total, used = np.zeros(n), []
    for rows, weights, (share, part) in epoch(n, batch_size, weight, scale=0.5):
        real = weights > 0
        np.testing.assert_allclose(weights[real], 0.5 * weight[rows[real]] / (mean * real.sum()))
        assert share == pytest.approx(real.sum() / n_rows)
        assert part == real.sum() / batch_size
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
    assert [portion for _, _, portion in seen] == [(0.4, 1.0), (0.4, 1.0), (0.2, 0.5)]


def test_order_is_a_new_seeded_permutation_each_epoch():
    X = np.arange(50.0)[:, None]

    def two_epochs(seed):
        batches = Batches(
            X, X, None, batch_size=50, shuffle=True, random_state=np.random.RandomState(seed)
        )
        batch = HostBatch.empty(50, 1, 1, np.float64)
        return [batch.X.ravel().tolist() for _ in range(2) for _ in batches.epoch(batch)]

    first, second = two_epochs(3)
    assert first != second
    assert [first, second] == two_epochs(3)
    assert [first, second] != two_epochs(4)


def with_long_indices(X):
    rows = scipy.sparse.csr_array(X)
    rows.indptr, rows.indices = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
    return rows


@pytest.mark.parametrize(
    "container", [scipy.sparse.csr_matrix, scipy.sparse.csr_array, with_long_indices]
)
def test_sparse_rows_make_the_same_batches(rng, container):
    X = rng.normal(size=(25, 4)).astype(np.float32) * (rng.random((25, 4)) < 0.3)
    seen = []
    for rows in (X, container(X)):
        random_state = np.random.RandomState(0)
        batches = Batches(rows, X, None, batch_size=10, shuffle=True, random_state=random_state)
        batch = HostBatch.empty(10, 4, 4, np.float32)
        seen.append([batch.X.copy() for _ in batches.epoch(batch)])
    np.testing.assert_array_equal(*seen)


@pytest.mark.parametrize(
    "container", [scipy.sparse.csr_matrix, scipy.sparse.csr_array, with_long_indices]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_rows_are_the_same_without_scipys_private_functions(
    rng, container, dtype, monkeypatch
):
    X = rng.normal(size=(25, 4)).astype(dtype) * (rng.random((25, 4)) < 0.3)
    indices, batch = np.array([3, 24, 3, 0]), HostBatch.empty(4, 4, 1, dtype)
    for functions in (row_change.csr_row_index, None):
        monkeypatch.setattr(row_change, "csr_row_index", functions)
        batch.X.fill(np.nan)
        batch.fillers((container(X),))[0](indices)
        np.testing.assert_array_equal(batch.X, X[indices])


def batches(X, target=None, sample_weight=None, *, batch_size=200, seed=0):
    return Batches(
        X,
        np.arange(float(X.shape[0]))[:, None] if target is None else target,
        sample_weight,
        batch_size=batch_size,
        shuffle=True,
        random_state=np.random.RandomState(seed),
    )


def order(n, n_features, batch_size, seed=0):
    """Return the rows in the order of an epoch over n rows: [an array for each window]."""
    X = scipy.sparse.csr_array((n, n_features), dtype=np.float32)
    return [rows for _, rows in batches(X, batch_size=batch_size, seed=seed).order(in_place=True)]


@given(
    data=st.data(), n=st.integers(3, 150), batch_size=st.integers(1, 160), seed=st.integers(0, 99)
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_windows_use_every_row_of_positive_weight_once(small_windows, data, n, batch_size, seed):
    weight = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.0, 2.0]), min_size=n, max_size=n))
    )
    weight[0] = 1.0
    for sample_weight, used in ((None, np.ones(n)), (weight, weight)):
        total, n_batches = np.zeros(n), 0
        for rows, values, (share, _) in epoch(n, batch_size, sample_weight, seed=seed):
            n_real = np.count_nonzero(values)
            real = rows[:n_real]
            np.testing.assert_allclose(
                values[:n_real], used[real] / (used[used > 0].mean() * n_real)
            )
            np.add.at(total, rows, share * values)
            n_batches += 1
        np.testing.assert_allclose(total, used / used.sum())
        assert n_batches == np.ceil(np.count_nonzero(used) / batch_size)


def test_up_to_131072_rows_have_the_order_of_a_permutation():
    random_state = np.random.RandomState(7)
    many = batches(scipy.sparse.csr_array((MANY_ROWS, 1)), seed=7)
    for _ in range(2):
        ((_, rows),) = many.order()
        np.testing.assert_array_equal(rows, random_state.permutation(2**17))
    assert len(order(MANY_ROWS + 1, 20, 200)) > 1


def test_rows_as_long_as_a_block_have_the_order_of_a_permutation():
    (rows,) = order(MANY_ROWS + 1, 2**12, 200)
    np.testing.assert_array_equal(rows, np.random.RandomState(0).permutation(MANY_ROWS + 1))


def test_an_array_a_memory_map_and_a_sparse_matrix_make_the_same_batches(rng, tmp_path):
    n, n_features = MANY_ROWS + 1000, 20
    X = rng.normal(size=(n, n_features)).astype(np.float32) * (rng.random((n, n_features)) < 0.2)
    np.save(tmp_path / "X.npy", X)
    forms = [X, np.load(tmp_path / "X.npy", mmap_mode="r"), scipy.sparse.csr_array(X)]
    made = [batches(form, batch_size=1000) for form in forms]
    filled = [HostBatch.empty(1000, n_features, 1, np.float32) for _ in forms]
    seen = []
    for shares in zip(
        *(b.epoch(batch) for b, batch in zip(made, filled, strict=True)), strict=True
    ):
        assert len(set(shares)) == 1
        rows = filled[0].target.ravel().astype(int)
        for batch in filled:
            np.testing.assert_array_equal(batch.X, X[rows])
            np.testing.assert_array_equal(batch.target, filled[0].target)
            np.testing.assert_array_equal(batch.sample_weight, filled[0].sample_weight)
        seen += rows[filled[0].sample_weight.ravel() > 0].tolist()
    assert sorted(seen) == list(range(n))


@pytest.mark.parametrize("n", [5_000, MANY_ROWS + 1000])
def test_rows_at_an_odd_address_make_the_same_batches_and_are_not_copied(rng, n):
    X = rng.normal(size=(n, 20)).astype(np.float32)
    odd = np.empty(X.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(X.shape)
    odd[...] = X
    made = [batches(form, batch_size=100) for form in (X, odd)]
    expected, found = (HostBatch.empty(100, 20, 1, np.float32) for _ in made)
    copy = WindowShape.of(20, 100).copier(odd, 100)
    calls = [lambda fill=fill: fill(np.arange(100)) for fill in found.fillers(made[1].data)]
    for call in [*calls, lambda: copy(np.arange(3), np.arange(2))]:
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**14
    for _ in zip(
        *(b.epoch(batch) for b, batch in zip(made, (expected, found), strict=True)), strict=True
    ):
        np.testing.assert_array_equal(found.X, expected.X)
        np.testing.assert_array_equal(found.target, expected.target)


@pytest.mark.parametrize("n", [50, MANY_ROWS + 50])
def test_equal_weights_are_no_weights(n):
    X = scipy.sparse.csr_array((n, 20), dtype=np.float32)
    made = [batches(X, sample_weight=weight, batch_size=2000) for weight in (None, np.full(n, 3.0))]
    filled = [HostBatch.empty(b.batch_size, 20, 1, np.float32) for b in made]
    for shares in zip(
        *(b.epoch(batch) for b, batch in zip(made, filled, strict=True)), strict=True
    ):
        assert len(set(shares)) == 1
        np.testing.assert_array_equal(filled[0].target, filled[1].target)
        np.testing.assert_array_equal(filled[0].sample_weight, filled[1].sample_weight)


@pytest.mark.parametrize("n_features, batch_size", [(20, 200), (20, 1000), (100, 10)])
def test_a_window_reads_few_blocks(n_features, batch_size):
    n, shape = 10**6, WindowShape.of(n_features, batch_size)
    *windows, last = order(n, n_features, batch_size)
    assert len(windows) == np.ceil(n // shape.length / shape.n_blocks)
    assert len(last) == n % batch_size
    for rows in windows:
        assert len(rows) % batch_size == 0
        # Its own blocks, and less than a batch of rows that the window before left. A permutation
        # would be all over X.
        assert (
            len(np.unique(rows // shape.length))
            <= shape.n_blocks + batch_size
            < n // shape.length / 4
        )


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [200, 1000])
@pytest.mark.parametrize("run", [100_000, 2000, 20])
def test_the_composition_of_batches_is_that_of_two_stage_sampling(rng, run, batch_size):
    # Ten classes: sorted, or in runs of one class.
    n, classes = 10**6, np.arange(10)
    label = (
        np.repeat(classes if run == 100_000 else rng.integers(0, 10, n // run), run)[:, None]
        == classes
    )
    p = label.mean(axis=0)
    # In standard deviations of a permutation's batches, which are hypergeometric.
    deviation = np.sqrt(batch_size * p * (1 - p) * (n - batch_size) / (n - 1))
    variances = []
    for seed in range(5):
        rows = np.concatenate(order(n, 20, batch_size, seed))
        z = (label[rows].reshape(-1, batch_size, 10).sum(axis=1) - batch_size * p) / deviation
        assert np.abs(z).max() < 5
        variances.append(np.mean(z**2))

    shape = WindowShape.of(20, batch_size)
    region = int(np.ceil(n // shape.length / shape.n_blocks)) * shape.length
    n_regions = n // region
    p_region = label[: n_regions * region].reshape(n_regions, region, 10).mean(axis=1)
    within = np.mean(p_region * (1 - p_region)) / np.mean(p * (1 - p))
    expected = 1 - (1 - within) * min(1, batch_size / n_regions)
    assert np.mean(variances) == pytest.approx(expected, abs=0.07)


@pytest.mark.parametrize("n", [100, MANY_ROWS + 100])
def test_an_order_draws_what_an_epoch_draws(n):
    made = [batches(scipy.sparse.csr_array((n, 20), dtype=np.float32)) for _ in range(2)]
    made[0].order()
    batch = HostBatch.empty(made[1].batch_size, 20, 1, np.float32)
    for i, _ in enumerate(made[1].epoch(batch)):
        if i == 0:
            # In the middle of an epoch, too.
            state = made[1].random_state.get_state(legacy=False)["state"]
            np.testing.assert_array_equal(
                state["key"], made[0].random_state.get_state(legacy=False)["state"]["key"]
            )
    assert made[0].random_state.randint(10**6) == made[1].random_state.randint(10**6)


def test_no_order_of_all_rows_is_held():
    n = 2_000_000
    X, target = np.zeros((n, 20), np.float32), np.zeros((n, 1), np.float32)
    batch = HostBatch.empty(200, 20, 1, np.float32)
    tracemalloc.start()
    for _ in batches(X, target).epoch(batch):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A permutation would be 16 MB.
    assert peak < 10 * 2**20


@pytest.mark.parametrize(
    ("n", "batch_size", "expected"), [(10, 5, 2), (11, 5, 3), (9, 5, 2), (5, 5, 1), (1, 5, 1)]
)
def test_the_last_batch_may_be_short(n, batch_size, expected):
    batches = Batches(
        np.zeros((n, 1)),
        np.zeros((n, 1)),
        None,
        batch_size=batch_size,
        shuffle=False,
        random_state=None,
    )
    assert batches.n_batches == expected


@pytest.mark.parametrize(
    ("density", "n_columns", "expected"),
    [(0.09, 1000, True), (0.11, 1000, False), (0.09, 999, False)],
)
def test_batches_of_many_columns_with_few_values_are_sparse(density, n_columns, expected):
    X = scipy.sparse.random(50, n_columns, density, format="csr", dtype=np.float32, random_state=0)
    batches = Batches(X, np.zeros((50, 1)), None, batch_size=5, shuffle=False, random_state=None)
    assert batches.are_sparse is expected


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_rows_of_weight_zero_fill_the_batch_up(form):
    X, target = np.arange(6, dtype="float32").reshape(3, 2), np.arange(3, dtype="float32")[:, None]
    batch = HostBatch.empty(5, 2, 1, "float32")
    batch.X[...] = np.nan
    fill(batch, form(X), target, None, 2.0)
    np.testing.assert_array_equal(batch.X, X[[0, 1, 2, 0, 1]])
    np.testing.assert_array_equal(batch.target, target[[0, 1, 2, 0, 1]])
    np.testing.assert_array_equal(
        batch.sample_weight.ravel(), np.float32([2 / 3, 2 / 3, 2 / 3, 0, 0])
    )


def test_a_batch_is_divided_by_its_rows_of_positive_weight():
    batch = HostBatch.empty(4, 1, 1, "float64")
    fill(batch, np.ones((4, 1)), np.ones((4, 1)), np.array([0.0, 1.0, 2.0, 6.0]), 0.5)
    np.testing.assert_array_equal(batch.sample_weight.ravel(), np.array([0, 1, 2, 6]) * (0.5 / 3))


def streamed(parts, batch_size, n_rows, sample_weight=None):
    return UserBatches(
        lambda: iter(parts),
        EpochSize(n_rows, n_batches=1, batch_size=batch_size, rows_of_a_step=2 * batch_size),
        sample_weight=sample_weight,
        sample_weight_scale=1.0,
        random_state=np.random.RandomState(0),
    )


def part(first, n, weight=None):
    X = np.arange(first, first + n, dtype="float64")[:, None]
    return X, -X, weight


def test_an_epoch_is_the_rows_in_their_order_divided_into_parts():
    batches, batch = streamed([part(1, 5), part(6, 2)], 3, 7), HostBatch.empty(3, 1, 1, "float64")
    seen, portions = [], []
    for portion in batches.epoch(batch):
        rows = batch.sample_weight.ravel() > 0
        seen.append(batch.X[rows].ravel().tolist())
        portions.append(portion)
        assert batch.sample_weight.sum() == pytest.approx(1)
        np.testing.assert_array_equal(batch.target, -batch.X)
    assert seen == [[1, 2, 3], [4, 5], [6, 7]]
    assert portions == [(3 / 7, 1 / 2), (2 / 7, 1 / 3), (2 / 7, 1 / 3)]


def test_a_part_without_weight_is_left_out():
    weight = np.array([0.0, 0.0, 2.0, 4.0])
    batches, batch = (
        streamed([part(1, 4, weight)], 2, 2, weight),
        HostBatch.empty(2, 1, 1, "float64"),
    )
    assert list(batches.epoch(batch)) == [(1.0, 0.5)]
    np.testing.assert_allclose(batch.sample_weight.ravel(), [1 / 3, 2 / 3])


@pytest.mark.parametrize("n_rows", [2, 4])
def test_other_numbers_of_rows_are_an_error(n_rows):
    batches, batch = streamed([part(1, 3)], 3, n_rows), HostBatch.empty(3, 1, 1, "float64")
    with pytest.raises(
        ValueError, match=f"batches gave 3 rows .* and {n_rows} when they were read first"
    ):
        list(batches.epoch(batch))


def test_nothing_is_drawn():
    batches = streamed([], 3, 0)
    before = batches.random_state.get_state()[1].copy()
    list(batches.epoch(HostBatch.empty(3, 1, 1, "float64")))
    np.testing.assert_array_equal(batches.random_state.get_state()[1], before)
    assert batches.n_drawn == 0


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
def test_a_window_has_two_to_the_20_values_and_a_block_for_every_row_of_a_batch(
    n_features, batch_size, expected
):
    assert WindowShape.of(n_features, batch_size) == expected


@given(n=st.integers(1, 400), n_blocks=st.integers(1, 50), seed=st.integers(0, 99))
@settings(deadline=None)
def test_windows_share_all_blocks_one_of_every_stratum(n, n_blocks, seed):
    blocks = 3 * np.arange(n) + 1
    windows = list(WindowShape(n_blocks, 2).draw(blocks, np.random.RandomState(seed)))
    np.testing.assert_array_equal(np.sort(np.concatenate(windows)), blocks)
    assert len(windows) == np.ceil(n / n_blocks)
    for window in windows:
        # The i-th block of a window is of the i-th stratum: of as many consecutive blocks as
        # there are windows.
        np.testing.assert_array_equal((window - 1) // 3 // len(windows), np.arange(len(window)))
        assert len(window) <= n_blocks


def test_windows_are_drawn_anew_from_their_seed():
    def drawn(seed):
        return [
            window.tolist()
            for window in WindowShape(8, 2).draw(np.arange(60), np.random.RandomState(seed))
        ]

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


@given(
    n_more=st.integers(0, 9),
    n_blocks=st.integers(1, 9),
    length=st.integers(1, 9),
    seed=st.integers(0, 99),
)
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
