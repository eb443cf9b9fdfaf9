"""
Groups on a Dask cluster, next to one machine.

Run it with `python -m benchmarks.dask_rounds`, or with the names of some parts: `groups`,
`overhead`, `workers`, `memory`. The problem has 1,000,000 rows of 50 columns in 20 partitions and a
network of 100 hidden units, or two layers of 200, trained by Adam in batches of 200 rows for 5
epochs or rounds; the loss is the log-loss of 100,000 other rows. CPU seconds are those of the
process, or of the busiest worker beyond what it uses at rest, for the fit alone: the least of two
fits, so that other work on the machine matters little.
"""

import functools
import statistics
import sys
import time
import warnings

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier

import skort
from skort.dask import OrtSGDClassifier
from skort.dask.cluster import Cluster
from skort.dask.local_sgd import GlobalState, LocalResult, Means, averaged, exchanged

N_ROWS, N_COLUMNS, N_TEST, N_PARTITIONS = 1_000_000, 50, 100_000, 20
COMMON = {
    "optimizer": "adam",
    "learning_rate": "constant",
    "max_iter": 5,
    "tol": None,
    "random_state": 0,
}
NETWORK, LARGER_NETWORK = (
    MLPClassifier(hidden_layer_sizes=(100,)),
    MLPClassifier(hidden_layer_sizes=(200, 200)),
)


def cluster(n_workers, **options):
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", **options
    )


@functools.cache
def problem():
    X, y = make_classification(
        N_ROWS + N_TEST,
        N_COLUMNS,
        n_informative=10,
        n_redundant=5,
        n_clusters_per_class=4,
        flip_y=0.1,
        random_state=0,
    )
    X = X.astype(np.float32)
    return (X[:N_ROWS].copy(), y[:N_ROWS]), (X[N_ROWS:].copy(), y[N_ROWS:])


def in_partitions(X, y):
    rows = len(X) // N_PARTITIONS
    parts = [(X[i : i + rows], y[i : i + rows]) for i in range(0, len(X), rows)]
    return parts, rows


def loss_of(model):
    X, y = problem()[1]
    return log_loss(y, model.predict_proba(X))


def one_machine(name, network):
    X, y = problem()[0]
    seconds = []
    for _ in range(2):
        begin = time.process_time()
        model = skort.OrtSGDClassifier(network, eta0=0.002, **COMMON).fit(X, y)
        seconds.append(time.process_time() - begin)
    print(
        f"{name:32} eta0 0.002  loss {loss_of(model):.4f}  CPU s {min(seconds):5.2f}, "
        f"{statistics.median(model.history_['seconds']):.2f} s an epoch",
        flush=True,
    )
    return min(seconds)


def on_workers(client, name, X, y, n_groups, eta0, alone, network=NETWORK):
    """Fit, with the partitions on the workers before."""
    parts, rows = in_partitions(X, y)
    dX, dy = (
        da.concatenate(
            [
                da.from_delayed(future, (rows, *tail), dtype)
                for future, tail, dtype in zip(
                    client.scatter([part[i] for part in parts]),
                    [array.shape[1:]] * len(parts),
                    [array.dtype] * len(parts),
                    strict=True,
                )
            ]
        )
        for i, array in enumerate((X, y))
    )
    # Workers import what they need before the clock starts.
    few = np.arange(1000) % 2
    few = (
        da.from_array(few[:, None].astype(np.float32), chunks=(500, 1)),
        da.from_array(few, chunks=500),
    )
    OrtSGDClassifier(NETWORK, eta0=eta0, n_groups=2, **COMMON | {"max_iter": 1}).fit(*few)
    at_rest, begin = client.run(time.process_time), time.perf_counter()
    time.sleep(4)
    before, rest = client.run(time.process_time), time.perf_counter() - begin
    # A worker is never quite at rest: it polls its connections.
    polling = {each: (before[each] - at_rest[each]) / rest for each in before}
    used, rounds = [], []
    for _ in range(2):
        before, begin = client.run(time.process_time), time.perf_counter()
        model = OrtSGDClassifier(network, eta0=eta0, n_groups=n_groups, **COMMON).fit(dX, dy)
        after, took = client.run(time.process_time), time.perf_counter() - begin
        used.append(max(after[each] - before[each] - took * polling[each] for each in before))
        rounds.append(statistics.median(model.history_["seconds"]))
    print(
        f"{name:32} eta0 {eta0}  loss {loss_of(model.to_local()):.4f}  CPU s a worker "
        f"{min(used):5.2f} ({100 * min(used) / alone:.0f} % of one machine), "
        f"{min(rounds):.2f} s a round",
        flush=True,
    )


def groups():
    """Losses, and the CPU seconds of a worker."""
    X, y = problem()[0]
    order = np.argsort(y, kind="stable")
    alone, larger = (
        one_machine("one machine", NETWORK),
        one_machine("one machine, larger network", LARGER_NETWORK),
    )
    with cluster(2) as workers, Client(workers) as client:
        on_workers(client, "2 groups", X, y, 2, 0.002, alone)
        on_workers(client, "2 groups, one class a partition", X[order], y[order], 2, 0.002, alone)
        on_workers(client, "8 groups", X, y, 8, 0.006, alone)
        on_workers(client, "2 groups, larger network", X, y, 2, 0.002, larger, LARGER_NETWORK)


def overhead():
    """What a round takes that has next to nothing to compute."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, N_COLUMNS)).astype(np.float32), rng.integers(0, 2, 400)
    dX, dy = da.from_array(X, chunks=(200, N_COLUMNS)), da.from_array(y, chunks=200)
    with cluster(2) as workers, Client(workers):
        model = OrtSGDClassifier(NETWORK, eta0=0.002, **COMMON | {"max_iter": 50}).fit(dX, dy)
    seconds = model.history_["seconds"]
    median, least = (1000 * of(seconds) for of in (statistics.median, min))
    print(f"a round of two batches: median {median:.0f} ms, least {least:.0f} ms")


def sleeping(common, seconds):
    """
    Stand for the steps of a group:
    a state of a network of 5,201 weights and both moments of Adam.
    """
    time.sleep(seconds)
    return LocalResult(common, common.state, Means(1, 0.0, 0.0, 0.0, 0.0))


def workers():
    """
    Rounds of 100 groups on 100 workers whose groups sleep;
    the workers are threads of one process.
    """
    common = GlobalState(
        {name: np.zeros(5201, np.float32) for name in ("weights", "first_moment", "second_moment")},
        None,
    )
    with cluster(100, processes=False, memory_limit=0) as many, Client(many) as client:
        tasks, seconds = Cluster(client), []
        for _ in range(6):
            begin = time.perf_counter()
            results = [tasks.submit(sleeping, common, 1.0) for _ in range(100)]
            common = tasks.value(tasks.submit(exchanged, tasks.few(averaged, results), 0.99, 0))
            seconds.append(time.perf_counter() - begin - 1.0)
    print(
        "100 workers, groups that sleep for 1 s: "
        f"{statistics.median(seconds[1:]):.2f} s more a round"
    )


def made(i, rows):
    rng = np.random.default_rng(i)
    return rng.standard_normal((rows, N_COLUMNS), dtype=np.float32)


def memory():
    """Data of ten times the memory of a worker, made where they are, kept in memory and on disk."""
    limit, rows = 2**30, 100_000
    n = 10 * limit // (rows * N_COLUMNS * 4)
    dX = da.concatenate(
        [
            da.from_delayed(dask.delayed(made)(i, rows), (rows, N_COLUMNS), np.float32)
            for i in range(n)
        ]
    )
    dy = (dX[:, :3].sum(axis=1) > 0).astype(int)
    with cluster(1, memory_limit=limit) as small, Client(small):
        begin = time.perf_counter()
        model = OrtSGDClassifier(eta0=0.1, **COMMON | {"optimizer": "sgd", "max_iter": 1}).fit(
            dX, dy
        )
        seconds = time.perf_counter() - begin
    print(
        f"{dX.nbytes / 2**30:.1f} GiB of rows on one worker of {limit / 2**30:.2f} GiB: objective "
        f"{model.loss_:.3f} after one round, {seconds:.0f} s"
    )


PARTS = {"groups": groups, "overhead": overhead, "workers": workers, "memory": memory}


def main(names):
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in names or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
