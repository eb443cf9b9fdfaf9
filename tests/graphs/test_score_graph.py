"""Finding weights by structure, and changing them."""

import numpy as np
import onnx.parser
from onnx import numpy_helper
from sklearn.linear_model import LinearRegression

from skort.graphs.initial import initial_score_graph
from skort.graphs.score_graph import Weights, find_weights

MIXED = """
mixed (float[N, 3] X) => (float[N, 2] score)
<float[3] scale = {1, 2, 3}, float[3, 4] W = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4] b = {1, 2, 3, 4}, float unity = {1},
 float[4, 2] V = {1,2,3,4,5,6,7,8}, float[2] c = {1, 2}, int64[2] shape = {-1, 2}, float[2] unused = {1, 2},
 float[2] d = {1, 2}>
{
    scaled = Mul (X, scale)
    hidden = Gemm (scaled, W, b)
    shifted = Sub (hidden, unity)
    product = MatMul (shifted, V)
    sum = Add (c, product)
    apart = Add (unused, d)
    score = Reshape (sum, shape)
}"""


def test_weights_are_found_by_structure():
    assert find_weights(onnx.parser.parse_graph(MIXED)) == Weights(("W", "V"), ("b", "c"), ("scale",))


def test_with_weights_changes_a_copy(rng):
    graph = initial_score_graph(LinearRegression(), 3, 2, "float32", np.random.RandomState(0))
    before = graph.model.SerializeToString()
    coef = np.asfortranarray(rng.normal(size=(3, 2)).astype(np.float32))
    changed = graph.with_weights({"coef": coef})
    np.testing.assert_array_equal(changed.weights()["coef"], coef)
    np.testing.assert_array_equal(changed.weights()["intercept"], [0, 0])
    assert graph.model.SerializeToString() == before
    theirs, intercept = changed.linear_weights()
    np.testing.assert_array_equal(theirs, coef.T)
    np.testing.assert_array_equal(intercept, [0, 0])


def test_weights_are_counted_element_by_element():
    assert initial_score_graph(LinearRegression(), 3, 2, "float32", np.random.RandomState(0)).n_weights() == (6, 2)
    without = initial_score_graph(LinearRegression(fit_intercept=False), 3, 2, "float32", np.random.RandomState(0))
    assert without.n_weights() == (6, 0)


def test_with_batch_size_fixes_the_first_dimension():
    graph = initial_score_graph(LinearRegression(), 3, 2, "float32", np.random.RandomState(0))
    model = graph.with_batch_size(7)
    shapes = [
        [d.dim_value for d in v.type.tensor_type.shape.dim] for v in (model.graph.input[0], model.graph.output[0])
    ]
    assert shapes == [[7, 3], [7, 2]]
    assert (graph.n_features, graph.n_outputs) == (3, 2)
    assert numpy_helper.to_array(model.graph.initializer[0]).shape == (3, 2)
