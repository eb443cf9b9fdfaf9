"""Which score a classifier's probabilities come from."""

import numpy as np
import onnx.parser
import pytest

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.exceptions import NotTrainableError
from skort.graphs import onnx_models

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2)).astype(np.float32)
TWO = (X[:, 0] > 0).astype(int)
THREE = TWO + (X[:, 1] > 0)
ONE_COLUMN = "float[2, 1] W = {1, -2}, float[2, 1] V = {3, -2}, float[1] one = {1}"
THREE_COLUMNS = (
    "float[2, 3] W = {1, -2, 3, 4, 0.5, -1}, float[2, 3] V = {1, 2, -3, 4, -0.5, -1}, "
    "float half = {0.5}"
)


def classifier(nodes, weights, n_columns, others=""):
    text = (
        f"m (float[N, 2] X) => (float[N, {n_columns}] p) <{weights}{others}> {{ a = MatMul "
        f"(X, W) {nodes} }}"
    )
    return onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]>' + text)


def hardly_trained(model, y):
    options = {
        "standardize": False,
        "learning_rate": "constant",
        "eta0": 1e-12,
        "max_iter": 1,
        "tol": None,
    }
    return OrtSGDClassifier(model, **options).fit(X, y)


@pytest.mark.parametrize(
    "nodes, weights, n_columns, others",
    [
        ("p = Sigmoid (a)", ONE_COLUMN, 1, ""),
        ("s = Sigmoid (a) p = Sub (one, s)", ONE_COLUMN, 1, ""),
        ("s = Sigmoid (a) q = Sub (one, s) p = Concat <axis = 1> (q, s)", ONE_COLUMN, 2, ""),
        ("s = Sigmoid (a) q = Sub (one, s) p = Concat <axis = 1> (s, q)", ONE_COLUMN, 2, ""),
        ("n = Neg (a) b = Concat <axis = 1> (n, a) p = Sigmoid (b)", ONE_COLUMN, 2, ""),
        ("n = Neg (a) b = Concat <axis = 1> (n, a) p = Softmax <axis = 1> (b)", ONE_COLUMN, 2, ""),
        ("p = Softmax <axis = 1> (a)", "float[2, 2] W = {1, -2, 0.3, 4}", 2, ""),
        (
            "s = Softmax <axis = 1> (a) p = Gather <axis = 1> (s, i)",
            "float[2, 2] W = {1, -2, 0.3, 4}",
            2,
            ", int64[2] i = {1, 0}",
        ),
        ("p = Softmax <axis = 1> (a)", THREE_COLUMNS, 3, ""),
        (
            "s = Softmax <axis = 1> (a) p = Gather <axis = 1> (s, i)",
            THREE_COLUMNS,
            3,
            ", int64[3] i = {2, 0, 1}",
        ),
        ("p = LogSoftmax <axis = 1> (a)", THREE_COLUMNS, 3, ""),
    ],
    ids=[
        "sigmoid",
        "complement",
        "columns",
        "columns reversed",
        "mirrored sigmoids",
        "mirrored softmax",
        "softmax of two",
        "softmax of two reversed",
        "softmax",
        "softmax in another order",
        "logarithm",
    ],
)
def test_probabilities_stay_those_of_the_model(nodes, weights, n_columns, others, run_onnx):
    model = classifier(nodes, weights, n_columns, others)
    (expected,) = run_onnx(model, X=X).values()
    if "LogSoftmax" in nodes:
        expected = np.exp(expected)
    if n_columns == 1:
        expected = np.hstack([1 - expected, expected])
    trained = hardly_trained(model, THREE if n_columns == 3 else TWO)
    np.testing.assert_allclose(trained.predict_proba(X), expected, atol=1e-5)


@pytest.mark.parametrize(
    "nodes",
    ["c = MatMul (X, V) s = Sigmoid (c) p = Mul (a, s)", "s = Sigmoid (a) p = Mul (a, s)"],
    ids=["gate", "swish"],
)
def test_a_sigmoid_inside_a_score_is_no_head(nodes, run_onnx):
    model = classifier(nodes, ONE_COLUMN, 1)
    (expected,) = run_onnx(model, X=X).values()
    np.testing.assert_allclose(
        hardly_trained(model, TWO).decision_function(X), expected.ravel(), atol=1e-5
    )


@pytest.mark.parametrize(
    "nodes",
    ["m = MatMul (h, v) p = Add (m, c)", "p = Gemm (h, v, c)"],
    ids=["matmul and add", "gemm"],
)
def test_a_score_whose_values_are_between_zero_and_one_is_no_probability(nodes, run_onnx):
    model = classifier(
        f"h = Tanh (a) {nodes}", ONE_COLUMN + ", float[1, 1] v = {0.3}, float[1] c = {0.5}", 1
    )
    (expected,) = run_onnx(model, X=X).values()
    assert expected.min() > 0 and expected.max() < 1
    np.testing.assert_allclose(
        hardly_trained(model, TWO).decision_function(X), expected.ravel(), atol=1e-5
    )


@pytest.mark.parametrize(
    "nodes, weights, n_columns",
    [
        (
            (
                "b = MatMul (X, V) s = Softmax <axis = 1> (a) t = Softmax <axis = 1> (b) q = Add "
                "(s, t) p = Mul (q, half)"
            ),
            THREE_COLUMNS,
            3,
        ),
        ("p = Sigmoid (a)", THREE_COLUMNS, 3),
        ("p = Sigmoid (a)", "float[2, 2] W = {1, -2, 0.3, 4}", 2),
        ("p = Softmax <axis = 0> (a)", ONE_COLUMN, 1),
        ("n = Neg (a) e = Exp (n) d = Add (e, one) p = Reciprocal (d)", ONE_COLUMN, 1),
    ],
    ids=[
        "mean of two",
        "independent sigmoids",
        "two independent sigmoids",
        "softmax of the rows",
        "own sigmoid",
    ],
)
def test_other_probabilities_are_refused(nodes, weights, n_columns):
    with pytest.raises(
        NotTrainableError, match="is a probability, but it is neither the sigmoid nor the softmax"
    ):
        hardly_trained(classifier(nodes, weights, n_columns), THREE if n_columns == 3 else TWO)


@pytest.mark.parametrize(
    "nodes",
    [
        "b = ReduceMean <axes = [0]> (a) p = Sub (a, b)",
        "b = ReduceMax <axes = [0]> (a) p = Div (a, b)",
        "p = CumSum (a, zero)",
    ],
)
def test_a_model_that_mixes_rows_is_refused(nodes):
    model = classifier(nodes, ONE_COLUMN, 1, ", int64 zero = {0}")
    with pytest.raises(NotTrainableError, match="mixes rows"):
        OrtSGDRegressor(model).fit(X, X[:, 0])


def test_a_constant_of_a_billion_values_is_refused_before_it_runs():
    model = classifier(
        "c = ConstantOfShape (shape) m = ReduceMax <keepdims = 0> (c) p = Add (a, m)",
        ONE_COLUMN,
        1,
        ", int64[1] shape = {1000000000}",
    )
    with pytest.raises(
        NotTrainableError,
        match=r"result 'c' of the ONNX model has 1,000,000,000 values.*MAX_VALUES",
    ):
        OrtSGDRegressor(model).fit(X, X[:, 0])


def test_the_limit_of_values_can_be_changed(monkeypatch):
    model = classifier("p = Identity (a)", ONE_COLUMN, 1)
    monkeypatch.setattr(onnx_models, "MAX_VALUES", 0)
    with pytest.raises(NotTrainableError, match="MAX_VALUES"):
        OrtSGDRegressor(model).fit(X, X[:, 0])


def test_a_loop_is_refused_before_it_runs():
    model = classifier(
        """p = Loop (n, yes, a) <body = more (int64 i, bool go, float[N, 1] s)
            => (bool on, float[N, 1] t) {
            on = Identity (go) t = Add (s, s) }>""",
        ONE_COLUMN,
        1,
        ", int64 n = {3000000}, bool yes = {1}",
    )
    with pytest.raises(NotTrainableError, match="operator Loop"):
        OrtSGDRegressor(model).fit(X, X[:, 0])
