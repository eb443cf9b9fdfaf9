"""
The four files, trained by ONNX Runtime's own classes:
the weights are those that skort would reach.
"""

import copy
import types

import numpy as np
import onnx
import onnx.parser
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.artifacts import OnDeviceTraining, load_checkpoint, save_training_artifacts
from skort.exceptions import NotTrainableError, RuntimeNotAvailableError
from skort.objective import ConcomitantHuber, Huber, Loss, Penalty, SquaredError, WeightedSum
from skort.onnx_models import objective_graph
from skort.optimizers import Adam, Momentum
from skort.runtime import checkpoint_file
from skort.runtime.checkpoint_file import VERSIONS, read_checkpoint, release_here
from skort.runtime.installed import load, training_api

TRAINS = "Module" in training_api()
needs_training = pytest.mark.skipif(not TRAINS, reason="this runtime is no build for training")
HERE = release_here()
N, BATCH, ETA = 200, 20, 0.05

generator = np.random.default_rng(0)
X = (generator.normal(size=(N, 5)) * [1, 2, 0.5, 1, 1] + [0, 1, 0, -2, 0]).astype(np.float32)
score = X @ generator.normal(size=5) + 0.3 * generator.normal(size=N)
y = (score + 1).astype(np.float32)
counts = generator.poisson(np.exp(np.clip(score / 4, -2, 2))).astype(np.float32)
two, three = (score > 0).astype(int), np.digitize(score, [-1, 1])
names = np.array(["blue", "green", "red"])[three]
OPTIONS = {
    "learning_rate": "constant",
    "eta0": ETA,
    "batch_size": BATCH,
    "shuffle": False,
    "tol": None,
}
OPTIONS |= {"random_state": 0, "max_iter": 1, "optimizer": "sgd"}

log_cosh = Loss("""
log_cosh (score, target) => (loss) {
    one = Constant <value = float {1.0}> ()
    minus_two = Constant <value = float {-2.0}> ()
    residual = Sub (score, target)
    distance = Abs (residual)
    exponent = Mul (minus_two, distance)
    small = Exp (exponent)
    ratio = Add (one, small)
    log_ratio = Log (ratio)
    loss = Add (distance, log_ratio)
}""")

cube = """
cube (weight) => (penalty) {
    distance = Abs (weight)
    square = Mul (weight, weight)
    cube = Mul (distance, square)
    penalty = ReduceSum <keepdims = 0> (cube)
}"""


def encoded(model, y):
    """Return y as a device gives it."""
    if not hasattr(model, "classes_"):
        return y.reshape(len(y), -1)
    if y.ndim == 2:
        return y
    if len(model.classes_) == 2:
        return (y == model.classes_[1])[:, None]
    return y[:, None] == model.classes_


def train(folder, X, target, n_epochs, eta=ETA, batch_size=BATCH):
    training = OnDeviceTraining(folder)
    training.learning_rate = eta
    for _ in range(n_epochs):
        for begin in range(0, len(target), batch_size):
            batch = slice(begin, begin + batch_size)
            training.train_step(X[batch], target[batch])
    return training


def network(**options):
    return MLPRegressor(hidden_layer_sizes=(6,), **options)


NORMALIZED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 5] X) => (float[N, 1] y)
    <float[2] s = {1, 2}, float[2] b = {0, 1}, float[2] mean = {0.5, 0.25}, float[2] var = {1.5, 2},
    float[5, 2] W = {1, 0, 0, 1, 1, 1, 0.5, 0, 0, 0.5}, float[2, 1] V = {1, 1}, float[1] c = {0}>
{
    h = MatMul(X, W)
    n = BatchNormalization(h, s, b, mean, var)
    r = Relu(n)
    p = MatMul(r, V)
    y = Add(p, c)
}"""

MODELS = {
    "linear": (OrtSGDRegressor(LinearRegression()), y),
    "two outputs": (OrtSGDRegressor(LinearRegression()), np.stack([y, -y + 1], axis=1)),
    "l2": (OrtSGDRegressor(LinearRegression(), penalty="l2", alpha=0.1), y),
    "network": (OrtSGDRegressor(network(alpha=0.01)), y),
    "batch normalization": (OrtSGDRegressor(onnx.parser.parse_model(NORMALIZED)), y),
    "tanh": (OrtSGDRegressor(network(activation="tanh")), y),
    "huber": (OrtSGDRegressor(LinearRegression(), loss="huber", epsilon=1.0), y),
    "loss with weights": (
        OrtSGDRegressor(LinearRegression(), loss=ConcomitantHuber(), eta0=0.01),
        y,
    ),
    "quantile": (OrtSGDRegressor(LinearRegression(), loss="quantile", quantile=0.3), y),
    "sum of losses": (
        OrtSGDRegressor(loss=WeightedSum([(0.4, SquaredError()), (0.6, Huber(epsilon=1.0))])),
        y,
    ),
    "own penalty": (OrtSGDRegressor(LinearRegression(), penalty=Penalty(cube, alpha=0.05)), y),
    "derived loss": (OrtSGDRegressor(LinearRegression(), loss=log_cosh), y),
    "log link": (OrtSGDRegressor(PoissonRegressor(alpha=0.1), eta0=0.01), counts),
    "two classes": (OrtSGDClassifier(LogisticRegression()), two),
    "perceptron": (OrtSGDClassifier(loss="perceptron"), two),
    "hinge": (OrtSGDClassifier(loss="hinge"), two),
    "three classes": (OrtSGDClassifier(MLPClassifier((6,))), names),
    "labels": (
        OrtSGDClassifier(MLPClassifier((6,))),
        np.stack([two, 1 - two, three > 1], axis=1).astype(int),
    ),
}


@needs_training
@pytest.mark.parametrize("batch_size", [BATCH, None])
@pytest.mark.parametrize("standardize", [False, "auto"])
@pytest.mark.parametrize("case", MODELS)
def test_60_steps_of_sgd_reach_the_weights_of_skort(case, standardize, batch_size, tmp_path):
    estimator, y = copy.deepcopy(MODELS[case])
    eta = estimator.eta0 if isinstance(estimator.eta0, float) else ETA
    # The calls below repeat the rows, which a stream would count for its penalty.
    estimator.set_params(**OPTIONS | {"eta0": eta, "standardize": standardize, "n_total": len(X)})
    estimator.fit(X, y)
    save_training_artifacts(estimator, tmp_path, batch_size=batch_size, ort_version=HERE)
    target = encoded(estimator, y)
    training = train(tmp_path, X, target, 6, eta)
    training.save_checkpoint(tmp_path / "checkpoint")
    back = load_checkpoint(tmp_path, estimator)

    inside = copy.deepcopy(estimator)
    for _ in range(6):
        inside.partial_fit(X, y)
    for name, weights in inside.weights_.items():
        scale = max(1.0, np.abs(weights).max())
        np.testing.assert_allclose(back.weights_[name], weights, atol=2e-6 * scale, err_msg=name)
    assert not all(np.array_equal(w, estimator.weights_[name]) for name, w in back.weights_.items())
    # The loss is the objective in units of y.
    assert training.eval_step(X, target)["loss"] == pytest.approx(
        inside_objective(back, X, y), rel=1e-4
    )


def inside_objective(model, X, y):
    """
    Return what a training of one more epoch, in one batch at a negligible rate,
    says of the objective.
    """
    other = copy.deepcopy(model).set_params(batch_size=len(X), eta0=1e-12)
    return other.partial_fit(X, y).loss_


@needs_training
@pytest.mark.parametrize("batch_size", [BATCH, None])
@pytest.mark.parametrize(
    "inner", [LinearRegression(), network(alpha=0.01)], ids=["linear", "network"]
)
def test_60_steps_of_adam_reach_the_weights_of_skort(inner, batch_size, tmp_path):
    options = OPTIONS | {"optimizer": "adam", "eta0": 0.01, "standardize": False}
    first = OrtSGDRegressor(inner, **options).fit(X, y)
    save_training_artifacts(
        first, tmp_path, optimizer="AdamW", batch_size=batch_size, ort_version=HERE
    )
    weights = train(tmp_path, X, y[:, None], 6, 0.01).weights()
    model = FrozenEstimator(first.to_sklearn())
    inside = OrtSGDRegressor(model, **options | {"max_iter": 6, "early_stopping": False}).fit(X, y)
    for name, expected in inside.weights_.items():
        np.testing.assert_allclose(weights[name], expected, atol=1e-5)


@needs_training
@pytest.mark.parametrize("case", MODELS)
def test_the_exported_model_predicts_as_the_estimator(case, tmp_path):
    estimator, y = copy.deepcopy(MODELS[case])
    estimator.set_params(**OPTIONS).fit(X, y)
    save_training_artifacts(estimator, tmp_path, batch_size=BATCH, ort_version=HERE)
    training = train(tmp_path, X, encoded(estimator, y), 1)
    training.save_checkpoint(tmp_path / "trained")
    training.export_model_for_inferencing(tmp_path / "model.onnx")
    back = load_checkpoint(tmp_path / "trained", estimator)
    back.save_onnx(tmp_path / "saved.onnx")
    # Another number of rows than that of the training.
    theirs, ours = (run(tmp_path / name, {"X": X[:7]}) for name in ("model.onnx", "saved.onnx"))
    assert theirs.keys() == ours.keys()
    for name, values in ours.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(theirs[name], values, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(theirs[name], values)


def run(path, inputs):
    session = load().InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(
        zip([o.name for o in session.get_outputs()], session.run(None, inputs), strict=True)
    )


@needs_training
@pytest.mark.parametrize("batch_size", [BATCH, None])
def test_steps_of_a_pipeline_run_on_the_device(batch_size, tmp_path):
    colours = generator.choice(["a", "b"], size=(N, 1))
    table = np.concatenate([X[:, :2].astype(object), colours], axis=1)
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(table, columns=["u", "v", "colour"]).astype(
        {"u": np.float32, "v": np.float32}
    )
    steps = make_pipeline(
        ColumnTransformer([("text", OneHotEncoder(), ["colour"])], remainder="passthrough"),
        LinearRegression(),
    )
    frozen = make_pipeline(
        *(FrozenEstimator(step.fit(table, y)) for step in [steps[0]]), LinearRegression()
    )
    estimator = OrtSGDRegressor(frozen, **OPTIONS).fit(table, y)
    save_training_artifacts(estimator, tmp_path, batch_size=batch_size, ort_version=HERE)
    training = OnDeviceTraining(tmp_path)
    assert training.input_names == ["u", "v", "colour", "target"]
    training.learning_rate = ETA
    columns = [table[name].to_numpy()[:, None] for name in ("u", "v", "colour")]
    with pytest.raises(ValueError, match=r"u has the shape|the same number of rows"):
        training.train_step(*(column[: BATCH - 1] for column in columns), y[:BATCH, None])
    for _ in range(6):
        for begin in range(0, N, BATCH):
            training.train_step(
                *(column[begin : begin + BATCH] for column in (*columns, y[:, None]))
            )
    training.save_checkpoint(tmp_path / "checkpoint")
    back = load_checkpoint(tmp_path, estimator)
    for _ in range(6):
        estimator.partial_fit(table, y)
    np.testing.assert_allclose(back.predict(table), estimator.predict(table), atol=1e-5)


@needs_training
def test_a_pipeline_of_texts_takes_texts(tmp_path):
    texts, target = (
        np.array(["good film", "bad film", "good book", "a bad book"] * 5),
        np.array([1.0, -1, 1, -2] * 5),
    )
    model = make_pipeline(TfidfVectorizer(), LinearRegression())
    estimator = OrtSGDRegressor(model, **OPTIONS, standardize=False).fit(texts, target)
    save_training_artifacts(estimator, tmp_path, batch_size=BATCH, ort_version=HERE)
    training = OnDeviceTraining(tmp_path)
    training.learning_rate = ETA
    for _ in range(3):
        training.train_step(texts.reshape(-1, 1), target[:, None])
    training.save_checkpoint(tmp_path / "checkpoint")
    back, inside = load_checkpoint(tmp_path, estimator), copy.deepcopy(estimator)
    frozen = make_pipeline(
        FrozenEstimator(TfidfVectorizer().fit(texts)), FrozenEstimator(inside.to_sklearn()[-1])
    )
    inside = OrtSGDRegressor(frozen, **OPTIONS | {"max_iter": 3}, standardize=False).fit(
        texts, target
    )
    np.testing.assert_allclose(back.predict(texts), inside.predict(texts), rtol=1e-5)


@needs_training
def test_class_weights_are_given_with_the_rows(tmp_path):
    estimator = OrtSGDClassifier(class_weight={0: 0.5, 1: 1.5}, **OPTIONS, standardize=False).fit(
        X, two
    )
    save_training_artifacts(
        estimator, tmp_path, batch_size=BATCH, sample_weight=True, ort_version=HERE
    )
    training = OnDeviceTraining(tmp_path)
    training.learning_rate = ETA
    weights = np.where(two == 1, 1.5, 0.5)
    for begin in range(0, N, BATCH):
        training.train_step(
            *(a[begin : begin + BATCH] for a in (X, two[:, None], weights[:, None]))
        )
    estimator.partial_fit(X, two)
    np.testing.assert_allclose(
        training.weights()["coef"].ravel(), estimator.coef_.ravel(), atol=1e-6
    )


@needs_training
def test_sample_weights_are_an_input(tmp_path):
    weights = generator.uniform(0.5, 1.5, size=N).astype(np.float32)
    weights /= weights.mean()
    estimator = OrtSGDRegressor(LinearRegression(), **OPTIONS, standardize=False).fit(
        X, y, sample_weight=weights
    )
    save_training_artifacts(
        estimator, tmp_path, batch_size=BATCH, sample_weight=True, ort_version=HERE
    )
    training = OnDeviceTraining(tmp_path)
    assert training.input_names == ["X", "target", "sample_weight"]
    training.learning_rate = ETA
    for begin in range(0, N, BATCH):
        training.train_step(*(a[begin : begin + BATCH] for a in (X, y[:, None], weights[:, None])))
    estimator.partial_fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(training.weights()["coef"].ravel(), estimator.coef_, rtol=1e-5)


TWO_OUTPUTS = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
pair (float[N, 5] X) => (float[N, 1] output1, float[N, 2] output2)
<float[5, 1] weight1 = {1,1,1,1,1}, float[5, 2] weight2 = {1,1,1,1,1,1,1,1,1,1},
 float[1] bias1 = {1}, float[2] bias2 = {0, 2}, float[5] scales = {1,2,1,1,1}>
{
    scaled = Mul (X, scales)
    product1 = MatMul (scaled, weight1)
    output1 = Add (product1, bias1)
    product2 = MatMul (scaled, weight2)
    output2 = Add (product2, bias2)
}""")


@needs_training
@pytest.mark.parametrize("batch_size", [BATCH, None])
def test_a_weighted_sum_over_two_outputs(batch_size, tmp_path):
    """The gradient in closed form: loss = 0.4 * mean(r1^2) / 2 + 0.6 * mean(r2^2) / 2."""
    loss = {"output1": (0.4, SquaredError()), "output2": (0.6, "squared_error")}
    options = {
        "loss": loss,
        "batch_size": batch_size,
        "ort_version": HERE,
        "additional_output_names": ["output2"],
    }
    save_training_artifacts(TWO_OUTPUTS, tmp_path, **options)
    training = OnDeviceTraining(tmp_path)
    assert training.input_names == ["X", "target_output1", "target_output2"]
    assert training.output_names == ["loss", "output2"]
    training.learning_rate = 0.1
    rows, targets = X[:BATCH], (y[:BATCH, None], np.stack([y, -y], axis=1)[:BATCH])
    outputs = training.train_step(rows, *targets)
    scaled = rows * np.array([1, 2, 1, 1, 1], np.float32)
    predictions = scaled @ np.ones((5, 1)) + 1, scaled @ np.ones((5, 2)) + [0, 2]
    residuals = [p - t for p, t in zip(predictions, targets, strict=True)]
    assert outputs["loss"] == pytest.approx(
        0.2 * np.mean(residuals[0] ** 2) + 0.3 * np.mean(residuals[1] ** 2)
    )
    np.testing.assert_allclose(outputs["output2"], predictions[1], rtol=1e-5)
    weights = training.weights()
    assert weights.keys() == {"weight1", "bias1", "weight2", "bias2"}
    for i, share in ((0, 0.4), (1, 0.6)):
        gradient = share * residuals[i] / residuals[i].size
        np.testing.assert_allclose(
            weights[f"weight{i + 1}"], 1 - 0.1 * scaled.T @ gradient, rtol=1e-4
        )
        bias = ([1], [0, 2])[i] - 0.1 * gradient.sum(axis=0)
        np.testing.assert_allclose(weights[f"bias{i + 1}"], bias, rtol=1e-4, atol=1e-6)


@needs_training
@pytest.mark.parametrize("name", ["mean", "loss", "skort_objective"])
def test_a_model_may_bring_its_own_loss(name, tmp_path):
    model = onnx.parser.parse_model(
        """
<ir_version: 8, opset_import: ["" : 17]>
loss (float[N, 5] X, float[N, 1] y) => (float mean) <float[5, 1] coef = {0, 0, 0, 0, 0}>
{ score = MatMul (X, coef)  residual = Sub (score, y)  square = Mul (residual, residual)
  mean = ReduceMean <keepdims = 0> (square) }""".replace("mean", name)
    )
    save_training_artifacts(
        model, tmp_path, loss=None, batch_size=BATCH, optimizer="SGD", ort_version=HERE
    )
    training = OnDeviceTraining(tmp_path)
    training.learning_rate = 0.01
    assert training.input_names == ["X", "y"]
    rows, target = X[:BATCH], y[:BATCH, None]
    assert training.train_step(rows, target)["loss"] == pytest.approx(np.mean(target**2), rel=1e-5)
    np.testing.assert_allclose(
        training.weights()["coef"], 0.02 * rows.T @ target / BATCH, rtol=1e-4
    )


@needs_training
def test_the_graph_of_an_objective_is_its_own_loss(tmp_path):
    objective = objective_graph(fitted, "squared_error")
    save_training_artifacts(objective, tmp_path, loss=None, batch_size=BATCH, ort_version=HERE)
    training = OnDeviceTraining(tmp_path)
    assert training.input_names == ["X", "skort_target", "skort_sample_weight"]
    rows, target, weight = X[:BATCH], y[:BATCH, None], np.full((BATCH, 1), 1 / BATCH, np.float32)
    residual = fitted.predict(rows)[:, None] - target
    loss = training.train_step(rows, target, weight)["loss"]
    assert loss == pytest.approx(0.5 * np.mean(residual**2), rel=1e-4)
    (change,) = (w - fitted.coef_[:, None] for w in training.weights().values() if w.size == 5)
    np.testing.assert_allclose(change, -0.001 * rows.T @ residual / BATCH, rtol=1e-2, atol=1e-6)


DROPOUT = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
network (float[N, 1] X) => (float[N, 1] score)
<float[1, 4] a = {1, 1, 1, 1}, float[4, 1] b = {1, 2, 3, 4}, float ratio = {0.5},
bool training = {1}>
{ product = MatMul (X, a)  dropped = Dropout (product, ratio, training)
score = MatMul (dropped, b) }""")


@needs_training
def test_a_dropout_draws_masks_in_training_steps_only(tmp_path):
    save_training_artifacts(DROPOUT, tmp_path, loss="squared_error", ort_version=HERE)
    training = OnDeviceTraining(tmp_path)
    training.learning_rate = 0.0
    rows, target = np.ones((1000, 1), np.float32), np.zeros((1000, 1), np.float32)
    # A sum of a thousand numbers in float32
    assert training.eval_step(rows, target)["loss"] == pytest.approx(50, rel=1e-5)
    # A score is the sum of 2 b where a coin says so: its square has the mean 10^2 + 1 + 4 + 9 + 16.
    losses = [float(training.train_step(rows, target)["loss"]) for _ in range(20)]
    assert np.std(losses) > 0
    assert np.mean(losses) == pytest.approx(65, rel=0.03)
    training.learning_rate = 0.01
    for _ in range(200):
        training.train_step(rows, target + 1)
    assert training.eval_step(rows, target + 1)["loss"] < 0.1


def test_skorts_rules_draw_no_masks(tmp_path):
    with pytest.raises(
        NotTrainableError, match=r"the operator Dropout between .* try batch_size=None"
    ):
        save_training_artifacts(DROPOUT, tmp_path, loss="squared_error", batch_size=4)


@needs_training
def test_only_the_named_weights_are_trained(tmp_path):
    estimator = OrtSGDRegressor(network(), **OPTIONS).fit(X, y)
    save_training_artifacts(estimator, tmp_path, trainable="*1", batch_size=BATCH, ort_version=HERE)
    training = train(tmp_path, X, y[:, None], 1)
    assert list(training.weights()) == ["coefficient1", "intercepts1"]
    training.save_checkpoint(tmp_path / "checkpoint")
    back = load_checkpoint(tmp_path, estimator)
    moved = {
        name
        for name, w in back.weights_.items()
        if not np.allclose(w, estimator.weights_[name], rtol=1e-6)
    }
    assert moved == {"coefficient1", "intercepts1"}


def test_prefix_and_no_optimizer(tmp_path):
    estimator = OrtSGDRegressor(**OPTIONS).fit(X, y)
    save_training_artifacts(
        estimator, tmp_path / "new", batch_size=4, optimizer=None, prefix="line_"
    )
    files = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert files == ["line_checkpoint", "line_eval_model.onnx", "line_training_model.onnx"]
    back = load_checkpoint(tmp_path / "new", estimator, prefix="line_")
    np.testing.assert_allclose(back.coef_, estimator.coef_, rtol=1e-6)


def test_the_models_are_of_one_opset_whatever_the_model_was(tmp_path):
    newer = onnx.version_converter.convert_version(TWO_OUTPUTS, 18)
    save_training_artifacts(newer, tmp_path, loss={"output1": (1.0, "huber")}, batch_size=3)
    for name in ("training_model", "eval_model", "optimizer_model"):
        model = onnx.load(tmp_path / f"{name}.onnx")
        assert {o.domain: o.version for o in model.opset_import}[""] == 17
        assert model.ir_version == 8


@pytest.mark.parametrize(
    ("installed", "api", "version"),
    [
        ("1.16.3", {"Module"}, 1),
        ("1.17.1", {"Module"}, 1),
        ("1.18.0", {"Module"}, 2),
        ("1.19.2", {"Module"}, 2),
        ("1.16.3", {}, 2),
        ("1.22.0", {}, 2),
    ],
)
def test_the_default_release_is_that_of_the_build_for_training_else_the_newest(
    installed, api, version, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        checkpoint_file, "load", lambda: types.SimpleNamespace(__version__=installed)
    )
    monkeypatch.setattr(checkpoint_file, "training_api", lambda: api)
    save_training_artifacts(fitted, tmp_path, batch_size=4)
    assert read_checkpoint((tmp_path / "checkpoint").read_bytes()).version == version


def test_without_any_runtime_the_default_release_is_the_newest(monkeypatch):
    def training_api():
        raise RuntimeNotAvailableError("No ONNX Runtime is installed")

    monkeypatch.setattr(checkpoint_file, "training_api", training_api)
    assert checkpoint_file.release_of_devices() == "1.19"


@pytest.mark.skipif(TRAINS, reason="this runtime is a build for training")
def test_any_batch_size_takes_a_build_for_training(tmp_path):
    estimator = OrtSGDRegressor(**OPTIONS).fit(X, y)
    with pytest.raises(
        RuntimeNotAvailableError, match=r"batch_size=None.*has no GradientGraphBuilder"
    ):
        save_training_artifacts(estimator, tmp_path)
    assert list(tmp_path.iterdir()) == []


fitted = OrtSGDRegressor(**OPTIONS).fit(X, y)
WRONG = {
    "ort_format": (
        fitted,
        {"ort_format": True},
        "ort_format=True is not possible: the files are ONNX",
    ),
    "nominal": (
        fitted,
        {"nominal_checkpoint": True},
        "nominal_checkpoint=True is not possible: a checkpoint without values",
    ),
    "custom": (fitted, {"custom_op_library": "a.so"}, "custom_op_library='a.so' is not possible"),
    "batch_size": (fitted, {"batch_size": 0}, "batch_size must be an int > 0, or None, got 0"),
    "version": (
        fitted,
        {"ort_version": "1.15"},
        r"ort_version must be one of \['auto', '1.16', .*\], got '1.15'",
    ),
    "optimizer": (
        fitted,
        {"optimizer": Momentum()},
        r'optimizer must be "SGD", "AdamW".*Momentum\(\)',
    ),
    "loss": (fitted, {"loss": "huber"}, "loss='huber': an estimator has its own"),
    "weight": (
        fitted,
        {"trainable": ["w*"]},
        r"trainable=\['w\*'\] matches no weight. The weights are \['coef",
    ),
    "no name": (fitted, {"trainable": 3}, "trainable must be names or patterns of weights, got 3"),
    "loss array": (fitted, {"loss": np.ones(2)}, "an estimator has its own"),
    "bool": (fitted, {"batch_size": True}, "batch_size must be an int > 0, or None, got True"),
    "dtype": (
        OrtSGDRegressor(dtype="float64", **OPTIONS).fit(X, y),
        {},
        'dtype="float64": on-device training is in',
    ),
    "l1": (
        OrtSGDRegressor(penalty="l1", alpha=0.1, **OPTIONS).fit(X, y),
        {},
        "penalty='l1' has an l1 term",
    ),
    "class weights": (
        OrtSGDClassifier(class_weight="balanced", **OPTIONS).fit(X, two),
        {},
        "class_weight='balanced' is a part of the sample weights: use sample_weight=True",
    ),
    "decay": (
        fitted,
        {"optimizer": Adam(weight_decay=0.5)},
        r"Adam\(weight_decay=0.5\): .*intercepts.*weight_decay=0",
    ),
    "sklearn": (LinearRegression(), {}, r"OrtSGDRegressor\(FrozenEstimator\(model\)\)"),
    "no loss": (TWO_OUTPUTS, {}, 'loss="auto" is for estimators'),
    "two outputs": (
        TWO_OUTPUTS,
        {"loss": "huber"},
        r"the model has the outputs \['output1', 'output2'\]. Give a dict",
    ),
    "output": (
        TWO_OUTPUTS,
        {"loss": {"out": (1, "huber")}},
        r"loss: the model has no outputs \['out'\]",
    ),
    "no pair": (
        TWO_OUTPUTS,
        {"loss": {"output1": "huber"}},
        r"loss\['output1'\] must be \(weight, loss\), with a finite weight",
    ),
    "class": (
        TWO_OUTPUTS,
        {"loss": {"output1": (1, 3)}},
        "loss must be a name or an instance, got 3",
    ),
    "no losses": (TWO_OUTPUTS, {"loss": {}}, r"loss: the model has no outputs \{\}"),
    "class of losses": (
        TWO_OUTPUTS,
        {"loss": {"output1": (1, SquaredError)}},
        "loss must be a name or an instance, got .*SquaredError",
    ),
    "rows": (
        TWO_OUTPUTS,
        {"loss": None},
        r"first output 'output1' must be the loss.*shape \(any, 1\). Give a loss",
    ),
    "unknown loss": (
        TWO_OUTPUTS,
        {"loss": {"output1": (1, "hubert")}},
        "loss must be one of .*huber.*, got 'hubert'",
    ),
    "weights of the loss": (
        TWO_OUTPUTS,
        {"loss": {"output1": (1, ConcomitantHuber())}},
        "has weights of its own",
    ),
    "result": (
        fitted,
        {"additional_output_names": ["there"]},
        r"the model has no results \['there'\]",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_parameters_are_named_and_nothing_is_written(case, tmp_path):
    model, options, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        save_training_artifacts(model, tmp_path, **{"batch_size": 4} | options)
    assert list(tmp_path.iterdir()) == []


def test_an_operator_without_a_rule_is_named(tmp_path):
    model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
rounded (float[N, 2] X) => (float[N, 1] score) <float[2, 1] coef = {1, 2}>
{ product = MatMul (X, coef)  score = Round (product) }""")
    with pytest.raises(
        NotTrainableError,
        match="No gradient goes through the operator Round between a parameter and",
    ):
        save_training_artifacts(model, tmp_path, loss="squared_error", batch_size=4)


@pytest.mark.parametrize("name", ["target", "loss", "sample_weight"])
@pytest.mark.parametrize("inputs", ["{} coef", "X {}"])
def test_a_name_of_the_models_that_artifacts_add_is_refused(inputs, name, tmp_path):
    rows, coef = inputs.format(name).split()
    model = onnx.parser.parse_model(f"""
<ir_version: 8, opset_import: ["" : 17]>
line (float[N, 5] {rows}) => (float[N, 1] score) <float[5, 1] {coef} = {{1, 2, 3, 4, 5}}>
{{ score = MatMul ({rows}, {coef}) }}""")
    estimator = OrtSGDRegressor(model, **OPTIONS).fit(X, y)
    for each, loss in ((model, "squared_error"), (estimator, "auto")):
        with pytest.raises(
            ValueError, match=rf"results named \['{name}'\], which artifacts add: rename them"
        ):
            save_training_artifacts(each, tmp_path, loss=loss, batch_size=4, sample_weight=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["coef", "label", "variable"])
def test_a_column_with_a_name_inside_the_model_is_refused(name, tmp_path):
    rows = pd.DataFrame(X[:, :2], columns=[name, "other"])
    model = make_pipeline(StandardScaler(), LinearRegression())
    estimator = OrtSGDRegressor(model, **OPTIONS).fit(rows, y)
    with pytest.raises(ValueError, match=f"^X has a column named '{name}', which is also a name"):
        save_training_artifacts(estimator, tmp_path, batch_size=4)
    assert list(tmp_path.iterdir()) == []


def test_a_result_that_is_named_like_those_of_skort_is_refused(tmp_path):
    model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
line (float[N, 2] X) => (float[N, 1] skort_score) <float[2, 1] coef = {1, 2}> {
skort_score = MatMul (X, coef) }""")
    with pytest.raises(ValueError, match=r"named \['skort_score'\]: rename them"):
        save_training_artifacts(model, tmp_path, loss="squared_error", batch_size=4)


def test_a_fixed_number_of_rows_is_the_batch_size(tmp_path):
    model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
line (float[8, 2] X) => (float[8, 1] score) <float[2, 1] coef = {1, 2}> {
score = MatMul (X, coef) }""")
    with pytest.raises(
        ValueError, match=r"batch_size=None: the input 'X' has 8 rows\. Use batch_size=8, or export"
    ):
        save_training_artifacts(model, tmp_path, loss="squared_error")
    save_training_artifacts(model, tmp_path, loss="squared_error", batch_size=8)


@needs_training
def test_a_weight_that_the_loss_does_not_need_is_named(tmp_path):
    model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
line (float[N, 2] X) => (float[N, 1] score) <float[2, 1] coef = {1, 2}, float[2] unused = {1, 2}>
{ score = MatMul (X, coef) }""")
    with pytest.raises(
        NotTrainableError, match="ONNX Runtime does not differentiate the model: unused "
    ) as info:
        save_training_artifacts(model, tmp_path, loss="squared_error", trainable="*")
    assert ".cc:" not in str(info.value)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError, match="file'"):
        save_training_artifacts(fitted, tmp_path / "file", batch_size=4)


@needs_training
def test_adam_of_ones_own(tmp_path):
    save_training_artifacts(
        fitted, tmp_path, optimizer=Adam(beta_1=0.5, epsilon=1e-3), ort_version=HERE
    )
    (node,) = onnx.load(tmp_path / "optimizer_model.onnx").graph.node
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert node.op_type == "AdamWOptimizer"
    assert (attributes["alpha"], attributes["beta"]) == (0.5, pytest.approx(0.999))
    assert attributes["epsilon"] == pytest.approx(1e-3)
    assert VERSIONS[HERE] in (1, 2)


@pytest.mark.parametrize("trainable", [None, ["V"], ["s", "b"]], ids=str)
def test_a_batch_normalization_does_not_hide_the_shape_of_the_score(trainable, tmp_path):
    model = onnx.parser.parse_model(NORMALIZED)
    options = {"loss": "squared_error", "trainable": trainable}
    save_training_artifacts(model, tmp_path, batch_size=BATCH, **options)
    read = read_checkpoint((tmp_path / "checkpoint").read_bytes())
    assert sorted(read.trainable) == sorted(trainable or ["V", "W", "b", "c", "s"])
