"""Which solver "auto" stands for."""

import numpy as np
import onnx.parser
import pytest
from solver_traits import OwnOptimizer

from skort import OrtSGDRegressor
from skort.exceptions import NotTrainableError, RuntimeNotAvailableError
from skort.objective import Loss
from skort.optim.optimizers import OPTIMIZERS, SGD, Adam
from skort.optim.update import Update
from skort.solvers import SOLVERS, available_solvers, check_solver

X = np.random.default_rng(0).normal(size=(40, 3))
y = X[:, 0]
needs_agent = pytest.mark.skipif(
    "agent" not in available_solvers(), reason="this runtime has no TrainingAgent"
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "optimizer", [*(cls() for cls in OPTIMIZERS.values()), Adam(weight_decay=0.1)], ids=repr
)
def test_graph_can_do_everything_and_comes_first(optimizer, dtype):
    check_solver("graph", np.dtype(dtype), Update(optimizer, 1.0))
    assert next(iter(SOLVERS)) == "graph"


def test_what_is_asked_for_is_what_is_used(solver):
    model = OrtSGDRegressor(solver=solver, max_iter=2, tol=None).fit(X, y)
    assert model.solver_ == solver
    assert OrtSGDRegressor(max_iter=2, tol=None).fit(X, y).solver_ == "graph"


@needs_agent
def test_an_optimizer_without_onnx_needs_the_agent():
    options = {
        "optimizer": OwnOptimizer(),
        "eta0": 0.01,
        "max_iter": 3,
        "tol": None,
        "random_state": 0,
    }
    own = OrtSGDRegressor(**options).fit(X, y)
    assert own.solver_ == "agent"
    sgd = OrtSGDRegressor(**options | {"optimizer": "sgd"}).fit(X, y)
    np.testing.assert_allclose(own.coef_, sgd.coef_, rtol=1e-5)
    with pytest.raises(
        ValueError,
        match=r'solver="graph" needs an optimizer with a method onnx_update, got .*OwnOpti',
    ):
        OrtSGDRegressor(solver="graph", **options).fit(X, y)


class Half(SGD):
    """Of the update that it replaces it inherits the ONNX text."""

    def update(self, weights, gradient, eta, state, scratch):
        weights -= eta / 2 * gradient


@needs_agent
def test_a_replaced_update_is_not_that_of_the_inherited_onnx():
    options = {"max_iter": 3, "tol": None, "random_state": 0}
    half = OrtSGDRegressor(optimizer=Half(), eta0=0.02, **options).fit(X, y)
    assert half.solver_ == "agent"
    sgd = OrtSGDRegressor(optimizer="sgd", eta0=0.01, **options).fit(X, y)
    np.testing.assert_allclose(half.coef_, sgd.coef_, rtol=1e-5)


@pytest.mark.parametrize(
    "signature, named",
    [
        ("(weights, gradient, eta) => (next_weights)", "length are required"),
        ("(weights, gradient, eta, other) => (next_weights, length)", r"the inputs .*'other'"),
        (
            "(weights, gradient, eta) => (next_weights, length, next_other)",
            r"results .*'next_other'",
        ),
    ],
)
def test_an_onnx_update_of_other_names_is_refused(signature, named):
    class Misnamed(SGD):
        def onnx_update(self):
            return f"misnamed {signature} {{ next_weights = Sub (weights, gradient) }}"

    with pytest.raises(ValueError, match=f"(?s)^optimizer=Misnamed.*{named}"):
        OrtSGDRegressor(optimizer=Misnamed(), solver="graph").fit(X, y)


@needs_agent
def test_many_weights_go_to_the_agent():
    wide = np.zeros((2, 500_001), np.float32)
    options = {"max_iter": 1, "tol": None}
    assert OrtSGDRegressor(**options).fit(wide, [0.0, 1.0]).solver_ == "agent"
    assert OrtSGDRegressor(solver="graph", **options).fit(wide, [0.0, 1.0]).solver_ == "graph"


TRIANGLE = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
triangle (float[n, 3] X) => (float[n, 1] score)
<float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3, 1] v = {0.1, 0.2, 0.3}, int64[1] axis = {2}>
{
    product = MatMul (X, w)
    columns = Unsqueeze (product, axis)
    first = Trilu (columns)
    rows = Squeeze (first, axis)
    score = MatMul (rows, v)
}""")


# The data, or twice the data where the flag is negative.
BRANCHES = """
<ir_version: 8, opset_import: ["" : 17]>
branches (float[n, 3] X) => (float[n, 1] score)
<float[3, 1] w = {0.1, 0.2, 0.3}, float flag = {FLAG}, float zero = {0}, float[1] two = {2}>
{
    negative = Less (flag, zero)
    chosen = If (negative) <
        then_branch = doubled () => (float[n, 3] many) { many = Mul (X, two) },
        else_branch = kept () => (float[n, 3] few) { few = Identity (X) }>
    score = MatMul (chosen, w)
}"""


@pytest.mark.parametrize("flag, chosen", [(1, X), (-1, 2 * X)])
def test_control_flow_before_the_weights_trains(flag, chosen, solver):
    branches = onnx.parser.parse_model(BRANCHES.replace("FLAG", str(flag)))
    options = {
        "solver": solver,
        "max_iter": 20,
        "tol": None,
        "batch_size": 40,
        "eta0": 0.05,
        "penalty": None,
    }
    options |= {"optimizer": "sgd", "learning_rate": "constant"}
    model = OrtSGDRegressor(branches, standardize=False, **options).fit(X, y)
    w = np.array([0.1, 0.2, 0.3])
    for _ in range(20):
        w = w - 0.05 * chosen.T @ (chosen @ w - y) / 40
    np.testing.assert_allclose(model.weights_["w"].ravel(), w, rtol=1e-5)
    np.testing.assert_allclose(model.predict(X), chosen @ w, atol=1e-5)


def test_an_operator_without_rule_is_named():
    with pytest.raises(
        NotTrainableError, match=r"operator Trilu .* has no gradient in float32 with solver='graph'"
    ):
        OrtSGDRegressor(TRIANGLE, solver="graph").fit(X, y)


@needs_agent
def test_a_model_without_rule_goes_to_the_agent():
    assert OrtSGDRegressor(TRIANGLE, max_iter=2, tol=None).fit(X, y).solver_ == "agent"


@needs_agent
def test_a_loss_without_rule_goes_to_the_agent():
    trilu = Loss(
        "trilu (score, target) => (loss) { r = Sub (score, target)  s = Trilu (r)  "
        "loss = Mul (s, r) }"
    )
    assert (
        OrtSGDRegressor(loss=trilu, max_iter=2, tol=None, random_state=0).fit(X, y).solver_
        == "agent"
    )
    with pytest.raises(
        NotTrainableError, match="loss: no gradient goes through the operator Trilu"
    ):
        OrtSGDRegressor(loss=trilu, solver="graph", max_iter=2).fit(X, y)


@needs_agent
def test_a_solver_that_cannot_make_the_steps_does_not_hide_why_another_cannot_train_the_model():
    # "graph" lacks the optimizer, and "agent" the gradient of Mod.
    mod = Loss("mod (score, target) => (loss) { loss = Mod <fmod = 1> (score, target) }")
    with pytest.raises(NotTrainableError, match="loss: no gradient goes through the operator Mod"):
        OrtSGDRegressor(loss=mod, optimizer=OwnOptimizer(), max_iter=2).fit(X, y)


def test_where_no_solver_can_the_first_says_why(monkeypatch):
    monkeypatch.setattr("skort.solvers.choice.training_api", dict)
    assert available_solvers()[0] == "graph"
    assert "agent" not in available_solvers()
    with pytest.raises(
        ValueError, match='solver="graph" needs an optimizer with a method onnx_update'
    ):
        OrtSGDRegressor(optimizer=OwnOptimizer()).fit(X, y)
    with pytest.raises(
        RuntimeNotAvailableError,
        match='solver="agent" needs TrainingAgent; solver="graph" works here',
    ):
        OrtSGDRegressor(solver="agent").fit(X, y)


def test_an_l1_penalty_makes_exact_zeros_by_the_default_solver():
    model = OrtSGDRegressor(penalty="l1", alpha=0.3, max_iter=300, tol=None, random_state=0).fit(
        X, y
    )
    assert model.coef_[0] > 0.1
    np.testing.assert_array_equal(model.coef_[1:], [0, 0])
