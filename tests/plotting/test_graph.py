"""Graphs as text, in the language of Graphviz, and as pictures."""

import re
import shutil
import xml.etree.ElementTree

import numpy as np
import onnx.parser
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.common.node_phases import PHASES
from skort.plotting import GraphDisplay, graph
from skort.plotting.graph_text import operators_of

X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
SHORT = {"max_iter": 2, "tol": None, "random_state": 0, "standardize": False, "eta0": 0.01}

needs_dot = pytest.mark.skipif(
    shutil.which("dot") is None, reason="needs the program dot of Graphviz"
)


def linear(**options):
    return OrtSGDRegressor(LinearRegression(), **{"penalty": None, **SHORT, **options}).fit(
        X, X[:, 0]
    )


def parsed(text):
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')


def test_the_text_of_a_small_model():
    model = parsed("""
    small (float[N, 2] X, float Z) => (float[N, 1] y, int64[1] k) <float[2, 1] W = {1, 2},
        float[1] b = {0.5}> {
        one = Constant <value = float {1}> ()
        c = Neg (one)
        product = MatMul (X, W)
        shifted = Add (product, b)
        scaled = Mul (shifted, c)
        joined = Concat <axis = 1> (scaled, scaled)
        axes = Constant <value = int64[1] {1}> ()
        y = ReduceSum <keepdims = 1> (joined, axes)
        k = Identity (axes)
    }""")
    assert str(GraphDisplay.from_model(model)) == (
        "inputs\n"
        "  X: float32[N, 2]\n"
        "  Z: float32\n"
        "operators\n"
        "  product = MatMul(X, W[2, 1])\n"
        "  shifted = Add(product, b[1])\n"
        "  scaled = Mul(shifted, Neg(1))\n"
        "  joined = Concat(scaled, scaled, axis=1)\n"
        "  y = ReduceSum(joined, [1], keepdims=1)\n"
        "  k = Identity([1])\n"
        "outputs\n"
        "  y: float32[N, 1]\n"
        "  k: int64[1]"
    )


def test_constants_that_are_computed_from_constants_are_folded():
    model = parsed("""
    folded (float[4] x) => (float[4] y) {
        size = Constant <value = int64[1] {4}> ()
        ones = ConstantOfShape <value = float[1] {0.25}> (size)
        same = Identity (ones)
        y = Mul (x, same)
    }""")
    (operator,) = operators_of(model)
    assert [argument.text for argument in operator.arguments] == ["x", "0.25 of shape [4]"]
    assert [argument.is_constant for argument in operator.arguments] == [False, True]


def test_a_constant_of_many_operators_has_its_name():
    doubled = "\n".join(f"c{i + 1} = Add(c{i}, c{i})" for i in range(40))
    model = parsed(f"""
    long (float x) => (float y) {{
        c0 = Constant <value = float {{1}}> ()
        {doubled}
        y = Add (x, c40)
    }}""")
    (operator,) = operators_of(model)
    constant = operator.arguments[1]
    assert re.fullmatch(r"(Add\(|c\d+|, |\))+", constant.text) and len(constant.text) <= 120
    assert constant.is_constant


def test_a_constant_that_is_an_output_is_an_operator():
    model = parsed("given () => (float[1] y) { y = Constant <value = float[1] {2}> () }")
    assert [(operator.op_type, operator.outputs) for operator in operators_of(model)] == [
        ("Constant", ["y"])
    ]


def test_a_subgraph_reads_results_of_the_graph_around_it():
    model = parsed("""
    branching (bool c, float[2] x) => (float[2] y) {
        z = Neg (x)
        y = If (c) <
            then_branch = one () => (float[2] a) { a = Identity (z) },
            else_branch = two () => (float[2] b) { b = Exp (x) }
        >
    }""")
    assert [a.text for a in operators_of(model)[1].arguments] == ["c", "z", "x"]
    dot = GraphDisplay(model).to_dot()
    pairs = [
        ("input1", "node0"),
        ("input0", "node1"),
        ("node0", "node1"),
        ("input1", "node1"),
        ("node1", "output0"),
    ]
    assert edges(dot) == pairs


def edges(dot):
    return re.findall(r"(\w+) -> (\w+)", dot)


def test_the_text_of_the_step_of_a_linear_model():
    text = GraphDisplay.from_estimator(linear(), "step").to_text()
    assert (
        text
        == """\
inputs
  X: float32[20, 3]
  skort_target: float32[20, 1]
  skort_sample_weight: float32[20, 1]
  skort_learning_rate: float32
  skort_weights: float32[4]
  coef: float32[3, 1]
  intercept: float32[1]
  skort_loss_0: float32[20, 1]
forward
  multiplied = MatMul(X, coef)
  resh = Add(multiplied, intercept)
loss
  half__1 = Identity(skort_loss_0)
  residual__1 = Sub(resh, skort_target)
  square__1 = Mul(residual__1, residual__1)
  skort_losses = Mul(half__1, square__1)
  skort_weighted_losses = Mul(skort_losses, skort_sample_weight)
  skort_loss = ReduceSum(skort_weighted_losses, keepdims=0)
backward
  skort_gradient = Sub(resh, skort_target)
  skort_score_gradient = Mul(skort_gradient, skort_sample_weight)
  skort_gradient/multiplied/0 = Identity(skort_score_gradient)
  skort_gradient/intercept/0_broadcast = Identity(skort_score_gradient)
  reducesum_1__6 = ReduceSum(skort_gradient/intercept/0_broadcast, [0, 1], keepdims=0)
  skort_gradient/intercept/0 = Reshape(reducesum_1__6, [1])
  skort_gradient/coef/0 = Gemm(X, skort_gradient/multiplied/0, alpha=1, transA=1, transB=0)
  reshape_1__8 = Reshape(skort_gradient/coef/0, [-1])
  skort_weights_gradient = Concat(reshape_1__8, skort_gradient/intercept/0, axis=0)
penalty
  skort_objective = Identity(skort_loss)
update
  mul_0__9 = Mul(skort_weights_gradient, skort_learning_rate)
  skort_weights_next = Sub(skort_weights, mul_0__9)
outputs
  skort_loss: float32
  skort_objective: float32
  skort_weights_gradient: float32[4]
  skort_weights_next: float32[4]"""
    )


def test_a_step_in_the_language_of_graphviz():
    model = linear()
    display = GraphDisplay.from_estimator(model, "step")
    dot, operators = display.to_dot(), operators_of(display.model)
    assert re.findall(r"subgraph cluster_(\w+)", dot) == list(PHASES)
    assert len(re.findall(r"^ +node\d+ \[", dot, re.MULTILINE)) == len(operators) == 20
    for i, operator in enumerate(operators):
        (box,) = re.findall(rf"^ +node{i} \[(.*)\]$", dot, re.MULTILINE)
        constants = [argument.text for argument in operator.arguments if argument.is_constant]
        label = "\\n".join([operator.op_type, *constants])
        assert f'label="{label}"' in box
        names = ", ".join(operator.outputs)
        assert f'tooltip="{names}"' in box
    # The boxes of a phase have its colour.
    colours = {}
    for cluster in re.findall(r"subgraph cluster_(\w+) \{(.*?)\n  \}", dot, re.DOTALL):
        colours[cluster[0]] = set(re.findall(r'fillcolor="(#\w+)"', cluster[1]))
    assert [len(found) for found in colours.values()] == [1] * 5
    assert len(set.union(*colours.values())) == 5
    numbers = {name: i for i, operator in enumerate(operators) for name in operator.outputs}
    assert (f"node{numbers['skort_loss']}", f"node{numbers['skort_objective']}") in edges(dot)
    assert (f"node{numbers['skort_weights_next']}", "output3") in edges(dot)
    assert ("input0", f"node{numbers['multiplied']}") in edges(dot)


def test_names_are_quoted():
    model = parsed('"n" (float[1] x) => (float[1] y) { y = Neg (x) }')
    model.graph.input[0].name = model.graph.node[0].input[0] = 'a "b" <c> & \\d'
    dot = GraphDisplay(model).to_dot()
    assert 'label="a \\"b\\" &lt;c&gt; &amp; \\\\d\\nfloat32[1]"' in dot
    if shutil.which("dot"):
        assert "a &quot;b&quot; &lt;c&gt; &amp; \\d" in GraphDisplay(model).to_svg()


def test_a_model_has_no_phases():
    model = OrtSGDClassifier(MLPClassifier((4,)), **SHORT).fit(X, X[:, 0] > 0)
    display = GraphDisplay.from_estimator(model)
    assert "cluster" not in display.to_dot()
    assert [operator.op_type for operator in operators_of(display.model)][:2] == ["MatMul", "Add"]
    assert "coefficient[3, 4]" in display.to_text()


@pytest.mark.parametrize(
    "solver, name",
    [("graph", "step"), ("agent", "gradient"), ("session", "training")],
    indirect=["solver"],
)
def test_which_graph(solver, name):
    model = linear(solver=solver)
    graphs = model.training_graphs()
    step = GraphDisplay.from_estimator(model, "step").model
    assert [n.op_type for n in step.graph.node] == [n.op_type for n in graphs[name].graph.node]
    for other in graphs:
        found = GraphDisplay.from_estimator(model, other).model.graph
        assert [n.op_type for n in found.node] == [n.op_type for n in graphs[other].graph.node]
    with pytest.raises(
        ValueError, match=r'which must be "model", "step" or one of \[.*\], got \'steps\''
    ):
        GraphDisplay.from_estimator(model, "steps")


def test_several_estimators_are_refused():
    model = linear()
    with pytest.raises(ValueError, match="several fitted estimators"):
        GraphDisplay.from_estimator([model, model])


@needs_dot
def test_the_picture_has_every_operator():
    display = GraphDisplay.from_estimator(linear(penalty="l2", alpha=0.1), "step")
    svg = display.to_svg()
    root = xml.etree.ElementTree.fromstring(svg)
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    operators = [operator.op_type for operator in operators_of(display.model)]
    assert {name: texts.count(name) for name in operators} == {
        name: operators.count(name) for name in operators
    }
    assert [text for text in texts if text in PHASES] == list(PHASES)
    assert display._repr_svg_() == svg
    assert display._repr_html_() == f'<div style="overflow-x: auto">{svg}</div>'


@needs_dot
def test_the_picture_on_axes():
    pytest.importorskip("matplotlib")
    display = GraphDisplay.from_estimator(linear()).plot()
    (image,) = display.ax_.images
    assert image.get_array().shape[2] == 4
    height, width = image.get_array().shape[:2]
    np.testing.assert_allclose(display.figure_.get_size_inches(), [width / 150, height / 150 + 0.4])
    assert not display.ax_.axison
    assert display.ax_.get_title() == "Model"


def test_without_graphviz_there_is_text(monkeypatch):
    monkeypatch.setattr(graph, "_program", lambda: None)
    display = GraphDisplay.from_estimator(linear())
    assert display._repr_svg_() is None
    assert display._repr_html_().startswith("<pre>inputs\n  X: float32[?, 3]\noperators\n")
    with pytest.raises(FileNotFoundError, match='needs the program "dot" of Graphviz'):
        display.to_svg()


@needs_dot
def test_a_graph_that_is_too_large_to_draw_is_text(monkeypatch):
    monkeypatch.setattr(graph, "_SECONDS", 1e-4)
    display = GraphDisplay.from_estimator(linear())
    with pytest.raises(
        TimeoutError, match=r"in 0.0001 seconds: it is too large to draw. Use to_text\(\)"
    ):
        display.to_svg()
    assert display._repr_svg_() is None
    assert display._repr_html_().startswith("<pre>inputs\n  X: float32")


def test_without_graphviz_the_text_is_on_the_axes(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(graph, "_program", lambda: None)
    display = GraphDisplay.from_estimator(linear()).plot()
    assert [text.get_text() for text in display.ax_.texts] == [display.to_text()]


def bounds(artist, figure):
    """Return left, right, bottom and top of an artist, in parts of the figure."""
    figure.canvas.draw()
    box = artist.get_window_extent().transformed(figure.transFigure.inverted())
    return box.x0, box.x1, box.y0, box.y1


def test_a_step_without_graphviz_is_all_in_the_picture(monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(graph, "_program", lambda: None)
    network = OrtSGDClassifier(MLPClassifier((4,)), optimizer="adam", **SHORT).fit(X, X[:, 0] > 0)
    for model, ax in (
        (network, None),
        (linear(), None),
        (network, plt.subplots(1, 2, figsize=(12, 8))[1][1]),
    ):
        display = GraphDisplay.from_estimator(model, "step").plot(ax)
        (text,) = display.ax_.texts
        assert [line for line in text.get_text().splitlines() if line in PHASES] == list(PHASES)
        left, right, bottom, top = bounds(text, display.figure_)
        assert 0 <= left < right <= 1 and 0 <= bottom < top <= 1
        assert display.ax_.get_title().splitlines()[0] == "Training step"
        assert bounds(display.ax_.title, display.figure_)[2] >= top


def test_a_display_is_drawn_where_its_axes_are_asked_for(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(graph, "_program", lambda: None)
    display = GraphDisplay.from_model(linear().onnx_)
    assert display.figure_ is display.ax_.figure
    assert display.ax_.get_title().splitlines()[0] == display.model.graph.name
    assert len(display.ax_.texts) == 1


def test_without_matplotlib_the_error_says_how_to_install_it(no_matplotlib):
    with pytest.raises(
        ImportError, match=r"GraphDisplay.plot needs matplotlib .* pip install matplotlib"
    ):
        GraphDisplay.from_estimator(linear()).plot()


def test_a_short_text_has_its_whole_title(monkeypatch):
    monkeypatch.setattr("skort.plotting.graph._program", lambda: None)
    square = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> a (float[N] X) => (float[N] y) {y = Mul (X, X)}'
    )
    display = GraphDisplay.from_model(square).plot()
    display.figure_.canvas.draw()
    left, _, right, _ = display.ax_.title.get_window_extent().extents
    assert 0 <= left < right <= display.figure_.bbox.width
