"""Warnings of a fitted model and its rows: what they say, and where they are not given."""

import re
import warnings

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.planning.fine_tuning import Knowledge
from skort.estimators.training.warnings_at_start import (
    warn_of_absent,
    warn_of_far_start,
    warn_of_fitted,
    warn_of_one_target,
)


@pytest.fixture(scope="module")
def network():
    """A network that has learned a sum of two columns."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = MLPRegressor(hidden_layer_sizes=8, solver="lbfgs", max_iter=200, random_state=0)
    return model.fit(X, X.sum(axis=1))


def test_a_fitted_model_that_is_worse_than_a_constant_has_both_losses():
    with pytest.warns(UserWarning, match=r"its loss is 2\.5, that of the best constant 0\.125\. "):
        warn_of_fitted(Knowledge(loss=2.5, share=20.0, constant=0.125, is_worse=True))


def test_a_network_that_fits_the_opposite_is_worse_than_a_constant(network):
    X = np.random.default_rng(1).normal(size=(100, 2))
    y = -X.sum(axis=1)
    model = OrtSGDRegressor(FrozenEstimator(network), early_stopping=False, random_state=0)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        model.fit(X, y)

    told = next(str(each.message) for each in given if "worse than" in str(each.message))
    losses = re.search(r"its loss is (\S+), that of the best constant (\S+)\. Training", told)
    assert float(losses[1]) == pytest.approx(np.mean((network.predict(X) - y) ** 2) / 2, rel=1e-3)
    assert float(losses[2]) == pytest.approx(np.var(y) / 2, rel=1e-3)


@pytest.mark.parametrize("share, is_far", [(100.0, False), (100.5, True), (640.0, True)])
def test_first_weights_are_for_other_units_above_100_times_the_loss_of_a_constant(share, is_far):
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        warn_of_far_start(share)

    start = f"The model in estimator begins at {share:.3g} times the loss of a constant prediction"
    assert [str(each.message).startswith(start) for each in given] == [True] * is_far


@pytest.mark.parametrize(
    "labels, words",
    [
        (["b"], "no row of the class 'b', which the fitted model knows.* forgets it. Give some"),
        ([1, 3], "no row of the classes 1, 3, which the fitted model knows.* forgets them. Give"),
    ],
    ids=["one", "two"],
)
def test_absent_classes_are_named(labels, words):
    with pytest.warns(UserWarning, match=words):
        warn_of_absent(labels)


def test_classes_that_are_all_there_give_no_warning():
    warn_of_absent([])


def test_the_first_call_of_a_stream_names_the_class_that_40_rows_lack():
    X = np.array([[-1.0], [1.0]] * 20)
    known = SGDClassifier(random_state=0).fit(X, [0, 1] * 20)
    model = OrtSGDClassifier(FrozenEstimator(known), loss="log_loss", random_state=0)
    with pytest.warns(UserWarning, match="y has no row of the class 1, which"):
        model.partial_fit(X, np.zeros(40, int))
    # Fewer rows may lack a class by chance.
    OrtSGDClassifier(FrozenEstimator(known), random_state=0).partial_fit(X[:39], np.zeros(39, int))


def test_one_target_is_told():
    with pytest.warns(UserWarning, match="^y is the same in all rows: a fitted network"):
        warn_of_one_target()


def test_a_network_is_told_of_one_target_but_not_of_one_row(network):
    X = np.zeros((30, 2)) + np.arange(30)[:, None] / 30
    model = OrtSGDRegressor(
        FrozenEstimator(network), early_stopping=False, max_iter=1, tol=None, random_state=0
    )
    with pytest.warns(UserWarning, match="y is the same in all rows"):
        model.fit(X, np.ones(30))
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        model.fit(X[:1], np.ones(1))
    assert not any("the same in all rows" in str(each.message) for each in given)
