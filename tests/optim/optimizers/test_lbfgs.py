"""Exact minima with `optimizer="lbfgs"`: those of scikit-learn, and those of formulas."""

import re

import numpy as np
import onnx.parser
import pytest
import scipy.optimize
import scipy.sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import LinearSVC
from solver_traits import takes

from skort import OrtSGDClassifier, OrtSGDRegressor, Step
from skort.artifacts import save_training_artifacts
from skort.callbacks import Checkpoint
from skort.estimators.training.data_source import GivenRows
from skort.estimators.training.fit import fit
from skort.exceptions import DivergedError
from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.objective import (
    L2,
    ElasticLoss,
    Huber,
    Loss,
    Penalty,
    Quantile,
    SquaredError,
    WeightedSum,
)
from skort.objective.objective import Objective
from skort.optim.batches import Batches, block_size
from skort.optim.descent import Limits, Point
from skort.optim.optimizers.lbfgs import LBFGS, Tolerances
from skort.optim.update import Update
from skort.runtime.device import Device
from skort.schedules import Cosine
from skort.solvers import has_sparse_steps, make_step
from skort.solvers.base import Problem
from skort.solvers.full import FullStep

# Those of the models inside are their own.
pytestmark = pytest.mark.filterwarnings("ignore:estimator. These parameters")


def data(kind="numbers", n_rows=300):
    """Return X with columns of several scales, y of a kind, and sample weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 6)) * [1, 2, 3, 0.1, 1, 1] + [0, 1, 0, 5, 0, 0]
    linear = X @ [0.3, -0.2, 0.1, 1, 0.1, 0] - 4.5
    noise = rng.normal(size=(n_rows, 2))
    y = {
        "numbers": linear + noise[:, 0],
        "two outputs": np.stack([linear, 1 - linear], axis=1) + noise,
        "counts": rng.poisson(np.exp(0.5 * linear)).astype(float),
        "two classes": (linear + noise[:, 0] > 0).astype(int),
        "three classes": (linear + noise[:, 0] > -0.5).astype(int) + (linear + noise[:, 1] > 0.7),
    }[kind]
    return X, y, rng.uniform(0.5, 3, size=n_rows)


def lbfgs(model=None, **parameters):
    is_label = model is not None and not isinstance(model, onnx.ModelProto) and is_classifier(model)
    kind = OrtSGDClassifier if is_label else OrtSGDRegressor
    return kind(
        model, **{"optimizer": "lbfgs", "dtype": "float64", "random_state": 0, **parameters}
    )


EXACT = {"tol": 1e-10, "max_iter": 10_000}
NEWTON = {"C": 0.5, "solver": "newton-cg", **EXACT}
OPTIMA = [
    (LinearRegression(), "numbers"),
    (Ridge(alpha=2.0), "numbers"),
    (Ridge(alpha=2.0), "two outputs"),
    (LogisticRegression(**NEWTON), "two classes"),
    (LogisticRegression(**NEWTON), "three classes"),
    (LogisticRegression(class_weight={0: 1.0, 1: 2.0, 2: 0.5}, **NEWTON), "three classes"),
    (PoissonRegressor(alpha=0.1, **EXACT), "counts"),
    (HuberRegressor(alpha=0.01, **EXACT), "numbers"),
    (LinearSVC(C=0.1, **EXACT), "two classes"),
]


@pytest.mark.parametrize(
    "model, kind", OPTIMA, ids=lambda value: value if isinstance(value, str) else repr(value)[:25]
)
def test_in_float64_the_weights_are_scikit_learns_optimum(model, kind):
    X, y, weight = data(kind)
    # The tolerances of a HuberRegressor end it earlier.
    rtol = 1e-3 if isinstance(model, HuberRegressor) else 1e-6
    expected = model.fit(X, y, sample_weight=weight)
    fitted = lbfgs(model, tol=1e-10).fit(X, y, sample_weight=weight)
    largest = np.abs(expected.coef_).max()
    np.testing.assert_allclose(fitted.coef_, expected.coef_, atol=rtol * largest, rtol=0)
    np.testing.assert_allclose(fitted.intercept_, expected.intercept_, atol=10 * rtol, rtol=rtol)


def test_huber_regressor_is_at_the_minimum_of_its_formula():
    X, y, _ = data()
    model = lbfgs(HuberRegressor(epsilon=1.5, alpha=0.3), tol=1e-10).fit(X, y)

    def value(vector):
        residual, scale = np.abs(y - X @ vector[:6] - vector[6]), vector[7]
        is_far = residual > 1.5 * scale
        costs = np.where(is_far, 3 * residual - 1.5**2 * scale, residual**2 / scale)
        return np.sum(scale + costs) + 0.3 * vector[:6] @ vector[:6]

    found = np.concatenate([model.coef_, [model.intercept_.item(), model.scale_]])
    theirs = HuberRegressor(epsilon=1.5, alpha=0.3, **EXACT).fit(X, y)
    assert value(found) <= value(
        np.concatenate([theirs.coef_, [theirs.intercept_, theirs.scale_]])
    ) * (1 + 1e-12)
    slopes = (value(found + step) - value(found - step) for step in 1e-5 * np.eye(8))
    np.testing.assert_allclose(np.array(list(slopes)) / 2e-5 / len(X), 0, atol=1e-7)


@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant prediction")
@pytest.mark.parametrize(
    "model, kind", OPTIMA[:-2], ids=lambda value: value if isinstance(value, str) else "model"
)
def test_in_float32_the_objective_is_within_a_millionth_of_the_minimum(model, kind):
    X, y, weight = data(kind)
    exact = lbfgs(model, tol=1e-10).fit(X, y, sample_weight=weight)
    fitted = lbfgs(model, dtype="float32").fit(X, y, sample_weight=weight)
    # The objective at its weights, in float64.
    at_weights = lbfgs(model, max_iter=1, tol=1e3, warm_start=True).fit(X, y, sample_weight=weight)
    at_weights = at_weights.with_weights(
        {name: w.astype(float) for name, w in fitted.weights_.items()}
    )
    value = at_weights.set_params(warm_start=True).fit(X, y, sample_weight=weight).loss_curve_[0]
    assert exact.loss_ <= value * (1 + 1e-9)
    assert value <= exact.loss_ * (1 + 1e-6)


def test_in_float32_columns_that_are_nearly_the_same_end_at_the_minimum():
    year = np.arange(1990.0, 2021.0)
    y = (year - 2005) ** 2 / 100
    model = lbfgs(LinearRegression(), penalty=None, dtype="float32").fit(
        np.column_stack([year, year**2]), y
    )
    assert model.score(np.column_stack([year, year**2]), y) > 0.95
    x, z = np.random.default_rng(0).normal(size=(2, 500))
    X = np.column_stack([x, x + 1e-3 * z])
    assert lbfgs(LinearRegression(), penalty=None, dtype="float32").fit(X, z).score(X, z) > 0.95


@pytest.mark.parametrize(
    "network, kind", [(MLPRegressor, "numbers"), (MLPClassifier, "three classes")]
)
def test_a_network_is_at_a_minimum_of_scikit_learns_objective(network, kind):
    X, y, _ = data(kind)
    # The penalty is of the weights of standardized X and y.
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if network is MLPRegressor:
        y = (y - y.mean()) / y.std()
    alpha = 3.0
    model = network(hidden_layer_sizes=(4,), activation="tanh", alpha=alpha)
    fitted = lbfgs(model, tol=1e-9, max_iter=5000).fit(X, y)
    sizes, weights = [w.shape for w in fitted.weights_.values()], list(fitted.weights_.values())

    def value(vector):
        parts = np.split(vector, np.cumsum([np.prod(s) for s in sizes])[:-1])
        parts = [part.reshape(shape) for part, shape in zip(parts, sizes, strict=True)]
        (first, last), (first_bias, last_bias) = parts[:2], parts[2:]
        score = np.tanh(X @ first + first_bias) @ last + last_bias
        penalty = 0.5 * alpha / len(X) * (np.sum(first**2) + np.sum(last**2))
        if network is MLPRegressor:
            return 0.5 * np.mean((score.ravel() - y) ** 2) + penalty
        score = score - np.log(np.exp(score).sum(axis=1, keepdims=True))
        return -np.mean(score[np.arange(len(y)), y]) + penalty

    found = np.concatenate([w.ravel() for w in weights])
    assert fitted.loss_ == pytest.approx(value(found), rel=1e-9)
    slopes = (value(found + step) - value(found - step) for step in 1e-5 * np.eye(len(found)))
    np.testing.assert_allclose(np.array(list(slopes)) / 2e-5, 0, atol=2e-7)


def test_the_solver_of_a_network_inside_is_understood():
    X, y, _ = data()
    model = MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", solver="lbfgs", alpha=3.0)
    given = lbfgs(model).fit(X, y)
    found = lbfgs(model, optimizer="auto").fit(X, y)
    np.testing.assert_array_equal(found.loss_curve_, given.loss_curve_)
    assert found.n_iter_ == found.t_ > 10
    # What asks for steps has them.
    for parameters in (
        {"early_stopping": True},
        {"eta0": 0.1},
        {"loss": "absolute_error"},
        {"penalty": "l1"},
    ):
        steps = lbfgs(model, optimizer="auto", **parameters, max_iter=20, tol=None).fit(X, y)
        assert steps.t_ > steps.n_iter_
    assert lbfgs(model, optimizer="auto", max_iter=20).fit_batches([(X, y)] * 2).t_ == 40


@pytest.mark.parametrize("n_columns", [6, 2000])
def test_sparse_rows_have_the_optimum_of_dense_ones(solver, n_columns):
    _, y, weight = data("three classes")
    X = scipy.sparse.random(300, n_columns, 0.02, random_state=0, format="csr")
    if not (has_sparse_steps(solver) and takes(solver, LBFGS())):
        pytest.skip(f"solver {solver!r} does not take both")
    model = LogisticRegression(**NEWTON)
    fitted = lbfgs(model, solver=solver, tol=1e-10).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(fitted.coef_, model.fit(X, y, sample_weight=weight).coef_, atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "n_rows"),
    [({}, 300), ({"trainable": ["intercept"]}, 50), ({"batch_size": 7}, 7)],
)
def test_a_pass_counts_the_values_of_sparse_rows_if_it_multiplies_these(parameters, n_rows):
    _, y, _ = data("three classes")
    X = scipy.sparse.random(300, 20_000, 0.01, random_state=0, format="csr")
    estimator = lbfgs(LogisticRegression(), max_iter=2, tol=None, **parameters)
    result, _ = fit(estimator, GivenRows(X, y, None))
    # In 300 rows of 20,000 columns are 6 blocks of 2^20 numbers.
    assert result.batch_size == n_rows


HALF_SQUARE = """half_square (score, target) => (loss) {
    half = Constant <value = float {0.5}> ()  residual = Sub (score, target)
    square = Mul (residual, residual)  loss = Mul (square, half) }"""
SQUARES = """squares (weight) => (penalty) {
    square = Mul (weight, weight)  penalty = ReduceSum <keepdims = 0> (square) }"""


def test_own_losses_and_penalties_are_minimised():
    X, y, _ = data()
    expected = Ridge(alpha=0.2 * len(X)).fit(X, y)
    model = lbfgs(loss=Loss(HALF_SQUARE), penalty=Penalty(SQUARES, alpha=0.1), tol=1e-11).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant prediction")
@pytest.mark.filterwarnings("ignore:The loss 'half_square' has a gradient that is not")
def test_a_gradient_that_is_none_of_the_loss_is_named():
    X, y, _ = data()
    wrong = (
        HALF_SQUARE.replace("(loss)", "(gradient)")
        .replace("{0.5}", "{-0.5}")
        .replace("loss =", "gradient =")
    )
    with pytest.warns(
        ConvergenceWarning, match="found no smaller objective, .* the gradient of a custom part is"
    ):
        lbfgs(loss=Loss(HALF_SQUARE, wrong)).fit(X, y)


def test_blocks_of_rows_and_the_solver_change_nothing(solver):
    X, y, weight = data("two classes")
    weight[:40] = 0
    whole = lbfgs(LogisticRegression()).fit(X, y, sample_weight=weight)
    if takes(solver, LBFGS()):
        part = lbfgs(LogisticRegression(), solver=solver, batch_size=7).fit(
            X, y, sample_weight=weight
        )
        np.testing.assert_allclose(part.coef_, whole.coef_, rtol=1e-8)
        only = lbfgs(LogisticRegression(), solver=solver).fit(
            X[40:], y[40:], sample_weight=weight[40:]
        )
        np.testing.assert_allclose(only.coef_, whole.coef_, rtol=1e-8)
    else:
        with pytest.raises(ValueError, match="has no optimizer=LBFGS"):
            lbfgs(solver=solver, dtype="float32").fit(X, y)


def test_a_network_of_two_outputs_with_a_loss_each_ends_where_the_sum_of_them_is_flat():
    X, y, _ = data("two outputs")
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    lines (float[N, 6] X) => (float[N, 1] a, float[N, 1] b)
    <float[6, 1] V = {0, 0, 0, 0, 0, 0}, float[6, 1] W = {0, 0, 0, 0, 0, 0}, float[1] c = {0},
        float[1] d = {0}> {
        left = MatMul (X, V)  a = Add (left, c)  right = MatMul (X, W)  b = Add (right, d)
    }""")
    losses = {"a": "squared_error", "b": Huber(epsilon=0.5)}
    fitted = lbfgs(model, loss=losses, dtype="float32").fit(X, {"a": y[:, 0], "b": y[:, 1]})
    np.testing.assert_allclose(
        fitted.weights_["V"].ravel(), LinearRegression().fit(X, y[:, 0]).coef_, atol=1e-3
    )
    slopes = np.clip(X @ fitted.weights_["W"].ravel() + fitted.weights_["d"] - y[:, 1], -0.5, 0.5)
    np.testing.assert_allclose(slopes @ X / len(X), 0, atol=1e-4)


def test_a_row_of_the_history_is_an_iteration():
    X, y, _ = data()
    seen = []

    class Watch:
        def on_batch_end(self, training):
            seen.append((training.n_updates, training.objective))

    model = lbfgs(Ridge(), scoring="r2", callbacks=[Watch()]).fit(X, y, X_val=X, y_val=y)
    assert len(model.loss_curve_) == model.n_iter_ == model.t_ == len(model.validation_scores_)
    assert seen == list(enumerate(model.loss_curve_, 1))
    assert np.all(np.diff(model.loss_curve_) <= 0)
    assert model.validation_scores_[-1] == pytest.approx(model.score(X, y), rel=1e-6)
    assert model.stopping_reason_.startswith("The largest entry of the gradient, ")
    assert model.history_["gradient_norm"][-1] < 1e-7


def test_tol_is_the_largest_entry_of_the_gradient():
    X, y, _ = data("two classes")
    for tol in (1e-2, 1e-5):
        model = lbfgs(LogisticRegression(), tol=tol).fit(X, y)
        # Of columns that are standardized, and then made uncorrelated by L^-1
        deviation = X.std(axis=0)
        rows = np.column_stack([(X - X.mean(axis=0)) / deviation, np.ones(len(X))])
        strengths = np.append(1 / len(X) / deviation**2, 0)
        factor = np.linalg.cholesky(0.25 * rows.T @ rows / len(X) + np.diag(strengths))
        residual = model.predict_proba(X)[:, 1] - y
        weights = np.append(model.coef_ * deviation, 0)
        gradient = np.linalg.solve(factor, residual @ rows / len(X) + strengths * weights)
        assert tol / 1e3 < np.abs(gradient).max() <= tol


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_kinks_of_relu_are_no_wrong_gradient(dtype, recwarn):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 8))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=500) > 0).astype(int)
    network = MLPClassifier((20,), alpha=5.0, random_state=1)
    model = lbfgs(network, random_state=1, dtype=dtype).fit(X, y)
    assert re.search(
        r"no longer fell: the largest entry of the gradient is 0\.0[01]", model.stopping_reason_
    )
    assert not recwarn
    theirs = clone(network).set_params(solver="lbfgs", max_iter=5000).fit(X, y)
    assert model.history_["objective"][-1] < 1.01 * theirs.loss_
    # It ends when ten iterations lower the objective by 2e-6, and not before.
    objective = model.history_["objective"]
    assert objective[-11] - objective[-1] < 2.5e-6
    assert objective[-12] - objective[-2] > 1.5e-6


def test_the_solver_of_a_network_inside_is_said_to_be_unused_where_it_is(recwarn):
    X, y, _ = data()
    model = OrtSGDRegressor(
        MLPRegressor(hidden_layer_sizes=(4,), solver="lbfgs"), max_iter=20, tol=None
    )
    model.fit(X, y)
    assert isinstance(model.optimizer_, LBFGS)
    assert not recwarn
    with pytest.warns(
        UserWarning, match=r"MLPRegressor are not used: solver \(set optimizer of OrtSGDRegressor\)"
    ):
        model.set_params(eta0=0.01).fit(X, y)
    with pytest.warns(
        UserWarning, match=r"not used: max_iter \(set max_iter of OrtSGDRegressor\)\.$"
    ):
        model.set_params(eta0="auto", estimator__max_iter=7).fit(X, y)


def test_max_iter_counts_iterations_and_warns():
    X, y, _ = data("two classes")
    with pytest.warns(ConvergenceWarning, match=r"still falling, from .* Increase max_iter\.$"):
        model = lbfgs(LogisticRegression(), max_iter=3).fit(X, y)
    assert model.n_iter_ == 3
    assert lbfgs(LogisticRegression(), max_iter=3, tol=None).fit(X, y).n_iter_ == 3
    with pytest.warns(
        ConvergenceWarning,
        match=r"one epoch does not tell whether the objective falls. Increase max_it",
    ):
        assert lbfgs(LogisticRegression(), max_iter=1).fit(X, y).n_iter_ == 1


def test_a_warm_start_at_the_minimum_is_one_iteration():
    X, y, _ = data("two classes")
    model = lbfgs(LogisticRegression(), warm_start=True).fit(X, y)
    first = model.coef_.copy()
    assert model.n_iter_ > 3
    model.fit(X, y)
    assert model.n_iter_ == 1
    np.testing.assert_allclose(model.coef_, first, rtol=1e-7)


def test_an_interrupted_fit_keeps_its_last_iteration():
    X, y, _ = data("two classes")

    class Interrupt:
        def on_epoch_end(self, training):
            if training.n_epochs == 3:
                raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="fitted up to the last whole epoch, 3"):
        model = lbfgs(LogisticRegression(), callbacks=[Interrupt()]).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        expected = lbfgs(LogisticRegression(), max_iter=3).fit(X, y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.loss_curve_ == expected.loss_curve_


def test_a_callback_stops_it_and_its_error_is_raised():
    X, y, _ = data("two classes")

    class Stop:
        def on_epoch_end(self, training):
            if training.n_epochs == 2:
                training.stop("Enough.")

    class Fail:
        def on_epoch_end(self, training):
            raise RuntimeError("broken")

    model = lbfgs(LogisticRegression(), callbacks=[Stop()]).fit(X, y)
    assert (model.n_iter_, model.stopping_reason_) == (2, "Enough.")
    with pytest.raises(RuntimeError, match="broken"):
        lbfgs(LogisticRegression(), callbacks=[Fail()]).fit(X, y)


def test_a_checkpoint_goes_on_from_its_weights(tmp_path):
    X, y, _ = data("three classes")
    path = tmp_path / "fit"
    with pytest.warns(ConvergenceWarning):
        first = lbfgs(LogisticRegression(), max_iter=4, callbacks=[Checkpoint(path)]).fit(X, y)
    second = lbfgs(LogisticRegression(), callbacks=[Checkpoint(resume_from=path)]).fit(X, y)
    assert second.loss_curve_[:4] == first.loss_curve_
    assert second.loss_curve_[4] < first.loss_curve_[-1]
    np.testing.assert_allclose(
        second.coef_, lbfgs(LogisticRegression()).fit(X, y).coef_, rtol=1e-5, atol=1e-7
    )


def test_a_line_search_comes_back_from_an_overflow():
    X, y, _ = data("counts")
    X[0], y[0] = -60.0, 1000.0
    model = PoissonRegressor(alpha=1e-4)
    expected = lbfgs(model, max_iter=300).fit(X, y)
    fitted = lbfgs(model, dtype="float32", standardize=False, max_iter=300).fit(X, y)
    assert np.all(np.diff(fitted.loss_curve_) <= 1e-6 * np.abs(fitted.loss_curve_[:-1]))
    assert fitted.loss_ == pytest.approx(expected.loss_, rel=1e-5)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"loss": "absolute_error"}, r'has a kink. Use loss="huber"'),
        ({"loss": "quantile"}, r'has a kink. Use loss="huber"'),
        ({"loss": ElasticLoss(0.1, 1.0)}, r'has a kink. Use loss="huber"'),
        ({"loss": "epsilon_insensitive"}, r'has a kink. Use loss="squared_epsilon_insensitive"'),
        (
            {"loss": WeightedSum([(0.5, Huber()), (0.5, Quantile())])},
            r'has a kink. Use loss="huber"',
        ),
        ({"penalty": "l1"}, r'the penalty has an l1 term. Use penalty="l2"'),
        ({"learning_rate": Cosine(10)}, "needs learning_rate=.* line search"),
        ({"learning_rate": "constant"}, "needs learning_rate=.* line search"),
        ({"eta0": 0.1}, "needs eta0=.* line search"),
        ({"average": True}, "needs average=False"),
        ({"max_grad_norm": 1.0}, "needs max_grad_norm=None"),
        ({"early_stopping": True}, "needs early_stopping=False, got True"),
    ],
)
def test_what_it_cannot_do_is_refused(parameters, message):
    X, y, _ = data()
    with pytest.raises(ValueError, match=message):
        lbfgs(**parameters).fit(X, y)


@pytest.mark.parametrize(
    "loss, smooth", [("hinge", "squared_hinge"), ("perceptron", "squared_hinge")]
)
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_kinked_losses_of_labels_are_refused(loss, smooth, class_weight):
    X, y, _ = data("three classes")
    model = OrtSGDClassifier(loss=loss, optimizer="lbfgs", class_weight=class_weight)
    with pytest.raises(ValueError, match=f'has a kink. Use loss="{smooth}"'):
        model.fit(X, y)
    assert lbfgs(LogisticRegression(), loss=smooth).fit(X, y).n_iter_ > 1


def test_parts_of_the_rows_are_refused(tmp_path):
    X, y, _ = data()
    for call in ("partial_fit", "fit_batches"):
        with pytest.raises(ValueError, match=f"{call}.* Use .*another optimizer"):
            getattr(lbfgs(), call)(*((X, y) if call == "partial_fit" else ([(X, y)],)))
    fitted = lbfgs().fit(X, y)
    with pytest.raises(ValueError, match="not partial_fit"):
        fitted.partial_fit(X, y)
    with pytest.raises(ValueError, match="not a Step"):
        Step(fitted)
    with pytest.raises(ValueError, match="not a device"):
        save_training_artifacts(fitted, tmp_path / "artifacts", batch_size=10)


def test_what_a_network_inside_asks_for_is_named_where_its_rows_come_in_parts(tmp_path):
    X, y, _ = data()
    model = OrtSGDRegressor(
        MLPRegressor(hidden_layer_sizes=(4,), solver="lbfgs"), max_iter=3, tol=None
    ).fit(X, y)
    asked = (
        'solver="lbfgs" of the network inside reads all rows for every update: fit '
        "can do it, but not "
    )
    for what, call in (
        ("partial_fit", lambda: model.partial_fit(X, y)),
        ("a Step", lambda: Step(model)),
        ("a device", lambda: save_training_artifacts(model, tmp_path / "artifacts", batch_size=10)),
    ):
        with pytest.raises(
            ValueError, match=f'{asked}{what}. Use another optimizer, such as "adam"'
        ):
            call()


def test_dropout_is_refused():
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    network (float[N, 6] X) => (float[N, 1] y)
    <float[6, 1] W = {1, 1, 1, 1, 1, 1}, float ratio = {0.25}, bool training = {1}> {
        dropped = Dropout (X, ratio, training)  y = MatMul (dropped, W)
    }""")
    X, y, _ = data()
    with pytest.raises(ValueError, match=r"Dropout draws masks.*take dropout=0 in a TabularN"):
        lbfgs(model, dtype="float32").fit(X, y)


def test_an_objective_that_is_not_finite_at_the_start_is_an_error():
    X, y, _ = data("counts")
    with pytest.raises(DivergedError, match="loss became infinite or NaN"):
        lbfgs(PoissonRegressor(), dtype="float32").fit(X, y, intercept_init=[100.0])


def test_a_minimisation_ends_at_the_minimum_of_a_function():
    def rosenbrock(vector):
        return Point(vector, scipy.optimize.rosen(vector), scipy.optimize.rosen_der(vector))

    path = []
    reason = LBFGS(history_size=3).minimise(
        rosenbrock,
        rosenbrock(np.zeros(4)),
        Tolerances(Limits(1e-8, fall=0.0), flat=1e-3),
        200,
        lambda point: path.append(point.weights),
    )
    assert reason.endswith("is not above tol=1e-08.")
    np.testing.assert_allclose(path[-1], 1, atol=1e-7)


def test_rounded_values_do_not_end_a_minimisation_before_the_gradients():
    scales = np.array([1.0, 3.0, 10.0])

    def rounded(vector):
        # As of a sum in float32
        objective = float(np.float32(100 + 0.5 * scales @ (vector - 1) ** 2))
        return Point(vector, objective, scales * (vector - 1))

    path = []
    LBFGS().minimise(
        rounded,
        rounded(np.zeros(3)),
        Tolerances(Limits(1e-9, fall=0.0, rounding=1e-6), flat=1e-3),
        100,
        lambda point: path.append(point.weights),
    )
    np.testing.assert_allclose(path[-1], 1, atol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_device_has_the_same_objective_and_gradient(dtype):
    X, y, weight = data("two outputs")
    graph = initial_score_graph(
        MLPRegressor(hidden_layer_sizes=(5,)), ScoreSpec(6, 2, dtype), np.random.RandomState(0)
    )
    objective = Objective(SquaredError(), L2(0.1), graph.coefficients, 2, np.dtype(dtype))
    found = []
    for is_remote in (False, True):
        problem = Problem(graph, objective, Update(LBFGS()), 70, Device(is_remote=is_remote))
        options = {"batch_size": 70, "shuffle": False, "random_state": np.random.RandomState(0)}
        batches = Batches(X.astype(dtype), y.astype(dtype), weight, **options)
        step = make_step(problem, solver="graph")
        step.batch.begin(batches.data)
        full = FullStep(
            problem, step, batches, LBFGS().tolerances(None, dtype, is_linear=True, is_given=True)
        )
        found.append(full.evaluate(np.linspace(-1, 1, 47)))
    here, there = found
    assert here.objective == pytest.approx(there.objective, rel=1e-6)
    assert here.loss == pytest.approx(there.loss, rel=1e-6)
    np.testing.assert_allclose(here.gradient, there.gradient, rtol=1e-4, atol=1e-6)


class ThirdTrial(LBFGS):
    """Tries three points, and takes the first."""

    def minimise(self, evaluate, start, tolerances, max_iter, after):
        first, *_ = [evaluate(start.weights + change) for change in (0.1, 0.2, 0.3)]
        after(first)


def test_callbacks_see_the_weights_of_a_trial_that_is_not_the_last():
    X, y, _ = data()
    graph = initial_score_graph(
        LinearRegression(), ScoreSpec(6, 1, "float64"), np.random.RandomState(0)
    )
    objective = Objective(SquaredError(), L2(0.1), graph.coefficients, 1, np.dtype("float64"))
    problem = Problem(graph, objective, Update(ThirdTrial()), 70)
    options = {"batch_size": 70, "shuffle": False, "random_state": np.random.RandomState(0)}
    batches = Batches(X.astype(float), y.reshape(-1, 1).astype(float), None, **options)
    step = make_step(problem, solver="graph")
    step.batch.begin(batches.data)
    full = FullStep(
        problem, step, batches, LBFGS().tolerances(None, float, is_linear=True, is_given=True)
    )
    seen = []
    full.minimise(1, lambda: seen.append(full.state()["weights"]))
    np.testing.assert_allclose(seen[0], np.full(7, 0.1))


@pytest.mark.parametrize(
    "n_rows, n_features, expected", [(10, 3, 10), (2**15 + 1, 1, 16385), (100_000, 100, 10_000)]
)
def test_blocks_have_about_the_same_number_of_rows(n_rows, n_features, expected):
    assert block_size(n_rows, n_features) == expected


def test_tolerances_are_those_of_what_a_dtype_holds():
    optimizer = LBFGS()
    for is_linear in (False, True):
        given = {"is_linear": is_linear, "is_given": True}
        single = optimizer.tolerances(1e-3, np.float32, **given)
        assert single == Tolerances(Limits(1e-3, 1e-13, 1, 1.0, 1e-6), 1e-3)
        double = optimizer.tolerances(1e-3, np.float64, **given)
        assert double == Tolerances(Limits(1e-3, 1e-19, 1, 1.0, 1e-14), 1e-3)
        assert optimizer.tolerances(None, np.float64, **given).limits.gradient == 0

    for dtype, rounding, near in ((np.float32, 1e-6, 1e-9), (np.float64, 1e-14, 0.0)):
        linear = optimizer.tolerances(1e-3, dtype, is_linear=True, is_given=False)
        assert linear.limits.distance == near
        # A network has kinks.
        found = optimizer.tolerances(1e-3, dtype, is_linear=False, is_given=False)
        assert found == Tolerances(Limits(1e-3, 2e-6, 10, 1.0, rounding), 2e-2)
