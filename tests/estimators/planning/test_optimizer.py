"""Which linear models are trained by L-BFGS, and why the others are not; its optimum is exact."""

import inspect
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_class_weight

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.planning.optimizer import asks_for_steps, linear_optimizer
from skort.objective import L1, Loss, Penalty
from skort.optim.optimizers.lbfgs import LBFGS
from skort.optim.optimizers.sgd import SGD
from skort.schedules import Constant, Cosine, Warmup
from skort.solvers import available_solvers

_BALANCES_WEIGHTS = "sample_weight" in inspect.signature(compute_class_weight).parameters
# What the models inside have of their own, such as max_iter, is not used.
pytestmark = pytest.mark.filterwarnings("ignore:estimator. These parameters")

HALF_SQUARE = """half_square (score, target) => (loss) {
    half = Constant <value = float {0.5}> ()  residual = Sub (score, target)
    square = Mul (residual, residual)  loss = Mul (square, half) }"""
SQUARES = """squares (weight) => (penalty) {
    square = Mul (weight, weight)  penalty = ReduceSum <keepdims = 0> (square) }"""


def table(kind="numbers", n_rows=501):
    """Return columns of very different scales and means, y of a kind, and sample weights."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n_rows, 5))
    Z[:, 1] += 0.8 * Z[:, 0]
    X = Z * [1, 1e3, 1e-3, 20, 1] + [0, 5e3, 1, -100, 0]
    score = Z @ [0.5, -0.7, 0.3, 0.2, 0] + 0.3
    noise = 0.3 * rng.logistic(size=(n_rows, 2))
    y = {
        "numbers": score + noise[:, 0],
        "two outputs": np.column_stack([score, 3 - score]) + noise,
        "counts": rng.poisson(np.exp(score)).astype(float),
        "two classes": (score + noise[:, 0] > 0).astype(int),
        "three classes": (score + noise[:, 0] > -1).astype(int) + (score + noise[:, 1] > 1.5),
    }[kind]
    return X, y, rng.uniform(0.5, 3, size=n_rows)


X, y, WEIGHT = table()


def optimizer_of(model):
    """Return the optimizer that the plan shows, and why."""
    decision = model.plan_.decisions["optimizer"]
    return type(decision.value), decision.because


def fitted(*inner, rows=X, target=y, **parameters):
    model = OrtSGDRegressor(*inner, **{"random_state": 0, "max_iter": 3, "tol": None, **parameters})
    return model.fit(rows, target)


def test_the_rule_says_what_stands_against_lbfgs():
    assert isinstance(linear_optimizer(None).value, LBFGS)
    found = linear_optimizer("its rows are sparse")
    assert isinstance(found.value, SGD)
    assert (found.because, found.change_with) == ("its rows are sparse", "optimizer")


def test_a_smooth_objective_of_dense_rows_is_minimised_by_lbfgs():
    model = OrtSGDRegressor(random_state=0).fit(X, y)
    because = "the objective is smooth, and the rows are dense and in memory"
    assert optimizer_of(model) == (LBFGS, because)
    assert isinstance(model.optimizer_, LBFGS)
    assert model.n_iter_ == model.t_ == len(model.loss_curve_)
    assert optimizer_of(fitted(solver="graph"))[0] is LBFGS
    # These say nothing of steps.
    for parameters in ({"alpha": 0.1}, {"standardize": False}, {"dtype": "float64"}):
        assert optimizer_of(fitted(**parameters))[0] is LBFGS


@pytest.mark.parametrize(
    "parameters",
    [
        {"batch_size": 50},
        {"learning_rate": "constant"},
        {"learning_rate": Constant(0.01)},
        {"eta0": 0.01},
        {"average": True},
        {"max_grad_norm": 1.0},
        {"early_stopping": True, "tol": 1e-3},
        {"n_iter_no_change": 5},
        {"shuffle": False},
    ],
    ids=lambda each: next(iter(each)),
)
@pytest.mark.filterwarnings("ignore:Maximum number of epochs reached")
@pytest.mark.filterwarnings("ignore:n_iter_no_change")
def test_a_parameter_of_steps_makes_steps(parameters):
    model = fitted(**parameters)
    assert optimizer_of(model) == (SGD, f"{next(iter(parameters))} asks for steps")
    assert model.t_ > model.n_iter_ or parameters == {"batch_size": len(X)}


def test_defaults_that_are_given_ask_for_nothing():
    given = {"solver": "auto", "batch_size": "auto", "eta0": "auto", "average": False}
    assert asks_for_steps(given) is None
    assert asks_for_steps({**given, "max_grad_norm": None, "shuffle": True}) is None
    assert asks_for_steps({**given, "solver": "session"}) == 'solver="session" asks for steps'


@pytest.mark.parametrize("solver", ["agent", "session", "module"])
def test_a_solver_that_is_named_makes_steps(solver):
    if solver not in available_solvers():
        pytest.skip(f"this runtime has no solver {solver!r}")
    assert optimizer_of(fitted(solver=solver)) == (SGD, f'solver="{solver}" asks for steps')


@pytest.mark.parametrize(
    "parameters, because",
    [
        ({"loss": "absolute_error"}, "its objective has a kink"),
        ({"loss": "epsilon_insensitive"}, "its objective has a kink"),
        ({"penalty": "l1"}, "its objective has a kink"),
        ({"penalty": "elasticnet"}, "its objective has a kink"),
        ({"penalty": L1(0.1)}, "its objective has a kink"),
        ({"loss": Loss(HALF_SQUARE)}, "its objective has a part that may have a kink"),
        (
            {"penalty": Penalty(SQUARES, alpha=1e-8)},
            "its objective has a part that may have a kink",
        ),
    ],
)
def test_an_objective_that_may_have_a_kink_is_minimised_by_sgd(parameters, because):
    assert optimizer_of(fitted(**parameters)) == (SGD, because)


@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant")
def test_rows_that_are_sparse_or_come_in_parts_are_trained_by_sgd():
    rows = scipy.sparse.csr_matrix(np.hstack([X, np.zeros((len(X), 257 - X.shape[1]))]))
    assert optimizer_of(fitted(rows=rows)) == (SGD, "its rows are sparse")
    parts = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 500, 100)]
    model = OrtSGDRegressor(max_iter=3, tol=None).fit_batches(parts)
    assert optimizer_of(model) == (SGD, "its rows are not in memory as a whole")
    model = OrtSGDRegressor().partial_fit(X, y)
    assert optimizer_of(model) == (SGD, "partial_fit makes steps")


def test_partial_fit_goes_on_from_the_optimum_by_sgd():
    model = OrtSGDRegressor(Ridge(), random_state=0).fit(X, y)
    best = model.score(X, y)
    n_updates = model.t_
    model.partial_fit(X, y)
    assert optimizer_of(model)[0] is SGD
    assert model.t_ > n_updates + 1
    assert best - 0.02 < model.score(X, y) <= best + 1e-6


def test_callbacks_see_iterations_and_validation_sets_score_them():
    X, y, _ = table("two classes")
    seen = []

    class Watch:
        def on_epoch_end(self, training):
            seen.append((training.n_epochs, training.objective))

    model = OrtSGDClassifier(callbacks=[Watch()], random_state=0).fit(X, y, X_val=X, y_val=y)
    assert seen == list(enumerate(model.history_["objective"], 1))
    assert len(model.validation_scores_) == model.n_iter_ == len(seen) > 1
    assert np.all(np.diff([objective for _, objective in seen]) <= 1e-7)


EXACT = {"tol": 1e-10, "max_iter": 100_000}
NEWTON = {"solver": "newton-cholesky", **EXACT}
OPTIMA = [
    (LinearRegression(), "numbers"),
    (LinearRegression(), "two outputs"),
    (LinearRegression(fit_intercept=False), "numbers"),
    (Ridge(alpha=20.0), "numbers"),
    (Ridge(alpha=20.0), "two outputs"),
    (LogisticRegression(C=0.5, **NEWTON), "two classes"),
    (LogisticRegression(C=0.5, **NEWTON), "three classes"),
    (LogisticRegression(class_weight={0: 1.0, 1: 2.0, 2: 0.5}, **NEWTON), "three classes"),
    (LogisticRegression(class_weight="balanced", **NEWTON), "two classes"),
    (PoissonRegressor(alpha=0.1, solver="newton-cholesky", **EXACT), "counts"),
    (RidgeClassifier(alpha=3.0), "three classes"),
]


@pytest.mark.parametrize("is_weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize(
    "inner, kind", OPTIMA, ids=lambda value: value if isinstance(value, str) else repr(value)[:25]
)
@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant")
def test_the_default_is_scikit_learns_optimum_on_raw_columns(inner, kind, is_weighted):
    is_balanced = getattr(inner, "class_weight", None) == "balanced"
    if is_weighted and is_balanced and not _BALANCES_WEIGHTS:
        pytest.skip("this scikit-learn balances the numbers of rows, not their weights")
    X, y, weight = table(kind)
    options = {"sample_weight": weight} if is_weighted else {}
    is_labels = kind.endswith("classes")
    wrapper = OrtSGDClassifier if is_labels else OrtSGDRegressor
    model = wrapper(inner, random_state=0).fit(X, y, **options)
    assert optimizer_of(model)[0] is LBFGS
    reference = clone(inner)
    if isinstance(inner, LinearRegression):
        # On raw columns it takes some whose means are large for constants.
        reference = make_pipeline(StandardScaler(with_mean=inner.fit_intercept), reference)
        options = {"linearregression__sample_weight": options.get("sample_weight")}
    reference.fit(X, y, **options)
    method = "decision_function" if is_labels else "predict"
    expected = getattr(reference, method)(X)
    error = getattr(model, method)(X) - expected
    assert np.sqrt(np.mean(error**2)) < 1e-4 * expected.std()


@pytest.mark.parametrize("inner", [HuberRegressor(**EXACT), LinearSVC(C=0.1, **EXACT)])
def test_the_default_is_scikit_learns_optimum_behind_a_scaler(inner):
    """scikit-learn's solvers of these models do not end at it on raw columns."""
    kind = "two classes" if isinstance(inner, LinearSVC) else "numbers"
    X, y, _ = table(kind)
    wrapper = OrtSGDClassifier if kind == "two classes" else OrtSGDRegressor
    method = "decision_function" if kind == "two classes" else "predict"
    model = make_pipeline(StandardScaler(), wrapper(inner, random_state=0)).fit(X, y)
    assert optimizer_of(model[-1])[0] is LBFGS
    expected = getattr(make_pipeline(StandardScaler(), inner).fit(X, y), method)(X)
    error = getattr(model, method)(X) - expected
    # The tolerances of a HuberRegressor end it earlier.
    assert np.sqrt(np.mean(error**2)) < (1e-3 if kind == "numbers" else 1e-4) * expected.std()


def correlated(correlation, n_rows=2001):
    """Return three raw columns, the first two of which have a correlation, and a score of them."""
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, n_rows))
    apart = np.sqrt(1 - correlation**2)
    X = np.column_stack([a, correlation * a + apart * b, c]) * [1, 100, 0.01] + [5, 1000, 3]
    score = X @ [1 / apart, -0.01 / apart, 30]
    return X, (score - score.mean()) / score.std(), rng


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("correlation", [0.99, 0.999, 0.9999])
def test_correlated_columns_are_trained_to_the_optimum(correlation, noise):
    X, score, rng = correlated(correlation)
    y = score + noise * rng.normal(size=len(X))
    expected = make_pipeline(StandardScaler(), LinearRegression()).fit(X, y).predict(X)
    error = OrtSGDRegressor(LinearRegression(), random_state=0).fit(X, y).predict(X) - expected
    assert np.sqrt(np.mean(error**2)) < 1e-4 * expected.std()


@pytest.mark.parametrize("correlation", [0.99, 0.999, 0.9999])
def test_correlated_columns_separate_classes_at_the_optimum(correlation):
    X, score, rng = correlated(correlation)
    y = (score + 0.5 * rng.logistic(size=len(X)) > 0).astype(int)
    exact = make_pipeline(
        StandardScaler(), LogisticRegression(C=np.inf, solver="newton-cholesky", **EXACT)
    )
    expected = exact.fit(X, y).decision_function(X)
    model = OrtSGDClassifier(penalty=None, random_state=0).fit(X, y)
    error = model.decision_function(X) - expected
    assert np.sqrt(np.mean(error**2)) < 1e-4 * expected.std()


def test_columns_that_float32_cannot_hold_apart_are_told():
    rng = np.random.default_rng(0)
    a, b, noise = rng.normal(size=(3, 3001))
    X, y = np.column_stack([a, a + 1e-5 * b]), b + 0.1 * noise
    with pytest.warns(ConvergenceWarning, match='nearly sums of others: use dtype="float64"'):
        OrtSGDRegressor(LinearRegression(), random_state=0).fit(X, y)
    model = OrtSGDRegressor(LinearRegression(), dtype="float64", random_state=0).fit(X, y)
    expected = LinearRegression().fit(X, y).predict(X)
    assert np.sqrt(np.mean((model.predict(X) - expected) ** 2)) < 1e-4 * expected.std()


def test_classes_that_are_apart_end_without_a_warning():
    X, y = load_digits(return_X_y=True)
    model = OrtSGDClassifier(penalty=None, random_state=0).fit(X, y)
    assert model.history_["objective"][-1] < 1e-4
    assert model.score(X, y) == 1


def test_constant_columns_rows_without_weight_and_single_rows():
    rows = np.column_stack([X, np.full(len(X), 7.0)])
    weight = WEIGHT.copy()
    weight[::3] = 0
    model = OrtSGDRegressor(Ridge(), random_state=0).fit(rows, y, sample_weight=weight)
    expected = Ridge().fit(rows, y, sample_weight=weight).predict(rows)
    assert np.abs(model.predict(rows) - expected).max() < 1e-3 * expected.std()
    kept = OrtSGDRegressor(Ridge(), random_state=0).fit(
        rows[weight > 0], y[weight > 0], sample_weight=weight[weight > 0]
    )
    np.testing.assert_allclose(kept.predict(rows), model.predict(rows), rtol=1e-4, atol=1e-4)
    one = OrtSGDRegressor(random_state=0).fit(X[:1], y[:1])
    np.testing.assert_allclose(one.predict(X[:1]), y[:1], rtol=1e-5)


@pytest.mark.parametrize("factor", [1e-30, 1e-10, 1e10, 1e30])
def test_units_of_columns_and_of_y_change_nothing(factor):
    expected = OrtSGDRegressor(LinearRegression(), random_state=0).fit(X, y).predict(X)
    model = OrtSGDRegressor(LinearRegression(), random_state=0)
    np.testing.assert_allclose(
        model.fit(X * factor, y).predict(X * factor), expected, rtol=1e-3, atol=1e-5
    )
    np.testing.assert_allclose(
        model.fit(X, y * factor).predict(X) / factor, expected, rtol=1e-3, atol=1e-4
    )


def test_a_warm_start_and_given_weights_begin_where_they_say():
    rows, labels, _ = table("two classes")
    model = OrtSGDClassifier(warm_start=True, random_state=0).fit(rows, labels)
    n_first = model.n_iter_
    first = model.coef_
    model.fit(rows, labels)
    assert model.n_iter_ < n_first
    np.testing.assert_allclose(model.coef_, first, rtol=1e-3)
    given = OrtSGDClassifier(random_state=0).fit(
        rows, labels, coef_init=first, intercept_init=model.intercept_
    )
    assert given.loss_curve_[0] == pytest.approx(model.loss_, rel=1e-5)


@pytest.mark.parametrize(
    "schedule",
    [
        Constant(),
        Constant(eta0=0.02),
        Cosine(n_updates=5),
        Warmup(Cosine(n_updates=5), n_updates=1),
    ],
)
@pytest.mark.parametrize("inside", [None, MLPRegressor(hidden_layer_sizes=(3,))])
def test_a_given_eta0_is_the_first_rate_of_a_schedule_object(schedule, inside):
    X = np.linspace(-1, 1, 22).reshape(11, 2)
    model = OrtSGDRegressor(inside, learning_rate=schedule, max_iter=2, tol=None, random_state=0)
    given = {name: each for name, each in schedule.get_params().items() if name.endswith("eta0")}
    of_schedule = next(iter(given.values()))
    assert model.fit(X, X[:, 0]).history_["eta"][0] == pytest.approx(of_schedule)
    model.set_params(eta0=0.05)
    has_another = of_schedule != 0.01
    with (
        pytest.warns(UserWarning, match=r"eta0=0.02 has no effect: eta0=0.05 is the first rate")
        if has_another
        else nullcontext()
    ):
        model.fit(X, X[:, 0])
    assert model.history_["eta"][0] == pytest.approx(0.05)
    # The user's schedule stays as it is.
    assert {name: schedule.get_params()[name] for name in given} == given


def test_a_first_rate_beside_a_function_is_told():
    X = np.linspace(-1, 1, 22).reshape(11, 2)
    model = OrtSGDRegressor(eta0=0.1, learning_rate=lambda t: 0.02 / t, max_iter=2, tol=None)
    with pytest.warns(UserWarning, match="eta0=0.1 has no effect: the function of learning_rate"):
        model.fit(X, X[:, 0])
    assert model.history_["eta"] == [0.02, 0.01]
