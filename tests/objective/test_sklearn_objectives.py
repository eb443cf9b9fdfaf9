"""
What skort knows of the objectives of scikit-learn's models;
test_own_optima.py shows that it is so.
"""

import contextlib
import warnings

import numpy as np
import onnx
import pytest
from sklearn import linear_model
from sklearn.cross_decomposition import CCA, PLSRegression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    ElasticNet,
    ElasticNetCV,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LassoCV,
    LassoLarsIC,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskElasticNet,
    MultiTaskLasso,
    MultiTaskLassoCV,
    Perceptron,
    PoissonRegressor,
    QuantileRegressor,
    RANSACRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
    TheilSenRegressor,
    TweedieRegressor,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import LinearSVC, LinearSVR

from skort.graphs.initialization import FAMILY
from skort.objective.penalties import Strength
from skort.objective.sklearn_objectives import SEARCHES, SklearnObjective, sklearn_objective

WEIGHTS = {0: 1.0, 1: 2.5}
# The penalty of a LogisticRegression is said by l1_ratio and C from scikit-learn 1.8 on.
HAS_PENALTY = LogisticRegression().penalty != "deprecated"
PASSIVE_AGGRESSIVE = [
    vars(linear_model)[name]
    for name in ("PassiveAggressiveClassifier", "PassiveAggressiveRegressor")
    if name in vars(linear_model)
]


def data(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X @ rng.normal(size=(4, 2)) + rng.normal(size=(60, 2))
    return X, {"two outputs": y, "two classes": (y[:, 0] > 0).astype(int)}.get(
        kind, (y > 0).sum(axis=1)
    )


def name_of(model_type):
    return model_type.__name__


@contextlib.contextmanager
def ignored_deprecation():
    """Ignore what scikit-learn says of its own future."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


@pytest.mark.parametrize(
    "model_type", sorted(set(FAMILY) - set(SEARCHES), key=name_of), ids=name_of
)
def test_every_model_that_is_trained_has_an_objective_or_a_sentence(model_type):
    with ignored_deprecation():
        own = sklearn_objective(model_type())
    assert own.unused == {}
    if own.loss is None:
        assert own.penalty is None
        assert own.trained_as.startswith(f"{model_type.__name__} is trained as a L")
    else:
        own.loss._validate_params()


@pytest.mark.parametrize("is_classifier", [False, True])
def test_none_has_the_penalty_of_stochastic_gradient_descent(is_classifier):
    own = sklearn_objective(None, is_classifier=is_classifier)
    assert (own.loss, own.penalty, own.alpha, own.alpha_per, own.sums_outputs) == (
        None,
        "l2",
        1e-4,
        "mean",
        False,
    )


@pytest.mark.parametrize(
    "model, is_classifier, sentence",
    [
        (
            TheilSenRegressor(),
            False,
            "TheilSenRegressor is trained as a LinearRegression: squared error, no penalty.",
        ),
        (
            PLSRegression(),
            False,
            "PLSRegression is trained as a LinearRegression: squared error, no penalty.",
        ),
        (CCA(), False, "CCA is trained as a LinearRegression: squared error, no penalty."),
        (
            LinearDiscriminantAnalysis(),
            False,
            "LinearDiscriminantAnalysis is trained as a LogisticRegression: log-loss, no penalty.",
        ),
        (
            onnx.ModelProto(),
            False,
            "An ONNX model is trained as a LinearRegression: squared error, no penalty.",
        ),
        (
            onnx.ModelProto(),
            True,
            "An ONNX model is trained as a LogisticRegression: log-loss, no penalty.",
        ),
        (
            RANSACRegressor(),
            False,
            "RANSACRegressor is trained as the LinearRegression inside it, on all rows.",
        ),
        (
            RANSACRegressor(TheilSenRegressor()),
            False,
            "RANSACRegressor is trained as the TheilSenRegressor inside it, on all rows. "
            "TheilSenRegressor is trained as a LinearRegression: squared error, no penalty.",
        ),
        (
            MultiTaskLasso(),
            False,
            "MultiTaskLasso is trained as Lasso: each weight has its own l1 term, not all weights "
            "of a feature together.",
        ),
        (
            LinearSVC(multi_class="crammer_singer"),
            False,
            (
                "LinearSVC(multi_class='crammer_singer') is trained as with multi_class='ovr' "
                "and loss='hinge'."
            ),
        ),
        (
            TweedieRegressor(power=1.5, link="identity"),
            False,
            (
                "TweedieRegressor(power=1.5, link='identity') is trained as with "
                "power=0: squared error."
            ),
        ),
    ],
)
def test_what_is_trained_in_the_place_of_others(model, is_classifier, sentence):
    assert sklearn_objective(model, is_classifier=is_classifier).trained_as == sentence


@pytest.mark.parametrize(
    "model, penalty, alpha, l1_ratio, alpha_per, flags",
    [
        (LinearRegression(), None, 0.0, 0.0, "mean", {"sums_outputs"}),
        (Ridge(alpha=2.0), "l2", 2.0, 0.0, "sum", {"sums_outputs"}),
        (RidgeClassifier(alpha=2.0), "l2", 2.0, 0.0, "sum", {"balances_rows", "weighs_rows"}),
        (Lasso(alpha=0.3), "l1", 0.3, 1.0, "mean", {"sums_outputs"}),
        (LogisticRegression(C=0.5), "l2", 2.0, 0.0, "sum", set()),
        (LinearSVC(C=0.5), "l2", 2.0, 0.0, "sum", {"penalizes_intercept"}),
        (LinearSVC(C=0.5, penalty="l1"), "l1", 2.0, 1.0, "sum", {"penalizes_intercept"}),
        (LinearSVR(C=0.5), "l2", 2.0, 0.0, "sum", {"penalizes_intercept", "sums_outputs"}),
        (SGDClassifier(alpha=0.2), "l2", 0.2, 0.0, "sample_weight", {"balances_rows"}),
        (SGDRegressor(alpha=0.2, penalty="l1"), "l1", 0.2, 1.0, "sample_weight", {"sums_outputs"}),
        (QuantileRegressor(alpha=0.3), "l1", 0.3, 1.0, "mean", {"sums_outputs"}),
        (PoissonRegressor(alpha=0.3), "l2", 0.3, 0.0, "mean", {"sums_outputs"}),
        (GammaRegressor(alpha=0.3), "l2", 0.3, 0.0, "mean", {"sums_outputs"}),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_the_numbers_of_an_objective(model, penalty, alpha, l1_ratio, alpha_per, flags):
    own = sklearn_objective(model)
    assert (own.penalty, own.alpha, own.l1_ratio, own.alpha_per) == (
        penalty,
        alpha,
        l1_ratio,
        alpha_per,
    )
    names = {"penalizes_intercept", "sums_outputs", "balances_rows"}
    found = {name for name in names if getattr(own, name)}
    assert found | (set() if own.weighs_positives else {"weighs_rows"}) == flags


@pytest.mark.parametrize("penalty, l1_ratio", [("l1", 1.0), ("l2", 0.0)])
def test_the_numbers_of_liblinear(penalty, l1_ratio):
    own = sklearn_objective(
        LogisticRegression(C=0.5, penalty=penalty, solver="liblinear", intercept_scaling=3.0)
    )
    assert (own.penalty, own.alpha, own.l1_ratio, own.intercept_scaling) == (
        penalty,
        2.0,
        l1_ratio,
        3.0,
    )
    assert own.penalizes_intercept


def test_objectives_without_an_optimum_to_compare_with():
    perceptron = sklearn_objective(
        Perceptron(penalty="elasticnet", alpha=0.2, l1_ratio=0.4, class_weight=WEIGHTS)
    )
    assert repr(perceptron.loss) == "PerceptronLoss()"
    assert (perceptron.penalty, perceptron.alpha, perceptron.l1_ratio) == ("elasticnet", 0.2, 0.4)
    assert perceptron.alpha_per == "sample_weight" and perceptron.class_weight == WEIGHTS
    assert sklearn_objective(Perceptron()).penalty is None
    huber = sklearn_objective(HuberRegressor(epsilon=1.2, alpha=3.0))
    assert repr(huber.loss) == "ConcomitantHuber(epsilon=1.2)" and huber.trained_as is None
    assert (huber.l1_ratio, huber.skort_alpha(10, 1, 5, 1)) == (0.0, 0.6)
    multi = sklearn_objective(MultiTaskElasticNet(alpha=0.3, l1_ratio=0.25))
    assert (multi.penalty, multi.alpha, multi.l1_ratio, multi.sums_outputs) == (
        "elasticnet",
        0.3,
        0.25,
        True,
    )
    inside = sklearn_objective(RANSACRegressor(Ridge(alpha=3, tol=1)))
    assert (inside.penalty, inside.alpha, inside.unused) == ("l2", 3.0, {"tol": "tol"})


@pytest.mark.parametrize("model_type", PASSIVE_AGGRESSIVE, ids=name_of)
@pytest.mark.parametrize("squared", [False, True])
def test_passive_aggressive_models_have_their_loss_and_no_penalty(model_type, squared):
    is_classifier = model_type.__name__.endswith("Classifier")
    with ignored_deprecation():
        loss = "squared_" * squared + ("hinge" if is_classifier else "epsilon_insensitive")
        own = sklearn_objective(
            model_type(loss=loss, C=0.5, **({} if is_classifier else {"epsilon": 0.3}))
        )
    names = (
        ["Hinge()", "SquaredHinge()"]
        if is_classifier
        else [
            "EpsilonInsensitive(epsilon=0.3)",
            "SquaredEpsilonInsensitive(epsilon=0.3)",
        ]
    )
    assert repr(own.loss) == names[squared]
    assert (own.penalty, own.alpha, own.unused) == (None, 0.0, {"C": "eta0"})


# --- models that choose their own penalty


@pytest.mark.parametrize("model_type", SEARCHES, ids=name_of)
def test_a_search_that_is_not_fitted_is_refused_in_words(model_type):
    parameter = "C" if model_type is LogisticRegressionCV else "alpha"
    plain = model_type.__name__.removesuffix("CV").removesuffix("IC")
    message = (
        f"{model_type.__name__} chooses {parameter} in its own fit.* Give {plain}, .* "
        f"estimator__{parameter} "
    )
    with pytest.raises(ValueError, match=message):
        sklearn_objective(model_type())


@pytest.mark.parametrize(
    "search, plain",
    [
        (RidgeCV(alphas=[3.0]), Ridge(alpha=3.0)),
        (
            RidgeClassifierCV(alphas=[3.0], class_weight=WEIGHTS),
            RidgeClassifier(alpha=3.0, class_weight=WEIGHTS),
        ),
        (LassoCV(alphas=[0.3]), Lasso(alpha=0.3)),
        (ElasticNetCV(alphas=[0.3], l1_ratio=[0.25]), ElasticNet(alpha=0.3, l1_ratio=0.25)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_fitted_search_has_the_objective_that_it_chose(search, plain):
    X, y = data("two classes")
    assert repr(sklearn_objective(search.fit(X, y))) == repr(sklearn_objective(plain))


def test_fitted_searches_of_several_outputs():
    X, y = data("two outputs")
    own = sklearn_objective(RidgeCV(alphas=[1.0, 100.0], alpha_per_target=True).fit(X, y))
    assert own.alpha.shape == (2,) and set(own.alpha) <= {1.0, 100.0}
    multi = sklearn_objective(MultiTaskLassoCV(alphas=[0.2]).fit(X, y))
    assert (multi.penalty, multi.alpha) == ("l1", 0.2)
    assert multi.trained_as.startswith("MultiTaskLasso is trained as Lasso")
    lars = LassoLarsIC().fit(X, y[:, 0])
    assert (sklearn_objective(lars).penalty, sklearn_objective(lars).alpha) == ("l1", lars.alpha_)


@pytest.mark.parametrize("kind", ["two classes", "three classes"])
@pytest.mark.parametrize("l1_ratio, penalty", [(0.0, "l2"), (1.0, "l1"), (0.25, "elasticnet")])
def test_a_fitted_logistic_search_has_the_penalty_that_it_chose(kind, l1_ratio, penalty):
    X, y = data(kind)
    ratios = {"l1_ratios": (l1_ratio,)}
    if HAS_PENALTY:
        ratios = {"penalty": penalty, "l1_ratios": (l1_ratio,) if penalty == "elasticnet" else None}
    with ignored_deprecation():
        search = LogisticRegressionCV(
            Cs=[0.1], solver="saga", scoring="accuracy", cv=2, tol=0.1, **ratios
        ).fit(X, y)
    own = sklearn_objective(search)
    assert (own.penalty, own.alpha, own.l1_ratio, own.alpha_per) == (penalty, 10.0, l1_ratio, "sum")
    assert own.trained_as is None


def test_each_class_may_have_a_C_of_its_own():
    own = sklearn_objective(LogisticRegression(C=np.array([0.1, 0.1, 0.5])))
    np.testing.assert_allclose(own.skort_alpha(10, 1, 5, 3), [1, 1, 0.2])


# --- what cannot be trained, and what has no effect


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(positive=True),
        Ridge(positive=True),
        Lasso(positive=True),
        RidgeClassifier(positive=True),
    ],
)
def test_positive_weights_are_refused_in_words(model):
    with pytest.raises(
        ValueError,
        match=rf"{type(model).__name__}\(positive=True\): gradient descent does not keep",
    ):
        sklearn_objective(model)


@pytest.mark.parametrize(
    "model, unused",
    [
        (Ridge(alpha=3, solver="lsqr", fit_intercept=False), {}),
        (
            Lasso(alpha=0.1, max_iter=5, selection="random"),
            {"max_iter": "max_iter", "selection": "shuffle"},
        ),
        (LogisticRegression(solver="liblinear", C=3), {}),
        (LinearSVC(dual=True, max_iter=3), {"max_iter": "max_iter"}),
        (
            SGDClassifier("huber", epsilon=3, alpha=3, eta0=0.5, average=True, early_stopping=True),
            {"eta0": "eta0", "average": "average", "early_stopping": "early_stopping"},
        ),
        (Perceptron(eta0=0.1, n_jobs=2), {"eta0": "eta0", "n_jobs": "n_jobs"}),
        (QuantileRegressor(quantile=0.9, solver="highs-ds", solver_options={"tol": 1e-3}), {}),
        (HuberRegressor(epsilon=2, warm_start=True), {"warm_start": "warm_start"}),
        (
            MLPClassifier(
                (3,),
                "tanh",
                alpha=1,
                solver="sgd",
                learning_rate_init=0.1,
                momentum=0.5,
                epsilon=1e-3,
            ),
            {
                "solver": "optimizer",
                "learning_rate_init": "eta0",
                "momentum": "optimizer",
                "epsilon": "optimizer",
            },
        ),
        (
            MLPRegressor(batch_size=10, power_t=0.3),
            {"batch_size": "batch_size", "power_t": "power_t"},
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_training_parameters_without_effect_are_named(model, unused):
    assert sklearn_objective(model).unused == unused


def test_a_model_is_not_changed():
    model = LogisticRegression(class_weight=WEIGHTS)
    before = repr(model)
    assert sklearn_objective(model).class_weight == WEIGHTS
    assert repr(model) == before


@pytest.mark.parametrize(
    "per, expected", [("mean", 0.5), ("sum", 0.5 / 300), ("sample_weight", 0.25), ("batch", 0.025)]
)
@pytest.mark.parametrize("sums_outputs", [False, True])
def test_strengths(per, expected, sums_outputs):
    own = SklearnObjective(None, "elasticnet", 0.5, 0.25, per, True, 2.0, sums_outputs)
    alpha = expected / 3 if sums_outputs else expected
    assert own.skort_alpha(
        weight_sum=300, mean_weight=2, batch_size=10, n_outputs=3
    ) == pytest.approx(alpha)
    assert own.of_intercepts(Strength(alpha / 4, alpha * 3 / 4)) == pytest.approx(
        (alpha / 8, alpha * 3 / 16)
    )


@pytest.mark.parametrize(("solver", "per"), [("lbfgs", "sum"), ("sgd", "batch"), ("adam", "batch")])
@pytest.mark.parametrize("model_type", [MLPRegressor, MLPClassifier])
def test_alpha_of_a_network_counts_as_its_solver_does(model_type, solver, per):
    own = sklearn_objective(model_type(solver=solver, alpha=0.25))
    assert (own.penalty, own.alpha, own.alpha_per) == ("l2", 0.25, per)
