"""The gradients that ONNX Runtime and skort derive from the value of a loss."""

import numpy as np
import onnx
import pytest
from onnx import helper
from sklearn.linear_model import LinearRegression

from skort import OrtSGDRegressor, objective
from skort.common.onnx_text import IR_VERSION, OPSET, Fragment, inlined, onnx_dtype
from skort.exceptions import NotTrainableError
from skort.graphs.differentiable import runtime_gradient
from skort.graphs.gradient.reverse import rule_gradient
from skort.objective import Loss
from skort.objective.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from skort.objective.objective import Objective
from skort.runtime.installed import load, training_api
from skort.solvers.derived_gradients import check_loss, derived_score_gradient, ruled_score_gradient

needs_agent = pytest.mark.skipif("TrainingAgent" not in training_api(), reason="this runtime has no TrainingAgent")
both_ways = pytest.mark.parametrize(
    "derive, gradient",
    [
        pytest.param(derived_score_gradient, runtime_gradient, marks=needs_agent, id="runtime"),
        pytest.param(ruled_score_gradient, rule_gradient, id="rules"),
    ],
)

# Dyadic numbers: every kink of the losses with epsilon=0.5 is among the residuals and margins.
GRID = np.array([-2.0, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0])
LOSSES = {name: loss_class() for name, loss_class in REGRESSION_LOSSES.items()}
LOSSES |= {f"{name} of classes": loss_class() for name, loss_class in CLASSIFICATION_LOSSES.items()}
LOSSES |= {name: LOSSES[name].set_params(epsilon=0.5) for name in LOSSES if "epsilon" in LOSSES[name].get_params()}
LOSSES["elastic"] = objective.ElasticLoss(0.25, 2)
LOSSES |= {f"tweedie {power}": objective.TweedieLoss(power) for power in (-1, 0, 1, 1.5, 2, 3)}


def derived(derive, loss, dtype, score, target, weight):
    n, k = score.shape
    function = derive(Objective(loss, None, (), k, np.dtype(dtype)), n)
    fragment = Fragment(dtype)
    fragment.call_as_is(function, ["score", "target", "weight"], ["gradient"])
    arrays = {"score": score, "target": target, "weight": weight}
    inputs = [helper.make_tensor_value_info(name, onnx_dtype(dtype), a.shape) for name, a in arrays.items()]
    gradient = helper.make_tensor_value_info("gradient", onnx_dtype(dtype), score.shape)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(fragment.nodes, "derived", inputs, [gradient])
    model = inlined(helper.make_model(graph, ir_version=IR_VERSION, opset_imports=opsets), fragment)
    session = load().InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {name: a.astype(dtype) for name, a in arrays.items()})[0]


@both_ways
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("name", LOSSES)
def test_the_closed_form_is_what_is_derived_at_kinks_too(name, n_outputs, derive, gradient, rng, run_function):
    loss = LOSSES[name]
    score = np.stack([rng.permutation(GRID) for _ in range(n_outputs)], axis=1)
    target = np.eye(3)[np.arange(len(GRID)) % 3, :n_outputs] + (name in ("poisson", "gamma"))
    weight = rng.uniform(0.5, 2, size=(len(GRID), 1))
    closed = run_function(loss.gradient_function(n_outputs), "float32", score, target)
    ours = derived(derive, loss, "float32", score, target, weight)
    np.testing.assert_allclose(ours, weight * closed, rtol=2e-6, atol=1e-7)


def custom(body):
    return Loss(f"custom (score, target) => (loss) {{ {body} }}")


@both_ways
@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-12)])
def test_derived_gradient_of_a_loss_of_ones_own(dtype, rtol, derive, gradient, rng):
    # (s - y)^2 where s > y, else e^(y - s)
    loss = custom("""
        residual = Sub (score, target)
        square = Mul (residual, residual)
        minus = Neg (residual)
        growth = Exp (minus)
        above = Greater (score, target)
        loss = Where (above, square, growth)""")
    score, target = rng.normal(size=(2, 9, 2))
    weight = rng.uniform(size=(9, 1))
    expected = weight * np.where(score > target, 2 * (score - target), -np.exp(target - score))
    np.testing.assert_allclose(derived(derive, loss, dtype, score, target, weight), expected, rtol=rtol)


SOFTPLUS = "r = Sub (score, target) loss = Softplus (r)"
SOFTMAX = "p = Softmax (score) loss = Sub (p, target)"


@both_ways
@pytest.mark.parametrize(
    "body, dtype, message",
    [
        ("r = Sub (score, target) loss = Softsign (r)", "float32", "no gradient goes through the operator Softsign"),
        ("r = Sub (score, target) loss = Floor (r)", "float32", "no gradient goes through the operator Floor"),
        ("b = Greater (score, target) loss = Cast <to = 1> (b)", "float32", "the operator Greater"),
        (SOFTPLUS, "float64", "the operator Softplus"),
        ("loss = Abs (target)", "float32", "its value does not use the score"),
    ],
)
def test_what_has_no_gradient_is_named(body, dtype, message, derive, gradient):
    nodes = Objective(custom(body), None, (), 2, np.dtype(dtype))
    for act in (lambda: check_loss(nodes, 5, gradient), lambda: derive(nodes, 5)):
        with pytest.raises(NotTrainableError, match=message):
            act()


@pytest.mark.parametrize("body, dtype", [(SOFTPLUS, "float32"), (SOFTMAX, "float64")])
def test_the_rules_have_more_gradients_than_the_runtime(body, dtype):
    nodes = Objective(custom(body), None, (), 2, np.dtype(dtype))
    check_loss(nodes, 5, rule_gradient)
    with pytest.raises(NotTrainableError, match=r"the operator Soft\w+ on the way"):
        check_loss(nodes, 5, runtime_gradient)


@both_ways
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_every_loss_can_be_differentiated(loss, n_outputs, derive, gradient):
    check_loss(Objective(loss, None, (), n_outputs, np.dtype("float32")), 5, gradient)


@both_ways
def test_what_is_derived_is_a_function_of_score_target_and_weight(derive, gradient):
    function = derive(Objective(LOSSES["hinge of classes"], None, (), 2, np.dtype("float32")), 5)
    assert isinstance(function, onnx.FunctionProto)
    assert list(function.input) == ["skort_score", "skort_target", "skort_sample_weight"]


def test_a_loss_in_float64_inside_has_its_gradient_there(solver):
    text = """wide (score, target) => (loss) {
        residual = Sub (score, target)
        wide = Cast <to = 11> (residual)
        tanh = Tanh (wide)
        product = Mul (tanh, wide)
        loss = Cast <to = 1> (product)
    }"""
    X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 0.5, 2.0])
    options = {"penalty": None, "eta0": 0.5, "max_iter": 1, "tol": None, "batch_size": 3, "standardize": False}
    model = OrtSGDRegressor(LinearRegression(fit_intercept=False), loss=Loss(text), solver=solver, **options).fit(X, y)
    # From w = 0 the residual is -y; d(r tanh r)/dr = tanh r + r (1 - tanh(r)^2)
    slope = np.tanh(-y) - y * (1 - np.tanh(y) ** 2)
    np.testing.assert_allclose(model.coef_, -0.5 * np.mean(slope * X[:, 0]), rtol=1e-5)
