"""
Trainings with Dropout: seeded masks on each solver,
and gradients with the masks of their step.
"""

import numpy as np
import onnx
import onnx.parser
import pytest
from sklearn.base import clone

from skort import OrtSGDClassifier, OrtSGDRegressor, Step
from skort.callbacks import Checkpoint
from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models.onnx_score_graph import onnx_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.graphs.training_mode import masked
from skort.objective import SquaredError
from skort.objective.objective import Objective
from skort.optim.optimizers import SGD
from skort.optim.update import Update
from skort.runtime.device import device_named
from skort.solvers import available_solvers, make_step
from skort.solvers.base import Problem

RATIO = 0.25
NETWORK = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
network (float[N, 3] X) => (float[N, 1] y)
<float[3, 4] V = {1, -1, 0.5, 2, 0.3, 1, -2, 0.1, 1, 1, -1, 0.7}, float[4] b = {0.1, 0.2, 0.3, 0.4},
 float[4, 1] W = {1, -1, 0.5, 2}, float ratio = {0.25}, bool training = {1}> {
    product = MatMul (X, V)
    sum = Add (product, b)
    hidden = Tanh (sum)
    dropped = Dropout (hidden, ratio, training)
    y = MatMul (dropped, W)
}""")


def rows(n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    return X, (X @ [1, 2, 3] + 0.1 * rng.normal(size=n)).astype(np.float32)


def made(name, n_rows, seed=0):
    graph = masked(onnx_score_graph(NETWORK, ScoreSpec(3, 1, "float32")), n_rows)
    objective = Objective(SquaredError(), None, graph.coefficients, 1, np.dtype("float32"))
    problem = Problem(graph, objective, Update(SGD()), n_rows)
    solver = make_step(problem, solver=name, random_state=lambda: np.random.RandomState(seed))
    X, y = rows(n_rows)
    solver.batch.X[...], solver.batch.target[:, 0] = X, y
    solver.batch.sample_weight[...] = objective.sample_weight_scale / n_rows
    (mask,) = (graph.arrays[each] for each in graph.dropout)
    return solver, mask


def objective_of(weights, mask, X, y):
    hidden = np.tanh(X @ weights["V"] + weights["b"]) * mask
    return 0.5 * np.mean(((hidden @ weights["W"]).ravel() - y) ** 2)


def test_a_step_is_the_gradient_with_its_mask(solver):
    made_solver, mask = made(solver, 40)
    X, y = (array.astype(float) for array in rows(40))
    before = {name: array.astype(float) for name, array in made_solver.weights().items()}
    made_solver.step(0.1, 1.0)
    assert made_solver.objective() == pytest.approx(objective_of(before, mask, X, y), rel=1e-5)
    for name, array in made_solver.weights().items():
        for i in np.ndindex(array.shape):
            shifted = [{**before, name: before[name].copy()} for _ in range(2)]
            shifted[0][name][i] += 1e-5
            shifted[1][name][i] -= 1e-5
            expected = (
                objective_of(shifted[0], mask, X, y) - objective_of(shifted[1], mask, X, y)
            ) / 2e-5
            assert (before[name][i] - array[i]) / 0.1 == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_masks_are_seeded_and_each_step_has_its_own():
    solver, mask = made("graph", 2000)
    masks = []
    for _ in range(3):
        solver.step(0.0, 1.0)
        masks.append(mask.copy())
        np.testing.assert_array_equal(np.unique(mask), np.float32([0, 1 / (1 - RATIO)]))
        # 8,000 numbers of standard deviation 0.433.
        assert (mask == 0).mean() == pytest.approx(RATIO, abs=4 * 0.433 / np.sqrt(8000))
    assert not np.array_equal(masks[0], masks[1])
    again, mask = made("graph", 2000)
    again.step(0.0, 1.0)
    np.testing.assert_array_equal(mask, masks[0])
    other, mask = made("graph", 2000, seed=1)
    other.step(0.0, 1.0)
    assert not np.array_equal(mask, masks[0])
    # A state goes on with the masks that were next.
    again.restore(solver.state())
    assert again.state()["dropout"].tolist() == solver.state()["dropout"].tolist()
    next_ones, mask = made("graph", 2000)
    next_ones.restore({**solver.state(), "dropout": solver.state()["dropout"] - [0, 1]})
    next_ones.step(0.0, 1.0)
    np.testing.assert_array_equal(mask, masks[2])
    with pytest.raises(
        ValueError, match="state does not fit: it comes from a training without Dropout"
    ):
        again.restore({name: array for name, array in solver.state().items() if name != "dropout"})


OPTIONS = {
    "eta0": 0.05,
    "learning_rate": "constant",
    "tol": None,
    "batch_size": 10,
    "random_state": 0,
}
OPTIONS |= {"optimizer": "sgd"}


def test_each_solver_trains_with_the_same_masks(solver):
    X, y = rows()
    model = OrtSGDRegressor(NETWORK, max_iter=5, **OPTIONS)
    ours, reference = (clone(model).set_params(solver=name).fit(X, y) for name in (solver, "graph"))
    np.testing.assert_allclose(ours.loss_curve_, reference.loss_curve_, rtol=1e-5)
    without = onnx.ModelProto()
    without.CopyFrom(NETWORK)
    without.graph.initializer[-1].CopyFrom(
        onnx.helper.make_tensor("training", onnx.TensorProto.BOOL, [], [False])
    )
    plain = clone(model).set_params(estimator=without, solver=solver).fit(X, y)
    assert not np.allclose(plain.loss_curve_, ours.loss_curve_, rtol=0.05)
    # Predictions and files have none of it.
    hidden = np.tanh(X @ ours.weights_["V"] + ours.weights_["b"])
    np.testing.assert_allclose(
        ours.predict(X), (hidden @ ours.weights_["W"]).ravel(), rtol=1e-4, atol=1e-5
    )
    assert all(len(node.input) < 3 for node in ours.onnx_.graph.node if node.op_type == "Dropout")


def test_dropout_of_columns_halves_the_coefficients():
    # With the ratio 1/2, E[mask^2] = 2: the least squares of uncorrelated columns have half
    # the coefficients.
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    line (float[N, 2] X) => (float[N, 1] y) <float[2, 1] W = {0, 0}, float ratio = {0.5},
        bool on = {1}> {
        a = Dropout (X, ratio, on)
        y = MatMul (a, W)
    }""")
    X = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]] * 250, dtype=np.float32)
    fitted = OrtSGDRegressor(
        model,
        eta0=0.05,
        learning_rate="constant",
        average=200,
        max_iter=200,
        tol=None,
        random_state=0,
        batch_size=100,
    ).fit(X, X @ [2, 4])
    np.testing.assert_allclose(fitted.weights_["W"].ravel(), [1, 2], atol=0.02)


def test_a_training_is_resumed_with_the_masks_that_were_next(tmp_path):
    X, y = rows()
    path = tmp_path / "training.npz"
    model = OrtSGDRegressor(NETWORK, **OPTIONS)
    whole = clone(model).set_params(max_iter=6).fit(X, y)
    clone(model).set_params(max_iter=3, callbacks=[Checkpoint(path)]).fit(X, y)
    rest = (
        clone(model)
        .set_params(max_iter=6, random_state=1, callbacks=[Checkpoint(resume_from=path)])
        .fit(X, y)
    )
    assert rest.loss_curve_ == whole.loss_curve_
    stream = clone(model).set_params(max_iter=1, shuffle=False)
    for _ in range(3):
        stream.partial_fit(X, y)
    copied = clone(model).set_params(max_iter=3, shuffle=False).fit(X, y)
    np.testing.assert_allclose(stream.loss_curve_, copied.loss_curve_, rtol=1e-5)


@pytest.mark.parametrize("name", available_solvers())
def test_a_step_draws_masks_and_forward_does_not(name):
    X, y = rows()
    step = Step(NETWORK, solver=name)
    np.testing.assert_array_equal(step.forward(X), step.forward(X))
    losses = [step.step(X, y, 0.0) for _ in range(2)]
    assert losses[0] != losses[1]
    assert step.state()["dropout"][1] == 2
    if name == "agent":
        step.forward(X, y, training=True)
        assert set(step.backward()) == {"V", "b", "W"}
        step.update(0.1)
    assert len(step.training_graphs()) > 0


@pytest.mark.filterwarnings("ignore:The weights V before a MatMul node .* through Dropout")
def test_masks_of_weights_have_the_shape_of_the_weights(solver):
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    masked_weights (float[N, 3] X) => (float[N, 1] y)
    <float[3, 2] V = {1, -1, 0.5, 2, 0.3, 1}, float[2, 1] W = {0.5, -1}, float ratio = {0.25},
        bool on = {1}> {
        dropped = Dropout (V, ratio, on)
        hidden = MatMul (X, dropped)
        y = MatMul (hidden, W)
    }""")
    V, W = np.float32([[1, -1], [0.5, 2], [0.3, 1]]), np.float32([[0.5], [-1]])
    X, y = rows(5)
    step = Step(model, solver=solver, batch_size=10)
    np.testing.assert_allclose(step.forward(X), X @ V @ W, rtol=1e-4)
    # The first mask of a loss is one of the 64 masks of V.
    masks = np.array(list(np.ndindex((2,) * 6))).reshape(-1, 3, 2) / (1 - RATIO)
    losses = [0.5 * np.mean(((X @ (mask * V) @ W).ravel() - y) ** 2) for mask in masks]
    assert min(abs(step.step(X, y, 0.1) - np.array(losses))) < 1e-4


def test_labels_are_trained_with_masks():
    X, y = rows()
    model = OrtSGDClassifier(NETWORK, max_iter=30, **OPTIONS).fit(X, y > 0)
    assert model.score(X, y > 0) > 0.9


def test_a_device_of_its_own_is_refused():
    problem = Problem(
        masked(onnx_score_graph(NETWORK, ScoreSpec(3, 1, "float32")), 4),
        Objective(SquaredError(), None, (), 1, np.dtype("float32")),
        Update(SGD()),
        4,
        device_named("cuda", 1),
    )
    from skort.solvers.base import Masks

    with pytest.raises(NotTrainableError, match='masks are drawn on the CPU, got device="cuda'):
        Masks(problem, 0)
