"""The accumulated l1 penalty against its published form, the proximal step, and what comes back."""

import numpy as np
import pytest

from skort.optim.optimizers import SGD, Adam, Momentum, Nesterov
from skort.optim.update import Terms, Update


def run(optimizer, gradients, a, *, n_steps, eta=0.1, start=0.0, dtype=np.float64):
    """Return the weight after each of some gradients, of the l1 strength a."""
    weights = np.array([start], dtype)
    rule = Update(optimizer).rule(Terms(l1=np.array([a], dtype), n_steps=n_steps))
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


@pytest.mark.parametrize("optimizer", [SGD(), Momentum(0.5), Adam()], ids=repr)
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
    # Nothing happens for 1,000 steps, then the gradient is twice the strength. Each step pays one more than it adds.
    gradients = np.repeat([0.0, -2.0], [1000, 1100])
    first = {n: int(np.argmax(run(SGD(), gradients, 1.0, n_steps=n) > 1e-9)) - 1000 for n in (1, 20, 300, 10**9)}
    assert first == {1: 0, 20: 19, 300: 299, 10**9: pytest.approx(1000, abs=1)}


def test_noise_does_not_lift_a_weight_off_zero(rng):
    gradients = rng.normal(size=5000)
    ours = run(SGD(), gradients, 0.1, n_steps=5000)
    proximal = run(SGD(), gradients, 0.1, n_steps=1)
    assert np.mean(ours[1000:] == 0) > 0.98
    assert np.mean(proximal[1000:] == 0) < 0.5


def test_float32_keeps_the_digits_of_a_weight_that_pays_much_and_moves_little():
    # It pays 500 in all: a sum of that has no digits left for steps of 1e-4.
    seen = run(SGD(), np.full(20_000, -2.51), 2.5, n_steps=100, eta=0.01, start=1.0, dtype=np.float32)
    assert seen[-1] == pytest.approx(1 + 20_000 * 0.01 * 0.01, rel=5e-3)


def test_a_weight_without_strength_is_left_alone(rng):
    gradients = rng.normal(size=50)
    np.testing.assert_allclose(run(SGD(), gradients, 0.0, n_steps=10), -0.1 * np.cumsum(gradients), atol=1e-14)


@pytest.mark.parametrize("optimizer", [SGD(), Momentum(0.9), Nesterov(0.75)], ids=repr)
@pytest.mark.parametrize("start, gradient", [(2.0, -0.3), (-2.0, 0.3), (0.0, 0.2999), (0.0, -0.1)])
def test_a_weight_at_its_balance_stays_there_when_the_learning_rate_falls(optimizer, start, gradient):
    rule, weights = Update(optimizer).rule(Terms(l1=np.array([0.3]), n_steps=7)), np.array([start])
    state = rule.start(1, 0, weights.dtype)
    for eta in np.repeat([0.1, 0.02, 0.3, 1e-4], 40):
        rule.update(weights, np.array([gradient]), eta, state, np.empty(1))
        assert weights[0] == (pytest.approx(start, rel=1e-12) if start else 0)


def test_what_is_owed_falls_with_the_length_of_the_steps():
    weights, terms = np.array([0.0]), Terms(l1=np.array([1.0]), n_steps=10)
    rule = Update(SGD()).rule(terms)
    state = rule.start(1, 0, weights.dtype)
    for eta, owed in ((0.1, 1.0), (0.01, 0.1)):
        for _ in range(20):
            rule.update(weights, np.zeros(1), eta, state, np.empty(1))
        np.testing.assert_allclose([state["l1_owed_if_positive"], state["l1_owed_if_negative"]], owed)
