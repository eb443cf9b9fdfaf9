"""Scores that are computed from partitions, against those of scikit-learn on all rows."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import get_scorer

pytest.importorskip("distributed")

from skort.dask.scores import SCORES, merged_tallies, tally

CUTS = (slice(0, 0), slice(0, 1), slice(1, 60), slice(60, 100))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SCORES)
def test_scores(name, weighted, rng):
    X = rng.normal(size=(100, 3))
    weights = rng.uniform(0, 2, 100) if weighted else None
    if name in ("accuracy", "neg_log_loss"):
        y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + rng.normal(size=100), [-0.5, 0.5])]
        model = LogisticRegression().fit(X, y)
    else:
        y = np.column_stack([X[:, 0] + rng.normal(size=100), 100 + X[:, 1] + rng.normal(size=100)])
        model = LinearRegression().fit(X, y)
    tallies = [
        tally(model, X[cut], y[cut], weights[cut] if weighted else None, name) for cut in CUTS
    ]
    expected = get_scorer(name)(model, X, y, sample_weight=weights)
    assert merged_tallies(tallies).score(name) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("y", [[2.0, 2.0], [2.0, 2.0001]])
def test_r2_without_spread(y):
    X = np.zeros((2, 1))
    model = LinearRegression().fit(X, [2.0, 2.0])
    assert tally(model, X, np.array(y), None, "r2").score("r2") == pytest.approx(model.score(X, y))


def test_r2_of_one_value_that_is_not_predicted():
    X = np.zeros((2, 1))
    model = LinearRegression().fit(X, [1.0, 1.0])
    assert (
        tally(model, X, np.array([2.0, 2.0]), None, "r2").score("r2")
        == model.score(X, [2.0, 2.0])
        == 0
    )


def test_no_rows():
    assert merged_tallies([None, None]) is None
