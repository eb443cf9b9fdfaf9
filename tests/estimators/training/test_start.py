"""How a training starts: scales, weights and first rate, as values of small data."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor
from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.planning.plan_of_fit import for_model
from skort.estimators.training.data_source import GivenRows
from skort.estimators.training.read import model_and_data, read_fit
from skort.estimators.training.start import check_first_rows, start, start_at_weights
from skort.estimators.variables.reparametrization import WeightRangeError
from skort.optim.state import TrainState

X = np.array([[0.0, 10.0], [2.0, 10.0], [4.0, 40.0]])
y = np.array([1.0, 2.0, 6.0])


def parts(model, X=X, y=y, **parameters):
    """Return plan, model, statistics and state of a fit before its start."""
    estimator = OrtSGDRegressor(model, random_state=0, **parameters)
    read = read_fit(estimator, GivenRows(X, y, None))
    plan = read.plan(estimator, None)
    trained, data = model_and_data(read, plan, None, None)
    plan = for_model(plan, trained, data)
    return plan, trained, DataStatistics(data), TrainState.start(read.generator)


def test_a_linear_model_starts_at_zeros_of_standardized_columns():
    begun = start_at_weights(*parts(None))
    used = begun.state.standardization
    np.testing.assert_allclose(used.mean, X.mean(axis=0))
    np.testing.assert_allclose(used.scale, X.std(axis=0))
    assert used.target_scale == pytest.approx(y.std())
    # Zeros of the training predict the mean.
    weights = begun.model.trained_weights
    np.testing.assert_array_equal(weights["coef"], 0)
    np.testing.assert_allclose(weights["intercept"], y.mean(), rtol=1e-6)
    assert begun.plan.decisions["weights"].value == "zeros"


def test_the_first_rate_is_the_largest_stable_one_of_all_rows():
    # One batch of all rows: the inverse of the largest eigenvalue of rows with a column of ones.
    begun = start_at_weights(*parts(None, penalty=None, optimizer="sgd"))
    rows = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(3)])
    largest = np.linalg.eigvalsh(rows.T @ rows / 3)[-1]
    # A batch of three rows of 200 makes 3 / 200 of a step, for which the rate makes up.
    assert begun.state.rate_scale == pytest.approx(1 / largest, rel=1e-6)
    assert begun.spread[0] == pytest.approx(largest)


def test_without_scales_the_variables_are_those_of_the_model():
    begun = start_at_weights(*parts(None, standardize=False, eta0=0.3))
    assert begun.state.standardization is None
    assert begun.state.rate_scale == 1.0
    np.testing.assert_array_equal(begun.variables.rows(X), X.astype("f"))


def test_one_moment_decides_on_the_decay_of_a_network():
    def decays(network):
        plan, model, statistics, state = parts(network, rows, target)
        begun = start(plan, model, statistics, state)
        return [each.update.optimizer.weight_decay for each in (plan, begun.plan)]

    rng = np.random.RandomState(0)
    rows = rng.normal(size=(300, 2))
    target = np.tanh(rows[:, 0])
    network = MLPRegressor(hidden_layer_sizes=(8,), max_iter=2000, random_state=0)
    # That of a new network depends on the noise of y, which is small here.
    of_plan, of_start = decays(network)
    assert of_plan == 0.0
    plan_of_fitted, start_of_fitted = decays(FrozenEstimator(network.fit(rows, target)))
    assert plan_of_fitted == start_of_fitted > 0.0
    assert of_start == pytest.approx(0.4 * plan_of_fitted, rel=1e-12)


def test_a_fitted_network_starts_at_its_weights_and_a_part_of_the_rate():
    rng = np.random.RandomState(0)
    rows = rng.normal(size=(300, 2))
    target = np.tanh(rows[:, 0])
    network = MLPRegressor(hidden_layer_sizes=(8,), max_iter=2000, random_state=0).fit(rows, target)
    plan, model, statistics, state = parts(FrozenEstimator(network), rows, target)
    begun = start(plan, model, statistics, state)
    # It knows the rows: the least part.
    assert begun.state.rate_scale == pytest.approx(0.05)
    for before, after in zip(
        model.trained_weights.values(), begun.model.trained_weights.values(), strict=True
    ):
        np.testing.assert_allclose(before, after, rtol=1e-5, atol=1e-6)
    # The best constant is the mean; the loss is half of the squared error.
    assert begun.constant_loss == pytest.approx(target.var() / 2, rel=1e-2)


def test_rows_that_float32_cannot_hold_are_found_before_their_scales_are_known():
    plan, model, statistics, _ = parts(LinearRegression())
    check_first_rows(plan, model, statistics.some_rows)
    tiny = TrainingData(np.array([[1.0, 1e-46]]), y[:1, None], None)
    with pytest.raises(WeightRangeError, match="float32 cannot hold X, column 1"):
        check_first_rows(plan, model, tiny)
