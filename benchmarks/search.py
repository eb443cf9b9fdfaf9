"""
A grid search of 9 candidates and 5 folds whose candidates are trained together, against
scikit-learn's, on one thread.

Run it with `python benchmarks/search.py`. Searches take turns; a time is the least processor time
of a whole `fit`, with scores and the fit of the best candidate. Other programs that run meanwhile
matter little.
"""

import time
import warnings
from functools import partial

from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor

from benchmarks.small_fits import ALPHA, ETA, data, models
from benchmarks.timing import threads
from skort.model_selection import OrtGridSearchCV

N_ROUNDS = 3
TOGETHER, ONE_BY_ONE, THEIRS = "OrtGridSearchCV", "GridSearchCV", "scikit-learn's own model"
# For an SGDRegressor, whose steps are of one row.
SMALL_ETA = [0.001, 0.003, 0.01]
CASES = [
    (hidden, n_epochs, batch_size)
    for hidden in ((), (20,))
    for n_epochs in (5, 50)
    for batch_size in (32, 200)
]


def searches(hidden, n_epochs, batch_size):
    """Return the searches of a case, by name."""
    ours, theirs = models(hidden, n_epochs, batch_size)
    ours.set_params(standardize="auto")
    of_theirs = (
        ("learning_rate_init", ETA) if isinstance(theirs, MLPRegressor) else ("eta0", SMALL_ETA)
    )
    return {
        TOGETHER: OrtGridSearchCV(ours, {"alpha": ALPHA, "eta0": ETA}),
        ONE_BY_ONE: GridSearchCV(ours, {"alpha": ALPHA, "eta0": ETA}),
        THEIRS: GridSearchCV(theirs, {"alpha": ALPHA, of_theirs[0]: of_theirs[1]}),
    }


def seconds(contenders, n_rounds=N_ROUNDS):
    """
    Return the least processor time of each contender,
    which take turns after a run that is not measured.
    """
    times = {name: [] for name in contenders}
    for run in contenders.values():
        run()
    for _ in range(n_rounds):
        for name, run in contenders.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return {name: min(values) for name, values in times.items()}


def main():
    """Print a line a case."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, y = data(1000, 20)
    with threads():
        for hidden, n_epochs, batch_size in CASES:
            contenders = searches(hidden, n_epochs, batch_size)
            times = seconds(
                {name: partial(search.fit, X, y) for name, search in contenders.items()}
            )
            model = f"MLP {hidden}" if hidden else "linear"
            shown = ", ".join(f"{name} {1e3 * value:.0f} ms" for name, value in times.items())
            ratio, theirs = (times[name] / times[TOGETHER] for name in (ONE_BY_ONE, THEIRS))
            print(
                f"{model}, {n_epochs} epochs, batches of {batch_size}: {shown}; {ratio:.1f} and "
                f"{theirs:.1f} times"
            )


if __name__ == "__main__":
    main()
