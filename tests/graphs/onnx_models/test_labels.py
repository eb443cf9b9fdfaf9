"""The labels of an ONNX classifier, in the order of its columns."""

import warnings

import numpy as np
import onnx.parser
import pytest

from skort import OrtSGDClassifier
from skort.graphs.onnx_models.onnx_score_graph import given_labels, onnx_score_graph
from skort.graphs.score_graph import ScoreSpec

THREE = "float[2, 3] W = {1, 2, 3, -1, 0, 1}"
ONE = "float[2, 1] W = {1, -1}"
ENCODER = "label = ai.onnx.ml.LabelEncoder <keys_int64s = [0, 1, 2], values_%s = [%s]> (best)"
TEXTS = ENCODER % ("strings", '"low", "mid", "high"')
BEST = "best = ArgMax <axis = 1, keepdims = 0>"


def parsed(nodes, label="string[N]", score="float[N, 3] p", weights=THREE):
    return onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 2]> m (float[N, 2] X) => '
        f"({label} label, {score}) <{weights}> {{ z = MatMul (X, W) {nodes} }}"
    )


LINEAR = (
    'label, p = ai.onnx.ml.LinearClassifier <classlabels_%s = [%s], post_transform = "%s", '
    "coefficients = [%s], intercepts = [%s]> (X)"
)


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (parsed(f"p = Softmax (z) {BEST} (z) {TEXTS}"), ["low", "mid", "high"]),
        (parsed(f"p = Softmax (z) {BEST} (p) {TEXTS}"), ["low", "mid", "high"]),
        (parsed(f"p = Identity (z) {BEST} (z) {TEXTS}"), ["low", "mid", "high"]),
        (
            parsed(f"p = Softmax (z) {BEST} (z) {ENCODER % ('int64s', '30, 10, 20')}", "int64[N]"),
            [30, 10, 20],
        ),
        (
            parsed(
                LINEAR
                % ("strings", '"b", "c", "a"', "SOFTMAX", "0.0,0.0,0.0,0.0,0.0,0.0", "0.0,0.0,0.0")
            ),
            ["b", "c", "a"],
        ),
        (
            parsed(
                LINEAR % ("strings", '"yes", "no"', "LOGISTIC", "1.0,2.0", "0.0"),
                score="float[N, 2] p",
            ),
            ["yes", "no"],
        ),
        (
            parsed(
                "p = Sigmoid (z) high = Greater (p, half) label = Not (high)",
                "bool[N, 1]",
                "float[N, 1] p",
                f"{ONE}, float half = {{0.5}}",
            ),
            [True, False],
        ),
        # The label is one of the highest score only above another threshold.
        (
            parsed(
                "p = Sigmoid (z) high = Greater (p, limit) label = Cast <to = 7> (high)",
                "int64[N, 1]",
                "float[N, 1] p",
                f"{ONE}, float limit = {{0.9}}",
            ),
            [0, 1],
        ),
    ],
    ids=["scores", "probabilities", "raw", "ints", "linear", "two", "bool", "threshold"],
)
def test_labels_are_those_of_the_columns(model, labels):
    assert given_labels(model).tolist() == labels


@pytest.mark.parametrize(
    "model",
    [
        parsed(f"p = Softmax (z) {BEST} (X) {TEXTS}"),
        parsed("p = Softmax (z) best = Cast <to = 7> (z) label = Identity (best)", "int64[N, 3]"),
        parsed("p = Softmax (z) label = Softmax (z)", "float[N, 3]"),
    ],
    ids=["labels of X", "several a row", "no labels"],
)
def test_labels_that_no_column_decides_are_not_known(model):
    assert given_labels(model) is None


def test_the_score_is_in_the_sorted_order_of_the_labels(run_onnx, rng):
    rows = rng.normal(size=(5, 2)).astype(np.float32)
    scores = rows @ [[1, 2, 3], [-1, 0, 1]]

    model = parsed(f"p = Softmax (z) {BEST} (z) {TEXTS}")
    graph = onnx_score_graph(model, ScoreSpec(2, 3, "float32", is_classifier=True))
    (found,) = run_onnx(graph.model, X=rows).values()
    np.testing.assert_allclose(found, scores[:, [2, 0, 1]], rtol=1e-5, atol=1e-6)

    nodes = LINEAR % ("strings", '"yes", "no"', "LOGISTIC", "1.0,2.0", "0.5")
    model = parsed(nodes, score="float[N, 2] p")
    graph = onnx_score_graph(model, ScoreSpec(2, 1, "float32", is_classifier=True))
    (found,) = run_onnx(graph.model, X=rows).values()
    # The single score is that of the second label, "no"; the sorted order ends with "yes".
    np.testing.assert_allclose(found, -(rows @ [[1], [2]] + 0.5), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("labels, is_sorted", [("1, 0", False), ("0, 1", True)])
def test_labels_that_the_score_does_not_decide_are_named(labels, is_sorted):
    """Whether their order matters: sorted ones are those of the columns."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        m (float[N, 2] X) => (int64[N] label, float[N, 2] score)
        <float[2, 2] W = {{1, 0, 0, 1}}, int64[1] axis = {{1}}, float zero = {{0}},
         int64[2] labels = {{{labels}}}> {{
            score = MatMul (X, W) total = ReduceSum <keepdims = 0> (X, axis)
            is_large = Greater (total, zero) position = Cast <to = 7> (is_large)
            label = Gather (labels, position)
        }}"""
    )
    X = np.random.RandomState(0).normal(size=(30, 2)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    trained = OrtSGDClassifier(model, max_iter=2, tol=None, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trained.fit(X, y)
    said = [str(w.message) for w in caught if "does not decide its labels, the" in str(w.message)]
    assert len(said) == (not is_sorted)
