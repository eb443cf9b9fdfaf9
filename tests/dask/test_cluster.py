"""Faults: a fit ends with the same weights, or with an error that says what to do."""

import logging
import os
import signal
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neural_network import MLPClassifier

pytest.importorskip("distributed")

import dask
import dask.array as da
from distributed import Client, Event, LocalCluster

from skort.dask import OrtSGDClassifier
from skort.dask.cluster import Cluster
from skort.dask.errors import ClusterError

SAME = {"eta0": 0.01, "learning_rate": "constant", "max_iter": 4, "tol": None, "random_state": 0}


@pytest.fixture(scope="module")
def client():
    """Return the client of a cluster whose workers die."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    return da.from_array(X, chunks=(500, 5)), da.from_array(y, chunks=500)


@pytest.fixture(autouse=True)
def quiet():
    """Let distributed write nothing of the workers that die here."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class KillsOne:
    """Kills a worker after an epoch, in the middle of the next one; another one joins."""

    def __init__(self, client, epoch):
        self.client, self.epoch = client, epoch

    def on_epoch_end(self, training):
        if training.n_epochs == self.epoch:
            pid = sorted(self.client.run(os.getpid).values())[0]
            threading.Timer(0.005, os.kill, (pid, signal.SIGKILL)).start()
            self.client.cluster.scale(3)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_a_worker_that_is_killed_changes_no_bit(client, data, n_groups):
    """With several exchanges in a round."""
    model = OrtSGDClassifier(
        MLPClassifier((10,)), optimizer="adam", n_groups=n_groups, **SAME | {"batch_size": 10}
    )
    expected = clone(model).fit(*data).weights_
    found = model.set_params(callbacks=[KillsOne(client, 2)]).fit(*data).weights_
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


def test_workers_that_leave_and_come_between_fits(client, data):
    client.cluster.scale(1)
    expected = OrtSGDClassifier(**SAME, n_groups=4).fit(*data).coef_
    client.cluster.scale(2)
    np.testing.assert_array_equal(OrtSGDClassifier(**SAME, n_groups=4).fit(*data).coef_, expected)


def test_no_worker(data):
    with (
        dask.config.set({"skort.no-worker-timeout": 0.1}),
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        Client(cluster),
        pytest.raises(
            ClusterError, match=r"The cluster has had no worker for 0 seconds. Start one"
        ),
    ):
        OrtSGDClassifier(**SAME).fit(*data)


def _die(X):
    os._exit(len(X))


def test_a_task_that_kills_its_workers(data):
    X, y = data
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
        pytest.raises(
            ClusterError,
            match=r"Workers died, one after the other, while they ran a task.*too little memory",
        ),
    ):
        OrtSGDClassifier(**SAME).fit(X.map_blocks(_die, meta=np.empty((0, 0), X.dtype)), y)


def _hang(X):
    Event("end").wait(60)
    return X


def test_a_task_that_hangs(data):
    X, y = data
    with (
        dask.config.set({"skort.no-result-timeout": 0.1}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        hanging = da.from_delayed(
            client.submit(_hang, np.ones((500, 5), np.float32), pure=False), (500, 5), X.dtype
        )
        with pytest.raises(
            ClusterError, match=r"No task has finished for 0 seconds.*client.restart\(\)"
        ):
            OrtSGDClassifier(**SAME).fit(da.concatenate([X[:500], hanging]), y[:1000])
        Event("end").set()


def test_a_scheduler_that_goes(data):
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    )

    class Closes:
        def on_epoch_end(self, training):
            cluster.close()

    with (
        Client(cluster) as client,
        dask.config.set({"skort.no-worker-timeout": 0.1}),
        pytest.raises(ClusterError, match="closed"),
    ):
        OrtSGDClassifier(**SAME, callbacks=[Closes()], client=client).fit(*data)


@pytest.mark.parametrize("error", [TimeoutError, UnboundLocalError])
def test_a_wait_goes_on_after_its_tick(error):
    """`distributed.utils.sync` ends either way."""
    results = iter([error, error, 7])

    def result(timeout):
        made = next(results)
        if made is error:
            raise error
        return made

    future = SimpleNamespace(result=result, status="pending")
    client = SimpleNamespace(
        status="running", futures={}, scheduler_info=lambda n_workers: {"workers": ["one"]}
    )
    assert Cluster(client).value(future) == 7
    # The error of a task is one of the fit.
    results, future.status = iter([error]), "error"
    with pytest.raises(error):
        Cluster(client).value(future)


def test_results_are_merged_in_a_tree():
    calls = []

    def submit(merge, items, **options):
        calls.append((len(items), options["priority"]))
        return merge(items)

    assert Cluster(SimpleNamespace(status="running", submit=submit)).merged(sum, range(20)) == 190
    # Of tasks that can run, the latest does: it uses what earlier ones have made.
    assert calls == [(8, -1), (8, -1 / 2), (4, -1 / 3), (3, -1 / 4)]
