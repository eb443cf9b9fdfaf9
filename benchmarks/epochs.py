"""
What twice and four times the epochs of the plan bring networks on tables of many rows.

`python -m benchmarks.epochs` fits one split of 16 tables of 6,000 to 54,000 rows that no other
benchmark has, with all defaults and with 2 and 4 times the planned `max_iter`; `--hidden`
gives the units of each layer. For each table it prints rows, columns, epochs and the held-out
score (R2 or accuracy), then the sum of the processor's seconds as a multiple of that of the plan.
"""

import argparse
import time

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from threadpoolctl import threadpool_limits

from benchmarks.real_tables import LOADERS, RealTable, encode
from benchmarks.table_specs import MANY_ROWS
from skort import OrtSGDClassifier, OrtSGDRegressor

TIMES = (1, 2, 4)


def many_rows():
    """Yield the tables of many rows."""
    for task, spec in MANY_ROWS:
        frame = LOADERS[spec.source](spec.item).reset_index(drop=True)
        X, y = encode(frame.drop(columns=list(spec.drop)), spec.target, task)
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

    planned = fit()
    return [
        planned if multiple == 1 else fit(max_iter=round(multiple * planned[0]))
        for multiple in times
    ]


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hidden", nargs="+", type=int, default=[50], help="(%(default)s)")
    options = parser.parse_args(arguments)

    print("| table | rows | columns | epochs | " + " | ".join(f"x {n}" for n in TIMES) + " |")
    print("| --- " * (4 + len(TIMES)) + "|")
    total = np.zeros(len(TIMES))
    with threadpool_limits(1):
        for table in many_rows():
            found = fits(table, tuple(options.hidden))
            total += [seconds for _, _, seconds in found]
            n_epochs = found[TIMES.index(1)][0]
            scores = " | ".join(f"{score:.3f}" for _, score, _ in found)
            n_rows, n_columns = table.X.shape
            print(f"| {table.name} | {n_rows} | {n_columns} | {n_epochs} | {scores} |", flush=True)

    of_plan = total / total[TIMES.index(1)]
    print("| time | | | | " + " | ".join(f"{part:.1f}" for part in of_plan) + " |")


if __name__ == "__main__":
    main()
