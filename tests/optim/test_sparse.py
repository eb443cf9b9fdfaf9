"""
Products of sparse rows are those of the same rows in an array;
lazy updates are those of all weights.
"""

import numpy as np
import pytest
import scipy.sparse

from skort.optim import row_change
from skort.optim.optimizers import SGD, Adam, Momentum, Nesterov, optimizer_tags
from skort.optim.row_change import SparseRows
from skort.optim.sparse import LazyWeights, Recurrence, SparseBatch
from skort.optim.update import Update


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
        monkeypatch.setattr(row_change, "csr_row_index", None)


@pytest.mark.parametrize(
    "kind",
    [scipy.sparse.csr_matrix, scipy.sparse.csr_array, with_long_indices, with_repeated_indices],
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


SHAPE, N_ROWS, FACTOR = (30, 2), 5, 0.5


class OwnSGD(SGD):
    """Its update could be any."""


def lazy_and_full(optimizer, l2, average, etas, *, settle_at=()):
    """
    Make the same updates by a rule and lazily;
    return both states, the norms and the true ones of each update.
    """
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(40, SHAPE[0], 0.1, format="csr", random_state=0)
    n = SHAPE[0] * SHAPE[1]
    rule = Update(optimizer, average=average).rule()
    weights = rng.normal(size=n)
    state = rule.start(n, 0, weights.dtype)
    names = Recurrence.of(
        optimizer_tags(optimizer).linear, l2, "average_mean" if average else None
    ).names
    arrays = {name: ({"weights": weights} | state)[name].copy().reshape(SHAPE) for name in names}
    lazy = LazyWeights(
        Recurrence.of(optimizer_tags(optimizer).linear, l2, "average_mean" if average else None),
        arrays,
        FACTOR,
    )
    rows, seen, true = SparseRows(N_ROWS, SHAPE[0], "float64"), [], []
    for t, eta in enumerate(etas, 1):
        numbers, by_product = rng.integers(0, 40, N_ROWS), rng.normal(size=(N_ROWS, SHAPE[1]))
        rows.take(X, numbers)
        product, parts = lazy.products(rows)
        dense = FACTOR * X[numbers].toarray()
        np.testing.assert_allclose(product, dense @ weights.reshape(SHAPE), rtol=1e-9, atol=1e-12)
        gradient = (dense.T @ by_product).ravel()
        if l2:
            true.append((weights @ weights, weights @ gradient, gradient @ gradient))
        rule.update(weights, gradient + l2 * weights, eta, state, np.empty(n))
        share = 0.0 if rule.averaging is None else rule.averaging.share(state)
        lazy.update(rows, parts, by_product, eta, share)
        if l2:
            seen.append((lazy.square, lazy.along, lazy.squared_gradient(rows, by_product)))
        if t in settle_at:
            lazy.settle()
    lazy.settle()
    return arrays, {"weights": weights, **state}, seen, true


@pytest.mark.parametrize(
    "optimizer",
    [SGD(), Momentum(momentum=0.9), Momentum(momentum=0.99), Nesterov(momentum=0.6)],
    ids=repr,
)
@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("average", [False, 1, 20])
@pytest.mark.parametrize(
    "etas",
    [[0.05] * 200, [0.1 / t for t in range(1, 100)], [0.1, 0.0, 0.1] * 5],
    ids=["constant", "falling", "zero"],
)
def test_lazy_updates_are_those_of_all_weights(optimizer, l2, average, etas):
    arrays, state, seen, true = lazy_and_full(optimizer, l2, average, etas)
    for name, array in arrays.items():
        np.testing.assert_allclose(array.ravel(), state[name], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(seen, true, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("optimizer", [SGD(), Nesterov(momentum=0.9)], ids=repr)
def test_it_does_not_matter_when_the_weights_are_read(optimizer):
    at_end, *_ = lazy_and_full(optimizer, 0.1, 5, [0.1] * 30)
    often, *_ = lazy_and_full(optimizer, 0.1, 5, [0.1] * 30, settle_at=(1, 2, 17))
    for name, array in often.items():
        np.testing.assert_allclose(array, at_end[name], rtol=1e-10)


@pytest.mark.parametrize("optimizer", [Adam(), Momentum(momentum=0.999), OwnSGD()], ids=repr)
def test_other_optimizers_have_no_recurrence(optimizer):
    assert Recurrence.of(optimizer_tags(optimizer).linear, 0.0) is None


def test_only_rows_with_a_gradient_change(rng):
    weights = rng.normal(size=SHAPE)
    before, rows = weights.copy(), SparseRows(1, SHAPE[0], "float64")
    lazy = LazyWeights(Recurrence.of(SGD().tags.linear, 0.0), {"weights": weights}, 1.0)
    rows.take(
        scipy.sparse.csr_matrix(([2.0, 3.0], ([0, 0], [4, 7])), shape=(1, SHAPE[0])), np.array([0])
    )
    _, parts = lazy.products(rows)
    lazy.update(rows, parts, np.array([[1.0, -1.0]]), 0.1)
    expected = before.copy()
    expected[[4, 7]] -= [[0.2, -0.2], [0.3, -0.3]]
    np.testing.assert_allclose(weights, expected)
    assert (weights == before).all(axis=1).sum() == SHAPE[0] - 2


def test_numbers_that_are_not_finite_are_found():
    weights = np.zeros(SHAPE)
    lazy = LazyWeights(Recurrence.of(SGD().tags.linear, 0.0), {"weights": weights}, 1.0)
    assert lazy.is_finite()
    weights[3, 1] = np.inf
    assert not lazy.is_finite()
