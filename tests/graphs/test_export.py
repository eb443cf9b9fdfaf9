"""Heads and labels of the deployable model."""

import numpy as np
import onnx
import pytest
from scipy.special import expit, softmax
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

from skort.graphs.conversion import score_graph, transformer_graph
from skort.graphs.export import classifier_model, regressor_model, with_score
from skort.runtime.installed import load


def linear(coef, dtype="float32"):
    graph = score_graph(LinearRegression(), coef.shape[0], coef.shape[1], dtype, np.random.RandomState(0))
    return graph.with_weights({"coef": coef.astype(dtype)})


def run(model, X):
    onnx.checker.check_model(model, full_check=True)
    session = load().InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, {"X": X}), strict=True))


@pytest.mark.parametrize(
    "classes",
    [
        np.array([3, 8]),
        np.array([3, 8], dtype=np.int8),
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([-1.5, 2.5]),
    ],
    ids=lambda classes: str(classes.dtype),
)
def test_binary_head(classes):
    scores = np.array([[-1e4], [-3.0], [-1e-30], [0.0], [1e-30], [0.5], [1e4]], dtype=np.float32)
    outputs = run(classifier_model(linear(np.eye(1)), classes), scores)
    assert list(outputs) == ["label", "probabilities"]
    # The label follows the score even where both probabilities round to one half.
    assert outputs["label"].tolist() == classes[(scores.ravel() > 0).astype(int)].tolist()
    expected = np.hstack([expit(-scores), expit(scores)])
    np.testing.assert_allclose(outputs["probabilities"], expected, rtol=1e-5, atol=1e-37)


def test_multiclass_head(rng):
    classes = np.array(["a", "b", "c"])
    scores = rng.normal(0, 5, size=(20, 3)).astype(np.float32)
    outputs = run(classifier_model(linear(np.eye(3)), classes), scores)
    assert outputs["label"].tolist() == classes[scores.argmax(axis=1)].tolist()
    np.testing.assert_allclose(outputs["probabilities"], softmax(scores, axis=1), rtol=1e-5)


def test_with_score_changes_no_bit_of_the_other_outputs(rng):
    for k, classes in ((1, np.array([0, 1])), (4, np.arange(4))):
        graph = linear(rng.normal(size=(30, k)))
        X = rng.normal(size=(101, 30)).astype(np.float32)
        model = classifier_model(graph, classes)
        plain, extended = run(model, X), run(with_score(model), X)
        assert list(extended) == ["label", "probabilities", "skort_score"]
        for name, value in plain.items():
            np.testing.assert_array_equal(value, extended[name])
        np.testing.assert_allclose(extended["skort_score"], X @ graph.weights()["coef"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-13)])
def test_regressor_with_transformers(dtype, rtol, rng):
    X = rng.normal(5, 3, size=(30, 4))
    scaler = StandardScaler().fit(X)
    coef = rng.normal(size=(4, 2))
    model = regressor_model(linear(coef, dtype), transformer_graph(scaler, 4, dtype))
    assert [i.name for i in model.graph.input] == ["X"]
    outputs = run(model, X.astype(dtype))
    assert list(outputs) == ["variable"]
    np.testing.assert_allclose(outputs["variable"], scaler.transform(X) @ coef, rtol=rtol, atol=10 * rtol)


def test_opset_and_ir_version_are_read_by_every_supported_runtime():
    model = regressor_model(linear(np.eye(2)))
    assert model.ir_version == 8
    assert {o.domain: o.version for o in model.opset_import} == {"": 17}
    assert model.producer_name == "skort"
