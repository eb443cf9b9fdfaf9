"""What is said of a training that ended, but left a model that is of no use."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor

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
