"""
A long fit ends at the optimum of scikit-learn's own model:
loss and penalty are those of the model inside.
"""

import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils.class_weight import compute_class_weight

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.data.nesting import model_inside
from skort.model_selection import OrtGridSearchCV
from skort.objective import L2, Huber
from skort.schedules import Cosine, InvScaling

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4)) * [1.0, 2.0, 0.7, 1.0]
SCORE = X @ [1.0, -0.5, 0.0, 0.3] + 0.5
Y = SCORE + 0.5 * RNG.normal(size=150)
POSITIVE = np.exp(0.3 * SCORE) * RNG.gamma(5.0, 0.2, size=150)
TWO, THREE = (Y > 0.5).astype(int), np.digitize(Y, [0.0, 1.0])
WEIGHT = RNG.uniform(0.5, 2.0, 150)

# Least squares, logistic and other smooth losses, with their penalties; targets; tightest options
# of the reference.
SMOOTH = [
    (LinearRegression(), Y),
    (LinearRegression(fit_intercept=False), Y),
    (Ridge(alpha=40.0), Y),
    (Lasso(alpha=0.2, tol=1e-10), Y),
    (ElasticNet(alpha=0.3, l1_ratio=0.4, tol=1e-10), Y),
    (Ridge(alpha=40.0), np.column_stack([Y, SCORE**2])),
    (PoissonRegressor(alpha=0.1, tol=1e-10, max_iter=1000), POSITIVE),
    (GammaRegressor(alpha=0.1, tol=1e-10, max_iter=1000), POSITIVE),
    (TweedieRegressor(power=1.5, alpha=0.1, tol=1e-10, max_iter=1000), POSITIVE),
    (
        LinearSVR(
            C=0.02, loss="squared_epsilon_insensitive", epsilon=0.1, tol=1e-10, max_iter=10**6
        ),
        Y,
    ),
    (LogisticRegression(C=0.1, tol=1e-10, max_iter=1000), TWO),
    (LogisticRegression(C=0.1, tol=1e-10, max_iter=1000), THREE),
    (
        LogisticRegression(
            C=0.1, solver="liblinear", intercept_scaling=0.5, tol=1e-10, max_iter=1000
        ),
        TWO,
    ),
    (
        LogisticRegression(C=0.1, class_weight={0: 1.0, 1: 2.0, 2: 0.5}, tol=1e-10, max_iter=1000),
        THREE,
    ),
    (LinearSVC(C=0.05, tol=1e-10, max_iter=10**6), TWO),
    (LinearSVC(C=0.05, intercept_scaling=2.0, tol=1e-10, max_iter=10**6), THREE),
    (RidgeClassifier(alpha=20.0), TWO),
    (RidgeClassifier(alpha=20.0), THREE),
]


def quietly(call, *args, **kwargs):
    """
    Call without the warnings of training parameters that are not used,
    and of unfinished references.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args, **kwargs)


def long_fit(inner, y, weight=None, **options):
    cls = (
        OrtSGDClassifier
        if hasattr(inner, "decision_function") or y.dtype.kind == "i"
        else OrtSGDRegressor
    )
    defaults = {
        "dtype": "float64",
        "batch_size": len(y),
        "max_iter": 30_000,
        "tol": 1e-13,
        "n_iter_no_change": 5,
    }
    rate = {"eta0": 0.1, "learning_rate": "adaptive", "random_state": 0}
    return quietly(cls(inner, **defaults | rate | options).fit, X, y, sample_weight=weight)


@pytest.mark.parametrize(
    "weight", [None, pytest.param(WEIGHT, marks=pytest.mark.slow)], ids=["equal", "weighted"]
)
@pytest.mark.parametrize(
    "inner, y", SMOOTH, ids=[f"{type(m).__name__}-{i}" for i, (m, _) in enumerate(SMOOTH)]
)
def test_a_long_fit_ends_at_the_optimum_of_a_smooth_loss(inner, y, weight):
    ours = long_fit(inner, y, weight)
    theirs = quietly(clone(inner).fit, X, y, sample_weight=weight)
    scale = np.std(y) / X.std(axis=0) if y is not TWO and y is not THREE else 1 / X.std(axis=0)
    coef, expected = np.atleast_2d(ours.coef_), np.atleast_2d(theirs.coef_)
    assert np.max(np.abs(coef - expected) / scale) < 1e-3
    np.testing.assert_allclose(np.ravel(ours.intercept_), np.ravel(theirs.intercept_), atol=1e-3)


def pinball(score, quantile):
    return np.where(score <= Y, quantile * (Y - score), (1 - quantile) * (score - Y)).mean()


@pytest.mark.parametrize("quantile, alpha", [(0.5, 0.0), (0.9, 0.02), (0.2, 0.1)])
def test_a_quantile_regression_ends_near_its_optimum(quantile, alpha):
    inner = QuantileRegressor(quantile=quantile, alpha=alpha)
    ours = long_fit(inner, Y, eta0=0.5, n_iter_no_change=50)
    theirs = clone(inner).fit(X, Y)
    objective, expected = (
        pinball(m.predict(X), quantile) + alpha * np.abs(m.coef_).sum() for m in (ours, theirs)
    )
    assert objective <= expected * (1 + 1e-3)
    # Of the rows, that part is below.
    assert np.mean(ours.predict(X) >= Y) == pytest.approx(quantile, abs=0.03)


def hinge(model, C, weight=None):
    margin = (2 * TWO - 1) * model.decision_function(X)
    penalized = np.append(model.coef_.ravel(), model.intercept_)
    return C * np.maximum(0, 1 - margin).sum() + 0.5 * penalized @ penalized


def test_a_hinge_ends_near_its_optimum():
    inner = LinearSVC(C=0.05, loss="hinge", tol=1e-10, max_iter=10**6)
    ours, theirs = long_fit(inner, TWO, eta0=0.5, n_iter_no_change=50), clone(inner).fit(X, TWO)
    assert hinge(ours, 0.05) <= hinge(theirs, 0.05) * (1 + 1e-3)


@pytest.mark.parametrize(
    "model",
    [SGDRegressor(alpha=0.1, penalty="elasticnet"), SGDRegressor(loss="huber", epsilon=0.3)],
)
def test_those_of_sgd_are_the_parameters_of_the_same_names(model):
    names = ("loss", "penalty", "alpha", "l1_ratio", "epsilon")
    options = {"max_iter": 5, "tol": None, "random_state": 0}
    inside = quietly(OrtSGDRegressor(model, **options).fit, X, Y)
    outside = OrtSGDRegressor(**{name: getattr(model, name) for name in names}, **options).fit(X, Y)
    np.testing.assert_allclose(inside.coef_, outside.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    "cls, reference, y",
    [(OrtSGDRegressor, MLPRegressor, Y), (OrtSGDClassifier, MLPClassifier, THREE)],
)
def test_full_batch_steps_are_those_of_a_neural_network_with_its_penalty(cls, reference, y):
    network = reference(
        hidden_layer_sizes=(6,),
        alpha=2.0,
        solver="sgd",
        momentum=0.0,
        batch_size=150,
        random_state=0,
    )
    network.set_params(
        learning_rate_init=0.05, max_iter=10, tol=0.0, n_iter_no_change=100, shuffle=False
    )
    options = {
        "optimizer": "sgd",
        "eta0": 0.05,
        "batch_size": 150,
        "max_iter": 10,
        "tol": None,
        "shuffle": False,
    }
    options |= {"learning_rate": "constant", "standardize": False}
    ours = quietly(cls(network, dtype="float64", random_state=0, **options).fit, X, y)
    theirs = quietly(clone(network).fit, X, y)
    for mine, expected in zip(ours.to_sklearn().coefs_, theirs.coefs_, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore:.*alpha of OrtSGDRegressor takes its place")
def test_the_penalty_of_a_network_is_the_same_in_a_short_last_batch():
    options = {"max_iter": 3, "tol": None, "shuffle": False, "random_state": 0, "batch_size": 40}
    inside = OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(6,), alpha=0.8), **options).fit(X, Y)
    network = MLPRegressor(hidden_layer_sizes=(6,), alpha=0.8)
    outside = OrtSGDRegressor(network, penalty="l2", alpha=0.8 / 40, **options).fit(X, Y)
    np.testing.assert_allclose(inside.predict(X), outside.predict(X), rtol=1e-5)


# --- what the user sets


@pytest.mark.filterwarnings("ignore:.*alpha of OrtSGDRegressor takes its place")
@pytest.mark.parametrize(
    "parameters, loss, strength",
    [
        ({}, "squared_error", 10.0 / 150),
        ({"alpha": 0.3}, "squared_error", 0.3),
        ({"penalty": None}, "squared_error", None),
        ({"loss": "huber", "epsilon": 2.0}, "huber", 10.0 / 150),
    ],
)
def test_what_the_user_sets_takes_the_place(parameters, loss, strength):
    options = {"max_iter": 4, "tol": None, "random_state": 0}
    inside = OrtSGDRegressor(Ridge(alpha=10.0), **parameters, **options).fit(X, Y)
    penalty = {"penalty": None} if strength is None else {"penalty": "l2", "alpha": strength}
    epsilon = {"epsilon": parameters["epsilon"]} if "epsilon" in parameters else {}
    outside = OrtSGDRegressor(LinearRegression(), loss=loss, **penalty, **epsilon, **options).fit(
        X, Y
    )
    np.testing.assert_allclose(inside.coef_, outside.coef_, rtol=1e-6)


def test_alpha_alone_is_an_l2_penalty_where_the_model_has_none():
    options = {"max_iter": 4, "tol": None, "random_state": 0}
    alone = OrtSGDRegressor(LinearRegression(), alpha=0.5, **options).fit(X, Y)
    both = OrtSGDRegressor(LinearRegression(), alpha=0.5, penalty="l2", **options).fit(X, Y)
    none = OrtSGDRegressor(LinearRegression(), **options).fit(X, Y)
    np.testing.assert_array_equal(alone.coef_, both.coef_)
    assert (none.coef_ != both.coef_).any()


def test_without_a_model_inside_the_penalty_is_that_of_sgd():
    options = {"max_iter": 4, "tol": None, "random_state": 0, "eta0": 0.01, "standardize": False}
    default, named = (
        OrtSGDRegressor(**options),
        OrtSGDRegressor(penalty="l2", alpha=1e-4, **options),
    )
    np.testing.assert_array_equal(default.fit(X, Y).coef_, named.fit(X, Y).coef_)


def test_methods_follow_the_loss_of_the_model_inside():
    assert hasattr(OrtSGDClassifier(), "predict_proba")
    assert not hasattr(OrtSGDClassifier(LinearSVC()), "predict_proba")
    assert hasattr(
        OrtSGDClassifier(make_pipeline(StandardScaler(), LogisticRegression())), "predict_proba"
    )
    assert hasattr(OrtSGDClassifier(LinearSVC(), loss="log_loss"), "predict_proba")
    model = OrtSGDClassifier(LinearSVC(), max_iter=2, tol=None).fit(X, TWO)
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize("balanced", ["of the model", "of the estimator"])
def test_balanced_classes_are_refused_in_a_stream(balanced):
    inner = LogisticRegression(class_weight="balanced") if balanced == "of the model" else None
    options = {} if inner else {"class_weight": "balanced"}
    with pytest.raises(
        ValueError, match=r"'balanced' is not supported for partial_fit.*class_weight = dict\(zip\("
    ) as raised:
        OrtSGDClassifier(inner, **options).partial_fit(X, TWO, classes=[0, 1])

    # The code of the message runs, and gives the weights of a fit.
    code = re.search(r"class_weight = (dict\(.*\))\. Import", str(raised.value))[1]
    names = {"labels": np.unique(TWO), "y": TWO, "compute_class_weight": compute_class_weight}
    weights = eval(code, names)
    stream = OrtSGDClassifier(inner, class_weight=weights).partial_fit(X, TWO, classes=[0, 1])
    assert stream.plan_.decisions["class weights"].value == weights
    n_ones = np.count_nonzero(TWO)
    assert weights == pytest.approx(
        {0: len(TWO) / 2 / (len(TWO) - n_ones), 1: len(TWO) / 2 / n_ones}
    )


def test_the_strength_of_a_stream_counts_the_rows_so_far_when_they_have_doubled():
    options = {"max_iter": 1, "tol": None, "random_state": 0, "shuffle": False, "eta0": 0.01}
    stream = OrtSGDRegressor(Ridge(alpha=30.0), **options)
    fixed = OrtSGDRegressor(penalty="l2", **options)
    ends = [30, 50, 60, 100, 119, 120, 150]
    counted = [30, 30, 60, 60, 60, 120, 120]
    for begin, end, n_rows in zip([0, *ends], ends, counted, strict=False):
        stream.partial_fit(X[begin:end], Y[begin:end])
        fixed.set_params(alpha=30.0 / n_rows).partial_fit(X[begin:end], Y[begin:end])
        np.testing.assert_allclose(stream.coef_, fixed.coef_, rtol=1e-6)
        assert stream.plan_.decisions["penalty"].value.alpha == pytest.approx(30 / n_rows)


def test_rows_that_wait_and_rows_of_a_fit_count_for_the_strength_of_a_stream():
    def strength(model):
        return model.plan_.decisions["penalty"].value.alpha

    stream = OrtSGDRegressor(Ridge(alpha=30.0), random_state=0)
    for begin, end, n_rows in ((0, 7, 7), (7, 19, 19), (19, 27, 27), (27, 53, 27), (53, 54, 54)):
        assert strength(stream.partial_fit(X[begin:end], Y[begin:end])) == pytest.approx(
            30 / n_rows
        )

    # The weights of a fit count as divided by their mean.
    stream = OrtSGDRegressor(Ridge(alpha=30.0), random_state=0)
    stream.fit(X[:50], Y[:50], sample_weight=np.full(50, 3.0))
    assert strength(stream.partial_fit(X[50:99], Y[50:99])) == pytest.approx(10 / 50)
    assert strength(stream.partial_fit(X[99:100], Y[99:100])) == pytest.approx(10 / 100)


def test_the_rows_of_a_call_do_not_lower_its_own_first_rate():
    stream = OrtSGDRegressor(Ridge(alpha=0.1), random_state=0).fit(X[:50], Y[:50])
    etas = []
    # With the first call, the rows that count for the penalty have doubled.
    for begin, end in ((50, 105), (105, 150)):
        stream.partial_fit(X[begin:end], Y[begin:end])
        etas.append(stream.history_["eta"][-1])

    # The last batches come after 50 + 48 and 105 + 32 rows of four columns.
    expected = np.cbrt((1 + 98 / 4) / (1 + 137 / 4))
    assert etas[1] / etas[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "inner, y",
    [
        (Ridge(alpha=30.0), Y),
        (LogisticRegression(C=0.05), THREE),
        (LinearSVR(C=0.02, loss="squared_epsilon_insensitive"), Y),
        (ElasticNet(alpha=0.2), Y),
        (SGDRegressor(alpha=0.2), Y),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_stream_of_n_total_rows_has_the_penalty_of_one_fit(inner, y):
    """
    Ten calls make the steps of one epoch over all rows in their order;
    a fit divides weights by their mean, 1.2.
    """
    weights = np.tile([0.5, 2.0, 1.1], 50)
    # The strength of scikit-learn's own ElasticNet is for weights of mean one.
    mean = 1.2 if isinstance(inner, ElasticNet) else 1.0
    cls = OrtSGDClassifier if y is THREE else OrtSGDRegressor
    options = {"tol": None, "eta0": 0.01, "learning_rate": "constant", "random_state": 0}
    options |= {"max_iter": 1, "shuffle": False, "batch_size": 15, "standardize": False}
    classes = {"classes": [0, 1, 2]} if y is THREE else {}
    fitted = cls(inner, **{**options, "eta0": 0.012 / mean}).fit(X, y, weights)
    stream, short = cls(inner, n_total=150, **options), cls(inner, **options)
    for rows in np.split(np.arange(150), 10):
        stream.partial_fit(X[rows], y[rows], sample_weight=weights[rows] / mean, **classes)
        short.partial_fit(X[rows], y[rows], sample_weight=weights[rows] / mean, **classes)
    np.testing.assert_allclose(stream.coef_, fitted.coef_, rtol=1e-5)
    np.testing.assert_allclose(stream.intercept_, fitted.intercept_, rtol=1e-5, atol=1e-7)
    is_by_sum = not isinstance(inner, (ElasticNet, SGDRegressor))
    assert np.allclose(short.coef_, fitted.coef_, rtol=1e-3) != is_by_sum


def test_n_total_may_come_or_change_later():
    options = {
        "tol": None,
        "eta0": 0.01,
        "learning_rate": "constant",
        "random_state": 0,
        "shuffle": False,
    }
    stream = OrtSGDRegressor(Ridge(alpha=30.0), n_total=1000, **options).partial_fit(X, Y)
    fixed = OrtSGDRegressor(penalty="l2", alpha=30.0 / 1000, **options).partial_fit(X, Y)
    np.testing.assert_allclose(stream.coef_, fixed.coef_, rtol=1e-6)
    for n_total, alpha in ((300, 30.0 / 300), (None, 30.0 / 450)):
        stream.set_params(n_total=n_total).partial_fit(X, Y)
        fixed.set_params(alpha=alpha).partial_fit(X, Y)
        np.testing.assert_allclose(stream.coef_, fixed.coef_, rtol=1e-6)
    with pytest.raises(
        ValueError, match="'n_total' parameter of OrtSGDRegressor must be an int in the range"
    ):
        OrtSGDRegressor(Ridge(), n_total=0).fit(X, Y)


# --- what is said about it


def test_training_parameters_that_are_not_used_are_named_once():
    inner = LogisticRegression(C=0.5, max_iter=7, tol=1e-3)
    with pytest.warns(
        UserWarning, match=r"LogisticRegression are not used: .*max_iter \(set max_iter of OrtSGDCl"
    ) as caught:
        OrtSGDClassifier(inner, max_iter=3, tol=None).fit(X, TWO)
    assert len(caught) == 1
    assert " C (" not in str(caught[0].message)


@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant prediction")
@pytest.mark.parametrize(
    ("inner", "given"),
    [
        (MLPClassifier((4,), random_state=3), {}),
        (MLPClassifier((4,), random_state=3, solver="lbfgs", max_iter=200), {}),
        (SGDClassifier(random_state=3), {"optimizer": "sgd"}),
        (LogisticRegression(random_state=0), {"eta0": 0.1}),
    ],
)
def test_a_seed_inside_is_said_to_be_unused_where_there_is_none_on_the_estimator(inner, given):
    model = OrtSGDClassifier(inner, max_iter=3, tol=None, **given)
    kind = type(inner).__name__
    with pytest.warns(
        UserWarning,
        match=rf"^estimator: These parameters of {kind} are not used: random_state \(set "
        r"random_state of OrtSGDClassifier\)\.$",
    ):
        model.fit(X, TWO)
    # Warnings are errors.
    model.set_params(random_state=3).fit(X, TWO)


@pytest.mark.parametrize("inner", [LogisticRegression(random_state=3), Ridge(random_state=3)])
def test_a_seed_inside_a_model_whose_optimum_needs_none_is_not_named(inner):
    # Warnings are errors.
    kind = OrtSGDRegressor if isinstance(inner, Ridge) else OrtSGDClassifier
    first, second = (kind(inner).fit(X, TWO).coef_ for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    "model, sentence", [(BayesianRidge(), "BayesianRidge is trained as a LinearRegression")]
)
def test_a_model_without_an_objective_is_said_to_be_trained_as_another(model, sentence):
    with pytest.warns(UserWarning, match=sentence):
        OrtSGDRegressor(model, max_iter=3, tol=None).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OrtSGDRegressor(model, loss="squared_error", penalty=None, max_iter=3, tol=None).fit(X, Y)


@pytest.mark.parametrize("model, y", [(LassoCV(), Y), (LogisticRegressionCV(), TWO)])
def test_a_model_that_searches_its_own_penalty_is_refused_with_the_cure(model, y):
    cls = OrtSGDRegressor if y is Y else OrtSGDClassifier
    with pytest.raises(ValueError, match=r"search over estimator__(alpha|C) with GridSearchCV"):
        cls(model).fit(X, y)


def test_a_fitted_search_brings_the_penalty_that_it_chose():
    fitted = LassoCV(alphas=[0.3]).fit(X, Y)
    ours = long_fit(FrozenEstimator(fitted), Y)
    np.testing.assert_allclose(ours.coef_, Lasso(alpha=0.3, tol=1e-10).fit(X, Y).coef_, atol=1e-3)


@pytest.mark.parametrize(
    "inner, grid, y",
    [
        (LogisticRegression(), {"estimator__C": [1e-4, 1e-2, 1.0]}, TWO),
        (Ridge(), {"estimator__alpha": [1.0, 300.0, 3e4]}, Y),
        (QuantileRegressor(alpha=0.0), {"estimator__quantile": [0.05, 0.5, 0.8]}, Y),
    ],
)
def test_a_search_over_the_inner_parameter_ranks_as_scikit_learn_does(inner, grid, y):
    cls = OrtSGDClassifier if y is TWO else OrtSGDRegressor
    scoring = "neg_log_loss" if y is TWO else "r2"
    ours = GridSearchCV(
        cls(inner, max_iter=300, eta0=0.1, tol=None, random_state=0), grid, cv=3, scoring=scoring
    )
    theirs = GridSearchCV(
        inner,
        {name.removeprefix("estimator__"): v for name, v in grid.items()},
        cv=3,
        scoring=scoring,
    )
    ranks = [search.fit(X, y).cv_results_["rank_test_score"].tolist() for search in (ours, theirs)]
    assert ranks[0] == ranks[1]


# --- what has no effect, or another one than it seems


def at_a_tenth(_):
    return 0.1


def _without_first(parameters):
    """Return all parameters but the first one."""
    return dict(list(parameters.items())[1:])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("unused", "cure"),
    [
        (
            {"alpha": 3, "penalty": L2(alpha=0.1)},
            "alpha=3 has no effect: penalty=L2 has its own alpha. Set penalty=L2(..., alpha=3), or "
            "penalty__alpha in a search.",
        ),
        (
            {"epsilon": 0.2, "loss": Huber()},
            "epsilon=0.2 has no effect: loss=Huber has its own epsilon. Set loss=Huber(..., "
            "epsilon=0.2), or loss__epsilon in a search.",
        ),
        (
            {"power_t": 0.5, "learning_rate": InvScaling(power_t=0.3)},
            "power_t=0.5 has no effect: learning_rate=InvScaling has its own power_t. Set "
            "learning_rate=InvScaling(..., power_t=0.5), or learning_rate__power_t in a search.",
        ),
    ],
)
def test_a_number_beside_a_part_with_its_own_leads_to_that_part(unused, cure):
    model = OrtSGDRegressor(random_state=0, **unused)
    with pytest.warns(UserWarning) as warned:
        model.fit(X, Y)
    assert cure in [str(each.message) for each in warned]
    same = OrtSGDRegressor(random_state=0, **_without_first(unused)).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, same.coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("inside", "unused", "part", "takers"),
    [
        (None, {"alpha": 0.1, "penalty": None}, "None", '"l1", "l2" or "elasticnet"'),
        (Lasso(), {"l1_ratio": 0.5}, "'auto'", '"elasticnet"'),
        (None, {"quantile": 0.9}, "'auto'", '"quantile"'),
        (None, {"power_t": 0.5}, "'auto'", '"invscaling"'),
        (None, {"power_t": 0.5, "learning_rate": Cosine(50)}, "Cosine", '"invscaling"'),
        (None, {"power_t": 0.5, "learning_rate": at_a_tenth}, "at_a_tenth", '"invscaling"'),
    ],
)
def test_a_number_that_no_part_takes_is_said_and_changes_nothing(inside, unused, part, takers):
    name = next(iter(unused))
    of = {"quantile": "loss", "power_t": "learning_rate"}.get(name, "penalty")
    model = OrtSGDRegressor(inside, random_state=0, **unused)
    message = (
        f"{name}={unused[name]:g} has no effect: {of}={part} does not take it. Set {of}={takers}"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}"):
        model.fit(X, Y)
    same = OrtSGDRegressor(inside, random_state=0, **_without_first(unused)).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, same.coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("inside", "used"),
    [
        (None, {"alpha": 0.1}),
        (None, {"alpha": 0.0, "penalty": None}),
        # The schedule takes it.
        (None, {"alpha": 0.1, "penalty": None, "learning_rate": "optimal"}),
        (ElasticNet(), {"l1_ratio": 0.5}),
        (Ridge(), {"alpha": 0.1}),
        (None, {"quantile": 0.9, "loss": "quantile"}),
        (None, {"l1_ratio": 0.5, "penalty": "l1"}),
        (HuberRegressor(), {"epsilon": 1.5}),
        (None, {"power_t": 0.5, "learning_rate": "invscaling"}),
        (None, {"power_t": 0.5, "learning_rate": "constant"}),
        (None, {"power_t": 0.25}),
    ],
)
def test_a_number_that_a_part_takes_or_a_name_leaves_out_is_not_said(inside, used, recwarn):
    OrtSGDRegressor(inside, random_state=0, **used).fit(X, Y)
    assert not any("no effect" in str(each.message) for each in recwarn)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_average_that_begins_after_the_last_update_is_said(recwarn):
    settings = {"max_iter": 5, "batch_size": len(X) // 2, "tol": None, "random_state": 0}
    last = OrtSGDRegressor(**settings).fit(X, Y)
    late = OrtSGDRegressor(average=11, **settings).fit(X, Y)
    assert [str(each.message)[:63] for each in recwarn] == [
        "average=11 has no effect: the fit made 10 updates, and the aver"
    ]
    np.testing.assert_array_equal(late.coef_, last.coef_)

    # In a stream, a later call may make the update.
    OrtSGDRegressor(average=10, **settings).fit(X, Y)
    OrtSGDRegressor(average=10**6, random_state=0).partial_fit(X, Y)
    assert len(recwarn) == 1


@pytest.mark.parametrize("call", ["fit", "partial_fit", "fit_batches"])
def test_a_scoring_that_scores_nothing_is_said(call):
    model = OrtSGDRegressor(scoring="r2", max_iter=2, tol=None)
    why = (
        "partial_fit scores nothing"
        if call == "partial_fit"
        else "there is no validation set. Give fit X_val"
    )
    with pytest.warns(UserWarning, match=f"scoring='r2' has no effect: {why}") as w:
        getattr(model, call)(*([[(X, Y)]] if call == "fit_batches" else [X, Y]))
    assert len(w) == 1 and w[0].filename == __file__


def test_a_scoring_that_scores_is_not_said(recwarn):
    model = OrtSGDRegressor(scoring="r2", max_iter=2, tol=None)
    model.fit(X, Y, X_val=X[:50], y_val=Y[:50])
    model.set_params(early_stopping=True).fit(X, Y)
    assert not recwarn


@pytest.mark.parametrize(
    ("inside", "y", "alpha", "theirs", "same"),
    [
        # That of a network is divided by the rows of a batch, others by all rows, or by them and C.
        (MLPClassifier((10,)), TWO, 5.0, "estimator__alpha=5", "0.0333"),
        (MLPRegressor(hidden_layer_sizes=(10,)), Y, 5.0, "estimator__alpha=5", "0.0333"),
        (Ridge(), Y, 300.0, "estimator__alpha=300", "2"),
        (make_pipeline(StandardScaler(), Ridge()), Y, 300.0, "estimator__ridge__alpha=300", "2"),
        (LogisticRegression(), TWO, 50.0, "estimator__C=0.02", "0.333"),
    ],
)
def test_an_alpha_in_other_units_that_leaves_a_constant_is_said(inside, y, alpha, theirs, same):
    cls = OrtSGDRegressor if y is Y else OrtSGDClassifier
    path = theirs.partition("=")[0]
    message = (
        r"near a constant prediction: its loss is .*, that of the best constant .*\. "
        rf"alpha={alpha:g} of {cls.__name__} is in other units than {path}: {theirs} is the same "
        rf"as alpha={same}\. Lower alpha, or set "
    )
    with pytest.warns(ConvergenceWarning, match=message):
        cls(inside, alpha=alpha, random_state=0).fit(X, y)


def test_an_alpha_in_other_units_is_said_of_a_given_rate_too():
    model = OrtSGDClassifier(MLPClassifier((10,)), alpha=5.0, eta0=0.01, random_state=0)
    same = r"alpha=5 of .* estimator__alpha=5 is the same as alpha=0.0333\. Lower alpha, or set"
    with pytest.warns(ConvergenceWarning, match=same):
        model.fit(X, TWO)
    # Here the rate is the cause: without it, this alpha leaves more than a constant.
    model.set_params(alpha=0.03, eta0=1e-7)
    with pytest.warns(ConvergenceWarning, match="not clearly better than a constant"):
        model.fit(X, TWO)


@pytest.mark.parametrize("inside", [None, Lasso(), SGDRegressor()])
def test_an_alpha_in_the_same_units_is_not_explained(inside):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        OrtSGDRegressor(inside, alpha=300.0, random_state=0).fit(X, Y)
    assert not any("other units" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("inside", [MLPClassifier((10,)), LogisticRegression()])
def test_an_alpha_that_leaves_more_than_a_constant_is_left_alone(inside, recwarn):
    model = OrtSGDClassifier(inside, alpha=0.03, random_state=0).fit(X, TWO)
    assert model.score(X, TWO) > 0.85
    assert not recwarn


REPLACED = {
    "network": (MLPClassifier((4,), alpha=100.0), "alpha"),
    "linear": (LogisticRegression(C=3.0), "C"),
    "steps": (make_pipeline(StandardScaler(), RidgeClassifier(alpha=3.0)), "alpha"),
}


@pytest.mark.parametrize("inside, name", REPLACED.values(), ids=REPLACED)
def test_a_strength_inside_that_alpha_replaces_is_named(inside, name):
    plain = clone(inside).set_params(
        **{key: {"alpha": 1.0, "C": 1.0}[name] for key in inside.get_params() if key.endswith(name)}
    )
    options = {"max_iter": 3, "tol": None, "random_state": 0}
    kind = type(model_inside(inside)).__name__
    with pytest.warns(
        UserWarning,
        match=f"of {kind} are not used: {name} .alpha of OrtSGDClassifier takes its place.",
    ):
        model = OrtSGDClassifier(inside, alpha=0.01, **options).fit(X, TWO)
    with warnings.catch_warnings():
        # A network's default is another number.
        warnings.simplefilter("ignore")
        same = OrtSGDClassifier(plain, alpha=0.01, **options).fit(X, TWO)
    for weight, other in zip(model.weights_.values(), same.weights_.values(), strict=True):
        np.testing.assert_array_equal(weight, other)


@pytest.mark.parametrize("inside", [MLPClassifier((4,)), LogisticRegression(), None])
def test_a_strength_inside_that_its_user_has_not_set_is_not_named(inside):
    # Warnings are errors.
    OrtSGDClassifier(inside, alpha=0.01, max_iter=3, tol=None, random_state=0).fit(X, TWO)


def test_a_search_counts_the_strengths_that_alpha_replaces():
    model = OrtSGDClassifier(LogisticRegression(), max_iter=3, tol=None, random_state=0)
    search = OrtGridSearchCV(model, {"alpha": [0.1, 0.2], "estimator__C": [2.0, 3.0]}, cv=2)
    with pytest.warns(UserWarning, match="takes its place") as caught:
        search.set_params(refit=False).fit(X, TWO)
    assert [str(each.message)[:8] for each in caught] == ["8 fits: "]
    # The strengths inside have no effect.
    scores = search.cv_results_["mean_test_score"].reshape(2, 2)
    np.testing.assert_array_equal(scores[:, 0], scores[:, 1])


# scikit-learn has the l1 penalty with this solver, or with liblinear.
IS_RATIO = LogisticRegression().penalty == "deprecated"
LOGISTIC_L1 = LogisticRegression(
    C=0.5, solver="saga", **{"l1_ratio": 1} if IS_RATIO else {"penalty": "l1"}
)


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(C=0.1, solver="newton-cg"), LOGISTIC_L1, RidgeClassifier(solver="lsqr")],
    ids=str,
)
def test_the_solver_of_a_linear_model_inside_is_not_said_to_be_left_out(model):
    # Warnings are errors. The optimum is the same with any.
    ours = OrtSGDClassifier(model, random_state=0).fit(X, TWO)
    theirs = clone(model).set_params(tol=1e-6, max_iter=10_000).fit(X, TWO)
    np.testing.assert_allclose(ours.coef_.ravel(), theirs.coef_.ravel(), rtol=1e-2, atol=1e-3)


@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant prediction")
def test_the_training_of_a_network_inside_is_said_to_be_left_out():
    network = MLPClassifier((4,), solver="sgd", learning_rate_init=0.3, momentum=0.5)
    message = (
        r"MLPClassifier are not used: solver \(set optimizer of OrtSGDClassifier\), "
        r"learning_rate_init \(set eta0 of OrtSGDClassifier\), momentum \(set optimizer"
    )
    for inside in (network, make_pipeline(StandardScaler(), network)):
        with pytest.warns(UserWarning, match=message):
            OrtSGDClassifier(inside, max_iter=2).fit(X, TWO)


@pytest.mark.parametrize(
    "inner, reason",
    [
        (None, "it is the default"),
        (Ridge(), "the model inside has it"),
        (LinearRegression(), "the model inside has none"),
    ],
)
def test_the_plan_says_whose_the_penalty_is(inner, reason):
    assert OrtSGDRegressor(inner).fit(X, Y).plan_.decisions["penalty"].because == reason
