"""Every loss and penalty from end to end: optima, closed forms, both solvers, what is refused."""

import doctest
import inspect
import pickle

import numpy as np
import onnx.printer
import pytest
from own_losses import Cauchy
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    SGDClassifier,
)
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import scale
from solver_traits import derives_given

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.exceptions import NotTrainableError
from skort.objective import (
    L1,
    L2,
    ElasticLoss,
    ElasticPenalty,
    Hinge,
    Huber,
    LogLoss,
    Loss,
    PoissonLoss,
    Quantile,
    SquaredError,
)
from skort.objective.loss import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from skort.optim.optimizers import Adam
from skort.solvers import available_solvers

REGRESSION = {**{name: name for name in REGRESSION_LOSSES}, "elastic": ElasticLoss()}
LOSSES = [(OrtSGDRegressor, loss) for loss in REGRESSION.values()]
LOSSES += [(OrtSGDClassifier, name) for name in CLASSIFICATION_LOSSES]
SQUARE = """\
half_square (score, target) => (loss) {
    half = Constant <value = float {0.5}> ()
    residual = Sub (score, target)
    square = Mul (residual, residual)
    loss = Mul (half, square)
}"""
SQUARE_GRADIENT = "residual (score, target) => (gradient) { gradient = Sub (score, target) }"
WEIGHTED_SQUARE = """\
half_square (score, target, weight) => (loss) {
    half = Constant <value = float {0.5}> ()
    residual = Sub (score, target)
    square = Mul (residual, residual)
    half_square = Mul (half, square)
    loss = Mul (half_square, weight)
}"""
# log(1 + exp(s)) - t s
LOG_LOSS = """\
log_loss (score, target) => (loss) {
    normaliser = Softplus (score)
    linear = Mul (score, target)
    loss = Sub (normaliser, linear)
}"""


STEPS = {"standardize": False, "learning_rate": "constant", "eta0": 0.01}


def data(estimator_class, n_outputs, n=100):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    if estimator_class is OrtSGDRegressor:
        y = np.exp(
            X @ rng.normal(0, 0.3, size=(4, n_outputs)) + 0.1 * rng.normal(size=(n, n_outputs))
        )
        return X, y.ravel() if n_outputs == 1 else y
    classes = (X[:, 0] > 0).astype(int)
    return X, classes + (X[:, 1] > 0.5) * (n_outputs > 1)


def weights(estimator):
    return np.concatenate([weight.ravel() for weight in estimator.weights_.values()])


# --- all solvers, K binary problems


@pytest.mark.skipif(len(available_solvers()) < 2, reason="this runtime has one solver only")
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("estimator_class, loss", LOSSES, ids=[str(loss) for _, loss in LOSSES])
def test_all_solvers_agree_after_100_steps(estimator_class, loss, n_outputs, hidden, rng):
    X, y = data(estimator_class, n_outputs)
    inner = {OrtSGDRegressor: MLPRegressor, OrtSGDClassifier: MLPClassifier}[estimator_class]
    model = estimator_class(
        inner(hidden_layer_sizes=(6,), activation="tanh") if hidden else None,
        **{
            "loss": loss,
            "batch_size": 10,
            "max_iter": 10,
            "tol": None,
            "eta0": 0.05,
            "random_state": 0,
        },
        optimizer="sgd",
    )
    sample_weight = rng.uniform(0.5, 2, len(X))
    first, *others = (
        clone(model).set_params(solver=solver).fit(X, y, sample_weight=sample_weight)
        for solver in available_solvers()
    )
    assert first.t_ == 100
    for other in others:
        np.testing.assert_allclose(first.loss_curve_, other.loss_curve_, rtol=1e-5)
        assert np.linalg.norm(weights(first) - weights(other)) <= 1e-5 * np.linalg.norm(
            weights(first)
        )


@pytest.mark.parametrize("loss", [name for name in CLASSIFICATION_LOSSES if name != "log_loss"])
def test_several_classes_are_trained_as_binary_problems_on_the_same_rows(solver, loss):
    X, y = data(OrtSGDClassifier, 3)
    model = OrtSGDClassifier(
        solver=solver, loss=loss, batch_size=16, max_iter=5, tol=None, eta0=0.05, random_state=0
    )
    together = clone(model).fit(X, y)
    for k in range(3):
        alone = clone(model).fit(X, y == k)
        np.testing.assert_allclose(together.coef_[k], alone.coef_[0], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(
            together.intercept_[k], alone.intercept_[0], rtol=1e-5, atol=1e-7
        )


# --- optima and closed forms


def constant(loss, y, sample_weight=None, **options):
    """Return what a model without features predicts."""
    X = np.zeros((len(y), 1))
    options = {
        "eta0": 0.1,
        "tol": None,
        "max_iter": 3000,
        "dtype": "float64",
        "batch_size": len(y),
        **options,
    }
    options = {"learning_rate": "invscaling", "power_t": 0.5, **options}
    return (
        OrtSGDRegressor(loss=loss, **options)
        .fit(X, y, sample_weight=sample_weight)
        .predict(X[:1])[0]
    )


Y = np.array([0.5, 1.0, 1.25, 3.0, 9.0])
W = np.array([1.0, 1.0, 2.0, 1.0, 0.5])


@pytest.mark.parametrize(
    "loss, expected, atol",
    [
        ("squared_error", np.average(Y, weights=W), 1e-6),
        ("absolute_error", 1.25, 1e-2),
        (Quantile(0.8), 3.0, 5e-3),
        (Quantile(0.1), 0.5, 5e-3),
        ("poisson", np.average(Y, weights=W), 1e-6),
        ("gamma", np.average(Y, weights=W), 1e-6),
        # (s - 0.5) + (s - 1) + 2 (s - 1.25) - 1 - 0.5 = 0: the residuals of 3 and 9 are clipped.
        (Huber(1.0), 1.375, 1e-6),
        (ElasticLoss(0.0, 3.0), np.average(Y, weights=W), 1e-6),
        (ElasticLoss(2.0, 0.0), 1.25, 9e-3),
    ],
    ids=str,
)
def test_what_a_constant_model_predicts(loss, expected, atol):
    smooth = atol < 1e-3
    prediction = constant(
        loss,
        Y,
        W,
        learning_rate="constant" if smooth else "invscaling",
        eta0=0.1 if smooth else 0.5,
    )
    assert prediction == pytest.approx(expected, abs=atol)


@pytest.mark.parametrize(
    "options",
    [{"standardize": False, "eta0": 0.2, "max_iter": 600}, {"eta0": "auto", "max_iter": 2000}],
    ids=["as it is", "standardized"],
)
@pytest.mark.parametrize(
    "loss, reference", [("poisson", PoissonRegressor), ("gamma", GammaRegressor)]
)
def test_the_limit_is_the_generalised_linear_model(loss, reference, options):
    X, y = data(OrtSGDRegressor, 1, n=200)
    exact = reference(alpha=0.05, tol=1e-10, max_iter=1000).fit(X, y)
    options = {
        "penalty": "l2",
        "alpha": 0.05,
        "tol": None,
        "batch_size": 200,
        "dtype": "float64",
        **options,
    }
    model = OrtSGDRegressor(loss=loss, **options).fit(X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, exact.intercept_, atol=1e-6)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), rtol=1e-6)
    assert model.predict(X).min() > 0


@pytest.mark.parametrize(
    "loss, model",
    [("poisson", PoissonRegressor(alpha=0.05)), ("gamma", GammaRegressor(alpha=0.05))],
)
def test_a_generalised_linear_model_has_one_link_with_its_own_loss(loss, model):
    X, y = data(OrtSGDRegressor, 1)
    model.fit(X, y)
    ours = OrtSGDRegressor(
        FrozenEstimator(model), loss=loss, eta0=1e-12, max_iter=1, tol=None, dtype="float64"
    ).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), model.predict(X), rtol=1e-6)
    np.testing.assert_allclose(ours.to_sklearn().predict(X), ours.predict(X), rtol=1e-12)


def test_a_model_without_link_is_not_given_back_as_one_with():
    X, y = data(OrtSGDRegressor, 1)
    model = OrtSGDRegressor(loss="poisson", max_iter=2, tol=None).fit(X, y)
    with pytest.raises(
        ValueError,
        match=r"LinearRegression predicts its score.*use to_onnx\(\), or .*PoissonRegressor",
    ):
        model.to_sklearn()


def sparse_problem():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 8))
    return X, X[:, 0] - 2 * X[:, 1] + 5 + 0.1 * rng.normal(size=60)


FULL_BATCH = {"batch_size": 60, "tol": None, "eta0": 0.3, "max_iter": 800, "alpha": 0.2}


@pytest.mark.parametrize("dtype, atol", [("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize(
    "penalty, reference",
    [("l1", Lasso(0.2, tol=1e-14)), ("elasticnet", ElasticNet(0.2, l1_ratio=0.6, tol=1e-14))],
)
def test_l1_reaches_the_lasso_optimum_with_its_exact_zeros(penalty, reference, dtype, atol):
    X, y = sparse_problem()
    reference.fit(X, y)
    model = OrtSGDRegressor(penalty=penalty, l1_ratio=0.6, dtype=dtype, **FULL_BATCH).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) < 8
    np.testing.assert_array_equal(model.coef_ == 0, reference.coef_ == 0)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=atol)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, atol=10 * atol)
    l1, l2 = np.abs(model.coef_).sum(), (model.coef_**2).sum()
    share = 1.0 if penalty == "l1" else 0.6
    value = ((model.predict(X) - y) ** 2).mean() / 2 + 0.2 * (share * l1 + (1 - share) / 2 * l2)
    assert model.loss_ == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize(
    "optimizer, eta0",
    [
        ("momentum", 0.03),
        ("nesterov", 0.03),
        ("adam", 0.02),
        (Adam(weight_decay=0.0, beta_2=0.9), 0.01),
    ],
    ids=str,
)
def test_l1_has_the_same_optimum_with_every_optimizer(optimizer, eta0):
    X, y = sparse_problem()
    reference = Lasso(0.2, tol=1e-14).fit(X, y)
    options = {**FULL_BATCH, "eta0": eta0, "max_iter": 4000}
    model = OrtSGDRegressor(optimizer=optimizer, penalty="l1", dtype="float64", **options).fit(X, y)
    np.testing.assert_array_equal(model.coef_ == 0, reference.coef_ == 0)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-6)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet", "l2"])
def test_a_strong_penalty_leaves_the_intercept_alone(penalty):
    X, y = sparse_problem()
    options = {**FULL_BATCH, "alpha": 20.0, "eta0": 0.05, "max_iter": 400}
    model = OrtSGDRegressor(penalty=penalty, l1_ratio=0.5, dtype="float64", **options).fit(X, y)
    assert np.abs(model.coef_).max() < 0.12
    assert (model.coef_ == 0).all() == (penalty != "l2")
    assert model.intercept_[0] == pytest.approx((y - X @ model.coef_).mean(), abs=1e-6)


def test_a_penalty_of_one_weight_only(solver):
    X, y = data(OrtSGDRegressor, 1)
    inner = MLPRegressor(hidden_layer_sizes=(5,), activation="tanh")
    options = {
        "solver": solver,
        "max_iter": 1,
        "tol": None,
        "batch_size": 100,
        "eta0": 0.1,
        "random_state": 0,
    }
    options["optimizer"] = "sgd"
    start = OrtSGDRegressor(inner, penalty=None, **{**options, "eta0": 1e-12}).fit(X, y).weights_
    free = OrtSGDRegressor(inner, penalty=None, **options).fit(X, y).weights_
    penalty = ElasticPenalty({"coefficient1": 0.5}, l1_ratio=0)
    held = OrtSGDRegressor(inner, penalty=penalty, **options).fit(X, y).weights_
    assert set(held) == {"coefficient", "coefficient1", "intercepts", "intercepts1"}
    for name in held:
        shrunk = 0.1 * 0.5 * start[name] if name == "coefficient1" else 0.0
        np.testing.assert_allclose(held[name], free[name] - shrunk, rtol=1e-5, atol=1e-6)


# --- predictions


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("loss", ["log_loss", "modified_huber"])
def test_probabilities_are_those_of_sgd_classifier_with_the_same_weights(loss, n_outputs):
    X, y = data(OrtSGDClassifier, n_outputs)
    model = OrtSGDClassifier(loss=loss, optimizer="sgd", max_iter=20, tol=None, random_state=0).fit(
        X, y
    )
    # scikit-learn's log-loss of several classes is one against the rest: LogisticRegression is the
    # same model there.
    reference = LogisticRegression() if loss == "log_loss" else SGDClassifier(loss=loss)
    reference.fit(X, y)
    reference.coef_, reference.intercept_ = (
        model.coef_.astype(float),
        model.intercept_.astype(float),
    )
    expected = reference.predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), reference.predict(X))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(
            model.predict_log_proba(X), np.log(expected), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", ["log_loss", "modified_huber"])
def test_probabilities_are_float64_and_sum_to_one(loss, dtype):
    X, y = data(OrtSGDClassifier, 3)
    model = OrtSGDClassifier(loss=loss, dtype=dtype, max_iter=5, tol=None).fit(X, y)
    probabilities = model.predict_proba(X)
    assert probabilities.dtype == np.float64
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-15)
    # scikit-learn warns where they do not sum to one as exactly as their dtype can.
    assert log_loss(y, probabilities) == pytest.approx(
        -np.log(probabilities[np.arange(len(y)), y]).mean(), rel=1e-5
    )


@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
@pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
def test_probabilities_exist_where_scikit_learn_has_them(loss, method):
    X, y = data(OrtSGDClassifier, 1)
    model, reference = OrtSGDClassifier(loss=loss, max_iter=2, tol=None), SGDClassifier(loss=loss)
    assert hasattr(model, method) == hasattr(reference, method)
    model.fit(X, y)
    assert hasattr(model, method) == hasattr(reference, method)
    outputs = ["label", "probabilities"] if hasattr(reference, method) else ["label"]
    assert [output.name for output in model.onnx_.graph.output] == outputs


def test_probabilities_follow_the_loss_of_the_fit():
    X, y = data(OrtSGDClassifier, 1)
    model = (
        OrtSGDClassifier(loss="hinge", max_iter=2, tol=None).fit(X, y).set_params(loss="log_loss")
    )
    assert not hasattr(model, "predict_proba")
    for no_loss in ("none", 3, Hinge, Loss(LOG_LOSS, inverse_link="no text")):
        assert not hasattr(OrtSGDClassifier(loss=no_loss), "predict_proba")
    assert hasattr(OrtSGDClassifier(loss=LogLoss()), "predict_proba")
    assert not hasattr(OrtSGDClassifier(loss=Loss(LOG_LOSS)), "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'"):
        OrtSGDClassifier(loss="perceptron").predict_proba(X)


# --- instances


def test_instances_are_parameters_and_stay_as_they_are():
    X, y = data(OrtSGDRegressor, 1)
    loss, penalty = Quantile(0.25), L1(1e-3)
    options = {"max_iter": 3, "tol": None, "random_state": 0, **STEPS}
    model = OrtSGDRegressor(loss=loss, penalty=penalty, **options)
    assert "loss=Quantile(quantile=0.25), max_iter=3" in repr(
        model
    ) and "penalty=L1(alpha=0.001)" in repr(model)
    other = clone(model).set_params(loss__quantile=0.75, penalty__alpha=0.5)
    assert (loss.quantile, penalty.alpha) == (0.25, 1e-3)
    by_name = OrtSGDRegressor(loss="quantile", quantile=0.25, penalty="l1", alpha=1e-3, **options)
    np.testing.assert_array_equal(model.fit(X, y).coef_, by_name.fit(X, y).coef_)
    assert model.loss is loss and model.penalty is penalty
    assert not np.allclose(other.fit(X, y).coef_, model.coef_)
    loss.set_params(quantile=0.9)
    graph = onnx.printer.to_text(model.training_graphs()["start"])
    assert "0.25" in graph and "0.9" not in graph
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict(X), model.predict(X))
    assert copied.loss.quantile == 0.9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_grid_search_over_a_parameter_of_the_loss():
    X, y = data(OrtSGDRegressor, 1)
    grid = {"loss__quantile": [0.05, 0.5], "penalty__alpha": [1e-4]}
    model = OrtSGDRegressor(loss=Quantile(), penalty=L2(), max_iter=30, eta0=0.1)
    search = GridSearchCV(model, grid, cv=2, scoring="neg_mean_absolute_error").fit(X, y)
    assert search.best_params_["loss__quantile"] == 0.5


# --- a loss of one's own


@pytest.mark.parametrize(
    "loss",
    [Loss(SQUARE), Loss(SQUARE, gradient=SQUARE_GRADIENT), Loss(WEIGHTED_SQUARE)],
    ids=["derived", "closed form", "weighted"],
)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_squared_error_of_ones_own_is_squared_error(solver, loss, n_outputs, rng):
    X, y = data(OrtSGDRegressor, n_outputs)
    sample_weight = rng.uniform(0.5, 2, len(X))
    options = {
        "solver": solver,
        "batch_size": 15,
        "max_iter": 10,
        "tol": None,
        "random_state": 0,
        **STEPS,
    }
    ours = OrtSGDRegressor(loss=loss, **options).fit(X, y, sample_weight=sample_weight)
    theirs = OrtSGDRegressor(loss=SquaredError(), **options).fit(X, y, sample_weight=sample_weight)
    np.testing.assert_allclose(ours.loss_curve_, theirs.loss_curve_, rtol=1e-5)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_loss_of_ones_own_trains_a_classifier(dtype):
    X, y = data(OrtSGDClassifier, 1)
    options = {
        "dtype": dtype,
        "max_iter": 10,
        "tol": None,
        "random_state": 0,
        "penalty": "elasticnet",
        "alpha": 1e-3,
    }
    options["eta0"] = 0.1
    ours, theirs = (
        OrtSGDClassifier(loss=loss, **options).fit(X, y) for loss in (Loss(LOG_LOSS), "log_loss")
    )
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4 if dtype == "float32" else 1e-10)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert [output.name for output in ours.onnx_.graph.output] == ["label"]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ours)).predict(X), ours.predict(X))


@pytest.fixture
def log_cosh():
    """The loss in the docstring of `Loss`, read from there."""
    names = {}
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(Loss)):
        if "log_cosh" not in names:
            exec(example.source, names)
    return names["log_cosh"]


def test_the_documented_log_cosh_and_its_gradient_are_finite_everywhere(solver, log_cosh):
    residual = np.array([[0.0, 1e-3, 0.5, 3.0, 88.0, 89.0, 346.0, 1e4]])
    y = np.hstack([residual, -residual])
    options = {
        "loss": log_cosh,
        "penalty": None,
        **STEPS,
        "eta0": y.size,
        "max_iter": 1,
        "tol": None,
    }
    model = OrtSGDRegressor(solver=solver, **options).fit([[0.0]], y)
    # log(cosh(r)), and one step by the gradient of the mean over outputs.
    assert model.loss_ == pytest.approx(np.mean(np.logaddexp(y, -y) - np.log(2)), rel=1e-6)
    np.testing.assert_allclose(model.intercept_, np.tanh(y[0]), rtol=0, atol=5e-7)


def test_the_documented_log_cosh_fits_large_targets(solver, log_cosh):
    X, y = load_diabetes(return_X_y=True)
    X = scale(X)
    options = {
        "penalty": None,
        "eta0": 10.0,
        "learning_rate": "adaptive",
        "max_iter": 200,
        "random_state": 0,
    }
    model = OrtSGDRegressor(solver=solver, loss=log_cosh, **options).fit(X, y)

    def objective(weights):
        residual = X @ weights[1:] + weights[0] - y
        return np.mean(np.logaddexp(residual, -residual) - np.log(2))

    optimum = minimize(objective, np.append(np.mean(y), LinearRegression().fit(X, y).coef_))
    assert objective(np.append(model.intercept_, model.coef_)) < 1.01 * optimum.fun


def test_an_inverse_link_of_ones_own_is_exported(run_onnx):
    X, y = data(OrtSGDRegressor, 1)
    poisson = PoissonLoss()
    own = Loss(poisson.value_function(1), inverse_link=poisson.inverse_link_function(1))
    options = {"max_iter": 10, "tol": None, "random_state": 0, **STEPS}
    ours, theirs = (OrtSGDRegressor(loss=loss, **options).fit(X, y) for loss in (own, poisson))
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5)
    exported = run_onnx(ours.onnx_, X=X.astype(np.float32))["variable"].ravel()
    np.testing.assert_allclose(exported, np.exp(X @ ours.coef_ + ours.intercept_), rtol=1e-5)


# --- what is refused


@pytest.mark.parametrize(
    "estimator_class, options, y, message",
    [
        (
            OrtSGDRegressor,
            {"loss": "hinge"},
            None,
            "'loss' parameter of OrtSGDRegressor must be a str among .*Got 'hin",
        ),
        (
            OrtSGDClassifier,
            {"loss": "absolute_error"},
            None,
            "'loss' parameter of OrtSGDClassifier .* Got 'absolute_error'",
        ),
        (
            OrtSGDRegressor,
            {"loss": Hinge()},
            None,
            "loss=Hinge is not a loss of a regressor. Use one of 'squared_error', ",
        ),
        (
            OrtSGDClassifier,
            {"loss": Huber()},
            None,
            "loss=Huber is not a loss of a classifier. Use one of 'log_loss', ",
        ),
        (
            OrtSGDClassifier,
            {"loss": Loss(SQUARE, inverse_link=SQUARE)},
            None,
            r"loss=Loss is not a loss of a classifier\. Leave inverse_link out, which is for reg",
        ),
        (
            OrtSGDClassifier,
            {"loss": Hinge},
            None,
            r"Hinge is a class: give an instance of it, Hinge\(\)",
        ),
        (OrtSGDRegressor, {"loss": "poisson"}, -1.0, r'loss="poisson" needs y >= 0'),
        (OrtSGDRegressor, {"loss": "gamma"}, 0.0, r'loss="gamma" needs y > 0'),
        (
            OrtSGDRegressor,
            {"quantile": 1.0},
            None,
            r"'quantile' parameter of OrtSGDRegressor must be .* \(0.0, 1.0\)",
        ),
        (OrtSGDRegressor, {"epsilon": -0.1}, None, "'epsilon' parameter of OrtSGDRegressor"),
        (
            OrtSGDRegressor,
            {"loss": "huber", "epsilon": 0},
            None,
            r"'epsilon' parameter of Huber must be .* \(0.0, ",
        ),
        (OrtSGDRegressor, {"loss": Quantile(2.0)}, None, "'quantile' parameter of Quantile"),
        (OrtSGDRegressor, {"penalty": L2(-1.0)}, None, "'alpha' parameter of L2"),
        (
            OrtSGDRegressor,
            {"penalty": ElasticPenalty({"intercept": 1.0})},
            None,
            "penalty: alpha names 'intercept', but it can name the weights coef",
        ),
        (
            OrtSGDRegressor,
            {"loss": Loss("half a function (")},
            None,
            "loss: value is not an ONNX function",
        ),
    ],
)
@pytest.mark.parametrize("fitted", [False, True])
def test_what_cannot_work_is_refused_and_changes_nothing(
    estimator_class, options, y, message, fitted
):
    X, good = data(estimator_class, 1)
    model = estimator_class(max_iter=2, tol=None)
    if fitted:
        model.fit(X, good)
    model.set_params(**options)
    before = {name: id(value) for name, value in vars(model).items()}
    with pytest.raises(ValueError, match=message):
        model.fit(X, good if y is None else np.full(len(X), y))
    assert {name: id(value) for name, value in vars(model).items()} == before


def test_a_loss_without_gradient_is_refused_by_the_operator(solver):
    X, y = data(OrtSGDRegressor, 1)
    rounded = (
        "rounded (score, target) => (loss) { r = Sub (score, target)  a = Abs (r)  "
        "loss = Ceil (a) }"
    )
    with pytest.raises(NotTrainableError, match="no gradient goes through the operator Ceil"):
        OrtSGDRegressor(solver=solver, loss=Loss(rounded)).fit(X, y)
    gradient = "g (score, target) => (gradient) { r = Sub (score, target)  gradient = Sign (r) }"
    model = OrtSGDRegressor(
        solver=solver, loss=Loss(rounded, gradient=gradient), max_iter=2, tol=None
    )
    if derives_given(solver):
        with pytest.raises(NotTrainableError, match='give its gradient and use solver="graph"'):
            model.fit(X, y)
    else:
        assert model.fit(X, y).loss_curve_[1] < model.loss_curve_[0]


def test_max_iter_still_warns_with_other_losses():
    X, y = data(OrtSGDRegressor, 1)
    with pytest.warns(ConvergenceWarning, match="Maximum number of epochs"):
        OrtSGDRegressor(loss="huber", max_iter=2, tol=0).fit(X, y)


def test_a_robust_loss_of_ones_own_trains_at_an_epsilon_that_is_small_beside_y(rng):
    X = rng.normal(size=(200, 2))
    y = 1000 + X @ [200, -300] + 0.1 * rng.standard_cauchy(200)
    options = {"penalty": None, "tol": 1e-8, "dtype": "float64", "random_state": 0}
    model = OrtSGDRegressor(loss=Cauchy(), **options).fit(X, y)

    def objective(w):
        return np.log1p(((X @ w[:2] + w[2] - y) / 0.1) ** 2).mean()

    expected = minimize(objective, [200, -300, 1000], method="Nelder-Mead", options={"xatol": 1e-8})
    np.testing.assert_allclose([*model.coef_, *model.intercept_], expected.x, atol=1e-6)
