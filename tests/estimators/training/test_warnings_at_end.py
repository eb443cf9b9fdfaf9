"""What is said of a training that ended early, or far from its optimum."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss

from skort import OrtSGDClassifier, OrtSGDRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(503, 5))
Y = X @ [0.0, 1, 2, 3, 4] + 2 + rng.normal(size=503)


@pytest.mark.parametrize("n, share", [(5003, 0.02), (5000, 0.01), (20000, 0.002)])
def test_a_rare_class_is_trained_to_its_optimum(n, share):
    """`tol` is relative: the objective is within one percent of the minimum."""
    rows = np.random.RandomState(0)
    X = rows.normal(size=(n, 10))
    score = 1.5 * X[:, 0] + X[:, 1] + 0.5 * rows.logistic(size=n)
    y = (score > np.quantile(score, 1 - share)).astype(int)

    def objective(model):
        return log_loss(y, model.predict_proba(X)) + np.sum(model.coef_**2) / 2 / n

    exact = objective(LogisticRegression(tol=1e-10, max_iter=10_000).fit(X, y))
    assert (
        objective(OrtSGDClassifier(LogisticRegression(), random_state=0).fit(X, y)) < 1.01 * exact
    )


@pytest.mark.parametrize("share", [0.02, 0.01])
def test_steps_that_end_far_above_the_optimum_of_a_rare_class_say_so(share):
    """The part of the text is a lower bound of the gap to scikit-learn's optimum."""
    rows = np.random.RandomState(0)
    X = rows.normal(size=(5000, 5))
    score = 1.5 * X[:, 0] + 0.5 * rows.logistic(size=5000)
    y = (score > np.quantile(score, 1 - share)).astype(int)

    def objective(model):
        return log_loss(y, model.predict_proba(X)) + np.sum(model.coef_**2) / 2 / 5000

    model = OrtSGDClassifier(LogisticRegression(), eta0=0.01, random_state=0)
    with pytest.warns(ConvergenceWarning, match="% above its optimum") as caught:
        model.fit(X, y)
    told = int(re.search(r"at least (\d+)% above", str(caught[0].message))[1]) / 100
    exact = objective(LogisticRegression(tol=1e-10, max_iter=10_000).fit(X, y))
    assert 0.05 < told < (objective(model) - exact) / objective(model) + 0.01


def test_steps_on_raw_columns_are_compared_with_the_best_constant():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    model = OrtSGDRegressor(optimizer="sgd", standardize=False, penalty=None, random_state=0)
    with pytest.warns(ConvergenceWarning, match="at least (.*)% above its optimum") as caught:
        model.fit(X, y)
    told = float(re.search(r"at least (.*)% above", str(caught[0].message))[1])
    ended = np.square(model.predict(X) - y).sum()
    least = np.square(LinearRegression().fit(X, y).predict(X) - y).sum()
    assert told == pytest.approx(100 * (ended - least) / ended, abs=0.5)


def test_early_stopping_of_a_linear_model_ends_where_its_score_hardly_rises():
    rows, y = load_digits(return_X_y=True)
    # These classes can be separated: the loss falls for ever.
    model = OrtSGDClassifier(early_stopping=True, random_state=0).fit(rows, y)
    longer = OrtSGDClassifier(early_stopping=True, tol=1e-6, random_state=0).fit(rows, y)
    assert model.n_iter_ < 0.75 * longer.n_iter_
    assert "did not improve by 0.001 of itself" in model.stopping_reason_
    assert model.score(rows, y) == pytest.approx(longer.score(rows, y), abs=0.01)


def test_the_last_epoch_of_early_stopping_tells_of_the_score():
    rows, y = X, Y > 2
    model = OrtSGDClassifier(early_stopping=True, max_iter=3, random_state=0)
    with pytest.warns(
        ConvergenceWarning, match="validation score was still rising, from"
    ) as caught:
        model.fit(rows, y)
    scores = model.validation_scores_
    assert f"from {scores[0]:.4g} to {max(scores):.4g} in the last 3" in str(caught[0].message)


def test_the_score_of_one_epoch_does_not_rise():
    model = OrtSGDClassifier(early_stopping=True, max_iter=1, random_state=0)
    told = r"tol=0\.001\): one epoch does not tell whether the score rises\. Increase max_iter\.$"
    with pytest.warns(ConvergenceWarning, match=told):
        model.fit(X, Y > 2)
    assert len(model.validation_scores_) == 1


def test_an_alpha_that_is_a_quantile_elsewhere_is_told():
    model = OrtSGDRegressor(loss="quantile", alpha=0.9, random_state=0)
    with pytest.warns(UserWarning, match='alpha=0.9 is the strength .* give loss="quantile" and q'):
        model.fit(X, Y)
    # Warnings are errors.
    model.set_params(quantile=0.5).fit(X, Y)
    model.set_params(quantile="auto", alpha=1e-3).fit(X, Y)
