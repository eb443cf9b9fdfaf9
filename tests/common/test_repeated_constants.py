"""Constants that are repeated to the shape of an array."""

import numpy as np
from onnx.reference import ReferenceEvaluator

from skort.common.onnx_text import function
from skort.common.repeated_constants import repeated_constants

HUBER = """
huber (score, target) => (loss) {
    one = Constant <value = float {1}> ()
    half = Constant <value = float {0.5}> ()
    residual = Sub (score, target)
    distance = Abs (residual)
    clipped = Min (distance, one)
    half_clipped = Mul (half, clipped)
    rest = Sub (distance, half_clipped)
    loss = Mul (clipped, rest)
}"""


def test_every_operator_meets_arrays_of_one_shape(rng):
    repeated = repeated_constants(function(HUBER, "float32"))
    names = [name for node in repeated.node for name in node.output]
    repeated.output[:] = names
    feeds = dict(zip(("score", "target"), rng.normal(size=(2, 5, 1)).astype("float32"), strict=True))
    results = feeds | dict(zip(names, ReferenceEvaluator(repeated).run(None, feeds, {}), strict=True))
    distance = abs(feeds["score"] - feeds["target"])
    np.testing.assert_allclose(
        results["loss"], np.where(distance <= 1, distance**2 / 2, distance - 0.5), rtol=1e-6, atol=1e-7
    )
    for node in repeated.node:
        if node.op_type not in ("Shape", "Constant", "Expand"):
            assert {results[name].shape for name in node.input} == {(5, 1)}


def test_what_is_not_elementwise_stays_as_it_is():
    mean = function(
        """
mean_loss (score, target) => (loss) {
    half = Constant <value = float {0.5}> ()
    columns = Constant <value = int64[1] {1}> ()
    residual = Sub (score, target)
    sum = ReduceSum (residual, columns)
    loss = Mul (half, sum)
}""",
        "float32",
    )
    assert repeated_constants(mean) is mean


def test_a_function_without_constants_stays_as_it_is():
    residual = function("residual (score, target) => (loss) { loss = Sub (score, target) }", "float32")
    assert repeated_constants(residual) is residual


def test_names_of_the_function_are_not_taken(rng):
    mine = function(
        """
twice_square (score, target) => (loss) {
    a = Constant <value = float {2}> ()
    a_single = Sub (score, target)
    shape_of_first_input = Mul (a_single, a)
    loss = Mul (shape_of_first_input, a_single)
}""",
        "float32",
    )
    score, target = rng.normal(size=(2, 5, 1)).astype("float32")
    (loss,) = ReferenceEvaluator(repeated_constants(mine)).run(None, {"score": score, "target": target}, {})
    np.testing.assert_allclose(loss, 2 * (score - target) ** 2, rtol=1e-6)
