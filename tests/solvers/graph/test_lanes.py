"""Steps of several trainings, against those of a solver for each."""

import dataclasses

import numpy as np
import onnx.checker
import onnx.helper
import pytest
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.common.onnx_text import IR_VERSION, OPSET
from skort.estimators.data.targets import target_encoder
from skort.estimators.training.result import result_of
from skort.estimators.training.run import problem_of
from skort.graphs.score_graph import Link, chain_of
from skort.optimizers import Adam, Momentum
from skort.runtime.sessions import compiled
from skort.solvers import make_step
from skort.solvers.graph.lanes import chain_graph, lane_of, parts_of

RATES = [0.01, 0.05, 0.2]
UPDATES = [
    {"penalty": None},
    {"penalty": "l2"},
    {"penalty": "l1", "optimizer": "momentum"},
    {"penalty": "elasticnet", "l1_ratio": 0.3, "optimizer": "nesterov"},
    {"penalty": "l2", "optimizer": "adam"},
    # Implicit steps.
    {"penalty": "l2", "strong": True},
    {"penalty": "l2", "strong": True, "optimizer": "momentum", "dtype": "float64"},
]
NETWORK = MLPRegressor(hidden_layer_sizes=(4,))


def problem_of_fit(model, X, y):
    """Return what a fit of a model makes its solver from, of X as it is."""
    model.set_params(standardize=False, max_iter=1, tol=None, random_state=0, batch_size=8).fit(
        X, y
    )
    plan, fitted, state = result_of(model).plan, result_of(model).model, result_of(model).state
    return problem_of(plan, fitted, plan.variables(fitted.score_graph, None), state, 8, n_batches=3)


def lane_in(problem):
    return lane_of(problem, chain_of(problem.score_graph))


def joint_step(problems):
    return make_step(problems[0], solver="graph", lanes=[lane_in(problem) for problem in problems])


def fill(batch, X, target, sample_weight):
    # The last column is that of ones, where there is one.
    batch.X[:] = 1
    batch.X[:, : X.shape[1]] = X
    batch.target[...], batch.sample_weight[...] = target, sample_weight


def make_steps(joint, singles, X, target, rng, n_steps=6):
    for step in range(n_steps):
        rows, weight = rng.permutation(len(X))[:8], rng.uniform(size=(8, 1)) / 8
        joint.rates({number: eta / (step + 1) for number, eta in enumerate(RATES)})
        for batch in (joint.batch, *(single.batch for single in singles)):
            fill(batch, X[rows], target[rows], weight)
        joint.step(0.25)
        for single, eta in zip(singles, RATES, strict=True):
            single.step(eta / (step + 1), 0.25)


def assert_same(lane, single, rtol=1e-5):
    assert lane.state().keys() == single.state().keys()
    for name, array in single.state().items():
        np.testing.assert_allclose(lane.state()[name], array, rtol=rtol, atol=1e-6, err_msg=name)
        assert lane.state()[name].dtype == array.dtype
    for name, array in single.weights().items():
        np.testing.assert_allclose(lane.weights()[name], array, rtol=rtol, atol=1e-6)
    assert lane.gradient_norm() == pytest.approx(single.gradient_norm(), rel=1e-4)
    np.testing.assert_allclose(
        lane.backend.last_gradient(), single.backend.last_gradient(), rtol=1e-4, atol=1e-5
    )
    # The graph is of all trainings.
    assert lane.training_graphs() == {}
    assert lane.objective() == pytest.approx(single.objective(), rel=1e-5)


@pytest.mark.parametrize(
    "inner", [None, NETWORK, MLPRegressor(hidden_layer_sizes=(4, 3), activation="logistic")]
)
@pytest.mark.parametrize("options", UPDATES, ids=str)
def test_regressors_make_the_steps_of_single_solvers(inner, options, rng):
    X = rng.normal(size=(24, 5)).astype(options.get("dtype", "float32"))
    y, scale = X[:, 0] - X[:, 1], 1000.0 if options.get("strong") else 0.01
    options = {name: value for name, value in options.items() if name != "strong"}

    def strength_of(k):
        has_penalty = options.get("penalty", "auto") is not None
        return {"alpha": scale * (k + 1)} if has_penalty else {}

    problems = [
        problem_of_fit(OrtSGDRegressor(inner, eta0=eta, **strength_of(k), **options), X, y)
        for k, eta in enumerate(RATES)
    ]
    assert len({lane_in(problem).key for problem in problems}) == 1
    joint, singles = (
        joint_step(problems),
        [make_step(problem, solver="graph") for problem in problems],
    )
    make_steps(joint, singles, X, y[:, None], rng)
    for lane, single in zip(joint.lanes, singles, strict=True):
        assert_same(lane, single)
        np.testing.assert_allclose(lane.means(), single.means(), rtol=1e-5)
        assert lane.means() == (0.0, 0.0)


@pytest.mark.parametrize("loss", ["log_loss", "hinge", "modified_huber"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers_make_the_steps_of_single_solvers(loss, n_classes, rng):
    X, y = rng.normal(size=(24, 5)).astype(np.float32), np.arange(24) % n_classes
    inner = MLPClassifier(hidden_layer_sizes=(4,))
    models = [
        OrtSGDClassifier(inner, loss=loss, penalty="l2", alpha=alpha, eta0=0.1) for alpha in RATES
    ]
    problems = [problem_of_fit(model, X, y) for model in models]
    target = target_encoder(models[0], y).encode(y, None).target
    joint, singles = joint_step(problems), [make_step(p, solver="graph") for p in problems]
    make_steps(joint, singles, X, target, rng)
    for lane, single in zip(joint.lanes, singles, strict=True):
        assert_same(lane, single)


@pytest.mark.parametrize(
    "optimizer",
    [lambda momentum: Momentum(momentum=momentum), lambda decay: Adam(weight_decay=decay)],
    ids=["momentum", "decay"],
)
def test_numbers_of_the_loss_and_of_the_optimizer_are_those_of_each(optimizer, rng):
    X = rng.normal(size=(24, 5)).astype(np.float32)
    y = X[:, 0] - X[:, 1]
    models = [
        OrtSGDRegressor(
            loss="epsilon_insensitive",
            epsilon=eta,
            eta0=0.1,
            penalty="l2",
            optimizer=optimizer(eta),
        )
        for eta in RATES
    ]
    problems = [problem_of_fit(model, X, y) for model in models]
    joint, singles = joint_step(problems), [make_step(p, solver="graph") for p in problems]
    make_steps(joint, singles, X, y[:, None], rng)
    for lane, single in zip(joint.lanes, singles, strict=True):
        assert_same(lane, single)


@pytest.fixture
def three(rng):
    """Return problems of three alphas, and their rows."""
    X = rng.normal(size=(24, 5)).astype(np.float32)
    y = X[:, 0] - X[:, 1]
    model = OrtSGDRegressor(NETWORK, penalty="l2", eta0=0.1, optimizer="momentum")
    return [problem_of_fit(model.set_params(alpha=alpha), X, y) for alpha in RATES], X, y[:, None]


def test_some_go_on_without_the_others(three, rng):
    problems, X, target = three
    joint, singles = joint_step(problems), [make_step(p, solver="graph") for p in problems]
    make_steps(joint, singles, X, target, rng)
    joint.keep([2])
    make_steps(joint, singles, X, target, rng)
    assert_same(joint.lanes[2], singles[2])


def test_a_lane_that_is_not_finite_harms_no_other(three, rng):
    problems, X, target = three
    joint, singles = joint_step(problems), [make_step(p, solver="graph") for p in problems]
    state = joint.lanes[1].state()
    joint.lanes[1].restore({name: np.full_like(array, np.inf) for name, array in state.items()})
    with np.errstate(all="ignore"):
        make_steps(joint, singles, X, target, rng)
    assert not joint.lanes[1].is_finite()
    for k in (0, 2):
        assert joint.lanes[k].is_finite()
        assert_same(joint.lanes[k], singles[k])


def test_a_lane_goes_back_to_a_state_of_a_single_solver(three, rng):
    problems, X, target = three
    joint, singles = joint_step(problems), [make_step(p, solver="graph") for p in problems]
    make_steps(joint, singles, X, target, rng)
    state = singles[0].state()
    make_steps(joint, singles, X, target, rng)
    joint.lanes[0].restore(state)
    for name, array in state.items():
        np.testing.assert_array_equal(joint.lanes[0].state()[name], array)


def test_a_lane_alone_is_at_its_beginning_and_makes_steps(three, rng):
    problems, X, target = three
    joint, single = joint_step(problems), make_step(problems[1], solver="graph")
    make_steps(joint, [make_step(p, solver="graph") for p in problems], X, target, rng)
    alone = joint.alone(1)
    for solver in (alone, single):
        fill(solver.batch, X[:8], target[:8], 1 / 8)
        solver.step(0.1, 1.0)
    assert_same(alone, single)


def test_sessions_are_made_once_for_a_structure(three, monkeypatch):
    problems, _, _ = three
    joint_step(problems)
    monkeypatch.setattr("skort.solvers.base.compiled", None)
    joint_step(problems[::-1])


def test_what_is_no_part_of_a_step_of_several(three):
    problem = three[0][0]
    chain = chain_of(problem.score_graph)

    def with_update(**changes):
        return dataclasses.replace(problem, update=dataclasses.replace(problem.update, **changes))

    class Own(Momentum):
        pass

    assert lane_of(problem, chain) is not None
    assert lane_of(with_update(max_grad_norm=1.0), chain) is None
    assert lane_of(with_update(average=True), chain) is None
    assert lane_of(with_update(optimizer=Own()), chain) is None
    assert (
        lane_of(dataclasses.replace(problem, loss_weights={"skort_w": np.zeros(1)}), chain) is None
    )
    # A large batch makes steps that are no faster together.
    assert lane_of(dataclasses.replace(problem, batch_size=2**20), chain) is None


CHAINS = {
    "linear": ((Link("V0", "c0"),), [5, 1]),
    "no intercept": ((Link("V0"),), [5, 1]),
    "several outputs": ((Link("V0", "c0", ("Exp",)),), [5, 3]),
    "one layer": ((Link("V0", "c0", ("Relu",)), Link("V1", "c1")), [5, 4, 1]),
    "two layers": (
        (Link("V0", "c0", ("Tanh",)), Link("V1", None, ("Relu",)), Link("V2", "c2")),
        [5, 4, 3, 2],
    ),
}
FUNCTIONS = {"Exp": np.exp, "Tanh": np.tanh, "Relu": lambda x: np.maximum(x, 0)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CHAINS)
def test_scores_are_those_of_each_model(name, dtype, rng):
    chain, sizes = CHAINS[name]
    X, n_lanes = rng.normal(size=(6, 5)).astype(dtype), 3
    models, scores = [], []
    for _ in range(n_lanes):
        weights, result = {}, X
        for link, n_in, n_out in zip(chain, sizes, sizes[1:], strict=False):
            weights[link.coefficient] = rng.normal(size=(n_in, n_out)).astype(dtype)
            result = result @ weights[link.coefficient]
            if link.intercept is not None:
                weights[link.intercept] = rng.normal(size=(1, n_out)).astype(dtype)
                result = result + weights[link.intercept]
            for activation in link.activations:
                result = FUNCTIONS[activation](result)
        models.append(weights)
        scores.append(result)
    parts = [parts_of(chain, weights) for weights in models]
    shapes = {f"part{i}": part.shape for i, part in enumerate(parts[0])}
    graph = chain_graph(chain, shapes, ("X", 6), "score", n_lanes, dtype)
    opset = onnx.helper.make_opsetid("", OPSET)
    model = onnx.helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[opset])
    rows = np.hstack([X, np.ones((6, 1), dtype)]) if chain[0].intercept else X
    given = {f"part{i}": np.stack([part[i].ravel() for part in parts]) for i in range(len(shapes))}
    onnx.checker.check_model(model, full_check=True)
    # With all optimizations, ONNX Runtime makes one node of a product and its activation, which it
    # has in float32 only.
    (result,) = compiled(model.SerializeToString()).run(None, {"X": rows, **given})
    np.testing.assert_allclose(result, np.concatenate(scores), rtol=1e-5, atol=1e-5)
