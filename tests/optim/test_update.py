"""
Optimizers and the transforms around them:
the update as ONNX is that of numpy, and transforms compose.
"""

import numpy as np
import onnx
import onnx.shape_inference
import pytest
from onnx import helper

from skort.common.onnx_text import IR_VERSION, OPSET, Fragment, inlined, onnx_dtype
from skort.optim.optimizers import SGD, Adam, Momentum, Nesterov
from skort.optim.update import PenaltyStrengths, Update

N_COEFFICIENTS, N_INTERCEPTS = 5, 2
L1 = np.array([0.5, 0.5, 0.1, 0.0, 3.0, 0.0, 0.0])
# At a learning rate of 0.01 some steps are explicit and some are implicit, and that of 100 by SGD
# is the last explicit.
L2 = np.array([0.5, 300.0, 1e4, 0.0, 80.0, 100.0, 0.0])

OPTIMIZERS = [
    *(
        SGD(),
        Momentum(),
        Momentum(momentum=0.5),
        Momentum(momentum=0),
        Nesterov(),
        Nesterov(momentum=0.3),
    ),
    *(
        Adam(),
        Adam(beta_1=0.5, beta_2=0.7, epsilon=0.1),
        Adam(beta_1=0, beta_2=0),
        Adam(weight_decay=0.3),
    ),
]
UPDATES = [
    *((Update(optimizer), {}) for optimizer in OPTIMIZERS),
    (Update(SGD(), max_grad_norm=0.5), {}),
    (Update(SGD(), max_grad_norm=1e9), {}),
    (Update(Momentum(momentum=0.5), average=True), {}),
    (Update(SGD(), average=3), {}),
    *(
        (Update(optimizer), {"l1": L1, "n_steps": n})
        for optimizer in (SGD(), Momentum(momentum=0.5), Adam())
        for n in (1, 3)
    ),
    (Update(Nesterov(momentum=0.3)), {"l1": L1, "n_steps": 3}),
    *(
        (Update(optimizer), {"l2": L2})
        for optimizer in (SGD(), Momentum(momentum=0.5), Nesterov(momentum=0.3), Adam())
    ),
    *(
        (Update(optimizer, largest_rate=0.05), {"l2": L2})
        for optimizer in (SGD(), Momentum(momentum=0.5))
    ),
    (Update(SGD(), max_grad_norm=0.5, average=2), {"l1": L1, "l2": L2, "n_steps": 2}),
    (Update(Adam(weight_decay=0.3), max_grad_norm=0.5, average=2), {"l1": L1, "n_steps": 2}),
]


def gradients(rng, dtype):
    return (rng.normal(size=(5, N_COEFFICIENTS + N_INTERCEPTS)) * np.logspace(-3, 3, 7)).astype(
        dtype
    )


def onnx_update(rule, state, dtype):
    """
    Return one update as a model of the weights, the gradient,
    eta and the state, each by its name.
    """
    vector = np.zeros(N_COEFFICIENTS + N_INTERCEPTS, dtype)
    arrays = {"weights": vector, "gradient": vector, "eta": np.zeros((), dtype), **state}
    fragment = Fragment(dtype)
    results = rule.add_nodes(fragment, {name: name for name in arrays})
    for name, result in results.items():
        fragment.rename(result, f"next_{name}")
    infos = [
        helper.make_tensor_value_info(name, onnx_dtype(a.dtype), a.shape)
        for name, a in arrays.items()
    ]
    outputs = [onnx.ValueInfoProto(name=f"next_{name}") for name in results]
    graph = helper.make_graph(fragment.nodes, "update", infos, outputs)
    opset = helper.make_opsetid("", OPSET)
    model = inlined(
        helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[opset]), fragment
    )
    return onnx.shape_inference.infer_shapes(model)


@pytest.mark.parametrize("dtype, rtol", [("float64", 1e-13), ("float32", 2e-6)])
@pytest.mark.parametrize("update, terms", UPDATES, ids=repr)
def test_the_update_as_onnx_is_the_same(update, terms, dtype, rtol, rng, run_onnx):
    weights = rng.normal(size=7).astype(dtype)
    terms = {name: np.asarray(value, dtype) for name, value in terms.items()}
    rule = update.rule(PenaltyStrengths(**terms))
    state = rule.start(N_COEFFICIENTS, N_INTERCEPTS, weights.dtype)
    model = onnx_update(rule, state, dtype)
    for gradient, eta in zip(gradients(rng, dtype), (0.01, 0.01, 0.002, 0.002, 0.01), strict=True):
        results = run_onnx(
            model, weights=weights, gradient=gradient, eta=np.array(eta, dtype), **state
        )
        rule.update(weights, gradient, eta, state, np.empty_like(weights))
        atol = 0 if dtype == "float64" else 1e-7
        np.testing.assert_allclose(results.pop("next_weights"), weights, rtol=rtol, atol=atol)
        np.testing.assert_allclose(
            results.pop("next_length"), rule.step_length(eta, state), rtol=rtol
        )
        assert set(results) == {f"next_{name}" for name in state if name != "n_coefficients"}
        for name, array in results.items():
            expected = state[name.removeprefix("next_")]
            assert array.dtype == expected.dtype
            np.testing.assert_allclose(array, expected, rtol=rtol, atol=atol)


def test_transforms_are_applied_in_their_order():
    # Decay, the clipped gradient's step, the threshold by the step's length, the mean.
    update = Update(
        Adam(beta_1=0, beta_2=0, epsilon=1e-30, weight_decay=2.0), max_grad_norm=5.0, average=2
    )
    rule = update.rule(PenaltyStrengths(l1=np.array([0.0, 10.0, 0.0])))
    weights, eta = np.array([1.0, 2.0, 3.0]), 0.1
    state = rule.start(2, 1, weights.dtype)
    w, seen = weights.copy(), []
    for gradient in ([30.0, 40.0, 0.0], [3.0, 0.0, -4.0], [0.3, -0.4, 0.0]):
        g = np.array(gradient) * min(1, 5 / np.linalg.norm(gradient))
        w *= np.where(np.arange(3) < 2, 1 - eta * 2, 1)
        # Adam without memory: steps of the length eta; a constant gradient of one moves a
        # weight by eta / |g|.
        w -= eta * np.sign(g)
        threshold = eta * np.array([0.0, 10.0, 0.0]) / np.maximum(np.abs(g), 1e-30)
        w = np.sign(w) * np.maximum(0, np.abs(w) - threshold)
        seen.append(w.copy())
        rule.update(weights, np.array(gradient), eta, state, np.empty(3))
        np.testing.assert_allclose(weights, w, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(
        rule.result(weights, state), np.mean(seen[1:], axis=0), rtol=1e-14, atol=1e-15
    )


def test_a_subclass_of_sgd_with_a_parameter_weight_decay_keeps_it_to_itself():
    class Own(SGD):
        weight_decay = 0.5

    assert Update(Own()).tags.weight_decay == 0
    assert Update(Adam(weight_decay=0.5)).tags.weight_decay == 0.5


@pytest.mark.parametrize(
    ("optimizer", "memory"),
    [
        (SGD(), 1),
        (Momentum(momentum=0.75), 4),
        (Nesterov(momentum=0.5), 2),
        (Adam(beta_1=0.9), 10),
        (Adam(beta_1=0.0), 1),
    ],
)
def test_memory_is_how_many_updates_a_gradient_counts_in(optimizer, memory):
    assert Update(optimizer).tags.memory == pytest.approx(memory)
