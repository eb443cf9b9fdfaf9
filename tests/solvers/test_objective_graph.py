"""The objective of an ONNX model against its formula."""

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from skort import OrtSGDRegressor
from skort.exceptions import NotTrainableError
from skort.objective import (
    L2,
    AbsoluteError,
    ConcomitantHuber,
    ElasticPenalty,
    Penalty,
    SquaredError,
)
from skort.onnx_models import objective_graph, with_weights

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'
LINES = """\
lines (float[N, 3] X) => (float[N, 2] y) <float[3, 2] W = {1, 2, 3, -1, -2, -3},
float[2] b = {0.5, 1}>
{ product = MatMul (X, W)  y = Add (product, b) }"""
CLASSES = (
    LINES.replace("(float[N, 2] y)", "(float[N, 2] p)")
    .replace("}\n", "}\n")
    .replace("y = Add (product, b)", "scores = Add (product, b)  p = Softmax <axis = 1> (scores)")
)
CUBES = """\
cubes (weight, start) => (penalty) {
    one = Constant <value = float {1.0}> ()
    distance = Sub (weight, start)
    moved = Add (distance, one)
    square = Mul (moved, moved)
    cube = Mul (square, moved)
    penalty = ReduceSum <keepdims = 0> (cube)
}"""


@pytest.fixture
def batch(rng):
    X, target = (rng.normal(size=shape).astype(np.float32) for shape in ((7, 3), (7, 2)))
    weight = rng.uniform(size=(7, 1)).astype(np.float32)
    return {"X": X, "skort_target": target, "skort_sample_weight": weight / weight.sum()}


def test_loss_and_penalty_are_their_formulas(batch, run_onnx):
    model = onnx.parser.parse_model(HEADER + LINES)
    W, b = (numpy_helper.to_array(i) for i in model.graph.initializer)
    residual = batch["X"] @ W + b - batch["skort_target"]
    loss = (batch["skort_sample_weight"] * residual**2).sum() / 2
    for penalty, value in (
        (None, 0.0),
        (
            ElasticPenalty(0.5, l1_ratio=0.25, intercepts=2.0),
            0.125 * abs(W).sum() + 0.1875 * (W**2).sum() + 1.6875,
        ),
        (Penalty(CUBES, alpha=0.25), 0.25 * 6),
    ):
        outputs = run_onnx(objective_graph(model, "squared_error", penalty), **batch)
        assert outputs["skort_loss"] == pytest.approx(loss, rel=1e-6)
        assert outputs["skort_objective"] == pytest.approx(loss + value, rel=1e-6)


def test_the_weights_of_the_graph_can_be_moved(batch, run_onnx):
    graph = objective_graph(onnx.parser.parse_model(HEADER + LINES), "absolute_error")
    moved = with_weights(graph, {"W": np.zeros((3, 2)), "b": [1.0, 1.0]})
    expected = (batch["skort_sample_weight"] * abs(1 - batch["skort_target"])).sum()
    assert run_onnx(moved, **batch)["skort_loss"] == pytest.approx(expected, rel=1e-6)


def test_the_score_of_a_classifier_is_the_raw_one(batch, run_onnx):
    model = onnx.parser.parse_model(HEADER + CLASSES)
    W, b = (numpy_helper.to_array(i) for i in model.graph.initializer)
    labels = (batch["skort_target"][:, :1] > 0).astype(np.float32)
    graph = objective_graph(model, "log_loss")
    given = log_softmax(batch["X"] @ W + b, axis=1)[np.arange(7), labels.ravel().astype(int)]
    expected = -(batch["skort_sample_weight"].ravel() * given).sum()
    assert run_onnx(graph, **batch | {"skort_target": labels})["skort_loss"] == pytest.approx(
        expected, rel=1e-5
    )


def test_weights_of_the_loss_are_inputs():
    graph = objective_graph(onnx.parser.parse_model(HEADER + LINES), ConcomitantHuber())
    assert [i.name for i in graph.graph.input] == [
        "X",
        "skort_target",
        "skort_sample_weight",
        "skort_loss/scale",
    ]


def test_losses_of_several_outputs_are_summed(batch, run_onnx):
    outputs = "(float[N, 1] left, float[N] right)"
    ends = (
        "columns = Add (product, b)  axis = Constant <value = int64[1] {1}> ()  "
        "left, last = Split <axis = 1> (columns)  right = Squeeze (last, axis) }"
    )
    body = LINES.replace("(float[N, 2] y)", outputs).replace("y = Add (product, b) }", ends)
    model = onnx.parser.parse_model(HEADER + body)
    W, b = (numpy_helper.to_array(i) for i in model.graph.initializer)
    residual = batch["X"] @ W + b - batch["skort_target"]
    weight = batch["skort_sample_weight"].ravel()
    expected = (weight * (abs(residual[:, 0]) + residual[:, 1] ** 2 / 2)).sum()
    graph = objective_graph(model, {"left": AbsoluteError(), "right": "squared_error"}, L2(0.5))
    results = run_onnx(graph, **batch)
    assert results["skort_loss"] == pytest.approx(expected, rel=1e-6)
    assert results["skort_objective"] == pytest.approx(expected + 0.25 * (W**2).sum(), rel=1e-6)


def test_the_loss_of_a_training_graph_is_left_out_in_words(run_onnx):
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        line (float[N, 2] X, float[N, 1] labels) => (float[N, 1] score, float loss)
            <float[2, 1] W = {1, 2}> {
            score = MatMul (X, W)
            residual = Sub (score, labels)
            distance = Abs (residual)
            loss = ReduceMean <keepdims = 0> (distance)
        }"""
    )
    with pytest.warns(
        UserWarning, match="The loss 'loss' of the ONNX model is left out: the parameter loss takes"
    ):
        graph = objective_graph(model, "squared_error")
    X, target = np.eye(2), np.array([[3.0], [6.0]])
    # (1 - 3)^2 / 2 and (2 - 6)^2 / 2, in the mean.
    feeds = {"X": X, "skort_target": target, "skort_sample_weight": np.full((2, 1), 0.5)}
    outputs = run_onnx(graph, **{name: array.astype(np.float32) for name, array in feeds.items()})
    assert outputs["skort_loss"] == 5.0


def test_an_output_of_unknown_width_is_named():
    body = LINES.replace("float[N, 3] X", "float[N, M] X").replace(
        "(float[N, 2] y)", "(float[N, K] y)"
    )
    model = onnx.parser.parse_model(HEADER + body)
    with pytest.raises(
        NotTrainableError,
        match="must have one input and outputs of floats with known numbers of columns",
    ):
        objective_graph(model, {"y": "squared_error"})


def test_bad_arguments_are_named():
    model = onnx.parser.parse_model(HEADER + LINES)
    with pytest.raises(
        ValueError, match=r"loss must be one of .*squared_error.*, or an instance, got 'mse'"
    ):
        objective_graph(model, "mse")
    with pytest.raises(
        ValueError, match="penalty must be one of l1, l2, elasticnet, or an instance, got 'l3'"
    ):
        objective_graph(model, penalty="l3")
    with pytest.raises(
        ValueError, match=r"model must be an onnx\.ModelProto or a fitted estimator, got None"
    ):
        objective_graph(None)
    with pytest.raises(ValueError, match="The 'alpha' parameter of ElasticPenalty"):
        objective_graph(model, penalty=ElasticPenalty(-1))
    for bad in (SquaredError, 3):
        with pytest.raises(ValueError, match="loss must be a name or an instance, got"):
            objective_graph(model, bad)
        with pytest.raises(ValueError, match="penalty must be a name or an instance, got"):
            objective_graph(model, penalty=bad)
    with pytest.raises(
        ValueError, match=r"loss names the output 'z', but the outputs of floats .* are y"
    ):
        objective_graph(model, {"z": "huber"})
    with pytest.raises(ValueError, match=r"loss\['y'\]: LogLoss is not a loss of a regressor"):
        objective_graph(model, {"y": "log_loss"})
    with pytest.raises(
        ValueError, match=r"needs an estimator that is an onnx.ModelProto, got Ridge\(\)"
    ):
        objective_graph(Ridge().fit([[0.0], [1.0]], [0.0, 1.0]), {"y": "huber"})
    open_model = onnx.parser.parse_model(HEADER + LINES.replace("float[N, 3] X", "float[N, M] X"))
    with pytest.raises(
        NotTrainableError,
        match="must have one input and outputs of floats with known numbers of columns",
    ):
        objective_graph(open_model)


def test_fitted_estimators_have_an_objective_too(batch, run_onnx):
    X, y = batch["X"], batch["skort_target"]
    weight = batch["skort_sample_weight"]
    ridge = Ridge().fit(X, y)
    expected = (weight * (ridge.predict(X) - y) ** 2).sum() / 2
    assert run_onnx(objective_graph(ridge), **batch)["skort_loss"] == pytest.approx(
        expected, rel=1e-5
    )
    ours = OrtSGDRegressor(Ridge(), eta0=0.1, tol=None, max_iter=2).fit(X, y)
    expected = (weight * (ours.predict(X) - y) ** 2).sum() / 2
    assert run_onnx(objective_graph(ours), **batch)["skort_loss"] == pytest.approx(
        expected, rel=1e-5
    )
    labels = (y[:, 0] > 0).astype(int)
    logistic = LogisticRegression().fit(X, labels)
    expected = -(weight.ravel() * logistic.predict_log_proba(X)[np.arange(7), labels]).sum()
    binary = batch | {"skort_target": labels[:, None].astype(np.float32)}
    assert run_onnx(objective_graph(logistic, "log_loss"), **binary)["skort_loss"] == pytest.approx(
        expected, rel=1e-5
    )
    counts = abs(y[:, 0])
    poisson = PoissonRegressor().fit(X, counts)
    expected = (weight.ravel() * (poisson.predict(X) - counts * np.log(poisson.predict(X)))).sum()
    one = batch | {"skort_target": counts[:, None]}
    assert run_onnx(objective_graph(poisson, "poisson"), **one)["skort_loss"] == pytest.approx(
        expected, rel=1e-5
    )
    with pytest.raises(
        ValueError,
        match="loss=SquaredError is not a loss of a classifier, such as LogisticRegression",
    ):
        objective_graph(logistic)
