"""Operators of float32 only, written with others for float64."""

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper

from skort import OrtSGDRegressor
from skort.common.float64_formulas import float64_function
from skort.common.onnx_text import function_model
from skort.exceptions import NotTrainableError
from skort.gradients import check_gradient
from skort.objective import Loss, Penalty
from skort.solvers.part_graph import part_graph

X = np.array([[-800.0, -40.0, -3.5, -1.0, -1e-9, 0.0, 1e-9, 0.25, 2.5, 40.0, 800.0]])
# Operator with attributes -> its values.
CASES = {
    "Celu <alpha = 0.5>": lambda x: np.maximum(x, 0) + 0.5 * np.expm1(np.minimum(x, 0) / 0.5),
    "Elu": lambda x: np.maximum(x, 0) + np.expm1(np.minimum(x, 0)),
    "Elu <alpha = 0.25>": lambda x: np.maximum(x, 0) + 0.25 * np.expm1(np.minimum(x, 0)),
    "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "HardSigmoid <alpha = 0.5, beta = 0.25>": lambda x: np.clip(0.5 * x + 0.25, 0, 1),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Selu": lambda x: (
        1.05070102214813232421875
        * (np.maximum(x, 0) + 1.67326319217681884765625 * np.expm1(np.minimum(x, 0)))
    ),
    "Softplus": lambda x: np.logaddexp(0, x),
}


def called(operator):
    """Return a function of one operator, with the attributes of its text."""
    name, _, attributes = operator.partition(" ")
    return f"one (x) => (y) {{ y = {name} {attributes} (x) }}"


@pytest.mark.parametrize("operator", CASES)
def test_a_formula_has_the_values_of_its_operator(operator, run_onnx):
    model = function_model(called(operator), "float64", {"x": X.shape})
    assert model.graph.output[0].type.tensor_type.elem_type == TensorProto.DOUBLE
    (value,) = run_onnx(model, x=X).values()
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, CASES[operator](X), rtol=2e-8, atol=1e-15)


@pytest.mark.parametrize("operator", CASES)
def test_in_float32_the_operator_stays(operator):
    model = function_model(called(operator), "float32", {"x": X.shape})
    assert [node.op_type for node in model.graph.node] == [operator.partition(" ")[0]]


def test_other_operators_and_other_domains_have_no_formula():
    assert float64_function(helper.make_node("Exp", ["x"], ["y"])) is None
    assert float64_function(helper.make_node("Elu", ["x"], ["y"], domain="custom")) is None


@pytest.mark.parametrize("operator", CASES)
def test_the_gradients_of_losses_penalties_and_models_are_compared(operator):
    """At 0, too, where the operator has no kink."""
    is_smooth = operator in ("HardSwish", "Softplus")
    points = [[-2.5, -0.7], [0.0 if is_smooth else 0.4, 1.5]]
    line = called(operator).partition("{ y")[2].rpartition("}")[0].replace("(x)", "(%s)")
    loss = Loss(f"own (score, target) => (loss) {{ r = Sub (score, target) loss{line % 'r'} }}")
    assert check_gradient(loss, points, target=np.zeros((2, 2))) < 1e-8
    penalty = Penalty(
        f"own (weight) => (penalty) {{ y{line % 'weight'} penalty = ReduceSum <keepdims = 0> (y) }}"
    )
    assert check_gradient(penalty, points) < 1e-8
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[N, 2] X) => (float[N, 1] s)
        <float[2, 2] W = {0.5, -1.5, 2.0, 0.25}, float[2, 1] V = {1.5, -1.0}>"""
        f"{{ x = MatMul (X, W) y{line % 'x'} s = MatMul (y, V) }}"
    )
    assert check_gradient(model, [[0.3, -0.7], [1.0, 0.5]]) < 1e-8


def test_softplus_is_the_log_loss_at_a_score_of_zero():
    """The derivative of -log sigmoid(s) at 0 is -1/2, as a linear model begins there."""
    own = Loss("own (score, target) => (loss) { minus = Neg (score) loss = Softplus (minus) }")
    for loss, dtype in ((own, "float64"), (own, "float32"), ("log_loss", "float64")):
        model = part_graph(loss, (1, 1), dtype=dtype)
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        arrays = {"skort_score": 0.0, "skort_target": 1.0, "skort_sample_weight": 1.0}
        value, gradient = session.run(
            None, {i.name: np.full((1, 1), arrays[i.name], dtype) for i in session.get_inputs()}
        )
        assert value == pytest.approx(np.log(2), rel=1e-6)
        assert gradient.item() == -0.5


SQUARE = "own (score, target) => (loss) { r = Sub (score, target) loss = Mul (r, r) }"
OF_ERF = "own (score, target) => (loss) { r = Sub (score, target) loss = Erf (r) }"


@pytest.mark.filterwarnings("ignore:The .* gradient")
@pytest.mark.parametrize(
    "part",
    [
        {"loss": Loss(OF_ERF, OF_ERF)},
        {"loss": Loss(SQUARE, OF_ERF)},
        {
            "loss": Loss(
                SQUARE, inverse_link="own (score) => (prediction) { prediction = Erf (score) }"
            )
        },
        {
            "penalty": Penalty(
                "own (weight) => (penalty) { y = Abs (weight) penalty = ReduceSum <keepdims = 0> (y) }",
                "own (weight) => (gradient) { gradient = Erf (weight) }",
            )
        },
    ],
    ids=["value", "gradient", "inverse_link", "penalty"],
)
def test_an_operator_without_a_float64_kernel_is_named(part):
    rows = np.linspace(-1, 1, 60).reshape(30, 2)
    told = (
        r"the operator Erf for its inputs\. If they are of float64, give dtype=\"float32\", or write "
        "the loss, the penalty or the model with other operators"
    )
    with pytest.raises(NotTrainableError, match=told):
        model = OrtSGDRegressor(dtype="float64", max_iter=2, tol=None, **part)
        model.fit(rows, rows[:, 0]).predict(rows)
