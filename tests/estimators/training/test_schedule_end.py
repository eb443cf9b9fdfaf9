"""A schedule whose rate is zero for good ends a fit, and a stream that goes on warns."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier

from skort import OrtSGDClassifier
from skort.model_selection import OrtGridSearchCV
from skort.schedules import Cosine, Warmup

X, y = load_breast_cancer(return_X_y=True)
X, y = X[:426], y[:426]
NETWORK = MLPClassifier(hidden_layer_sizes=(5,))
EARLY = "reached zero after 4 of 20 epochs: the schedule ends with update 10. .* n_updates=60 lets"


@pytest.mark.parametrize("schedule", [Cosine(10, 0.01), Warmup(Cosine(10, 0.01), 2)])
def test_a_fit_ends_with_the_epoch_in_which_its_rate_reaches_zero(schedule):
    model = OrtSGDClassifier(NETWORK, learning_rate=schedule, max_iter=20, random_state=0)
    with pytest.warns(ConvergenceWarning, match=EARLY):
        model.fit(X, y)
    # Three batches an epoch: the fourth has the updates 10 to 12.
    assert (model.n_iter_, model.t_) == (4, 12)
    assert model.stopping_reason_ == "The learning rate reached zero after 4 epochs, as planned."
    np.testing.assert_allclose(model.history_["eta"], [schedule(t) for t in (3, 6, 9, 12)])


def test_a_schedule_of_half_of_the_epochs_says_nothing():
    schedule = Cosine(30, 0.01)
    model = OrtSGDClassifier(NETWORK, learning_rate=schedule, max_iter=20, random_state=0)
    assert model.fit(X, y).n_iter_ == 10


def test_a_linear_model_has_no_planned_epochs():
    model = OrtSGDClassifier(learning_rate=Cosine(60, 0.1), random_state=0)
    with warnings.catch_warnings():
        # Steps may end above the optimum.
        warnings.filterwarnings("ignore", "The training ended at least", ConvergenceWarning)
        assert model.fit(X, y).n_iter_ == 20


def test_fits_of_a_search_end_as_single_ones():
    model = OrtSGDClassifier(NETWORK, learning_rate=Cosine(9, 0.01), max_iter=8, random_state=0)
    grid = {"alpha": [1e-4, 1e-2]}
    # Two batches an epoch.
    rows = [(np.arange(26, 426), np.arange(26))]
    search = OrtGridSearchCV(model, grid, cv=rows, scoring="neg_log_loss", refit=False)
    search = search.fit(X, y)
    assert search.n_fits_together_ == 2

    for alpha, score in zip(grid["alpha"], search.cv_results_["mean_test_score"], strict=True):
        alone = clone(model).set_params(alpha=alpha).fit(X[26:], y[26:])
        assert alone.n_iter_ == 5
        expected = -log_loss(y[:26], alone.predict_proba(X[:26]))
        assert score == pytest.approx(expected, rel=1e-4)


def test_a_stream_whose_rate_is_zero_warns():
    model = OrtSGDClassifier(NETWORK, learning_rate=Cosine(3, 0.01), random_state=0)
    model.partial_fit(X[:48], y[:48], classes=[0, 1])
    before = model.weights_
    with pytest.warns(ConvergenceWarning, match="ended with update 3, and later ones, up to 6"):
        model.partial_fit(X[48:96], y[48:96])
    for name, array in model.weights_.items():
        np.testing.assert_array_equal(array, before[name])
