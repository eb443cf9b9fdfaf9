"""The labels that an ONNX model inside a classifier brings."""

import numpy as np
import onnx.parser
import pytest
from sklearn.datasets import load_iris

from skort import OrtSGDClassifier
from skort.estimators.data.known_labels import model_labels
from skort.exceptions import NotTrainableError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = load_iris(return_X_y=True)
X = X.astype(np.float32)
NAMES = np.array(["low", "mid", "high"])
OPTIONS = {"max_iter": 30, "random_state": 0}


def linear(labels, kind="strings"):
    """Return a linear classifier of iris with its labels in this order."""
    written = ", ".join(f'"{label}"' if kind == "strings" else str(label) for label in labels)
    zeros = ", ".join(["0.0"] * 4 * len(labels))
    node = (
        f"ai.onnx.ml.LinearClassifier <classlabels_{kind} = [{written}], coefficients = [{zeros}], "
        f'intercepts = [{", ".join(["0.0"] * len(labels))}], post_transform = "SOFTMAX"> (X)'
    )
    types = "string[N]" if kind == "strings" else "int64[N]"
    return onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 2]> m (float[N, 4] X) => '
        f"({types} label, float[N, {len(labels)}] p) {{ label, p = {node} }}"
    )


@pytest.mark.parametrize("dtype", ["U4", object])
def test_labels_keep_the_order_of_the_file(dtype, run_onnx):
    y = NAMES[Y].astype(dtype)
    model = OrtSGDClassifier(linear(NAMES), **OPTIONS).fit(X, y)
    assert model.classes_.tolist() == ["high", "low", "mid"]
    predicted = model.predict(X)
    assert model.score(X, y) > 0.8

    own = run_onnx(model.to_onnx(original=True), X=X)
    np.testing.assert_array_equal(own["label"], predicted)
    np.testing.assert_array_equal(run_onnx(model.onnx_, X=X)["label"], predicted)
    # The columns of the file are low, mid, high.
    np.testing.assert_allclose(own["p"][:, [2, 0, 1]], model.predict_proba(X), atol=1e-5)


def test_rows_may_lack_classes_of_the_file():
    few = Y < 2
    model = OrtSGDClassifier(linear([20, 10, 0], "ints"), **OPTIONS)
    assert model.fit(X[few], Y[few] * 10).classes_.tolist() == [0, 10, 20]
    batches = [(X[few], Y[few] * 10)]
    assert model.fit_batches(batches).classes_.tolist() == [0, 10, 20]

    streamed = OrtSGDClassifier(linear([20, 10, 0], "ints"), **OPTIONS)
    assert streamed.partial_fit(X[few], Y[few] * 10).classes_.tolist() == [0, 10, 20]


def test_labels_that_the_file_lacks_are_named():
    y = np.array(["low", "mid", "top"])[Y]
    message = r"y has the labels \['top'\], which the ONNX model .* \['low', 'mid', 'high'\]"
    with pytest.raises(ValueError, match=message):
        OrtSGDClassifier(linear(NAMES)).fit(X, y)
    with pytest.raises(ValueError, match=r"y has the labels \[0, 1, 2\], which the ONNX model"):
        OrtSGDClassifier(linear(NAMES)).fit(X, Y)
    with pytest.raises(ValueError, match=r"classes has the labels \['top'\], which the ONNX"):
        OrtSGDClassifier(linear(NAMES)).partial_fit(X, y, classes=["low", "mid", "top"])


def test_labels_have_the_type_of_y():
    model = linear([1, 0], "ints")
    for y in (np.array([0.0, 1.0]), np.array([False, True]), np.array([0, 1], np.uint8)):
        labels = model_labels(model, False, y)
        assert (labels.dtype, labels.tolist()) == (y.dtype, y.tolist())


def test_numbers_of_columns_stand_for_texts():
    model = linear([0, 1, 2], "ints")
    assert model_labels(model, False, NAMES) is None
    assert model_labels(model, False, None) is None
    fitted = OrtSGDClassifier(model, **OPTIONS).fit(X, NAMES[Y])
    assert fitted.classes_.tolist() == ["high", "low", "mid"]


def test_a_file_without_labels_needs_the_classes_that_rows_lack():
    weights = ", ".join(["0"] * 12)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> m (float[N, 4] X) => (float[N, 3] p) '
        f"<float[4, 3] W = {{{weights}}}> {{ z = MatMul (X, W) p = Softmax (z) }}"
    )
    with pytest.raises(NotTrainableError, match=r"'p' .* 3 columns.* y has 2 classes\. Name all"):
        OrtSGDClassifier(model).fit(X[Y < 2], Y[Y < 2])
    streamed = OrtSGDClassifier(model).partial_fit(X[Y < 2], Y[Y < 2], classes=[0, 1, 2])
    assert streamed.predict_proba(X).shape == (150, 3)


def test_a_linear_file_in_another_order_is_a_linear_model():
    y = NAMES[Y]
    model = OrtSGDClassifier(linear(NAMES), optimizer="sgd", random_state=0).fit(X, y)
    # The rows of coef_ are those of classes_: high, low, mid.
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-4, atol=1e-5)
    in_order = OrtSGDClassifier(linear(sorted(NAMES)), optimizer="sgd", random_state=0)
    in_order.fit(X, y)
    np.testing.assert_allclose(model.coef_, in_order.coef_, rtol=1e-4)

    still = {"max_iter": 1, "eta0": 1e-9, "learning_rate": "constant"}
    again = OrtSGDClassifier(linear(NAMES), **still)
    again.fit(X, y, coef_init=in_order.coef_, intercept_init=in_order.intercept_)
    np.testing.assert_allclose(again.coef_, in_order.coef_, rtol=1e-5)
