"""
Every check that scikit-learn has for estimators:
both estimators, all solvers, three kinds of model.
"""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from skort import OrtSGDClassifier, OrtSGDRegressor, expected_failed_checks
from skort.solvers import available_solvers

REGRESSORS = [
    None,
    MLPRegressor(hidden_layer_sizes=(10,)),
    make_pipeline(StandardScaler(), LinearRegression()),
]
CLASSIFIERS = [
    None,
    MLPClassifier(hidden_layer_sizes=(10,)),
    make_pipeline(StandardScaler(), LogisticRegression()),
]
COMBINATIONS = [
    *[
        OrtSGDRegressor(estimator, solver=solver)
        for solver in available_solvers()
        for estimator in REGRESSORS
    ],
    *[
        OrtSGDClassifier(estimator, solver=solver)
        for solver in available_solvers()
        for estimator in CLASSIFIERS
    ],
    *[OrtSGDRegressor(estimator, dtype="float64") for estimator in REGRESSORS],
    *[OrtSGDClassifier(estimator, dtype="float64") for estimator in CLASSIFIERS],
]
# One regressor and one classifier are checked by default, all other combinations with
# the slow tests.
FIRST = [
    estimator
    for estimator in COMBINATIONS
    if estimator.estimator is None and estimator.solver == "graph"
]
OTHERS = [estimator for estimator in COMBINATIONS if estimator not in FIRST]


def certain_failures(estimator):
    """Return those that no rounding can make pass."""
    return expected_failed_checks(estimator) if isinstance(estimator.estimator, Pipeline) else {}


def run(check, estimator):
    """
    Run a check; in float32 one rounding, and so chance,
    decides whether it finds the same predictions.
    """
    reason = (
        None
        if isinstance(estimator.estimator, Pipeline)
        else expected_failed_checks(estimator).get(check.func.__name__)
    )
    try:
        check(estimator)
    except AssertionError:
        if reason is None:
            raise
        pytest.xfail(reason)


# The checks fit random labels and tiny data, on which max_iter may well end the training.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(FIRST, expected_failed_checks=certain_failures)
def test_sklearn_check(estimator, check):
    run(check, estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(OTHERS, expected_failed_checks=certain_failures)
def test_sklearn_check_of_other_combinations(estimator, check):
    run(check, estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        OrtSGDRegressor(),
        OrtSGDClassifier(),
        # The decay and the rate that skort chooses depend on the number of rows.
        OrtSGDClassifier(MLPClassifier(hidden_layer_sizes=(10,)), optimizer="adam", eta0=0.02),
    ],
    ids=["regressor", "classifier", "network"],
)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_weighted_row_is_a_repeated_one_up_to_roundings_of_float32(estimator, kind, monkeypatch):
    # Where few rows of three classes are apart, the objective of L-BFGS is flat.
    is_flat = is_classifier(estimator) and estimator.estimator is None

    def compared(a, b, err_msg):
        rtol, atol = (1e-2, 0.1) if is_flat else (1e-3, 1e-5)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=err_msg)

    name = f"check_sample_weight_equivalence_on_{kind}_data"
    assert "float32 rounds" in expected_failed_checks(estimator)[name]
    monkeypatch.setattr(estimator_checks, "assert_allclose_dense_sparse", compared)
    getattr(estimator_checks, name)(type(estimator).__name__, estimator)


def test_expected_failed_checks_are_of_what_the_checks_find():
    def reasons(estimator):
        return {*expected_failed_checks(estimator).values()}

    assert reasons(OrtSGDRegressor(dtype="float64")) == reasons(LinearRegression()) == set()
    assert reasons(OrtSGDClassifier(dtype="float64", batch_size=100)) == set()
    (of_batches,) = reasons(OrtSGDClassifier(dtype="float64", batch_size=5))
    (of_huber,) = reasons(OrtSGDRegressor(dtype="float64", loss="huber"))
    (of_lbfgs,) = reasons(OrtSGDClassifier(dtype="float64"))
    assert "L-BFGS" in of_lbfgs
    (of_adam,) = reasons(OrtSGDRegressor(dtype="float64", optimizer="adam"))
    (of_decay,) = reasons(OrtSGDRegressor(MLPRegressor((10,)), dtype="float64"))
    assert "decay" in of_decay
    of_pipelines = reasons(OrtSGDClassifier(make_pipeline(StandardScaler(), LogisticRegression())))
    assert [
        text for text in (of_batches, of_huber, of_adam, *of_pipelines) if "float32" in text
    ] == []
    assert (
        "mini-batches" in of_batches
        and "Adam" in of_adam
        and all("Pipeline" in text for text in of_pipelines)
        and "quartiles" in of_huber
    )
