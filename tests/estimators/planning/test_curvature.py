"""
The first learning rate of a loss that does not say its curvature comes
from the loss on the targets.
"""

import numpy as np
import pytest
from own_losses import FOURTH, GAUSSIAN

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.planning.rate import estimated_curvature
from skort.objective import AbsoluteError, Hinge, Loss, SquaredError, WeightedSum
from skort.objective.combined import OutputLosses


def times_square(factor):
    return Loss(f"""\
square (score, target) => (loss) {{
    factor = Constant <value = float {{{factor}}}> ()
    residual = Sub (score, target)
    square = Mul (residual, residual)
    loss = Mul (factor, square)
}}""")


FLAT = Loss("""\
flat (score, target) => (loss) {
    zero = Constant <value = float {0.0}> ()
    sum = Add (score, target)
    loss = Mul (zero, sum)
}""")
LOGISTIC = Loss("""\
logistic (score, target) => (loss) {
    softplus = Softplus (score)
    linear = Mul (target, score)
    loss = Sub (softplus, linear)
}""")


@pytest.fixture
def regression(rng):
    X = rng.normal(size=(100, 4))
    return X, X @ [1.0, -2.0, 0.5, 3.0] + 2 + 0.1 * rng.normal(size=100)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("start", [0.0, 7.0])
def test_of_a_square_it_is_exact(n_outputs, start):
    mean, deviation = np.full(n_outputs, 5.0), np.full(n_outputs, 2.0)
    found = estimated_curvature(
        times_square(50.0), n_outputs, (np.full(n_outputs, start), mean, deviation)
    )
    assert found == pytest.approx(100.0, rel=1e-4)


def test_it_follows_the_distance_from_the_targets():
    # 12 r^2 + 2 h^2 of the fourth power, with the step h = sqrt(distance^2 + 1) and r at
    # most distance + 1.
    of_fourth = [
        estimated_curvature(Loss(FOURTH), 1, (np.zeros(1), np.full(1, m), np.ones(1)))
        for m in (0.0, 3.0)
    ]
    assert of_fourth == pytest.approx([12 + 2, 12 * 16 + 2 * 10], rel=1e-4)
    assert estimated_curvature(
        times_square(1.0), 1, (np.ones(1), np.ones(1), np.zeros(1))
    ) == pytest.approx(2.0)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_of_classes_the_scores_are_around_zero(n_outputs):
    assert estimated_curvature(LOGISTIC, n_outputs) == pytest.approx(
        2 * np.log(np.cosh(0.5)), rel=1e-4
    )
    assert estimated_curvature(Hinge(), n_outputs) == pytest.approx(1.0)


@pytest.mark.parametrize("standardize", [False, "auto"])
def test_a_hundredfold_loss_has_the_same_steps(standardize, regression):
    X, y = regression
    options = {
        "optimizer": "sgd",
        "standardize": standardize,
        "random_state": 0,
        "tol": 1e-7,
        "dtype": "float64",
    }
    one, hundred = (
        OrtSGDRegressor(loss=times_square(f), alpha=0, **options).fit(X, y) for f in (0.5, 50.0)
    )
    # In units of y the rate is a hundredth; a standardized y has the loss divided by its unit.
    ratio = one.history_["eta"][0] / hundred.history_["eta"][0]
    assert ratio == pytest.approx(100 if standardize is False else 1, rel=1e-3)
    named = OrtSGDRegressor(loss="squared_error", alpha=0, **options).fit(X, y)
    assert named.history_["eta"][0] == pytest.approx(one.history_["eta"][0], rel=1e-3)
    for model in (one, hundred):
        np.testing.assert_allclose(model.coef_, named.coef_, rtol=1e-4)
        np.testing.assert_allclose(model.intercept_, named.intercept_, rtol=1e-4)


def test_the_rate_of_several_outputs_is_that_of_their_mean(regression):
    X, y = regression
    Y = np.column_stack([y, -y])
    options = {
        "optimizer": "sgd",
        "standardize": False,
        "random_state": 0,
        "max_iter": 2,
        "tol": None,
    }
    own, named = (
        OrtSGDRegressor(loss=loss, **options).fit(X, Y)
        for loss in (times_square(0.5), SquaredError())
    )
    assert own.history_["eta"][0] == pytest.approx(named.history_["eta"][0], rel=1e-3)


def test_a_classifier_with_a_loss_of_ones_own_has_the_rate_of_the_named_one(regression):
    X, y = regression
    options = {"optimizer": "sgd", "alpha": 0, "random_state": 0, "max_iter": 2, "tol": None}
    own, named = (
        OrtSGDClassifier(loss=loss, **options).fit(X, y > 2) for loss in (LOGISTIC, "log_loss")
    )
    # The secant of the logistic loss over a step of one is a little flatter than its tangent.
    assert own.history_["eta"][0] == pytest.approx(
        named.history_["eta"][0] * 0.25 / 0.2402, rel=1e-3
    )


def test_a_fit_that_begins_at_a_model_looks_at_its_scores(regression):
    X, y = regression
    options = {"standardize": False, "random_state": 0, "max_iter": 1, "tol": None}
    far = OrtSGDRegressor(loss=Loss(FOURTH), **options).fit(X, y + 100)
    near = OrtSGDRegressor(loss=Loss(FOURTH), **options).fit(
        X, y + 100, coef_init=np.zeros(4), intercept_init=100.0
    )
    assert near.history_["eta"][0] > 100 * far.history_["eta"][0]


def test_a_loss_without_any_is_refused(regression):
    X, y = regression
    message = "has a gradient of zero at all scores, so that nothing is trained"
    given = OrtSGDRegressor(loss=FLAT, eta0=0.1, max_iter=1, tol=None, standardize=False)
    with pytest.warns(UserWarning, match="has a gradient of zero at all scores"):
        with pytest.raises(ValueError, match=message):
            OrtSGDRegressor(loss=FLAT).fit(X, y)
        given.fit(X, y)


def test_a_sum_has_what_its_parts_have():
    known, unknown = (
        [(0.5, SquaredError()), (2.0, AbsoluteError())],
        [(1.0, SquaredError()), (1.0, Loss(FOURTH))],
    )
    assert WeightedSum(known).typical_curvature == 1.0 and WeightedSum(known).curvature(1) is None
    assert WeightedSum(unknown).typical_curvature is None
    parts = OutputLosses({"a": SquaredError(), "b": times_square(2.0)}, {"a": 1, "b": 2})
    start = np.zeros(3), np.zeros(3), np.ones(3)
    assert estimated_curvature(parts, 3, start) == pytest.approx(2.0, rel=1e-4)


@pytest.mark.parametrize("size", [1e-2, 1.0, 1e5])
def test_that_of_a_mean_and_a_logarithm_has_no_unit(size):
    mean = np.full(2, 0.4 * size)
    start = np.array([0.4 * size, np.log(size)]), mean, np.full(2, size)
    found = estimated_curvature(Loss(GAUSSIAN), 2, start, np.array([size, 1.0]))
    # That of the logarithm: half of exp(-2 s) between -1 and 1.
    assert found == pytest.approx(np.cosh(2) - 1, rel=1e-3)


@pytest.mark.parametrize("size", [1e-2, 1.0, 1e5])
def test_a_stream_of_a_mean_and_a_logarithm_learns_in_any_unit(size):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(2000, 2))
    mean, logarithm = size * (2 * X[:, 0] - X[:, 1] + 1), np.log(size) + 0.4 * X[:, 0] - 0.5
    y = mean + np.exp(logarithm) * rng.normal(size=2000)
    model = OrtSGDRegressor(loss=Loss(GAUSSIAN), alpha=0, random_state=0)
    for first in range(0, 2000, 100):
        rows = slice(first, first + 100)
        model.partial_fit(X[rows], np.column_stack([y, y])[rows])
    found, true = (
        (0.5 * ((a - y) * np.exp(-b)) ** 2 + b).mean()
        for a, b in (model.predict(X).T, (mean, logarithm))
    )
    assert found < true + 0.05
