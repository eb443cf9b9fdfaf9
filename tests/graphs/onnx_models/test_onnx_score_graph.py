"""ONNX models from anywhere as score graphs."""

import numpy as np
import onnx.external_data_helper
import onnx.parser
import pytest
import skl2onnx
from onnx import numpy_helper
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort.exceptions import NotTrainableError
from skort.graphs.differentiable import runtime_gradient
from skort.graphs.gradient.reverse import rule_gradient
from skort.graphs.layers import Layer
from skort.graphs.onnx_models.onnx_score_graph import onnx_score_graph
from skort.graphs.score_graph import ScoreSpec, Weights
from skort.solvers.choice import check_differentiable

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'


def parsed(text, header=HEADER):
    return onnx.parser.parse_model(header + text)


LAYERS = """
layers (float[N, 3] X) => (float[N, 1] y)
<float[4, 3] W = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4] b = {1, 2, 3, 4},
float[4, 1] V = {1, -1, 1, -1}>
{
    c = Constant <value = float[1] {0.5}> ()
    W_t = Transpose <perm = [1, 0]> (W)
    product = MatMul (X, W_t)
    sum = Add (product, b)
    hidden = Tanh (sum)
    last = MatMul (hidden, V)
    y = Add (last, c)
}"""


def test_weights_are_those_that_meet_the_input(rng, run_onnx):
    model = parsed(LAYERS)
    before = model.SerializeToString()
    graph = onnx_score_graph(model, ScoreSpec(3, 1, "float32"))
    # A constant is a weight too; a weight may be transposed before it is used.
    assert graph.trained == Weights(("W", "V"), ("b", "c"))
    assert (graph.n_features, graph.n_outputs, graph.dtype) == (3, 1, np.float32)
    X = rng.normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_array_equal(run_onnx(graph.model, X=X)["model/y"], run_onnx(model, X=X)["y"])
    assert model.SerializeToString() == before


CASTS = """
layers (float[N, 3] X) => (float[N, 1] y)
<float[3, 4] W = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4] b = {1, 2, 3, 4},
 float[4, 1] V = {1, -1, 1, -1}, float[1] c = {1}>
{
    X1 = Cast <to = 1> (X)
    X2 = Identity (X1)
    product = MatMul (X2, W)
    p1 = Cast <to = 1> (product)
    sum = Add (p1, b)
    hidden = Tanh (sum)
    whole = Cast <to = 7> (hidden)
    rounded = Cast <to = 1> (whole)
    last = MatMul (rounded, V)
    score = Add (last, c)
    y1 = Cast <to = 1> (score)
    y = Identity (y1)
}"""


def test_nodes_that_change_nothing_are_left_out(rng, run_onnx):
    """As those of Keras around every layer. A cast to another type stays."""
    model = parsed(CASTS)
    graph = onnx_score_graph(model, ScoreSpec(3, 1, "float32"))
    operators = [node.op_type for node in graph.structure.graph.node]
    assert operators == ["MatMul", "Add", "Tanh", "Cast", "Cast", "MatMul", "Add"]
    assert graph.first_layer == Layer("W", "b", False)
    assert graph.last_layer == Layer("V", "c", False)
    X = rng.normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_array_equal(
        run_onnx(graph.model, X=X)["model/score"], run_onnx(model, X=X)["y"]
    )


@pytest.mark.parametrize("idle", ["Identity (X)", "Cast <to = 1> (X)"])
def test_a_score_that_is_the_input_is_still_a_result(idle):
    graph = onnx_score_graph(
        parsed(f"m (float[N, 1] X) => (float[N, 1] y) {{ y = {idle} }}"), ScoreSpec(1, 1, "float32")
    )
    assert [node.op_type for node in graph.structure.graph.node] == [idle.split()[0]]


def test_constants_of_an_activation_are_no_weights():
    graph = onnx_score_graph(
        parsed(
            """
            gelu (float[N, 2] X) => (float[N, 1] y) <float[2, 1] W = {1, 2},
            float root = {1.4142135}, float one = {1}>
            { a = MatMul (X, W) b = Div (a, root) c = Erf (b) d = Add (c, one) y = Mul (a, d) }"""
        ),
        ScoreSpec(2, 1, "float32"),
    )
    assert graph.trained == Weights(("W",), ())


def test_functions_are_inlined(rng, run_onnx):
    model = parsed(
        """
        calls (float[N, 3] X) => (float[N, 1] y) <float[3, 1] W = {1, 2, 3}>
        { y = own.layer (X, W) }
        <domain: "own", opset_import: ["" : 17]>
        layer (a, w) => (b) { c = MatMul (a, w) b = Tanh (c) }
        """,
        '<ir_version: 8, opset_import: ["" : 17, "own" : 1]>',
    )
    graph = onnx_score_graph(model, ScoreSpec(3, 1, "float32"))
    assert graph.trained == Weights(("W",), ())
    X = rng.normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_allclose(
        run_onnx(graph.model, X=X)["model/y"], np.tanh(X @ [[1], [2], [3]]), rtol=1e-6
    )


@pytest.mark.parametrize("opset", [9, 13, 19, 21])
def test_opsets_are_converted(opset, rng, run_onnx):
    model = parsed(
        (
            "m (float[N, 3] X) => (float[N, 1] y) <float[3, 1] W = {1, 2, 3}> { a = MatMul "
            "(X, W) y = Relu (a) }"
        ),
        f'<ir_version: 8, opset_import: ["" : {opset}]>',
    )
    graph = onnx_score_graph(model, ScoreSpec(3, 1, "float32"))
    assert [(o.domain, o.version) for o in graph.model.opset_import] == [("", 17)]
    X = rng.normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_allclose(
        run_onnx(graph.model, X=X)["model/y"], np.maximum(X @ [[1], [2], [3]], 0), rtol=1e-6
    )


IRIS_X, IRIS_Y = load_iris(return_X_y=True)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        MLPClassifier((5,), max_iter=5),
        MLPClassifier((5,), activation="logistic", max_iter=5),
        SGDClassifier(loss="log_loss"),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=["logistic", "network", "sigmoids", "sgd", "pipeline"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_score_of_a_converted_classifier(model, n_classes, run_onnx):
    if isinstance(model, SGDClassifier) and n_classes > 2:
        pytest.skip("skl2onnx writes its probabilities without sigmoid or softmax")
    rows = n_classes > IRIS_Y
    X, y = IRIS_X[rows].astype(np.float32), IRIS_Y[rows]
    model.fit(X, y)
    converted = skl2onnx.to_onnx(
        model,
        X[:1],
        target_opset=17,
        options={"zipmap": False},
        black_op={"LinearClassifier", "Scaler"},
    )
    n_outputs = 1 if n_classes == 2 else 3
    graph = onnx_score_graph(converted, ScoreSpec(4, n_outputs, "float32", is_classifier=True))
    (score,) = run_onnx(graph.model, X=X).values()
    assert score.shape == (len(X), n_outputs)
    if n_classes == 2:
        np.testing.assert_allclose(expit(score.ravel()), model.predict_proba(X)[:, 1], atol=1e-5)
    else:
        probabilities = model.predict_proba(X)
        np.testing.assert_allclose(
            score - score[:, :1], np.log(probabilities / probabilities[:, :1]), atol=1e-3
        )


def test_two_scores_of_two_classes_become_their_difference(rng, run_onnx):
    model = parsed(
        "m (float[N, 2] X) => (float[N, 2] y) <float[2, 2] W = {1, 0, 0, 1}> { y = MatMul (X, W) }"
    )
    graph = onnx_score_graph(model, ScoreSpec(2, 1, "float32", is_classifier=True))
    X = rng.normal(size=(5, 2)).astype(np.float32)
    (score,) = run_onnx(graph.model, X=X).values()
    np.testing.assert_array_equal(score.ravel(), X[:, 1] - X[:, 0])
    # The matrix that does so is no weight.
    assert graph.trained == Weights(("W",), ())


@pytest.mark.parametrize(
    "text, message",
    [
        (
            "m (float[N, 2] X) => (float[N, 1] a, float[N, 1] b) <float[2, 1] W = {1, 2}>"
            "{ a = MatMul (X, W) b = Exp (a) }",
            r"needs one output of floats, beside labels; it has the outputs \['a', 'b'\]",
        ),
        (
            (
                "m (float[N, 2] X, string[N, 2] Z) => (float[N, 1] y) <float[2, 1] W = {1, 2}> { "
                "y = MatMul (X, W) }"
            ),
            r"needs inputs of numbers, .* it has the inputs \['X', 'Z'\]",
        ),
        (
            "m (string[N, 2] X) => (string[N, 2] y) { y = Identity (X) }",
            r"string of shape \['N', 2\]",
        ),
        (
            (
                "m (float[N, 2] X) => (float[N, 2] y) <float[2, 2] W = {1, 0, 0, 1}> { "
                "y = MatMul (X, W) }"
            ),
            "gives 2 numbers per row, but y needs 1",
        ),
        (
            "m (float[N, 2] X) => (float[N, 2, 1] y) <float[2, 1] W = {1, 1}, int64[1] axes = {2}>"
            "{ a = MatMul (X, W) b = Concat <axis = 1> (a, a) y = Unsqueeze (b, axes) }",
            r"gives float of shape \['N', 2, 1\]",
        ),
        (
            (
                "m (double[N, 2] X) => (double[N, 1] y) <double[2, 1] W = {1, 1}> { "
                "y = MatMul (X, W) }"
            ),
            "computes in float64, got dtype='float32'",
        ),
        (
            "m (float[N, 2] X) => (float[N, 1] y) { y = NoSuchOperator (X) }",
            "is not valid: No Op registered for NoSuchOperator",
        ),
        (
            "m (float[1, 2] X) => (float[1, 1] y) <float[2, 1] W = {1, 1}, int64[2] shape = {1, 1}>"
            "{ a = MatMul (X, W) y = Reshape (a, shape) }",
            "does not run the ONNX model on 3 rows: .*Reshape node.* export it for any",
        ),
        (
            "m (float[N, 2] X) => (float[M, K] y) <float[2, 1] W = {1, 1}, int64[2] "
            "shape = {1, -1}>"
            "{ a = MatMul (X, W) y = Reshape (a, shape) }",
            r"gives an array of shape \(1, 3\) for 3 rows, but y needs \(3, 1\)",
        ),
    ],
    ids=[
        "outputs",
        "inputs",
        "text",
        "columns",
        "rank",
        "dtype",
        "operator",
        "batch size",
        "shape",
    ],
)
def test_models_that_cannot_be_trained(text, message):
    with pytest.raises(NotTrainableError, match=message):
        onnx_score_graph(parsed(text), ScoreSpec(2, 1, "float32"))


def test_an_opset_of_the_future_is_named():
    model = parsed(
        "m (float[N, 2] X) => (float[N, 1] y) <float[2, 1] W = {1, 2}> { y = MatMul (X, W) }"
    )
    model.opset_import[0].version = 999
    with pytest.raises(
        NotTrainableError, match=r"opset 999 cannot be read as opset 17.*target_opset=17"
    ):
        onnx_score_graph(model, ScoreSpec(2, 1, "float32"))


def test_values_in_another_file_are_named():
    model = parsed(
        "m (float[N, 2] X) => (float[N, 1] y) <float[2, 1] W = {1, 2}> { y = MatMul (X, W) }"
    )
    (weight,) = model.graph.initializer
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight), "W"))
    onnx.external_data_helper.set_external_data(weight, "weights.bin")
    with pytest.raises(
        NotTrainableError, match=r"the values of W are in a file beside.*onnx\.load\(path\)"
    ):
        onnx_score_graph(model, ScoreSpec(2, 1, "float32"))


def test_weights_in_branches_are_named():
    model = parsed("""
        m (float[N, 2] X) => (float[N, 1] y) <bool yes = {1}> {
            y = If (yes) <
                then_branch = a () => (float[N, 1] p) <float[2, 1] W = {1, 2}> {
                p = MatMul (X, W) },
                else_branch = b () => (float[N, 1] q) <float[2, 1] V = {1, 2}> {
        q = MatMul (X, V) }>
        }""")
    graph = onnx_score_graph(model, ScoreSpec(2, 1, "float32"))
    with pytest.raises(NotTrainableError, match="The weights in the branches of If are not found"):
        check_differentiable(graph, "graph", rule_gradient)


@pytest.mark.parametrize("factor", ["alpha", "beta"])
@pytest.mark.parametrize("solver", ["agent", "session"])
def test_a_product_times_zero_has_no_gradient_of_the_runtime(factor, solver):
    model = parsed(
        "m (float[N, 2] X) => (float[N, 1] y) <float[2, 1] W = {1, 2}, float[1] b = {1}>"
        f"{{ y = Gemm <{factor} = 0.0> (X, W, b) }}"
    )
    with pytest.raises(NotTrainableError, match="operator Gemm"):
        check_differentiable(
            onnx_score_graph(model, ScoreSpec(2, 1, "float32")), solver, runtime_gradient
        )


def test_another_number_of_features():
    model = parsed(LAYERS)
    with pytest.raises(
        ValueError, match="X has 2 features, but the ONNX model is expecting 3 features"
    ):
        onnx_score_graph(model, ScoreSpec(2, 1, "float32"))


def test_dropout_is_passed_over(rng, run_onnx):
    model = parsed("""
        m (float[N, 3] X) => (float[N, 1] y) <float[3, 1] W = {1, 2, 3}, float ratio = {0.5},
            bool training = {1}> {
            a = Dropout (X, ratio, training)
            y = MatMul (a, W)
        }""")
    graph = onnx_score_graph(model, ScoreSpec(3, 1, "float32"))
    X = rng.normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_allclose(
        run_onnx(graph.model, X=X)["model/y"], X @ [[1], [2], [3]], rtol=1e-5
    )
    assert graph.trained == Weights(("W",), ())


def test_a_float64_model_of_a_network(rng, run_onnx):
    X = rng.normal(size=(30, 4))
    network = MLPRegressor(hidden_layer_sizes=(5,), max_iter=3000, tol=1e-2).fit(X, X[:, 0])
    graph = onnx_score_graph(
        skl2onnx.to_onnx(network, X[:1], target_opset=17), ScoreSpec(4, 1, "float64")
    )
    assert {name: array.dtype for name, array in graph.weights().items()} == dict.fromkeys(
        ("coefficient", "coefficient1", "intercepts", "intercepts1"), np.float64
    )
    np.testing.assert_allclose(
        next(iter(run_onnx(graph.model, X=X).values())).ravel(), network.predict(X), rtol=1e-12
    )
    assert numpy_helper.to_array(graph.model.graph.initializer[0]).dtype == np.float64


@pytest.mark.parametrize(
    "layer, weights, intercepts",
    [
        ("a = PRelu (h, s)", "float[2] s = {0.25, 0.5}", ("b",)),
        ("u = Unsqueeze (s, o) a = PRelu (h, u)", "float[2] s = {1, 2}, int64[1] o = {0}", ("b",)),
        (
            "i = Reshape (h, o) n = InstanceNormalization (i, s, t) a = Flatten (n)",
            "float[1] s = {1}, float[1] t = {0}, int64[3] o = {-1, 1, 2}",
            ("b", "t"),
        ),
    ],
)
def test_slopes_and_the_scales_of_normalizations_are_trained(layer, weights, intercepts):
    text = f"""m (float[N, 2] X) => (float[N, 1] y)
    <float[2, 2] W = {{1, 2, -1, 3}}, float[2] b = {{1, 2}}, float[2, 1] V = {{1, 2}}, {weights}>
    {{ h = Gemm (X, W, b) {layer} y = MatMul (a, V) }}"""
    graph = onnx_score_graph(parsed(text), ScoreSpec(2, 1, "float32"))
    assert graph.trained == Weights(("W", "V"), intercepts, ("s",))
    check_differentiable(graph, "graph", rule_gradient)


def test_a_slope_that_depends_on_the_input_is_no_weight():
    text = """m (float[N, 2] X) => (float[N, 1] y) <float[2] s = {1, 2}, float[2, 1] V = {1, 2}>
    { h = Mul (X, s) a = PRelu (X, h) y = MatMul (a, V) }"""
    graph = onnx_score_graph(parsed(text), ScoreSpec(2, 1, "float32"))
    assert graph.trained == Weights(("V",), ())


A, B = "float[2, 2] A = {1, 2, -1, 3}", "float[2, 2] B = {0, 1, 1, 1}"
BEHIND = {
    "Concat": ("W = Concat <axis = 1> (A, B) h = MatMul (X, W)", f"{A}, {B}", ("A", "B")),
    "Div": ("W = Div (A, c) h = MatMul (X, W)", f"{A}, float[1] c = {{2}}", ("A",)),
    "Mul": ("W = Mul (c, A) h = MatMul (X, W)", f"{A}, float[1] c = {{2}}", ("A",)),
    "Split": ("W, U = Split <axis = 1> (A) h = MatMul (X, W)", A, ("A",)),
    "Where": (
        "W = Where (mask, A, zeros) h = MatMul (X, W)",
        f"{A}, float[2, 2] zeros = {{0, 0, 0, 0}}, bool[2, 2] mask = {{1, 0, 1, 1}}",
        ("A",),
    ),
    "Cast": (
        "W = Cast <to = 1> (A) h = MatMul (X, W)",
        "double[2, 2] A = {1, 2, -1, 3}",
        ("A",),
    ),
}


@pytest.mark.parametrize("body, weights, trained", BEHIND.values(), ids=BEHIND)
def test_weights_behind_operators_are_trained(body, weights, trained, rng, run_onnx):
    text = f"""m (float[N, 2] X) => (float[N, 1] y) <{weights}, int64[1] one = {{1}}>
    {{ {body} r = Tanh (h) y = ReduceSum (r, one) }}"""
    graph = onnx_score_graph(parsed(text), ScoreSpec(2, 1, "float32"))
    assert graph.trained == Weights(trained, ())
    check_differentiable(graph, "graph", rule_gradient)
    X = rng.normal(size=(4, 2)).astype(np.float32)
    expected = run_onnx(parsed(text), X=X)["y"]
    np.testing.assert_allclose(run_onnx(graph.model, X=X)["model/y"], expected, rtol=1e-6)
    # The same weights are found in what was trained.
    assert onnx_score_graph(graph.model, ScoreSpec(2, 1, "float32")).trained == graph.trained


@pytest.mark.parametrize(
    "body, weights, message",
    [
        (
            "W = DequantizeLinear (A, c) h = MatMul (X, W)",
            "int8[2, 2] A = {1, 2, -1, 3}, float c = {0.5}",
            "The weights A before a MatMul node .* does not train through DequantizeLinear",
        ),
        (
            "W = Mul (A, B) h = MatMul (X, W)",
            f"{A}, {B}",
            "The weights A, B before a MatMul node .* does not train through Mul",
        ),
        (
            "h = com.microsoft.FusedMatMul <transB = 1> (X, A)",
            A,
            "The weights A of the FusedMatMul node .* no gradient of FusedMatMul",
        ),
        (
            "g = MatMul (X, A) h = Sign (g)",
            A,
            "The weights A of the ONNX model .* through Sign alone",
        ),
    ],
)
def test_weights_that_stay_are_named(body, weights, message):
    header = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>'
    text = f"""m (float[N, 2] X) => (float[N, 1] y) <{weights}, float[2, 1] V = {{1, 2}}>
    {{ {body} y = MatMul (h, V) }}"""
    with pytest.warns(UserWarning, match=message):
        graph = onnx_score_graph(parsed(text, header), ScoreSpec(2, 1, "float32"))
    assert graph.trained == Weights(("V",), ())


@pytest.mark.parametrize(
    "output", ["y = MatMul (X, W)", "z = MatMul (X, W) y = Softmax (z)"], ids=["score", "softmax"]
)
def test_a_classifier_of_one_row_is_one_of_any_number_of_rows(output, rng, run_onnx):
    weights = "float[2, 3] W = {1, 2, 3, -1, 0, 1}"
    model = parsed(f"m (float[1, 2] X) => (float[1, 3] y) <{weights}> {{ {output} }}")
    graph = onnx_score_graph(model, ScoreSpec(2, 3, "float32", is_classifier=True))

    rows = rng.normal(size=(5, 2)).astype(np.float32)
    (scores,) = run_onnx(graph.model, X=rows).values()
    np.testing.assert_allclose(scores, rows @ [[1, 2, 3], [-1, 0, 1]], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opsets", ['"ai.onnx.ml" : 1', '"ai.onnx.ml" : 1, "com.microsoft" : 1'])
def test_a_file_need_not_import_standard_operators_that_it_lacks(opsets, rng, run_onnx):
    nodes = """
    scaled = ai.onnx.ml.Scaler <offset = [1.0, 2.0], scale = [2.0, 0.5]> (X)
    y = ai.onnx.ml.LinearRegressor <coefficients = [3.0, -1.0], intercepts = [0.5]> (scaled)"""
    model = parsed(
        f"m (float[N, 2] X) => (float[N, 1] y) {{ {nodes} }}",
        f"<ir_version: 6, opset_import: [{opsets}]>",
    )
    graph = onnx_score_graph(model, ScoreSpec(2, 1, "float32"))

    rows = rng.normal(size=(5, 2)).astype(np.float32)
    (scores,) = run_onnx(graph.model, X=rows).values()
    expected = 0.5 + ((rows - [1, 2]) * [2, 0.5]) @ [[3], [-1]]
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-6)


def test_rows_of_an_image_input_are_flattened(rng, run_onnx):
    weights = "float[4, 1] W = {1, 2, 3, 4}"
    nodes = "flat = Flatten (image) y = MatMul (flat, W)"
    model = parsed(f"m (float[N, 1, 2, 2] image) => (float[N, 1] y) <{weights}> {{ {nodes} }}")
    graph = onnx_score_graph(model, ScoreSpec(4, 1, "float32"))
    assert (graph.n_features, graph.trained.coefficients) == (4, ("W",))

    rows = rng.normal(size=(5, 4)).astype(np.float32)
    (scores,) = run_onnx(graph.model, image=rows).values()
    np.testing.assert_allclose(scores, rows @ [[1], [2], [3], [4]], rtol=1e-5, atol=1e-6)


def test_an_image_input_needs_known_sizes():
    nodes = "flat = Flatten (image) y = MatMul (flat, W)"
    text = "m (float[N, 1, h, w] image) => (float[N, 1] y) <float[4, 1] W = {1, 2, 3, 4}>"
    with pytest.raises(NotTrainableError, match=r"flattened rows; it has the inputs \['image'\]"):
        onnx_score_graph(parsed(f"{text} {{ {nodes} }}"), ScoreSpec(4, 1, "float32"))


@pytest.mark.parametrize(
    "nodes",
    [
        "z = MatMul (X, W) y = Squeeze (z, axis)",
        "z = MatMul (X, W) v = Squeeze (z, axis) y = Sigmoid (v)",
        "z = MatMul (X, W) v = Sigmoid (z) y = Squeeze (v, axis)",
    ],
    ids=["score", "sigmoid of a vector", "vector of sigmoids"],
)
def test_an_output_of_shape_any_is_a_column(nodes, rng, run_onnx):
    weights = "float[2, 1] W = {3, -1}, int64[1] axis = {1}"
    model = parsed(f"m (float[N, 2] X) => (float[N] y) <{weights}> {{ {nodes} }}")
    graph = onnx_score_graph(model, ScoreSpec(2, 1, "float32", is_classifier=True))

    rows = rng.normal(size=(5, 2)).astype(np.float32)
    (scores,) = run_onnx(graph.model, X=rows).values()
    np.testing.assert_allclose(scores, rows @ [[3], [-1]], rtol=1e-5, atol=1e-6)
