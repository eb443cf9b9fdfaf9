"""The rows on which a conversion is compared with scikit-learn, and the comparison."""

import numpy as np
import onnx
import pandas as pd
import pytest
import scipy.sparse
from onnx import helper
from sklearn.feature_extraction.text import CountVectorizer

from skort.common.onnx_text import IR_VERSION, OPSET
from skort.graphs.sklearn.conversion import to_onnx
from skort.graphs.sklearn.conversion_check import Difference, UnlikeError, largest_difference, sample
from skort.graphs.sklearn.raw_inputs import raw_inputs
from skort.runtime.inference import InferenceModel


@pytest.mark.parametrize("n, rows", [(1, [0]), (100, range(100)), (101, range(0, 101, 2)), (1000, range(0, 1000, 10))])
def test_a_sample_is_a_copy_of_rows_from_end_to_end(n, rows):
    X = np.arange(n)[:, None]
    np.testing.assert_array_equal(sample(X).ravel(), rows)
    sample(X)[...] = -1
    assert X.min() == 0


def test_a_sample_of_text_has_rows_of_every_character():
    texts = [f"text {i}" for i in range(1000)]
    texts[1], texts[333], texts[501], texts[777] = "é", "plain", "éü", "ü é"
    rare = [texts[1], texts[501]]
    for X in (texts, np.array(texts, dtype=object), pd.Series(texts)):
        assert list(sample(X)) == sorted(texts[::10] + rare, key=texts.index)
    frame = pd.DataFrame({"number": range(1000), "text": texts})
    assert sample(frame)["text"].tolist() == sample(texts)
    # No more than as many again.
    letters = [chr(0x4E00 + i) for i in range(1000)]
    assert sample(letters) == letters[:100] + letters[100::10]


def multiplied(factor, n_columns):
    """Return X -> factor * X."""
    value = helper.make_tensor("factor", onnx.TensorProto.FLOAT, [], [factor])
    ports = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, n_columns]) for name in "XY"]
    node = helper.make_node("Mul", ["X", "factor"], ["Y"])
    graph = helper.make_graph([node], "multiplied", ports[:1], ports[1:], [value])
    return helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix])
def test_the_difference_is_in_standard_deviations_of_a_column(container, rng):
    X = rng.normal(size=(50, 3)) * [1, 10, 100]
    X[:, 2] = 0
    model = multiplied(1.5, 3)
    expected = 0.5 * np.abs(X[:, :2]) / X[:, :2].std(axis=0)
    row, column = np.unravel_index(expected.argmax(), expected.shape)
    difference = largest_difference(container(X), model, container(X), raw_inputs(X), "float32")
    assert difference == Difference(pytest.approx(expected.max(), rel=1e-5), column, row)
    assert largest_difference(container(1.5 * X), model, container(X), raw_inputs(X), "float32").size < 1e-6


def test_long_texts_are_compared_in_small_blocks(monkeypatch):
    texts = ["a text"] * 20 + ["word " * 2**14] + ["another one"] * 20
    vectorizer = CountVectorizer().fit(texts)
    sizes, run = [], InferenceModel.run
    monkeypatch.setattr(InferenceModel, "run", lambda self, *a: sizes.append(len(a[1]["X"])) or run(self, *a))
    inputs = raw_inputs(texts)
    model = to_onnx(vectorizer, inputs, "float32")
    assert largest_difference(vectorizer.transform(texts), model, texts, inputs, "float32").size == 0
    # The longest has 81,920 characters.
    assert sizes == [3] * 13 + [2]


@pytest.mark.filterwarnings("ignore:Degrees of freedom")
def test_what_is_missing_is_not_compared():
    X = np.array([[1.0, np.nan], [2.0, 5.0], [np.nan, 7.0]])
    assert largest_difference(X, multiplied(1, 2), X, raw_inputs(X), "float32").size == 0


def test_other_shapes_and_infinities_are_errors():
    X = np.ones((3, 2))
    with pytest.raises(UnlikeError, match="something else than its transform"):
        largest_difference(X[:, :1], multiplied(1, 2), X, raw_inputs(X), "float32")
    with pytest.raises(UnlikeError, match="infinities"):
        largest_difference(X, multiplied(np.inf, 2), X, raw_inputs(X), "float32")


def test_no_large_part_of_a_sparse_x_is_dense_at_once(monkeypatch):
    X = scipy.sparse.random(12, 2**17, density=1e-4, format="csr", random_state=0)
    sizes, toarray = [], scipy.sparse.csr_matrix.toarray
    monkeypatch.setattr(
        scipy.sparse.csr_matrix, "toarray", lambda self, *a, **k: sizes.append(self.shape[0]) or toarray(self, *a, **k)
    )
    assert largest_difference(X, multiplied(1, 2**17), X, raw_inputs(X), "float32").size < 1e-5
    assert set(sizes) == {2}
