"""Heads and labels of the deployable model."""

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.linear_model import LinearRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort.graphs.export import SCORE, at_opset, classifier_model, label_tensor, regressor_model
from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.graphs.sklearn.transformers import transformer_graph
from skort.objective import Hinge, LogLoss, ModifiedHuber, PoissonLoss
from skort.runtime.sessions import InferenceModel


def linear(coef, dtype="float32"):
    graph = initial_score_graph(
        LinearRegression(), ScoreSpec(coef.shape[0], coef.shape[1], dtype), np.random.RandomState(0)
    )
    return graph.with_weights({"coef": coef.astype(dtype)})


@pytest.mark.parametrize(
    "classes",
    [
        np.array([3, 8]),
        np.array([3, 8], dtype=np.int8),
        np.array([3, 2**63 + 5], dtype=np.uint64),
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([-1.5, 2.5]),
    ],
    ids=lambda classes: str(classes.dtype),
)
def test_binary_head(classes, run_onnx):
    scores = np.array([[-1e4], [-3.0], [-1e-30], [0.0], [1e-30], [0.5], [1e4]], dtype=np.float32)
    outputs = run_onnx(
        classifier_model(linear(np.eye(1)), classes, None, LogLoss().inverse_link_function(1)),
        X=scores,
    )
    assert list(outputs) == ["label", "probabilities"]
    # The label follows the score even where both probabilities round to one half.
    assert outputs["label"].tolist() == classes[(scores.ravel() > 0).astype(int)].tolist()
    expected = np.hstack([expit(-scores), expit(scores)])
    np.testing.assert_allclose(outputs["probabilities"], expected, rtol=1e-5, atol=1e-37)


def test_multiclass_head(rng, run_onnx):
    classes = np.array(["a", "b", "c"])
    scores = rng.normal(0, 5, size=(20, 3)).astype(np.float32)
    outputs = run_onnx(
        classifier_model(linear(np.eye(3)), classes, None, LogLoss().inverse_link_function(3)),
        X=scores,
    )
    assert outputs["label"].tolist() == classes[scores.argmax(axis=1)].tolist()
    np.testing.assert_allclose(outputs["probabilities"], softmax(scores, axis=1), rtol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_modified_huber_are_those_of_sgd_classifier(n_classes, rng, run_onnx):
    # Scores from everywhere, and rows in which all are -1 or less.
    k = 1 if n_classes == 2 else n_classes
    X = np.vstack(
        [rng.uniform(-2, 2, size=(40, k)), [[-1.0] * k, [-3.0] * k, [1.0] * k, [0.0] * k]]
    )
    reference = SGDClassifier(loss="modified_huber").fit(
        rng.normal(size=(30, k)), np.arange(30) % n_classes
    )
    reference.coef_, reference.intercept_ = np.eye(k), np.zeros(k)
    model = classifier_model(
        linear(np.eye(k)), np.arange(n_classes), None, ModifiedHuber().inverse_link_function(k)
    )
    outputs = run_onnx(model, X=X.astype(np.float32))
    np.testing.assert_allclose(
        outputs["probabilities"], reference.predict_proba(X), rtol=1e-6, atol=1e-7
    )
    np.testing.assert_array_equal(outputs["label"], reference.predict(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_probabilities_there_is_one_output(n_classes, rng, run_onnx):
    k = 1 if n_classes == 2 else n_classes
    scores = rng.normal(size=(20, k)).astype(np.float32)
    model = classifier_model(
        linear(np.eye(k)), np.arange(n_classes), None, Hinge().inverse_link_function(k)
    )
    outputs = run_onnx(model, X=scores)
    assert list(outputs) == ["label"]
    expected = (scores > 0).ravel() if k == 1 else scores.argmax(axis=1)
    np.testing.assert_array_equal(outputs["label"], expected)


def test_regressor_with_an_inverse_link(rng, run_onnx):
    scores = rng.normal(size=(20, 2)).astype(np.float32)
    model = regressor_model(linear(np.eye(2)), None, PoissonLoss().inverse_link_function(2))
    np.testing.assert_allclose(run_onnx(model, X=scores)["variable"], np.exp(scores), rtol=1e-6)


def test_the_score_is_read_without_changing_a_bit_of_the_outputs(rng, run_onnx):
    for k, classes in ((1, np.array([0, 1])), (4, np.arange(4))):
        graph = linear(rng.normal(size=(30, k)))
        X = rng.normal(size=(101, 30)).astype(np.float32)
        model = classifier_model(graph, classes, None, LogLoss().inverse_link_function(k))
        with_score = InferenceModel(model, inner_results=(SCORE,))
        for name, value in run_onnx(model, X=X).items():
            np.testing.assert_array_equal(with_score.run(name, {"X": X}), value)
        np.testing.assert_allclose(
            with_score.run(SCORE, {"X": X}), X @ graph.weights()["coef"], rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[ns]"),
        np.array([b"a", b"b"]),
        np.array([1, "b"], dtype=object),
        np.array([(1, 2), (3, 4)], dtype="i,i"),
        np.array([1, 2], dtype=np.longdouble),
        np.array(["a", "\ud800"], dtype=object),
    ],
    ids=lambda classes: str(classes.dtype),
)
def test_labels_that_onnx_cannot_hold_are_named(classes):
    with pytest.raises(
        ValueError, match=r"y has labels of dtype .* Use ints, floats, bools or strings"
    ):
        label_tensor(classes)


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-13)])
def test_regressor_with_transformers(dtype, rtol, rng, run_onnx):
    X = rng.normal(5, 3, size=(30, 4))
    scaler = make_pipeline(StandardScaler()).fit(X)
    coef = rng.normal(size=(4, 2))
    model = regressor_model(linear(coef, dtype), transformer_graph(scaler, X, dtype))
    assert [i.name for i in model.graph.input] == ["X"]
    outputs = run_onnx(model, X=X.astype(dtype))
    assert list(outputs) == ["variable"]
    np.testing.assert_allclose(
        outputs["variable"], scaler.transform(X) @ coef, rtol=rtol, atol=10 * rtol
    )


def test_opset_and_ir_version_are_read_by_every_supported_runtime(rng):
    X = rng.normal(size=(30, 2))
    scaler = transformer_graph(make_pipeline(StandardScaler()).fit(X), X, "float32")
    for model, opsets in (
        (regressor_model(linear(np.eye(2))), [("", 17)]),
        (classifier_model(linear(np.eye(2)), np.arange(2)), [("", 17)]),
        (regressor_model(linear(np.eye(2)), scaler), [("", 17)]),
        (classifier_model(linear(np.eye(2)), np.arange(2), scaler), [("", 17)]),
    ):
        assert model.ir_version == 8
        assert sorted((o.domain, o.version) for o in model.opset_import) == opsets
        assert model.producer_name == "skort"


@pytest.mark.parametrize("opset, ir_version", [(13, 8), (15, 8), (17, 8), (18, 8), (19, 9)])
def test_other_opsets(opset, ir_version, rng, run_onnx):
    X = rng.normal(size=(30, 2)).astype(np.float32)
    scaler = transformer_graph(make_pipeline(StandardScaler()).fit(X), X, "float32")
    model = classifier_model(linear(np.eye(2)), np.arange(2), scaler)
    other = at_opset(model, opset)
    assert [(o.domain, o.version) for o in other.opset_import] == [("", opset)]
    assert other.ir_version == ir_version
    for name, values in run_onnx(model, X=X).items():
        np.testing.assert_array_equal(run_onnx(other, X=X)[name], values)
    assert model.opset_import[0].version == 17


@pytest.mark.parametrize("opset", [12, 999, "17"])
def test_an_opset_that_cannot_be_written_is_named(opset):
    with pytest.raises(ValueError, match=f"cannot be written with target_opset={opset!r}"):
        at_opset(regressor_model(linear(np.eye(2))), opset)
