"""Clipping, the terms of the penalty and averaging against formulas, closed forms and torch."""

import numpy as np
import pytest

from skort.optim.optimizers import SGD, Adam, Momentum, Nesterov
from skort.optim.schedules import Adaptive, Optimal, largest_rate
from skort.optim.transforms import Decorrelation, ImplicitL2, clipped, norm
from skort.optim.update import PenaltyStrengths, Update


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_gradient_that_is_too_long_keeps_its_direction(dtype, rng):
    gradient = rng.normal(size=50).astype(dtype)
    given, out = gradient.copy(), np.empty_like(gradient)
    assert clipped(gradient, 0.5, out) is out
    np.testing.assert_allclose(out, given * 0.5 / np.linalg.norm(given), rtol=1e-6)
    np.testing.assert_array_equal(gradient, given)


def test_a_gradient_that_is_short_enough_is_itself():
    gradient, out = np.array([3.0, 4.0]), np.zeros(2)
    assert clipped(gradient, 5.0, out) is gradient
    np.testing.assert_array_equal(out, 0)


def test_no_square_overflows_in_float32():
    gradient = np.array([3e30, 4e30], dtype="float32")
    assert norm(gradient) == pytest.approx(5e30)
    np.testing.assert_allclose(
        clipped(gradient, 1.0, np.empty_like(gradient)), [0.6, 0.8], rtol=1e-6
    )


def test_a_gradient_that_is_not_finite_stays_so():
    assert np.isnan(clipped(np.array([np.nan, 1.0]), 1.0, np.empty(2))).all()
    # The loop has numpy's warnings off, and reports the weights.
    with np.errstate(invalid="ignore"):
        assert np.isnan(clipped(np.array([np.inf, 1.0]), 1.0, np.empty(2))[0])


@pytest.mark.parametrize("max_norm", [0.1, 1.0, 100.0])
def test_clipping_is_torchs(max_norm, rng):
    torch = pytest.importorskip("torch")
    gradient = rng.normal(size=20)
    weight = torch.zeros(20, dtype=torch.float64, requires_grad=True)
    weight.grad = torch.tensor(gradient)
    assert norm(gradient) == pytest.approx(
        float(torch.nn.utils.clip_grad_norm_([weight], max_norm))
    )
    # torch adds 1e-6 to the norm that it divides by.
    np.testing.assert_allclose(
        clipped(gradient, max_norm, np.empty(20)), weight.grad.numpy(), rtol=1e-6
    )


@pytest.mark.parametrize("transposed", [False, True])
def test_the_gradient_of_each_output_is_multiplied_by_the_matrix(transposed, rng):
    root = rng.normal(size=(4, 4))
    matrix = root @ root.T
    coefficients, others = rng.normal(size=(3, 4) if transposed else (4, 3)), rng.normal(size=3)
    rule = Update(SGD()).rule(decorrelation=Decorrelation(matrix, transposed=transposed))
    weights = np.zeros(15)
    state = rule.start(12, 3, weights.dtype)
    gradient = np.concatenate([coefficients.ravel(), others])
    rule.update(weights, gradient, 0.5, state, np.empty(15))
    product = coefficients @ matrix if transposed else matrix @ coefficients
    np.testing.assert_allclose(weights[:12], -0.5 * product.ravel(), rtol=1e-12)
    np.testing.assert_array_equal(weights[12:], -0.5 * others)


def run(optimizer, gradients, a, *, n_steps, eta=0.1, start=0.0, dtype=np.float64):
    """Return the weight after each of some gradients, of the l1 strength a."""
    weights = np.array([start], dtype)
    rule = Update(optimizer).rule(PenaltyStrengths(l1=np.array([a], dtype), n_steps=n_steps))
    state, seen = rule.start(1, 0, weights.dtype), []
    for gradient in gradients:
        rule.update(weights, np.array([gradient], dtype), eta, state, np.empty_like(weights))
        seen.append(weights[0])
    return np.array(seen)


def test_without_a_bound_it_is_the_cumulative_penalty_of_the_paper(rng):
    gradients, a, eta = rng.normal(size=500), 0.3, 0.1
    w = u = q = 0.0
    expected = []
    for g in gradients:
        w -= eta * g
        u += eta * a
        before = w
        w = max(0.0, w - (u + q)) if w > 0 else min(0.0, w + (u - q))
        q += w - before
        expected.append(w)
    ours = run(SGD(), gradients, a, n_steps=10**9, eta=eta)
    assert 0 < np.count_nonzero(expected) < 500
    np.testing.assert_allclose(ours, expected, atol=1e-13)
    np.testing.assert_array_equal(ours == 0, np.array(expected) == 0)


@pytest.mark.parametrize("optimizer", [SGD(), Momentum(momentum=0.5), Adam()], ids=repr)
def test_a_single_batch_an_epoch_makes_proximal_steps(optimizer, rng):
    gradients, a, eta = rng.normal(size=300) - 0.2, 0.3, 0.1
    w, state, expected = np.zeros(1), optimizer.start(1, 0, np.dtype(float)), []
    for g in gradients:
        optimizer.update(w, np.array([g]), eta, state, np.empty(1))
        threshold = optimizer.step_length(eta, state) * a
        w -= np.clip(w, -threshold, threshold)
        expected.append(w[0])
    ours = run(optimizer, gradients, a, n_steps=1, eta=eta)
    assert 0 < np.count_nonzero(expected) < 300
    np.testing.assert_allclose(ours, expected, atol=1e-13)


def test_a_weight_comes_back_within_the_bound_however_long_it_was_at_zero():
    # Nothing happens for 1,000 steps, then the gradient is twice the strength. Each step pays one
    # more than it adds.
    gradients = np.repeat([0.0, -2.0], [1000, 1100])
    first = {
        n: int(np.argmax(run(SGD(), gradients, 1.0, n_steps=n) > 1e-9)) - 1000
        for n in (1, 20, 300, 10**9)
    }
    assert first == {1: 0, 20: 19, 300: 299, 10**9: pytest.approx(1000, abs=1)}


def test_noise_does_not_lift_a_weight_off_zero(rng):
    gradients = rng.normal(size=5000)
    ours = run(SGD(), gradients, 0.1, n_steps=5000)
    proximal = run(SGD(), gradients, 0.1, n_steps=1)
    assert np.mean(ours[1000:] == 0) > 0.98
    assert np.mean(proximal[1000:] == 0) < 0.5


def test_float32_keeps_the_digits_of_a_weight_that_pays_much_and_moves_little():
    # It pays 500 in all: a sum of that has no digits left for steps of 1e-4.
    seen = run(
        SGD(), np.full(20_000, -2.51), 2.5, n_steps=100, eta=0.01, start=1.0, dtype=np.float32
    )
    assert seen[-1] == pytest.approx(1 + 20_000 * 0.01 * 0.01, rel=5e-3)


def test_a_weight_without_strength_is_left_alone(rng):
    gradients = rng.normal(size=50)
    np.testing.assert_allclose(
        run(SGD(), gradients, 0.0, n_steps=10), -0.1 * np.cumsum(gradients), atol=1e-14
    )


@pytest.mark.parametrize(
    "optimizer", [SGD(), Momentum(momentum=0.9), Nesterov(momentum=0.75)], ids=repr
)
@pytest.mark.parametrize("start, gradient", [(2.0, -0.3), (-2.0, 0.3), (0.0, 0.2999), (0.0, -0.1)])
def test_a_weight_at_its_balance_stays_there_when_the_learning_rate_falls(
    optimizer, start, gradient
):
    rule, weights = (
        Update(optimizer).rule(PenaltyStrengths(l1=np.array([0.3]), n_steps=7)),
        np.array([start]),
    )
    state = rule.start(1, 0, weights.dtype)
    for eta in np.repeat([0.1, 0.02, 0.3, 1e-4], 40):
        rule.update(weights, np.array([gradient]), eta, state, np.empty(1))
        assert weights[0] == (pytest.approx(start, rel=1e-12) if start else 0)


def test_what_is_owed_falls_with_the_length_of_the_steps():
    weights, terms = np.array([0.0]), PenaltyStrengths(l1=np.array([1.0]), n_steps=10)
    rule = Update(SGD()).rule(terms)
    state = rule.start(1, 0, weights.dtype)
    for eta, owed in ((0.1, 1.0), (0.01, 0.1)):
        for _ in range(20):
            rule.update(weights, np.zeros(1), eta, state, np.empty(1))
        np.testing.assert_allclose(
            [state["l1_owed_if_positive"], state["l1_owed_if_negative"]], owed
        )


def rule_and_state(optimizer, b, dtype=np.float64, **options):
    rule = Update(optimizer, **options).rule(PenaltyStrengths(l2=np.array([b], dtype)))
    return rule, rule.start(1, 0, np.dtype(dtype))


# 0.125 is exact: its eight times is the last explicit step.
@pytest.mark.parametrize(
    "b, is_implicit", [(0.08, False), (7.2, False), (8.0, False), (8.0001, True), (400.0, True)]
)
def test_one_step_is_explicit_up_to_the_boundary_and_implicit_beyond(b, is_implicit):
    eta, g, w = 0.125, 3.0, 2.0
    rule, state = rule_and_state(SGD(), b)
    weights = np.array([w])
    rule.update(weights, np.array([g + b * w]), eta, state, np.empty(1))
    expected = (w - eta * g) / (1 + eta * b) if is_implicit else w - eta * (g + b * w)
    assert weights[0] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(
    "optimizer",
    [SGD(), Momentum(momentum=0.5), Momentum(momentum=0.9), Nesterov(momentum=0.75)],
    ids=repr,
)
@pytest.mark.parametrize("b", [0.1, 9.0, 15.0, 500.0, 1e6])
def test_a_weight_rests_where_gradient_and_penalty_balance(optimizer, b):
    rule, state = rule_and_state(optimizer, b)
    weights = np.array([5.0])
    for _ in range(5000):
        rule.update(weights, 3.0 + b * weights, 0.1, state, np.empty(1))
    assert weights[0] == pytest.approx(-3 / b, rel=1e-9)


def test_the_length_of_a_step_with_momentum_decides():
    # 0.125 / (1 - 0.75) * 4 = 2: by momentum the step is implicit, by SGD it is not.
    rule, state = rule_and_state(Momentum(momentum=0.75), 4.0)
    weights, velocity, length = np.array([2.0]), 0.0, 0.0
    for g in (3.0, -1.0):
        velocity = 0.75 * velocity - 0.125 * g
        length = 0.75 * length + 0.125
        expected = (weights[0] + velocity) / (1 + length * 4)
        rule.update(weights, g + 4 * weights, 0.125, state, np.empty(1))
        assert weights[0] == pytest.approx(expected, rel=1e-13)
        assert state["velocity"][0] == pytest.approx(velocity, rel=1e-13)


@pytest.mark.parametrize(
    "optimizer", [SGD(), Momentum(momentum=0.9), Nesterov(momentum=0.75)], ids=repr
)
@pytest.mark.parametrize("b", [9.0, 15.0, 500.0])
def test_a_weight_at_rest_stays_there_when_the_learning_rate_falls(optimizer, b):
    # At the last rate an explicit step is short enough, too.
    rule, state = rule_and_state(optimizer, b, largest_rate=0.1)
    weights = np.array([-3 / b])
    for eta in np.repeat([0.1, 0.02, 1e-4], 40):
        rule.update(weights, 3.0 + b * weights, eta, state, np.empty(1))
        assert weights[0] == pytest.approx(-3 / b, rel=1e-12)


def test_only_what_is_left_of_the_gradient_is_clipped():
    rule, state = rule_and_state(SGD(), 1e4, max_grad_norm=1.0)
    weights = np.array([2.0])
    rule.update(weights, 3 + 1e4 * weights, 0.1, state, np.empty(1))
    assert weights[0] == pytest.approx((2 - 0.1) / 1001, rel=1e-9)


def test_with_an_l1_term_it_is_the_proximal_step_of_both():
    terms = PenaltyStrengths(l1=np.array([2.0, 100.0]), l2=np.array([50.0, 50.0]))
    rule, weights = Update(SGD()).rule(terms), np.array([5.0, 5.0])
    state = rule.start(2, 0, weights.dtype)
    for _ in range(200):
        rule.update(weights, -7 + 50 * weights, 0.1, state, np.empty(2))
    # -7 + 50 w + 2 = 0; the other strength is above the gradient.
    np.testing.assert_allclose(weights, [0.1, 0.0], rtol=1e-12)


@pytest.mark.parametrize(
    "optimizer, rate, is_stiff",
    [
        (SGD(), 0.1, False),
        (SGD(), 0.100001, True),
        (SGD(), None, True),
        (Momentum(momentum=0.9), 0.0099, False),
        (Nesterov(momentum=0.9), 0.0101, True),
        (Adam(), None, False),
        (SGD(), largest_rate(Adaptive(eta0=0.1)), False),
        (SGD(), largest_rate(Optimal(alpha=1e-8)), True),
        (SGD(), largest_rate(lambda t: 0.01), True),
    ],
)
def test_it_is_there_only_where_a_step_can_be_too_long(optimizer, rate, is_stiff):
    update, terms = Update(optimizer, largest_rate=rate), PenaltyStrengths(l2=np.array([0.0, 10.0]))
    assert update.is_stiff(terms) == is_stiff
    assert (ImplicitL2 in map(type, update.rule(terms).transformations)) == is_stiff
    assert not update.is_stiff(PenaltyStrengths())


def test_an_optimizer_whose_steps_are_its_own_is_left_alone():
    class Own:
        def start(self, n_coefficients, n_others, dtype):
            return {}

        def update(self, weights, gradient, eta, state, scratch): ...

        def step_length(self, eta, state): ...

    assert not Update(Own()).is_stiff(PenaltyStrengths(l2=np.array([1e9])))


class Given:
    """Makes given weights of an update."""

    def __init__(self, weights):
        self.weights = iter(weights)

    def start(self, n_coefficients, n_others, dtype):
        return {}

    def update(self, weights, gradient, eta, state, scratch):
        weights[...] = next(self.weights)

    def step_length(self, eta, state):
        return eta


def averaged(first, weights):
    """Return the result after updates to these weights, and the weights of the last one."""
    rule, current = Update(Given(weights), average=first).rule(), np.zeros_like(weights[0])
    state = rule.start(len(current), 0, current.dtype)
    for _ in weights:
        rule.update(current, np.zeros_like(current), 1.0, state, np.empty_like(current))
    return rule.result(current, state), current


@pytest.mark.parametrize("first, begin", [(True, 0), (1, 0), (2, 1), (7, 6)])
def test_mean_of_the_weights_from_an_update_on(first, begin, rng):
    weights = rng.normal(size=(7, 3)).astype("float32")
    mean, _ = averaged(first, weights)
    assert mean.dtype == "float32"
    np.testing.assert_allclose(mean, weights[begin:].mean(axis=0, dtype=float), rtol=1e-6)


@pytest.mark.parametrize("first", [False, 0, 8])
def test_before_it_has_begun_the_last_weights(first, rng):
    weights = rng.normal(size=(7, 3))
    mean, last = averaged(first, weights)
    np.testing.assert_array_equal(mean, weights[-1])
    assert not np.shares_memory(mean, last)


def test_many_updates_of_float32_lose_no_digits():
    weights = np.full((100_000, 1), 1e-3, "float32")
    assert averaged(True, weights)[0][0] == weights[0, 0]


def test_its_state_is_beside_that_of_the_optimizer():
    state = Update(SGD(), average=3).rule().start(2, 1, np.dtype("float32"))
    assert {name: (array.dtype, array.tolist()) for name, array in state.items()} == {
        "average_n_updates": (np.int64, [0]),
        "average_mean": (np.float64, [0, 0, 0]),
    }
