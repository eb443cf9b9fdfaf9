"""
The formulas of the pages: their LaTeX is on the page,
and what it says is what the objects compute.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from sklearn import linear_model, neural_network, svm

from skort import objective
from skort.objective.loss import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from skort.objective.sklearn_objectives import OBJECTIVES, sklearn_objective

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture
def evaluated(monkeypatch):
    """The function that computes what the pictures show."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(DOCS)])
    from figures.losses import evaluated

    return evaluated


def page(name):
    """Return a page with one space for all white space between words."""
    return " ".join((DOCS / name).read_text().split())


def test_the_formula_of_several_classes_is_what_the_log_loss_computes(run_function, rng):
    assert r"loss &= -\sum_k t_k \log p_k" in page("losses.rst")
    s, t = rng.normal(size=(20, 3)), np.eye(3)[rng.integers(0, 3, 20)]
    p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    loss = objective.LogLoss()
    value = run_function(loss.value_function(3), np.float64, s, t)
    np.testing.assert_allclose(value, -(t * np.log(p)).sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(
        run_function(loss.gradient_function(3), np.float64, s, t), p - t, atol=1e-12
    )


def test_the_formula_of_the_concomitant_huber_is_what_it_computes(evaluated, rng):
    text = page("losses.rst")
    assert r"loss &= \sigma + \sigma H(z) z &= \frac{s - y}{\sigma}" in text
    assert (
        r"\begin{cases} z^2 & |z| \le \epsilon \\ 2 \epsilon |z| - \epsilon^2 & |z| > \epsilon"
        in text
    )
    assert r"\frac{\partial loss}{\partial s} &= 2 c" in text
    assert r"c &= \max(-\epsilon, \min(z, \epsilon))" in text
    s, y, sigma, epsilon = *rng.normal(size=(2, 30)), np.full(30, 0.5), 1.35
    z = (s - y) / sigma
    curve = np.where(abs(z) <= epsilon, z**2, 2 * epsilon * abs(z) - epsilon**2)
    loss = objective.ConcomitantHuber(epsilon)
    np.testing.assert_allclose(
        evaluated(loss.value_function(1), s, y, sigma), sigma + sigma * curve, rtol=1e-12
    )
    c = np.maximum(-epsilon, np.minimum(z, epsilon))
    np.testing.assert_allclose(evaluated(loss.gradient_function(1), s, y, sigma), 2 * c, atol=1e-12)


# What the score of least mean loss is, for one column of numbers.
PREDICTED = {
    "squared_error": (objective.SquaredError(), np.mean),
    "absolute_error": (objective.AbsoluteError(), np.median),
    "huber, large": (objective.Huber(100), np.mean),
    "huber, small": (objective.Huber(1e-3), np.median),
    "epsilon_insensitive, small": (objective.EpsilonInsensitive(1e-3), np.median),
    "squared_epsilon_insensitive, small": (objective.SquaredEpsilonInsensitive(1e-3), np.mean),
    "quantile": (objective.Quantile(0.9), lambda y: np.quantile(y, 0.9)),
    "poisson": (objective.PoissonLoss(), lambda y: np.log(y.mean())),
    "gamma": (objective.GammaLoss(), lambda y: np.log(y.mean())),
    "tweedie": (objective.TweedieLoss(1.5), lambda y: np.log(y.mean())),
}


@pytest.mark.parametrize("name", PREDICTED)
def test_a_loss_is_least_at_what_the_page_says_that_it_predicts(name, evaluated, rng):
    loss, predicted = PREDICTED[name]
    y, scores = rng.gamma(2, size=301), np.linspace(-1, 5, 1201)
    values = evaluated(loss.value_function(1), np.repeat(scores, 301), np.tile(y, 1201)).reshape(
        1201, 301
    )
    assert scores[values.mean(axis=1).argmin()] == pytest.approx(predicted(y), abs=0.02)


@pytest.mark.parametrize("share", [0.2, 0.7])
def test_scores_of_classes_are_least_at_the_probability(share, evaluated):
    """Of the losses with `predict_proba`: (s + 1) / 2, or the sigmoid of s."""
    scores = np.linspace(-3, 3, 2401)
    for loss, probability in (
        (objective.ModifiedHuber(), (scores + 1) / 2),
        (objective.LogLoss(), expit(scores)),
    ):
        one, zero = (
            evaluated(loss.value_function(1), scores, np.full(2401, t)) for t in (1.0, 0.0)
        )
        best = (share * one + (1 - share) * zero).argmin()
        assert probability[best] == pytest.approx(share, abs=0.002)


def rows_of(text, title):
    """Return the rows of the first table of a section: the names in back ticks of each cell."""
    section = (
        text.partition(f"\n{title}\n")[2].partition("\n.. list-table::")[2].partition("\n\n\n")[0]
    )
    section = re.split(r"\n\n(?=\S)", section)[0] + "\n\n"
    rows = re.findall(
        r"^    \* - (.*?)\n      - (.*?)(?=\n    \* -|\n\n)", section, re.MULTILINE | re.DOTALL
    )
    return [[re.findall(r"`([^`]+)`", cell) for cell in row] for row in rows]


def test_a_model_inside_has_the_loss_that_the_page_says():
    table = rows_of((DOCS / "losses.rst").read_text(), "The loss of a model inside")
    of_models = {name: losses for names, losses in table for name in names if name != "None"}
    models = {type.__name__: type for type in OBJECTIVES}
    # scikit-learn 1.10 has no PassiveAggressive* any more.
    assert models.keys() == {name for name in of_models if name in models or "Passive" not in name}
    names = {
        **REGRESSION_LOSSES,
        **CLASSIFICATION_LOSSES,
        "squared_error of labels": objective.LabelSquaredError,
    }
    names |= {name: getattr(objective, name) for name in ("ConcomitantHuber", "TweedieLoss")}
    names |= {
        name: REGRESSION_LOSSES[name] for name in ("squared_error", "huber", "epsilon_insensitive")
    }
    for name, losses in ((name, of_models[name]) for name in models):
        given = [names[loss] for loss in losses if loss in names]
        if given:
            assert type(sklearn_objective(models[name]()).loss) in given, name
    one_against_rest = sklearn_objective(linear_model.LogisticRegression(solver="liblinear")).loss
    assert isinstance(one_against_rest, objective.OneVsRestLogLoss)
    identity = sklearn_objective(linear_model.TweedieRegressor(power=0, link="identity"))
    assert isinstance(identity.loss, objective.SquaredError)
    squared = sklearn_objective(svm.LinearSVR(loss="squared_epsilon_insensitive")).loss
    assert isinstance(squared, objective.SquaredEpsilonInsensitive)
    assert isinstance(sklearn_objective(svm.LinearSVC(loss="hinge")).loss, objective.Hinge)
    assert isinstance(sklearn_objective(neural_network.MLPClassifier()).loss, objective.LogLoss)


STRENGTHS = {
    r":math:`alpha / n`": [linear_model.Ridge, linear_model.RidgeClassifier],
    r":math:`alpha`": [
        *(
            linear_model.Lasso,
            linear_model.LassoLars,
            linear_model.ElasticNet,
            linear_model.SGDRegressor,
        ),
        *(linear_model.SGDClassifier, linear_model.Perceptron, linear_model.QuantileRegressor),
        *(
            linear_model.PoissonRegressor,
            linear_model.GammaRegressor,
            linear_model.TweedieRegressor,
        ),
    ],
    r":math:`1 / (C n)`": [linear_model.LogisticRegression, svm.LinearSVC, svm.LinearSVR],
    r":math:`2 \, alpha / n`": [linear_model.HuberRegressor],
    r":math:`alpha / B`": [neural_network.MLPRegressor, neural_network.MLPClassifier],
}


@pytest.mark.parametrize("latex", STRENGTHS)
def test_the_alpha_of_a_model_inside_is_what_the_page_says(latex):
    n, batch_size = 1000.0, 50
    formula = {
        ":math:`alpha / n`": lambda a: a / n,
        ":math:`alpha`": lambda a: a,
        ":math:`1 / (C n)`": lambda a: 1 / (a * n),
    }
    formula |= {
        r":math:`2 \, alpha / n`": lambda a: 2 * a / n,
        ":math:`alpha / B`": lambda a: a / batch_size,
    }
    text = (DOCS / "objective.rst").read_text()
    rows = [row for row in text.split("\n    * - ") if latex in row]
    for model_type in STRENGTHS[latex]:
        assert any(f"`{model_type.__name__}(" in row for row in rows), model_type
        name = "C" if "C" in latex else "alpha"
        model = model_type(**{name: 0.25})
        if model_type is linear_model.Perceptron:
            model.set_params(penalty="l2")
        assert sklearn_objective(model).skort_alpha(n, 1.0, batch_size, 1) == pytest.approx(
            formula[latex](0.25), rel=1e-12
        )


def test_weights_and_outputs_change_the_alpha_as_the_page_says():
    text = page("objective.rst")
    assert r"with `solver=\"lbfgs\"` :math:`alpha / n`".replace("\\", "") in text
    lbfgs = sklearn_objective(neural_network.MLPRegressor(alpha=3.0, solver="lbfgs"))
    assert lbfgs.skort_alpha(100.0, 1.0, 50, 1) == pytest.approx(0.03)
    for model, expected in (
        (linear_model.SGDRegressor(alpha=3.0), 1.5),
        (neural_network.MLPRegressor(alpha=3.0), 0.03),
    ):
        assert sklearn_objective(model).skort_alpha(200.0, 2.0, 50, 1) == pytest.approx(expected)
    assert sklearn_objective(linear_model.Ridge(alpha=3.0)).skort_alpha(
        100.0, 1.0, 50, 3
    ) == pytest.approx(0.01)
    svr = sklearn_objective(svm.LinearSVR(C=2.0, intercept_scaling=5.0))
    alpha = svr.skort_alpha(100.0, 1.0, 50, 1)
    assert (alpha, svr.of_intercepts(objective.penalties.Strength(0, alpha)).l2) == pytest.approx(
        (0.005, 0.005 / 25)
    )


@pytest.mark.parametrize("name", objective.penalties.PENALTIES)
def test_a_penalty_is_the_formula_of_its_page(name, rng):
    formulas = {
        "l2": r"\frac{\alpha}{2} \sum_j w_j^2",
        "l1": r"\alpha \sum_j |w_j|",
        "elasticnet": r"\alpha (\rho \sum_j |w_j| + \frac{1 - \rho}{2} \sum_j w_j^2)",
    }
    penalty, rho = (
        objective.penalties.PENALTIES[name](alpha=0.5),
        {"l1": 1.0, "l2": 0.0, "elasticnet": 0.15}[name],
    )
    text = page("objective.rst")
    assert f":math:`{formulas[name]}`" in text
    assert f'`"{name}"`, :class:`~skort.objective.{type(penalty).__name__}`' in text
    assert penalty.strengths(("coef",))["coef"] == pytest.approx((0.5 * rho, 0.5 * (1 - rho)))
