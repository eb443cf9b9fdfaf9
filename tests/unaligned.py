"""
Fits and predictions of arrays at odd addresses, beside those of aligned ones:
`python tests/unaligned.py NAME`.

`tests/test_unaligned.py` runs it in processes whose BLAS and ONNX Runtime would end at
such an address.
"""

import pathlib
import pickle
import sys
import tempfile

import numpy as np
import scipy.sparse
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor, Step
from skort.gradients import ForwardBackward

RANDOM = np.random.RandomState(0)
X = RANDOM.normal(size=(403, 7))
Y = X @ np.arange(7.0) + RANDOM.normal(size=403)
WEIGHTS = RANDOM.uniform(0.5, 2.0, size=403)
LABELS = (Y > 0).astype(np.int64)
SHORT = {"random_state": 0, "max_iter": 3, "tol": None}


def odd(array):
    """Return a copy that begins one byte behind an aligned address."""
    buffer = bytearray(array.nbytes + 1)
    copied = np.frombuffer(buffer, array.dtype, offset=1).reshape(array.shape)
    copied[...] = array
    assert not copied.flags.aligned
    return copied


def odd_matrix(array):
    """Return a CSR matrix whose three arrays begin at odd addresses."""
    matrix = scipy.sparse.csr_matrix(array)
    for name in ("data", "indices", "indptr"):
        setattr(matrix, name, odd(getattr(matrix, name)))
    return matrix


def odd_file(array):
    """Return a view of a file whose header has seven bytes."""
    path = pathlib.Path(tempfile.mkdtemp()) / "rows"
    path.write_bytes(b"header." + array.tobytes())
    return np.memmap(path, array.dtype, "r", offset=7, shape=array.shape)


def fit(put, dtype=np.float64):
    """Fit, validate and predict."""
    model = OrtSGDRegressor(**SHORT).fit(
        put(X.astype(dtype)),
        put(Y),
        put(WEIGHTS),
        put(X[:50].astype(dtype)),
        put(Y[:50]),
        coef_init=put(np.ones(7)),
        intercept_init=put(np.ones(1)),
    )
    return [model.coef_, model.validation_scores_, model.predict(put(X.astype(dtype)))]


def fit_float32(put):
    """Fit rows that the training reads where they are."""
    model = OrtSGDRegressor(standardize=False, shuffle=False, batch_size=31, eta0=0.01, **SHORT)
    return [model.fit(put(X.astype(np.float32)), put(Y.astype(np.float32))).coef_]


def classes(put):
    """Fit and predict a network behind a step of scikit-learn."""
    pipeline = make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=(5,)))
    model = OrtSGDClassifier(pipeline, **SHORT).fit(put(X), put(LABELS))
    return [model.predict_proba(put(X))]


def sparse(put):
    """Fit and predict sparse rows, some of which are zero."""
    matrix = odd_matrix if put is odd else scipy.sparse.csr_matrix
    rows = np.where(X > 0.5, X, 0)
    model = OrtSGDRegressor(**SHORT).fit(matrix(rows), put(Y))
    return [model.coef_, model.predict(matrix(rows))]


def stream(put):
    """Fit call by call, and from batches."""
    model = OrtSGDRegressor(random_state=0)
    for rows in (slice(0, 200), slice(200, 403)):
        model.partial_fit(put(X[rows]), put(Y[rows]), put(WEIGHTS[rows]))
    batches = [
        (put(X[i : i + 50]), put(Y[i : i + 50]), put(WEIGHTS[i : i + 50]))
        for i in range(0, 403, 50)
    ]
    return [model.coef_, OrtSGDRegressor(**SHORT).fit_batches(batches).coef_]


def files(put):
    """Fit a memory map, and batches of one."""
    put = odd_file if put is odd else put
    parameters = {"standardize": False, "eta0": 0.01, **SHORT}
    found = []
    for dtype in (np.float32, np.float64):
        rows = put(X.astype(dtype))
        model = OrtSGDRegressor(dtype=np.dtype(dtype).name, **parameters).fit(
            rows, put(Y), put(WEIGHTS)
        )
        batches = [(rows[i : i + 50], Y[i : i + 50]) for i in range(0, 403, 50)]
        streamed = OrtSGDRegressor(dtype=np.dtype(dtype).name, **parameters).fit_batches(batches)
        found += [model.coef_, model.predict(rows), streamed.coef_]
    return found


def step(put):
    """Make steps one by one, and go on from their state."""
    made = Step(LinearRegression(), n_features=7, batch_size=100)
    for i in range(0, 403, 100):
        made.step(
            put(X[i : i + 100].astype(np.float32)), put(Y[i : i + 100].astype(np.float32)), 0.01
        )
        made.restore({name: put(array) for name, array in made.state().items()})
    return [made.weights()["coef"], made.forward(put(X))]


def gradients(put):
    """Compute a score and its gradient by the weights."""
    layer = ForwardBackward(OrtSGDRegressor(**SHORT).fit(X, Y))
    score, saved = layer.forward(
        put(X.astype(np.float32)), weights=put(np.arange(8, dtype=np.float32)), training=True
    )
    return [score, layer.backward(saved, put(np.ones((403, 1), np.float32))).weights]


def weights(put):
    """Give a model weights, and read one whose arrays lie in buffers that begin oddly."""
    model = OrtSGDRegressor(**SHORT).fit(X, Y)
    model.set_weights({name: put(array) for name, array in model.weights_.items()})
    buffers = []
    written = pickle.dumps(model, 5, buffer_callback=buffers.append)
    again = pickle.loads(
        written, buffers=[odd_bytes(each.raw()) if put is odd else each for each in buffers]
    )
    return [again.predict(put(X)), again.partial_fit(put(X), put(Y)).coef_]


def odd_bytes(raw):
    """Return a view of bytes that begin at an odd address."""
    buffer = bytearray(len(raw) + 1)
    buffer[1:] = raw
    return memoryview(buffer)[1:]


WAYS = {
    each.__name__: each
    for each in (fit, fit_float32, classes, sparse, stream, files, step, gradients, weights)
}

if __name__ == "__main__":
    way = WAYS[sys.argv[1]]
    for here, there in zip(way(np.array), way(odd), strict=True):
        np.testing.assert_array_equal(here, there)
    print("equal")
