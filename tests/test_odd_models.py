"""Broken and odd ONNX models as `estimator`: each is refused in words, or trained as what it is."""

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.exceptions import NotTrainableError

X = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
Y = X[:, 0] + 1
OPTIONS = {"max_iter": 2, "tol": None, "eta0": 0.01, "learning_rate": "constant", "random_state": 0}
HEADER = '<ir_version: 8, opset_import: ["" : 17]>'
TWO_DOMAINS = '<ir_version: 8, opset_import: ["" : 17, "%s" : 1]>'
WEIGHTS = "float[2, 1] W = {1, -2}, float[1] b = {1}"
NODES = "a = MatMul (X, W) y = Add (a, b)"
INVALID = "the ONNX model is not valid"
NO_RUN = "ONNX Runtime does not run the ONNX model on"
NO_INPUT = (
    "needs inputs of numbers, of shape (any, n_features), or of more dimensions of known sizes"
)
# What could end the process is found before a run.
DANGEROUS = "ONNX Runtime could end the process. Correct the node"
NO_OUTPUT = "needs one output of floats, beside labels; it has the outputs"


def parsed(
    nodes=NODES, weights=WEIGHTS, inputs="float[N, 2] X", outputs="float[N, 1] y", header=HEADER
):
    return onnx.parser.parse_model(
        f"{header} m ({inputs}) => ({outputs}) <{weights}> {{ {nodes} }}"
    )


def changed(change):
    model = parsed()
    change(model, model.graph)
    return model


def with_array(array, number=0):
    model = parsed()
    tensor = model.graph.initializer[number]
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return model


def raw(content):
    def change(model, graph):
        graph.initializer[0].ClearField("float_data")
        graph.initializer[0].raw_data = content

    return change


def external(model, graph):
    graph.initializer[0].external_data.add(key="location", value="/etc/passwd")
    graph.initializer[0].data_location = TensorProto.EXTERNAL


def gemm(*attributes):
    def change(model, graph):
        graph.node[0].op_type = "Gemm"
        graph.node[0].attribute.extend(attributes)

    return change


def sparse_weight(model, graph):
    values, indices = (
        helper.make_tensor("W", TensorProto.FLOAT, [1], [1.0]),
        helper.make_tensor("i", 7, [1], [0]),
    )
    graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 1]))
    graph.initializer.pop(0)


def described(model, graph, kind):
    described = getattr(helper, f"make_{kind}_type_proto")(
        helper.make_tensor_type_proto(1, [None, 2])
    )
    graph.input[0].type.CopyFrom(described)


alpha = helper.make_attribute("alpha", 1.0)
huge = WEIGHTS + ", int64[1] n = {3000000000}"
ends = WEIGHTS + ", int64 z = {0}, int64 n = {3000000000}, int64 o = {1}"
largest = "m = ReduceMax <keepdims = 0> (e) a = MatMul (X, W) y = Add (a, m)"

# What is wrong with the proto itself.
BROKEN = {
    "no weight": (changed(lambda m, g: g.initializer.pop(0)), INVALID),
    "no bias": (changed(lambda m, g: g.initializer.pop(1)), INVALID),
    "no nodes": (changed(lambda m, g: g.ClearField("node")), INVALID),
    "no outputs": (changed(lambda m, g: g.ClearField("output")), NO_OUTPUT),
    "no inputs": (changed(lambda m, g: g.ClearField("input")), INVALID),
    "name that is no text": (
        onnx.ModelProto.FromString(
            changed(lambda m, g: setattr(g, "name", "zz"))
            .SerializeToString()
            .replace(b"zz", b"\xff\xff")
        ),
        "name is no UTF-8 text",
    ),
    "output that is a weight": (changed(lambda m, g: setattr(g.output[0], "name", "b")), INVALID),
    "convolution with a matrix": (
        parsed("y = Conv (X, W)"),
        "has the input 'X' of rank 2, and needs rank 3+",
    ),
    "transposed convolution with a vector": (
        parsed("a = MatMul (X, W) y = ConvTranspose (a, b)"),
        DANGEROUS,
    ),
    "dropout with two ratios": (
        parsed(
            "d = Dropout (X, r) a = MatMul (d, W) y = Add (a, b)",
            WEIGHTS + ", float[2] r = {0.1, 0.2}",
        ),
        "has a ratio or a training_mode that is not one number",
    ),
    "dropout with two modes": (
        parsed(
            "d = Dropout (X, r, t) a = MatMul (d, W) y = Add (a, b)",
            WEIGHTS + ", float r = {0.1}, bool[2] t = {1, 1}",
        ),
        "has a ratio or a training_mode that is not one number",
    ),
    "no graph": (changed(lambda m, g: m.ClearField("graph")), INVALID),
    "nothing": (onnx.ModelProto(), INVALID),
    "no name": (changed(lambda m, g: g.ClearField("name")), INVALID),
    "no opset": (changed(lambda m, g: m.ClearField("opset_import")), INVALID),
    "no IR version": (changed(lambda m, g: m.ClearField("ir_version")), INVALID),
    "IR version 99": (changed(lambda m, g: setattr(m, "ir_version", 99)), INVALID),
    "IR version -1": (changed(lambda m, g: setattr(m, "ir_version", -1)), INVALID),
    "opset 999": (
        changed(lambda m, g: setattr(m.opset_import[0], "version", 999)),
        "opset 999 cannot be read as opset",
    ),
    "opset 0": (changed(lambda m, g: setattr(m.opset_import[0], "version", 0)), INVALID),
    "opset -3": (changed(lambda m, g: setattr(m.opset_import[0], "version", -3)), INVALID),
    "opset twice": (
        changed(lambda m, g: m.opset_import.append(helper.make_opsetid("", 13))),
        "a domain of operators in two versions",
    ),
    "unknown domain": (
        parsed("a = nobody.MatMul (X, W) y = Add (a, b)", header=TWO_DOMAINS % "nobody"),
        NO_RUN,
    ),
    "undeclared domain": (changed(lambda m, g: setattr(g.node[0], "domain", "nobody")), INVALID),
    "unknown operator": (parsed("y = NoSuch (X)"), INVALID),
    "nameless operator": (changed(lambda m, g: setattr(g.node[0], "op_type", "")), INVALID),
    "three operands": (changed(lambda m, g: g.node[0].input.append("b")), INVALID),
    "one operand": (changed(lambda m, g: g.node[0].input.pop()), INVALID),
    "no results": (changed(lambda m, g: g.node[1].ClearField("output")), INVALID),
    "cycle": (parsed("a = MatMul (X, W) c = Add (a, d) d = Add (c, b) y = Add (d, b)"), INVALID),
    "cycle of one": (changed(lambda m, g: g.node[1].input.__setitem__(0, "y")), INVALID),
    "unsorted": (parsed("y = Add (a, b) a = MatMul (X, W)"), INVALID),
    "node twice": (changed(lambda m, g: g.node.append(g.node[1])), INVALID),
    "weight twice": (changed(lambda m, g: g.initializer.append(g.initializer[0])), INVALID),
    "input twice": (changed(lambda m, g: g.input.append(g.input[0])), INVALID),
    "output twice": (changed(lambda m, g: g.output.append(g.output[0])), NO_OUTPUT),
    "unknown attribute": (
        changed(lambda m, g: g.node[0].attribute.append(helper.make_attribute("zz", 3))),
        INVALID,
    ),
    "text for a number": (changed(gemm(helper.make_attribute("alpha", "x"))), INVALID),
    "attribute twice": (changed(gemm(alpha, alpha)), INVALID),
    "empty attribute": (changed(gemm(onnx.AttributeProto(name="alpha"))), INVALID),
    "too few bytes": (changed(raw(b"\0\0\0")), INVALID),
    "no bytes": (changed(raw(b"")), INVALID),
    "too many bytes": (
        changed(raw(bytes(800))),
        "the ONNX model is not valid: the values of 'W': cannot reshape",
    ),
    "negative dimension": (changed(lambda m, g: g.initializer[0].dims.__setitem__(0, -2)), INVALID),
    "huge dimension": (changed(lambda m, g: g.initializer[0].dims.__setitem__(0, 2**60)), INVALID),
    "type 0": (changed(lambda m, g: setattr(g.initializer[0], "data_type", 0)), INVALID),
    "type 77": (changed(lambda m, g: setattr(g.initializer[0], "data_type", 77)), INVALID),
    "nameless weight": (changed(lambda m, g: setattr(g.initializer[0], "name", "")), INVALID),
    "weight in a file": (changed(external), "the values of W are in a file beside the ONNX model"),
    "unknown output": (changed(lambda m, g: setattr(g.output[0], "name", "zz")), INVALID),
    "nameless output": (changed(lambda m, g: setattr(g.output[0], "name", "")), INVALID),
    "untyped output": (changed(lambda m, g: g.output[0].ClearField("type")), INVALID),
    "untyped input": (changed(lambda m, g: g.input[0].ClearField("type")), INVALID),
    "input of type 77": (
        changed(lambda m, g: setattr(g.input[0].type.tensor_type, "elem_type", 77)),
        "a tensor of the unknown type 77",
    ),
    "shapeless input": (
        changed(lambda m, g: g.input[0].type.tensor_type.ClearField("shape")),
        INVALID,
    ),
    "sequence": (changed(lambda m, g: described(m, g, "sequence")), NO_INPUT),
    "optional": (changed(lambda m, g: described(m, g, "optional")), NO_INPUT),
    "recursive function": (
        onnx.parser.parse_model(
            TWO_DOMAINS
            % "own"
            + "m (float[N, 2] X) => (float[N, 1] y) <float[2, 1] W = {1, 2}> { y = own.f (X, W) }"
            '<domain: "own", opset_import: ["" : 17, "own" : 1]> f (a, w) => (c) { c = own.f (a, w) }'
        ),
        INVALID,
    ),
    "missing function": (parsed("y = own.f (X, W)", header=TWO_DOMAINS % "own"), NO_RUN),
}
# Valid ones that cannot be trained.
ODD = {
    "weight of another shape": (with_array(np.ones((5, 1), np.float32)), NO_RUN),
    "weight of three dimensions": (with_array(np.ones((2, 1, 1), np.float32)), NO_RUN),
    "weight without dimensions": (with_array(np.float32(3)), DANGEROUS),
    "weight without values": (
        with_array(np.ones((2, 0), np.float32)),
        ("an array of shape (3, 0) for 3 rows, but y needs", "has 0 columns, one for each class"),
    ),
    "weight of doubles": (with_array(np.ones((2, 1))), NO_RUN),
    "weight of integers": (with_array(np.ones((2, 1), np.int64)), NO_RUN),
    "weight of texts": (with_array(np.array([["a"], ["b"]], object)), NO_RUN),
    "weight of halves": (with_array(np.ones((2, 1), np.float16)), INVALID),
    "weight of NaN": (
        with_array(np.full((2, 1), np.nan, np.float32)),
        "Its weights are finite but for W",
    ),
    "infinite weight": (
        with_array(np.full((2, 1), np.inf, np.float32)),
        "Its weights are finite but for W",
    ),
    "bias of seven": (
        with_array(np.ones(7, np.float32), 1),
        ("gives 7 numbers per row, but y needs 1", "has 7 columns, one for each class"),
    ),
    "bias of rows": (with_array(np.ones((30, 1), np.float32), 1), NO_RUN),
    "texts": (
        parsed("y = Identity (X)", inputs="string[N, 2] X", outputs="string[N, 2] y"),
        NO_INPUT,
    ),
    "doubles": (
        parsed("y = MatMul (X, W)", "double[2, 1] W = {1, 2}", "double[N, 2] X", "double[N, 1] y"),
        "the ONNX model computes in float64, got dtype='float32'",
    ),
    "input of one dimension": (parsed(inputs="float[2] X", outputs="float[1] y"), NO_INPUT),
    "input of three dimensions": (
        parsed(inputs="float[N, 3, 2] X", outputs="float[N, 3, 1] y"),
        "is expecting 6 features",
    ),
    "input without dimensions": (
        parsed("y = Mul (X, b)", inputs="float X", outputs="float[1] y"),
        NO_INPUT,
    ),
    "five columns": (
        parsed("y = MatMul (X, W)", "float[5, 1] W = {1, 2, 3, 4, 5}", "float[N, 5] X"),
        "is expecting 5 feat",
    ),
    "three rows": (
        parsed(
            "a = MatMul (X, W) y = Add (a, c)",
            WEIGHTS + ", float[3, 1] c = {1, 2, 3}",
            "float[3, 2] X",
            "float[3, 1] y",
        ),
        NO_RUN,
    ),
    "two inputs": (
        parsed("a = Add (X, Z) y = MatMul (a, W)", inputs="float[N, 2] X, float[N, 2, 2] Z"),
        "is expecting 6 features",
    ),
    "weight as input": (
        parsed("y = MatMul (X, V)", inputs="float[N, 2] X, float[2, 1] V"),
        NO_INPUT,
    ),
    "two outputs": (
        parsed(NODES + " z = Exp (y)", outputs="float[N, 1] y, float[N, 1] z"),
        NO_OUTPUT,
    ),
    "output of three dimensions": (
        parsed(
            "a = MatMul (X, W) y = Unsqueeze (a, i)",
            WEIGHTS + ", int64[1] i = {1}",
            outputs="float[N, 1, 1] y",
        ),
        "gives float of shape ['N', 1, 1], and not numbers of shape (any, n_outputs)",
    ),
    "one number": (
        parsed("a = MatMul (X, W) y = ReduceSum <keepdims = 0> (a)", outputs="float y"),
        "an array of shape () for 3 rows",
    ),
    "output of integers": (
        parsed("a = MatMul (X, W) y = Cast <to = 7> (a)", outputs="int64[N, 1] y"),
        NO_OUTPUT,
    ),
    "output of a sequence": (
        parsed("a = MatMul (X, W) y = SequenceConstruct (a)", outputs="seq(float[N, 1]) y"),
        NO_OUTPUT,
    ),
    "constant": (
        parsed("y = Identity (b)", outputs="float[1] y"),
        "gives an array of shape (1, 1) for 3 rows, but y needs (3, 1)",
    ),
    "weight as output": (parsed("y = Identity (X)", outputs="float[2, 1] W"), "the ONNX model"),
    "no weights": (
        parsed("y = ReduceSum (X, i)", "int64[1] i = {1}"),
        "the model has no weight to train",
    ),
    "sparse weight": (
        changed(sparse_weight),
        "the initializers ['W'] of the ONNX model are sparse",
    ),
    "quantised": (
        parsed(
            "d = DequantizeLinear (q, s) y = MatMul (X, d)",
            "int8[2, 1] q = {1, 2}, float s = {0.5}",
        ),
        "the model has no weight to train",
    ),
    "weights in a branch": (
        parsed(
            "y = If (t) <then_branch = g () => (float[N, 1] p) { p = MatMul (X, W) },"
            "else_branch = h () => (float[N, 1] q) { q = MatMul (X, W) }>",
            WEIGHTS + ", bool t = {1}",
        ),
        "The weights in the branches of If are not found",
    ),
    "ArgMax": (
        parsed("a = MatMul (X, W) c = ArgMax <axis = 1> (a) y = Cast <to = 1> (c)"),
        "the operator ArgMax between",
    ),
    "Round": (
        parsed("a = MatMul (X, W) y = Round (a)"),
        "the operator Round between a weight and the score",
    ),
    "mean of rows": (
        parsed("a = MatMul (X, W) c = ReduceMean <axes = [0]> (a) y = Sub (a, c)"),
        "mixes rows",
    ),
    "random numbers": (
        parsed("a = MatMul (X, W) n = RandomNormalLike (a) y = Add (a, n)"),
        "mixes rows",
    ),
    "random weights": (
        parsed("n = RandomNormal <shape = [2, 1]> () y = MatMul (X, n)"),
        "mixes rows",
    ),
    "reversed rows": (
        parsed(
            "a = MatMul (X, W) y = ReverseSequence <batch_axis = 1, time_axis = 0> (a, n)",
            WEIGHTS + ", int64[1] n = {2}",
        ),
        DANGEROUS,
    ),
    "Loop": (
        parsed(
            "a = MatMul (X, W) y = Loop (n, t, a) <body = g (int64 i, bool c, float[N, 1] p) => "
            "(bool d, float[N, 1] q)"
            "{ d = Identity (c) q = Add (p, p) }>",
            WEIGHTS + ", int64 n = {3}, bool t = {1}",
        ),
        "the operator Loop (node ''), which has no gradient",
    ),
    "huge constant": (
        parsed("e = ConstantOfShape (n)" + largest, huge),
        "'e' of the ONNX model has 3,000,000,000 values",
    ),
    "huge Expand": (
        parsed("e = Expand (b, n)" + largest, huge),
        "'e' of the ONNX model has 3,000,000,000 values",
    ),
    "huge Tile": (
        parsed("e = Tile (b, n)" + largest, huge),
        "'e' of the ONNX model has 3,000,000,000 values",
    ),
    "huge Range": (
        parsed("f = Range (z, n, o) e = Cast <to = 1> (f)" + largest, ends),
        "goes from 0 to 3e+09 by 1",
    ),
    "computed Range": (
        parsed("k = Mul (n, n) f = Range (z, k, o) e = Cast <to = 1> (f)" + largest, ends),
        "the ends of the Range 'f' of the ONNX model are computed from constants",
    ),
    "division of integers by zero": (
        parsed(
            "s = Shape (X) d = Div (s, z) e = Cast <to = 1> (d)" + largest,
            WEIGHTS + ", int64[1] z = {0}",
        ),
        "divides integers by zero",
    ),
    "division of integers by a result": (
        parsed("s = Shape (X) d = Mod (s, s) e = Cast <to = 1> (d)" + largest),
        "divides integers by a number that is computed",
    ),
    "division by zero": (
        parsed("a = MatMul (X, W) y = Div (a, z)", WEIGHTS + ", float[1] z = {0}"),
        "for several random rows. Its weights are all finite: look for a division by zero",
    ),
    "logarithm of negative numbers": (
        parsed("a = MatMul (X, W) c = Abs (a) d = Neg (c) y = Log (d)"),
        "gives NaN or infinities for several random rows",
    ),
    "two sizes": (
        parsed("a = MatMul (X, W) y = Reshape (a, s)", WEIGHTS + ", int64[2] s = {-1, -1}"),
        DANGEROUS,
    ),
    "seven rows": (
        parsed("a = MatMul (X, W) y = Reshape (a, s)", WEIGHTS + ", int64[2] s = {7, 1}"),
        NO_RUN,
    ),
    "column that is not there": (
        parsed("c = Gather <axis = 1> (X, i) y = MatMul (c, W)", WEIGHTS + ", int64[2] i = {0, 9}"),
        DANGEROUS,
    ),
}
REFUSED = {**BROKEN, **ODD}
# Odd ones that are models all the same, with the weights that are trained.
TRAINED = {
    "output of one dimension": (
        parsed(
            "a = MatMul (X, W) y = Squeeze (a, i)",
            WEIGHTS + ", int64[1] i = {1}",
            outputs="float[N] y",
        ),
        {"W"},
    ),
    "unused domain": (
        changed(lambda m, g: m.opset_import.append(helper.make_opsetid("nobody", 1))),
        {"W", "b"},
    ),
    "weights from weights": (
        parsed(
            "s = MatMul (W, r) a = MatMul (X, s) y = Add (a, b)", WEIGHTS + ", float[1, 1] r = {2}"
        ),
        {"b"},
    ),
    "training information": (changed(lambda m, g: m.training_info.add()), {"W", "b"}),
    "logarithm of X": (
        parsed("p = Abs (X) l = Log (p) a = MatMul (l, W) y = Add (a, b)"),
        {"W", "b"},
    ),
    "names of skort's own": (
        parsed("score = MatMul (X, W) label = Add (score, b) y = Identity (label)"),
        {"W", "b"},
    ),
    "weights with names of skort's own": (
        parsed(
            "a = MatMul (X, weights) y = Add (a, target)",
            "float[2, 1] weights = {1, 2}, float[1] target = {1}",
        ),
        {"weights", "target"},
    ),
    "input called target": (
        parsed("a = MatMul (target, W) y = Add (a, b)", inputs="float[N, 2] target"),
        {"W", "b"},
    ),
    "integers": (parsed("a = Cast <to = 1> (X) y = MatMul (a, W)", inputs="int64[N, 2] X"), {"W"}),
    "halves": (parsed("a = Cast <to = 1> (X) y = MatMul (a, W)", inputs="float16[N, 2] X"), {"W"}),
    "300 nodes": (
        parsed(
            " ".join(
                [
                    "a0 = MatMul (X, W)",
                    *[f"a{i + 1} = Add (a{i}, b)" for i in range(300)],
                    "y = Add (a300, b)",
                ]
            )
        ),
        {"W", "b"},
    ),
}


@pytest.mark.filterwarnings("ignore:The weights .* before a MatMul node")
@pytest.mark.parametrize("kind", [OrtSGDRegressor, OrtSGDClassifier])
@pytest.mark.parametrize("name", REFUSED)
def test_models_that_are_refused(name, kind):
    model, phrase = REFUSED[name]
    estimator = kind(model, **OPTIONS)
    before = dict(vars(estimator)), model.SerializeToString()
    with pytest.raises(ValueError) as raised:
        estimator.fit(X, Y if kind is OrtSGDRegressor else Y > 1)
    message = str(raised.value)
    phrases = phrase if isinstance(phrase, tuple) else (phrase, phrase)
    assert phrases[kind is OrtSGDClassifier] in message
    assert type(raised.value) is NotTrainableError or "is expecting" in message
    for trace in ("onnxruntime_src", ".cc:", ".h:", "[ONNXRuntimeError]", "Assertion"):
        assert trace not in message
    assert (vars(estimator), model.SerializeToString()) == before


@pytest.mark.filterwarnings("ignore:The model in estimator begins at")
@pytest.mark.filterwarnings("ignore:The weights .* before a MatMul node")
@pytest.mark.parametrize("kind", [OrtSGDRegressor, OrtSGDClassifier])
@pytest.mark.parametrize("name", TRAINED)
def test_models_that_are_trained(name, kind, run_onnx):
    model, trained = TRAINED[name]
    before = model.SerializeToString()
    # Whole numbers are not made of others.
    rows = X.round() if name == "integers" else X
    y = Y if kind is OrtSGDRegressor else Y > 1
    fitted = kind(model, **OPTIONS | {"standardize": False, "eta0": 1e-12, "max_iter": 1}).fit(
        rows, y
    )
    assert set(fitted.trainable_) == trained
    score = fitted.predict(rows) if kind is OrtSGDRegressor else fitted.decision_function(rows)
    given = model.graph.input[0]
    dtype = helper.tensor_dtype_to_np_dtype(given.type.tensor_type.elem_type)
    (expected,) = run_onnx(model, **{given.name: rows.astype(dtype)}).values()
    tolerance = 1e-2 if dtype == np.float16 else 1e-5
    np.testing.assert_allclose(score, expected.ravel(), rtol=tolerance, atol=tolerance)
    assert model.SerializeToString() == before


def test_there_are_as_many_as_the_documentation_says():
    assert len(REFUSED) >= 100
