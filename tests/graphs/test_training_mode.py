"""
Dropout and BatchNormalization: what a model predicts with them,
and what a training makes of them.
"""

import numpy as np
import onnx.parser
import pytest

from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models.onnx_score_graph import onnx_score_graph
from skort.graphs.score_graph import ScoreSpec, Weights, set_batch_size
from skort.graphs.training_mode import masked

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'


def score_graph(body, weights="", dtype="float"):
    text = f"""{HEADER} m ({dtype}[N, 2] X) => ({dtype}[N, 1] y) <{dtype}[2, 1] W = {{1, 2}},
        {weights}> {{ {body} }}"""
    numpy_dtype = {"float": "float32", "double": "float64"}[dtype]
    return onnx_score_graph(onnx.parser.parse_model(text), ScoreSpec(2, 1, numpy_dtype))


ACTIVE = "float ratio = {0.25}, bool on = {1}"


def _of_rows(graph, batch_size):
    model = graph.model
    set_batch_size(model, batch_size)
    return model


def operators(graph):
    return [node.op_type for node in graph.structure.graph.node]


@pytest.mark.parametrize(
    "call, weights",
    [
        ("Dropout (X)", "float ratio = {0.5}"),
        ("Dropout (X, ratio)", "float ratio = {0.5}"),
        ("Dropout (X, ratio, on)", "float ratio = {0.5}, bool on = {0}"),
    ],
)
def test_a_dropout_that_is_not_active_is_left_out(call, weights):
    graph = score_graph(f"a = {call} y = MatMul (a, W)", weights)
    assert operators(graph) == ["MatMul"]
    assert not graph.has_dropout


MODES = {
    "initializer": "a = Dropout (X, ratio, on) y = MatMul (a, W)",
    "node": "t = Constant <value = bool {1}> () a = Dropout (X, ratio, t) y = MatMul (a, W)",
}


@pytest.mark.parametrize("body", MODES.values(), ids=MODES)
def test_an_active_dropout_predicts_nothing_and_has_masks_in_a_training(body, rng, run_onnx):
    graph = score_graph(body, ACTIVE)
    X = rng.normal(size=(3, 2)).astype(np.float32)
    np.testing.assert_allclose(run_onnx(graph.model, X=X)["model/y"], X @ [[1], [2]], rtol=1e-6)
    training = masked(graph, 3)
    (name,) = training.dropout
    assert training.dropout[name] == 0.25
    assert training.trained == graph.trained == Weights(("W",), ())
    np.testing.assert_array_equal(training.arrays[name], np.ones((3, 2), np.float32))
    mask = np.float32([[0, 2], [2, 0], [1, 1]])
    result = run_onnx(_of_rows(training, 3), **{"X": X, name: mask})["model/y"]
    np.testing.assert_allclose(result, (X * mask) @ [[1], [2]], rtol=1e-6)
    # Nothing of it gets into what shares the structure.
    assert not graph.dropout and name not in graph.arrays


def test_the_ratio_is_one_half_where_none_is_given():
    training = masked(score_graph('a = Dropout (X, "", on) y = MatMul (a, W)', "bool on = {1}"), 2)
    assert list(training.dropout.values()) == [0.5]


def test_masks_have_the_shape_of_what_they_multiply():
    body = (
        "h = MatMul (X, V) a = Dropout (h, ratio, on) b = Dropout (a, ratio, on) y = MatMul (b, U)"
    )
    weights = ACTIVE + ", float[2, 3] V = {1, 2, 3, 4, 5, 6}, float[3, 1] U = {1, 2, 3}"
    training = masked(score_graph(body, weights), 5)
    assert [training.arrays[name].shape for name in training.dropout] == [(5, 3), (5, 3)]
    assert _of_rows(training, 5).graph.input[1].type.tensor_type.shape.dim[0].dim_value == 5


@pytest.mark.parametrize(
    "body, weights, message",
    [
        (
            "a = Dropout (X, ratio, on) y = MatMul (a, W)",
            "float ratio = {1}, bool on = {1}",
            "has the ratio 1.0",
        ),
        (
            "s = ReduceMax <keepdims = 0> (X) a = Dropout (X, s, on) y = MatMul (a, W)",
            "bool on = {1}",
            "has a ratio or a training_mode that is no constant",
        ),
        (
            (
                "a, mask = Dropout (X, ratio, on) m = Cast <to = 1> (mask) b = Mul (a, m) "
                "y = MatMul (b, W)"
            ),
            ACTIVE,
            "has its mask as a result that is read",
        ),
        (
            (
                "h, mean, variance = BatchNormalization <training_mode = 1> (X, s, b, m, v) "
                "y = MatMul (h, W)"
            ),
            "float[2] s = {1, 1}, float[2] b = {0, 0}, float[2] m = {0, 0}, float[2] v = {1, 1}",
            "BatchNormalization node '' of the ONNX model has training_mode=1",
        ),
    ],
)
def test_what_a_training_cannot_do_is_named(body, weights, message):
    with pytest.raises(NotTrainableError, match=message):
        score_graph(body, weights)


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_a_normalization_with_fixed_statistics_trains_its_scale_and_shift(dtype, rng, run_onnx):
    matrix = f"{dtype}[2, 2] V = {{1, -1, 2, 1}}"
    vectors = {"s": "2, 3", "b": "1, -1", "m": "1, 2", "v": "4, 9"}
    weights = ", ".join(
        [matrix, *(f"{dtype}[2] {name} = {{{values}}}" for name, values in vectors.items())]
    )
    body = (
        "h = MatMul (X, V) n = BatchNormalization <epsilon = 0.25> (h, s, b, m, v) "
        "y = MatMul (n, W)"
    )
    graph = score_graph(body, weights, dtype)
    # The statistics are no weights.
    assert graph.trained == graph.weight_names == Weights(("V", "W"), ("b",), ("s",))
    X = rng.normal(size=(4, 2)).astype(graph.dtype)
    hidden = (X @ [[1, -1], [2, 1]] - [1, 2]) / np.sqrt([4.25, 9.25]) * [2, 3] + [1, -1]
    np.testing.assert_allclose(
        run_onnx(graph.model, X=X)["model/y"], hidden @ [[1], [2]], rtol=1e-5
    )


@pytest.mark.parametrize(
    "begin", ["", "k = Mod (three, ten) t = Slice (shape, zero, k)"], ids=["known", "unknown"]
)
def test_a_normalization_of_images_trains_its_scale_and_shift(begin, rng, run_onnx):
    """Whether or not the rank of the images is known before the model runs."""
    vectors = ", ".join(
        f"float[1] {name} = {{{value}}}" for name, value in zip("sbmv", (2, 3, 0.5, 4), strict=True)
    )
    numbers = (
        "int64[3] shape = {-1, 1, 2}, int64[2] back = {-1, 2}, int64[1] three = {3}, "
        "int64[1] ten = {10}"
    )
    weights = f"{vectors}, {numbers}, int64[1] zero = {{0}}"
    end = "n = BatchNormalization (c, s, b, m, v) d = Reshape (n, back) y = MatMul (d, W)"
    body = f"{begin} c = Reshape (X, {'t' if begin else 'shape'}) {end}"
    graph = score_graph(body, weights)
    assert graph.trained == Weights(("W",), (), ("s", "b"))
    X = rng.normal(size=(4, 2)).astype(np.float32)
    hidden = (X - 0.5) / np.sqrt(4 + 1e-5) * 2 + 3
    np.testing.assert_allclose(
        run_onnx(graph.model, X=X)["model/y"], hidden @ [[1], [2]], rtol=1e-5
    )
