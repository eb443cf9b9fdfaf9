"""
Speed of small fits against scikit-learn's, on one thread.

Run it with `python benchmarks/speed.py`. Every case runs its contenders in turn, five times; the figures are medians
with their range, the ratios those of the medians.
"""

import statistics
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from threadpoolctl import threadpool_limits

from skort import OrtSGDRegressor
from skort.solvers import available_solvers

REPEATS = 5
SOLVERS = available_solvers()


def in_turn(contenders):
    """Return each contender's times in milliseconds."""
    times = {name: [] for name in contenders}
    for run in contenders.values():
        run()
    for _ in range(REPEATS):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            times[name].append(1e3 * (time.perf_counter() - start))
    return times


def show(times, unit, scale=1.0, reference=None):
    base = statistics.median(times[reference]) if reference else None
    for name, values in times.items():
        values = [v / scale for v in values]
        ratio = "" if base is None else f"{reference} / this {base / scale / statistics.median(values):5.2f}"
        print(f"  {name:<22} {statistics.median(values):8.2f} {unit} ({min(values):.2f} to {max(values):.2f})  {ratio}")


def epoch(n=5000, n_epochs=10):
    print(f"One epoch of MLPRegressor 10-20-1, batches of 10, {n} rows, sgd without momentum")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10)).astype(np.float32)
    y = (X[:, 0] + np.sin(X[:, 1])).astype(np.float32)
    options = {"batch_size": 10, "max_iter": n_epochs, "random_state": 0}
    inner = MLPRegressor(hidden_layer_sizes=(20,))
    peer = MLPRegressor(
        hidden_layer_sizes=(20,), solver="sgd", momentum=0, learning_rate_init=0.01, tol=0, n_iter_no_change=n_epochs,
        **options,
    )  # fmt: skip
    models = {"scikit-learn": peer}
    for solver in SOLVERS:
        models[solver] = OrtSGDRegressor(inner, solver=solver, eta0=0.01, tol=None, **options)
        models[f"{solver}, no penalty"] = OrtSGDRegressor(
            inner, solver=solver, eta0=0.01, tol=None, penalty=None, **options
        )
    times = in_turn({name: lambda model=model: model.fit(X, y) for name, model in models.items()})
    show(times, "ms", scale=n_epochs, reference="scikit-learn")
    print("  mean squared error:", ", ".join(f"{k} {np.mean((m.predict(X) - y) ** 2):.5f}" for k, m in models.items()))


def fixed_cost():
    print("fit of 100 x 5 rows with max_iter=1")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    inner = {"linear": None, "10 hidden units": MLPRegressor(hidden_layer_sizes=(10,))}
    models = {
        f"{solver}, {name}": OrtSGDRegressor(model, solver=solver, max_iter=1)
        for solver in SOLVERS
        for name, model in inner.items()
    }
    show(in_turn({name: lambda model=model: model.fit(X, X[:, 0]) for name, model in models.items()}), "ms")


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    with threadpool_limits(1):
        epoch()
        fixed_cost()
