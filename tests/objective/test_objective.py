"""The objective of a batch against its formula."""

import numpy as np
import pytest

from skort.objective import L2, Hinge, LogLoss, SquaredError
from skort.objective.objective import Objective
from skort.objective.penalties import ModelPenalty, Strength


def objective(**changes):
    arguments = {
        "loss": SquaredError(),
        "penalty": L2(),
        "coefficients": ("a", "b"),
        "n_outputs": 3,
        "dtype": np.float32,
    }
    return Objective(**{**arguments, **changes})


@pytest.mark.parametrize(
    "loss, n_outputs, scale",
    [(SquaredError(), 3, 1 / 3), (SquaredError(), 1, 1), (LogLoss(), 3, 1), (Hinge(), 3, 1)],
)
def test_scale_of_the_sample_weights(loss, n_outputs, scale):
    assert objective(loss=loss, n_outputs=n_outputs).sample_weight_scale == scale


def test_which_weights_are_penalised():
    assert set(objective().strengths) == {"a", "b"}
    assert set(objective(penalty=L2({"b": 1})).strengths) == {"b"}
    assert objective(penalty=None).strengths == {}


def test_inputs_have_the_shapes_of_a_batch():
    shapes = {
        info.name: [d.dim_value for d in info.type.tensor_type.shape.dim]
        for info in objective().inputs(batch_size=7)
    }
    assert shapes == {"skort_target": [7, 3], "skort_sample_weight": [7, 1]}


def test_intercepts_have_a_penalty_where_the_model_says_so():
    strength = Strength(0.0, np.array([1.0, 3.0]))
    own = objective(penalty=ModelPenalty(Strength(0.0, 2.0), strength), intercepts=("c",)).strengths
    assert own == {"a": (0, 2), "b": (0, 2), "c": strength}
    assert set(
        objective(penalty=ModelPenalty(Strength(0.0, 2.0)), intercepts=("c",)).strengths
    ) == {"a", "b"}
    assert set(objective(intercepts=("c",)).strengths) == {"a", "b"}
