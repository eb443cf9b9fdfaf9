"""
Huber's loss with a trained scale: value, derivatives by score and scale,
scikit-learn's minimum of it.
"""

import numpy as np
import pytest
from onnx import helper
from sklearn.linear_model import HuberRegressor

from skort.common.onnx_text import IR_VERSION, OPSET, Fragment, inlined, onnx_dtype
from skort.graphs.differentiable import runtime_gradient
from skort.graphs.gradient.reverse import rule_gradient
from skort.objective import ConcomitantHuber
from skort.objective.objective import LOSS, SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET, Objective
from skort.objective.sklearn_objectives import sklearn_objective
from skort.runtime.installed import training_api
from skort.solvers.derived_gradients import check_loss, derived_score_gradient, ruled_score_gradient

needs_agent = pytest.mark.skipif(
    "TrainingAgent" not in training_api(), reason="this runtime has no TrainingAgent"
)
DTYPES = {"float32": {"rtol": 2e-5, "atol": 2e-6}, "float64": {"rtol": 1e-12, "atol": 1e-14}}
EPSILON = 1.35
(SCALE,) = ConcomitantHuber.weight_names


def data(n_outputs, rng, n=12):
    """Return scores, targets, weights of a batch, and scales of either sign."""
    score, target = 2 * rng.normal(size=(2, n, n_outputs))
    weight = rng.uniform(0.1, 2, size=(n, 1))
    return score, target, weight / weight.sum(), np.array([0.5, -0.8, 1.1])[-n_outputs:]


def formula(score, target, weight, scale):
    """Return the weighted sum of the loss, and its derivatives by scores and scales, in numpy."""
    sigma = np.abs(scale)
    z = (score - target) / sigma
    inside = np.abs(z) <= EPSILON
    value = sigma + sigma * np.where(inside, z**2, 2 * EPSILON * np.abs(z) - EPSILON**2)
    by_score = np.where(inside, 2 * z, 2 * EPSILON * np.sign(z))
    by_scale = np.where(inside, 1 - z**2, 1 - EPSILON**2) * np.sign(scale)
    share = weight / score.shape[1]
    return (share * value).sum(), share * by_score, (share * by_scale).sum(axis=0)


def closed_form(objective, fragment):
    objective.add_score_gradient(fragment, "score")


def derived_by(derive):
    def add(objective, fragment):
        inputs = ["score", TARGET, SAMPLE_WEIGHT, SCALE]
        outputs = [SCORE_GRADIENT, objective.weight_gradients[SCALE]]
        fragment.call_as_is(derive(objective, 12), inputs, outputs)

    return add


WAYS = {
    "closed form": closed_form,
    "rules": derived_by(ruled_score_gradient),
    "runtime": derived_by(derived_score_gradient),
}


@pytest.fixture
def run_loss(run_onnx):
    """Return the weighted sum of the loss and its derivatives by score and scale."""

    def run(dtype, add_gradient, score, target, weight, scale):
        objective = Objective(ConcomitantHuber(EPSILON), None, (), score.shape[1], np.dtype(dtype))
        fragment = Fragment(dtype)
        objective.add_loss(fragment, "score", LOSS)
        add_gradient(objective, fragment)
        gradients = objective.weight_gradients.values()
        score_info, gradient_info = (
            helper.make_tensor_value_info(name, onnx_dtype(dtype), score.shape)
            for name in ("score", SCORE_GRADIENT)
        )
        inputs = [score_info, *objective.inputs(len(score)), *objective.weight_infos([SCALE])]
        outputs = [objective.output(LOSS), gradient_info, *objective.weight_infos(gradients)]
        graph = helper.make_graph(fragment.nodes, "loss", inputs, outputs)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, ir_version=IR_VERSION, opset_imports=opsets)
        feeds = {
            "score": score,
            TARGET: target,
            SAMPLE_WEIGHT: objective.sample_weight_scale * weight,
            SCALE: scale,
        }
        results = run_onnx(
            inlined(model, fragment), **{name: array.astype(dtype) for name, array in feeds.items()}
        )
        return [results[name] for name in (LOSS, SCORE_GRADIENT, *gradients)]

    return run


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "way", ["closed form", "rules", pytest.param("runtime", marks=needs_agent)], ids=lambda way: way
)
def test_value_and_gradients_are_the_formula_derived_or_not(way, dtype, n_outputs, rng, run_loss):
    arrays = data(n_outputs, rng)
    for result, expected in zip(run_loss(dtype, WAYS[way], *arrays), formula(*arrays), strict=True):
        np.testing.assert_allclose(result, expected, **DTYPES[dtype])


def test_gradients_are_the_central_differences_of_the_value(rng, run_loss):
    score, target, weight, scale = data(3, rng)
    _, by_score, by_scale = run_loss("float64", closed_form, score, target, weight, scale)

    def difference(d_score, d_scale):
        up, down = (
            run_loss(
                "float64",
                closed_form,
                score + sign * d_score,
                target,
                weight,
                scale + sign * d_scale,
            )[0]
            for sign in (1e-6, -1e-6)
        )
        return (up - down) / 2e-6

    for column, step in enumerate(np.eye(3)):
        assert difference(0, step) == pytest.approx(by_scale[column], rel=1e-6)
        for row in range(len(score)):
            step_of_row = np.outer(np.arange(len(score)) == row, step)
            assert difference(step_of_row, 0) == pytest.approx(
                by_score[row, column], rel=1e-6, abs=1e-9
            )


@pytest.mark.parametrize("gradient", [rule_gradient, runtime_gradient])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_solver_differentiates_it_by_score_and_scale(gradient, dtype):
    check_loss(Objective(ConcomitantHuber(), None, (), 2, np.dtype(dtype)), 5, gradient)


@pytest.mark.parametrize("scale", [0.0, 1e-30])
def test_a_scale_of_zero_divides_nothing_by_zero(scale, run_loss):
    score, target = np.array([[1.0], [2.0], [3.0]]), np.array([[1.0], [2.0], [1.0]])
    value, by_score, _ = run_loss(
        "float32", closed_form, score, target, np.full((3, 1), 1 / 3), np.array([scale])
    )
    assert value == pytest.approx(2 * EPSILON * 2 / 3)
    np.testing.assert_allclose(by_score, [[0], [0], [2 * EPSILON / 3]], rtol=1e-6)


@pytest.mark.parametrize("epsilon", [1.1, 1.35, 2.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_is_zero_at_the_weights_and_scale_of_scikit_learn(
    epsilon, weighted, rng, run_function
):
    X, weight = rng.normal(size=(120, 4)), rng.uniform(0.5, 3, 120) if weighted else np.ones(120)
    y = X @ [1.0, -0.5, 0.25, 0.0] + 3 * rng.standard_t(2, 120)
    model = HuberRegressor(epsilon=epsilon, alpha=20.0, tol=1e-10, max_iter=10_000)
    theirs = model.fit(X, y, sample_weight=weight)
    own = sklearn_objective(model)
    alpha = own.skort_alpha(weight.sum(), weight.mean(), 120, 1)
    assert own.l1_ratio == 0 and alpha == pytest.approx(40 / weight.sum())
    z = (theirs.predict(X) - y) / theirs.scale_
    by_score, by_scale = 2 * np.clip(z, -epsilon, epsilon), 1 - np.minimum(z**2, epsilon**2)
    score, scale = theirs.predict(X)[:, None], np.full((120, 1), theirs.scale_)
    gradient = own.loss.gradient_function(1)
    assert gradient.startswith(
        "concomitant_huber_gradient (score, target, scale) => (gradient, scale_gradient)"
    )
    only_score = gradient.replace("=> (gradient, scale_gradient)", "=> (gradient)")
    ours = run_function(only_score, "float64", score, y[:, None], scale).ravel()
    np.testing.assert_allclose(ours, by_score, rtol=1e-12)
    share = weight / weight.sum()
    for slope in (*(X.T @ (share * ours) + alpha * theirs.coef_), share @ ours, share @ by_scale):
        assert slope == pytest.approx(0, abs=2e-4)


def test_it_begins_at_the_median_distance_from_the_median():
    target = np.array(
        [[0.0, 5.0, 1.0], [1.0, 5.0, 2.0], [4.0, 5.0, -1e9], [100.0, 5.0, 3.0], [-3.0, 6.0, 4.0]]
    )
    loss = ConcomitantHuber()
    # Of 0, 1, 3, 4, 99; zero of a column that is mostly constant; of 0, 1, 1, 2, 1e9.
    np.testing.assert_array_equal(loss.initial_weights(target)[SCALE], [3, 1, 1])
    np.testing.assert_array_equal(loss.initial_weights(target[[0, 1, 2, 4]])[SCALE], [2, 1, 1.5])


def test_it_begins_at_a_small_scale():
    target = np.array([[0.0], [0.1], [0.2], [0.3], [0.4]])
    np.testing.assert_allclose(ConcomitantHuber().initial_weights(target)[SCALE], [0.1])


def test_it_begins_at_the_scale_of_a_fitted_model(rng):
    model = HuberRegressor().fit(rng.normal(size=(30, 2)), rng.normal(size=30))
    weights = ConcomitantHuber().initial_weights(np.zeros((4, 1)), model)
    np.testing.assert_array_equal(weights[SCALE], model.scale_)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 1e6])
def test_epsilon_is_any_positive_number(epsilon):
    ConcomitantHuber(epsilon)._validate_params()


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("inf")])
def test_other_numbers_are_refused(epsilon):
    with pytest.raises(ValueError, match="'epsilon' parameter of ConcomitantHuber"):
        ConcomitantHuber(epsilon)._validate_params()
