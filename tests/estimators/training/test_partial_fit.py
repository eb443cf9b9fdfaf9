"""The first call of a stream, and later ones, as functions of an estimator that they do not change."""

import numpy as np
import pytest

from skort import OrtSGDRegressor
from skort.estimators.training.data_source import GivenRows
from skort.estimators.training.fit import fit
from skort.estimators.training.partial_fit import first_call, next_call

rng = np.random.default_rng(0)
X = rng.normal(size=(37, 3))
y = X @ [1.0, -2.0, 0.5] + 3


def test_the_first_call_plans_a_stream_and_changes_no_estimator():
    estimator = OrtSGDRegressor(random_state=0)
    before = dict(vars(estimator))
    result, read = first_call(estimator, GivenRows(X, y, None))
    assert vars(estimator) == before
    assert result.plan.is_stream and result.plan.batch_size == 16
    # 16, 16 and 5 rows
    assert (result.state.n_epochs, result.state.n_updates) == (1, 3)
    assert read.columns.n_features == 3


def test_rows_that_wait_make_no_update():
    result, _ = first_call(OrtSGDRegressor(random_state=0), GivenRows(X[:19], y[:19], None))
    assert (result.state.n_epochs, result.state.n_updates) == (0, 0)
    assert result.state.first_rows.n_rows == 19


def test_a_first_call_in_which_no_row_counts_waits():
    result, _ = first_call(OrtSGDRegressor(random_state=0), GivenRows(X, y, np.zeros(37)))
    assert (result.state.n_epochs, result.state.n_updates) == (0, 0)
    assert result.state.first_rows.n_rows == 0


def test_a_later_call_in_which_no_row_counts_leaves_nothing():
    assert next_call(ESTIMATOR, RESULT, GivenRows(X, y, np.zeros(37))) is None


def test_a_later_call_goes_on_with_the_same_plan():
    estimator = OrtSGDRegressor(random_state=0)
    first, _ = first_call(estimator, GivenRows(X, y, None))
    estimator.n_features_in_ = 3
    second, _ = next_call(estimator, first, GivenRows(X, y, None))
    assert second.plan is first.plan
    assert second.state.rate_scale == first.state.rate_scale
    assert second.state.standardization is first.state.standardization


@pytest.mark.parametrize("weight, copies", [(1.0, 1), (1000.0, 16)])
def test_a_row_is_seen_once_and_lowers_the_rate_as_often_as_it_is_repeated(weight, copies):
    estimator = OrtSGDRegressor(random_state=0)
    first, _ = first_call(estimator, GivenRows(X, y, None))
    estimator.n_features_in_ = 3
    second, _ = next_call(estimator, first, GivenRows(X, y, np.full(37, weight)))
    assert (first.state.n_seen, first.state.n_in_rate) == (37, 37)
    assert (second.state.n_seen, second.state.n_in_rate) == (74, 37 + copies * 37)


def test_a_call_after_a_fit_plans_a_stream_of_its_rows():
    estimator = OrtSGDRegressor(penalty=None, random_state=0)
    fitted, _ = fit(estimator, GivenRows(X, y, None))
    assert not fitted.plan.is_stream
    estimator.n_features_in_ = 3
    result, _ = next_call(estimator, fitted, GivenRows(X[:5], y[:5], None))
    assert result.plan.is_stream and result.plan.batch_size == 5
    # The largest stable rate of the fitted rows, in batches of 16, of which 5 rows are a part.
    # The rows of the fit lower it.
    largest, norm = fitted.spread
    assert result.state.rate_scale == pytest.approx(5 / 16 / ((15 * largest + norm) / 16), rel=1e-6)
    assert result.state.n_in_rate == 37 + 5
    expected = result.state.rate_scale / np.cbrt(1 + 37 / 3)
    assert result.state.rows()["eta"][-1] == pytest.approx(expected)


@pytest.mark.parametrize("weights", [None, np.linspace(0, 2, 37)])
def test_a_fit_keeps_the_spread_of_its_rows_for_a_stream(weights):
    fitted, _ = fit(OrtSGDRegressor(random_state=0), GivenRows(X, np.stack([y, -y], 1), weights))
    assert fitted.plan.is_full
    counted = np.ones(37) if weights is None else weights
    mean = np.average(X, axis=0, weights=counted)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=counted))
    rows = np.column_stack([(X - mean) / scale, np.ones(37)])
    gram = rows.T @ (counted[:, None] * rows) / counted.sum()
    largest, norm = fitted.spread
    assert largest == pytest.approx(np.linalg.eigvalsh(gram)[-1], rel=0.1)  # a rough one
    assert norm == pytest.approx(4, rel=1e-5)


ESTIMATOR = OrtSGDRegressor(random_state=0)
RESULT, _ = first_call(ESTIMATOR, GivenRows(X, y, None))
ESTIMATOR.n_features_in_ = 3
