"""What is said of a training that ended, but left a model that is of no use."""

import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(503, 5))
Y = X @ [0.0, 1, 2, 3, 4] + 2 + rng.normal(size=503)
COUNTS = rng.poisson(np.exp(0.02 * X[:, 0] + 9))
MANY = rng.normal(size=(6007, 5))


@pytest.mark.parametrize(
    "model, rows, y, loss",
    [
        # Half of the variance, of a target that the columns say nothing of.
        (OrtSGDRegressor(random_state=0), MANY, (y := rng.normal(size=6007)), y.var() / 2),
        (OrtSGDRegressor(alpha=1e6, random_state=0), X, Y, Y.var() / 2),
        (OrtSGDRegressor(random_state=0), np.ones((503, 2)), Y, Y.var() / 2),
        (
            OrtSGDClassifier(random_state=0),
            MANY,
            (MANY[:, 0] * MANY[:, 1] > 0).astype(int),
            np.log(2),
        ),
        (
            OrtSGDRegressor(loss="quantile", quantile=0.5, random_state=0),
            MANY,
            y,
            np.abs(y - np.median(y)).mean() / 2,
        ),
    ],
)
def test_a_model_that_is_not_clearly_better_than_a_constant_warns(model, rows, y, loss):
    with pytest.warns(
        ConvergenceWarning, match="not clearly better than a constant .* of the best constant"
    ) as caught:
        model.fit(rows, y)
    text = str(caught[0].message)
    assert float(text.partition("the best constant ")[2].split()[0].rstrip(".")) == pytest.approx(
        loss, rel=1e-2
    )


@pytest.mark.parametrize(
    "model, y",
    [
        (OrtSGDRegressor(random_state=0), Y),
        # A tenth of the variance, and a rare class.
        (OrtSGDRegressor(random_state=0), X[:, 0] + 3 * rng.normal(size=503)),
        (OrtSGDClassifier(max_iter=5000, random_state=0), (X[:, 0] + X[:, 1] > 2.8).astype(int)),
        # The loss of large counts is hardly below that of a constant, and the model much better.
        (OrtSGDRegressor(loss="poisson", alpha=0.0, random_state=0), COUNTS),
        # Nothing is better than the constant of one target.
        (OrtSGDRegressor(random_state=0), np.full(503, 3.0)),
        (OrtSGDRegressor(loss="huber", random_state=0), np.where(np.arange(503) == 7, 1e9, Y)),
    ],
)
def test_a_model_that_is_better_says_nothing(model, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)


def test_nothing_is_said_without_tol():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OrtSGDRegressor(tol=None, max_iter=3, random_state=0).fit(MANY, rng.normal(size=6007))


@pytest.mark.parametrize("inner", [None, MLPRegressor(hidden_layer_sizes=(5,))])
@pytest.mark.parametrize("rows, value", [([7], 1e9), ([7], -1e5), ([7, 9], 1e9)])
def test_a_y_far_from_all_others_is_told(inner, rows, value):
    y = Y.copy()
    y[rows] = value
    spread = (np.quantile(y, 0.75) - np.quantile(y, 0.25)) / 1.349
    with pytest.warns(ConvergenceWarning, match=r"y has the value .* loss=\"huber\"") as caught:
        OrtSGDRegressor(inner, random_state=0).fit(X, y)
    text = str(caught[0].message)
    assert text.startswith(
        f"y has the value {value:.4g}, which is "
        f"{abs(value - np.median(y)) / spread:.2g} times as far"
    )
    # A row without weight is no row.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = OrtSGDRegressor(inner, random_state=0)
        model.fit(X, y, sample_weight=(~np.isin(np.arange(503), rows)).astype(float))


def test_a_y_far_from_all_others_is_told_without_tol():
    y = np.where(np.arange(503) == 7, 1e9, Y)
    with pytest.warns(ConvergenceWarning, match=r"y has the value 1e\+09"):
        OrtSGDRegressor(tol=None, max_iter=3, random_state=0).fit(X, y)


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


@pytest.mark.parametrize("weight", [1e-300, 1e-30, 1e300])
@pytest.mark.parametrize("inner", [None, LinearRegression()])
def test_the_scale_of_weights_changes_nothing(inner, weight):
    model = OrtSGDRegressor(inner, random_state=0)
    expected = model.fit(X, Y).coef_
    np.testing.assert_allclose(
        model.fit(X, Y, sample_weight=np.full(503, weight)).coef_, expected, rtol=1e-6
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "parameters, weight",
    [({"alpha": 1e20}, 1.0), ({"alpha": 1e38}, 1.0), ({}, 1e-30), ({}, 1e-300)],
)
@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant prediction")
@pytest.mark.filterwarnings("ignore:The training ended near a constant prediction")
def test_the_strongest_penalty_leaves_a_constant(parameters, weight, dtype):
    model = OrtSGDRegressor(
        MLPRegressor(hidden_layer_sizes=(5,)), random_state=0, dtype=dtype, **parameters
    )
    predicted = model.fit(X, Y, sample_weight=np.full(503, weight)).predict(X)
    np.testing.assert_allclose(predicted, Y.mean(), atol=0.01 * Y.std())


def test_columns_of_y_in_units_that_are_far_apart_are_told_of_a_network():
    both = np.column_stack([Y, Y[::-1]]) / Y.std()
    inner = MLPRegressor(hidden_layer_sizes=(5,))
    model = OrtSGDRegressor(inner, random_state=0, max_iter=3, tol=None)
    far = both * [1e3, 1e-2]
    with pytest.warns(UserWarning, match=r"deviations from 0\.01 to 1e\+03: the loss of the large"):
        model.fit(X, far)

    # Warnings are errors.
    model.fit(X, both * [50.0, 1.0])
    OrtSGDRegressor(random_state=0).fit(X, far)
    scaled = TransformedTargetRegressor(inner, transformer=StandardScaler())
    cured = model.set_params(estimator=scaled).fit(X, far)
    expected = clone(cured).fit(X, both).predict(X)
    np.testing.assert_allclose(cured.predict(X) / [1e3, 1e-2], expected, rtol=1e-4, atol=1e-4)


def test_an_alpha_that_is_a_quantile_elsewhere_is_told():
    model = OrtSGDRegressor(loss="quantile", alpha=0.9, random_state=0)
    with pytest.warns(UserWarning, match='alpha=0.9 is the strength .* give loss="quantile" and q'):
        model.fit(X, Y)
    # Warnings are errors.
    model.set_params(quantile=0.5).fit(X, Y)
    model.set_params(quantile="auto", alpha=1e-3).fit(X, Y)


def test_steps_on_raw_columns_are_compared_with_the_best_constant():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    model = OrtSGDRegressor(optimizer="sgd", standardize=False, penalty=None, random_state=0)
    with pytest.warns(ConvergenceWarning, match="at least (.*)% above its optimum") as caught:
        model.fit(X, y)
    told = float(re.search(r"at least (.*)% above", str(caught[0].message))[1])
    ended = np.square(model.predict(X) - y).sum()
    least = np.square(LinearRegression().fit(X, y).predict(X) - y).sum()
    assert told == pytest.approx(100 * (ended - least) / ended, abs=0.5)


@pytest.mark.parametrize("share", [0.01, 0.002])
def test_a_hinge_of_a_rare_class_that_gains_nothing_says_what_does(share):
    random = np.random.default_rng(0)
    rows = random.normal(size=(5000, 10))
    y = (random.random(5000) < share).astype(int)
    with pytest.warns(ConvergenceWarning, match="clearly better than a constant") as caught:
        model = OrtSGDClassifier(loss="hinge", random_state=0).fit(rows, y)
    assert not model.predict(rows).any()
    text = str(caught[0].message)
    # A constant -1 misses each row of the class by 2.
    assert f"that of the best constant {2 * y.mean():.4g}." in text
    assert 'class_weight="balanced"' in text
    assert OrtSGDClassifier(loss="hinge", class_weight="balanced").fit(rows, y).predict(rows).any()


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
