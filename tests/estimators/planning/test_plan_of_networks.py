"""The plan of a network: what "auto" stands for, and how a training goes along it."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import Checkpoint
from skort.estimators.planning.epochs import network_epochs
from skort.estimators.planning.fine_tuning import fitted_part
from skort.estimators.planning.optimizer import planned_decay
from skort.model_selection import OrtGridSearchCV
from skort.optim.optimizers import OptimizerTags
from skort.optimizers import SGD, Adam, Momentum, Nesterov
from skort.schedules import Adaptive, Constant, Cosine, InvScaling, Warmup
from skort.solvers import available_solvers

N, BATCH = 60, 25
N_BATCHES = 3
# The noise of `data` is a tenth, for which the decay is smaller.
OF_NOISE = 0.4
PLANNED = Adam(weight_decay=OF_NOISE * planned_decay(75 * N_BATCHES, 0.02))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2]


def regressor(**parameters):
    network = MLPRegressor(hidden_layer_sizes=(6,))
    return OrtSGDRegressor(network, **{"batch_size": BATCH, "random_state": 0} | parameters)


def rates(model):
    """Return the rate of the last update of each epoch."""
    return model.history_["eta"]


@pytest.mark.parametrize(
    ("n_rows", "n_batches", "n_columns", "n_epochs"),
    [
        (20, 1, 1, 225),
        (150, 1, 2, 225),
        # 225 (250 / 150)^.6 = 305.7 updates of 2 an epoch
        (250, 2, 7, 153),
        # 225 (1200 / 150)^.6 = 783.5 updates of 6 an epoch
        (1200, 6, 3, 131),
        # 1.5 times as many: 600 rows a column
        (1200, 6, 2, 196),
        # 7,340 updates of 250, and 1.75 times as many
        (50_000, 250, 125, 30),
        (50_000, 250, 9, 52),
        (5_000_000, 25_000, 9, 20),
        (40_000, 1, 9, 300),
    ],
)
def test_updates_grow_with_the_rows(n_rows, n_batches, n_columns, n_epochs):
    assert network_epochs(n_rows, n_batches, n_columns).value == n_epochs


def test_a_whole_cosine_shrinks_weights_by_about_the_same_factor():
    for n_updates, log_factor in ((150, -3.0), (250, -0.027 * 125), (2000, -4.5), (20_000, -4.5)):
        etas = Cosine(n_updates, 0.02).simulate(n_updates)
        factor = np.prod(1 - etas * planned_decay(n_updates, 0.02))
        # The mean rate is half of the first one
        assert np.log(factor) == pytest.approx(log_factor, rel=0.04)
    # No single update shrinks them to nothing
    assert 0.02 * planned_decay(6, 0.02) == pytest.approx(0.05)


def test_a_wide_network_shrinks_its_weights_more(data):
    X, y = data
    planned = planned_decay(2 * N_BATCHES, 0.02)
    of_new = OF_NOISE * planned

    def decay(hidden, **parameters):
        network = MLPRegressor(hidden_layer_sizes=hidden, random_state=0)
        if parameters.pop("is_fitted", False):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                network = FrozenEstimator(network.fit(X, y))
            parameters["early_stopping"] = False
        model = OrtSGDRegressor(network, batch_size=BATCH, max_iter=2, random_state=0, **parameters)
        return model.fit(X, y).optimizer_.weight_decay

    # 3 * 9 + 9 * 20 + 20 coefficients, not the intercepts
    assert decay((9, 20)) == pytest.approx(227 / N / 2 * of_new)
    # Frozen weights do not count, and a fitted network keeps what it knows
    assert decay((9, 20), trainable=["coefficient2", "i*"]) == of_new
    assert decay((9, 20), is_fitted=True) == planned


def test_the_plan_of_a_wide_network_given_back_is_the_same(data):
    # 3 * 60 + 60 * 15 + 15 weights of 60 rows: 18.25 a row
    network = MLPRegressor(hidden_layer_sizes=(60, 15))
    options = {"batch_size": BATCH, "max_iter": 4, "random_state": 0}
    planned = OrtSGDRegressor(network, **options).fit(*data)
    rate = 0.02 / (18.25 / 8) ** 0.5
    assert planned.eta0_ == pytest.approx(rate, rel=1e-12)
    decay = 4 * OF_NOISE * planned_decay(4 * N_BATCHES, rate)
    assert planned.optimizer_.weight_decay == pytest.approx(decay, rel=1e-12)
    for given in (
        {"eta0": planned.eta0_},
        {"optimizer": planned.optimizer_},
        {"learning_rate": Cosine(4 * N_BATCHES, planned.eta0_)},
    ):
        same = OrtSGDRegressor(network, **options, **given).fit(*data)
        assert same.onnx_.SerializeToString() == planned.onnx_.SerializeToString()


@pytest.mark.parametrize(("max_iter", "times"), [(4, 1.0), (37, 1.0), (38, (8 / 18.25) ** 0.5)])
def test_a_wide_classifier_of_few_epochs_keeps_the_rate_of_a_narrow_one(data, max_iter, times):
    X, y = data
    # 18.25 weights a row, and 75 planned epochs
    network = MLPClassifier(hidden_layer_sizes=(60, 15))
    model = OrtSGDClassifier(network, batch_size=BATCH, max_iter=max_iter, random_state=0)
    model.fit(X, y > 0)
    assert model.eta0_ == pytest.approx(0.02 * times, rel=1e-12)


def test_a_network_goes_along_a_cosine_to_its_end(data):
    model = regressor().fit(*data)
    n_updates = 75 * N_BATCHES
    assert (model.n_iter_, model.t_, model.eta0_) == (75, n_updates, 0.02)
    assert repr(model.optimizer_) == repr(PLANNED)
    np.testing.assert_allclose(
        rates(model), Cosine(n_updates, 0.02).simulate(n_updates)[N_BATCHES - 1 :: N_BATCHES]
    )
    assert model.stopping_reason_ == "The learning rate reached zero after 75 epochs, as planned."


def test_it_is_the_training_that_its_parts_make(data):
    model = regressor().fit(*data)
    same = regressor(
        optimizer=PLANNED,
        learning_rate=Cosine(225, 0.02),
        max_iter=75,
        tol=None,
    ).fit(*data)
    assert model.onnx_.SerializeToString() == same.onnx_.SerializeToString()


class Signs(SGD):
    """One that says nothing of itself."""

    tags = OptimizerTags()

    def update(self, weights, gradient, eta, state, scratch):
        weights -= eta * np.sign(gradient)

    def onnx_update(self):
        return """
signs (weights, gradient, eta) => (next_weights, length) {
    sign = Sign (gradient)
    step = Mul (sign, eta)
    next_weights = Sub (weights, step)
    length = Identity (eta)
}"""


@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant prediction")
@pytest.mark.parametrize(
    ("given", "optimizer", "eta0", "n_iter"),
    [
        ({"max_iter": 8}, Adam(weight_decay=OF_NOISE * 2.5), 0.02, 8),
        ({"eta0": 0.05}, PLANNED, 0.05, 75),
        ({"eta0": 0.001}, PLANNED, 0.001, 75),
        ({"optimizer": "adam"}, Adam(), 0.02, 75),
        ({"optimizer": Adam(beta_1=0.8), "eta0": 0.005, "max_iter": 8}, Adam(beta_1=0.8), 0.005, 8),
        ({"optimizer": "sgd"}, SGD(), 0.2, 75),
        ({"optimizer": Momentum(momentum=0.5)}, Momentum(momentum=0.5), 0.1, 75),
        ({"optimizer": "nesterov", "max_iter": 8}, Nesterov(), 0.02, 8),
        ({"optimizer": Signs(), "max_iter": 8}, Signs(), 0.01, 8),
    ],
)
def test_each_parameter_changes_its_own_part_of_the_plan(data, given, optimizer, eta0, n_iter):
    model = regressor(**given).fit(*data)
    assert (repr(model.optimizer_), model.n_iter_) == (repr(optimizer), n_iter)
    assert model.eta0_ == pytest.approx(eta0, rel=1e-12)
    n_updates = n_iter * N_BATCHES
    np.testing.assert_allclose(
        rates(model), Cosine(n_updates, eta0).simulate(n_updates)[N_BATCHES - 1 :: N_BATCHES]
    )


@pytest.mark.parametrize(
    "given", [{"eta0": 0.02}, {"learning_rate": Cosine(225, 0.02)}, {"optimizer": PLANNED}]
)
def test_what_the_plan_has_changes_nothing_where_it_is_given(data, given):
    ours, theirs = (regressor(**parameters).fit(*data).onnx_ for parameters in ({}, given))
    assert ours.SerializeToString() == theirs.SerializeToString()


@pytest.mark.parametrize(
    ("given", "schedule", "tol"),
    [
        ({"learning_rate": "constant"}, Constant(0.02), None),
        (
            {"learning_rate": "invscaling", "eta0": 0.003, "power_t": 0.5},
            InvScaling(0.003, 0.5),
            None,
        ),
        ({"learning_rate": Constant(0.004), "tol": 1e-4}, Constant(0.004), 1e-4),
        # Its rate falls where the objective no longer does.
        ({"learning_rate": "adaptive"}, Adaptive(0.02), 1e-4),
        (
            {"learning_rate": Warmup(Adaptive(0.01), n_updates=5)},
            Warmup(Adaptive(0.01), n_updates=5),
            1e-4,
        ),
        (
            {"learning_rate": Warmup(Constant(0.01), n_updates=5)},
            Warmup(Constant(0.01), n_updates=5),
            None,
        ),
    ],
)
def test_a_learning_rate_takes_the_place_of_the_cosine_alone(data, given, schedule, tol):
    model = regressor(**given, max_iter=75, n_iter_no_change="auto")
    same = regressor(optimizer=PLANNED, learning_rate=schedule, max_iter=75, tol=tol)
    for each in (model, same, alone := regressor(**given)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            each.fit(*data)
    assert repr(model.optimizer_) == repr(PLANNED)
    assert rates(model) == rates(same) == rates(alone)
    np.testing.assert_allclose(model.predict(data[0]), same.predict(data[0]), rtol=1e-5, atol=1e-6)


def test_a_smaller_rate_learns_what_the_plan_learns():
    X, y = load_digits(return_X_y=True)
    for eta0 in (0.001, 0.005, 0.02, 0.05):
        model = OrtSGDClassifier(MLPClassifier((50,)), eta0=eta0, random_state=0).fit(
            X[:1300], y[:1300]
        )
        assert model.score(X[1300:], y[1300:]) > 0.91


def test_a_linear_model_has_the_parameters_by_their_names(data):
    explicit = OrtSGDRegressor(
        optimizer="sgd",
        learning_rate="adaptive",
        max_iter=1000,
        tol=1e-3,
        batch_size=BATCH,
        random_state=0,
    )
    model = OrtSGDRegressor(batch_size=BATCH, random_state=0).fit(*data)
    np.testing.assert_array_equal(model.coef_, explicit.fit(*data).coef_)
    assert repr(model.optimizer_) == "SGD()"


def test_a_fitted_network_has_a_plan_at_a_part_of_the_rate(data):
    X, y = data
    fitted = MLPRegressor(
        hidden_layer_sizes=(6,), solver="lbfgs", max_iter=2000, random_state=0
    ).fit(X, y)
    share = np.mean((fitted.predict(X) - y) ** 2) / np.var(y)
    assert 0.01 < share < 0.3
    model = OrtSGDRegressor(FrozenEstimator(fitted), early_stopping=False, random_state=0).fit(X, y)
    part = 0.05 / 10 ** model.history_.get("restarts", [0])[-1]
    assert (type(model.optimizer_).__name__, model.eta0_) == (
        "Adam",
        pytest.approx(0.02 * part, rel=1e-2),
    )


@pytest.mark.skipif(
    "session" not in available_solvers(), reason="this runtime has no TrainingSession"
)
@pytest.mark.parametrize("solver", ["session", "module"])
def test_a_solver_that_cannot_do_what_is_asked_refuses(data, solver):
    with pytest.raises(ValueError, match=f'solver="{solver}" has no optimizer=LBFGS'):
        OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(6,), solver="lbfgs"), solver=solver).fit(
            *data
        )
    with pytest.raises(ValueError, match=f'solver="{solver}" has no optimizer=Momentum'):
        regressor(solver=solver, optimizer="momentum").fit(*data)


def test_the_line_of_a_fit_says_which_optimizer_ran(data, capsys):
    regressor(verbose=1, max_iter=3).fit(*data)
    assert capsys.readouterr().err.startswith("3 epochs of Adam in ")


def test_no_warning_tells_of_an_end_that_was_planned(data):
    # A tolerance of zero: the objective falls until the end.
    model = regressor(max_iter=4, tol=0.0).fit(*data)
    assert model.stopping_reason_ == "The learning rate reached zero after 4 epochs, as planned."


def test_a_number_of_epochs_without_an_improvement_ends_the_plan(data):
    X, y = data
    curve = regressor().fit(X, y).loss_curve_
    best, n_bad, n_epochs = np.inf, 0, 0
    while n_bad < 3:
        # A smaller fall than by a thousandth is no improvement.
        n_bad = 0 if curve[n_epochs] <= best * (1 - 1e-3) else n_bad + 1
        best = min(best, curve[n_epochs])
        n_epochs += 1
    model = regressor(n_iter_no_change=3).fit(X, y)
    assert model.n_iter_ == n_epochs < len(curve)
    assert model.loss_curve_ == curve[:n_epochs]
    assert model.stopping_reason_.endswith("for 3 epochs in a row.")
    for never in ({"n_iter_no_change": np.inf}, {"n_iter_no_change": 3, "tol": None}):
        assert regressor(**never).fit(X, y).loss_curve_ == curve


def test_the_planned_cosine_given_back_has_the_same_patience(data):
    X, y = data
    options = {"early_stopping": True, "validation_fraction": 10 / N}
    planned = regressor(**options).fit(X, y)
    given = regressor(learning_rate=Cosine(226, 0.02), **options).fit(X, y)
    np.testing.assert_array_equal(given.predict(X), planned.predict(X))
    # 226 updates are 113 epochs of two batches.
    assert given.plan_.decisions["stopping"].value.n_iter_no_change == 57


def test_early_stopping_ends_the_plan(data):
    model = regressor(early_stopping=True, n_iter_no_change=2, max_iter=200).fit(*data)
    assert model.n_iter_ < 200
    assert "did not improve" in model.stopping_reason_
    X_val, y_val = data[0][:20], data[1][:20]
    model = regressor(early_stopping=True, n_iter_no_change=2).fit(
        data[0][20:], data[1][20:], X_val=X_val, y_val=y_val
    )
    loss = np.mean((model.predict(X_val) - y_val) ** 2) / 2
    assert model.n_iter_ < 75
    # The last epochs are worse by chance.
    assert (
        model.best_validation_score_
        > model.validation_scores_[-1]
        == pytest.approx(-loss, rel=1e-5)
    )


def test_rows_after_the_plan_have_a_constant_rate(data):
    model = regressor().fit(*data)
    for _ in range(2):
        model.partial_fit(*data)
    assert rates(model)[-2:] == [0.001, 0.001]
    assert isinstance(model.optimizer_, Adam)
    model.set_params(eta0=0.002).partial_fit(*data)
    assert (rates(model)[-1], repr(model.optimizer_)[:4]) == (0.002, "Adam")
    model.set_params(learning_rate=Constant(0.003), eta0="auto").partial_fit(*data)
    assert (rates(model)[-1], model.n_iter_) == (0.003, 79)


def test_a_stream_has_a_constant_rate_from_its_first_call_on(data):
    model = regressor()
    for _ in range(3):
        model.partial_fit(*data)
    assert repr(model.optimizer_) == "Adam()"
    np.testing.assert_allclose(rates(model), 0.01)


def test_batches_of_the_user_make_the_updates_of_the_plan(data):
    X, y = data
    batches = [(X[i : i + 20], y[i : i + 20]) for i in range(0, N, 20)]
    model = regressor(batch_size="auto").fit_batches(batches)
    assert (model.n_iter_, model.t_) == (75, 225)
    assert rates(model)[-1] == pytest.approx(Cosine(225, 0.02)(225))


def test_a_resumed_fit_follows_the_same_plan(data, tmp_path):
    class Interrupt:
        def on_epoch_end(self, training):
            if training.n_epochs == 20:
                raise KeyboardInterrupt

    path = tmp_path / "training.npz"
    whole = regressor().fit(*data)
    with pytest.warns(UserWarning, match="interrupted"):
        regressor(callbacks=[Checkpoint(path), Interrupt()]).fit(*data)
    rest = regressor(callbacks=[Checkpoint(resume_from=path)]).fit(*data)
    assert rest.onnx_.SerializeToString() == whole.onnx_.SerializeToString()


@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant prediction")
@pytest.mark.filterwarnings("ignore:.*not clearly better than a constant prediction")
def test_each_candidate_of_a_search_has_its_own_plan(data):
    grid = [{"max_iter": [3, 20], "alpha": [0.0, 0.1]}, {"eta0": [0.001, 0.02, 0.3]}]
    grid.append(
        {
            "learning_rate": ["constant", "auto"],
            "optimizer": ["sgd", "auto", Nesterov(momentum=0.8)],
        }
    )
    search = OrtGridSearchCV(regressor(), grid, cv=2, refit=False).fit(*data)
    for i, parameters in enumerate(search.cv_results_["params"]):
        alone = [
            clone(regressor())
            .set_params(**parameters)
            .fit(data[0][t], data[1][t])
            .score(data[0][v], data[1][v])
            for t, v in ((slice(30, 60), slice(0, 30)), (slice(0, 30), slice(30, 60)))
        ]
        assert search.cv_results_["mean_test_score"][i] == pytest.approx(np.mean(alone), abs=1e-6)


def test_a_smooth_target_without_noise_is_not_stopped_early():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + X[:, 2] * X[:, 3] + 0.5 * X[:, 4] ** 2
    y += 0.02 * rng.normal(size=2000)
    model = OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(50,)), random_state=0).fit(
        X[:1000], y[:1000]
    )
    assert model.score(X[1000:], y[1000:]) > 0.88


def test_a_y_too_far_away_for_the_plan_is_told(data, recwarn):
    X, y = data
    far = y + 1000.0
    with pytest.warns(
        ConvergenceWarning,
        match='not clearly better than a constant prediction: .* Use standardize="auto", or a y',
    ) as caught:
        model = regressor(standardize=False).fit(X, far)
    assert model.score(X, far) < -1000
    # The loss is half of the squared error, whose best constant is the mean.
    assert f"that of the best constant {far.var() / 2:.4g}. " in str(caught[0].message)
    recwarn.clear()
    standardized = regressor().fit(X, far)
    np.testing.assert_allclose(
        standardized.predict(X) - 1000, regressor().fit(X, y).predict(X), atol=1e-3
    )
    assert regressor(standardize=False).fit(X, y).score(X, y) > 0.5
    assert not recwarn


@pytest.mark.parametrize("trainable, is_scaled", [(None, False), (None, True), ("*1", True)])
def test_sgd_on_columns_that_are_not_scaled_has_its_rate_over_their_mean_square(
    data, trainable, is_scaled
):
    X, y = data[0][:101] * [1, 20, 300] + 5, data[1][:101]
    options = {"standardize": "auto" if is_scaled else False, "trainable": trainable}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = regressor(optimizer="sgd", max_iter=2, **options).fit(X, y)
    restarts = model.history_.get("restarts", [0])[-1]
    square = 1.0 if is_scaled else np.mean(X**2)
    assert model.eta0_ == pytest.approx(0.2 / square / 10**restarts)


@pytest.mark.parametrize(
    ("share", "is_fitted", "part"),
    [(1.2, True, 0.05), (0.1, True, 0.05), (0.5, False, 0.05), (0.51, False, 1.0)],
)
def test_a_network_that_knows_something_has_a_small_rate(share, is_fitted, part):
    assert fitted_part(share, is_fitted=is_fitted) == part


@pytest.mark.filterwarnings("ignore:estimator. These parameters .* takes its place")
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"alpha": 0.01},
        {"penalty": "l1", "alpha": 0.001, "optimizer": "sgd", "max_iter": 100, "tol": None},
    ],
)
@pytest.mark.parametrize("is_classifier", [False, True])
def test_columns_of_any_units_are_trained_as_their_standardized_copy(parameters, is_classifier):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X[:, 0] * X[:, 1] + X[:, 2]
    model = OrtSGDRegressor(
        MLPRegressor(hidden_layer_sizes=(10,), alpha=2.0), random_state=0, **parameters
    )
    if is_classifier:
        y = y > 0
        model = OrtSGDClassifier(MLPClassifier((10,), alpha=2.0), random_state=0, **parameters)
    scaled = clone(model).fit(X * [1e-20, 1e-3, 1.0, 1e9], y)
    assert scaled.loss_ == pytest.approx(model.fit(X, y).loss_, rel=1e-4)


def test_a_stream_keeps_the_scales_of_its_first_rows_for_the_penalty(data):
    X, y = data
    model = regressor(optimizer="sgd", learning_rate="constant", eta0=1e-12, alpha=2.0)
    model.partial_fit(X, y)
    with pytest.warns(
        UserWarning, match="standard deviations away from the rows that the stream began with"
    ):
        model.partial_fit(1000 * X, y)
    used = model.standardization_
    np.testing.assert_allclose(used.scale, X.std(axis=0), rtol=1e-6)
    weights = model.weights_
    first = weights["coefficient"] * used.scale[:, None]
    last = weights["coefficient1"] / used.target_scale
    penalty = used.target_scale**2 * 2.0 / 2 * (np.sum(first**2) + np.sum(last**2))
    assert model.history_["objective"][-1] - model.history_["loss"][-1] == pytest.approx(
        penalty, rel=1e-4
    )


@pytest.mark.parametrize(("eta0", "size"), [(1e-9, "small"), (0.5, "large")])
def test_a_network_that_learns_nothing_is_told_on_which_side_eta0_is(eta0, size):
    # The declared rate is 0.02.
    X, y = make_friedman1(1501, n_features=12, noise=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match=f"whether eta0 is too {size}[.]"):
        OrtSGDRegressor(MLPRegressor(), random_state=0, eta0=eta0).fit(X, y)


@pytest.mark.filterwarnings("ignore:On these rows, the fitted model is worse than a constant")
def test_a_rate_of_the_users_schedule_is_that_of_a_fitted_network(data):
    X, y = data
    fitted = MLPRegressor(hidden_layer_sizes=(6,), max_iter=2000, random_state=0).fit(X, y)
    tuning = OrtSGDRegressor(
        FrozenEstimator(fitted), learning_rate=Cosine(50, 0.003), max_iter=2, random_state=0
    )
    assert tuning.fit(X, -y).eta0_ == pytest.approx(0.003)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_large_rate_of_the_user_takes_at_most_half_of_a_weight():
    rng = np.random.RandomState(0)
    rows = rng.normal(size=(403, 20))
    target = rows[:, 0] + rows[:, 1] ** 2 + 2 * rng.normal(size=403)
    network = MLPRegressor(hidden_layer_sizes=(256, 128))

    def decay(**given):
        model = OrtSGDRegressor(network, random_state=0, **given).fit(rows, target)
        return model.plan_.decisions["optimizer"].value.weight_decay

    assert decay(eta0=0.01) == decay()
    assert decay(eta0=0.1) * 0.1 == pytest.approx(0.5)
