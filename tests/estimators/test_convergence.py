"""
Every optimizer with every learning rate on problems whose solution is known:
the distance that is left.
"""

from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.optim.schedules import SCHEDULES, Cosine, Warmup

N_UPDATES = 2000
ALPHA = 0.1


@cache
def least_squares():
    """Without noise: every batch has its minimum at the same weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    solution = np.array([1.0, -2.0, 3.0, 0.5])
    model = OrtSGDRegressor(loss="squared_error", penalty=None, batch_size=50)
    return model, X, X @ solution + 5.0, np.append(solution, 5.0)


@cache
def logistic():
    """Full batches, with a penalty."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X @ [1.0, -2.0, 3.0, 0.5] + rng.logistic(size=200) > 0).astype(int)
    best = LogisticRegression(C=1 / (ALPHA * len(X)), tol=1e-10, max_iter=1000).fit(X, y)
    return (
        OrtSGDClassifier(penalty="l2", alpha=ALPHA, batch_size=200),
        X,
        y,
        np.append(best.coef_, best.intercept_),
    )


#: Learning rates that suit. An optimizer is not here if its steps do not shrink with the gradient,
#: as those of a sign: it comes no nearer than its last rate.
RATES = {"sgd": 0.2, "momentum": 0.05, "nesterov": 0.05, "adam": 0.05}
LEARNING_RATES = {
    **{name: lambda eta0, name=name: name for name in SCHEDULES},
    "cosine": lambda eta0: Cosine(N_UPDATES, eta0),
    "warmup": lambda eta0: Warmup(Cosine(N_UPDATES, eta0)),
    "function": lambda eta0: lambda t: eta0 * 0.999**t,
}


@pytest.mark.slow
@pytest.mark.parametrize("schedule", LEARNING_RATES)
@pytest.mark.parametrize("optimizer", RATES)
@pytest.mark.parametrize("problem", [least_squares, logistic])
def test_the_distance_that_is_left(problem, optimizer, schedule):
    model, X, y, solution = problem()
    eta0, n_batches = RATES[optimizer], len(X) // model.batch_size
    # The schedule has an alpha, too.
    alpha = ALPHA if schedule == "optimal" else model.alpha
    model = clone(model).set_params(
        alpha=alpha, optimizer=optimizer, learning_rate=LEARNING_RATES[schedule](eta0),
        eta0="auto" if schedule == "function" else eta0,
        max_iter=N_UPDATES // n_batches, tol=None, random_state=0,
    ).fit(X, y)  # fmt: skip
    weights = np.append(model.coef_, model.intercept_)
    assert np.linalg.norm(weights - solution) <= 3e-5 * np.linalg.norm(solution)
