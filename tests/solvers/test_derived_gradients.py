"""Gradients of losses and of custom penalties, given and derived, and what is refused."""

import numpy as np
import onnx
import pytest
from onnx import helper
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from solver_traits import derives_given

from skort import OrtSGDRegressor, objective
from skort.common.onnx_text import IR_VERSION, OPSET, Fragment, inlined, onnx_dtype
from skort.estimators.training.result import result_of
from skort.exceptions import NotTrainableError
from skort.graphs.differentiable import runtime_gradient
from skort.graphs.gradient.reverse import rule_gradient
from skort.objective import L2, Loss, Penalty
from skort.objective.custom import CustomTerm
from skort.objective.loss import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from skort.objective.objective import LOSS, OBJECTIVE, SAMPLE_WEIGHT, TARGET, Objective
from skort.runtime.installed import load, training_api
from skort.runtime.sessions import inference_session
from skort.solvers.derived_gradients import (
    check_loss,
    derived_score_gradient,
    ruled_penalty_gradient,
    ruled_score_gradient,
)
from skort.solvers.graph.backend import ETA, GRADIENT, WEIGHTS

needs_agent = pytest.mark.skipif(
    "TrainingAgent" not in training_api(), reason="this runtime has no TrainingAgent"
)
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
LOSSES |= {
    name: LOSSES[name].set_params(epsilon=0.5)
    for name in LOSSES
    if "epsilon" in LOSSES[name].get_params()
}
LOSSES["elastic"] = objective.ElasticLoss(0.25, 2)
LOSSES |= {f"tweedie {power}": objective.TweedieLoss(power) for power in (-1, 0, 1, 1.5, 2, 3)}


def derived(derive, loss, dtype, score, target, weight):
    n, k = score.shape
    function = derive(Objective(loss, None, (), k, np.dtype(dtype)), n)
    fragment = Fragment(dtype)
    fragment.call_as_is(function, ["score", "target", "weight"], ["gradient"])
    arrays = {"score": score, "target": target, "weight": weight}
    inputs = [
        helper.make_tensor_value_info(name, onnx_dtype(dtype), a.shape)
        for name, a in arrays.items()
    ]
    gradient = helper.make_tensor_value_info("gradient", onnx_dtype(dtype), score.shape)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(fragment.nodes, "derived", inputs, [gradient])
    model = inlined(helper.make_model(graph, ir_version=IR_VERSION, opset_imports=opsets), fragment)
    session = load().InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {name: a.astype(dtype) for name, a in arrays.items()})[0]


@both_ways
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("name", LOSSES)
def test_the_closed_form_is_what_is_derived_at_kinks_too(
    name, n_outputs, derive, gradient, rng, run_function
):
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
    np.testing.assert_allclose(
        derived(derive, loss, dtype, score, target, weight), expected, rtol=rtol
    )


SOFTPLUS = "r = Sub (score, target) loss = Softplus (r)"
ERF = "r = Sub (score, target) loss = Erf (r)"
SOFTMAX = "p = Softmax (score) loss = Sub (p, target)"


@both_ways
@pytest.mark.parametrize(
    "body, dtype, message",
    [
        (
            "r = Sub (score, target) loss = Floor (r)",
            "float32",
            "no gradient goes through the operator Floor",
        ),
        ("b = Greater (score, target) loss = Cast <to = 1> (b)", "float32", "the operator Greater"),
        (
            ERF,
            "float64",
            'loss: ONNX Runtime has no gradient of the operator Erf in float64. Train with dtype="float32"',
        ),
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
    with pytest.raises(NotTrainableError, match=r"the operator Soft\w+ (on the way|in float64)"):
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
    options = {
        "penalty": None,
        "eta0": 0.5,
        "max_iter": 1,
        "tol": None,
        "batch_size": 3,
        "standardize": False,
    }
    model = OrtSGDRegressor(
        LinearRegression(fit_intercept=False), loss=Loss(text), solver=solver, **options
    ).fit(X, y)
    # From w = 0 the residual is -y; d(r tanh r)/dr = tanh r + r (1 - tanh(r)^2)
    slope = np.tanh(-y) - y * (1 - np.tanh(y) ** 2)
    np.testing.assert_allclose(model.coef_, -0.5 * np.mean(slope * X[:, 0]), rtol=1e-5)


HALF_SQUARES = """\
half_squares (weight) => (penalty) {
    half = Constant <value = float {0.5}> ()
    square = Mul (weight, weight)
    sum = ReduceSum <keepdims = 0> (square)
    penalty = Mul (half, sum)
}"""
ITSELF = "itself (weight) => (gradient) { gradient = Identity (weight) }"
ROWS = """\
rows (weight) => (penalty) {
    little = Constant <value = float {1e-4}> ()
    columns = Constant <value = int64[1] {1}> ()
    square = Mul (weight, weight)
    sums = ReduceSum <keepdims = 0> (square, columns)
    positive = Add (sums, little)
    norms = Sqrt (positive)
    penalty = ReduceSum <keepdims = 0> (norms)
}"""
# The squared cosines of all pairs of columns.
CORRELATION = """\
correlation (weight) => (penalty) {
    rows = Constant <value = int64[1] {0}> ()
    square = Mul (weight, weight)
    sums = ReduceSum <keepdims = 1> (square, rows)
    norms = Sqrt (sums)
    unit = Div (weight, norms)
    transposed = Transpose <perm = [1, 0]> (unit)
    cosines = MatMul (transposed, unit)
    squares = Mul (cosines, cosines)
    penalty = ReduceSum <keepdims = 0> (squares)
}"""
PULL = """\
pull (weight, start) => (penalty) {
    distance = Sub (weight, start)
    square = Mul (distance, distance)
    fourth = Mul (square, square)
    penalty = ReduceSum <keepdims = 0> (fourth)
}"""


def of_rows(weight, start):
    return np.sqrt((weight**2).sum(axis=1) + 1e-4).sum()


def of_correlation(weight, start):
    unit = weight / np.sqrt((weight**2).sum(axis=0))
    return ((unit.T @ unit) ** 2).sum()


def of_pull(weight, start):
    return ((weight - start) ** 4).sum()


FORMULAS = {
    "rows": (ROWS, of_rows),
    "correlation": (CORRELATION, of_correlation),
    "pull": (PULL, of_pull),
}


def differences(f, x, step=1e-6):
    """Return the gradient of a function of an array, by central differences."""
    gradient = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        moved = np.zeros_like(x)
        moved[i] = step
        gradient[i] = (f(x + moved) - f(x - moved)) / (2 * step)
    return gradient


@pytest.mark.parametrize("name", FORMULAS)
def test_the_derived_gradient_is_that_of_the_formula(name, rng):
    source, formula = FORMULAS[name]
    term, weight, start = (
        CustomTerm(source, None, 1.0),
        rng.normal(size=(4, 3)),
        rng.normal(size=(4, 3)),
    )
    fragment = Fragment("float64")
    fragment.call_as_is(
        ruled_penalty_gradient(term, np.dtype("float64"), (4, 3)), term.inputs, ["gradient"]
    )
    infos = [
        helper.make_tensor_value_info(n, onnx_dtype("float64"), (4, 3))
        for n in (*term.inputs, "gradient")
    ]
    graph = helper.make_graph(fragment.nodes, "derived", infos[:-1], infos[-1:])
    model = helper.make_model(
        graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)]
    )
    session = inference_session(inlined(model, fragment).SerializeToString(), float64=True)
    arrays = {n: array for n, array in (("weight", weight), ("start", start)) if n in term.inputs}
    expected = differences(lambda w: formula(w, start), weight)
    np.testing.assert_allclose(session.run(None, arrays)[0], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("gradient", [None, ITSELF])
@pytest.mark.parametrize("standardize", ["auto", False])
def test_half_the_squares_make_the_steps_of_the_l2_penalty(solver, standardize, gradient, rng):
    X, y = rng.normal(size=(60, 3)) * [1, 10, 100] + 5, rng.normal(size=(60, 2)) * 20
    options = {
        "solver": solver,
        "standardize": standardize,
        "random_state": 0,
        "max_iter": 5,
        "tol": None,
    }
    options |= {
        "eta0": 1e-5 if standardize is False else 0.1,
        "learning_rate": "constant",
        "batch_size": 20,
    }
    expected = OrtSGDRegressor(penalty=L2(0.3), **options).fit(X, y)
    model = OrtSGDRegressor(penalty=Penalty(HALF_SQUARES, gradient, alpha=0.3), **options).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-5)
    np.testing.assert_allclose(model.loss_curve_, expected.loss_curve_, rtol=1e-6)
    assert model.history_["loss"][-1] < model.loss_curve_[-1]


@pytest.mark.parametrize("name", FORMULAS)
def test_the_step_has_the_gradient_of_the_objective_in_the_variables_of_the_training(name, rng):
    X, Y = rng.normal(size=(40, 4)) * [1, 5, 10, 20] + 3, rng.normal(size=(40, 3)) * 7
    network = MLPRegressor(hidden_layer_sizes=(5,), activation="tanh", alpha=0)
    penalty = Penalty(FORMULAS[name][0], alpha=0.7)
    options = {
        "dtype": "float64",
        "batch_size": 40,
        "max_iter": 3,
        "tol": None,
        "eta0": 0.01,
        "solver": "graph",
    }
    model = OrtSGDRegressor(network, penalty=penalty, random_state=0, **options).fit(X, Y)
    graphs = {n: g.SerializeToString() for n, g in model.training_graphs().items()}
    step, start, split = (
        inference_session(graphs[n], float64=True) for n in ("step", "start", "split")
    )
    given = dict(zip([o.name for o in start.get_outputs()], start.run(None, {}), strict=True))
    names, weights = [o.name for o in split.get_outputs()], given[WEIGHTS]
    used = model.standardization_
    batch = {
        TARGET: (Y - used.target_mean) / used.target_scale,
        SAMPLE_WEIGHT: np.full((40, 1), 1 / 120),
    }
    inputs = {"X": X, ETA: np.array(0.0), **batch, **given}

    def objective(vector):
        parts = dict(zip(names, split.run(names, {WEIGHTS: vector}), strict=True))
        return step.run([OBJECTIVE], {**inputs, WEIGHTS: vector, **parts})[0].item()

    (gradient,) = step.run([GRADIENT], inputs)
    np.testing.assert_allclose(gradient, differences(objective, weights), rtol=1e-5, atol=1e-7)
    # The penalty is that of the weights of the model, divided by the unit of the objective.
    total, loss = step.run([OBJECTIVE, LOSS], inputs)
    initial = result_of(model).state.penalty_start or dict.fromkeys(model.weights_)
    values = [
        FORMULAS[name][1](model.weights_[n], initial[n]) for n in ("coefficient", "coefficient1")
    ]
    assert (total - loss) * used.target_scale**2 == pytest.approx(0.7 * sum(values), rel=1e-6)


def test_solvers_make_the_same_steps(solver, rng):
    X, Y = rng.normal(size=(50, 4)), rng.normal(size=(50, 2))
    options = {
        "random_state": 0,
        "max_iter": 10,
        "tol": None,
        "eta0": 0.05,
        "penalty": Penalty(ROWS, alpha=0.1),
    }
    model = OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(5,)), **options)
    weights = [
        clone(model).set_params(solver=name).fit(X, Y).weights_ for name in (solver, "graph")
    ]
    for name, array in weights[0].items():
        np.testing.assert_allclose(array, weights[1][name], rtol=1e-4, atol=1e-6)


def test_an_operator_without_a_gradient_is_named(solver, rng):
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    value = (
        "f (weight) => (penalty) { size = Abs (weight)  whole = Ceil (size)  penalty = ReduceSum "
        "<keepdims = 0> (whole) }"
    )
    options = {"solver": solver, "eta0": 0.1, "tol": None, "max_iter": 2}
    with pytest.raises(
        NotTrainableError, match="penalty: no gradient goes through the operator Ceil"
    ):
        OrtSGDRegressor(penalty=Penalty(value), **options).fit(X, y)
    given = OrtSGDRegressor(penalty=Penalty(value, ITSELF, alpha=1e-3), **options)
    if derives_given(solver):
        with pytest.raises(
            NotTrainableError, match="penalty: no gradient goes through the operator Ceil"
        ):
            given.fit(X, y)
    else:
        assert np.isfinite(given.fit(X, y).coef_).all()
    unused = "f (weight) => (penalty) { penalty = Constant <value = float {0.5}> () }"
    with pytest.raises(NotTrainableError, match="penalty: its value does not use the weight"):
        OrtSGDRegressor(LinearRegression(), penalty=Penalty(unused), **options).fit(X, y)
