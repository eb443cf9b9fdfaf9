"""The structure of the models; their values are tested with the files that hold them."""

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper

from skort.exceptions import NotTrainableError
from skort.objective import Hinge, Loss, SquaredError
from skort.objective.objective import LOSS, SAMPLE_WEIGHT, TARGET, Objective
from skort.runtime.installed import training_api
from skort.solvers.module.models import Blueprint, Term, eval_model, optimizer_model, training_model

STRUCTURE = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
line (float[N, 2] X, float[2, 1] coef) => (float[N, 1] score) { score = MatMul (X, coef) }""")
SQUARE = Loss(
    "square (score, target) => (loss) { residual = Sub (score, target) loss = Mul "
    "(residual, residual) }"
)


def blueprint(loss, structure=STRUCTURE):
    objective = Objective(loss, None, ("coef",), 1, np.dtype("float32"))
    weights = {"coef": np.array([[1], [2]], np.float32)}
    infos = [helper.make_tensor_value_info(name, 1, [None, 1]) for name in (TARGET, SAMPLE_WEIGHT)]
    term = Term("score", TARGET, SAMPLE_WEIGHT, objective)
    return Blueprint(structure, weights, {}, (term,), (LOSS,), tuple(infos))


def shapes(infos):
    return {
        i.name: [d.dim_value or d.dim_param for d in i.type.tensor_type.shape.dim] for i in infos
    }


def test_the_eval_model_takes_any_number_of_rows():
    model = eval_model(blueprint(SquaredError()))
    onnx.checker.check_model(model)
    inputs = {
        "X": ["n_rows", 2],
        TARGET: ["n_rows", 1],
        SAMPLE_WEIGHT: ["n_rows", 1],
        "coef": [2, 1],
    }
    assert shapes(model.graph.input) == inputs
    assert shapes(model.graph.output) == {LOSS: []}


@pytest.mark.parametrize(
    "loss", [SquaredError(), Hinge(), SQUARE], ids=["closed form", "kink", "derived"]
)
def test_the_training_model_of_a_batch_size_has_standard_operators_but_one(loss):
    model = training_model(blueprint(loss), 4)
    assert shapes(model.graph.input) == {
        **{"X": [4, 2], TARGET: [4, 1], SAMPLE_WEIGHT: [4, 1], "coef": [2, 1]},
        **{"coef_grad.accumulation.buffer": [2, 1], "lazy_reset_grad": [1]},
    }
    assert shapes(model.graph.output) == {LOSS: [], "coef_grad.accumulation.out": [1]}
    assert [node.op_type for node in model.graph.node if node.domain] == ["InPlaceAccumulatorV2"]


@pytest.mark.skipif("Module" not in training_api(), reason="this runtime is no build for training")
@pytest.mark.parametrize("loss", [SquaredError(), SQUARE], ids=["closed form", "derived"])
def test_the_training_model_of_any_batch_size_is_sorted(loss):
    model = training_model(blueprint(loss), None)
    known = {i.name for i in (*model.graph.input, *model.graph.initializer)} | {""}
    for node in model.graph.node:
        assert known.issuperset(node.input), node
        known.update(node.output)
    assert shapes(model.graph.input)["X"] == ["n_rows", 2]


def test_moments_are_inputs_of_the_optimizers():
    sgd = optimizer_model("SGD").graph
    assert [i.name for i in sgd.input] == [
        "learning_rate",
        "step",
        "params",
        "gradients",
        "first_order_moments",
    ]
    adam = optimizer_model(
        "AdamW", {"beta_1": 0.9, "beta_2": 0.99, "epsilon": 1e-8, "weight_decay": 0.1}
    ).graph
    assert [i.name for i in adam.input][-1] == "second_order_moments"
    assert list(adam.node[0].input) == [i.name for i in adam.input]


def test_a_model_without_parameters_and_a_fixed_number_of_rows_are_refused():
    none = blueprint(SquaredError())
    none.trainable.clear()
    with pytest.raises(NotTrainableError, match="trainable: there is no parameter to train"):
        training_model(none, 4)
    fixed = onnx.ModelProto()
    fixed.CopyFrom(STRUCTURE)
    fixed.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 8
    with pytest.raises(ValueError, match="batch_size=4: the input 'X' has 8 rows"):
        training_model(blueprint(SquaredError(), fixed), 4)
