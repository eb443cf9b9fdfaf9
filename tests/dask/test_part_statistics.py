"""Facts of partitions, merged."""

import numpy as np
import pytest
import scipy.sparse

pytest.importorskip("distributed")

from skort.dask.assignment import Size
from skort.dask.part_statistics import Rows, measured, merged_measures
from skort.optim import standardization
from skort.optim.standardization import moments


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_those_of_all_rows(rng, weighted):
    X = rng.normal(1e3, 2, (90, 4)).astype(np.float32)
    X[:, 3] = 5
    rows = Rows(X, rng.normal(size=(90, 1)), rng.uniform(0.1, 2, 90) if weighted else None)
    parts = [rows.taken(np.arange(*ends)) for ends in ((0, 1), (1, 50), (50, 90))]
    found = merged_measures(
        [measured(part, 90) for part in [*parts, Rows(np.empty((0, 0)), np.empty((0, 0)), None)]]
    )
    mean, deviation = moments(X, rows.sample_weight)
    np.testing.assert_allclose(found.columns.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.columns.deviation, deviation, rtol=1e-9)
    np.testing.assert_allclose(
        found.targets.deviation, moments(rows.target, rows.sample_weight)[1], rtol=1e-10
    )
    assert found.columns.deviation[3] == 0
    assert found.weight_sum == pytest.approx(rows.sample_weight.sum() if weighted else 90)
    assert [size.n_rows for size in found.sizes] == [1, 49, 40, 0]


def test_empty_partitions_take_no_share(monkeypatch, rng):
    monkeypatch.setattr(standardization, "_MANY_VALUES", 4000)
    X, none = rng.normal(size=(4000, 1)), Rows(np.empty((0, 0)), np.empty((0, 0)), None)
    found = merged_measures([measured(part, 4000) for part in [Rows(X, X, None), *[none] * 50]])
    np.testing.assert_allclose(found.columns.mean, X.mean(axis=0), rtol=1e-12)


def test_partitions_share_the_values_that_stand_for_all(monkeypatch, rng):
    """Of each of ten partitions 256 rows."""
    monkeypatch.setattr(standardization, "_MANY_VALUES", 2560)
    X = np.sort(rng.normal(size=(20_000, 1)), axis=0)
    parts = [Rows(part, part, None) for part in np.split(X, 10)]
    found = merged_measures([measured(part, len(X)) for part in parts]).columns
    blocks = (np.arange(256) * (2000 / 256) + 2000 / 512 - 0.5).astype(int)
    chosen = np.concatenate([part.X[blocks, 0] for part in parts])
    np.testing.assert_allclose(
        [found.mean[0], found.deviation[0]], [chosen.mean(), chosen.std()], rtol=1e-12
    )
    np.testing.assert_allclose([found.mean[0], found.deviation[0]], [X.mean(), X.std()], atol=0.01)


def test_sparse_rows_have_a_norm():
    X = scipy.sparse.csr_matrix([[3.0, 0.0], [0.0, 4.0]])
    found = measured(Rows(X, np.zeros((2, 1)), np.array([1.0, 0.5])), 2)
    assert found.norm == 9
    assert found.columns is None
    assert isinstance(found.sizes[0], Size)


def test_every_row_once(rng):
    X = np.arange(10.0)[:, None]
    rows = Rows(X, X, None)
    parts = [rows.every(start, 3) for start in range(3)]
    joined = Rows.concatenated(parts)
    assert sorted(joined.X.ravel()) == list(range(10))
    assert joined.X.flags.c_contiguous and Rows.concatenated(parts[:1]).X.flags.c_contiguous
    assert joined.sample_weight is None


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_sparse_columns_are_those_of_all_rows(rng, weighted):
    X = scipy.sparse.random(90, 300, 0.2, "csr", random_state=0)
    rows = Rows(X, rng.normal(size=(90, 1)), rng.uniform(0.1, 2, 90) if weighted else None)
    parts = [rows.taken(np.arange(*ends)) for ends in ((0, 1), (1, 50), (50, 90))]
    found = merged_measures(
        [measured(part, 90) for part in [*parts, Rows(np.empty((0, 0)), np.empty((0, 0)), None)]]
    )
    sums, counts = found.column_sums
    np.testing.assert_allclose(sums, np.abs(X.toarray()).sum(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(counts, (X.toarray() != 0).sum(axis=0))
