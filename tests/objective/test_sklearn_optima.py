"""
What scikit-learn's models minimise: each model is fitted by scikit-learn,
and its weights are a minimum of skort's J.

A minimum of a convex J is where a subgradient is zero. The smallest one is found by bounded least
squares: rows at a kink of the loss may have any slope between those on both sides, weights at zero
any sign of the l1 term.
"""

import inspect

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from sklearn.base import clone
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LassoLars,
    LinearRegression,
    LogisticRegression,
    MultiTaskElasticNet,
    MultiTaskLasso,
    Perceptron,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import has_fit_parameter

from skort import objective
from skort.common.onnx_text import function_model
from skort.objective.penalties import Strength
from skort.objective.sklearn_objectives import OBJECTIVES, SEARCHES, sklearn_objective
from skort.runtime.installed import load

# tests/estimators/planning/test_loss_and_penalty.py samples the same objectives by long fits.
pytestmark = pytest.mark.slow

N, P = 120, 5
# The penalty of a LogisticRegression is said by l1_ratio and C from scikit-learn 1.8 on.
HAS_PENALTY = LogisticRegression().penalty != "deprecated"


HAS_WEIGHTED_BALANCE = "sample_weight" in inspect.signature(compute_class_weight).parameters


def run(source, score, target):
    model = function_model(source, "float64", {"score": score.shape, "target": target.shape})
    session = load().InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"score": score, "target": target})[0]


def data(kind):
    """Return X, y and sample weights whose mean is not one."""
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(N, P)), rng.uniform(0.5, 3, size=N)
    linear = 0.5 + X @ np.array([1.0, -0.5, 0.25, 0.1, 0.0])
    noise = rng.normal(size=N)
    if kind == "two outputs":
        return X, np.stack([linear + 0.3 * noise, 1 - linear + rng.normal(size=N)], axis=1), weight
    if kind == "counts":
        return X, rng.poisson(np.exp(0.5 * linear)).astype(float), weight
    if kind == "positive":
        return X, rng.gamma(2, np.exp(0.5 * linear)), weight
    if kind == "two classes":
        return X, (linear + noise > 0.8).astype(int), weight
    if kind == "three classes":
        return X, (linear + noise > 0.2).astype(int) + (X[:, 1] + noise > 1), weight
    return X, linear + noise, weight


def row_weights(own, y, weight, classes):
    """
    Return the weights of rows, or of each row in each column,
    and those whose sum and mean are S and mean(s).
    """
    if own.class_weight is None:
        return weight[:, None], weight
    # Until scikit-learn 1.6, "balanced" counts rows in all models.
    counted = {} if own.balances_rows or not HAS_WEIGHTED_BALANCE else {"sample_weight": weight}
    by_class = compute_class_weight(own.class_weight, classes=classes, y=y, **counted)
    if own.weighs_positives and own.loss.one_against_rest and len(classes) > 2:
        return weight[:, None] * np.where(y[:, None] == classes, by_class, 1.0), weight
    rows = weight * by_class[np.searchsorted(classes, y)]
    return rows[:, None], rows


def slopes(loss, score, target):
    """
    Return the derivatives of the loss by the score, just below and just above it;
    the same but at kinks.
    """
    gradient = loss.gradient_function(score.shape[1])
    at = run(gradient, score, target)
    if isinstance(loss, objective.LogLoss):
        return at, at
    below, above = run(gradient, score - 1e-4, target), run(gradient, score + 1e-4, target)
    is_kink = above - below > 0.05
    return np.where(is_kink, below, at), np.where(is_kink, above, at)


def smallest_subgradient(own, coef, intercept, case, fit_intercept=True, batch_size=1, factor=1.0):
    """
    Return the norm of the smallest subgradient of J at some weights;
    `factor` makes the penalty stronger.
    """
    X, target, weight, total = case
    score = X @ coef.T + intercept
    n_outputs = score.shape[1]
    alpha = own.skort_alpha(total.sum(), total.mean(), batch_size, n_outputs)
    coefficients = Strength(alpha * own.l1_ratio, alpha * (1 - own.l1_ratio))
    intercepts = own.of_intercepts(coefficients) if own.penalizes_intercept else (0.0, 0.0)
    l1, l2 = (np.broadcast_to(factor * np.asarray(s), n_outputs) for s in coefficients)
    bias_l1, bias_l2 = (np.broadcast_to(factor * np.asarray(s), n_outputs) for s in intercepts)
    below, above = slopes(own.loss, score, target)
    v = own.loss.weight_scale(n_outputs) * np.broadcast_to(weight, score.shape) / total.sum()
    rows = np.hstack([X, np.full((N, 1), float(fit_intercept))])
    squares = 0.0
    for k in range(n_outputs):
        w = np.append(coef[k], intercept[k])
        ridge, lasso = (
            np.append(np.full(P, l2[k]), bias_l2[k]),
            np.append(np.full(P, l1[k]), bias_l1[k]),
        )
        fixed = rows.T @ (v[:, k] * below[:, k]) + ridge * w + lasso * np.sign(w)
        kinks, zeros = (
            np.flatnonzero(above[:, k] > below[:, k]),
            np.flatnonzero((w == 0) & (lasso > 0)),
        )
        jumps = (v[kinks, k] * (above - below)[kinks, k])[:, None] * rows[kinks]
        free = np.hstack([jumps.T, np.diag(lasso)[:, zeros]])
        bounds = np.append(np.zeros(len(kinks)), -np.ones(len(zeros))), np.ones(free.shape[1])
        best = lsq_linear(free, -fixed, bounds, tol=1e-12).fun if free.shape[1] else fixed
        squares += (best**2).sum()
    return np.sqrt(squares)


def case_of(model, kind, batch_size=1):
    """Fit the model; return its objective, its weights, and the data as skort has them."""
    X, y, weight = data(kind)
    weight = weight if has_fit_parameter(model, "sample_weight") else np.ones(N)
    own = sklearn_objective(model)
    fitted = clone(model).fit(
        X, y, **({"sample_weight": weight} if has_fit_parameter(model, "sample_weight") else {})
    )
    classes = getattr(fitted, "classes_", None)
    weight, total = row_weights(own, y, weight, classes)
    if classes is not None:
        target = (y == classes[1])[:, None] if len(classes) == 2 else y[:, None] == classes
    else:
        target = y.reshape(N, -1)
    coef = np.atleast_2d(fitted.coef_)
    intercept = np.broadcast_to(np.ravel(fitted.intercept_), len(coef))
    return own, coef, intercept, (X, target.astype(float), weight, total)


def logistic(l1_ratio=0.0, **options):
    if HAS_PENALTY:
        name = {0.0: "l2", 1.0: "l1"}.get(l1_ratio, "elasticnet")
        options |= {"penalty": name, "l1_ratio": l1_ratio if name == "elasticnet" else None}
    else:
        options |= {"l1_ratio": l1_ratio}
    return LogisticRegression(
        **{"C": 0.1, "tol": 1e-10, "max_iter": 100_000, "random_state": 0, **options}
    )


def svc(**options):
    return LinearSVC(
        **{"C": 0.05, "tol": 1e-9, "max_iter": 1_000_000, "random_state": 0, **options}
    )


def svr(**options):
    return LinearSVR(
        **{"C": 0.05, "tol": 1e-9, "max_iter": 1_000_000, "random_state": 0, **options}
    )


LASSO = {"tol": 1e-12, "max_iter": 100_000}
GLM = {"tol": 1e-9, "max_iter": 10_000}
WEIGHTS = {0: 1.0, 1: 2.5}
THREE = {**WEIGHTS, 2: 0.7}
EXACT = {
    "LinearRegression": (LinearRegression(), "one output"),
    "LinearRegression of two outputs": (LinearRegression(), "two outputs"),
    "LinearRegression without intercept": (LinearRegression(fit_intercept=False), "one output"),
    "Ridge": (Ridge(alpha=30), "one output"),
    "Ridge of two outputs": (Ridge(alpha=30), "two outputs"),
    "Ridge, one alpha an output": (Ridge(alpha=np.array([10.0, 80.0])), "two outputs"),
    "RidgeClassifier": (RidgeClassifier(alpha=30), "two classes"),
    "RidgeClassifier, class_weight": (
        RidgeClassifier(alpha=30, class_weight=WEIGHTS),
        "two classes",
    ),
    "RidgeClassifier, three classes": (
        RidgeClassifier(alpha=30, class_weight=THREE),
        "three classes",
    ),
    "RidgeClassifier, balanced": (
        RidgeClassifier(alpha=30, class_weight="balanced"),
        "three classes",
    ),
    "Lasso": (Lasso(alpha=0.2, **LASSO), "one output"),
    "Lasso of two outputs": (Lasso(alpha=0.2, **LASSO), "two outputs"),
    "LassoLars": (LassoLars(alpha=0.2), "one output"),
    "LassoLars of two outputs": (LassoLars(alpha=0.2), "two outputs"),
    "ElasticNet": (ElasticNet(alpha=0.2, l1_ratio=0.7, **LASSO), "one output"),
    "ElasticNet of two outputs": (ElasticNet(alpha=0.2, l1_ratio=0.7, **LASSO), "two outputs"),
    "LogisticRegression": (logistic(), "two classes"),
    "LogisticRegression, class_weight": (logistic(class_weight=WEIGHTS), "two classes"),
    "LogisticRegression, three classes": (logistic(class_weight=THREE), "three classes"),
    "LogisticRegression, balanced": (logistic(class_weight="balanced"), "three classes"),
    "LogisticRegression, C=inf": (logistic(C=np.inf), "two classes"),
    "LogisticRegression, l1": (logistic(1.0, solver="saga"), "two classes"),
    "LogisticRegression, l1, three classes": (logistic(1.0, solver="saga"), "three classes"),
    "LogisticRegression, elasticnet": (logistic(0.5, solver="saga"), "two classes"),
    "liblinear": (logistic(solver="liblinear"), "two classes"),
    "liblinear, intercept_scaling": (
        logistic(solver="liblinear", intercept_scaling=2.5),
        "two classes",
    ),
    "liblinear, class_weight": (logistic(solver="liblinear", class_weight=WEIGHTS), "two classes"),
    "liblinear, l1": (logistic(1.0, solver="liblinear", intercept_scaling=2.5), "two classes"),
    "liblinear without intercept": (
        logistic(solver="liblinear", fit_intercept=False),
        "two classes",
    ),
    "LinearSVC": (svc(), "two classes"),
    "LinearSVC, class_weight": (svc(class_weight=WEIGHTS), "two classes"),
    "LinearSVC, three classes": (svc(intercept_scaling=3), "three classes"),
    "LinearSVC, three classes, class_weight": (svc(class_weight=THREE), "three classes"),
    "LinearSVC, balanced": (svc(class_weight="balanced"), "three classes"),
    "LinearSVC, l1": (svc(penalty="l1", dual=False, C=0.1), "two classes"),
    "LinearSVC, hinge": (svc(loss="hinge"), "two classes"),
    "LinearSVC, hinge, three classes": (svc(loss="hinge", class_weight=THREE), "three classes"),
    "LinearSVR": (svr(epsilon=0.0), "one output"),
    "LinearSVR, epsilon": (svr(epsilon=0.3, intercept_scaling=0.5), "one output"),
    "LinearSVR, squared": (svr(loss="squared_epsilon_insensitive", epsilon=0.3), "one output"),
    "QuantileRegressor": (QuantileRegressor(alpha=0.02), "one output"),
    "QuantileRegressor, 0.9": (QuantileRegressor(quantile=0.9, alpha=0.02), "one output"),
    "PoissonRegressor": (PoissonRegressor(alpha=0.5, **GLM), "counts"),
    "GammaRegressor": (GammaRegressor(alpha=0.5, **GLM), "positive"),
    "TweedieRegressor, 0": (TweedieRegressor(power=0, alpha=0.5, **GLM), "one output"),
    "TweedieRegressor, 0, log": (
        TweedieRegressor(power=0, alpha=0.5, link="log", **GLM),
        "positive",
    ),
    "TweedieRegressor, 1": (TweedieRegressor(power=1, alpha=0.5, **GLM), "counts"),
    "TweedieRegressor, 1.5": (TweedieRegressor(power=1.5, alpha=0.5, **GLM), "counts"),
    "TweedieRegressor, 2": (TweedieRegressor(power=2, alpha=0.5, **GLM), "positive"),
    "TweedieRegressor, 3": (TweedieRegressor(power=3, alpha=0.5, **GLM), "positive"),
}

if HAS_PENALTY:  # since scikit-learn 1.8, liblinear's LogisticRegression takes two classes only
    LIBLINEAR = {"solver": "liblinear", "intercept_scaling": 2.5}
    EXACT |= {
        "liblinear, three classes": (logistic(**LIBLINEAR), "three classes"),
        "liblinear, three classes, class_weight": (
            logistic(class_weight=THREE, **LIBLINEAR),
            "three classes",
        ),
        "liblinear, three classes, l1": (
            logistic(1.0, class_weight="balanced", **LIBLINEAR),
            "three classes",
        ),
    }


def relative_subgradient(model, kind, factor=1.0):
    own, coef, intercept, case = case_of(model, kind)
    at_zero = smallest_subgradient(own, 0 * coef, 0 * intercept, case, model.fit_intercept)
    return (
        smallest_subgradient(own, coef, intercept, case, model.fit_intercept, factor=factor)
        / at_zero
    )


# scikit-learn 1.8.0 warns for C=inf as for penalty=None.
@pytest.mark.filterwarnings("ignore:Setting penalty=None will ignore")
@pytest.mark.parametrize("name", EXACT)
def test_weights_of_scikit_learn_minimise_the_objective(name):
    model, kind = EXACT[name]
    assert sklearn_objective(model).trained_as is None
    assert relative_subgradient(model, kind) < 1e-4
    if sklearn_objective(model).penalty is not None:
        assert relative_subgradient(model, kind, factor=1.1) > 1e-3  # the test can tell


# Stochastic gradient descent comes only near its minimum, with the smallest steps in the end.
DESCENT = {
    "learning_rate": "adaptive",
    "eta0": 0.05,
    "tol": 1e-9,
    "n_iter_no_change": 50,
    "max_iter": 20_000,
}
DESCENT |= {"random_state": 0, "alpha": 0.1}
DESCENTS = {
    "SGDRegressor": (SGDRegressor(**DESCENT), "one output"),
    "SGDRegressor, huber, elasticnet": (
        SGDRegressor("huber", penalty="elasticnet", epsilon=0.5, l1_ratio=0.3, **DESCENT),
        "one output",
    ),
    "SGDRegressor, epsilon": (
        SGDRegressor("epsilon_insensitive", epsilon=0.4, **DESCENT),
        "one output",
    ),
    "SGDRegressor, squared epsilon": (
        SGDRegressor("squared_epsilon_insensitive", **DESCENT),
        "one output",
    ),
    "SGDClassifier": (SGDClassifier(**DESCENT), "two classes"),
    "SGDClassifier, class_weight": (
        SGDClassifier("log_loss", class_weight=WEIGHTS, **DESCENT),
        "two classes",
    ),
    "SGDClassifier, three classes": (
        SGDClassifier("modified_huber", class_weight=THREE, **DESCENT),
        "three classes",
    ),
    "SGDClassifier, log-loss, three classes": (
        SGDClassifier("log_loss", **DESCENT),
        "three classes",
    ),
    "SGDClassifier, balanced": (
        SGDClassifier("log_loss", class_weight="balanced", **DESCENT),
        "three classes",
    ),
    "SGDClassifier, l1": (SGDClassifier("squared_hinge", penalty="l1", **DESCENT), "two classes"),
    "SGDClassifier, squared_error": (SGDClassifier("squared_error", **DESCENT), "two classes"),
    "SGDClassifier, huber": (SGDClassifier("huber", epsilon=0.7, **DESCENT), "three classes"),
    "SGDClassifier, epsilon": (
        SGDClassifier("epsilon_insensitive", epsilon=0.4, **DESCENT),
        "two classes",
    ),
    "SGDClassifier, squared epsilon": (
        SGDClassifier("squared_epsilon_insensitive", **DESCENT),
        "two classes",
    ),
}


@pytest.mark.parametrize("name", DESCENTS)
def test_stochastic_gradient_descent_of_scikit_learn_ends_near_the_minimum(name):
    model, kind = DESCENTS[name]
    own = relative_subgradient(model, kind)
    assert own < 6e-3
    assert relative_subgradient(model, kind, factor=1.5) > 5 * own  # the test can tell


# --- neural networks

HIDDEN = {"hidden_layer_sizes": (4,), "activation": "tanh", "alpha": 5.0, "random_state": 0}
SGD_STEP = {"solver": "sgd", "momentum": 0, "learning_rate_init": 0.01, "batch_size": N, **HIDDEN}
# from scikit-learn 1.7 on, as sample weights
HAS_LOSS = "loss" in inspect.signature(MLPRegressor).parameters
LBFGS = {"solver": "lbfgs", "tol": 1e-9, "max_iter": 5000, "max_fun": 20_000, **HIDDEN}


def network_gradient(model, own, X, target, weight):
    """
    Return the gradient of J by the weights of each layer,
    of a network with one hidden layer of tanh.
    """
    (first, last), (first_intercept, last_intercept) = model.coefs_, model.intercepts_
    hidden = np.tanh(X @ first + first_intercept)
    score = hidden @ last + last_intercept
    n_outputs = score.shape[1]
    alpha = own.skort_alpha(weight.sum(), weight.mean(), N, n_outputs)
    assert own.l1_ratio == 0
    v = own.loss.weight_scale(n_outputs) * weight[:, None] / weight.sum()
    delta = v * run(own.loss.gradient_function(n_outputs), score, target)
    hidden_delta = delta @ last.T * (1 - hidden**2)
    by_coefs = [X.T @ hidden_delta + alpha * first, hidden.T @ delta + alpha * last]
    return [*by_coefs, hidden_delta.sum(axis=0), delta.sum(axis=0)]


def weights_of(network):
    return [np.copy(weight) for weight in (*network.coefs_, *network.intercepts_)]


NETWORKS = {
    "MLPRegressor": (MLPRegressor, {}, "one output"),
    "MLPRegressor of two outputs": (MLPRegressor, {}, "two outputs"),
    "MLPRegressor, poisson": (MLPRegressor, {"loss": "poisson"}, "counts"),
    "MLPClassifier": (MLPClassifier, {}, "two classes"),
    "MLPClassifier, three classes": (MLPClassifier, {}, "three classes"),
}


def network_case(name, training):
    network, options, kind = NETWORKS[name]
    if options and not HAS_LOSS:
        pytest.skip("MLPRegressor has no loss before scikit-learn 1.7")
    X, y, weight = data(kind)
    target = (
        y.reshape(N, -1) if "classes" not in kind else (y[:, None] == np.unique(y)).astype(float)
    )
    target = target[:, 1:] if kind == "two classes" else target
    weight = weight if HAS_LOSS else np.ones(N)
    return (
        network(**options, **training),
        X,
        y,
        target,
        weight,
        {"sample_weight": weight} if HAS_LOSS else {},
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_gradient_of_the_objective_is_the_step_of_scikit_learns_networks(name):
    model, X, y, target, weight, options = network_case(name, SGD_STEP)
    classes = {"classes": np.unique(y)} if isinstance(model, MLPClassifier) else {}
    own = sklearn_objective(model)
    model.partial_fit(X, y, **classes, **options)
    before, gradient = weights_of(model), network_gradient(model, own, X, target, weight)
    model.partial_fit(X, y, **options)
    # The step along the sum over the outputs is so many times that along their mean.
    factor = target.shape[1] if own.sums_outputs else 1
    for old, new, by_weight in zip(before, weights_of(model), gradient, strict=True):
        np.testing.assert_allclose((old - new) / 0.01, factor * by_weight, rtol=1e-9, atol=1e-12)


# Not of two outputs: there scikit-learn's loss is their mean and its gradient that of their sum,
# which stops L-BFGS.
@pytest.mark.parametrize("name", [name for name in NETWORKS if "two outputs" not in name])
def test_networks_that_scikit_learn_trains_by_lbfgs_are_stationary(name):
    model, X, y, target, weight, options = network_case(name, LBFGS)
    own = sklearn_objective(model)
    assert own.alpha_per == "sum"
    model.fit(X, y, **options)
    first = (
        clone(model)
        .set_params(solver="sgd", learning_rate_init=1e-12)
        .partial_fit(
            X, y, **({"classes": np.unique(y)} if isinstance(model, MLPClassifier) else {})
        )
    )
    size = [
        np.sqrt(sum((g**2).sum() for g in network_gradient(m, own, X, target, weight)))
        for m in (model, first)
    ]
    assert size[0] < 1e-3 * size[1]


def test_every_family_is_proved_above():
    proved = {type(model) for model, _ in (*EXACT.values(), *DESCENTS.values())} | {
        network for network, *_ in NETWORKS.values()
    }
    passive_aggressive = [
        model for model in OBJECTIVES if model.__name__.startswith("PassiveAggressive")
    ]
    proved.add(HuberRegressor)  # in test_concomitant_huber.py: its loss has a weight of its own
    no_optimum = {MultiTaskLasso, MultiTaskElasticNet, Perceptron, *passive_aggressive}
    assert set(OBJECTIVES) == proved | no_optimum
    assert not set(SEARCHES) & set(OBJECTIVES)
