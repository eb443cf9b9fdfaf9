import onnx
import onnx.parser
import onnx.shape_inference
import pytest

from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models.limits import (
    check_functions,
    check_limits,
    check_nesting,
    check_ranges,
)


def graph(nodes, weights="float[2, 1] W = {1, 2}", inputs="float[N, 2] X"):
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> m ({inputs}) => (float[N, 1] y) '
        f"<{weights}> {{ {nodes} }}"
    )
    return onnx.shape_inference.infer_shapes(model).graph


@pytest.mark.parametrize(
    "operator, divisor, message",
    [
        ("Div", "int64[2] k = {2, 3}", None),
        ("Mod", "int64 k = {5}", None),
        ("Div", "int64[2] k = {2, 0}", "divides integers by zero"),
        ("Mod", "int64 k = {0}", "divides integers by zero"),
        ("Div", "int64 k = {-1}", "or by -1"),
        ("Mod", "int64 unused = {1}", "divides integers by a number that is computed"),
    ],
)
def test_divisions_of_integers(operator, divisor, message):
    nodes = (
        f"s = Shape (X) k2 = Shape (X) d = {operator} (s, {'k2' if 'unused' in divisor else 'k'}) "
        "y = MatMul (X, W)"
    )
    checked = graph(nodes, f"float[2, 1] W = {{1, 2}}, {divisor}")
    if message is None:
        check_limits(checked, 10)
    else:
        with pytest.raises(NotTrainableError, match=f"operator {operator} .*{message}"):
            check_limits(checked, 10)


def test_floats_may_be_divided_by_results():
    check_limits(graph("a = MatMul (X, W) y = Div (a, a)"), 10)


def test_a_loop_in_a_branch_is_found():
    inside = (
        "p = Loop (n, c, X) <body = g (int64 i, bool c1, float[N, 2] p1) => "
        "(bool c2, float[N, 2] q)"
        "{ c2 = Identity (c1) q = Add (p1, p1) }>"
    )
    branches = (
        "then_branch = t () => (float[N, 2] p) { %s }, else_branch = e () => "
        "(float[N, 2] r) { r = Abs (X) }"
    )
    with pytest.raises(NotTrainableError, match="the operator Loop"):
        check_limits(graph(f"y = If (c) <{branches % inside}>", "bool c = {1}, int64 n = {3}"), 10)


@pytest.mark.parametrize(
    "limit, step, message",
    [
        (9, 1, None),
        (30, 3, None),
        (12, 1, "goes from 0 to 12 by 1, which is too many values"),
        (5, 0, "goes from 0 to 5 by 0"),
        (-12, -1, "goes from 0 to -12 by -1"),
    ],
)
def test_ranges(limit, step, message):
    weights = f"int64 z = {{0}}, int64 n = {{{limit}}}, int64 k = {{{step}}}"
    checked = graph("r = Range (z, n, k) y = Cast <to = 1> (r)", weights)
    if message is None:
        check_ranges(checked, 10)
    else:
        with pytest.raises(NotTrainableError, match=message):
            check_ranges(checked, 10)


def test_a_range_of_the_number_of_rows_is_one():
    check_ranges(
        graph(
            "s = Size (X) r = Range (z, s, k) y = Cast <to = 1> (r)", "int64 z = {0}, int64 k = {1}"
        ),
        10,
    )


def with_functions(*functions):
    imports = '<domain: "own", opset_import: ["" : 17, "own" : 1]>'
    return onnx.parser.parse_model(
        (
            '<ir_version: 8, opset_import: ["" : 17, "own" : 1]> m (float[N, 2] X) => '
            "(float[N, 2] y) { y = own.f0 (X) }"
        )
        + "".join(f"{imports} {function}" for function in functions)
    )


@pytest.mark.parametrize(
    "functions, message",
    [
        (["f0 (a) => (b) { b = Abs (a) }"], None),
        (
            ["f0 (a) => (b) { c = own.f1 (a) b = own.f1 (c) }", "f1 (a) => (b) { b = Abs (a) }"],
            None,
        ),
        (["f0 (a) => (b) { b = own.f0 (a) }"], "its function 'f0' calls itself"),
        (
            ["f0 (a) => (b) { b = own.f1 (a) }", "f1 (a) => (b) { b = own.f0 (a) }"],
            "its function 'f0' calls itself",
        ),
        (
            [
                *(
                    f"f{i} (a) => (b) {{ c = own.f{i + 1} (a) b = own.f{i + 1} (c) }}"
                    for i in range(40)
                ),
                "f40 (a) => (b) { b = Abs (a) }",
            ],
            "its functions have more than 1,048,576 nodes when they are inlined",
        ),
    ],
    ids=["one", "two calls", "itself", "each other", "a million nodes"],
)
def test_functions(functions, message):
    model = with_functions(*functions)
    if message is None:
        check_functions(model)
    else:
        with pytest.raises(ValueError, match=message):
            check_functions(model)


def nested(depth):
    """Return a graph of `If`s inside each other."""
    inside = f"y{depth} = Abs (X)"
    for k in reversed(range(depth)):
        inside = (
            f"y{k} = If (c) <then_branch = t{k} () => (float[N, 2] y{k + 1}) {{ {inside} }}, "
            f"else_branch = e{k} () => (float[N, 2] z{k}) {{ z{k} = Neg (X) }}>"
        )
    return graph(f"{inside} y = MatMul (y0, W)", "float[2, 1] W = {1, 2}, bool c = {1}")


def test_ifs_are_nested_eight_deep_at_most():
    check_nesting(nested(8))
    with pytest.raises(NotTrainableError, match=r"the If node .* is inside 8 others"):
        check_nesting(nested(9))
