"""
The gain by `n_jobs`. Run it with `python -m benchmarks.threads`, with nothing else running.

An epoch of solver "graph" on one thread and on all cores, in turn. Threads gain more on larger matrix products.
"""

import os
import statistics
import warnings
from functools import partial

from sklearn.exceptions import ConvergenceWarning

from benchmarks.contenders import estimator
from benchmarks.problems import blobs, regression
from benchmarks.timing import in_turn

PROBLEMS = {
    "10-20-1, batches of 10, 5,000 rows": partial(regression, 5000, 10, (20,), batch_size=10, eta=0.01),
    "100-100-1, batches of 100, 20,000 rows": partial(regression, 20_000, 100, (100,), batch_size=100, eta=0.05),
    "100-100-1, batches of 200, 20,000 rows": partial(regression, 20_000, 100, (100,), batch_size=200, eta=0.05),
    "100-100-1, batches of 1000, 50,000 rows": partial(regression, 50_000, 100, (100,), batch_size=1000, eta=0.1),
    "784-100-10, batches of 200, 20,000 rows": partial(blobs, 20_000, 784, 10, (100,), batch_size=200, eta=0.1),
}


def main(n_epochs=20, repeats=9):
    """Print milliseconds per epoch: the median and the range of the fits."""
    n_cores = os.cpu_count()
    print(f"{'ms / epoch':<42} {'n_jobs=1':>22} {f'n_jobs={n_cores}':>22}")
    for name, make in PROBLEMS.items():
        problem = make(n_epochs=n_epochs)
        fits = {n: partial(estimator(problem, "graph", n).fit, problem.X, problem.y) for n in (1, n_cores)}
        times, _ = in_turn(fits, repeats)
        cells = [_median_and_range([1e3 * t / n_epochs for t in values]) for values in times.values()]
        print(f"{name:<42} {cells[0]:>22} {cells[1]:>22}", flush=True)


def _median_and_range(values):
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
