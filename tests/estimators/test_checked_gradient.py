"""Gradients beside finite differences: right ones, wrong ones, and refusals."""

import numpy as np
import onnx.parser
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier
from skort.exceptions import NotTrainableError
from skort.gradients import check_gradient, initial_model
from skort.objective import Loss, Penalty
from skort.objective.loss import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from skort.solvers.graph.gradient_sessions import GradientSessions

LOSSES = {**CLASSIFICATION_LOSSES, **REGRESSION_LOSSES}
SQUARES = "squares (score, target) => (loss) { r = Sub (score, target)  loss = Mul (r, r) }"


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name, rng):
    # No kink is nearer than the step.
    target = (
        rng.uniform(0.5, 2, (6, 1)) if name in REGRESSION_LOSSES else rng.integers(0, 2, (6, 1))
    )
    assert check_gradient(name, rng.normal(size=(6, 1)), target) < 1e-8


@pytest.mark.parametrize("name", ["l1", "l2", "elasticnet"])
def test_penalties(name, rng):
    assert check_gradient(name, rng.normal(size=(3, 2))) < 1e-8


@pytest.mark.parametrize("activation", ["tanh", "relu", "logistic"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_models_of_either_type_in_float64(activation, dtype, rng):
    model = MLPRegressor(hidden_layer_sizes=(5, 4), activation=activation)
    model = initial_model(model, 3, 2, dtype=dtype, random_state=0)
    assert check_gradient(model, rng.normal(size=(6, 3)), random_state=0) < 1e-7


def test_estimators_and_pipelines(rng):
    X = rng.normal(2, 3, size=(30, 3))
    y = (X[:, 0] > 2).astype(int)
    pipeline = make_pipeline(
        StandardScaler(), MLPClassifier((4,), activation="tanh", tol=0.1, random_state=0)
    )
    assert check_gradient(pipeline.fit(X, y), X[:5], random_state=0) < 1e-8
    model = OrtSGDClassifier(
        MLPClassifier((4,), activation="tanh"), max_iter=3, tol=None, random_state=0
    ).fit(X, y)
    assert check_gradient(model, X[:5], random_state=0) < 1e-8
    assert check_gradient(model, X[:5], trainable=["*1"], random_state=0) < 1e-8


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_a_network_on_raw_columns(size, rng):
    # Its weights are about 1 / 1,000: a step of 1e-6 times such a column crosses kinks.
    X = 1000 * size * rng.normal(3, 1, size=(200, 5))
    y = (X[:, 0] > 3000 * size).astype(int)
    model = OrtSGDClassifier(MLPClassifier((50,)), max_iter=5, tol=None, random_state=0).fit(X, y)
    for seed in range(3):
        assert check_gradient(model, X[:50], random_state=seed) < 1e-6


def test_a_wrong_gradient_of_a_network_on_raw_columns_has_its_error(monkeypatch, rng):
    X = 1000 * rng.normal(3, 1, size=(20, 3))
    model = initial_model(MLPRegressor(hidden_layer_sizes=(4,)), 3, random_state=0)
    backward = GradientSessions.backward

    def half(*arguments):
        gradient, by_X = backward(*arguments)
        return gradient / 2, by_X

    monkeypatch.setattr(GradientSessions, "backward", half)
    assert check_gradient(model, X, random_state=0) == pytest.approx(0.5, rel=1e-6)


def test_constants_and_casts_of_a_model_are_in_float64_too(rng):
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    graph (float[N, 2] X) => (float[N, 1] y) <float[2, 1] w = {1, 2}> {
        c = Constant <value = float {0.3}> ()
        a = MatMul (X, w)  b = Cast <to = 1> (a)  d = Tanh (b)  y = Mul (d, c)
    }""")
    assert check_gradient(model, rng.normal(size=(3, 2))) < 1e-8


def test_a_wrong_gradient_has_its_error():
    # Right is 2 r; wrong ones are r and 2.2 r.
    half = "half (score, target) => (gradient) { gradient = Sub (score, target) }"
    assert check_gradient(Loss(SQUARES, half), [[1.0], [2.0]], [[0.0], [0.0]]) == pytest.approx(0.5)
    large = (
        "large (score, target) => (gradient) { c = Constant <value = float {2.2}> ()  r = Sub "
        "(score, target)  gradient = Mul (c, r) }"
    )
    error = check_gradient(Loss(SQUARES, large), [[1.0], [2.0]], [[0.0], [0.0]])
    assert error == pytest.approx(0.2 / 2.2, rel=1e-6)
    assert check_gradient(Loss(SQUARES), [[1.0], [2.0]], [[0.0], [0.0]]) < 1e-8
    source = "sum (weight) => (penalty) { penalty = ReduceSum <keepdims = 0> (weight) }"
    assert (
        check_gradient(
            Penalty(source, "ones (weight) => (g) { g = Sub (weight, weight) }"), [1.0, 2.0]
        )
        == 1
    )


ASYMMETRIC = """asymmetric (score, target) => (loss) {
    nine = Constant <value = float {9}> ()  r = Sub (score, target)  over = Relu (r)  n = Neg (r)
    under = Relu (n)  a = Mul (over, over)  u = Mul (under, under)  b = Mul (nine, u)
    loss = Add (a, b)
}"""


@pytest.mark.parametrize(
    ("loss", "score", "target"),
    [
        (Loss(ASYMMETRIC), [[1.0]], [[1.0]]),
        (Loss(ASYMMETRIC), [[1.0], [3.0]], [[1.0], [0.0]]),
        ("squared_hinge", [[1.0]], [[1.0]]),
        ("squared_epsilon_insensitive", [[1.1], [0.9]], [[1.0], [1.0]]),
        ("hinge", [[1.0]], [[1.0]]),
        ("epsilon_insensitive", [[1.1], [0.9]], [[1.0], [1.0]]),
    ],
)
@pytest.mark.parametrize("epsilon", [1e-4, 1e-6, 1e-8])
def test_a_gradient_between_the_slopes_of_both_sides_is_right(loss, score, target, epsilon):
    assert check_gradient(loss, score, target, epsilon=epsilon) < 1e-7


@pytest.mark.parametrize("factor", [-1.0, 0.98, 3.0])
def test_a_wrong_gradient_beside_a_kink_has_its_error(factor):
    wrong = (
        f"wrong (score, target) => (g) {{ c = Constant <value = float {{{2 * factor}}}> ()  r = Sub "
        "(score, target)  over = Relu (r)  g = Mul (c, over) }"
    )
    over = "over (score, target) => (loss) { r = Sub (score, target)  o = Relu (r)  loss = Mul (o, o) }"
    error = check_gradient(Loss(over, wrong), [[1.0], [3.0]], [[1.0], [0.0]])
    assert error == pytest.approx(abs(factor - 1) / max(1, abs(factor)), rel=1e-5)


LOGARITHM = "log (score, target) => (loss) { l = Log (score)  loss = Neg (l) }"


@pytest.mark.parametrize("factor", [-1.0, -5.0])
def test_a_step_to_an_infinite_value_has_no_error_to_tell(factor):
    slope = (
        f"slope (score, target) => (g) {{ c = Constant <value = float {{{factor}}}> ()  "
        "g = Div (c, score) }"
    )
    assert np.isnan(check_gradient(Loss(LOGARITHM, slope), [[1e-6]], [[0.0]]))
    error = check_gradient(Loss(LOGARITHM, slope), [[1.0]], [[0.0]])
    assert error == pytest.approx((abs(factor) - 1) / abs(factor), abs=1e-9)


@pytest.mark.parametrize(
    ("factor", "score", "least"), [(1.005, 1e7, 0.004), (1.05, 1e6, 0.047), (1.05, 1e9, 0.01)]
)
def test_rounding_does_not_hide_a_wrong_gradient(factor, score, least):
    wrong = (
        f"wrong (score, target) => (g) {{ c = Constant <value = float {{{2 * factor}}}> ()  r = Sub "
        "(score, target)  g = Mul (c, r) }"
    )
    assert check_gradient(Loss(SQUARES, wrong), [[score]], [[0.0]]) > least


def test_rounding_does_not_hide_a_wrong_sign():
    absolute = "a (score, target) => (loss) { r = Sub (score, target)  loss = Abs (r) }"
    wrong = "g (score, target) => (g) { r = Sub (target, score)  g = Sign (r) }"
    assert check_gradient(Loss(absolute, wrong), [[1e10]], [[0.0]]) > 1


def test_where_nothing_changes_the_error_is_zero():
    assert check_gradient("l2", np.zeros(3)) == 0


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (
            ("adam", [1.0]),
            {},
            "part must be a model, a loss or a penalty: 'adam' is an optimizer, which has no grad",
        ),
        (("hinge", [[1.0]]), {}, r"target must have the shape \(1, 1\) of x0, the score, got \(\)"),
        (
            ("hinge", [[1.0]], [1.0]),
            {},
            r"target must have the shape \(1, 1\) of x0, the score, got \(1,\)",
        ),
        (
            (initial_model(LinearRegression(), 3), [[1.0]]),
            {},
            r"x0 must be an X of shape \(n_rows, 3\), got \(1, 1\)",
        ),
        (
            (Loss("log (score, target) => (loss) { loss = Log (score) }"), [[0.0]], [[1.0]]),
            {},
            "x0: the value of part is -inf here, which has no differences",
        ),
    ],
)
def test_what_does_not_fit_is_named(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        check_gradient(*arguments, **options)


def test_an_operator_without_a_gradient_is_named():
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    graph (float[N, 2] X) => (float[N, 2] y) <float[2, 2] w = {1, 2, 3, 4}> { a = MatMul (X, w)
    y = Round (a) }""")
    with pytest.raises(NotTrainableError, match="the operator Round"):
        check_gradient(model, np.ones((3, 2)))
