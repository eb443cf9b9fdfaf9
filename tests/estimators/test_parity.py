"""
The same steps as scikit-learn's own estimators of gradient descent:
same weights to begin with, same batches.
"""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.utils.fixes import parse_version
from solver_traits import takes

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.optim.callbacks import EarlyStopping
from skort.optim.optimizers import OPTIMIZERS as OPTIMIZERS_BY_NAME
from skort.optim.optimizers import Adam, Momentum, Nesterov
from skort.optim.schedules import Adaptive

N_ROWS, BATCH_SIZE, N_EPOCHS = 60, 20, 7
# The steps of scikit-learn are those of X and y as they are, at a constant rate but where a test
# says otherwise.
STEPS = {"standardize": False, "learning_rate": "constant"}

PLAIN = {"solver": "sgd", "momentum": 0.0, "nesterovs_momentum": False}
OPTIMIZERS = [
    ("sgd", PLAIN),
    ("momentum", {"solver": "sgd", "nesterovs_momentum": False}),
    ("nesterov", {"solver": "sgd"}),
    ("adam", {"solver": "adam"}),
    (Momentum(momentum=0.5), {"solver": "sgd", "nesterovs_momentum": False, "momentum": 0.5}),
    (Nesterov(momentum=0.5), {"solver": "sgd", "momentum": 0.5}),
    (
        Adam(beta_1=0.5, beta_2=0.9, epsilon=1e-2),
        {"solver": "adam", "beta_1": 0.5, "beta_2": 0.9, "epsilon": 1e-2},
    ),
]


def rows(rng):
    X = rng.normal(size=(N_ROWS, 5))
    return X, X[:, 0] - 2 * X[:, 1] + X[:, 2] ** 2 + 0.1 * rng.normal(size=N_ROWS)


def classes(y, n_classes):
    return np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))


def skip_unless_it_can(solver, optimizer):
    optimizer = OPTIMIZERS_BY_NAME[optimizer]() if isinstance(optimizer, str) else optimizer
    if not takes(solver, optimizer):
        pytest.skip(f"it has no {optimizer!r}")


@pytest.mark.parametrize("optimizer, reference", OPTIMIZERS, ids=[repr(o) for o, _ in OPTIMIZERS])
@pytest.mark.parametrize(
    "ours, theirs, n_classes",
    [
        (OrtSGDRegressor, MLPRegressor, None),
        (OrtSGDClassifier, MLPClassifier, 2),
        (OrtSGDClassifier, MLPClassifier, 3),
    ],
)
def test_neural_networks_take_the_steps_of_scikit_learn(
    solver, ours, theirs, n_classes, optimizer, reference, rng
):
    skip_unless_it_can(solver, optimizer)
    X, y = rows(rng)
    y = y if n_classes is None else classes(y, n_classes)
    shared = {"batch_size": BATCH_SIZE, "max_iter": N_EPOCHS, "shuffle": False, "random_state": 0}
    network = {"hidden_layer_sizes": (7, 4), "activation": "tanh"}
    # Their penalty is divided by the rows of a batch.
    expected = theirs(**network, alpha=0.2, learning_rate_init=0.02, tol=0, **reference, **shared)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected.fit(X, y)
    options = {
        "solver": solver,
        "optimizer": optimizer,
        "alpha": 0.2 / BATCH_SIZE,
        "eta0": 0.02,
        **STEPS,
    }
    model = ours(theirs(**network), tol=None, **options, **shared).fit(X, y)
    assert_close(model.weights_.values(), [*expected.coefs_, *expected.intercepts_])
    assert model.t_ == N_EPOCHS * N_ROWS // BATCH_SIZE
    # Their objective ends with the average of the epoch too, before the updates.
    np.testing.assert_allclose(model.loss_curve_, expected.loss_curve_, rtol=1e-4)


def assert_close(weights, expected):
    for ours, theirs in zip(weights, expected, strict=True):
        assert np.linalg.norm(ours.ravel() - theirs.ravel()) <= 1e-4 * np.linalg.norm(theirs)


@pytest.mark.parametrize("average", [False, True, 10, 100_000])
@pytest.mark.parametrize(
    "schedule",
    [
        {"learning_rate": "constant", "eta0": 0.02},
        {"learning_rate": "invscaling", "eta0": 0.05, "power_t": 0.4},
        {"learning_rate": "optimal", "alpha": 0.3},
    ],
    ids=lambda schedule: schedule["learning_rate"],
)
@pytest.mark.filterwarnings("ignore:alpha=0.01 has no effect. penalty=None")
@pytest.mark.filterwarnings("ignore:average=100000 has no effect")
@pytest.mark.parametrize("penalty", ["l2", None])
@pytest.mark.parametrize(
    "ours, theirs", [(OrtSGDRegressor, SGDRegressor), (OrtSGDClassifier, SGDClassifier)]
)
def test_one_row_a_batch_takes_the_steps_of_scikit_learn(
    solver, ours, theirs, penalty, schedule, average, rng
):
    X, y = rows(rng)
    if ours is OrtSGDRegressor:
        # "optimal" begins at a rate at which a squared error with larger features diverges.
        X, loss = X / 4, "squared_error"
    else:
        y, loss = classes(y, 2), "log_loss"
    shared = {
        "alpha": 0.01,
        "max_iter": N_EPOCHS,
        "shuffle": False,
        "penalty": penalty,
        "tol": None,
        **schedule,
    }
    shared |= {"loss": loss, "average": average}
    expected = theirs(**shared).fit(X, y)
    model = ours(solver=solver, batch_size=1, **{"eta0": 0.01, **STEPS, **shared}).fit(X, y)
    assert_close([model.coef_, model.intercept_], [expected.coef_, expected.intercept_])
    assert model.t_ == expected.t_ - 1 == N_EPOCHS * N_ROWS


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"), reason="stopped by the loss alone"
)
@pytest.mark.parametrize(
    "ours, theirs", [(OrtSGDRegressor, SGDRegressor), (OrtSGDClassifier, SGDClassifier)]
)
def test_adaptive_lowers_its_rate_in_the_same_epochs(ours, theirs, rng):
    X, y = rows(rng)
    if ours is OrtSGDClassifier:
        y = classes(y, 2)
    shared = {
        "alpha": 0.01,
        "shuffle": False,
        "loss": "squared_error" if ours is OrtSGDRegressor else "log_loss",
    }
    expected = theirs(
        **shared, learning_rate="adaptive", eta0=0.02, tol=1e-2, n_iter_no_change=3
    ).fit(X, y)
    # Theirs ends at the first rate of 1e-6 or less, 0.02 / 5^7, and its tol is not relative.
    steps = {
        "batch_size": 1,
        "learning_rate": Adaptive(eta0=0.02, max_falls=7),
        "standardize": False,
        "tol": None,
    }
    stopping = EarlyStopping("objective", patience=3, tol=1e-2, restore_best=False)
    model = ours(**shared, **steps, dtype="float64", callbacks=[stopping]).fit(X, y)
    assert model.n_iter_ == expected.n_iter_
    assert_close([model.coef_, model.intercept_], [expected.coef_, expected.intercept_])
