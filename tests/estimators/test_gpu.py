"""
Trainings on a GPU: those of the CPU after 100 steps, and the same bytes run after run.

Each test runs twice: on memory of the runtime's own in the CPU, and on CUDA where there is a GPU:
`pytest -m gpu`.
"""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx.parser
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import HuberRegressor, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.svm import LinearSVC

import skort.runtime.device
from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.exceptions import RuntimeNotAvailableError
from skort.networks import TabularNetwork
from skort.optim.optimizers import OPTIMIZERS
from skort.runtime.device import Device

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 6)).astype(np.float32)
Y = X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=200).astype(np.float32)
LAST_IS_ID = make_column_transformer((OrdinalEncoder(), [-1]), remainder="passthrough")
# Five epochs of twenty steps.
OPTIONS = {
    "max_iter": 5,
    "tol": None,
    "random_state": 0,
    "batch_size": 10,
    "learning_rate": "constant",
    "eta0": 0.02,
    "solver": "graph",
}
REGRESSION = ["squared_error", "absolute_error", "huber", "epsilon_insensitive", "quantile"]
CLASSIFICATION = ["log_loss", "hinge", "squared_hinge", "modified_huber", "perceptron"]


def _has_cuda():
    try:
        skort.runtime.device.device_named("cuda").check()
    except RuntimeNotAvailableError:
        return False
    return True


@pytest.fixture(
    params=[
        "stand-in",
        pytest.param(
            "cuda",
            marks=[
                pytest.mark.gpu,
                pytest.mark.skipif(not _has_cuda(), reason="no CUDA provider, or no device"),
            ],
        ),
    ]
)
def device(request, monkeypatch):
    """The parameter `device` of an estimator."""
    if request.param == "stand-in":
        named = skort.runtime.device.device_named
        devices = {"cpu": named, "cuda": lambda name, n: Device(n_threads=n, is_remote=True)}
        monkeypatch.setattr(
            "skort.runtime.device.device_named", lambda name, n=1: devices[name](name, n)
        )
    return "cuda"


def assert_alike(model, device, **options):
    """Compare 100 steps with those of the CPU, and with themselves."""
    model = clone(model).set_params(**{**OPTIONS, **options})
    y = Y if isinstance(model, OrtSGDRegressor) else np.digitize(Y, [-0.5, 0.5])
    near = clone(model).fit(X, y)
    far, again = (clone(model).set_params(device=device).fit(X, y) for _ in range(2))
    assert far.t_ == near.t_
    for name, w in near.weights_.items():
        np.testing.assert_allclose(far.weights_[name], w, rtol=1e-5, atol=1e-5 * np.abs(w).max())
        np.testing.assert_array_equal(again.weights_[name], far.weights_[name])
    return far


@pytest.mark.parametrize("loss", REGRESSION)
@pytest.mark.parametrize("size", [None, 8])
def test_losses_of_regression(device, loss, size):
    inner = None if size is None else MLPRegressor(hidden_layer_sizes=(size,))
    assert_alike(OrtSGDRegressor(inner), device, loss=loss, standardize=False)


@pytest.mark.parametrize("loss", CLASSIFICATION)
@pytest.mark.parametrize("size", [None, 8])
def test_losses_of_classification(device, loss, size):
    inner = None if size is None else MLPClassifier(hidden_layer_sizes=(size,))
    assert_alike(OrtSGDClassifier(inner), device, loss=loss, standardize=False)


@pytest.mark.parametrize("penalty", [None, "l1", "l2", "elasticnet"])
@pytest.mark.parametrize("optimizer", [name for name in OPTIMIZERS if name != "lbfgs"])
def test_penalties_and_optimizers(device, penalty, optimizer):
    # Adam divides by numbers that may be nearly zero in a network: there roundings grow.
    strength = {} if penalty is None else {"alpha": 0.01}
    assert_alike(OrtSGDRegressor(), device, penalty=penalty, optimizer=optimizer, **strength)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "options",
    [
        {"average": 5},
        {"max_grad_norm": 0.1},
        {"standardize": "auto"},
        {"dtype": "float64"},
        {"learning_rate": "invscaling"},
        {"batch_size": 64},
        {"early_stopping": True, "n_iter_no_change": 5, "tol": 1e-4},
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "model",
    [OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(8,))), OrtSGDClassifier()],
    ids=["network", "linear"],
)
def test_options(device, model, options):
    assert_alike(model, device, **options)


def test_a_stream_keeps_its_place_on_the_device(device):
    near, far = (OrtSGDRegressor(**OPTIONS, device=where) for where in ("cpu", device))
    for start in range(0, 200, 50):
        for model in (near, far):
            model.partial_fit(X[start : start + 50], Y[start : start + 50])
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-5)


def test_a_stream_whose_calls_have_other_sizes(device):
    # The runtime records a step after some runs with the same arrays.
    near, far = (
        OrtSGDClassifier(MLPClassifier((8,)), **{**OPTIONS, "batch_size": 3}, device=where)
        for where in ("cpu", device)
    )
    labels = (Y > 0).astype(int)
    for stop in (200, 200, 101, 27, 200, 7, 101):
        for model in (near, far):
            model.partial_fit(X[:stop], labels[:stop], classes=[0, 1])
    assert far.t_ == near.t_
    for name, w in near.weights_.items():
        np.testing.assert_allclose(far.weights_[name], w, rtol=1e-4, atol=1e-4 * np.abs(w).max())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        OrtSGDRegressor(random_state=0),
        OrtSGDRegressor(HuberRegressor(), random_state=0),
        OrtSGDClassifier(LogisticRegression(), random_state=0),
        OrtSGDClassifier(LinearSVC(), random_state=0, max_iter=20),
        OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(8,)), random_state=0, max_iter=20),
        OrtSGDClassifier(MLPClassifier((8, 5), activation="tanh"), random_state=0, max_iter=20),
        OrtSGDRegressor(
            make_pipeline(LAST_IS_ID, TabularNetwork((8,), embeddings=2)),
            random_state=0,
            max_iter=20,
        ),
    ],
    ids=repr,
)
def test_all_defaults(device, model):
    rows = np.column_stack([X, np.arange(200) % 7]).astype(np.float32)
    y = Y + rows[:, -1] % 2
    if isinstance(model, OrtSGDClassifier):
        y = np.digitize(y, [-0.5, 0.5])
    near, far = (clone(model).set_params(device=where).fit(rows, y) for where in ("cpu", device))
    assert far.n_iter_ == near.n_iter_
    np.testing.assert_allclose(far.predict(rows), near.predict(rows), rtol=1e-3, atol=1e-3)


def test_an_operator_that_cuda_lacks_runs_on_the_cpu(device):
    graph = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[n, 6] X) => (float[n, 1] Y)
        <float[6, 4] A = {%s}, float[4, 1] B = {1.0, -1.0, 0.5, 0.2}> {
            h = MatMul(X, A)
            c = Celu <alpha = 0.5> (h)
            Y = MatMul(c, B)
        }
    """
        % ", ".join(f"{0.1 * (i % 7) - 0.3:.1f}" for i in range(24))
    )
    assert_alike(OrtSGDRegressor(graph), device, standardize=False, warm_start=True)


def test_two_threads_share_the_device(device):
    def fitted(seed):
        model = OrtSGDRegressor(**{**OPTIONS, "random_state": seed}, device=device)
        return model.fit(X, Y).coef_

    alone = [fitted(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fitted, range(4)))
    np.testing.assert_array_equal(together, alone)


@pytest.mark.gpu
@pytest.mark.skipif(not _has_cuda(), reason="no CUDA provider, or no device")
def test_products_are_not_in_tf32():
    rows = np.random.default_rng(0).normal(size=(999, 400)).astype(np.float32)
    options = {**OPTIONS, "batch_size": 128, "optimizer": "sgd", "eta0": 0.1, "penalty": None}
    model = OrtSGDClassifier(MLPClassifier((300,)), **options)
    y = rows[:, 0] > 0
    near, far = (clone(model).set_params(device=where).fit(rows, y) for where in ("cpu", "cuda"))
    for name, w in near.weights_.items():
        np.testing.assert_allclose(far.weights_[name], w, rtol=0, atol=2e-6 * np.abs(w).max())


def test_a_model_trained_on_the_device_serves_on_the_cpu(device):
    fitted = OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(8,)), **OPTIONS, device=device).fit(
        X, Y
    )
    back = pickle.loads(pickle.dumps(fitted)).set_params(device="cpu")
    np.testing.assert_allclose(back.predict(X), fitted.predict(X), rtol=1e-5, atol=1e-5)
    assert back.onnx_.SerializeToString() == fitted.onnx_.SerializeToString()


@pytest.mark.gpu
@pytest.mark.skipif(not _has_cuda(), reason="no CUDA provider, or no device")
def test_two_processes_share_the_gpu():
    code = (
        "import numpy as np, skort; X = np.random.default_rng(0).normal(size=(200, "
        "6)).astype(np.float32)\n"
        "m = skort.OrtSGDRegressor(device='cuda', max_iter=50, tol=None, "
        "random_state=0, eta0=0.02)\n"
        "print(m.fit(X, X[:, 0]).coef_.tobytes().hex())"
    )
    command = [sys.executable, "-c", code]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (process.communicate(timeout=300)[0] for process in running)
    assert first == second
    assert first.strip()
