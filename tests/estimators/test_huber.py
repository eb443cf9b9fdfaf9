"""
HuberRegressor inside: its scale is trained with its weights,
and is part of all that a training goes on from.
"""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import HuberRegressor, LinearRegression, RANSACRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDRegressor
from skort.callbacks import Checkpoint
from skort.objective import ConcomitantHuber

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4)) * [1.0, 2.0, 0.7, 1.0]
Y = X @ [1.0, -0.5, 0.0, 0.3] + 0.5 + 0.5 * RNG.standard_t(2, size=150)
WEIGHT = RNG.uniform(0.5, 2.0, 150)
SCALE = "skort_loss/scale"
RATE = {"learning_rate": "adaptive", "eta0": 0.1, "tol": 1e-12, "random_state": 0}
LONG = {"dtype": "float64", "batch_size": 150, "max_iter": 30_000, **RATE}
SHORT = {
    "learning_rate": "constant",
    "eta0": 0.05,
    "tol": None,
    "batch_size": 50,
    "max_iter": 6,
    "random_state": 0,
}


def reference(**parameters):
    return HuberRegressor(**parameters, tol=1e-10, max_iter=10_000)


def objective(model, y, weight, inner):
    """Return what scikit-learn minimises."""
    z = (y - model.predict(X)) / model.scale_
    huber = np.where(
        np.abs(z) <= inner.epsilon, z**2, 2 * inner.epsilon * np.abs(z) - inner.epsilon**2
    )
    return (
        weight * (model.scale_ + model.scale_ * huber)
    ).sum() + inner.alpha * model.coef_ @ model.coef_


@pytest.mark.filterwarnings(
    "ignore:estimator. These parameters of HuberRegressor are not used. max_iter"
)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
@pytest.mark.parametrize(
    "epsilon, alpha, unit", [(1.35, 1e-4, 1.0), (2.0, 30.0, 1.0), (1.1, 5.0, 0.01)]
)
def test_a_long_fit_ends_at_the_optimum_of_scikit_learn(epsilon, alpha, unit, weight):
    inner, y = reference(epsilon=epsilon, alpha=alpha), unit * Y
    theirs = clone(inner).fit(X, y, sample_weight=weight)
    ours = OrtSGDRegressor(inner, **LONG).fit(X, y, sample_weight=weight)
    size = np.std(y) / X.std(axis=0)
    assert np.max(np.abs(ours.coef_ - theirs.coef_) / size) < 1e-3
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-3 * np.std(y))
    assert isinstance(ours.scale_, float)
    assert ours.scale_ == pytest.approx(theirs.scale_, rel=1e-3)
    rows = np.ones(150) if weight is None else weight
    assert objective(ours, y, rows, inner) <= objective(theirs, y, rows, inner) * (1 + 1e-5)
    assert ours.loss_ == pytest.approx(objective(theirs, y, rows, inner) / rows.sum(), rel=1e-5)


def test_mini_batches_of_outliers_in_large_units_end_near_the_same_scale():
    y = 100 * Y
    y[::10] += 1e5
    theirs = reference().fit(X, y)
    ours = OrtSGDRegressor(
        HuberRegressor(), batch_size=50, max_iter=5000, **RATE | {"eta0": 10.0, "tol": 1e-3}
    )
    assert ours.fit(X, y).scale_ == pytest.approx(theirs.scale_, rel=0.05)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=0.05 * theirs.scale_)


def test_the_first_step_is_the_formula(solver):
    inner, eta = HuberRegressor(epsilon=1.2, alpha=3.0), 0.05
    options = {**SHORT, "batch_size": 150, "max_iter": 1, "eta0": eta, "standardize": False}
    frozen = HuberRegressor(epsilon=1.2, alpha=3.0).fit(X[:20], Y[:20])
    model = OrtSGDRegressor(FrozenEstimator(frozen), solver=solver, **options).fit(
        X, Y, sample_weight=WEIGHT
    )
    share, residual = WEIGHT / WEIGHT.sum(), frozen.predict(X) - Y
    clipped = np.clip(residual / frozen.scale_, -1.2, 1.2)
    gradient = X.T @ (share * 2 * clipped) + 2 * inner.alpha / WEIGHT.sum() * frozen.coef_
    np.testing.assert_allclose(model.coef_, frozen.coef_ - eta * gradient, rtol=1e-4)
    np.testing.assert_allclose(
        model.intercept_, frozen.intercept_ - eta * (share * 2 * clipped).sum(), rtol=1e-4
    )
    assert model.scale_ == pytest.approx(frozen.scale_ - eta * (1 - share @ clipped**2), rel=1e-5)
    assert model.loss_ == pytest.approx(
        objective(frozen, Y, WEIGHT, inner) / WEIGHT.sum(), rel=1e-5
    )


@pytest.mark.parametrize(
    "options", [{}, {"optimizer": "adam", "eta0": 0.01}, {"average": 3}, {"penalty": "l1"}]
)
def test_solvers_make_the_same_steps(solver, options):
    model, graph = (
        OrtSGDRegressor(
            HuberRegressor(alpha=10.0), solver=name, **{**SHORT, "max_iter": 40, **options}
        ).fit(X, Y)
        for name in (solver, "graph")
    )
    assert model.solver_ == solver
    np.testing.assert_allclose(model.coef_, graph.coef_, rtol=1e-4, atol=1e-5)
    assert model.scale_ == pytest.approx(graph.scale_, rel=1e-5)
    assert model.loss_ == pytest.approx(graph.loss_, rel=1e-5)


def test_each_output_has_a_scale_of_its_own():
    y = np.column_stack([Y, 3 * Y[::-1] + X[:, 0]])
    model = OrtSGDRegressor(HuberRegressor(alpha=10.0), **LONG).fit(X, y)
    expected = [reference(alpha=10.0).fit(X, column) for column in y.T]
    np.testing.assert_allclose(model.scale_, [one.scale_ for one in expected], rtol=1e-3)
    np.testing.assert_allclose(model.coef_, [one.coef_ for one in expected], atol=1e-3)


# --- what it is part of, and what not


def test_it_is_no_weight_of_the_model_but_one_of_the_training(run_onnx):
    seen = []

    class Watch:
        def on_epoch_end(self, training):
            seen.append(
                (
                    training.weights()[SCALE].item(),
                    training.trained_model().scale_,
                    training.model.predict(X),
                )
            )

    model = OrtSGDRegressor(HuberRegressor(), callbacks=[Watch()], **SHORT).fit(X, Y)
    assert list(model.weights_) == ["coef", "intercept"]
    assert [i.name for i in model.onnx_.graph.initializer] == list(model.weights_)
    np.testing.assert_allclose(
        run_onnx(model.onnx_, X=X.astype(np.float32))["variable"].ravel(),
        model.predict(X),
        rtol=3e-5,
    )
    assert [abs(scale) for scale, *_ in seen] == [scale for _, scale, _ in seen]
    assert len({scale for scale, *_ in seen}) == 6
    assert seen[-1][1] == model.scale_
    np.testing.assert_allclose(seen[-1][2], model.predict(X), rtol=1e-5)


def test_the_graph_of_the_step_begins_with_it():
    model = OrtSGDRegressor(HuberRegressor(), solver="graph", **SHORT).fit(X, Y)
    start = model.training_graphs()["start"].graph.initializer[0]
    assert start.dims == [6]  # four coefficients, the intercept, the scale


def test_other_losses_have_no_scale():
    model = OrtSGDRegressor(HuberRegressor(), **SHORT).fit(X, Y)
    assert hasattr(model, "scale_") and not hasattr(clone(model), "scale_")
    model.set_params(loss="huber").fit(X, Y)
    assert not hasattr(model, "scale_")


def test_the_loss_by_its_name_has_a_fixed_scale_and_an_instance_has_not():
    by_name = OrtSGDRegressor(LinearRegression(), loss="huber", epsilon=1.5, **SHORT).fit(X, Y)
    assert not hasattr(by_name, "scale_")
    instance = OrtSGDRegressor(LinearRegression(), loss=ConcomitantHuber(1.5), **SHORT).fit(X, Y)
    inside = OrtSGDRegressor(HuberRegressor(epsilon=1.5, alpha=0.0), **SHORT).fit(X, Y)
    given = OrtSGDRegressor(HuberRegressor(alpha=0.0), epsilon=1.5, **SHORT).fit(X, Y)
    for model in (inside, given):
        np.testing.assert_array_equal(model.coef_, instance.coef_)
        assert model.scale_ == instance.scale_


def test_the_scikit_learn_model_gets_it():
    model = OrtSGDRegressor(HuberRegressor(), **SHORT).fit(X, Y)
    assert model.to_sklearn().scale_ == model.scale_
    pipeline = OrtSGDRegressor(make_pipeline(StandardScaler(), HuberRegressor()), **SHORT).fit(X, Y)
    assert pipeline.to_sklearn()[-1].scale_ == pipeline.scale_
    inner = TransformedTargetRegressor(HuberRegressor(), transformer=StandardScaler())
    transformed = OrtSGDRegressor(inner, **SHORT).fit(X, Y)
    assert transformed.to_sklearn().regressor_.scale_ == transformed.scale_


@pytest.mark.filterwarnings("ignore:estimator. RANSACRegressor is trained as the HuberRegressor")
def test_it_is_that_of_the_model_inside_a_ransac():
    model = OrtSGDRegressor(RANSACRegressor(HuberRegressor()), **SHORT).fit(X, Y)
    assert model.to_sklearn().estimator_.scale_ == model.scale_


# --- what goes on from it


def test_a_frozen_model_begins_at_its_scale_and_others_anew():
    fitted = HuberRegressor().fit(X, Y)
    options = {**SHORT, "max_iter": 1, "eta0": 1e-12}
    frozen = OrtSGDRegressor(FrozenEstimator(fitted), **options).fit(X, Y)
    assert frozen.scale_ == pytest.approx(fitted.scale_, rel=1e-6)
    plain = OrtSGDRegressor(clone(fitted), **options).fit(X, Y)
    assert plain.scale_ == pytest.approx(np.median(np.abs(Y - np.median(Y))), rel=1e-6)


def test_warm_start_begins_at_the_last_one():
    model = OrtSGDRegressor(HuberRegressor(), warm_start=True, **SHORT).fit(X, Y)
    first = model.scale_
    model.set_params(max_iter=1, eta0=1e-12).fit(X, Y)
    assert model.scale_ == pytest.approx(first, rel=1e-6)
    model.set_params(loss="squared_error").fit(X, Y)
    model.set_params(loss="auto").fit(X, Y)
    assert model.scale_ == pytest.approx(np.median(np.abs(Y - np.median(Y))), rel=1e-6)


@pytest.mark.parametrize("options", [{}, {"optimizer": "adam"}, {"average": True}])
def test_a_stream_goes_on_with_it_after_pickling_too(solver, options):
    stream = OrtSGDRegressor(HuberRegressor(), solver=solver, **{**SHORT, **options})
    kept = clone(stream)
    for _ in range(4):
        stream = pickle.loads(pickle.dumps(stream.partial_fit(X, Y)))
        kept.partial_fit(X, Y)
    assert stream.scale_ == kept.scale_
    np.testing.assert_array_equal(stream.coef_, kept.coef_)
    whole = clone(kept).set_params(max_iter=4).fit(X, Y)
    assert whole.scale_ == pytest.approx(kept.scale_, rel=1e-5)


@pytest.mark.parametrize("before, after", [("auto", "squared_error"), ("squared_error", "auto")])
def test_a_stream_keeps_the_weights_of_its_loss(before, after):
    model = OrtSGDRegressor(HuberRegressor(), loss=before, **SHORT).partial_fit(X, Y)
    model.set_params(loss=after)
    with pytest.raises(
        ValueError, match=r"loss=\w+ has other trained weights than \w+, the loss of earlier calls"
    ):
        model.partial_fit(X, Y)


def test_a_checkpoint_brings_it_back(tmp_path):
    path = tmp_path / "state"
    whole = OrtSGDRegressor(
        HuberRegressor(), callbacks=[Checkpoint(tmp_path / "other")], **SHORT
    ).fit(X, Y)
    OrtSGDRegressor(HuberRegressor(), callbacks=[Checkpoint(path)], **{**SHORT, "max_iter": 3}).fit(
        X, Y
    )
    resumed = OrtSGDRegressor(HuberRegressor(), callbacks=[Checkpoint(path)], **SHORT).fit(X, Y)
    assert resumed.n_iter_ == 6
    assert resumed.scale_ == whole.scale_
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)


def test_early_stopping_restores_the_scale_of_the_best_weights():
    scales = []

    class Watch:
        def on_epoch_end(self, training):
            scales.append(training.trained_model().scale_)

    options = {
        "early_stopping": True,
        "scoring": "r2",
        "n_iter_no_change": 4,
        "callbacks": [Watch()],
    }
    model = OrtSGDRegressor(
        HuberRegressor(), **{**SHORT, "max_iter": 40, "tol": 0.0, **options}
    ).fit(X, Y)
    assert model.scale_ == scales[int(np.argmax(model.validation_scores_))]


@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant prediction")
@pytest.mark.parametrize("grid", [{"epsilon": [1.01, 1.35, 3.0]}, {"alpha": [1.0, 300.0, 3e4]}])
def test_a_search_over_the_inner_parameter_ranks_as_scikit_learn_does(grid):
    y = Y + 10 * (RNG.uniform(size=150) < 0.1)
    scoring, options = "neg_median_absolute_error", {"dtype": "float64", **RATE, "tol": 1e-7}
    inside = {f"estimator__{name}": values for name, values in grid.items()}
    ours = GridSearchCV(
        OrtSGDRegressor(HuberRegressor(), max_iter=2000, **options), inside, cv=3, scoring=scoring
    )
    theirs = GridSearchCV(HuberRegressor(max_iter=1000), grid, cv=3, scoring=scoring)
    ranks = [search.fit(X, y).cv_results_["rank_test_score"].tolist() for search in (ours, theirs)]
    assert ranks[0] == ranks[1]
    assert len(set(ranks[1])) == 3
