"""How noisy y is, as nearest rows tell it."""

import numpy as np
import pytest
import scipy.sparse

from skort.estimators.data.noise import noise_of
from skort.estimators.data.rows import DataStatistics, TrainingData

# Twelve pairs of rows: the nearest row of each is the other one of its pair.
PAIRS = np.column_stack([np.repeat(np.arange(12.0), 2), np.tile([0.0, 0.1], 12)])
Y = np.add(*np.meshgrid([0.0, 1.0], np.arange(12.0))).reshape(-1, 1)


def noise(X, y, sample_weight=None):
    return noise_of(X, y, sample_weight, X.mean(axis=0), np.ones(X.shape[1]))


def test_it_is_that_of_the_pairs():
    # Half of the squared difference, one, divided by the variance.
    assert noise(PAIRS, Y) == pytest.approx(0.5 / Y.var(), rel=1e-12)
    # Columns in other units are the same after the scales.
    statistics = DataStatistics(TrainingData(PAIRS * [1e6, 1e-6] + [3.0, 1e-3], Y, None))
    same = DataStatistics(TrainingData(PAIRS, Y, None))
    assert statistics.noise == pytest.approx(same.noise, rel=1e-12)
    assert statistics.noise < 0.1


@pytest.mark.parametrize("factor", [1e200, -3.0, 1e-200])
def test_the_unit_of_y_does_not_matter(factor):
    assert noise(PAIRS, factor * Y) == pytest.approx(0.5 / Y.var(), rel=1e-12)


def test_outputs_count_by_their_variance():
    targets = np.column_stack([Y, 100 * np.repeat(np.arange(12.0), 2)])
    expected = 0.5 / (Y.var() + targets[:, 1].var())
    assert noise(PAIRS, targets) == pytest.approx(expected, rel=1e-12)


def test_of_classes_it_is_the_share_of_neighbours_of_another_class():
    classes = np.repeat([0, 1, 2], 8)
    classes[0] = 2
    # Two of 24 rows have a neighbour of another class; 7, 8 and 9 of them are in the classes.
    among_any = 1 - (7**2 + 8**2 + 9**2) / 24**2
    assert noise(PAIRS, np.eye(3)[classes]) == pytest.approx(2 / 24 / among_any, rel=1e-12)
    binary = (classes == 0)[:, None].astype(np.float32)
    among_any = 1 - (7**2 + 17**2) / 24**2
    assert noise(PAIRS, binary) == pytest.approx(2 / 24 / among_any, rel=1e-7)


def test_rows_count_by_their_weight():
    weights = np.ones(24)
    weights[:2] = 5.0
    y = np.repeat(np.arange(12.0), 2)[:, None]
    y[1] += 1
    mean = np.average(y, axis=0, weights=weights)
    variance = np.average((y - mean) ** 2, axis=0, weights=weights)[0]
    assert noise(PAIRS, y, weights) == pytest.approx(10 / 32 / (2 * variance), rel=1e-12)


def test_rows_without_weight_do_not_count():
    X = np.concatenate([PAIRS, PAIRS + 1e-3])
    y = np.concatenate([Y, Y + 50])
    weights = np.repeat([2.0, 0.0], 24)
    assert noise_of(X, y, weights, PAIRS.mean(axis=0), np.ones(2)) == pytest.approx(
        noise(PAIRS, Y), rel=1e-12
    )


def test_copies_of_a_row_are_not_near_it(rng):
    X = rng.normal(size=(40, 3))
    y = X[:, :1] + rng.normal(size=(40, 1))
    twice = np.concatenate([X, X[::-1]]), np.concatenate([y, y[::-1]])
    assert noise(*twice) == pytest.approx(noise(X, y), rel=1e-12)
    assert noise(X, y) > 0.2


def test_many_rows_are_those_that_are_evenly_spaced(rng):
    X = rng.normal(size=(2999, 2))
    y = rng.normal(size=(2999, 1))
    some = np.linspace(0, 2998, 1000).astype(int)
    scale = np.ones(2)
    assert noise_of(X, y, None, scale, scale) == noise_of(X[some], y[some], None, scale, scale)


def test_little_does_not_tell_it():
    assert noise(PAIRS[:19], Y[:19]) is None
    assert noise(PAIRS[:20], Y[:20]) is not None
    assert noise(PAIRS, Y, np.arange(24) < 19) is None
    assert noise(PAIRS, np.full((24, 1), 3.0)) is None
    assert noise(PAIRS, np.where(np.arange(24) == 3, np.nan, Y[:, 0])[:, None]) is None
    wide = scipy.sparse.hstack([PAIRS, scipy.sparse.csr_matrix((24, 1001))], format="csr")
    assert DataStatistics(TrainingData(wide, Y, None)).noise is None


def test_sparse_rows_tell_what_dense_ones_do():
    dense, sparse = (
        DataStatistics(TrainingData(X, Y, None)) for X in (PAIRS, scipy.sparse.csr_matrix(PAIRS))
    )
    assert sparse.noise == pytest.approx(dense.noise, rel=1e-6)


def test_a_column_that_says_nothing_is_all_noise():
    # Any two rows differ as much.
    assert noise(np.zeros((24, 1)), Y) == pytest.approx(np.mean((Y - Y[0]) ** 2) / 2 / Y.var())
