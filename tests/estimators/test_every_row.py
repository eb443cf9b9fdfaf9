"""A row counts the same wherever it falls: every training is a plain loop in numpy that says so."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from skort import OrtSGDRegressor, Step
from skort.common.formulas import function_text
from skort.optim.optimizers.protocol import update_signature
from skort.schedules import Adaptive, Cosine
from skort.solvers import available_solvers

RANDOM = np.random.RandomState(0)
X = RANDOM.normal(size=(103, 4))
Y = X @ [1.0, -2.0, 0.5, 0.0] + RANDOM.normal(size=103)
WEIGHTS = np.where(RANDOM.uniform(size=103) < 0.2, 0.0, RANDOM.uniform(0.5, 2.0, size=103))
ETA, BATCH_SIZE, ALPHA = 0.02, 10, 0.3


class Momentum:
    is_ahead = False

    def __init__(self):
        self.velocity = 0.0

    def __call__(self, weights, gradient, eta):
        self.velocity = 0.9 * self.velocity - eta * gradient
        return weights + (0.9 * self.velocity - eta * gradient if self.is_ahead else self.velocity)


class Nesterov(Momentum):
    is_ahead = True


class Adam:
    def __init__(self):
        self.first = self.second = 0.0
        self.t = 0

    def __call__(self, weights, gradient, eta):
        self.t += 1
        self.first = 0.9 * self.first + 0.1 * gradient
        self.second = 0.999 * self.second + 0.001 * gradient**2
        corrected = eta * np.sqrt(1 - 0.999**self.t) / (1 - 0.9**self.t)
        return weights - corrected * self.first / (np.sqrt(self.second) + 1e-8)


class Lion:
    def __init__(self):
        self.moment = 0.0

    def __call__(self, weights, gradient, eta):
        sign = np.sign(0.9 * self.moment + 0.1 * gradient)
        self.moment = 0.99 * self.moment + 0.01 * gradient
        return weights - eta * sign


LION = """
next_weights = weights - eta * Sign(moment * kept_1 + gradient * part_1)
next_moment = moment * kept_2 + gradient * part_2
length = eta
"""


class OwnLion(BaseEstimator):
    """An optimizer of the user's own."""

    def start(self, n_coefficients, n_others, dtype):
        return {"moment": np.zeros(n_coefficients + n_others, dtype)}

    def update(self, weights, gradient, eta, state, scratch):
        moment = state["moment"]
        weights -= eta * np.sign(0.9 * moment + 0.1 * gradient)
        moment[...] = 0.99 * moment + 0.01 * gradient

    def step_length(self, eta, state):
        return eta

    def onnx_update(self):
        numbers = {"kept_1": 0.9, "part_1": 0.1, "kept_2": 0.99, "part_2": 0.01}
        return function_text(update_signature("lion", ["moment"]), LION, **numbers)


OPTIMIZERS = {
    "sgd": lambda: lambda weights, gradient, eta: weights - eta * gradient,
    "momentum": Momentum,
    "nesterov": Nesterov,
    "adam": Adam,
    "lion": Lion,
}
SCHEDULES = {
    "constant": lambda t: ETA,
    "invscaling": lambda t: ETA * t**-0.25,
    "optimal": lambda t: 1 / (ALPHA * (ALPHA**-0.75 + t - 1)),
    "cosine": lambda t: ETA / 4 + 3 / 8 * ETA * (1 + np.cos(np.pi * min(t - 1, 25) / 25)),
    # Without `tol`, it never falls.
    "adaptive": lambda t: ETA,
}
OWN = {"lion": OwnLion(), "cosine": Cosine(n_updates=25, eta0=ETA, eta1=ETA / 4)}
SUPPORTED = {"session": {"adam"}, "module": {"sgd", "adam"}}


def looped(batches, optimizer, schedule, mean_weight=1.0):
    """
    Return weights and intercept after steps of m / BATCH_SIZE of the rate,
    on m rows that count.
    """
    update, w = OPTIMIZERS[optimizer](), np.zeros(5)
    ones = np.column_stack([X, np.ones(len(X))])
    t = 0
    for rows, weights in batches:
        m = np.count_nonzero(weights)
        if not m:
            continue
        t += 1
        errors = weights / mean_weight * (ones[rows] @ w - Y[rows])
        gradient = errors @ ones[rows] / m + ALPHA * np.append(w[:4], 0.0)
        w = update(w, gradient, SCHEDULES[schedule](t) * m / BATCH_SIZE)
    return w


def estimator(solver, optimizer, schedule, **options):
    if solver not in available_solvers():
        pytest.skip(f"this runtime has no solver {solver!r}")
    if optimizer not in SUPPORTED.get(solver, OPTIMIZERS):
        pytest.skip(f"solver {solver!r} has no {optimizer}")
    if schedule == "optimal" and optimizer in ("momentum", "nesterov"):
        pytest.skip("its first rates are so large that the step of the penalty is implicit")
    parameters = {
        "eta0": ETA,
        "alpha": ALPHA,
        "batch_size": BATCH_SIZE,
        "shuffle": False,
        "standardize": False,
        "tol": None,
    }
    return OrtSGDRegressor(
        solver=solver,
        optimizer=OWN.get(optimizer, optimizer),
        learning_rate=OWN.get(schedule, schedule),
        penalty="l2",
        **{**parameters, **options},
    )


def assert_weights(model, expected):
    found = np.append(model.coef_, model.intercept_)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


def batches_of(counting, weights):
    return [
        (counting[i : i + BATCH_SIZE], weights[counting[i : i + BATCH_SIZE]])
        for i in range(0, len(counting), BATCH_SIZE)
    ]


@pytest.mark.parametrize("solver", ["graph", "agent", "session", "module"])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
class TestLoops:
    def test_fit(self, solver, optimizer, schedule):
        """103 rows: the last batch has three."""
        model = estimator(solver, optimizer, schedule, max_iter=3).fit(X, Y)
        batches = batches_of(np.arange(103), np.ones(103))
        assert_weights(model, looped(3 * batches, optimizer, schedule))

    def test_fit_with_weights(self, solver, optimizer, schedule):
        """Rows of weight zero are in no batch."""
        model = estimator(solver, optimizer, schedule, max_iter=2).fit(X, Y, WEIGHTS)
        counting = np.flatnonzero(WEIGHTS)
        mean = WEIGHTS[counting].mean()
        assert_weights(model, looped(2 * batches_of(counting, WEIGHTS), optimizer, schedule, mean))

    @pytest.mark.parametrize(
        "sizes", [[30, *[1] * 73], [50, 3, 37, 13]], ids=["single rows", "calls"]
    )
    def test_a_stream(self, solver, optimizer, schedule, sizes):
        model = estimator(solver, optimizer, schedule)
        batches = []
        for end, size in zip(np.cumsum(sizes), sizes, strict=True):
            rows = np.arange(end - size, end)
            model.partial_fit(X[rows], Y[rows], WEIGHTS[rows])
            batches += batches_of(rows[WEIGHTS[rows] > 0], WEIGHTS)
        assert_weights(model, looped(batches, optimizer, schedule))

    def test_batches_of_the_user(self, solver, optimizer, schedule):
        """With a number, larger batches are divided; smaller ones make shorter steps."""
        model = estimator(solver, optimizer, schedule, max_iter=2)
        parts = np.split(np.arange(103), [4, 29, 60])
        model.fit_batches([(X[rows], Y[rows]) for rows in parts])
        batches = [batch for rows in parts for batch in batches_of(rows, np.ones(103))]
        assert_weights(model, looped(2 * batches, optimizer, schedule))


@pytest.mark.parametrize("solver", ["graph", "agent", "session", "module"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_adaptive_rate_falls_by_the_objective_of_all_rows(solver, optimizer):
    """Each row counts the same in the mean over the batches of an epoch; the last one has three."""
    model = estimator(
        solver,
        optimizer,
        Adaptive(eta0=ETA, max_falls=2),
        max_iter=60,
        tol=0.1,
        n_iter_no_change=2,
    ).fit(X, Y)

    update, w = OPTIMIZERS[optimizer](), np.zeros(5)
    ones = np.column_stack([X, np.ones(len(X))])
    best, n_bad, n_falls, objectives = np.inf, 0, 0, []
    while n_falls < 3:
        objective = 0.0
        for rows, _ in batches_of(np.arange(103), np.ones(103)):
            errors = ones[rows] @ w - Y[rows]
            m = len(rows)
            objective += (errors @ errors / 2 + m * ALPHA / 2 * (w[:4] @ w[:4])) / 103
            gradient = errors @ ones[rows] / m + ALPHA * np.append(w[:4], 0.0)
            w = update(w, gradient, ETA / 5**n_falls * m / BATCH_SIZE)
        objectives.append(objective)
        is_best = objective <= 0.9 * best
        n_bad = 0 if is_best else n_bad + 1
        best = min(best, objective)
        if n_bad == 2:
            n_falls, n_bad = n_falls + 1, 0

    assert model.n_iter_ == len(objectives)
    np.testing.assert_allclose(model.history_["objective"], objectives, rtol=1e-4)
    assert_weights(model, w)


@pytest.mark.parametrize("n_rows", [3, 10, 103])
def test_batch_size_is_the_rule_where_there_are_fewer_rows(n_rows):
    model = estimator("graph", "sgd", "constant", max_iter=4).fit(X[:n_rows], Y[:n_rows])
    batches = batches_of(np.arange(n_rows), np.ones(103))
    assert_weights(model, looped(4 * batches, "sgd", "constant"))


@pytest.mark.parametrize("solver", ["graph", "agent"])
def test_steps_of_the_user_are_those_of_a_fit(solver):
    model = estimator(solver, "sgd", "constant", max_iter=2).fit(X, Y)
    step = Step(clone(model), n_features=4)
    for _ in range(2):
        for i in range(0, 103, BATCH_SIZE):
            step.step(X[i : i + BATCH_SIZE], Y[i : i + BATCH_SIZE], ETA)
    np.testing.assert_array_equal(step.weights()["coef"], model.weights_["coef"])


def test_the_automatic_rate_of_a_large_batch_size_is_that_of_all_rows():
    """Of 103 rows in one batch, whatever batch_size says above that."""
    whole = OrtSGDRegressor(batch_size=103, random_state=0, max_iter=5, tol=None).fit(X, Y)
    larger = OrtSGDRegressor(batch_size=1000, random_state=0, max_iter=5, tol=None).fit(X, Y)
    np.testing.assert_allclose(larger.coef_, whole.coef_, rtol=1e-5)
    assert larger.eta0_ == pytest.approx(whole.eta0_ * 1000 / 103)


@pytest.mark.parametrize(
    ("batch_size", "rate_of_call"),
    [
        ("auto", lambda m: 0.01 * (m / 16) ** (2 / 3)),
        (10, lambda m: 0.01 * (10 / 16) ** (2 / 3) * m / 10),
    ],
    ids=["auto", "a number"],
)
def test_the_automatic_rate_of_adam_in_calls_of_a_stream(batch_size, rate_of_call):
    """A call is shorter than a batch; a number for batch_size says what a whole one is."""
    model = OrtSGDRegressor(
        optimizer="adam", batch_size=batch_size, penalty=None, shuffle=False, standardize=False
    )
    update, w = Adam(), np.zeros(5)
    ones = np.column_stack([X, np.ones(len(X))])

    # Of 20 rows, 16 or 10 make a batch.
    model.partial_fit(X[:20], Y[:20])
    n_first = 16 if batch_size == "auto" else 10
    batches = [(np.arange(n_first), 0.01 if batch_size == "auto" else rate_of_call(10))]
    n_left = 20 - n_first
    last = batches[0][1] * n_left / n_first
    batches.append((np.arange(n_first, 20), last))

    start = 20
    for size in (1, 3, 1, 1, 7):
        rows = np.arange(start, start + size)
        model.partial_fit(X[rows], Y[rows])
        batches.append((rows, rate_of_call(size)))
        start += size

    for rows, eta in batches:
        gradient = (ones[rows] @ w - Y[rows]) @ ones[rows] / len(rows)
        w = update(w, gradient, eta)
    assert_weights(model, w)
