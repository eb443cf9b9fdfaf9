"""
What more epochs bring networks on tables of many rows, by the rows a column.

`python -m benchmarks.epochs` fits one split of tables of 4,000 to 60,000 rows: those of
`benchmarks.real_tables`, and 20 that no other benchmark has. The networks have all defaults but for
`max_iter`, which is 1, 1.5, 2 and 4 times what the rows alone give; `--hidden` gives the units of
each layer. For each table it prints the rows a column, by which the lines are sorted, what the plan
multiplies the epochs by, and the held-out score (R2 or accuracy); then the processor's seconds of
all fits as a multiple of the first ones'.
"""

import argparse
import time
from unittest import mock

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from threadpoolctl import threadpool_limits

from benchmarks.real_tables import RealTable, encode, read, real_tables
from benchmarks.table_specs import MANY_ROWS
from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.planning import epochs

TIMES = (1, 1.5, 2, 4)
LEAST_ROWS = 4000


def many_rows():
    """Yield the tables of many rows."""
    yield from (table for table in real_tables() if len(table.y) >= LEAST_ROWS)
    for task, spec in MANY_ROWS:
        _, _, frame = read(spec.item)
        X, y = encode(frame, spec.target, task)
        yield RealTable(spec.name, spec.source, task, X, y)


def fits(table, hidden, times=TIMES):
    """Return epochs, score and seconds of a fit with each multiple of the planned epochs."""
    is_regression = table.task == "regression"
    network = (MLPRegressor if is_regression else MLPClassifier)(hidden_layer_sizes=hidden)
    estimator = OrtSGDRegressor if is_regression else OrtSGDClassifier
    X, X_test, y, y_test = train_test_split(
        table.X, table.y, random_state=0, stratify=None if is_regression else table.y
    )

    def fit(**parameters):
        model = estimator(network, random_state=0, n_jobs=1, **parameters)
        begin = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - begin
        return model.n_iter_, model.score(X_test, y_test), seconds

    # What the rows a column add is left out.
    with mock.patch.object(epochs, "_MOST_LONGER", 1.0):
        first = fit()
    return [first, *(fit(max_iter=round(multiple * first[0])) for multiple in times[1:])]


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hidden", nargs="+", type=int, default=[50], help="(%(default)s)")
    options = parser.parse_args(arguments)

    print("| table | rows a column | plan | " + " | ".join(f"x {n}" for n in TIMES) + " |")
    print("| --- " * (3 + len(TIMES)) + "|")
    total = np.zeros(len(TIMES))
    tables = sorted(many_rows(), key=lambda table: table.X.shape[0] / table.X.shape[1])
    with threadpool_limits(1):
        for table in tables:
            found = fits(table, tuple(options.hidden))
            total += [seconds for _, _, seconds in found]
            scores = " | ".join(f"{score:.3f}" for _, score, _ in found)
            # Of the rows of the training.
            rows = 0.75 * table.X.shape[0] / table.X.shape[1]
            longer = epochs.longer(rows)
            print(f"| {table.name} | {rows:.0f} | {longer:.2f} | {scores} |", flush=True)

    print("| time | | | " + " | ".join(f"{part:.1f}" for part in total / total[0]) + " |")


if __name__ == "__main__":
    main()
