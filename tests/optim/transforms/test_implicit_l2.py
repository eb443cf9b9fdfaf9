"""The l2 term at any strength, against closed forms of one weight."""

import numpy as np
import pytest

from skort.optim.optimizers import SGD, Adam, Momentum, Nesterov
from skort.optim.schedules import Adaptive, Optimal, largest_rate
from skort.optim.transforms.implicit_l2 import ImplicitL2
from skort.optim.update import Terms, Update


def rule_and_state(optimizer, b, dtype=np.float64, **options):
    rule = Update(optimizer, **options).rule(Terms(l2=np.array([b], dtype)))
    return rule, rule.start(1, 0, np.dtype(dtype))


# 0.125 is exact: its eight times is the last explicit step.
@pytest.mark.parametrize("b, is_implicit", [(0.08, False), (7.2, False), (8.0, False), (8.0001, True), (400.0, True)])
def test_one_step_is_explicit_up_to_the_boundary_and_implicit_beyond(b, is_implicit):
    eta, g, w = 0.125, 3.0, 2.0
    rule, state = rule_and_state(SGD(), b)
    weights = np.array([w])
    rule.update(weights, np.array([g + b * w]), eta, state, np.empty(1))
    expected = (w - eta * g) / (1 + eta * b) if is_implicit else w - eta * (g + b * w)
    assert weights[0] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("optimizer", [SGD(), Momentum(0.5), Momentum(0.9), Nesterov(0.75)], ids=repr)
@pytest.mark.parametrize("b", [0.1, 9.0, 15.0, 500.0, 1e6])
def test_a_weight_rests_where_gradient_and_penalty_balance(optimizer, b):
    rule, state = rule_and_state(optimizer, b)
    weights = np.array([5.0])
    for _ in range(5000):
        rule.update(weights, 3.0 + b * weights, 0.1, state, np.empty(1))
    assert weights[0] == pytest.approx(-3 / b, rel=1e-9)


def test_the_length_of_a_step_with_momentum_decides():
    # 0.125 / (1 - 0.75) * 4 = 2: by momentum the step is implicit, by SGD it is not.
    rule, state = rule_and_state(Momentum(0.75), 4.0)
    weights, velocity, length = np.array([2.0]), 0.0, 0.0
    for g in (3.0, -1.0):
        velocity = 0.75 * velocity - 0.125 * g
        length = 0.75 * length + 0.125
        expected = (weights[0] + velocity) / (1 + length * 4)
        rule.update(weights, g + 4 * weights, 0.125, state, np.empty(1))
        assert weights[0] == pytest.approx(expected, rel=1e-13)
        assert state["velocity"][0] == pytest.approx(velocity, rel=1e-13)


@pytest.mark.parametrize("optimizer", [SGD(), Momentum(0.9), Nesterov(0.75)], ids=repr)
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
    terms = Terms(l1=np.array([2.0, 100.0]), l2=np.array([50.0, 50.0]))
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
        (Momentum(0.9), 0.0099, False),
        (Nesterov(0.9), 0.0101, True),
        (Adam(), None, False),
        (SGD(), largest_rate(Adaptive(eta0=0.1)), False),
        (SGD(), largest_rate(Optimal(alpha=1e-8)), True),
        (SGD(), largest_rate(lambda t: 0.01), True),
    ],
)
def test_it_is_there_only_where_a_step_can_be_too_long(optimizer, rate, is_stiff):
    update, terms = Update(optimizer, largest_rate=rate), Terms(l2=np.array([0.0, 10.0]))
    assert update.is_stiff(terms) == is_stiff
    assert isinstance(update.rule(terms), ImplicitL2) == is_stiff
    assert not update.is_stiff(Terms())


def test_an_optimizer_whose_steps_are_its_own_is_left_alone():
    class Own:
        def start(self, n_coefficients, n_others, dtype):
            return {}

        def update(self, weights, gradient, eta, state, scratch): ...

        def step_length(self, eta, state): ...

    assert not Update(Own()).is_stiff(Terms(l2=np.array([1e9])))
