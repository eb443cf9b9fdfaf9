"""Rows in the shape of an ONNX model's input, such as images, and their flattened rows."""

import pickle

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper
from sklearn.model_selection import cross_val_score

from skort import OrtSGDClassifier, OrtSGDRegressor, Step
from skort.estimators.data.row_forms import is_in_range
from skort.model_selection import OrtGridSearchCV

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SHAPE = (3, 5, 4)
_RNG = np.random.RandomState(0)
IMAGES = _RNG.normal(size=(43, *SHAPE)).astype(np.float32)
ROWS = IMAGES.reshape(43, -1)
Y = IMAGES[:, 0, 0, 0] + IMAGES.mean(axis=(1, 2, 3))
KERNEL, W = _RNG.normal(size=(7, 3, 3, 3)), _RNG.normal(size=(7, 1))
OPTIONS = {"max_iter": 3, "tol": None, "random_state": 0}


def network(sizes="3, 5, 4", loss=""):
    """Return a convolution, its mean over an image, and a linear layer."""
    inputs, outputs, loss_nodes = f"float[N, {sizes}] image", "float[N, 1] y", ""
    if loss:
        inputs, outputs = f"{inputs}, float[N, 1] label", f"float loss, {outputs}"
        loss_nodes = "e = Sub (y, label) q = Mul (e, e) loss = ReduceMean <keepdims = 0> (q)"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        net ({inputs}) => ({outputs}) <float[1] b = {{0}}> {{
            c = Conv <pads = [1, 1, 1, 1]> (image, K) r = Relu (c) p = GlobalAveragePool (r)
            f = Flatten (p) z = MatMul (f, W) y = Add (z, b) {loss_nodes}
        }}"""
    )
    arrays = (("K", KERNEL), ("W", W))
    tensors = (numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays)
    model.graph.initializer.extend(tensors)
    return model


def served(model, X):
    """Return what ONNX Runtime gives for X."""
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (given,) = session.get_inputs()
    return session.run(None, {given.name: X})[0].ravel()


# The second file says nothing of two sizes: X has them.
@pytest.mark.parametrize("sizes", ["3, 5, 4", "3, height, width"])
def test_images_train_as_their_flattened_rows_do(sizes):
    flat = OrtSGDRegressor(network(), **OPTIONS).fit(ROWS, Y)
    model = OrtSGDRegressor(network(sizes), **OPTIONS).fit(IMAGES, Y, X_val=IMAGES[:9], y_val=Y[:9])
    for name, array in flat.weights_.items():
        np.testing.assert_array_equal(model.weights_[name], array)

    assert model.n_features_in_ == 60
    expected = flat.predict(ROWS)
    for X in (IMAGES, ROWS, IMAGES.tolist()):
        np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(flat.predict(IMAGES), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(IMAGES), expected)

    # The file takes what the fit got.
    np.testing.assert_allclose(served(model.onnx_, IMAGES), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(served(flat.onnx_, ROWS), expected, rtol=1e-5, atol=1e-5)
    original = served(model.to_onnx(original=True), IMAGES)
    np.testing.assert_allclose(original, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sizes", ["3, 5, 4", "3, height, width"])
def test_streams_and_held_out_rows_take_images(sizes):
    def streamed(X):
        parts = [(X[i : i + 20], Y[i : i + 20]) for i in range(0, 43, 20)]
        model = OrtSGDRegressor(network(sizes), **OPTIONS)
        models = [OrtSGDRegressor(network(sizes), **OPTIONS).fit_batches(parts)]
        for part in parts:
            model.partial_fit(*part)
        early = OrtSGDRegressor(network(sizes), early_stopping=True, **OPTIONS).fit(X, Y)
        scored = OrtSGDRegressor(network(sizes), early_stopping=True, scoring="r2", **OPTIONS)
        return [*models, model, early, scored.fit(X, Y)]

    models = streamed(IMAGES)
    if sizes == "3, 5, 4":
        for model, flat in zip(models, streamed(ROWS), strict=True):
            np.testing.assert_array_equal(model.predict(IMAGES), flat.predict(ROWS))

    for model in models:
        expected = model.predict(IMAGES)
        np.testing.assert_allclose(served(model.onnx_, IMAGES), expected, rtol=1e-5, atol=1e-5)


def test_searches_steps_and_training_graphs_take_images():
    model = OrtSGDRegressor(network(), **OPTIONS)
    scores = cross_val_score(model, IMAGES, Y, cv=3)
    np.testing.assert_array_equal(scores, cross_val_score(model, ROWS, Y, cv=3))
    search = OrtGridSearchCV(model, {"alpha": [1e-4, 1e-2]}, cv=3).fit(IMAGES, Y)
    assert search.predict(IMAGES[:4]).shape == (4,)

    losses = [Step(network(), batch_size=20).step(X[:20], Y[:20], 0.1) for X in (IMAGES, ROWS)]
    assert losses[0] == losses[1]

    graph = OrtSGDRegressor(network(loss="yes"), loss=None, **OPTIONS)
    expected = graph.fit(ROWS, Y).predict(ROWS)
    np.testing.assert_array_equal(graph.fit(IMAGES, Y).predict(IMAGES), expected)


def test_a_classifier_takes_images():
    labels = np.where(Y > 0, "up", "down")
    model = OrtSGDClassifier(network(), **OPTIONS).fit(IMAGES, labels)
    flat = OrtSGDClassifier(network(), **OPTIONS).fit(ROWS, labels)
    np.testing.assert_array_equal(model.predict_proba(IMAGES), flat.predict_proba(ROWS))
    assert served(model.onnx_, IMAGES).tolist() == flat.predict(ROWS).tolist()


@pytest.mark.parametrize("X", [IMAGES[:, :2], IMAGES[:, :, :3], IMAGES[:, 0]])
def test_other_shapes_are_named(X):
    message = r"X has rows of the shape \(.*takes rows of the shape \(3, 5, 4\)"
    with pytest.raises(ValueError, match=message):
        OrtSGDRegressor(network()).fit(X, Y)
    fitted = OrtSGDRegressor(network(), **OPTIONS).fit(IMAGES, Y)
    with pytest.raises(ValueError, match=message):
        fitted.predict(X)


LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1.0, True), (1e30, True), (LARGEST, True), (1.01 * LARGEST, False), (1e200, False)],
)
def test_numbers_are_in_the_range_of_a_dtype(value, expected):
    for rows in ([[value]], [[0.5, -value], [1.0, 2.0]], [value, 0.0]):
        assert is_in_range(np.array(rows), np.float32) is expected
        assert is_in_range(np.array(rows), np.float64)


def test_no_rows_are_in_any_range():
    assert is_in_range(np.empty((0, 3)), np.float32)
