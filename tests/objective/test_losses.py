"""
Each loss: value and gradient against numpy, scikit-learn, torch,
finite differences, and at its kinks.
"""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from scipy.special import expit, softmax
from sklearn._loss import (
    AbsoluteError,
    HalfBinomialLoss,
    HalfGammaLoss,
    HalfMultinomialLoss,
    HalfPoissonLoss,
    HalfSquaredError,
    HalfTweedieLoss,
    HuberLoss,
    PinballLoss,
)
from sklearn.base import clone
from sklearn.linear_model import SGDRegressor, _sgd_fast

from skort import objective
from skort.common.onnx_text import IR_VERSION, OPSET, Fragment, inlined, onnx_dtype
from skort.objective.loss import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from skort.objective.objective import OBJECTIVE, SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET, Objective

PAGE = Path(__file__).parents[2] / "docs" / "losses.rst"

# Loss; value and gradient in numpy, of the score s and the target y (of classifiers: -1 or 1); both
# as the page of losses writes them, with z = y s, r = s - y, and t = 0 or 1.
FORMULAS = {
    "squared_error": (
        objective.SquaredError(),
        lambda s, y: (s - y) ** 2 / 2,
        lambda s, y: s - y,
        r"loss = \frac{1}{2} r^2",
        r"= s - y",
    ),
    "absolute_error": (
        objective.AbsoluteError(),
        lambda s, y: abs(s - y),
        lambda s, y: np.sign(s - y),
        r"loss = |r|",
        r"= sign(r)",
    ),
    "huber": (
        objective.Huber(0.5),
        lambda s, y: np.where(abs(s - y) <= 0.5, (s - y) ** 2 / 2, 0.5 * abs(s - y) - 0.125),
        lambda s, y: np.clip(s - y, -0.5, 0.5),
        (
            r"\frac{1}{2} r^2 & |r| \le \epsilon \\ \epsilon |r| - \frac{1}{2} \epsilon^2 "
            r"& |r| > \epsilon"
        ),
        r"= \max(-\epsilon, \min(r, \epsilon))",
    ),
    "epsilon_insensitive": (
        objective.EpsilonInsensitive(0.5),
        lambda s, y: np.maximum(0, abs(s - y) - 0.5),
        lambda s, y: np.where(abs(s - y) > 0.5, np.sign(s - y), 0),
        r"loss = \max(0, |r| - \epsilon)",
        r"= sign(r) \text{ where } |r| > \epsilon",
    ),
    "squared_epsilon_insensitive": (
        objective.SquaredEpsilonInsensitive(0.5),
        lambda s, y: np.maximum(0, abs(s - y) - 0.5) ** 2,
        lambda s, y: 2 * np.maximum(0, abs(s - y) - 0.5) * np.sign(s - y),
        r"loss = \max(0, |r| - \epsilon)^2",
        r"= 2 \max(0, |r| - \epsilon) \, sign(r)",
    ),
    "quantile": (
        objective.Quantile(0.75),
        lambda s, y: np.where(y > s, 0.75 * (y - s), 0.25 * (s - y)),
        lambda s, y: np.where(y > s, -0.75, 0.25) * (s != y),
        r"loss = q \max(0, -r) + (1 - q) \max(0, r)",
        r"\begin{cases} -q & r < 0 \\ 1 - q & r > 0",
    ),
    "elastic": (
        objective.ElasticLoss(0.25, 2),
        lambda s, y: 0.25 * abs(s - y) + (s - y) ** 2,
        lambda s, y: 0.25 * np.sign(s - y) + 2 * (s - y),
        r"loss = a |r| + \frac{b}{2} r^2",
        r"= a \, sign(r) + b r",
    ),
    "poisson": (
        objective.PoissonLoss(),
        lambda s, y: np.exp(s) - y * s,
        lambda s, y: np.exp(s) - y,
        r"loss = e^s - y s",
        r"= e^s - y",
    ),
    "gamma": (
        objective.GammaLoss(),
        lambda s, y: s + y * np.exp(-s),
        lambda s, y: 1 - y * np.exp(-s),
        r"loss = s + y e^{-s}",
        r"= 1 - y e^{-s}",
    ),
    "log_loss": (
        objective.LogLoss(),
        lambda s, y: np.logaddexp(0, -y * s),
        lambda s, y: -y * expit(-y * s),
        r"loss = \log(1 + e^{-z})",
        r"= p - t",
        r"p = \frac{1}{1 + e^{-s}}",
    ),
    "hinge": (
        objective.Hinge(),
        lambda s, y: np.maximum(0, 1 - y * s),
        lambda s, y: np.where(y * s <= 1, -y, 0),
        r"loss = \max(0, 1 - z)",
        r"\begin{cases} -y & z \le 1 \\ 0 & z > 1",
    ),
    "squared_hinge": (
        objective.SquaredHinge(),
        lambda s, y: np.maximum(0, 1 - y * s) ** 2,
        lambda s, y: -2 * y * np.maximum(0, 1 - y * s),
        r"loss = \max(0, 1 - z)^2",
        r"= -2 y \max(0, 1 - z)",
    ),
    "modified_huber": (
        objective.ModifiedHuber(),
        lambda s, y: np.where(y * s >= -1, np.maximum(0, 1 - y * s) ** 2, -4 * y * s),
        lambda s, y: np.where(y * s >= -1, -2 * y * np.maximum(0, 1 - y * s), -4 * y),
        r"\begin{cases} \max(0, 1 - z)^2 & z \ge -1 \\ -4 z & z < -1",
        r"= -2 y \min(2, \max(0, 1 - z))",
    ),
    "perceptron": (
        objective.PerceptronLoss(),
        lambda s, y: np.maximum(0, -y * s),
        lambda s, y: -y * (y * s <= 0),
        r"loss = \max(0, -z)",
        r"\begin{cases} -y & z \le 0 \\ 0 & z > 0",
    ),
}
# The same formulas of the labels -1 and 1.
LABELS = {
    "label_squared_error": (objective.LabelSquaredError(), *FORMULAS["squared_error"][3:]),
    "label_huber": (
        objective.LabelHuber(0.5),
        FORMULAS["huber"][3],
        r"= \max(-\epsilon, \min(r, \epsilon))",
    ),
    "label_epsilon_insensitive": (
        objective.LabelEpsilonInsensitive(0.5),
        r"loss = \max(0, |r| - \epsilon) \frac",
        r"= sign(r) \text{ where } |r| > \epsilon",
    ),
    "label_squared_epsilon_insensitive": (
        objective.LabelSquaredEpsilonInsensitive(0.5),
        r"loss = \max(0, |r| - \epsilon)^2",
        r"= 2 \max(0, |r| - \epsilon) \, sign(r)",
    ),
}
FORMULAS |= {
    name: (loss, *FORMULAS[name.removeprefix("label_")][1:3], *latex)
    for name, (loss, *latex) in LABELS.items()
}
POWERS = {f"tweedie {power}": power for power in (-1.0, 0.0, 1.0, 1.5, 2.0, 3.0)}


def tweedie(p):
    limits = {1.0: lambda s, y: np.exp(s) - y * s, 2.0: lambda s, y: s + y * np.exp(-s)}
    value = limits.get(
        p, lambda s, y: np.exp((2 - p) * s) / (2 - p) - y * np.exp((1 - p) * s) / (1 - p)
    )
    latex = (
        r"\frac{e^{(2 - p) s}}{2 - p} - y \frac{e^{(1 - p) s}}{1 - p}",
        r"= e^{(2 - p) s} - y e^{(1 - p) s}",
    )
    return (
        objective.TweedieLoss(p),
        value,
        lambda s, y: np.exp((2 - p) * s) - y * np.exp((1 - p) * s),
        *latex,
    )


FORMULAS |= {name: tweedie(power) for name, power in POWERS.items()}
REGRESSION = [name for name, (loss, *_) in FORMULAS.items() if "regressor" in loss.estimator_types]
LOG_LINK = ["poisson", "gamma", *POWERS]
DTYPES = {"float32": {"rtol": 2e-5, "atol": 2e-6}, "float64": {"rtol": 1e-12, "atol": 1e-14}}
# From rounding to underflow of the other class's probability.
EXTREME = np.array([0.0, 1e-4, 1.0, -1.0, 20.0, -20.0, 100.0, -100.0, 1e4, -1e4])
# Residuals and margins at every kink of the losses above, and on both sides.
GRID = np.array([-2.0, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0])

matrix = pytest.mark.parametrize("name", FORMULAS)
outputs = pytest.mark.parametrize("n_outputs", [1, 3])
dtypes = pytest.mark.parametrize("dtype", DTYPES)


def data(name, n_outputs, rng, n=12):
    """Return scores, targets, and the weights of a batch before they are scaled."""
    # Powers of the prediction are even further apart.
    scale = 0.5 if name in POWERS else 2
    score, weight = scale * rng.normal(size=(n, n_outputs)), rng.uniform(0.1, 2, size=(n, 1))
    weight /= weight.sum()
    if name == "gamma" or POWERS.get(name, 0) >= 1:
        return score, rng.gamma(1, size=(n, n_outputs)), weight
    if name == "poisson":
        return score, rng.poisson(1.5, (n, n_outputs)).astype(float), weight
    if name in REGRESSION:
        return score, rng.normal(size=(n, n_outputs)), weight
    classes = rng.integers(0, max(2, n_outputs), n)
    return (
        score,
        classes[:, None].astype(float) if n_outputs == 1 else np.eye(n_outputs)[classes],
        weight,
    )


def expected(name, score, target, weight):
    """Return the weighted sum of the loss, and its gradient by the score, in numpy."""
    _, value, gradient, *_ = FORMULAS[name]
    n_outputs = score.shape[1]
    if name in REGRESSION:
        return (weight * value(score, target)).sum() / n_outputs, weight * gradient(
            score, target
        ) / n_outputs
    if name == "log_loss" and n_outputs > 1:
        log_sum = np.logaddexp.reduce(score, axis=1, keepdims=True)
        return (weight * target * (log_sum - score)).sum(), weight * (
            softmax(score, axis=1) - target
        )
    y = 2 * target - 1
    return (weight * value(score, y)).sum(), weight * gradient(score, y)


@pytest.fixture
def run_loss(run_onnx):
    """
    Return the weighted sum of a loss and its gradient,
    as the graphs of the solvers compute them.
    """

    def run(loss, dtype, score, target, weight):
        nodes = Objective(loss, None, (), score.shape[1], np.dtype(dtype))
        fragment = Fragment(dtype)
        nodes.add_value(fragment, "score")
        nodes.add_score_gradient(fragment, "score")
        inputs = [
            helper.make_tensor_value_info("score", onnx_dtype(dtype), score.shape),
            *nodes.inputs(len(score)),
        ]
        gradient = helper.make_tensor_value_info(SCORE_GRADIENT, onnx_dtype(dtype), score.shape)
        graph = helper.make_graph(fragment.nodes, "loss", inputs, [nodes.output(), gradient])
        model = helper.make_model(
            graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)]
        )
        feeds = {"score": score, TARGET: target, SAMPLE_WEIGHT: nodes.sample_weight_scale * weight}
        results = run_onnx(
            inlined(model, fragment), **{key: array.astype(dtype) for key, array in feeds.items()}
        )
        return float(results[OBJECTIVE]), results[SCORE_GRADIENT]

    return run


def test_every_loss_with_a_name_has_its_formula_here():
    classification = {
        f"label_{n}" if n in REGRESSION_LOSSES else n: c for n, c in CLASSIFICATION_LOSSES.items()
    }
    assert set(FORMULAS) >= {*REGRESSION_LOSSES, *classification}
    for name, loss_class in (REGRESSION_LOSSES | classification).items():
        assert type(FORMULAS[name][0]) is loss_class


@dtypes
@outputs
@matrix
def test_value_and_gradient_are_the_formula(name, n_outputs, dtype, rng, run_loss):
    score, target, weight = data(name, n_outputs, rng)
    value, gradient = run_loss(FORMULAS[name][0], dtype, score, target, weight)
    expected_value, expected_gradient = expected(name, score, target, weight)
    assert value == pytest.approx(expected_value, rel=DTYPES[dtype]["rtol"])
    np.testing.assert_allclose(gradient, expected_gradient, **DTYPES[dtype])


@pytest.mark.slow
@outputs
@matrix
def test_gradient_is_the_central_difference_of_the_value(name, n_outputs, rng, run_loss):
    score, target, weight = data(name, n_outputs, rng)
    loss = FORMULAS[name][0]
    _, gradient = run_loss(loss, "float64", score, target, weight)
    h = 1e-6
    for index in np.ndindex(score.shape):
        step = np.zeros_like(score)
        step[index] = h
        up, _ = run_loss(loss, "float64", score + step, target, weight)
        down, _ = run_loss(loss, "float64", score - step, target, weight)
        assert (up - down) / (2 * h) == pytest.approx(gradient[index], rel=1e-6, abs=1e-9)


def tweedie_of_torch(torch, s, y, p):
    if p in (1, 2):
        return torch.exp(s) - y * s if p == 1 else s + y * torch.exp(-s)
    return torch.exp((2 - p) * s) / (2 - p) - y * torch.exp((1 - p) * s) / (1 - p)


@dtypes
@outputs
@matrix
def test_value_and_gradient_are_torchs(name, n_outputs, dtype, rng, run_loss):
    torch = pytest.importorskip("torch")
    losses, relu = torch.nn.functional, torch.relu
    elementwise = {
        "squared_error": lambda s, y: losses.mse_loss(s, y, reduction="none") / 2,
        "absolute_error": lambda s, y: losses.l1_loss(s, y, reduction="none"),
        "huber": lambda s, y: losses.huber_loss(s, y, reduction="none", delta=0.5),
        "epsilon_insensitive": lambda s, y: relu(torch.abs(s - y) - 0.5),
        "squared_epsilon_insensitive": lambda s, y: relu(torch.abs(s - y) - 0.5) ** 2,
        "quantile": lambda s, y: torch.maximum(0.75 * (y - s), 0.25 * (s - y)),
        "elastic": lambda s, y: (
            0.25 * losses.l1_loss(s, y, reduction="none") + losses.mse_loss(s, y, reduction="none")
        ),
        "poisson": lambda s, y: losses.poisson_nll_loss(s, y, reduction="none"),
        "gamma": lambda s, y: (
            -torch.distributions.Gamma(torch.ones_like(s), torch.exp(-s)).log_prob(y)
        ),
        "log_loss": lambda s, y: losses.binary_cross_entropy_with_logits(s, y, reduction="none"),
        "hinge": lambda s, y: relu(1 - (2 * y - 1) * s),
        "squared_hinge": lambda s, y: relu(1 - (2 * y - 1) * s) ** 2,
        "modified_huber": lambda s, y: torch.where(
            (2 * y - 1) * s < -1, -4 * (2 * y - 1) * s, relu(1 - (2 * y - 1) * s) ** 2
        ),
        "perceptron": lambda s, y: relu((1 - 2 * y) * s),
        **{name: lambda s, y, p=p: tweedie_of_torch(torch, s, y, p) for name, p in POWERS.items()},
    }
    elementwise |= {
        f: lambda s, y, f=f: elementwise[f.removeprefix("label_")](s, 2 * y - 1) for f in LABELS
    }
    score, target, weight = data(name, n_outputs, rng)
    s, y, v = (torch.tensor(a.astype(dtype)) for a in (score, target, weight))
    s.requires_grad_()
    if name == "log_loss" and n_outputs > 1:
        objective = (v.ravel() * losses.cross_entropy(s, y, reduction="none")).sum()
    else:
        objective = (v * elementwise[name](s, y)).sum() / (n_outputs if name in REGRESSION else 1)
    objective.backward()
    value, gradient = run_loss(FORMULAS[name][0], dtype, score, target, weight)
    tolerance = (
        {"rtol": 1e-4, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-11, "atol": 1e-13}
    )
    np.testing.assert_allclose(value, objective.item(), **tolerance)
    np.testing.assert_allclose(gradient, s.grad.numpy(), **tolerance)


@pytest.mark.parametrize(
    "name, reference",
    [
        ("squared_error", HalfSquaredError()),
        ("absolute_error", AbsoluteError()),
        ("huber", HuberLoss(delta=0.5)),
        ("label_squared_error", HalfSquaredError()),
        ("label_huber", HuberLoss(delta=0.5)),
        ("quantile", PinballLoss(quantile=0.75)),
        ("poisson", HalfPoissonLoss()),
        ("gamma", HalfGammaLoss()),
        *((name, HalfTweedieLoss(power=power)) for name, power in POWERS.items() if power != 0),
        ("log_loss", HalfBinomialLoss()),
        ("log_loss", HalfMultinomialLoss(n_classes=3)),
    ],
)
def test_value_and_gradient_are_scikit_learns(name, reference, rng, run_function):
    loss, n_outputs = FORMULAS[name][0], 3 if isinstance(reference, HalfMultinomialLoss) else 1
    score, target, _ = data(name, n_outputs, rng)
    y = target.ravel() if n_outputs == 1 else target.argmax(axis=1).astype(float)
    y = 2 * y - 1 if name in LABELS else y
    value, gradient = reference.loss_gradient(y, score.ravel() if n_outputs == 1 else score)
    tolerance = {"rtol": 1e-12, "atol": 1e-14}
    ours = run_function(loss.value_function(n_outputs), "float64", score, target)
    np.testing.assert_allclose(ours.ravel(), value, **tolerance)
    ours = run_function(loss.gradient_function(n_outputs), "float64", score, target)
    np.testing.assert_allclose(ours, gradient.reshape(score.shape), **tolerance)


@pytest.mark.parametrize(
    "name, reference",
    [
        ("epsilon_insensitive", _sgd_fast.EpsilonInsensitive(0.5)),
        ("squared_epsilon_insensitive", _sgd_fast.SquaredEpsilonInsensitive(0.5)),
        ("hinge", _sgd_fast.Hinge(1.0)),
        ("perceptron", _sgd_fast.Hinge(0.0)),
        ("label_epsilon_insensitive", _sgd_fast.EpsilonInsensitive(0.5)),
        ("label_squared_epsilon_insensitive", _sgd_fast.SquaredEpsilonInsensitive(0.5)),
        ("squared_hinge", _sgd_fast.SquaredHinge(1.0)),
        ("modified_huber", _sgd_fast.ModifiedHuber()),
    ],
)
def test_kinks_are_as_in_sgd_of_scikit_learn(name, reference, run_function):
    loss = FORMULAS[name][0]
    score, target = (a.reshape(-1, 1) for a in np.meshgrid(GRID, [0.0, 1.0]))
    y = target if name in REGRESSION else 2 * target - 1
    rows = list(zip(score.ravel().tolist(), y.ravel().tolist(), strict=True))
    value = run_function(loss.value_function(1), "float32", score, target).ravel()
    gradient = run_function(loss.gradient_function(1), "float32", score, target).ravel()
    assert value.tolist() == [reference.py_loss(s, t) for s, t in rows]
    assert gradient.tolist() == [reference.py_dloss(s, t) for s, t in rows]


@pytest.mark.parametrize("name", ["absolute_error", "quantile", "elastic"])
def test_the_gradient_of_an_exact_fit_is_zero(name, run_function):
    zeros = run_function(
        FORMULAS[name][0].gradient_function(1), "float32", GRID[:, None], GRID[:, None]
    )
    assert not zeros.any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_log_loss_of_extreme_scores(label, dtype, run_function):
    score = EXTREME[:, None]
    target = np.full_like(score, label)
    exact = np.logaddexp(0, score) - label * score
    value = run_function(objective.LogLoss().value_function(1), dtype, score, target)
    # Half a unit in the last place of log(2) is the absolute error where the loss
    # itself is smaller.
    np.testing.assert_allclose(value, exact, rtol=1e-6, atol=1e-7)
    probability = 1 / (1 + np.exp(-np.clip(score, -700, 700)))
    gradient = run_function(objective.LogLoss().gradient_function(1), dtype, score, target)
    np.testing.assert_allclose(gradient, probability - label, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
def test_multinomial_log_loss_of_extreme_scores(dtype, run_function):
    score = np.stack([EXTREME, -EXTREME, np.zeros_like(EXTREME)], axis=1)
    target = np.tile([1.0, 0.0, 0.0], (len(EXTREME), 1))
    exact = np.logaddexp.reduce(score, axis=1) - score[:, 0]
    value = run_function(objective.LogLoss().value_function(3), dtype, score, target)
    np.testing.assert_allclose(value.ravel(), exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", [n for n in FORMULAS if n not in (*LOG_LINK, "log_loss")])
def test_other_losses_of_extreme_scores_are_exact_too(name, run_function):
    loss, value, *_ = FORMULAS[name]
    score, target = EXTREME[:, None], np.ones((len(EXTREME), 1))
    np.testing.assert_allclose(
        run_function(loss.value_function(1), "float32", score, target),
        value(score, target),
        rtol=1e-6,
    )


@matrix
def test_outputs_are_averaged_in_regression_and_summed_in_classification(name):
    assert FORMULAS[name][0].weight_scale(4) == (0.25 if name in REGRESSION else 1)


def test_tweedie_of_power_0_is_half_the_squared_error_of_the_exponential(rng, run_function):
    loss, (score, target, _) = objective.TweedieLoss(0), data("poisson", 1, rng)
    value = run_function(loss.value_function(1), "float64", score, target)
    np.testing.assert_allclose(
        value, (np.exp(score) - target) ** 2 / 2 - target**2 / 2, rtol=1e-12, atol=1e-12
    )
    gradient = run_function(loss.gradient_function(1), "float64", score, target)
    np.testing.assert_allclose(
        gradient, np.exp(score) * (np.exp(score) - target), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("name", LOG_LINK)
def test_the_inverse_of_the_log_link(name, rng, run_function):
    score = rng.normal(size=(5, 2))
    function = FORMULAS[name][0].inverse_link_function(2)
    np.testing.assert_allclose(run_function(function, "float64", score), np.exp(score), rtol=1e-14)


@pytest.mark.parametrize(
    "name, target, message",
    [
        ("poisson", [[0.0], [-1.0]], r"loss=\"poisson\" needs y >= 0"),
        ("gamma", [[0.0], [1.0]], r"loss=\"gamma\" needs y > 0, .* Use .*TweedieLoss\(power=1.5\)"),
        ("gamma", [[-1.0], [1.0]], r"loss=\"gamma\" needs y > 0, .* Use another loss"),
        ("tweedie 1.0", [[0.0], [-1.0]], r"TweedieLoss\(power=1.0\) needs y >= 0"),
        ("tweedie 1.5", [[0.0], [-1.0]], r"TweedieLoss\(power=1.5\) needs y >= 0"),
        ("tweedie 2.0", [[0.0], [1.0]], r"TweedieLoss\(power=2.0\) needs y > 0"),
        ("tweedie 3.0", [[0.0], [1.0]], r"TweedieLoss\(power=3.0\) needs y > 0"),
    ],
)
def test_targets_out_of_range_are_refused(name, target, message):
    FORMULAS[name][0].check_target(np.array([[0.5, 2.0]]))
    with pytest.raises(ValueError, match=message):
        FORMULAS[name][0].check_target(np.array(target))


@pytest.mark.parametrize(
    "loss, message",
    [
        (
            objective.Quantile(1.0),
            "'quantile' parameter of Quantile must be a float in the range \\(0.0, 1.0\\)",
        ),
        (objective.Quantile(0), "'quantile' parameter of Quantile"),
        (objective.Huber(0), "'epsilon' parameter of Huber must be a float in the range \\(0.0, "),
        (objective.EpsilonInsensitive(-0.1), "'epsilon' parameter of EpsilonInsensitive"),
        (
            objective.SquaredEpsilonInsensitive(np.inf),
            "'epsilon' parameter of SquaredEpsilonInsensitive",
        ),
        (
            objective.LabelHuber(0),
            "'epsilon' parameter of LabelHuber must be a float in the range \\(0.0, ",
        ),
        (objective.LabelEpsilonInsensitive(-0.1), "'epsilon' parameter of LabelEpsilonInsensitive"),
        (objective.TweedieLoss(0.5), "'power' parameter of TweedieLoss"),
        (objective.TweedieLoss(np.inf), "'power' parameter of TweedieLoss"),
        (objective.ElasticLoss(l1_weight=-1), "'l1_weight' parameter of ElasticLoss"),
        (objective.ElasticLoss(l2_weight="1"), "'l2_weight' parameter of ElasticLoss"),
    ],
)
def test_parameters_have_constraints(loss, message):
    with pytest.raises(ValueError, match=message):
        loss._validate_params()


@matrix
def test_clone_and_repr(name):
    loss = FORMULAS[name][0]
    assert clone(loss).get_params() == loss.get_params()
    assert repr(eval(repr(loss), vars(objective))) == repr(loss)


@pytest.mark.parametrize("name", REGRESSION_LOSSES)
def test_y_is_centred_at_its_median_if_the_gradient_is_bounded(name):
    loss, _, gradient, *_ = FORMULAS[name]
    far, farther = (max(abs(gradient(0.0, y)), abs(gradient(0.0, -y))) for y in (1e3, 1e6))
    assert loss.is_robust == bool(farther <= 1.001 * far)


def _changes_by_a_factor(name):
    loss = FORMULAS[name][0]
    return loss.has_units and loss.inverse_link_function(1) is None


@pytest.mark.parametrize("name", filter(_changes_by_a_factor, FORMULAS))
def test_a_loss_of_other_units_differs_by_a_factor(name, run_function):
    loss, scale = FORMULAS[name][0], 70.0
    score, target = np.linspace(-300, 300, 9)[:, None], np.full((9, 1), 2.0)
    inner, unit, _, weight, _ = loss.in_units(scale)
    gradient = run_function(loss.gradient_function(1), "float64", score, target)
    moved = run_function(inner.gradient_function(1), "float64", score / scale, target / scale)
    np.testing.assert_allclose(unit * weight / scale * moved, gradient, rtol=1e-10)


@pytest.mark.parametrize("power", [0, 1, 1.5, 2, 3])
def test_a_tweedie_loss_of_other_units_differs_by_a_factor_and_a_constant(power, run_function):
    """The scores of targets that are divided by a number are smaller by its logarithm."""
    loss, scale = objective.TweedieLoss(power), 7.0
    score, target = np.linspace(-1, 1, 9)[:, None], np.linspace(0.5, 3, 9)[:, None]
    inner, unit, *_ = loss.in_units(scale)
    gradient = run_function(
        loss.gradient_function(1), "float64", score + np.log(scale), scale * target
    )
    moved = run_function(inner.gradient_function(1), "float64", score, target)
    np.testing.assert_allclose(unit * moved, gradient, rtol=1e-10)


def test_epsilon_is_that_of_scikit_learn_by_default():
    epsilon = SGDRegressor().epsilon
    for loss in (
        objective.Huber(),
        objective.EpsilonInsensitive(),
        objective.SquaredEpsilonInsensitive(),
    ):
        assert loss.epsilon == epsilon


def test_the_curvature_of_the_log_loss_of_several_classes():
    """The largest eigenvalue of diag(p) - p p' for any p, which p = (1/2, 1/2, 0) has."""
    p = np.array([0.5, 0.5, 0.0])
    largest = np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[-1]
    assert objective.LogLoss().curvature(3) == pytest.approx(largest) == 0.5


def test_the_curvature_of_an_elastic_loss_is_that_of_its_square():
    assert objective.ElasticLoss(0.2, 0.1).curvature(1) == 0.1
    assert objective.ElasticLoss(0.2, 0.0).curvature(1) is None


def _bends(name):
    return FORMULAS[name][0].curvature_function(1) is not None


def test_the_curvature_is_the_largest_second_derivative():
    """By differences of the gradient."""
    score, known = np.linspace(-3, 3, 6001), set()
    for name, (loss, _, gradient, *_) in FORMULAS.items():
        # `elastic` has a kink, too.
        if (curvature := loss.curvature(1)) is not None and name != "elastic":
            known.add(name)
            targets = (-1.0, 1.0) if "classifier" in loss.estimator_types else (0.5, 2.0)
            slopes = [np.diff(gradient(score, y)).max() / (score[1] - score[0]) for y in targets]
            assert max(slopes) == pytest.approx(curvature, rel=1e-3), name
    assert {
        "squared_error",
        "huber",
        "squared_hinge",
        "modified_huber",
        "log_loss",
        "label_huber",
    } <= known


@pytest.mark.parametrize("name", [name for name in FORMULAS if _bends(name)])
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_the_curvature_of_a_row_is_the_slope_of_its_gradient(name, label, run_function):
    loss = FORMULAS[name][0]
    # No kink of a gradient, at -1, 0 or 1, is within a step.
    score = np.linspace(-2.95, 2.95, 60)[:, None]
    target = np.full_like(score, label)
    step = 1e-5
    gradient = loss.gradient_function(1)
    above, below = (
        run_function(gradient, "float64", score + sign * step, target) for sign in (1, -1)
    )
    found = run_function(loss.curvature_function(1), "float64", score, target)
    np.testing.assert_allclose(found, (above - below) / (2 * step), rtol=1e-6, atol=1e-8)


@matrix
def test_the_page_has_the_formula_that_the_loss_computes(name, run_function, rng):
    # The page aligns some formulas, by "&=".
    text = " ".join(PAGE.read_text().split()).replace("&=", "=")
    loss, value, gradient, *latex = FORMULAS[name]
    missing = [formula for formula in latex if formula.replace("&=", "=") not in text]
    assert missing == []
    assert f"skort.objective.{type(loss).__name__}`" in text
    if name in REGRESSION:
        target = y = rng.gamma(1, size=(50, 1)) if name in LOG_LINK else rng.normal(size=(50, 1))
    else:
        y = rng.choice([-1.0, 1.0], size=(50, 1))
        target = (y + 1) / 2
    score = 2 * rng.normal(size=(50, 1))
    for function, formula in (
        (loss.value_function(1), value),
        (loss.gradient_function(1), gradient),
    ):
        np.testing.assert_allclose(
            run_function(function, "float64", score, target),
            formula(score, y),
            rtol=1e-12,
            atol=1e-12,
        )


def test_the_page_has_every_name_and_every_class():
    text = " ".join(PAGE.read_text().split())
    for name in {*REGRESSION_LOSSES, *CLASSIFICATION_LOSSES}:
        assert f" {name} ~~~" in text, name
    # Of the others, penalties and custom losses, there are pages, too.
    others = {
        name for name in objective.__all__ if "Penalty" not in name and f".{name}`" not in text
    }
    assert others == {"L1", "L2", "Loss", "WeightedSum"}
