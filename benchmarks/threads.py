"""
The gain by `n_jobs`. Run it with `python -m benchmarks.threads`, with nothing else running.

An epoch of solver "graph" on one thread, on all cores and with the default "auto", in turn with the
same network of scikit-learn, which takes all cores where numpy does. Threads gain more on larger
matrix products.
"""

import os
import statistics
import warnings
from functools import partial

from sklearn.exceptions import ConvergenceWarning

from benchmarks.contenders import SCIKIT_LEARN, estimator, scikit_learn_model
from benchmarks.problems import blobs, regression
from benchmarks.timing import in_turn

PROBLEMS = {
    "10-20-1, batches of 10, 5,000 rows": partial(
        regression, 5000, 10, (20,), batch_size=10, eta=0.01
    ),
    "100-100-1, batches of 100, 20,000 rows": partial(
        regression, 20_000, 100, (100,), batch_size=100, eta=0.05
    ),
    "100-100-1, batches of 1000, 50,000 rows": partial(
        regression, 50_000, 100, (100,), batch_size=1000, eta=0.1
    ),
    "784-100-10, batches of 200, 20,000 rows": partial(
        blobs, 20_000, 784, 10, (100,), batch_size=200, eta=0.1
    ),
    "784-512-256-10, batches of 256, 20,000 rows": partial(
        blobs, 20_000, 784, 10, (512, 256), batch_size=256, eta=0.05
    ),
}


def main(n_epochs=4, repeats=7):
    """Print milliseconds per epoch: the median and the range of the fits."""
    n_cores = os.cpu_count()
    names = ["n_jobs=1", f"n_jobs={n_cores}", 'n_jobs="auto"', SCIKIT_LEARN]
    print(f"{'ms / epoch':<44}" + "".join(f"{name:>26}" for name in names))
    for name, make in PROBLEMS.items():
        problem = make(n_epochs=n_epochs)
        models = [
            *(estimator(problem, "graph", n) for n in (1, n_cores, "auto")),
            scikit_learn_model(problem),
        ]
        fits = {
            key: partial(model.fit, problem.X, problem.y)
            for key, model in zip(names, models, strict=True)
        }
        times, _ = in_turn(fits, repeats)
        cells = [
            _median_and_range([1e3 * t / n_epochs for t in values]) for values in times.values()
        ]
        print(f"{name:<44}" + "".join(f"{cell:>26}" for cell in cells), flush=True)


def _median_and_range(values):
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
