"""The signature of an optimizer's ONNX function."""

import pytest

from skort.common.parametrized_graph import signature
from skort.optim.optimizers import SGD, Adam, Momentum, Nesterov
from skort.optim.optimizers.protocol import update_signature


def test_a_signature_names_the_memory_before_and_after_an_update():
    assert update_signature("sgd") == "sgd (weights, gradient, eta) => (next_weights, length)"
    assert update_signature("own", ["m", "v"]) == (
        "own (weights, gradient, eta, m, v) => (next_weights, length, next_m, next_v)"
    )


@pytest.mark.parametrize("optimizer", [SGD(), Momentum(), Nesterov(), Adam()], ids=str)
def test_the_memory_in_numpy_is_that_of_the_onnx_function(optimizer):
    memory = optimizer.start(2, 1, "float32")
    inputs, results = signature(optimizer.onnx_update())
    assert inputs == ["weights", "gradient", "eta", *memory]
    assert results == ["next_weights", "length", *(f"next_{name}" for name in memory)]
