"""
All optimizers: the updates are those of scikit-learn,
and the lengths of steps are those of the updates.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neural_network._stochastic_optimizers import AdamOptimizer, SGDOptimizer

from skort.optim.optimizers import OPTIMIZERS
from skort.optimizers import LBFGS, SGD, Adam, Momentum, Nesterov

REFERENCES = [
    (SGD(), SGDOptimizer, {"momentum": 0.0, "nesterov": False}),
    (Momentum(), SGDOptimizer, {"nesterov": False}),
    (Momentum(momentum=0.5), SGDOptimizer, {"momentum": 0.5, "nesterov": False}),
    (Momentum(momentum=0), SGDOptimizer, {"momentum": 0.0, "nesterov": False}),
    (Nesterov(), SGDOptimizer, {}),
    (Nesterov(momentum=0.3), SGDOptimizer, {"momentum": 0.3}),
    (Adam(), AdamOptimizer, {}),
    (
        Adam(beta_1=0.5, beta_2=0.7, epsilon=0.1),
        AdamOptimizer,
        {"beta_1": 0.5, "beta_2": 0.7, "epsilon": 0.1},
    ),
    (Adam(beta_1=0, beta_2=0), AdamOptimizer, {"beta_1": 0, "beta_2": 0}),
]


@pytest.mark.parametrize("dtype, rtol", [("float64", 1e-12), ("float32", 2e-5)])
@pytest.mark.parametrize(
    "optimizer, reference, parameters", REFERENCES, ids=[repr(r[0]) for r in REFERENCES]
)
def test_the_updates_are_scikit_learns(
    optimizer, reference, parameters, dtype, rtol, rng, descend, gradients
):
    start, steps = rng.normal(size=7), gradients(rng)
    expected = [start.copy()]
    theirs = reference(expected, learning_rate_init=0.01, **parameters)
    for gradient in steps:
        theirs.update_params(expected, [gradient])
    weights, _ = descend(optimizer, start.astype(dtype), steps.astype(dtype), 0.01)
    assert weights.dtype == dtype
    np.testing.assert_allclose(weights, expected[0], rtol=rtol)


@pytest.mark.parametrize(
    ("cls", "parameters"),
    [
        (SGD, "It has no parameters."),
        (Momentum, "Its parameters are momentum."),
        (Nesterov, "Its parameters are momentum."),
        (Adam, "Its parameters are beta_1, beta_2, epsilon, lazy, weight_decay."),
    ],
)
def test_a_rate_goes_to_the_estimator(cls, parameters):
    """As keras.optimizers.Adam(0.001) would be a beta_1 of 0.001."""
    with pytest.raises(TypeError) as caught:
        cls(0.001)
    assert str(caught.value) == (
        f"{cls.__name__}(0.001) takes no value without a name. {parameters} The learning rate is eta0 "
        "of the estimator."
    )


def test_the_memory_of_lbfgs_has_a_name():
    told = r"LBFGS\(5\) takes no value without a name. Its parameters are history_size.$"
    with pytest.raises(TypeError, match=told):
        LBFGS(5)


@pytest.mark.parametrize("optimizer", [cls() for cls in OPTIMIZERS.values()], ids=OPTIMIZERS)
def test_an_instance_serves_any_number_of_trainings(optimizer, rng, descend, gradients):
    start, steps = rng.normal(size=7), gradients(rng)
    before = repr(vars(optimizer))
    first, _ = descend(optimizer, start, steps, 0.01)
    second, _ = descend(optimizer, start, steps, 0.01)
    np.testing.assert_array_equal(first, second)
    assert repr(vars(optimizer)) == before
    assert clone(optimizer).get_params() == optimizer.get_params()


def test_numpy_floats_leave_float32_as_it_is(rng, descend, gradients):
    # As GridSearchCV over np.linspace brings them: numpy 2 would compute in their type.
    start, steps = rng.normal(size=7).astype("float32"), gradients(rng, dtype="float32")
    for made in (
        lambda momentum: Momentum(momentum=momentum),
        lambda momentum: Nesterov(momentum=momentum),
        lambda beta: Adam(beta_1=beta, epsilon=np.float64(1e-8), weight_decay=np.float64(0.1)),
    ):
        python, numpy = (
            descend(made(parameter), start, steps, 0.01)[0] for parameter in (0.7, np.float64(0.7))
        )
        np.testing.assert_array_equal(python, numpy)


@pytest.mark.parametrize(
    "optimizer, parameter",
    [
        (Momentum(momentum=-0.1), "momentum"),
        (Nesterov(momentum=1.5), "momentum"),
        (Adam(beta_1=1.0), "beta_1"),
        (Adam(beta_2=1), "beta_2"),
        (Adam(epsilon=0.0), "epsilon"),
        (Adam(weight_decay=-1), "weight_decay"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(optimizer, parameter):
    with pytest.raises(ValueError, match=f"'{parameter}' parameter of {type(optimizer).__name__}"):
        optimizer._validate_params()


@pytest.mark.parametrize(
    "optimizer", [SGD(), Momentum(momentum=0.8), Nesterov(momentum=0.8), Adam(beta_2=0.9)], ids=str
)
def test_step_length_is_how_far_a_constant_gradient_moves(optimizer):
    weights, gradient = np.zeros(3), np.array([0.5, -2.0, 30.0])
    state = optimizer.start(2, 1, weights.dtype)
    for _ in range(300):
        before = weights.copy()
        optimizer.update(weights, gradient, 0.1, state, scratch=np.empty(3))
    np.testing.assert_allclose(
        before - weights, optimizer.step_length(0.1, state) * gradient, rtol=1e-6
    )


@pytest.mark.parametrize(
    "optimizer",
    [SGD(), Momentum(momentum=0.8), Nesterov(momentum=0.8), Momentum(momentum=1)],
    ids=str,
)
def test_step_length_is_how_far_a_constant_gradient_moves_at_any_learning_rates(optimizer):
    weights, gradient = np.zeros(3), np.array([0.5, -2.0, 30.0])
    state = optimizer.start(2, 1, weights.dtype)
    for eta in np.repeat([0.1, 0.02, 3.0, 0.0], 5):
        before = weights.copy()
        optimizer.update(weights, gradient, eta, state, scratch=np.empty(3))
        np.testing.assert_allclose(
            before - weights, optimizer.step_length(eta, state) * gradient, rtol=1e-10
        )


@pytest.mark.parametrize(
    "optimizer",
    [SGD(), Momentum(momentum=0.8), Nesterov(momentum=0.8), Nesterov(momentum=0)],
    ids=str,
)
def test_gain_is_the_length_that_the_steps_come_to(optimizer):
    weights, state = np.zeros(1), optimizer.start(1, 0, np.dtype(float))
    for _ in range(300):
        optimizer.update(weights, np.ones(1), 0.1, state, scratch=np.empty(1))
    assert optimizer.step_length(0.1, state) == pytest.approx(0.1 * optimizer.gain, rel=1e-12)
