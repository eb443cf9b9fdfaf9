"""
500 random grids, in float64, against scikit-learn's own search.
`pytest -m slow tests/search`.
"""

import random
import warnings

import numpy as np
import pytest
from sklearn.linear_model import Ridge, SGDClassifier, SGDRegressor
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import LinearSVC, LinearSVR

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import EarlyStopping
from skort.model_selection import OrtGridSearchCV
from skort.objective import L1, L2, ElasticPenalty
from skort.optimizers import Adam, Momentum

pytestmark = pytest.mark.slow

MODELS = {
    OrtSGDRegressor: [
        None,
        Ridge(0.1),
        LinearSVR(),
        SGDRegressor(),
        MLPRegressor(hidden_layer_sizes=(4,), activation="tanh"),
    ],
    OrtSGDClassifier: [
        None,
        LinearSVC(),
        SGDClassifier(),
        MLPClassifier(hidden_layer_sizes=(4,), activation="tanh"),
    ],
}
LOSSES = {
    OrtSGDRegressor: ["auto", "squared_error", "huber", "epsilon_insensitive"],
    OrtSGDClassifier: ["auto", "log_loss", "hinge", "modified_huber"],
}
PENALTIES = [
    "auto",
    "l1",
    "l2",
    "elasticnet",
    None,
    L1(0.01),
    L2(0.02),
    ElasticPenalty(0.01, 0, intercepts=1.0),
]
NUMBERS = {
    "alpha": [1e-6, 1e-4, 0.01, 0.1],
    "l1_ratio": [0.0, 0.3, 1.0],
    "penalty": PENALTIES,
    "eta0": ["auto", 0.01, 0.05],
    "learning_rate": ["constant", "adaptive", "invscaling", "optimal"],
    "max_iter": [2, 3, 6],
    "tol": [None, 1e-4, 1e-2],
    "n_iter_no_change": [1, 2, "auto"],
    # With its own epsilon of 1e-8, Adam makes steps of the rounding noise of a
    # gradient that is zero.
    "optimizer": [
        "sgd",
        "momentum",
        "nesterov",
        Adam(epsilon=1e-4, weight_decay=0.5),
        Momentum(momentum=0.5),
    ],
    "epsilon": [0.05, 0.5],
}


def drawn(number):
    """Return an estimator, a grid, data and sample weights."""
    choose = random.Random(number)
    rng = np.random.default_rng(number)
    kind = choose.choice(list(MODELS))
    X = rng.normal(size=(choose.choice([30, 43]), 3)) * [1, 5, 0.2] + [0, choose.choice([0, 20]), 1]
    y = X @ [1.0, -0.3, 2.0] + 0.3 * rng.normal(size=len(X))
    if kind is OrtSGDClassifier:
        y = np.digitize(y, np.quantile(y, choose.choice([[0.5], [0.3, 0.6]])))
    fixed = {
        name: choose.choice(values) for name, values in NUMBERS.items() if choose.random() < 0.5
    }
    # The last value counts where both give one.
    fixed |= {
        "loss": choose.choice(LOSSES[kind]),
        "batch_size": choose.choice([7, 16, "auto"]),
        "dtype": "float64",
    }
    fixed |= {
        "standardize": choose.choice(["auto", "auto", False]),
        "shuffle": choose.random() < 0.8,
    }
    # learning_rate="optimal" needs an alpha.
    fixed = {"alpha": 1e-3, "max_iter": 4, "random_state": 0, **fixed}
    if choose.random() < 0.35:
        fixed |= {"early_stopping": True, "validation_fraction": 0.3}
    if choose.random() < 0.15:
        fixed["callbacks"] = [EarlyStopping("loss", patience=1)]
    names = choose.sample(list(NUMBERS), choose.choice([1, 2, 2]))
    grid = {name: choose.sample(NUMBERS[name], 2) for name in names}
    weights = rng.integers(0, 3, len(X)) if choose.random() < 0.2 else None
    return kind(choose.choice(MODELS[kind]), **fixed), grid, X, y, weights


def results(search, estimator, grid, X, y, weights):
    """
    Return the scores, weights and numbers of epochs of all fits,
    and how many were made together.
    """
    seen = []

    def scorer(fitted, X, y):
        seen.append((fitted.n_iter_, fitted.weights_))
        return fitted.score(X, y)

    made = search(
        estimator, grid, scoring=scorer, cv=ShuffleSplit(1, random_state=0), refit=False
    ).fit(X, y, sample_weight=weights)
    return made.cv_results_["mean_test_score"], seen, getattr(made, "n_fits_together_", 0)


# Groups of 50, each of which takes a few seconds.
@pytest.mark.parametrize("group", range(10))
def test_random_grids_have_the_results_of_single_fits(group):
    n_together = 0
    for number in range(50 * group, 50 * group + 50):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours, theirs = (
                results(search, *drawn(number)) for search in (OrtGridSearchCV, GridSearchCV)
            )
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-7, atol=1e-9, err_msg=str(number))
        for (n_epochs, made), (their_epochs, alone) in zip(ours[1], theirs[1], strict=True):
            assert n_epochs == their_epochs, number
            for name, weights in alone.items():
                np.testing.assert_allclose(
                    made[name], weights, rtol=1e-6, atol=1e-9, err_msg=f"{number}, {name}"
                )
        n_together += ours[2]
    # Of about 170 fits.
    assert n_together > 60
