"""The part of y that a linear model leaves, and the decay of a network that it limits."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.data.rows import TrainingData
from skort.estimators.planning.linear_part import part_left
from skort.estimators.planning.optimizer import planned_decay

RNG = np.random.default_rng(0)


def made(n_rows, n_columns, noise=1.0):
    X = RNG.normal(size=(n_rows, n_columns)) * 7 + 3
    return X, X[:, :1] + 7 * noise * RNG.normal(size=(n_rows, 1))


def by_hat_matrix(X, target):
    """Return generalized cross-validation by its definition, with scikit-learn's Ridge."""
    n = len(X)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    hat = Ridge(alpha=0.1 * n).fit(Z, np.eye(n)).predict(Z).T
    errors = target - hat @ target
    squares = np.sum((target - target.mean(axis=0)) ** 2)
    return np.sum(errors**2) / (1 - np.trace(hat) / n) ** 2 / squares


@pytest.mark.parametrize(("n_rows", "n_columns"), [(40, 5), (40, 40), (30, 50)])
def test_it_is_that_of_generalized_cross_validation(n_rows, n_columns):
    X, target = made(n_rows, n_columns, noise=0.1)
    expected = min(1.0, by_hat_matrix(X, target))
    assert part_left(TrainingData(X, target, None)) == pytest.approx(expected, rel=1e-9)


def test_targets_of_classes_count_together():
    X, _ = made(60, 4)
    target = np.eye(3)[np.digitize(X[:, 0], [0, 5])]
    assert part_left(TrainingData(X, target, None)) == pytest.approx(by_hat_matrix(X, target))


def test_rows_count_as_their_weights_say():
    X, target = made(50, 3)
    plain = part_left(TrainingData(X, target, None))
    assert part_left(TrainingData(X, target, np.full(50, 3.0))) == pytest.approx(plain)

    more = np.concatenate([X, X + 100]), np.concatenate([target, -target])
    weights = np.repeat([1.0, 0.0], 50)
    assert part_left(TrainingData(*more, weights)) == pytest.approx(plain)


def test_of_many_rows_some_count():
    X, target = made(3000, 3)
    some = np.linspace(0, 2999, 1000).astype(int)
    expected = part_left(TrainingData(X[some], target[some], None))
    assert part_left(TrainingData(X, target, None)) == pytest.approx(expected)


@pytest.mark.parametrize(
    "rows",
    [
        TrainingData(scipy.sparse.csr_array(np.eye(4)), np.eye(4), None),
        TrainingData(np.eye(300), np.arange(300.0)[:, None], None),
        TrainingData(np.eye(4)[:, [0]], np.ones((4, 1)), None),
        TrainingData(np.eye(4)[:, [0]], 1e300 * np.eye(4), None),
    ],
    ids=["sparse", "too many columns and rows", "a constant y", "a huge y"],
)
def test_it_is_all_where_it_is_not_known(rows):
    assert part_left(rows) == 1.0


def times(model, X, y):
    """Return how many times the decay of a small network a model has."""
    fitted = model.set_params(max_iter=3, random_state=0).fit(X, y)
    return fitted.optimizer_.weight_decay / planned_decay(3, 0.02)


@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_the_decay_is_larger_where_a_linear_model_leaves_much(activation):
    X, _ = made(60, 16)
    # 20 * 16 + 20 weights of 60 rows
    growth = 340 / 60 / 2
    model = OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(20,), activation=activation))
    noise = RNG.normal(size=60)
    assert times(model, X, noise) == pytest.approx(growth)
    assert times(model, X, X[:, 0]) == 1.0

    y = X[:, 0] + 3.5 * noise
    left = part_left(TrainingData(X, y[:, None], None))
    assert 1 / 8 < left < growth / 8
    assert times(model, X, y) == pytest.approx(8 * left)
    assert times(model.set_params(estimator__activation="relu"), X, y) == pytest.approx(growth)


def test_few_columns_limit_the_decay_of_a_regression_by_tanh():
    X, _ = made(60, 6)
    y = RNG.integers(2, size=60)
    network = {"hidden_layer_sizes": (90,), "activation": "tanh"}
    # 90 * 6 + 90 weights of 60 rows
    assert times(OrtSGDRegressor(MLPRegressor(**network)), X, y) == pytest.approx(1.5)
    assert times(OrtSGDClassifier(MLPClassifier(**network)), X, y) == pytest.approx(4.0)


def test_batches_of_the_user_have_the_same_decay():
    X, y = made(60, 16, noise=0.6)
    model = OrtSGDRegressor(
        MLPRegressor(hidden_layer_sizes=(20,), activation="tanh"), max_iter=3, random_state=0
    )
    decay = model.fit(X, y.ravel()).optimizer_.weight_decay
    assert planned_decay(3, 0.02) < decay
    assert model.fit_batches([(X, y.ravel())]).optimizer_.weight_decay == pytest.approx(decay)
