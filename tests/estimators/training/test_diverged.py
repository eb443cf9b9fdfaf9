"""The error of a training that diverged: its cause in small rows, with numbers, and its cure."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_diabetes

from skort import OrtSGDRegressor
from skort.estimators.data.rows import TrainingData
from skort.estimators.training.diverged import diverged_error, likely_cause
from skort.estimators.training.result import result_of
from skort.exceptions import DivergedError
from skort.optim.schedules import InvScaling

X = np.array([[0.0, 0.0], [1.0, 100.0], [0.0, 0.0], [1.0, 100.0]])
Y = np.array([1.0, 2.0, 1.0, 2.0])


@pytest.fixture
def cause():
    """A function: parameters, rows and y -> the likely cause in the rows."""

    def found(rows, y, **parameters):
        model = OrtSGDRegressor(**{"max_iter": 1, "tol": None, "eta0": 1e-6, **parameters})
        result = result_of(model.fit([[0.0, 1.0], [1.0, 0.0]], [1.0, 2.0]))
        data = TrainingData(rows, np.reshape(y, (-1, 1)), None)
        return likely_cause(result.plan, result.state, data)

    return found


def test_standard_deviations_that_differ_are_named_with_their_columns(cause):
    assert cause(X, Y, standardize=False) == (
        "The columns of X have standard deviations from 0.5 (column 0) to 50 (column 1). "
        'Use standardize="auto", or StandardScaler, or lower eta0.'
    )


def test_large_standard_deviations_are_told(cause):
    assert cause(40 * X[:, :1] @ np.ones((1, 2)), Y, standardize=False) == (
        "The columns of X have standard deviations of up to 20. "
        'Use standardize="auto", or StandardScaler, or lower eta0.'
    )


@pytest.mark.parametrize(
    "rows",
    [X / [[1.0, 100.0]], np.ones((4, 2)), scipy.sparse.csr_matrix(X)],
    ids=["like ones", "constant", "sparse"],
)
def test_without_a_cause_in_the_rows_the_rate_is_lowered(cause, rows):
    assert cause(rows, Y, standardize=False) == "Lower eta0."


def test_scales_that_the_training_had_are_no_cause(cause):
    assert cause(X, 100 * Y) == "Lower eta0."


def test_a_large_y_is_named_with_its_largest_value(cause):
    assert cause(X[:, :1] @ np.ones((1, 2)), 100 * Y, standardize=False) == (
        'y has values of up to 200. Use standardize="auto", or StandardScaler, or lower eta0.'
    )


def test_a_large_y_of_a_logarithm_is_divided(cause):
    rows = X[:, :1] @ np.ones((1, 2))
    assert cause(rows, 100 * Y, standardize=False, loss="poisson") == (
        "y has values of up to 200. Divide y by 2e+02, or lower eta0."
    )


def test_the_advice_is_that_of_the_schedule(cause):
    rows = X[:, :1] @ np.ones((1, 2))
    given = {"learning_rate": "optimal", "alpha": 0.1, "eta0": "auto", "standardize": False}
    assert cause(rows, Y, **given) == 'Use learning_rate="constant".'
    given = {"learning_rate": InvScaling(1e-6), "eta0": "auto", "standardize": False}
    assert cause(rows, Y, **given) == "Lower eta0."


def test_a_rate_that_skort_found_has_another_cause(cause):
    assert cause(X, Y, eta0="auto", optimizer="sgd") == (
        "Check X and y for values far from all others, or give eta0 a number below this rate."
    )


def test_the_error_has_the_words_of_the_loop_first_and_the_cause_of_a_fit_last():
    model = OrtSGDRegressor(optimizer="sgd", learning_rate="constant", eta0=100.0, random_state=0)
    with pytest.raises(DivergedError, match=r"[Ll]oss grew|infinite or NaN") as raised:
        model.fit(*load_diabetes(return_X_y=True))
    assert str(raised.value).endswith("Lower eta0.")


def test_an_error_keeps_its_words():
    fitted = OrtSGDRegressor(max_iter=1, tol=None, eta0=1e-6, standardize=False)
    result = result_of(fitted.fit(X, Y))
    variables = result.plan.variables(result.model.score_graph, None)
    data = TrainingData(X, Y[:, None], None)
    error = diverged_error(
        result.plan, DivergedError("It grew."), result.state, data, result.model, variables
    )
    assert str(error).startswith("It grew. The columns of X have standard deviations from 0.5 ")
