"""Adam and AdamW."""

import numpy as np
import pytest

from skort.optim.optimizers.adam import Adam, AdamState

N_COEFFICIENTS = 5


def test_weight_decay_shrinks_coefficients_only(descend):
    # Without a gradient nothing else moves.
    weights, _ = descend(Adam(weight_decay=0.5), np.arange(1.0, 8.0), np.zeros((3, 7)), 0.1)
    np.testing.assert_allclose(weights[:N_COEFFICIENTS], np.arange(1.0, 6.0) * 0.95**3)
    np.testing.assert_array_equal(weights[N_COEFFICIENTS:], [6.0, 7.0])


@pytest.mark.parametrize("weight_decay", [0, 0.3])
def test_adam_is_torchs_adamw(weight_decay, rng, descend, gradients):
    torch = pytest.importorskip("torch")
    start, steps = rng.normal(size=7), gradients(rng)
    coefficients, intercepts = (
        torch.tensor(w, requires_grad=True) for w in np.split(start, [N_COEFFICIENTS])
    )
    # torch adds epsilon after the correction of the second moment; with so small a one that makes
    # no difference.
    groups = [
        {"params": [coefficients], "weight_decay": weight_decay},
        {"params": [intercepts], "weight_decay": 0},
    ]
    theirs = torch.optim.AdamW(groups, lr=0.05, eps=1e-30)
    for gradient in steps:
        coefficients.grad, intercepts.grad = (
            torch.tensor(g) for g in np.split(gradient, [N_COEFFICIENTS])
        )
        theirs.step()
    weights, _ = descend(Adam(epsilon=1e-30, weight_decay=weight_decay), start, steps, 0.05)
    expected = np.concatenate([coefficients.detach().numpy(), intercepts.detach().numpy()])
    np.testing.assert_allclose(weights, expected, rtol=1e-10)


def test_the_moments_are_running_means_of_gradients_and_squares(rng, descend, gradients):
    first, second = steps = gradients(rng, n_steps=2)
    _, state = descend(Adam(beta_1=0.5, beta_2=0.9), np.zeros(7), steps, 0.1)
    memory = AdamState(**state)
    np.testing.assert_allclose(memory.first_moment, 0.25 * first + 0.5 * second)
    np.testing.assert_allclose(memory.second_moment, 0.09 * first**2 + 0.1 * second**2)
    assert memory.n_updates.tolist() == [2]


def test_the_correction_is_that_of_moments_that_began_at_zero():
    optimizer = Adam(beta_1=0.5, beta_2=0.75)
    state = optimizer.start(1, 0, np.float64)
    # The square root of 1 - beta_2^t, divided by 1 - beta_1^t
    assert optimizer.corrected(0.1, state) == pytest.approx(0.1 * 0.5 / 0.5)
    assert optimizer.corrected(0.1, state) == pytest.approx(0.1 * 0.4375**0.5 / 0.75)
