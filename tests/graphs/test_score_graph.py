"""Finding weights by structure, changing them, and graphs that are a chain of layers."""

import copy
import pickle

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort.graphs.initialization import initial_score_graph
from skort.graphs.layers import Layer
from skort.graphs.score_graph import (
    Link,
    ScoreGraph,
    ScoreSpec,
    Weights,
    chain_of,
    find_weights,
    joined,
    set_batch_size,
    step_work,
)
from skort.graphs.standardized import centred, linear_weights

OPSET = '<ir_version: 8, opset_import: ["" : 17]>'
MIXED = """
mixed (float[N, 3] X) => (float[N, 2] score)
<float[3] scale = {1, 2, 3}, float[3, 4] W = {1,2,3,4,5,6,7,8,9,10,11,12},
 float[4] b = {1, 2, 3, 4}, float unity = {1},
 float[4, 2] V = {1,2,3,4,5,6,7,8}, float[2] c = {1, 2}, int64[2] shape = {-1, 2},
 float[2] unused = {1, 2},
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
    assert find_weights(onnx.parser.parse_graph(MIXED)) == Weights(
        ("W", "V"), ("b", "c"), ("scale",)
    )


def test_with_weights_changes_a_copy(rng):
    graph = initial_score_graph(
        LinearRegression(), ScoreSpec(3, 2, "float32"), np.random.RandomState(0)
    )
    before = graph.model.SerializeToString()
    coef = np.asfortranarray(rng.normal(size=(3, 2)).astype(np.float32))
    changed = graph.with_weights({"coef": coef})
    np.testing.assert_array_equal(changed.weights()["coef"], coef)
    np.testing.assert_array_equal(changed.weights()["intercept"], [0, 0])
    assert graph.model.SerializeToString() == before
    theirs, intercept = linear_weights(changed)
    np.testing.assert_array_equal(theirs, coef.T)
    np.testing.assert_array_equal(intercept, [0, 0])


def test_graphs_with_other_weights_know_the_structure_that_they_share():
    graph = initial_score_graph(
        LinearRegression(), ScoreSpec(3, 2, "float32"), np.random.RandomState(0)
    )
    changed = graph.with_weights({"coef": np.ones((3, 2), np.float32)})
    assert changed.key is graph.key
    assert changed.first_layer is graph.first_layer == Layer("coef", "intercept")
    frozen = changed.training_only(["coef"])
    assert frozen.first_layer == Layer("coef", None)
    assert frozen.key[0] == graph.key[0] and frozen.key[1] == Weights(("coef",), ())
    moved = centred(graph, np.array([1.0, 2.0, 3.0]))
    assert moved.key != graph.key and moved.is_linear


def test_weights_are_counted_element_by_element():
    assert initial_score_graph(
        LinearRegression(), ScoreSpec(3, 2, "float32"), np.random.RandomState(0)
    ).n_weights == (6, 2)
    without = initial_score_graph(
        LinearRegression(fit_intercept=False), ScoreSpec(3, 2, "float32"), np.random.RandomState(0)
    )
    assert without.n_weights == (6, 0)


@pytest.mark.parametrize(
    ("activation", "is_curved"),
    [("identity", False), ("relu", False), ("tanh", True), ("logistic", True)],
)
def test_small_weights_make_curved_units_linear(activation, is_curved):
    network = MLPRegressor(hidden_layer_sizes=(3,), activation=activation)
    spec = ScoreSpec(2, 1, np.float32)
    graph = initial_score_graph(network, spec, np.random.RandomState(0))
    assert graph.has_curved_units == is_curved


def test_set_batch_size_fixes_the_first_dimension():
    graph = initial_score_graph(
        LinearRegression(), ScoreSpec(3, 2, "float32"), np.random.RandomState(0)
    )
    model = graph.model
    set_batch_size(model, 7)
    shapes = [
        [d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in (model.graph.input[0], model.graph.output[0])
    ]
    assert shapes == [[7, 3], [7, 2]]
    assert (graph.n_features, graph.n_outputs) == (3, 2)
    assert numpy_helper.to_array(model.graph.initializer[0]).shape == (3, 2)


@pytest.fixture
def mixed():
    return ScoreGraph.of(onnx.parser.parse_model(OPSET + MIXED))


def test_a_graph_holds_all_weights_and_trains_them(mixed):
    assert mixed.trained == mixed.weight_names == Weights(("W", "V"), ("b", "c"), ("scale",))
    assert list(mixed.arrays) == ["W", "V", "b", "c", "scale"]
    np.testing.assert_array_equal(mixed.arrays["W"], np.arange(1, 13).reshape(3, 4))
    assert [i.name for i in mixed.structure.graph.input] == ["X", "W", "V", "b", "c", "scale"]
    assert [i.name for i in mixed.structure.graph.initializer] == ["unity", "shape", "unused", "d"]
    onnx.checker.check_model(mixed.structure, full_check=True)


def test_the_model_is_written_with_the_weights(mixed, rng, run_onnx):
    X, scale = rng.normal(size=(5, 3)).astype(np.float32), np.array([3, 1, 2], np.float32)
    model = mixed.with_weights({"scale": scale}).model
    assert [i.name for i in model.graph.input] == ["X"]
    onnx.checker.check_model(model, full_check=True)
    weights = mixed.arrays
    expected = ((X * scale) @ weights["W"] + weights["b"] - 1) @ weights["V"] + weights["c"]
    np.testing.assert_allclose(run_onnx(model, X=X)["score"], expected, rtol=1e-5)


def test_new_weights_copy_neither_the_structure_nor_an_array(mixed):
    W = np.ones((3, 4), np.float32)
    changed = mixed.with_weights({"W": W})
    assert changed.structure is mixed.structure
    assert changed.arrays["W"] is W
    assert all(changed.arrays[name] is mixed.arrays[name] for name in ("V", "b", "c", "scale"))
    assert np.shares_memory(changed.trained_arrays["W"], W)
    assert changed.training_only(["W"]).structure is mixed.structure
    assert not np.shares_memory(changed.weights()["W"], W)


CONV = f"""
{OPSET} convolved (float[N, 3, 8] X) => (float[N, 2] score)
<float[4, 3, 3] W = {{{", ".join(["0.1"] * 36)}}}, float[24, 2] V = {{{", ".join(["0.1"] * 48)}}}>
{{
    hidden = Conv (X, W)
    flat = Flatten (hidden)
    score = MatMul (flat, V)
}}
"""


@pytest.mark.parametrize(
    "trained, work",
    [
        # Of 10 rows: 3 x 4 numbers, then 4 x 2. The score, and the gradients of both matrices and
        # of what is hidden.
        (["scale", "W", "V"], 2 * 10 * (3 * 12 + 3 * 8)),
        # Nothing before the first product is trained, whose rows need no gradient then.
        (["W", "V"], 2 * 10 * (2 * 12 + 3 * 8)),
        (["V"], 2 * 10 * (12 + 2 * 8)),
        (["c"], 2 * 10 * (12 + 8)),
    ],
)
def test_the_work_of_a_step_is_that_of_its_products(mixed, trained, work):
    assert step_work(mixed.training_only(trained), 10) == work
    assert step_work(mixed.training_only(trained), 20) == 2 * work


def test_a_convolution_works_at_every_position():
    graph = ScoreGraph.of(onnx.parser.parse_model(CONV))
    # 6 positions of 4 channels, each from 3 channels at 3 places; then 24 numbers to 2.
    assert step_work(graph, 10) == 2 * 10 * (2 * 6 * 4 * 9 + 3 * 24 * 2)


def test_weights_are_counted_from_their_shapes(mixed):
    # 8 TB each, of one number.
    large = np.broadcast_to(np.float32(0), (10**6, 2 * 10**6))
    graph = ScoreGraph(
        mixed.structure, {**mixed.arrays, "W": large, "b": large}, Weights(("W",), ("b", "c"))
    )
    assert graph.n_weights == (2 * 10**12, 2 * 10**12 + 2)


@pytest.mark.parametrize(
    "name, array", [("U", np.ones(2, "f")), ("c", np.ones((1, 2), "f")), ("c", np.ones(2, "d"))]
)
def test_weights_of_another_name_shape_or_dtype_are_refused(mixed, name, array):
    with pytest.raises(
        ValueError, match=f"There is no weight '{name}' of shape .* and dtype {array.dtype}"
    ):
        mixed.with_weights({name: array})


def test_copies_and_pickles_are_equal_and_apart(mixed):
    graph = mixed.training_only(["b"])
    for copied in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert copied.structure is not graph.structure
        assert copied.structure == graph.structure
        assert copied.trained == graph.trained == Weights((), ("b",))
        assert list(copied.arrays) == list(graph.arrays)
        for name, array in graph.arrays.items():
            np.testing.assert_array_equal(copied.arrays[name], array)
            assert not np.shares_memory(copied.arrays[name], array)


def test_linear_weights_are_copies():
    graph = initial_score_graph(
        LinearRegression(), ScoreSpec(3, 2, "float32"), np.random.RandomState(0)
    )
    for weights in linear_weights(graph):
        weights += 1
    assert not any(array.any() for array in graph.arrays.values())


def test_joined_graphs_are_one_after_the_other(mixed, rng, run_onnx):
    second = ScoreGraph.of(
        onnx.parser.parse_model(
            OPSET
            + """
            second (float[N, 2] features) => (float[N, 1] result) <float[2] shift = {1, 2},
            float[2, 1] U = {3, 4}>
            { moved = Sub (features, shift) result = MatMul (moved, U) }"""
        )
    )
    both = joined([mixed, second])
    assert both.trained == Weights(("W", "V", "U"), ("b", "c"), ("scale", "shift"))
    assert (both.input_name, both.score_name, both.n_features, both.n_outputs) == (
        "X",
        "result",
        3,
        1,
    )
    assert all(
        np.shares_memory(both.arrays[name], graph.arrays[name])
        for graph in (mixed, second)
        for name in graph.arrays
    )
    X = rng.normal(size=(4, 3)).astype(np.float32)
    expected = run_onnx(second.model, features=run_onnx(mixed.model, X=X)["score"])["result"]
    np.testing.assert_allclose(run_onnx(both.model, X=X)["result"], expected, rtol=1e-5)
    renamed = both.with_input_name("rows")
    np.testing.assert_array_equal(
        run_onnx(renamed.model, rows=X)["result"], run_onnx(both.model, X=X)["result"]
    )
    assert both.input_name == "X"


NETWORK = (Link("coefficient", "intercepts", ("Tanh",)), Link("coefficient1", "intercepts1"))
MODELS = [
    (LinearRegression(), {}, (Link("coef", "intercept"),)),
    (LinearRegression(fit_intercept=False), {}, (Link("coef"),)),
    (PoissonRegressor(), {}, (Link("coef", "intercept", ("Exp",)),)),
    (PoissonRegressor(), {"keeps_link": False}, (Link("coef", "intercept"),)),
    (MLPRegressor(hidden_layer_sizes=(4,), activation="tanh"), {}, NETWORK),
    (MLPClassifier(hidden_layer_sizes=(4,), activation="tanh"), {"is_classifier": True}, NETWORK),
]


@pytest.mark.parametrize("model, options, chain", MODELS)
def test_linear_models_and_networks_are_chains(model, options, chain):
    spec = ScoreSpec(3, 1, "float32", **options)
    assert chain_of(initial_score_graph(model, spec, np.random.RandomState(0))) == chain


def graph_of(nodes, weights="float[2, 1] V = {1, 2}, float[1] c = {0}"):
    return ScoreGraph.of(
        onnx.parser.parse_model(
            '<ir_version: 8, opset_import: ["" : 17]> m (float[N, 2] X) => (float[N, 1] s) '
            f"<{weights}> {{ {nodes} }}"
        )
    )


OTHERS = {
    "residual": "a = MatMul (X, V)  b = Add (a, c)  s = Add (b, a)",
    "gate": "a = MatMul (X, V)  b = Sigmoid (a)  s = Mul (a, b)",
    "scaled": "a = MatMul (X, V)  s = Mul (a, c)",
    "second intercept": "a = MatMul (X, V)  b = Add (a, c)  s = Add (b, c)",
    "attributes": "s = Gemm <alpha = 2.0> (X, V, c)",
    "operator": "a = MatMul (X, V)  b = Add (a, c)  s = Softplus (b)",
}


@pytest.mark.parametrize("nodes", OTHERS.values(), ids=OTHERS)
def test_other_graphs_are_none(nodes):
    assert chain_of(graph_of(nodes)) is None


def test_frozen_weights_and_other_shapes_are_none():
    graph = graph_of("a = MatMul (X, V)  s = Add (a, c)")
    assert chain_of(graph) == (Link("V", "c"),)
    assert chain_of(graph.training_only({"V"})) is None
    assert chain_of(centred(graph, np.ones(2))) is None
    wide = graph_of(
        "a = MatMul (X, V)  s = Add (a, c)", "float[2, 1] V = {1, 2}, float[3, 1] c = {1, 2, 3}"
    )
    assert chain_of(wide) is None
