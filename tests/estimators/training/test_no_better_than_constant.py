"""What is said of a training that ended, but left a model that is of no use."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import HuberRegressor, LinearRegression, SGDRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline

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


# Between two quantiles is a constant that is better than those and than the mean. With SGDRegressor,
# most rows gain a little, so that it is not by chance.
@pytest.mark.parametrize("inside", [HuberRegressor(alpha=1.0), SGDRegressor(loss="huber")])
def test_a_robust_loss_with_a_strong_penalty_warns(inside):
    rng = np.random.RandomState(1)
    words = [[("red", "blue")[i % 2], rng.choice(["car", "house", "boat"])] for i in range(400)]
    prices = np.array([("red" in each) + 2.0 * ("car" in each) for each in words])
    prices = 1e5 + 3e4 * prices + 1e4 * rng.normal(size=400)
    texts = [" ".join(each) for each in words]
    model = OrtSGDRegressor(make_pipeline(TfidfVectorizer(), inside), random_state=0)
    with pytest.warns(ConvergenceWarning, match="constant prediction.* whether alpha is too large"):
        model.fit(texts, prices)
    assert np.std(model.predict(texts)) < 0.01 * np.std(prices)
    # Warnings are errors.
    weaker = clone(inside).set_params(alpha=0.0)
    model.set_params(estimator=make_pipeline(TfidfVectorizer(), weaker)).fit(texts, prices)
    assert model.score(texts, prices) > 0.8


@pytest.mark.parametrize("loss", ["absolute_error", "huber"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_column_that_tells_much_of_few_rows_does_not_warn(loss, seed):
    rng = np.random.RandomState(seed)
    rare = rng.uniform(size=4000) < 0.005
    y = 20 * rare + rng.normal(size=4000)
    # Warnings are errors.
    model = OrtSGDRegressor(loss=loss, random_state=0).fit(rare[:, None], y)
    assert model.coef_ == pytest.approx(20, abs=1)
    assert model.score(rare[:, None], y) > 0.5


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("mean", [0.0, 50.0])
def test_a_loss_that_ignores_all_differences_of_y_is_told(loss, mean):
    near = mean + 0.01 * np.sin(X[:, 0])
    told = (
        "its loss is 0, that of the best constant 0. All y are so near .*: lower epsilon, or mult"
    )
    with pytest.warns(ConvergenceWarning, match=told):
        OrtSGDRegressor(loss=loss, random_state=0).fit(X, near)
    # Warnings are errors.
    cured = OrtSGDRegressor(loss=loss, epsilon=1e-4, random_state=0).fit(X, near)
    assert cured.score(X, near) > 0.8


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_the_losses_of_the_warning_are_those_of_all_rows(loss):
    # Every second row is looked at first: among these, the class is rarer.
    y = (np.arange(6007) < 1200).astype(int)
    y[400::2] = 0
    with pytest.warns(ConvergenceWarning, match="not clearly better") as caught:
        model = OrtSGDClassifier(loss=loss, random_state=0).fit(np.zeros((6007, 2)), y)
    share = y.mean()
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    constant = 2 * share if loss == "hinge" else entropy
    ours = model.loss_ if loss == "log_loss" else 2 * share
    assert f"its loss is {ours:.4g}, that of the best constant {constant:.4g}." in str(caught[0])


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


DECAY = 'the weight decay is too large, which optimizer="adam" does not have'


@pytest.mark.parametrize(
    "optimizer, causes",
    [("auto", [DECAY, "alpha is too large"]), ("adam", ["alpha is too large"])],
)
def test_a_useless_network_names_the_decay_that_skort_chose(optimizer, causes):
    rows, y = make_classification(
        1500, 10, n_informative=4, n_redundant=2, flip_y=0.05, random_state=0
    )
    few = np.random.RandomState(3).permutation(1500)[:40]
    network = MLPClassifier(hidden_layer_sizes=(30, 15))
    model = OrtSGDClassifier(network, penalty="l2", alpha=0.1, optimizer=optimizer, random_state=0)
    with pytest.warns(ConvergenceWarning, match="not clearly better than a constant") as caught:
        model.fit(rows[few], y[few])

    always = ["the rows of X and y belong together", "the columns say anything about y"]
    *others, last = always + causes
    whole = f"Check whether {', whether '.join(others)}, and whether {last}."
    assert str(caught[0].message).endswith(whole)
