"""The signature of an optimizer's ONNX function, and the traits that optimizers declare."""

from typing import get_args

import pytest

from skort.common.parametrized_graph import signature
from skort.estimators.literals import OptimizerName
from skort.optim.optimizers import LBFGS, OPTIMIZERS, SGD, Adam, Momentum, Nesterov
from skort.optim.optimizers.protocol import (
    LinearUpdate,
    OptimizerTags,
    optimizer_tags,
    update_signature,
)


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


def test_the_names_are_in_the_order_of_messages():
    assert (*OPTIMIZERS,) == get_args(OptimizerName)[1:]
    first = {"sgd": SGD, "momentum": Momentum, "nesterov": Nesterov, "adam": Adam, "lbfgs": LBFGS}
    assert OPTIMIZERS.items() >= first.items()
    assert {cls.__module__ for cls in OPTIMIZERS.values()} == {"skort.optimizers"}


TAGS = [
    (SGD(), OptimizerTags(1.0, 1.0, linear=LinearUpdate(), runtime="SGD", is_elementwise=True)),
    (
        Momentum(momentum=0.75),
        OptimizerTags(4.0, 4.0, linear=LinearUpdate(0.75), is_elementwise=True),
    ),
    (
        Nesterov(momentum=0.5),
        OptimizerTags(2.0, 2.0, linear=LinearUpdate(0.5, is_ahead=True), is_elementwise=True),
    ),
    (LBFGS(), OptimizerTags(is_full=True)),
    (object(), OptimizerTags()),
]


@pytest.mark.parametrize("optimizer, expected", TAGS, ids=lambda value: type(value).__name__)
def test_the_traits_of_an_optimizer(optimizer, expected):
    assert optimizer_tags(optimizer) == expected


def test_the_traits_of_adam_are_those_of_its_parameters():
    tags = optimizer_tags(Adam(beta_1=0.75, weight_decay=0.5, lazy=True))
    assert (tags.gain, tags.memory, tags.weight_decay) == (None, 4.0, 0.5)
    assert (tags.runtime, tags.is_elementwise, tags.is_lazy) == ("AdamW", True, True)


def test_a_subclass_declares_the_traits_of_its_update_itself():
    class Other(Momentum):
        pass

    class Same(Momentum):
        tags = Momentum.tags

    known = Momentum(momentum=0.75).tags
    assert optimizer_tags(Same(momentum=0.75)) == known
    assert optimizer_tags(Other(momentum=0.75)) == known._replace(linear=None, is_elementwise=False)
