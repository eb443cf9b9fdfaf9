"""Products of sparse rows are those of the same rows in an array."""

import numpy as np
import pytest
import scipy.sparse

from skort.optim import sparse_batch
from skort.optim.sparse_batch import SparseBatch, SparseRows


def with_long_indices(X):
    X = scipy.sparse.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def with_repeated_indices(X):
    """Return a matrix whose values are each the sum of two, in any order."""
    rows, columns = np.nonzero(X)
    halves = np.concatenate([X[rows, columns] / 2] * 2)
    order = np.argsort(np.tile(rows, 2), kind="stable")
    indptr = np.concatenate([[0], np.cumsum(2 * np.count_nonzero(X, axis=1))])
    return scipy.sparse.csr_matrix((halves[order], np.tile(columns, 2)[order][:], indptr), X.shape)


@pytest.fixture(params=[True, False], ids=["private functions", "public functions"])
def kernels(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(sparse_batch, "csr_row_index", None)


@pytest.mark.parametrize(
    "kind", [scipy.sparse.csr_matrix, scipy.sparse.csr_array, with_long_indices, with_repeated_indices]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.usefixtures("kernels")
def test_products_are_those_of_the_array(kind, dtype, n_outputs, rng):
    X = (rng.normal(size=(9, 7)) * (rng.random((9, 7)) < 0.4)).astype(dtype)
    matrix, by_product = (rng.normal(size=(n, n_outputs)).astype(dtype) for n in (7, 4))
    rows, sparse = SparseRows(4, 7, dtype), kind(X)
    # The second batch has fewer values than the first one.
    for numbers in (np.array([8, 0, 3, 3]), np.argsort(np.count_nonzero(X, axis=1))[:4]):
        rows.take(sparse, numbers)
        product, total = rows.product(matrix), np.ones((7, n_outputs), dtype)
        rows.add_transposed_product(by_product, total)
        assert product.dtype == dtype
        np.testing.assert_allclose(product, X[numbers] @ matrix, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(total, 1 + X[numbers].T @ by_product, rtol=1e-5, atol=1e-6)


def test_indices_may_have_another_type_than_their_ranges(rng):
    X = scipy.sparse.random(6, 5, 0.5, format="csr", random_state=0)
    X.indptr = X.indptr.astype(np.int64)
    batch = SparseBatch((2, 5), 1, np.float64)
    fill, *_ = batch.fillers([X, np.zeros((6, 1))])
    fill(np.array([3, 2]))
    np.testing.assert_allclose(batch.rows.product(np.eye(5)), X.toarray()[[3, 2]])


def test_a_batch_takes_the_rows_of_all_data(rng):
    X = scipy.sparse.random(6, 5, 0.5, format="csr", random_state=0)
    target, weight = rng.normal(size=(6, 2)), rng.random((6, 1))
    batch = SparseBatch((3, 5), 2, np.float64)
    for fill in batch.fillers([X, target, weight]):
        fill(np.array([5, 1, 1]))
    np.testing.assert_allclose(batch.rows.product(np.eye(5)), X.toarray()[[5, 1, 1]])
    np.testing.assert_array_equal(batch.target, target[[5, 1, 1]])
    np.testing.assert_array_equal(batch.sample_weight, weight[[5, 1, 1]])
    assert len(batch) == 3
