import onnx.parser
import pytest

from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models.known_shapes import shapes_for_rows
from skort.graphs.onnx_models.operator_rules import check_numbers, check_shapes, is_safe


def model(nodes, constants="int64[1] unused = {0}"):
    """Return a model of X, of 4 columns, and of an image A of shape (N, 2, 4, 4)."""
    return onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> m (float[N, 4] X, float[N, 2, 4, 4] A) => '
        f"(float[N, 1] y) <{constants}> {{ {nodes} }}"
    )


@pytest.mark.parametrize(
    "operator, attributes, problem",
    [
        ("MaxPool", "kernel_shape = [2, 2], strides = [0, 2]", "strides=.0, 2., .* at least 1"),
        ("LpPool", "kernel_shape = [2, 2], pads = [0, 0, -1, 0]", "pads=.* at least 0"),
        ("AveragePool", "kernel_shape = [2, 2], pads = [1, 1]", "pads=.1, 1. with kernel_shape="),
        ("MaxPool", "kernel_shape = [2, 2], dilations = [1, -1]", "dilations=.* at least 1"),
        ("MaxPool", "kernel_shape = [99999999, 2]", "kernel_shape=.* at most 16,777,216"),
        ("SpaceToDepth", "blocksize = 0", "blocksize=0, which must be at least 1"),
        ("LRN", "size = -1", "size=-1, which must be at least 1"),
    ],
)
def test_numbers(operator, attributes, problem):
    with pytest.raises(NotTrainableError, match=rf"the {operator} node .*'y'.* has {problem}"):
        check_numbers(model(f"y = {operator} <{attributes}> (A)").graph)


def test_a_pad_may_cut():
    check_numbers(model("y = Pad <pads = [0, -1, 0, 0]> (X)").graph)


@pytest.mark.parametrize(
    "nodes, constants, problem",
    [
        ("y = Transpose <perm = [2, 1]> (X)", "", r"perm=\[2, 1\] for an array of rank 2"),
        ("y = LayerNormalization (X, g, b)", "float[4] g = {1, 1, 1, 1}, float[0] b = {}", "shape"),
        (
            "y = BatchNormalization (A, p, q, p, p)",
            "float[2] p = {1, 1}, float[1] q = {1}",
            r"the input 'q' of shape \(1,\), and needs the shape \(2,\)",
        ),
        ("y = Conv (A, W, b)", "float[1, 2, 1, 1] W = {1, 1}, float[0] b = {}", "'b' of shape"),
        ("y = Conv (A, W)", "float[1, 1, 1, 1] W = {1}", "for 2 channels"),
        ("y = Conv (A, W)", "float[1, 2, 0, 1] W = {}", r"a weight of shape \(1, 2, 0, 1\)"),
        ("y = GlobalAveragePool (X)", "", "'X' of rank 2, and needs rank 3+"),
        ("y = MaxPool <kernel_shape = [2]> (A)", "", "for an array of rank 4"),
        ("y = Gather <axis = 1> (X, i)", "int64[1] i = {4}", "an index from 4 to 4 for 4 elements"),
        ("y = Softmax <axis = 2> (X)", "", r"the axes \[2\] for an array of rank 2"),
        ("y = Squeeze (X, i)", "int64[1] i = {-3}", r"the axes \[-3\]"),
        ("y = ReduceMean <axes = [0, -2]> (X)", "", "an axis twice"),
        ("y = Slice (X, b, b)", "int64[1] b = {0}, int64[2] c = {0, 1}", None),
        ("y = Slice (X, b, c)", "int64[1] b = {0}, int64[2] c = {0, 1}", "of the shapes"),
        ("y = Split <axis = 1> (X, k)", "int64[1] k = {5}", r"the sizes \[5\] for 4 elements"),
        ("y = Pad (X, p)", "int64[4] p = {0, -9, 0, 0}", "that cut more"),
        ("y = Pad (X, p)", "int64[2] p = {0, 0}", "for an array of rank 2"),
        ("y = Tile (X, k)", "int64[1] k = {1}", "repeats of shape"),
        ("y = Concat <axis = 0> (X, A)", "", r"arrays of the ranks \[2, 4\]"),
        ("y = Gemm (X, W)", "float[4] W = {1, 1, 1, 1}", "'W' of rank 1, and needs rank 2"),
        ("y = GatherND <batch_dims = 1> (X, i)", "int64[1, 1] i = {0}", "for any number of rows"),
        ("y = GatherND <batch_dims = 2> (X, i)", "int64[1, 1] i = {0}", "batch_dims=2"),
        ("y, j = TopK (X, k)", "int64[1] k = {5}", "k=.5. for 4 elements"),
    ],
)
def test_shapes(nodes, constants, problem):
    checked = model(nodes, constants or "int64[1] unused = {0}")
    if problem is None:
        check_shapes(checked.graph, shapes_for_rows(checked, 3))
    else:
        with pytest.raises(NotTrainableError, match=f"{problem}.*Correct the node"):
            check_shapes(checked.graph, shapes_for_rows(checked, 3))


@pytest.mark.parametrize(
    "nodes, safe",
    [
        ("a = Transpose (X) y = MatMul (X, a)", True),
        ("y = MaxPool <kernel_shape = [2, 2]> (A)", True),
        ("i = NonZero (X) y = Gather (X, i)", False),
        ("y = com.microsoft.FastGelu (X)", False),
    ],
)
def test_what_the_rules_do_not_know_is_not_safe(nodes, safe):
    checked = model(nodes)
    assert is_safe(checked.graph, shapes_for_rows(checked, 3)) == safe
