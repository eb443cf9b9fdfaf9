"""
Training graphs, with labels and a loss, are trained as they are:
each step is that of their own loss.
"""

import copy

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from scipy.special import expit, softmax
from sklearn.base import clone

from skort import OrtSGDClassifier, OrtSGDRegressor, Step
from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models.opsets import recast
from skort.solvers import available_solvers

_RNG = np.random.RandomState(0)
X = _RNG.normal(size=(45, 4)).astype(np.float32)
Y = (X @ [1, -2, 0.5, 1] + 0.1 * _RNG.normal(size=45)).astype(np.float32)
LAYERS = (
    "<float[4, 3] W = {1,2,-1,0.5,1,-1,2,0.25,-0.5,1,1,-2}, float[3] b = {0.1,-0.2,0.3}, "
    "float[3, %d] V = {%s}>"
)
BODY = "h = Gemm (X, W, b) a = Tanh (h) s = MatMul (a, V)"
HALF = "half = Constant <value = float {0.5}> ()"
THREE = "int64[N] label) => (float loss, float[N, 3] %s)", 3
# (inputs and outputs after X, columns of the score, what follows the score s)
REGRESSION = {
    "half of the mean square": (
        "float[N, 1] label) => (float loss, float[N, 1] s)",
        1,
        (
            f"{HALF} r = Sub (s, label) q = Mul (r, r) m = ReduceMean <keepdims = 0> (q) "
            "loss = Mul (half, m)"
        ),
    ),
    "two terms, of labels without columns": (
        "float[N] label) => (float loss, float[N, 1] s)",
        1,
        f"""{HALF} one = Constant <value = int64[1] {{1}}> () t = Unsqueeze (label, one)
        r = Sub (s, t)
        q = Mul (r, r) d = Abs (r) m = ReduceMean <keepdims = 0> (q)
        n = ReduceMean <keepdims = 0> (d) p = Mul (half, n) loss = Add (m, p)""",
    ),
    "a mean over both axes": (
        "float[N, 1] label) => (float loss, float[N, 1] s)",
        1,
        "r = Sub (s, label) q = Mul (r, r) loss = ReduceMean <axes = [-2, -1], keepdims = 0> (q)",
    ),
    "positive scores": (
        "float[N, 1] label) => (float loss, float[N, 1] e)",
        1,
        """e = Exp (s) l = Log (e) p = Mul (l, label) d = Sub (e, p)
            loss = ReduceMean <keepdims = 0> (d)""",
    ),
    "two columns, one by one": (
        "float[N, 2] label) => (float loss, float[N, 2] s)",
        2,
        """one = Constant <value = int64[1] {1}> () r = Sub (s, label) q = Mul (r, r)
        c = ReduceSum <keepdims = 0> (q, one) loss = ReduceMean <keepdims = 0> (c)""",
    ),
}
CLASSIFICATION = {
    "scores of two": (
        "float[N, 1] label) => (float loss, float[N, 1] s)",
        1,
        """p = Softplus (s) t = Mul (s, label) d = Sub (p, t)
            loss = ReduceMean <keepdims = 0> (d)""",
    ),
    "probabilities of two": (
        "float[N, 1] label) => (float loss, float[N, 1] y)",
        1,
        """y = Sigmoid (s) one = Constant <value = float {1}> () u = Sub (one, y)
        v = Sub (one, label)
        ly = Log (y) lu = Log (u) a1 = Mul (label, ly) a2 = Mul (v, lu) a3 = Add (a1, a2)
        m = ReduceMean <keepdims = 0> (a3) loss = Neg (m)""",
    ),
    "two columns of two": (
        "int64[N] label) => (float loss, float[N, 2] s)",
        2,
        "loss = SoftmaxCrossEntropyLoss (s, label)",
    ),
    "scores of three": (
        THREE[0] % "s",
        3,
        "loss = SoftmaxCrossEntropyLoss <ignore_index = -100> (s, label)",
    ),
    "probabilities of three": (
        THREE[0] % "y",
        3,
        "y = Softmax <axis = 1> (s) l = Log (y) loss = NegativeLogLikelihoodLoss (l, label)",
    ),
    "one-hot labels": (
        "float[N, 3] label) => (float loss, float[N, 3] y)",
        3,
        """y = Softmax <axis = 1> (s) one = Constant <value = int64[1] {1}> () l = Log (y)
        q = Mul (l, label)
        c = ReduceSum (q, one) n = Neg (c) loss = ReduceMean <keepdims = 0> (n)""",
    ),
    "one-hot labels of a width with a name": (
        "float[N, C] label) => (float loss, float[N, 3] s)",
        3,
        """one = Constant <value = int64[1] {1}> () l = LogSoftmax <axis = 1> (s) q = Mul (l, label)
        c = ReduceSum (q, one) n = Neg (c) loss = ReduceMean <keepdims = 0> (n)""",
    ),
    "one-hot labels of two classes": (
        "float[N, 2] label) => (float loss, float[N, 2] s)",
        2,
        """one = Constant <value = int64[1] {1}> () l = LogSoftmax <axis = 1> (s) q = Mul (l, label)
        c = ReduceSum (q, one) n = Neg (c) loss = ReduceMean <keepdims = 0> (n)""",
    ),
    "squares of probabilities": (
        "float[N, 1] label) => (float loss, float[N, 1] y)",
        1,
        "y = Sigmoid (s) r = Sub (y, label) q = Mul (r, r) loss = ReduceMean <keepdims = 0> (q)",
    ),
    "a log-loss of probabilities from 0.1 to 0.9": (
        "float[N, 1] label) => (float loss, float[N, 1] y)",
        1,
        """y = Sigmoid (s) one = Constant <value = float {1}> ()
        low = Constant <value = float {0.1}> ()
        high = Sub (one, low) p = Clip (y, low, high) u = Sub (one, p) v = Sub (one, label)
        ly = Log (p) lu = Log (u) a1 = Mul (label, ly) a2 = Mul (v, lu) a3 = Add (a1, a2)
        m = ReduceMean <keepdims = 0> (a3) loss = Neg (m)""",
    ),
}


def training_graph(ends, width, loss):
    """Return a network with two layers and a loss of its own."""
    values = ", ".join(str(round(v, 2)) for v in np.linspace(-1, 1.5, 3 * width))
    header = f'<ir_version: 8, opset_import: ["" : 17]> m (float[N, 4] X, {ends}'
    return onnx.parser.parse_model(f"{header} {LAYERS % (width, values)} {{ {BODY} {loss} }}")


def target_of(name, width):
    """Return a target that a graph is trained on."""
    if name in REGRESSION:
        return Y if width == 1 else np.c_[Y, X[:, 0]]
    return np.digitize(Y, [-1, 1]) if width == 3 else np.array(["no", "yes"])[(Y > 0).astype(int)]


def labels_of(model, y, n):
    """Return a target as the labels of a training graph."""
    info = model.graph.input[1].type.tensor_type
    codes = np.unique(y, return_inverse=True)[1] if y.dtype.kind in "iU" else y
    dims = info.shape.dim
    width = 0 if len(dims) < 2 else 3 if dims[1].dim_param == "C" else dims[1].dim_value
    labels = np.eye(width)[codes] if width > 1 and y.ndim == 1 else codes
    labels = labels.reshape(n, -1) if len(dims) == 2 else labels
    return labels.astype(helper.tensor_dtype_to_np_dtype(info.elem_type))


def descended(model, y, weights, rate, n_steps, sample_weight=None):
    """
    Return the weights after steps whose gradients are finite differences
    of the graph's own loss, in float64.
    """
    model = copy.deepcopy(model)
    del model.graph.output[1:]
    arrays = {name: array.astype(np.float64) for name, array in weights.items()}
    shares = (
        np.full(len(y), 1 / len(y))
        if sample_weight is None
        else sample_weight / sample_weight.sum()
    )
    labels = labels_of(model, y, len(y))
    for i in [i for i in model.graph.initializer if i.name in weights]:
        model.graph.initializer.remove(i)
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].t.data_type == TensorProto.FLOAT:
            value = numpy_helper.to_array(node.attribute[0].t).astype(np.float64)
            node.attribute[0].t.CopyFrom(numpy_helper.from_array(value))
    run = ReferenceEvaluator(model).run
    labels = labels.astype(np.float64) if labels.dtype.kind == "f" else labels
    rows = range(len(y)) if sample_weight is not None else [slice(None)]

    def loss(arrays):
        # Each row alone, where rows count differently.
        values = [
            run(None, {"X": X[i : i + 1].astype(np.float64), "label": labels[i : i + 1], **arrays})[
                0
            ]
            if sample_weight is not None
            else run(None, {"X": X.astype(np.float64), "label": labels, **arrays})[0]
            for i in rows
        ]
        return float(
            np.dot(shares, np.ravel(values)) if sample_weight is not None else np.ravel(values)[0]
        )

    for _ in range(n_steps):
        gradients = {name: np.zeros_like(array) for name, array in arrays.items()}
        for name, array in arrays.items():
            for index in np.ndindex(array.shape):
                changed = [array.copy(), array.copy()]
                changed[0][index] += 1e-5
                changed[1][index] -= 1e-5
                above, below = (loss({**arrays, name: each}) for each in changed)
                gradients[name][index] = (above - below) / 2e-5
        arrays = {name: array - rate * gradients[name] for name, array in arrays.items()}
    return arrays


def estimator_of(name, model, **parameters):
    kind = OrtSGDRegressor if name in REGRESSION else OrtSGDClassifier
    return kind(
        model,
        loss=None,
        **{
            "penalty": None,
            "optimizer": "sgd",
            "learning_rate": "constant",
            "eta0": 0.05,
            "batch_size": 45,
            "max_iter": 3,
            "tol": None,
            "standardize": False,
            **parameters,
        },
    )


@pytest.mark.parametrize("name", [*REGRESSION, *CLASSIFICATION])
def test_a_training_graph_is_trained_by_its_own_loss(name):
    ends, width, loss = {**REGRESSION, **CLASSIFICATION}[name]
    model, y = training_graph(ends, width, loss), target_of(name, width)
    start = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    expected = descended(model, y, start, 0.05, 3)
    for solver in available_solvers():
        fitted = estimator_of(name, model, solver=solver).fit(X, y)
        for key, array in expected.items():
            np.testing.assert_allclose(fitted.weights_[key], array, rtol=1e-5, atol=1e-5)
    original = fitted.to_onnx(original=True)
    session = onnxruntime.InferenceSession(
        original.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    value, result = session.run(None, {"X": X, "label": labels_of(model, y, len(y))})
    if name in REGRESSION:
        np.testing.assert_allclose(
            fitted.predict(X).reshape(result.shape), result, rtol=1e-4, atol=1e-5
        )
    else:
        score = fitted.decision_function(X)
        score = score[:, np.newaxis] if score.ndim == 1 else score
        if result.shape[1] == 2:
            result = result[:, [1]] - result[:, [0]]
        if model.graph.output[1].name == "y":
            score = expit(score) if result.shape[1] == 1 else softmax(score, axis=1)
        np.testing.assert_allclose(score, result, rtol=1e-4, atol=1e-5)
    last = estimator_of(name, original, max_iter=1).fit(X, y)
    np.testing.assert_allclose(last.loss_curve_[0], np.ravel(value)[0], rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["half of the mean square", "scores of three", "squares of probabilities"]
)
def test_a_training_graph_of_float64(name):
    ends, width, loss = {**REGRESSION, **CLASSIFICATION}[name]
    model, y = training_graph(ends, width, loss), target_of(name, width)
    start = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    expected = descended(model, y, start, 0.05, 3)
    recast(model, TensorProto.FLOAT, TensorProto.DOUBLE)
    fitted = estimator_of(name, model, dtype="float64").fit(X.astype(np.float64), y)
    for key, array in expected.items():
        assert fitted.weights_[key].dtype == np.float64
        np.testing.assert_allclose(fitted.weights_[key], array, rtol=1e-7, atol=1e-7)


def test_short_batches_and_sample_weights_count_by_their_rows():
    """Two batches of 30 and 15 rows, with weights, as steps on their weighted rows."""
    model = training_graph(*REGRESSION["half of the mean square"])
    weight = np.linspace(0.5, 1.5, 45)
    start = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    expected = descended(model, Y, start, 0.05, 2, weight)
    fitted = estimator_of("half of the mean square", model, max_iter=2).fit(
        X, Y, sample_weight=weight
    )
    for key, array in expected.items():
        np.testing.assert_allclose(fitted.weights_[key], array, rtol=1e-5, atol=1e-5)
    named = clone(fitted).set_params(loss="squared_error", batch_size=30, shuffle=False)
    with pytest.warns(UserWarning, match="is left out: loss=None trains with it"):
        named.fit(X, Y, sample_weight=weight)
    own = clone(named).set_params(loss=None).fit(X, Y, sample_weight=weight)
    for key, array in named.weights_.items():
        np.testing.assert_allclose(own.weights_[key], array, rtol=1e-5, atol=1e-6)


def test_probabilities_are_those_of_a_log_loss():
    fitted = estimator_of("scores of three", training_graph(*CLASSIFICATION["scores of three"]))
    fitted.fit(X, target_of("scores of three", 3))
    np.testing.assert_allclose(
        fitted.predict_proba(X), softmax(fitted.decision_function(X), axis=1), atol=1e-7
    )
    other = estimator_of(
        "squares of probabilities", training_graph(*CLASSIFICATION["squares of probabilities"])
    )
    assert not hasattr(other, "predict_proba")


def test_a_step_takes_the_loss_of_the_graph():
    model = training_graph(*REGRESSION["half of the mean square"])
    start = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    step = Step(model, loss=None, batch_size=45, n_features=4, optimizer="sgd", penalty=None)
    with pytest.warns(
        UserWarning, match="The loss 'loss' of the ONNX model is left out: loss=None trains with it"
    ):
        Step(model, batch_size=45, n_features=4)
    step.step(X, Y, eta=0.05)
    for key, array in descended(model, Y, start, 0.05, 1).items():
        np.testing.assert_allclose(step.weights()[key], array, rtol=1e-5, atol=1e-5)


ROOT = "r = Sub (s, label) q = Mul (r, r) m = ReduceMean <keepdims = 0> (q) loss = Sqrt (m)"
REFUSED = {
    "is not the mean or the sum of a loss of each row": ROOT,
    "of each row. End it with ReduceMean; weights of classes are class_weight.": """r = Sub (s,
        label) q = Mul (r, r) mean = ReduceMean <keepdims = 0> (q)
        total = ReduceSum <keepdims = 0> (q) loss = Add (mean, total)""",
    "reads the weights V. Leave them out, and set penalty": """r = Sub (s, label) q = Mul (r, r)
        v = Mul (V, V)
        m = ReduceMean <keepdims = 0> (q) n = ReduceMean <keepdims = 0> (v) loss = Add (m, n)""",
    "is computed from s, X, label": """r = Sub (s, label) q = Mul (r, r) b2 = Mul (a, a)
        m = ReduceMean <keepdims = 0> (q) n = ReduceMean <keepdims = 0> (b2) loss = Add (m, n)""",
}


@pytest.mark.parametrize("message", REFUSED)
def test_losses_that_are_no_mean_of_rows_are_refused_with_ways_out(message):
    ends, width, _ = REGRESSION["half of the mean square"]
    model = training_graph(ends, width, REFUSED[message])
    with pytest.raises(
        NotTrainableError,
        match=rf"loss=None: the loss 'loss' .* {message}.*save_training_artifacts",
    ):
        OrtSGDRegressor(model, loss=None).fit(X, Y)


@pytest.mark.parametrize(
    "estimator",
    [
        None,
        training_graph("float[N, 1] label) => (float[N, 1] s)", 1, ""),
    ],
)
def test_models_without_a_loss_are_refused(estimator):
    with pytest.raises(ValueError, match="loss=None needs an estimator that is a training graph"):
        OrtSGDRegressor(estimator, loss=None).fit(X, Y)


def test_several_losses_are_refused_by_name():
    ends = "float[N, 1] label) => (float aux, float loss, float[N, 1] s)"
    body = (
        "d = Sub (s, label) q = Mul (d, d) loss = ReduceMean <keepdims = 0> (q) aux = ReduceMean "
        "<keepdims = 0> (s)"
    )
    with pytest.raises(ValueError, match=r"several losses, aux, loss\. Leave all but one out"):
        OrtSGDRegressor(training_graph(ends, 1, body), loss=None).fit(X, Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("shape", [[], [1], [1, 1], None])
@pytest.mark.parametrize("reduction", ["ReduceMean", "ReduceSum"])
def test_a_loss_is_a_mean_or_a_sum_of_any_shape(reduction, shape):
    ends, width, _ = REGRESSION["half of the mean square"]
    nodes = "r = Sub (s, label) q = Mul (r, r) loss = {} <keepdims = {}> (q)"
    expected = OrtSGDRegressor(
        training_graph(ends, width, nodes.format("ReduceMean", 0)),
        loss=None,
        max_iter=3,
        random_state=0,
    ).fit(X, Y)

    model = training_graph(ends, width, nodes.format(reduction, int(shape != [])))
    (loss,) = (o for o in model.graph.output if o.name == "loss")
    loss.type.tensor_type.ClearField("shape")
    if shape is not None:
        loss.CopyFrom(helper.make_tensor_value_info("loss", TensorProto.FLOAT, shape))
    trained = OrtSGDRegressor(model, loss=None, max_iter=3, random_state=0).fit(X, Y)
    np.testing.assert_allclose(trained.predict(X), expected.predict(X), rtol=1e-5)
