"""Every solver's step against closed forms, scikit-learn's back-propagation, and each other."""

import pickle

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from solver_traits import takes

from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.objective import L1, L2, ElasticPenalty, LogLoss, SquaredError
from skort.objective.objective import Objective
from skort.objective.penalties import ModelPenalty, Strength
from skort.optim.optimizers import LBFGS, OPTIMIZERS, SGD, Adam
from skort.optim.update import Update
from skort.solvers import SOLVERS, available_solvers, make_step
from skort.solvers.base import Problem


def linear(n_features, n_outputs, rng, *, dtype="float32", fit_intercept=True):
    """Return a linear score graph with random weights."""
    model = LinearRegression(fit_intercept=fit_intercept)
    graph = initial_score_graph(
        model, ScoreSpec(n_features, n_outputs, dtype), np.random.RandomState(0)
    )
    return graph.with_weights(
        {name: rng.normal(size=w.shape).astype(dtype) for name, w in graph.weights().items()}
    )


def make(
    name, graph, loss, *, batch_size, penalty=None, dtype="float32", optimizer=None, **options
):
    objective = Objective(loss, penalty, graph.coefficients, graph.n_outputs, np.dtype(dtype))
    solver = make_step(
        Problem(graph, objective, Update(optimizer or SGD(), **options), batch_size), solver=name
    )
    solver.scale = objective.sample_weight_scale
    return solver


def fill(solver, X, target, sample_weight=None):
    weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
    solver.batch.X[...] = X
    solver.batch.target[...] = target
    solver.batch.sample_weight[...] = (solver.scale * weight / weight.sum())[:, None]


def one_step(solver, eta):
    """Make one step of an epoch of one batch; return the objective before it."""
    solver.step(eta, 1.0)
    return solver.objective()


def targets(loss, n_outputs, n, rng):
    if isinstance(loss, SquaredError):
        return rng.normal(size=(n, n_outputs))
    if n_outputs == 1:
        return rng.integers(0, 2, (n, 1)).astype(float)
    return np.eye(n_outputs)[rng.integers(0, n_outputs, n)]


def closed_form(loss, score, target, weight):
    """Return the mean loss and its gradient by the score, in numpy."""
    share = (weight / weight.sum())[:, None]
    if isinstance(loss, SquaredError):
        k = score.shape[1]
        return (share * (score - target) ** 2).sum() / (2 * k), share * (score - target) / k
    if score.shape[1] == 1:
        return (share * (np.logaddexp(0, score) - target * score)).sum(), share * (
            expit(score) - target
        )
    log_sum = np.logaddexp.reduce(score, axis=1, keepdims=True)
    return (share * target * (log_sum - score)).sum(), share * (softmax(score, axis=1) - target)


LOSSES = [(SquaredError(), 1), (SquaredError(), 3), (LogLoss(), 1), (LogLoss(), 3)]


@pytest.mark.parametrize("alpha", [0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss, n_outputs", LOSSES)
def test_one_step_of_a_linear_model_is_the_closed_form(
    solver, loss, n_outputs, weighted, alpha, rng
):
    X = rng.normal(size=(13, 4))
    target = targets(loss, n_outputs, 13, rng)
    weight = rng.uniform(0, 3, 13) if weighted else np.ones(13)
    graph = linear(4, n_outputs, rng)
    coef, intercept = (graph.weights()[name].astype(float) for name in ("coef", "intercept"))
    mean, gradient = closed_form(loss, X @ coef + intercept, target, weight)

    step = make(solver, graph, loss, batch_size=13, penalty=L2(alpha) if alpha else None)
    fill(step, X, target, weight)
    objective = one_step(step, 0.5)

    assert objective == pytest.approx(mean + alpha / 2 * (coef**2).sum(), rel=1e-5)
    after = step.weights()
    np.testing.assert_allclose(
        after["coef"], coef - 0.5 * (X.T @ gradient + alpha * coef), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        after["intercept"], intercept - 0.5 * gradient.sum(axis=0), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("loss, n_outputs", LOSSES)
def test_one_float64_step_is_the_closed_form_to_the_last_digits(solver, loss, n_outputs, rng):
    if not takes(solver, dtype="float64"):
        pytest.skip("it has no float64")
    X, target = rng.normal(size=(13, 4)), targets(loss, n_outputs, 13, rng)
    graph = linear(4, n_outputs, rng, dtype="float64")
    coef, intercept = graph.weights()["coef"], graph.weights()["intercept"]
    mean, gradient = closed_form(loss, X @ coef + intercept, target, np.ones(13))
    step = make(solver, graph, loss, batch_size=13, penalty=L2(0.3), dtype="float64")
    fill(step, X, target)
    assert one_step(step, 0.5) == pytest.approx(mean + 0.15 * (coef**2).sum(), rel=1e-13)
    np.testing.assert_allclose(
        step.weights()["coef"], coef - 0.5 * (X.T @ gradient + 0.3 * coef), rtol=1e-12
    )


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_log_loss_gradient_is_p_minus_y_at_every_score(solver, n_outputs, rng):
    # X is the identity: the score of row i is the weight i, and so is its gradient.
    scores = np.array([0.0, 1e-3, -1.0, 30.0, -30.0, 100.0, -100.0, 1e4, -1e4])
    n = len(scores)
    graph = linear(n, n_outputs, rng, fit_intercept=False)
    score = np.stack([scores, -scores][:n_outputs], axis=1)
    graph = graph.with_weights({"coef": score.astype(np.float32)})
    for label in (0.0, 1.0):
        target = np.full((n, 1), label) if n_outputs == 1 else np.tile([label, 1 - label], (n, 1))
        mean, gradient = closed_form(LogLoss(), score, target, np.ones(n))
        step = make(solver, graph, LogLoss(), batch_size=n)
        fill(step, np.eye(n), target)
        # A power of two and large: the step is not lost in the rounding of the weight.
        eta = 2.0**20
        assert one_step(step, eta) == pytest.approx(mean, rel=1e-6)
        np.testing.assert_allclose(
            step.weights()["coef"], score - eta * gradient, rtol=1e-6, atol=eta * 1e-8
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
@pytest.mark.parametrize(
    "model, loss, n_outputs", [(MLPRegressor, SquaredError(), 2), (MLPClassifier, LogLoss(), 3)]
)
def test_gradients_of_neural_networks_are_scikit_learns(
    solver, model, loss, n_outputs, activation, dtype, rng
):
    if (solver, dtype) == ("session", "float64"):
        pytest.skip("TrainingSession has no float64")
    X, eta = rng.normal(size=(20, 5)), 0.125
    reference = model(
        hidden_layer_sizes=(7, 4), activation=activation, solver="sgd", momentum=0,
        nesterovs_momentum=False, alpha=0, learning_rate_init=eta, batch_size=20, shuffle=False,
    )  # fmt: skip
    graph = initial_score_graph(reference, ScoreSpec(5, n_outputs, dtype), np.random.RandomState(0))
    graph = graph.with_weights(
        {name: rng.normal(size=w.shape).astype(dtype) for name, w in graph.weights().items()}
    )
    names = ["", "1", "2"]
    if model is MLPRegressor:
        y = target = rng.normal(size=(20, n_outputs))
        reference.partial_fit(X, y)
    else:
        y = np.arange(20) % n_outputs
        target = np.eye(n_outputs)[y]
        reference.partial_fit(X, y, classes=range(n_outputs))
    # The same weights, then one step of scikit-learn's: its gradient is the difference.
    before = graph.weights()
    for i, name in enumerate(names):
        reference.coefs_[i][...] = before["coefficient" + name]
        reference.intercepts_[i][...] = before["intercepts" + name].ravel()
    reference.partial_fit(X, y)

    step = make(solver, graph, loss, batch_size=20, dtype=dtype)
    fill(step, X, target)
    # Our squared error is the mean over the outputs, as scikit-learn's objective; its gradient
    # there is the sum.
    step.step(eta / step.scale, 1.0)
    after = step.weights()
    tolerance = (
        {"rtol": 1e-4, "atol": 2e-6} if dtype == "float32" else {"rtol": 1e-10, "atol": 1e-14}
    )
    for i, name in enumerate(names):
        for ours, theirs in (
            ("coefficient", reference.coefs_[i]),
            ("intercepts", reference.intercepts_[i][None]),
        ):
            gradient = (before[ours + name].astype(float) - after[ours + name]) / eta
            expected = (before[ours + name].astype(float) - theirs) / eta
            np.testing.assert_allclose(gradient, expected, **tolerance)


# Each of the other solvers that are here, beside "graph", which always is.
others = pytest.mark.parametrize("other", [name for name in available_solvers() if name != "graph"])


@others
@pytest.mark.parametrize("hidden", [None, (8,)])
@pytest.mark.parametrize("alpha", [0, 1e-2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss, n_outputs", LOSSES)
def test_solvers_agree_after_100_steps(loss, n_outputs, weighted, alpha, hidden, other, rng):
    model = (
        LinearRegression()
        if hidden is None
        else MLPRegressor(hidden_layer_sizes=hidden, activation="tanh")
    )
    graph = initial_score_graph(model, ScoreSpec(6, n_outputs, "float32"), np.random.RandomState(0))
    solvers = [
        make(name, graph, loss, batch_size=10, penalty=L2(alpha) if alpha else None)
        for name in ("graph", other)
    ]
    assert_same_steps(*solvers, loss, weighted, rng)
    assert solvers[0].weights().keys() == set(graph.trainable)


OPTIONS = [
    *(
        {"optimizer": optimizer}
        for optimizer in (
            *(cls() for cls in OPTIMIZERS.values()),
            Adam(beta_1=0.5, beta_2=0.9, epsilon=1e-2),
        )
    ),
    *(
        {"optimizer": Adam(weight_decay=0.1), "penalty": penalty}
        for penalty in (L1(0.01), ElasticPenalty(0.01, 0.5))
    ),
    *({"optimizer": cls(), "penalty": L1(0.01)} for cls in OPTIMIZERS.values()),
    {"max_grad_norm": 0.05},
    {"average": 50},
]


@others
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_solvers_agree_with_every_option(options, dtype, other, rng):
    options = {"optimizer": SGD(), "penalty": L2(0.01)} | options
    try:
        SOLVERS[other].check(
            np.dtype(dtype), Update(options["optimizer"], options.get("max_grad_norm"))
        )
    except ValueError as error:
        pytest.skip(str(error))
    model = MLPRegressor(hidden_layer_sizes=(8,), activation="tanh")
    graph = initial_score_graph(model, ScoreSpec(6, 1, dtype), np.random.RandomState(0))
    solvers = [
        make(name, graph, SquaredError(), batch_size=10, dtype=dtype, **options)
        for name in ("graph", other)
    ]
    assert_same_steps(*solvers, SquaredError(), False, rng, eta=0.01, float64=dtype == "float64")


@pytest.mark.parametrize(
    "optimizer", [SGD(), *(OPTIMIZERS[name](momentum=0.5) for name in ("momentum", "nesterov"))]
)
@pytest.mark.parametrize("alpha", [1.0, 90.0, 150.0, 5000.0])
@others
def test_solvers_agree_at_any_strength_of_l2(other, alpha, optimizer, rng):
    try:
        SOLVERS[other].check(np.dtype("float32"), Update(optimizer))
    except ValueError as error:
        pytest.skip(str(error))
    graph = hidden_layer()
    strengths = {"coefficient": alpha, "coefficient1": np.array([alpha, alpha / 10])}
    for penalty in (L2(strengths), ElasticPenalty(strengths, 0.01)):
        options = {"batch_size": 10, "penalty": penalty, "optimizer": optimizer}
        solvers = [make(name, graph, SquaredError(), **options) for name in ("graph", other)]
        assert_same_steps(*solvers, SquaredError(), False, rng, eta=0.01)


@pytest.mark.parametrize("alpha", [1.0, 90.0, 100.0, 150.0, 5000.0])
@pytest.mark.parametrize("is_known", [True, False])
def test_100_steps_with_an_l2_term_of_any_strength_are_the_formula(solver, is_known, alpha, rng):
    graph, eta = linear(3, 2, rng), 0.01
    weights = {name: w.astype(float) for name, w in graph.weights().items()}
    strengths = np.array([alpha, 0.5])
    largest_rate = eta if is_known else None
    step = make(
        solver,
        graph,
        SquaredError(),
        batch_size=10,
        penalty=L2(strengths),
        largest_rate=largest_rate,
    )
    for _ in range(100):
        X, target = rng.normal(size=(10, 3)), rng.normal(size=(10, 2))
        fill(step, X, target)
        score = X @ weights["coef"] + weights["intercept"]
        mean, by_score = closed_form(SquaredError(), score, target, np.ones(10))
        value = mean + (strengths * weights["coef"] ** 2).sum() / 2
        moved = weights["coef"] - eta * X.T @ by_score
        is_stiff = np.float32(eta) * strengths.astype(np.float32) > 1
        weights["coef"] = np.where(
            is_stiff, moved / (1 + eta * strengths), moved - eta * strengths * weights["coef"]
        )
        weights["intercept"] = weights["intercept"] - eta * by_score.sum(axis=0)
        assert one_step(step, eta) == pytest.approx(value, rel=1e-5)
    for name, w in step.weights().items():
        np.testing.assert_allclose(w, weights[name], rtol=2e-5, atol=1e-7)


def test_a_penalty_of_intercepts_by_elements(solver, rng):
    graph = linear(3, 2, rng)
    weights = {name: w.astype(float) for name, w in graph.weights().items()}
    strengths = {"coef": rng.uniform(0, 1, (3, 2)), "intercept": np.array([2.0, 0.0])}
    penalty = ModelPenalty(
        *(
            Strength(0.25 * strengths[name], 0.75 * strengths[name])
            for name in ("coef", "intercept")
        )
    )
    names = graph.trained
    objective = Objective(
        SquaredError(), penalty, names.coefficients, 2, np.dtype("float32"), names.intercepts
    )
    step = make_step(Problem(graph, objective, Update(SGD(), largest_rate=0.1), 10), solver=solver)
    step.scale = objective.sample_weight_scale
    X, target = rng.normal(size=(10, 3)), rng.normal(size=(10, 2))
    fill(step, X, target)
    score = X @ weights["coef"] + weights["intercept"]
    value, by_score = closed_form(SquaredError(), score, target, np.ones(10))
    gradients = {"coef": X.T @ by_score, "intercept": by_score.sum(axis=0)}
    moved = {}
    for name, w in weights.items():
        a = strengths[name]
        value += (a * (0.25 * abs(w) + 0.75 * w**2 / 2)).sum()
        moved[name] = w - 0.1 * (gradients[name] + 0.75 * a * w)
        moved[name] -= np.clip(moved[name], -0.1 * 0.25 * a, 0.1 * 0.25 * a)
    assert one_step(step, 0.1) == pytest.approx(value, rel=1e-5)
    for name, w in step.weights().items():
        np.testing.assert_allclose(w, moved[name], rtol=1e-5, atol=1e-6)


def test_strengths_of_another_shape_are_refused(solver, rng):
    message = r"penalty: the strengths of 'coef' have shape \(3,\), but the weight has \(3, 2\)"
    with pytest.raises(ValueError, match=message):
        make(solver, linear(3, 2, rng), SquaredError(), batch_size=5, penalty=L2(np.ones(3)))


def assert_same_steps(ours, theirs, loss, weighted, rng, eta=0.1, float64=False):
    """Make 100 steps with both; compare their objectives, gradient norms, weights and states."""
    (_, n_features), (_, n_outputs) = ours.batch.X.shape, ours.batch.target.shape
    unit = 1e-7 if float64 else 1.0
    for _ in range(100):
        X, target = rng.normal(size=(10, n_features)), targets(loss, n_outputs, 10, rng)
        weight = rng.uniform(0, 2, 10) if weighted else None
        objectives = []
        for step in (ours, theirs):
            fill(step, X, target, weight)
            objectives.append(one_step(step, eta))
        assert objectives[0] == pytest.approx(objectives[1], rel=unit * 1e-5)
        assert ours.gradient_norm() == pytest.approx(theirs.gradient_norm(), rel=unit * 1e-4)
    # TrainingSession's 1 - beta_2 is rounded to float32, and so is the second moment of Adam.
    for mine, other, rtol in (
        (ours.weights(), theirs.weights(), 1e-5),
        (ours.state(), theirs.state(), 2e-5),
    ):
        assert mine.keys() == other.keys()
        for name in mine:
            assert mine[name].dtype == other[name].dtype
            assert np.linalg.norm(mine[name] - other[name]) <= unit * rtol * np.linalg.norm(
                mine[name]
            )


@pytest.mark.parametrize(
    ("value", "expected"), [(1e200, True), (-1.7e308, True), (np.inf, False), (np.nan, False)]
)
def test_large_weights_are_finite(value, expected, rng):
    solver = make(
        "graph", linear(3, 1, rng, dtype="float64"), SquaredError(), batch_size=4, dtype="float64"
    )
    solver.restore({"weights": np.array([1.0, value, 2.0, 0.0])})
    with np.errstate(over="ignore"):
        assert solver.is_finite() is expected


def test_weights_without_intercept_leave_it_at_zero(solver, rng):
    graph = linear(3, 1, rng, fit_intercept=False)
    step = make(solver, graph, SquaredError(), batch_size=5)
    fill(step, rng.normal(size=(5, 3)), np.full((5, 1), 9.0))
    step.step(0.1, 1.0)
    assert list(step.weights()) == ["coef"]
    assert graph.trained.intercepts == ()


def test_a_large_batch_is_not_computed_on_freed_memory(solver, rng):
    # A runtime that reuses or frees the memory of a gradient shows at this size, not at ten rows.
    n = 3000
    X, target = rng.normal(size=(n, 50)), rng.normal(size=(n, 4))
    graph = linear(50, 4, rng)
    coef, intercept = (graph.weights()[name].astype(float) for name in ("coef", "intercept"))
    step = make(solver, graph, SquaredError(), batch_size=n, penalty=L2(0.1))
    fill(step, X, target)
    for _ in range(20):
        _, gradient = closed_form(SquaredError(), X @ coef + intercept, target, np.ones(n))
        coef = coef - 0.2 * (X.T @ gradient + 0.1 * coef)
        intercept = intercept - 0.2 * gradient.sum(axis=0)
        step.step(0.2, 1.0)
    np.testing.assert_allclose(step.weights()["coef"], coef, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(step.weights()["intercept"], intercept, rtol=1e-4, atol=1e-5)


def hidden_layer():
    model = MLPRegressor(hidden_layer_sizes=(8,), activation="tanh")
    return initial_score_graph(model, ScoreSpec(6, 2, "float32"), np.random.RandomState(0))


@pytest.mark.parametrize("average", [False, True, 12, 15])
@pytest.mark.parametrize(
    "optimizer", [*(cls() for cls in OPTIMIZERS.values()), Adam(weight_decay=0.1)], ids=repr
)
@pytest.mark.parametrize("penalty", [L2(0.01), ElasticPenalty(30.0, 0.01)], ids=repr)
def test_interrupted_steps_are_the_uninterrupted_ones_to_the_last_bit(
    solver, optimizer, penalty, average, rng
):
    try:
        SOLVERS[solver].check(np.dtype("float32"), Update(optimizer))
    except ValueError as error:
        pytest.skip(str(error))
    graph = hidden_layer()
    options = {"batch_size": 10, "penalty": penalty, "optimizer": optimizer, "average": average}
    data = [(rng.normal(size=(10, 6)), rng.normal(size=(10, 2))) for _ in range(20)]
    whole = make(solver, graph, SquaredError(), **options)
    part = make(solver, graph, SquaredError(), **options)
    for i, (X, target) in enumerate(data):
        if i == 11:
            state = pickle.loads(pickle.dumps(part.state()))
            part = make(solver, graph, SquaredError(), **options)
            part.restore(state)
        for step in (whole, part):
            fill(step, X, target)
            step.step(0.05, 1.0)
    for ours, theirs in ((whole.weights(), part.weights()), (whole.state(), part.state())):
        assert {name: a.tobytes() for name, a in ours.items()} == {
            name: a.tobytes() for name, a in theirs.items()
        }


def test_state_is_a_copy(solver, rng):
    step = make(
        solver, hidden_layer(), SquaredError(), batch_size=10, optimizer=Adam(), average=True
    )
    fill(step, rng.normal(size=(10, 6)), rng.normal(size=(10, 2)))
    before = step.state()
    given = {name: array.copy() for name, array in before.items()}
    step.step(0.1, 1.0)
    for name, array in before.items():
        np.testing.assert_array_equal(array, given[name])
    assert before["average_n_updates"] == before["n_updates"] == 0
    assert step.state()["average_n_updates"] == step.state()["n_updates"] == 1


def test_means_are_those_of_the_steps_since_the_last_call(solver, rng):
    step, expected = (
        make(solver, hidden_layer(), SquaredError(), batch_size=10, penalty=L2(0.1)),
        np.zeros(2),
    )
    assert step.means() == (0, 0)
    for share in (0.5, 0.3, 0.2):
        fill(step, rng.normal(size=(10, 6)), rng.normal(size=(10, 2)))
        penalty = 0.05 * sum((w**2).sum() for name, w in step.weights().items() if "coef" in name)
        step.step(0.1, share)
        expected += share * step.objective(), share * (step.objective() - penalty)
    assert step.means() == pytest.approx(expected, rel=1e-5)
    assert step.means() == (0, 0)
    step.step(0.1, 1.0)
    step.restore(step.state())
    # Those of an epoch that was given up count no more.
    assert step.means() == (0, 0)


@pytest.mark.parametrize("other", [{"optimizer": Adam()}, {"average": True}])
def test_the_state_of_another_training_is_refused(solver, other, rng):
    graph = hidden_layer()
    state = make(solver, graph, SquaredError(), batch_size=10).state()
    with pytest.raises(ValueError, match="state does not fit"):
        make(solver, graph, SquaredError(), batch_size=10, **other).restore(state)


def test_another_penalty_begins_with_nothing_owed(solver, rng):
    graph, data = (
        hidden_layer(),
        {"X": rng.normal(size=(10, 6)), "target": rng.normal(size=(10, 2))},
    )
    with_l1, without = (
        make(solver, graph, SquaredError(), batch_size=10, penalty=p) for p in (L1(0.1), None)
    )
    begun = with_l1.state()
    fill(with_l1, **data)
    with_l1.step(0.1, 1.0)
    state = with_l1.state()
    assert state["l1_owed_if_positive"].any() and state["l1_owed_if_negative"].any()
    without.restore(state)
    assert without.state().keys() == state.keys() - {"l1_owed_if_positive", "l1_owed_if_negative"}
    with_l1.restore(without.state())
    after = with_l1.state()
    np.testing.assert_array_equal(after["weights"], state["weights"])
    for name in ("l1_owed_if_positive", "l1_owed_if_negative"):
        np.testing.assert_array_equal(after[name], begun[name])
        assert not after[name].any()


def test_gradient_norm_is_that_before_clipping(solver, rng):
    if not takes(solver, max_grad_norm=1.0):
        pytest.skip("it cannot clip")
    X, target = rng.normal(size=(13, 4)), rng.normal(size=(13, 1))
    graph = linear(4, 1, rng)
    before = graph.weights()
    _, by_score = closed_form(
        SquaredError(), X @ before["coef"] + before["intercept"], target, np.ones(13)
    )
    gradient = np.append(X.T @ by_score, by_score.sum())
    step = make(solver, graph, SquaredError(), batch_size=13, max_grad_norm=0.01)
    assert step.gradient_norm() == 0
    fill(step, X, target)
    step.step(2.0, 1.0)
    assert step.gradient_norm() == pytest.approx(np.linalg.norm(gradient), rel=1e-5)
    moved = np.append(
        before["coef"] - step.weights()["coef"], before["intercept"] - step.weights()["intercept"]
    )
    np.testing.assert_allclose(moved, 0.02 * gradient / np.linalg.norm(gradient), rtol=1e-3)


def test_weights_are_their_mean_once_the_average_has_begun(solver, rng):
    graph = linear(4, 1, rng)
    plain, averaged = (
        make(solver, graph, SquaredError(), batch_size=5, average=first) for first in (False, 3)
    )
    after = []
    for _ in range(6):
        X, target = rng.normal(size=(5, 4)), rng.normal(size=(5, 1))
        for step in (plain, averaged):
            fill(step, X, target)
            step.step(0.1, 1.0)
        after.append(plain.weights()["coef"])
        expected = after[-1] if len(after) < 3 else np.mean(after[2:], axis=0, dtype=float)
        np.testing.assert_allclose(averaged.weights()["coef"], expected, rtol=1e-6)
        # Until it begins, every solver has the same mean of nothing.
        held = 0 if len(after) < 3 else np.append(expected, averaged.weights()["intercept"])
        np.testing.assert_allclose(averaged.state()["average_mean"], held, rtol=1e-6)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            (OPTIMIZERS["momentum"](),),
            r'solver="session" has no optimizer=Momentum\(\).*solver="graph"',
        ),
        (
            (OPTIMIZERS["nesterov"](momentum=0.5),),
            r'solver="session" has no optimizer=Nesterov\(momentum=0.5\).*solver="graph"',
        ),
        ((LBFGS(),), r'solver="session" has no optimizer=LBFGS\(\).*solver="graph"'),
        ((SGD(), 1.0), r'solver="session" cannot clip.*max_grad_norm=1.0.*solver="graph"'),
    ],
)
def test_what_the_session_cannot_do_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        SOLVERS["session"].check(np.dtype("float32"), Update(*arguments))
