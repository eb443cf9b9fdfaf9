"""Batches that are filled with given rows."""

import numpy as np
import pytest
import scipy.sparse

from skort.optim.batches import HostBatch
from skort.optim.filled import fill


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_rows_of_weight_zero_fill_the_batch_up(form):
    X, target = np.arange(6, dtype="float32").reshape(3, 2), np.arange(3, dtype="float32")[:, None]
    batch = HostBatch.empty(5, 2, 1, "float32")
    batch.X[...] = np.nan
    fill(batch, form(X), target, None, 2.0)
    np.testing.assert_array_equal(batch.X, X[[0, 1, 2, 0, 1]])
    np.testing.assert_array_equal(batch.target, target[[0, 1, 2, 0, 1]])
    np.testing.assert_array_equal(batch.sample_weight.ravel(), np.float32([2 / 3, 2 / 3, 2 / 3, 0, 0]))


def test_a_batch_is_divided_by_its_rows_of_positive_weight():
    batch = HostBatch.empty(4, 1, 1, "float64")
    fill(batch, np.ones((4, 1)), np.ones((4, 1)), np.array([0.0, 1.0, 2.0, 6.0]), 0.5)
    np.testing.assert_array_equal(batch.sample_weight.ravel(), np.array([0, 1, 2, 6]) * (0.5 / 3))
