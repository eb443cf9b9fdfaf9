"""The parameters `n_jobs` and `device` of both estimators."""

import multiprocessing
import pickle
import re
import sys
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from threadpoolctl import threadpool_limits

import skort.runtime.sessions
from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import Checkpoint
from skort.estimators.planning import threads as planned_threads
from skort.estimators.planning.threads import free_cores, n_threads, threads_for
from skort.exceptions import RuntimeNotAvailableError
from skort.runtime.cache import forget
from skort.runtime.device import Device

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5)).astype(np.float32)
Y = (X[:, 0] + 0.3 * RNG.normal(size=120) > 0).astype(int)
MANY = np.tile(X, (9, 1))
MODELS = [
    OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(6,))),
    OrtSGDClassifier(MLPClassifier(hidden_layer_sizes=(6,))),
    OrtSGDClassifier(),
]
OPTIONS = {"optimizer": "sgd", "learning_rate": "constant", "max_iter": 6, "tol": None}
OPTIONS |= {"random_state": 0, "batch_size": 16}


def short(model=MODELS[0], **options):
    return clone(model).set_params(**OPTIONS | options)


def same(ours, theirs):
    assert ours.weights_.keys() == theirs.weights_.keys()
    for name, w in ours.weights_.items():
        np.testing.assert_array_equal(w, theirs.weights_[name])


@pytest.fixture
def threads(monkeypatch):
    """The threads of each session that is made."""
    made = []
    options = skort.runtime.sessions.session_options

    def watched(*args, **kwargs):
        made.append(options(*args, **kwargs).intra_op_num_threads)
        return options(*args, **kwargs)

    for module in ("runtime.sessions", "runtime.training_api", "solvers.agent"):
        monkeypatch.setattr(f"skort.{module}.session_options", watched)
    # Small trainings share their sessions.
    forget()
    return made


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    """The tests see the same machine everywhere."""
    monkeypatch.setattr(planned_threads, "_n_cores", lambda: 4)


@pytest.mark.parametrize("n_jobs, n", [(None, 1), (1, 1), (3, 3), (-1, 4)])
def test_every_session_has_so_many_threads(solver, n_jobs, n, threads):
    model = short(solver=solver, n_jobs=n_jobs).fit(X, Y, X_val=MANY, y_val=MANY[:, 0] > 0)
    model.predict(MANY)
    # Of the training, and of validation and prediction; some solvers differentiate with
    # sessions of their own.
    assert len(threads) >= 3
    # The losses of a few constants.
    threads.remove(1)
    assert set(threads) == {n}


def test_n_jobs_counts_where_the_estimator_runs(threads):
    model = pickle.loads(pickle.dumps(short(n_jobs=None).fit(X, Y)))
    del threads[:]
    with joblib.parallel_config(n_jobs=2):
        model.predict(MANY)
        model.predict(MANY[:10])
    for _ in range(2):
        model.predict(MANY)
    # In a worker it is one thread, for which there is a session.
    joblib.Parallel(n_jobs=2, backend="threading")(
        [joblib.delayed(model.set_params(n_jobs=-1).predict)(MANY)]
    )
    assert threads == [2, 1]


def test_a_stream_goes_on_with_other_threads(threads):
    model = short(n_jobs=1).partial_fit(X, Y)
    model.set_params(n_jobs=2).partial_fit(X, Y)
    with joblib.parallel_config(n_jobs=3):
        model.set_params(n_jobs=None).partial_fit(X, Y)
    assert threads == [1, 2, 3]
    same(model, short().partial_fit(X, Y).partial_fit(X, Y).partial_fit(X, Y))


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param("loky", marks=pytest.mark.slow),
        "threading",
        pytest.param("multiprocessing", marks=pytest.mark.slow),
    ],
)
def test_one_thread_in_workers(backend):
    with joblib.parallel_config(backend, n_jobs=2):
        assert n_threads(None) == 2
        given = [None, -1, -5, 2]
        assert joblib.Parallel()(joblib.delayed(n_threads)(n) for n in given) == [1, 1, 1, 2]


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2"])
def test_no_number_of_threads_is_refused(n_jobs):
    with pytest.raises(
        ValueError, match=f"n_jobs must be an int other than 0, or None, got {n_jobs!r}"
    ):
        n_threads(n_jobs)


def test_negative_numbers_count_from_all_cores(monkeypatch):
    monkeypatch.setattr(planned_threads, "_n_cores", lambda: 8)
    assert [n_threads(n) for n in (-1, -2, -8, -9)] == [8, 7, 1, 1]


@pytest.mark.parametrize("n_jobs", [5, 10**9])
def test_more_jobs_than_cores_are_all_cores(n_jobs, threads):
    with pytest.warns(
        RuntimeWarning, match=f"n_jobs={n_jobs} is more than this machine has: 4 threads"
    ) as warned:
        model = short(n_jobs=n_jobs).fit(X, Y)
    assert warned[0].filename == __file__
    # Once.
    short(n_jobs=n_jobs).fit(X, Y)
    assert set(threads) == {4}
    same(model, short().fit(X, Y))


@pytest.mark.parametrize(
    "work, n_cores, n",
    [
        (0, 8, 1),
        (64e6, 8, 1),
        (99e6, 8, 1),
        (100e6, 8, 2),
        (199e6, 8, 2),
        (200e6, 8, 3),
        (616e6, 8, 7),
        (616e6, 2, 2),
        (1e12, 8, 8),
        (1e12, 1, 1),
    ],
)
def test_a_thread_for_every_hundred_million_operations(work, n_cores, n):
    assert threads_for(work, n_cores) == n


@pytest.fixture
def unlimited(monkeypatch):
    """No limit but the four cores, whatever the tests run under."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(planned_threads, "thread_limits", lambda: [4])


@pytest.mark.parametrize(
    "named, n", [("3", 3), ("2,1", 2), (" 1", 1), ("64", 4), ("", 4), ("0", 4), ("many", 4)]
)
def test_free_cores_are_no_more_than_openmp_was_given(named, n, unlimited, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", named)
    assert (free_cores(), threads_for(1e12), threads_for(1e7)) == (n, n, 1)


def test_free_cores_are_those_of_this_process(unlimited, monkeypatch):
    assert free_cores() == 4
    monkeypatch.setattr(planned_threads, "_n_cores", lambda: 2)
    assert free_cores() == 2


@pytest.mark.parametrize("given, n", [(2, 2), (9, 4), (-1, 4), (None, 4)])
def test_free_cores_are_no_more_than_joblib_was_given(given, n, unlimited):
    with joblib.parallel_config("threading", n_jobs=given):
        assert free_cores() == n


def test_free_cores_are_no_more_than_threadpoolctl_leaves(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with threadpool_limits(1):
        assert free_cores() == 1


def test_free_cores_of_workers(unlimited, monkeypatch):
    threads = joblib.Parallel(2, backend="threading")
    assert threads([joblib.delayed(free_cores)()]) == [1]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads([joblib.delayed(free_cores)()]) == [1]
    # A process that loky has told its share, and one that was told what everyone is.
    monkeypatch.setattr(multiprocessing, "parent_process", multiprocessing.current_process)
    assert threads([joblib.delayed(free_cores)()]) == [2]
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert threads([joblib.delayed(free_cores)()]) == [1]


def test_one_thread_in_a_worker_of_dask(unlimited, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(get_worker=lambda: "worker"))
    assert free_cores() == 1

    def get_worker():
        raise ValueError("No worker found")

    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(get_worker=get_worker))
    assert free_cores() == 4


@pytest.fixture
def large_steps(monkeypatch):
    """The steps of these tests are worth a thread for every 1,000 operations."""
    monkeypatch.setattr(planned_threads, "_WORK_OF_THREAD", 1000)


def test_auto_gives_a_fit_the_threads_of_its_work(solver, threads, unlimited, large_steps):
    # The first product is made twice, the second thrice: 2 * 16 * (2 * 5 * 6 + 3 * 6) =
    # 2496 operations.
    model = short(solver=solver).fit(X, Y)
    assert set(threads) == {3}
    del threads[:]
    model.predict(MANY)
    assert set(threads) <= {1}
    short(solver=solver, batch_size=120).fit(X, Y)
    assert set(threads) == {1, 4}
    same(short(solver=solver, n_jobs=None).fit(X, Y), model)


def test_a_default_fit_of_little_work_has_one_thread(threads, unlimited):
    short().fit(X, Y)
    assert set(threads) == {1}


def test_auto_in_a_worker_is_one_thread(threads, unlimited, large_steps):
    joblib.Parallel(2, backend="threading")([joblib.delayed(short().fit)(X, Y)])
    assert set(threads) == {1}


def test_the_rows_of_a_validation_set_have_threads_too(threads, unlimited, large_steps):
    fitted = [short(n_jobs=n).fit(X, Y, X_val=MANY, y_val=MANY[:, 0] > 0) for n in ("auto", None)]
    # A loss of 1,080 rows, a third of whose step has more operations than four threads are worth.
    assert set(threads) == {3, 4, 1}
    same(*fitted)
    assert fitted[0].validation_scores_ == fitted[1].validation_scores_


@pytest.mark.parametrize("hidden, batch_size", [((100,), 200), ((512, 256), 256)])
def test_two_threads_give_the_bits_of_one(hidden, batch_size, solver):
    rng = np.random.default_rng(0)
    X, y = (
        rng.normal(size=(2 * batch_size + 37, 784)).astype(np.float32),
        rng.integers(10, size=2 * batch_size + 37),
    )
    network = OrtSGDClassifier(MLPClassifier(hidden))
    same(
        *(
            short(network, solver=solver, n_jobs=n, batch_size=batch_size, max_iter=1).fit(X, y)
            for n in (1, 2)
        )
    )


@pytest.mark.parametrize("model", MODELS)
def test_results_do_not_depend_on_the_number_of_threads(model, solver):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 150)).astype(np.float32), rng.integers(2, size=2000)
    options = {"solver": solver, "max_iter": 2, "batch_size": 500}
    one, three = (short(model, n_jobs=n, **options).fit(X, y) for n in (1, 3))
    for name, w in one.weights_.items():
        np.testing.assert_allclose(w, three.weights_[name], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(one.predict(X), three.predict(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"device": "cuda:" + 20 * "9"}, "is unknown"),
        ({"n_jobs": 0}, "'n_jobs' parameter of OrtSGDRegressor must be an int"),
        ({"n_jobs": 1.5}, "'n_jobs' parameter of OrtSGDRegressor must be an int"),
        ({"device": None}, "'device' parameter of OrtSGDRegressor must be an instance of 'str'"),
        ({"device": "gpu"}, 'device=\'gpu\' is unknown. Use "cpu", "cuda", or "cuda:1"'),
        (
            {"device": "cuda:1", "solver": "agent"},
            'solver="agent" trains with device="cpu" only, got device="cuda:1"',
        ),
        (
            {"device": "cuda", "solver": "session"},
            'solver="session" trains with device="cpu" only, got device="cuda"',
        ),
    ],
)
def test_what_cannot_work_is_refused_in_fit(parameters, message):
    model = short(**parameters)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    assert vars(model) == before


@pytest.fixture
def devices_anew():
    """Forget which warnings were given, before and after a test."""
    planned_threads._warn_once.cache_clear()
    yield
    planned_threads._warn_once.cache_clear()


@pytest.fixture
def no_cuda(monkeypatch, devices_anew):
    def check(device):
        if device.kind == "cuda":
            raise RuntimeNotAvailableError(f"no {device.name}")

    monkeypatch.setattr(Device, "check", check)


@pytest.mark.parametrize("solver", ["auto", "graph"])
def test_training_without_the_device_is_an_error(solver, no_cuda):
    model = short(device="cuda:2", solver=solver)
    with pytest.raises(RuntimeNotAvailableError, match="no cuda:2"):
        model.fit(X, Y)
    assert not hasattr(model, "n_iter_")


@pytest.mark.parametrize("model", MODELS)
def test_predictions_without_the_device_are_made_on_the_cpu_with_one_warning(model, no_cuda):
    fitted = short(model).fit(X, Y)
    elsewhere = pickle.loads(pickle.dumps(fitted.set_params(device="cuda", n_jobs=2)))
    with pytest.warns(RuntimeWarning, match="Predictions run on the CPU. no cuda") as warnings:
        # In one thread, and in two.
        predictions = [elsewhere.predict(rows) for rows in (X, MANY, X)]
    assert len(warnings) == 1
    assert warnings[0].filename == __file__
    for prediction, rows in zip(predictions, (X, MANY, X), strict=True):
        np.testing.assert_array_equal(prediction, fitted.set_params(device="cpu").predict(rows))


def test_a_device_that_becomes_available_is_used(monkeypatch, devices_anew):
    available = []

    def check(device):
        if device.kind not in available:
            raise RuntimeNotAvailableError(f"no {device.name}")

    monkeypatch.setattr(Device, "check", check)
    model = short(device="cuda")
    with pytest.warns(RuntimeWarning, match="Predictions run on the CPU. no cuda"):
        assert planned_threads.predicting_device(model, 1) == Device()
    available.append("cuda")
    assert planned_threads.predicting_device(model, 1).kind == "cuda"


@pytest.fixture
def remote(monkeypatch, devices_anew):
    """Let device="cuda" be the CPU, with copies of everything, as it would be on a GPU."""
    named = skort.runtime.device.device_named
    devices = {"cpu": named, "cuda": lambda name, n: Device(n_threads=n, is_remote=True)}
    monkeypatch.setattr(
        "skort.runtime.device.device_named", lambda name, n=1: devices[name](name, n)
    )
    return {"device": "cuda"}


def assert_alike(far, near, rtol=1e-5):
    assert far.solver_ == "graph"
    for name, w in near.weights_.items():
        np.testing.assert_allclose(far.weights_[name], w, rtol=rtol, atol=1e-6)
    for name in ("objective", "loss", "gradient_norm", "eta"):
        np.testing.assert_allclose(far.history_[name], near.history_[name], rtol=1e-5)
    assert (far.t_, far.n_iter_) == (near.t_, near.n_iter_)


class Watch:
    def __init__(self):
        self.seen = []

    def on_batch_end(self, training):
        self.seen.append((training.n_updates, training.eta, training.objective, training.weights()))


class EpochWatch:
    def __init__(self):
        self.seen = []

    def on_epoch_end(self, training):
        self.seen.append((training.n_updates, training.eta, training.objective, training.weights()))


TRAININGS = [
    {},
    {"optimizer": "adam", "dtype": "float64", "learning_rate": "invscaling"},
    {"average": 5, "penalty": "l1", "alpha": 0.01},
    {"tol": 1e-2, "max_iter": 100, "n_iter_no_change": 2},
    {"learning_rate": "adaptive", "tol": 0.1, "n_iter_no_change": 1, "max_iter": 40},
    {"early_stopping": True, "n_iter_no_change": 2, "tol": 1e-4, "max_iter": 40},
    {"batch_size": 1000, "max_grad_norm": 0.1},
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("options", TRAININGS, ids=repr)
@pytest.mark.parametrize("model", MODELS)
def test_trainings_on_a_device_are_those_on_the_cpu(model, options, remote):
    weight = np.resize([1.0, 0.0, 2.5], len(X))
    near = short(model, **options).fit(X, Y, weight)
    far = short(model, **options, **remote).fit(X, Y, weight)
    assert_alike(far, near)
    assert far.validation_scores_ == near.validation_scores_
    np.testing.assert_allclose(far.predict(X), near.predict(X), rtol=1e-5, atol=1e-5)
    step = far.training_graphs()["step"]
    assert (
        step.SerializeToString()
        == near.set_params(solver="graph").training_graphs()["step"].SerializeToString()
    )


@pytest.mark.parametrize("watch", [Watch, EpochWatch])
def test_callbacks_see_what_they_see_on_the_cpu(watch, remote):
    near, far = watch(), watch()
    short(callbacks=[near], optimizer="momentum").fit(X, Y)
    short(callbacks=[far], optimizer="momentum", **remote).fit(X, Y)
    assert len(far.seen) == len(near.seen) > 5
    for ours, theirs in zip(far.seen, near.seen, strict=True):
        assert ours[:3] == pytest.approx(theirs[:3], rel=1e-5)
        for name, w in theirs[3].items():
            np.testing.assert_allclose(ours[3][name], w, rtol=1e-5, atol=1e-6)


def test_streams_go_on_to_the_same_bytes_on_a_device(remote):
    chunks = [slice(0, 50), slice(50, 120), slice(20, 70)]
    options = {"optimizer": "adam", "average": 4}
    near, whole, pickled = short(**options), short(**options, **remote), short(**options, **remote)
    for rows in chunks:
        for model in (near, whole, pickled):
            model.partial_fit(X[rows], Y[rows])
        pickled = pickle.loads(pickle.dumps(pickled))
    same(pickled, whole)
    assert_alike(whole, near)
    same(pickle.loads(pickle.dumps(whole)).set_params(device="cpu"), whole)


def test_a_stream_moves_to_the_device_and_back(remote):
    near, moving = short(optimizer="nesterov"), short(optimizer="nesterov")
    for device in ("cpu", "cuda", "cuda", "cpu"):
        near.partial_fit(X, Y)
        moving.set_params(device=device).partial_fit(X, Y)
    assert_alike(moving, near)


def test_sparse_rows_on_a_device(remote):
    # Sparse rows are not standardized.
    near = short(MODELS[1], standardize=False).fit(X, Y)
    far = short(MODELS[1], standardize=False, **remote).fit(scipy.sparse.csr_matrix(X), Y)
    assert_alike(far, near)
    np.testing.assert_array_equal(far.predict(scipy.sparse.csr_matrix(X)), near.predict(X))


def test_a_warm_start_goes_on_from_the_weights(remote):
    near, far = (short(warm_start=True, **options).fit(X, Y).fit(X, Y) for options in ({}, remote))
    assert_alike(far, near)


def test_a_checkpoint_goes_on_to_the_same_bytes(remote, tmp_path):
    path, options = (
        tmp_path / "training",
        {"optimizer": "adam", "learning_rate": "adaptive", "average": 9, **remote},
    )
    short(max_iter=4, callbacks=[Checkpoint(path)], **options).fit(X, Y)
    rest = short(max_iter=7, callbacks=[Checkpoint(resume_from=path)], **options).fit(X, Y)
    whole = short(max_iter=7, **options).fit(X, Y)
    same(rest, whole)
    assert rest.loss_curve_ == whole.loss_curve_


@pytest.mark.parametrize("watched", [False, True])
def test_a_diverging_training_is_told_and_changes_nothing(remote, watched):
    model = short(eta0=1e30, callbacks=[Watch()] if watched else None, **remote)
    before = dict(vars(model))
    message = re.escape("Training diverged: the") + ".*epoch 1, at a learning rate of 1e[+]30"
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    assert vars(model) == before


class Interrupt:
    def on_batch_end(self, training):
        if training.n_updates == 20:
            raise KeyboardInterrupt


def test_an_interrupted_training_ends_at_its_last_whole_epoch(remote):
    with pytest.warns(UserWarning, match="interrupted by the user"):
        model = short(callbacks=[Interrupt()], **remote).fit(X, Y)
    # 8 updates an epoch.
    same(model, short(max_iter=2, **remote).fit(X, Y))
    assert (model.n_iter_, model.t_) == (2, 16)


def test_searches_run_on_a_device(remote):
    search = GridSearchCV(short(MODELS[2], **remote), {"eta0": [0.01, 0.1]}, cv=2).fit(X, Y)
    near = GridSearchCV(short(MODELS[2]), {"eta0": [0.01, 0.1]}, cv=2).fit(X, Y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], near.cv_results_["mean_test_score"]
    )


def _has_cuda():
    try:
        skort.runtime.device.device_named("cuda").check()
    except RuntimeNotAvailableError:
        return False
    return True


@pytest.mark.gpu
@pytest.mark.skipif(not _has_cuda(), reason="no CUDA provider, or no device of its")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("options", TRAININGS, ids=repr)
@pytest.mark.parametrize("model", MODELS)
def test_trainings_on_cuda_are_those_on_the_cpu(model, options):
    near = short(model, **options).fit(X, Y)
    far = short(model, **options, device="cuda").fit(X, Y)
    assert far.n_iter_ == near.n_iter_
    for name, w in near.weights_.items():
        np.testing.assert_allclose(far.weights_[name], w, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(far.predict(X), near.predict(X), rtol=1e-2, atol=1e-2)
