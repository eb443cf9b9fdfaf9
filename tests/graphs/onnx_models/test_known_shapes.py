import onnx.parser
import pytest

from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models.known_shapes import shapes_for_rows


def model(nodes):
    return onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> m (float[N, 4] X) => (float[N, 1] y) '
        f"<int64[2] k = {{100, 10}}, int64 one = {{1}}, int64 zero = {{0}}> {{ {nodes} y = MatMul (X, X) }}"
    )


@pytest.mark.parametrize(
    "nodes, shape",
    [
        ("h = Shape (X) s = Mul (h, k) r = ConstantOfShape (s)", (300, 40)),
        ("h = Shape (X) p = ReduceProd (h) r = ConstantOfShape (p)", (12,)),
        ("h = Shape (X) p = Pow (h, h) r = ConstantOfShape (p)", (27, 256)),
        ("n = Size (X) r = Range (zero, n, one)", (12,)),
        ("r = NonZero (X)", (2, None)),
    ],
)
def test_shapes_that_are_computed_from_shapes(nodes, shape):
    assert shapes_for_rows(model(nodes), 3)["r"] == shape


def test_a_range_that_grows_with_the_rows_is_not_computed():
    nodes = "n = Size (X) m = Mul (n, n) l = Mul (m, m) j = Mul (l, l) r = Range (zero, j, one)"
    with pytest.raises(NotTrainableError, match=r"the result 'r' .* values per row or more"):
        shapes_for_rows(model(nodes), 30)
