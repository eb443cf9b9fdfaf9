"""Data that memory does not hold as a whole: memory maps, sparse matrices, chunks."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import is_regressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from skort import OrtSGDClassifier, OrtSGDRegressor

MODELS = [
    OrtSGDRegressor(),
    OrtSGDClassifier(MLPClassifier((8,))),
    OrtSGDClassifier(make_pipeline(MaxAbsScaler(), LogisticRegression())),
]


def data(n=90, n_features=12, density=0.2):
    """Return sparse X and a y that both estimators take."""
    X = scipy.sparse.csr_array(scipy.sparse.random(n, n_features, density=density, random_state=0))
    return X, (np.asarray(X.sum(axis=1)).ravel() > X.sum() / n).astype(int)


def options(model, **more):
    # Dense X would be standardized, sparse X is not.
    more = {"standardize": False, "eta0": 0.01 if is_regressor(model) else 0.1, **more}
    return model.set_params(max_iter=5, tol=None, random_state=0, batch_size=16, **more)


@pytest.mark.parametrize("form", ["csr_array", "csr_matrix", "csc_matrix", "coo_array"])
@pytest.mark.parametrize("model", MODELS)
def test_sparse_rows_give_what_dense_rows_give(solver, model, form):
    X, y = data()
    options(model, solver=solver)
    dense, sparse = X.toarray(), getattr(scipy.sparse, form)(X)
    weights = model.fit(dense, y, X_val=dense, y_val=y).weights_
    scores = model.validation_scores_
    predictions = model.predict(dense)
    model.fit(sparse, y, X_val=sparse, y_val=y)
    for name, w in model.weights_.items():
        np.testing.assert_array_equal(w, weights[name])
    np.testing.assert_allclose(model.validation_scores_, scores)
    np.testing.assert_array_equal(model.predict(sparse), predictions)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_sparse_rows_are_held_out(form):
    X, y = data()
    model = options(OrtSGDClassifier(), early_stopping=True)
    scores = model.fit(X.toarray(), y).validation_scores_
    np.testing.assert_allclose(model.fit(X.asformat(form), y).validation_scores_, scores)


def test_sparse_rows_are_streamed():
    X, y = data()
    chunks = [slice(0, 45), slice(45, 90)]
    streams = [options(OrtSGDClassifier()) for _ in range(2)]
    for rows in chunks:
        streams[0].partial_fit(X[rows], y[rows], classes=[0, 1])
        streams[1].partial_fit(X[rows].toarray(), y[rows], classes=[0, 1])
    np.testing.assert_array_equal(streams[0].coef_, streams[1].coef_)


@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict"])
def test_sparse_data_is_never_dense_as_a_whole(solver, method):
    n, n_features = 20_000, 2_000
    # scipy.sparse.random would take a second.
    places = np.random.default_rng(0).integers((n, n_features), size=(n * n_features // 1000, 2)).T
    X = scipy.sparse.csr_array(
        (np.ones(places.shape[1], np.float32), tuple(places)), shape=(n, n_features)
    )
    y = np.zeros(n)
    model = OrtSGDRegressor(solver=solver, max_iter=1, tol=None).fit(X[:300], y[:300])
    tracemalloc.start()
    model.predict(X) if method == "predict" else getattr(model, method)(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Dense, X would be 160 MB.
    assert peak < 16 * 2**20


MEMORY = """
import resource, sys
import numpy as np
from skort import OrtSGDRegressor
path, n, d = sys.argv[1], 1_000_000, 60
rows = np.lib.format.open_memmap(path, mode="r")
y = np.zeros(n, np.float32)
model = OrtSGDRegressor(max_iter=1, tol=None, batch_size=1000).fit(rows[:2000], y[:2000])
import tracemalloc
tracemalloc.start()
model.fit(rows, y)
print(tracemalloc.get_traced_memory()[1], rows.nbytes)
"""


@pytest.mark.slow
def test_fit_reads_a_memory_map_batch_by_batch(tmp_path):
    path = tmp_path / "rows.npy"
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(1_000_000, 60))
    rows[::1000] = 1.0
    rows.flush()
    run = subprocess.run(
        [sys.executable, "-c", MEMORY, path], capture_output=True, text=True, check=True
    )
    peak, size = map(int, run.stdout.split())
    # Targets, weights and the order of the rows: below 100 bytes a row, where X has 240.
    assert peak < 0.4 * size


def test_a_memory_map_trains_what_its_array_trains(solver, tmp_path):
    X, y = data()
    X = X.toarray().astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = options(OrtSGDClassifier(), solver=solver)
    np.testing.assert_array_equal(model.fit(X, y).coef_, model.fit(mapped, y).coef_)
    with pytest.raises(ValueError, match="read-only"):
        mapped[0] = 0


def test_many_rows_train_the_same_in_every_container(rng, tmp_path, solver):
    X = rng.normal(size=(140_000, 20)).astype(np.float32) * (rng.random((140_000, 20)) < 0.2)
    y = (X.sum(axis=1) > 0).astype(int)
    np.save(tmp_path / "X.npy", X)
    model = OrtSGDClassifier(solver=solver, max_iter=2, tol=None, random_state=0, eta0=0.1)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.testing.assert_array_equal(model.fit(mapped, y).coef_, model.fit(X, y).coef_)
    model.set_params(standardize=False)
    coef = model.fit(X, y).coef_
    for form in (mapped, scipy.sparse.csr_array(X)):
        np.testing.assert_array_equal(model.fit(form, y).coef_, coef)


def test_dask_ml_streams_chunks():
    Incremental = pytest.importorskip("dask_ml.wrappers").Incremental
    dask_array = pytest.importorskip("dask.array")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)).astype(np.float32)
    y = X @ [1.0, -2.0, 0.5, 0.0]
    model = options(OrtSGDRegressor(LinearRegression()))
    incremental = Incremental(model, shuffle_blocks=False)
    incremental.fit(dask_array.from_array(X, chunks=(100, 4)), dask_array.from_array(y, chunks=100))
    by_hand = options(OrtSGDRegressor(LinearRegression()))
    for start in range(0, 400, 100):
        by_hand.partial_fit(X[start : start + 100], y[start : start + 100])
    np.testing.assert_array_equal(incremental.estimator_.coef_, by_hand.coef_)
    assert incremental.estimator_.n_iter_ == 4
