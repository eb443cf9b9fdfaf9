"""Sums of losses against the sums of their formulas."""

import numpy as np
import pytest
from own_losses import FOURTH
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.objective import (
    AbsoluteError,
    ConcomitantHuber,
    ElasticLoss,
    GammaLoss,
    Hinge,
    Huber,
    LogLoss,
    Loss,
    PoissonLoss,
    Quantile,
    SquaredError,
    SquaredHinge,
    WeightedSum,
)

PLAIN = {"learning_rate": "constant", "tol": None, "random_state": 0}


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_value_and_gradient_are_the_sums(n_outputs, dtype, rtol, rng, run_function):
    score, target = rng.normal(size=(2, 9, n_outputs)) * 2
    by_column = np.arange(1.0, n_outputs + 1)
    parts = [
        (0.4, SquaredError()),
        (by_column, Huber(0.5)),
        (2, Quantile(0.25)),
        (0, AbsoluteError()),
    ]
    loss = WeightedSum(parts)
    for method in ("value_function", "gradient_function"):
        expected = sum(
            np.asarray(w) * run_function(getattr(part, method)(n_outputs), "float64", score, target)
            for w, part in parts
        )
        given = run_function(getattr(loss, method)(n_outputs), dtype, score, target)
        np.testing.assert_allclose(
            given, expected, rtol=rtol, atol=1e-6 if dtype == "float32" else 1e-14
        )
    assert loss.weight_scale(n_outputs) == 1 / n_outputs
    assert loss.curvature(n_outputs) is None
    assert WeightedSum(parts[:2]).curvature(n_outputs) == pytest.approx(0.4 + n_outputs)


def test_losses_of_one_and_of_several_columns(rng, run_function):
    score, target = rng.normal(size=(8, 3)), np.eye(3)[rng.integers(3, size=8)]
    parts = [(0.5, LogLoss()), (2.0, Hinge())]
    for loss in (WeightedSum(parts), WeightedSum(parts[::-1])):
        scale = loss.weight_scale(3)
        for method, axis in (("value_function", (0, 1)), ("gradient_function", ())):
            expected = sum(
                w
                * part.weight_scale(3)
                * run_function(getattr(part, method)(3), "float64", score, target).sum(axis=axis)
                for w, part in parts
            )
            given = scale * run_function(getattr(loss, method)(3), "float64", score, target).sum(
                axis=axis
            )
            np.testing.assert_allclose(given, expected, rtol=1e-12)
    with pytest.raises(
        ValueError,
        match=r"weights of LogLoss have shape \(3,\), but it has one value for all columns",
    ):
        WeightedSum([([1.0, 1.0, 2.0], LogLoss()), (1, Hinge())]).value_function(3)
    with pytest.raises(
        ValueError, match=r"weights of Huber have shape \(2,\), but it has 3 columns"
    ):
        WeightedSum([([1.0, 2.0], Huber())]).value_function(3)


@pytest.mark.parametrize("scale", [1e-3, 7.0, 4e4])
@pytest.mark.parametrize(
    "parts",
    [
        [(0.4, SquaredError()), (0.6, Huber(0.3))],
        [(3.0, AbsoluteError()), ([1.0, 5.0], ElasticLoss(0.2, 0.1))],
        [(2.0, Huber(1e-3))],
    ],
)
def test_in_units_is_the_same_loss(parts, scale, rng, run_function):
    loss, (score, target) = WeightedSum(parts), rng.normal(size=(2, 9, 2))
    inner, unit, offset, weight, _ = loss.in_units(scale)
    value = run_function(loss.value_function(2), "float64", scale * score, scale * target)
    given = unit * weight * run_function(inner.value_function(2), "float64", score, target) + offset
    np.testing.assert_allclose(given, value, rtol=1e-10)
    # Weights of about one, so that a learning rate means the same as for other losses.
    assert sum(np.max(w) for w, _ in inner.losses) == pytest.approx(1.0)


def test_losses_with_a_link_keep_their_value_over_all_rows(rng, run_function):
    loss = WeightedSum([(0.5, PoissonLoss()), (2.0, PoissonLoss())])
    score, target = rng.normal(size=(9, 1)), rng.uniform(1, 5, size=(9, 1))
    scale = target.mean()
    inner, unit, offset, weight, by_mean = loss.in_units(scale)
    value = run_function(loss.value_function(1), "float64", score, target).mean()
    moved = run_function(
        inner.value_function(1), "float64", score - np.log(scale), target / scale
    ).mean()
    assert unit * weight * moved + offset + by_mean == pytest.approx(value)
    assert not WeightedSum([([1.0, 2.0], PoissonLoss())]).has_units
    assert not WeightedSum([(1.0, SquaredError()), (1.0, Loss(FOURTH))]).has_units


def test_parameters_have_the_names_of_their_parts():
    loss = WeightedSum([(0.4, SquaredError()), (0.3, Quantile(0.1)), (0.3, Quantile(0.9))])
    params = loss.get_params()
    assert list(params) == [
        *("losses", "squarederror", "squarederror_weight"),
        *("quantile-1", "quantile-1_weight", "quantile-1__quantile"),
        *("quantile-2", "quantile-2_weight", "quantile-2__quantile"),
    ]
    assert params["quantile-2__quantile"] == 0.9 and params["quantile-1_weight"] == 0.3
    copied = clone(loss).set_params(
        **{"quantile-1__quantile": 0.2, "squarederror_weight": 1, "quantile-2": Huber(2)}
    )
    assert [weight for weight, _ in copied.losses] == [1, 0.3, 0.3]
    assert (
        repr([loss for _, loss in copied.losses])
        == "[SquaredError(), Quantile(quantile=0.2), Huber(epsilon=2)]"
    )
    assert loss.get_params() == params and loss.losses[1][1].quantile == 0.1
    with pytest.raises(
        ValueError,
        match=r"Invalid parameter 'huber' .* losses, squarederror, squarederror_weight, quan",
    ):
        loss.set_params(huber=Huber())
    with pytest.raises(
        ValueError,
        match=r"Invalid parameter 'huber' for WeightedSum. Valid parameters are: losses\.",
    ):
        WeightedSum([SquaredError()]).set_params(huber=Huber())
    with pytest.raises(ValueError, match="Invalid parameter 'epsilon' for estimator Quantile"):
        loss.set_params(**{"quantile-1__epsilon": 1})


@pytest.mark.parametrize(
    "losses, message",
    [
        ([], r"takes a list of \(weight, loss\), got \[\]"),
        ([SquaredError()], r"takes a list of \(weight, loss\), got \[SquaredError\(\)\]"),
        ([(-1, SquaredError())], "must be numbers >= 0, got -1"),
        ([(np.inf, SquaredError())], "must be numbers >= 0, got inf"),
        ([(1, SquaredError()), (1,)], r"takes a list of \(weight, loss\), got"),
        ([(1, SquaredError()), (1, SquaredError(), 2)], r"takes a list of \(weight, loss\), got"),
        ([("1", SquaredError())], "must be numbers >= 0, got '1'"),
        ([(0, SquaredError())], "all weights of the WeightedSum are zero"),
        ([(1, "huber")], r"takes instances of losses, such as Huber\(\), got 'huber'"),
        ([(1, Huber)], "takes instances of losses"),
        ([(1, Huber(-1))], "'epsilon' parameter of Huber"),
        (
            [(1, ConcomitantHuber())],
            "cannot hold a loss with weights of its own, got ConcomitantHuber",
        ),
        (
            [(1, SquaredError()), (1, Hinge())],
            "got SquaredError of a regressor, Hinge of a classifier",
        ),
        (
            [(1, SquaredError()), (1, GammaLoss())],
            "with the same prediction for a score, got SquaredError, GammaLoss",
        ),
    ],
)
def test_bad_parts_are_named(losses, message, rng):
    with pytest.raises(ValueError, match=message):
        OrtSGDRegressor(loss=WeightedSum(losses), eta0=0.1).fit(
            rng.normal(size=(9, 1)), rng.normal(size=9)
        )


@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_two_squared_errors_are_the_steps_of_one(solver, unit, rng):
    X, Y = rng.normal(size=(50, 3)) * 4 + 1, unit * rng.normal(size=(50, 2))
    options = PLAIN | {"solver": solver, "eta0": 0.1, "max_iter": 5}
    one = OrtSGDRegressor(Ridge(1.0), **options).fit(X, Y)
    two = (
        clone(one)
        .set_params(loss=WeightedSum([(0.25, SquaredError()), (0.75, SquaredError())]))
        .fit(X, Y)
    )
    np.testing.assert_allclose(two.coef_, one.coef_, rtol=1e-5)
    np.testing.assert_allclose(two.loss_curve_, one.loss_curve_, rtol=1e-5)
    auto = [clone(model).set_params(eta0="auto").fit(X, Y).eta0_ for model in (one, two)]
    assert auto[0] == pytest.approx(auto[1])


def test_columns_have_weights_of_their_own(rng):
    # The coefficients of a column are those of it alone; the penalty counts as much less as its
    # loss counts more.
    X, Y = rng.normal(size=(80, 2)), rng.normal(size=(80, 2))
    loss = WeightedSum([([1.0, 3.0], SquaredError())])
    options = PLAIN | {
        "eta0": 0.1,
        "batch_size": 80,
        "max_iter": 2000,
        "dtype": "float64",
        "penalty": "l2",
        "alpha": 0.5,
    }
    model = OrtSGDRegressor(LinearRegression(), loss=loss, **options).fit(X, Y)
    # Mean over two columns: 1/2 w_k loss_k + alpha/2 |coef|^2.
    for k, weight in enumerate([1.0, 3.0]):
        exact = Ridge(alpha=0.5 * 80 * 2 / weight).fit(X, Y[:, k])
        np.testing.assert_allclose(model.coef_[k], exact.coef_, rtol=1e-5)


def test_a_loss_of_the_users_in_a_sum(solver, rng):
    X, y = rng.normal(size=(60, 2)), 5 * rng.normal(size=60)
    loss = WeightedSum([(0.5, SquaredError()), (0.01, Loss(FOURTH))])
    options = PLAIN | {"solver": solver, "eta0": 0.05, "max_iter": 400, "batch_size": 60}
    model = OrtSGDRegressor(LinearRegression(), loss=loss, **options).fit(X, y)
    residual = model.predict(X) - y
    gradient = 0.5 * residual + 0.04 * residual**3
    np.testing.assert_allclose(np.column_stack([X, np.ones(60)]).T @ gradient / 60, 0, atol=2e-3)
    assert model.loss_ == pytest.approx((0.25 * residual**2 + 0.01 * residual**4).mean(), rel=1e-4)


def test_weights_of_a_sum_are_searched(rng):
    X = rng.normal(size=(90, 2))
    y = X @ [1.0, 2.0]
    y[::9] += 30
    model = OrtSGDRegressor(
        loss=WeightedSum([(1.0, SquaredError()), (0.0, Huber())]),
        eta0=0.3,
        tol=1e-4,
        random_state=0,
    )
    grid = [
        {"loss__squarederror_weight": [1.0]},
        {"loss__squarederror_weight": [0.0], "loss__huber_weight": [1.0]},
    ]
    search = GridSearchCV(model, grid, scoring="neg_median_absolute_error", cv=3).fit(X, y)
    assert search.best_params_ == {"loss__squarederror_weight": 0.0, "loss__huber_weight": 1.0}


def test_probabilities_where_all_parts_give_the_same_ones(rng):
    X = rng.normal(size=(90, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    options = PLAIN | {"eta0": 0.3, "max_iter": 50, "class_weight": {0: 1.0, 1: 2.0, 2: 1.0}}
    both = OrtSGDClassifier(
        loss=WeightedSum([(1, LogLoss()), (0.1, SquaredHinge())]), **options
    ).fit(X, y)
    assert both.score(X, y) > 0.75 and not hasattr(both, "predict_proba")
    ovr = OrtSGDClassifier(loss=WeightedSum([(1, Hinge()), (0.1, SquaredHinge())]), **options).fit(
        X, y
    )
    assert ovr.score(X, y) > 0.75 and ovr.loss.one_against_rest
    log = OrtSGDClassifier(loss=WeightedSum([(2, LogLoss())]), **options).fit(X, y)
    np.testing.assert_allclose(log.predict_proba(X).sum(axis=1), 1, rtol=1e-5)
