"""
The cost of a call of `partial_fit`.

Run it with `python benchmarks/streaming.py`. A call makes one epoch over its rows. The same epoch
inside one long `fit` needs no validation, export or bookkeeping of its own. The figures are the
best of five, in ms, next to scikit-learn's.
"""

import time

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

from skort import OrtSGDClassifier
from skort.solvers import available_solvers


def best(call, repeat):
    """Return the shortest of five times of `repeat` calls, in ms per call."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(repeat):
            call()
        times.append(time.perf_counter() - begin)
    return 1000 * min(times) / repeat


def main():
    print(
        f"{'rows':>6} {'batch':>6}  {'model':25} {'partial_fit':>12} {'epoch in fit':>13} "
        f"{'scikit-learn':>13}"
    )
    for n, batch_size in ((100, 200), (200, 200), (1000, 200), (10_000, 200), (1000, 10)):
        X = np.random.default_rng(0).normal(size=(n, 20)).astype(np.float32)
        y = (X[:, 0] > 0).astype(int)
        for inner in (None, MLPClassifier(hidden_layer_sizes=(20,), batch_size=min(batch_size, n))):
            theirs = (inner or SGDClassifier()).partial_fit(X, y, classes=[0, 1])
            their_time = best(lambda: theirs.partial_fit(X, y), 5)  # noqa: B023
            for solver in available_solvers():
                model = OrtSGDClassifier(
                    inner, solver=solver, batch_size=batch_size, tol=None, random_state=0
                )
                long, short = (
                    best(lambda: model.set_params(max_iter=i).fit(X, y), 1)  # noqa: B023
                    for i in (51, 1)
                )
                model.partial_fit(X, y)
                ours = best(lambda: model.partial_fit(X, y), 5)  # noqa: B023
                name = f"{'MLP' if inner else 'linear'}, solver={solver!r}"
                print(
                    f"{n:6} {batch_size:6}  {name:25} {ours:12.2f} {(long - short) / 50:13.2f} "
                    f"{their_time:13.2f}"
                )


if __name__ == "__main__":
    main()
