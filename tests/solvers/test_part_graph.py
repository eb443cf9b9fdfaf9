"""
Losses, penalties and updates as models of their own:
formulas, and what an optimizer does in numpy.
"""

import numpy as np
import onnx.helper
import pytest
from scipy.special import expit

from skort.exceptions import NotTrainableError
from skort.gradients import part_graph
from skort.objective import ConcomitantHuber, ElasticPenalty, Loss, Penalty, SquaredError
from skort.optimizers import SGD, Adam, Momentum, Nesterov


@pytest.fixture
def run(run_onnx):
    def run(model, **inputs):
        dtypes = {
            i.name: onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
            for i in model.graph.input
        }
        return run_onnx(
            model, **{name: np.asarray(inputs[name], dtype) for name, dtype in dtypes.items()}
        )

    return run


def test_a_loss_is_a_weighted_sum_with_its_gradient(run, rng):
    score, target, weight = (
        rng.normal(size=(4, 1)),
        rng.integers(0, 2, (4, 1)),
        rng.uniform(size=(4, 1)),
    )
    model = part_graph("log_loss", (4, 1), dtype="float64")
    result = run(model, skort_score=score, skort_target=target, skort_sample_weight=weight)
    losses = np.logaddexp(0, score) - target * score
    np.testing.assert_allclose(result["skort_loss"], np.sum(weight * losses), rtol=1e-12)
    np.testing.assert_allclose(
        result["skort_score_gradient"], weight * (expit(score) - target), rtol=1e-12
    )


def test_a_loss_with_a_weight_of_its_own(run):
    # Residuals 2 and -1, scale 2: n s + sum of r^2 / s within the threshold.
    model = part_graph(ConcomitantHuber(epsilon=5.0), (2, 1), dtype="float64")
    (name,) = [i.name for i in model.graph.input][3:]
    rows = {
        "skort_score": [[2.0], [0.0]],
        "skort_target": [[0.0], [1.0]],
        "skort_sample_weight": [[1.0], [1.0]],
    }
    at = {s: run(model, **rows, **{name: [s]}) for s in (1.0, 1.0 - 1e-6, 1.0 + 1e-6)}
    difference = (at[1.0 + 1e-6]["skort_loss"] - at[1.0 - 1e-6]["skort_loss"]) / 2e-6
    np.testing.assert_allclose(at[1.0][f"{name}_grad"], [difference], rtol=1e-8)


def test_a_derived_gradient_of_a_loss(run, rng):
    source = (
        "cubes (score, target) => (loss) { r = Sub (score, target)  s = Mul (r, r)  "
        "loss = Mul (s, r) }"
    )
    score, target = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    model = part_graph(Loss(source), (3, 2), dtype="float64")
    result = run(
        model, skort_score=score, skort_target=target, skort_sample_weight=np.full((3, 1), 0.5)
    )
    np.testing.assert_allclose(
        result["skort_score_gradient"], 1.5 * (score - target) ** 2, rtol=1e-12
    )


@pytest.mark.parametrize("alpha", [0.5, [[0.5], [2.0]]])
def test_a_penalty_with_its_gradient(alpha, run):
    weight = np.array([[1.0, -2.0], [0.0, 3.0]])
    result = run(part_graph(ElasticPenalty(alpha, l1_ratio=0.25), (2, 2)), weight=weight)
    terms = np.asarray(alpha) * (0.25 * np.abs(weight) + 0.375 * weight**2)
    np.testing.assert_allclose(result["skort_penalty"], terms.sum(), rtol=1e-6)
    expected = np.asarray(alpha) * (0.25 * np.sign(weight) + 0.75 * weight)
    np.testing.assert_allclose(result["weight_gradient"], expected, rtol=1e-6)


def test_an_own_penalty_begins_at_zero(run):
    source = (
        "pull (weight, start) => (penalty) { d = Sub (weight, start)  s = Mul (d, d)  "
        "penalty = ReduceSum <keepdims = 0> (s) }"
    )
    result = run(part_graph(Penalty(source, alpha=3.0), (2,)), weight=[1.0, -2.0])
    assert result["skort_penalty"] == 15
    np.testing.assert_array_equal(result["weight_gradient"], [6, -12])


@pytest.mark.parametrize("optimizer", [SGD(), Momentum(momentum=0.8), Nesterov(), Adam()], ids=str)
def test_updates_are_those_in_numpy(optimizer, run, rng):
    model = part_graph(optimizer, (4,), dtype="float64")
    weights = rng.normal(size=4)
    expected, state = weights.copy(), optimizer.start(4, 0, np.float64)
    memory = {name: array.copy() for name, array in state.items()}
    for eta in (0.1, 0.2, 0.1):
        gradient = rng.normal(size=4)
        result = run(model, weights=weights, gradient=gradient, eta=eta, **memory)
        optimizer.update(expected, gradient, eta, state, np.empty(4))
        weights = result.pop("next_weights")
        memory |= {name.removeprefix("next_"): array for name, array in result.items()}
        np.testing.assert_allclose(weights, expected, rtol=1e-12)
        for name, array in state.items():
            np.testing.assert_allclose(memory[name], array, rtol=1e-12)


def test_weight_decay_is_of_all_weights(run):
    model = part_graph(Adam(weight_decay=0.5), (2,), dtype="float64")
    memory = Adam().start(2, 0, np.float64)
    result = run(model, weights=[1.0, -3.0], gradient=[0.0, 0.0], eta=0.1, **memory)
    np.testing.assert_allclose(result["next_weights"], [0.95, -2.85], rtol=1e-12)


def test_names_are_those_of_the_estimators(run):
    rows = {"skort_score": [[1.0]], "skort_target": [[3.0]], "skort_sample_weight": [[1.0]]}
    assert run(part_graph("squared_error", (1, 1)), **rows) == run(
        part_graph(SquaredError(), (1, 1)), **rows
    )
    assert run(part_graph("sgd", (1,)), weights=[1.0], gradient=[2.0], eta=0.25) == {
        "next_weights": [0.5]
    }


@pytest.mark.parametrize(
    ("part", "shape", "message"),
    [
        (
            "adamw",
            (1,),
            r"part must be a loss, a penalty or an optimizer with onnx_update, .* got 'adamw'",
        ),
        (SquaredError, (1, 1), "part must be a loss, a penalty or an optimizer"),
        (
            "lbfgs",
            (1,),
            'optimizer="lbfgs" reads all rows for every update: fit can do it, but not part_graph',
        ),
        ("log_loss", (3,), r"shape must be \(n_rows, n_outputs\) for a loss, .*, got \(3,\)"),
        ("sgd", (3, 1), r"shape must be .* \(n_weights,\) for an optimizer, got \(3, 1\)"),
        (Momentum(momentum=2.0), (3,), "momentum"),
    ],
)
def test_what_is_no_part_is_named(part, shape, message):
    with pytest.raises(ValueError, match=message):
        part_graph(part, shape)


def test_the_operator_without_a_gradient_is_named():
    with pytest.raises(ValueError, match='dtype must be "float32" or "float64"'):
        part_graph("l1", (3,), dtype="float16")
    source = "rounded (score, target) => (loss) { r = Sub (score, target)  loss = Round (r) }"
    with pytest.raises(NotTrainableError, match="no gradient goes through the operator Round"):
        part_graph(Loss(source), (3, 1))
