"""
Searches whose candidates are trained together,
against scikit-learn's own over the same estimators.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_wine, make_classification
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.linear_model import HuberRegressor, Lasso
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor, model_selection
from skort.callbacks import EarlyStopping
from skort.model_selection import OrtGridSearchCV, OrtRandomizedSearchCV
from skort.objective import Loss
from skort.optimizers import Momentum
from skort.schedules import Constant
from skort.solvers import available_solvers

GRID = {"alpha": [1e-4, 1e-2], "eta0": [0.02, 0.05]}
FIXED = {
    "learning_rate": "constant",
    "eta0": 0.02,
    "tol": None,
    "max_iter": 6,
    "random_state": 0,
    "batch_size": 16,
}

OWN_LOSS = Loss("""
value (score, target) => (loss) {
    half = Constant <value = float {0.5}> ()
    residual = Sub (score, target)
    square = Mul (residual, residual)
    loss = Mul (half, square)
}""")


@pytest.fixture
def data(rng):
    X = rng.normal(size=(103, 5)) * [1, 2, 3, 0.5, 1] + [0, 1, -1, 0, 5]
    return X, X @ [1.0, -0.5, 0.2, 0, 0] + np.abs(X[:, 1]) + 0.1 * rng.normal(size=103)


def both(estimator, grid, X, y, *, cv=3, fit=None, **options):
    """Return our search and scikit-learn's, fitted."""
    searches = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for search in (OrtGridSearchCV, GridSearchCV):
            splitter = KFold(cv, shuffle=True, random_state=1) if isinstance(cv, int) else cv
            searches.append(
                search(estimator, grid, cv=splitter, **options).fit(X, y, **(fit or {}))
            )
    return searches


def assert_same(ours, theirs, n_together):
    assert ours.n_fits_together_ == n_together
    assert ours.cv_results_.keys() == theirs.cv_results_.keys()
    for name, values in theirs.cv_results_.items():
        if name.endswith("_time"):
            continue
        if name.startswith(("split", "mean_", "std_")):
            np.testing.assert_allclose(
                ours.cv_results_[name], values, rtol=1e-5, atol=1e-5, err_msg=name
            )
        elif not name.startswith("rank"):
            assert list(ours.cv_results_[name]) == list(values)
    assert ours.best_params_ == theirs.best_params_


def regressor(hidden=(), **options):
    model = MLPRegressor(hidden_layer_sizes=hidden) if hidden else None
    return OrtSGDRegressor(model, **{**FIXED, **options})


def classifier(hidden=(), **options):
    model = MLPClassifier(hidden_layer_sizes=hidden, activation="tanh") if hidden else None
    return OrtSGDClassifier(model, **{**FIXED, **options})


UPDATES = [
    {"penalty": "l2"},
    {"penalty": "l1"},
    {"penalty": "elasticnet", "l1_ratio": 0.5, "optimizer": "momentum"},
    {"penalty": "l2", "optimizer": "nesterov"},
    {"penalty": "l2", "optimizer": "adam"},
    {"penalty": None},
    {"penalty": "l2", "learning_rate": "invscaling"},
    {"penalty": "l2", "standardize": False},
    {"penalty": "l2", "standardize": False, "eta0": "auto"},
    {"penalty": "l2", "loss": "huber", "epsilon": 0.5, "dtype": "float64"},
    {"penalty": "l2", "shuffle": False, "batch_size": 1000},
]


# Folds of 103 rows differ in size, and an epoch ends with a short batch.
@pytest.mark.filterwarnings("ignore:.*alpha=.* has no effect")
@pytest.mark.parametrize("hidden", [(), (6,), (6, 4)], ids=["linear", "one layer", "two layers"])
@pytest.mark.parametrize("options", UPDATES, ids=str)
def test_regressors_have_the_scores_of_single_fits(data, hidden, options):
    # Folds are made together, so that each of 3 folds counts all 4 candidates.
    assert_same(*both(regressor(hidden, **options), GRID, *data), 12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch_size, n_together", [(16, 6), (54, 0), (200, 0)])
def test_adam_on_one_batch_makes_no_other_steps_of_rounding_errors(
    rng, dtype, batch_size, n_together
):
    X = rng.normal(size=(80, 1))
    y = X[:, 0] + 0.3 * rng.normal(size=80)
    # A fold has 53 or 54 rows. The gradient of the intercept is zero but for rounding.
    model = OrtSGDRegressor(
        penalty="l2",
        optimizer="adam",
        dtype=dtype,
        batch_size=batch_size,
        max_iter=5,
        tol=None,
        random_state=0,
    )
    assert_same(*both(model, {"alpha": [0.01, 0.02]}, X, y), n_together)
    network = clone(model).set_params(estimator=MLPRegressor(hidden_layer_sizes=(4,)))
    assert both(network, {"alpha": [0.01, 0.02]}, X, y)[0].n_fits_together_ == 6


# With its weight decay and its rate of each candidate, which both depend on the number of epochs.
@pytest.mark.parametrize(
    "grid", [{"alpha": [1e-4, 1e-2, 1.0]}, {"max_iter": [5, 8, 30], "alpha": [1e-4]}], ids=str
)
def test_networks_are_trained_by_their_default_optimizer(data, grid):
    model = OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(6,)), dtype="float64", random_state=0)
    assert_same(*both(model, grid, *data), 9)
    assert_same(*both(model.set_params(early_stopping=True), grid, *data), 9)


@pytest.mark.parametrize("hidden", [(), (6,)], ids=["linear", "network"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "options", [{}, {"optimizer": "adam"}, {"class_weight": "balanced"}], ids=str
)
def test_classifiers_have_the_scores_of_single_fits(data, hidden, n_classes, options):
    X, y = data
    labels = np.array(["no", "yes", "often"])[
        np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y)
    ]
    search = both(
        classifier(hidden, penalty="l2", **options), GRID, X, labels, scoring="neg_log_loss"
    )
    assert_same(*search, 12)


def test_hinge_and_several_outputs(data):
    X, y = data
    assert_same(*both(classifier(loss="hinge"), GRID, X, y > np.median(y), scoring="roc_auc"), 12)
    assert_same(
        *both(regressor((6,), penalty="l2"), GRID, X, np.stack([y, -y, X[:, 0]], axis=1)), 12
    )


def test_numbers_of_losses_optimizers_schedules_and_epochs_may_differ(data):
    grid = [
        {"loss": ["huber"], "epsilon": [0.1, 1.0], "max_iter": [6], "n_iter_no_change": [2]},
        {"loss": ["epsilon_insensitive"], "epsilon": [0.1, 1.0], "max_iter": [3, 6]},
        {"optimizer": [Momentum(momentum=0.5), Momentum(momentum=0.9)], "eta0": [0.01, 0.02]},
        {"learning_rate": [Constant(0.01), "invscaling", "adaptive"], "alpha": [1e-3, 1e-1]},
    ]
    assert_same(*both(regressor(penalty="l2"), grid, *data), 3 * 16)


def test_candidates_stop_by_themselves_and_lower_their_rates(data):
    model = regressor(penalty="l2", learning_rate="adaptive", max_iter=300, tol=1e-3)
    ours, theirs = both(model, {"alpha": [1e-4, 1.0], "eta0": [0.01, 0.05, 0.2]}, *data)
    assert_same(ours, theirs, 18)


def test_automatic_rates_and_strong_penalties(data):
    # An l2 term of 100 needs implicit steps, which those of 0.01 do not: they are another group.
    grid = {"alpha": [1e-2, 1e-3, 100.0, 200.0]}
    assert_same(*both(regressor(penalty="l2", eta0=0.05, max_iter=20), grid, *data), 12)
    # With a rate from the data they begin again at a lower one, each by itself.
    assert_same(*both(regressor(penalty="l2", eta0="auto", max_iter=20), grid, *data), 6)
    rows, _ = next(KFold(3, shuffle=True, random_state=1).split(data[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        strong = regressor(penalty="l2", eta0="auto", max_iter=20, alpha=100.0).fit(
            data[0][rows], data[1][rows]
        )
    assert strong.history_["restarts"][-1] > 0


def test_sample_weights_train_scores_and_several_metrics(data, rng):
    X, y = data
    weight = rng.uniform(size=len(y)) * (rng.uniform(size=len(y)) > 0.1)
    options = {
        "scoring": ["r2", "neg_mean_absolute_error"],
        "refit": "r2",
        "return_train_score": True,
    }
    ours, theirs = both(
        regressor(penalty="l2"), GRID, X, y, fit={"sample_weight": weight}, **options
    )
    assert_same(ours, theirs, 12)
    np.testing.assert_allclose(ours.best_estimator_.coef_, theirs.best_estimator_.coef_, rtol=1e-6)


@pytest.mark.parametrize("hidden", [(), (6,)], ids=["linear", "one layer"])
@pytest.mark.parametrize(
    "options", [{}, {"scoring": "neg_mean_absolute_error", "validation_fraction": 0.3}], ids=str
)
def test_early_stopping(data, hidden, options):
    model = regressor(
        hidden, early_stopping=True, tol=1e-4, max_iter=30, dtype="float64", **options
    )
    assert_same(*both(model, GRID, *data), 12)
    X, y = data
    model = classifier(hidden, early_stopping=True, tol=1e-4, max_iter=30, dtype="float64")
    assert_same(*both(model, GRID, X, np.digitize(y, np.quantile(y, [0.3, 0.7]))), 12)


def test_early_stopping_in_a_pipeline_with_sample_weights(data, rng):
    fit = {"sample_weight": rng.integers(0, 3, 103)}
    model = regressor(early_stopping=True, dtype="float64", tol=1e-4, max_iter=30)
    assert_same(*both(model, GRID, *data, fit=fit), 12)
    model = OrtSGDRegressor(
        make_pipeline(StandardScaler(), Lasso()), early_stopping=True, random_state=0, max_iter=9
    )
    assert_same(*both(model, {"tol": [1e-3, 1e-2]}, *data), 6)


def test_a_scorer_that_fails_fails_in_each_fit(data):
    model = regressor(early_stopping=True, scoring=_failing)
    with pytest.raises(ValueError, match="no such score"):
        OrtGridSearchCV(model, GRID, error_score="raise").fit(*data)


def _failing(estimator, X, y):
    raise ValueError("no such score")


def test_rows_that_do_not_count_are_in_no_batch(data):
    """A penalty is shared among the batches of an epoch, which are those of the rows that count."""
    fit = {"sample_weight": np.arange(103) % 4 == 0}
    model = regressor(penalty="elasticnet", batch_size=5, dtype="float64")
    assert_same(*both(model, {"alpha": [0.1, 0.5], "l1_ratio": [0.2, 0.8]}, *data, fit=fit), 12)


def test_a_loss_of_the_users_own(data):
    # In units of y the gradient is not that of the standardized y, which a step of several has.
    model = regressor(penalty="l2", loss=OWN_LOSS)
    assert_same(*both(model, GRID, *data), 0)
    assert_same(*both(clone(model).set_params(standardize=False), GRID, *data), 12)


def test_sparse_rows(data):
    X, y = data
    sparse = scipy.sparse.csr_matrix(X * (np.abs(X) > 0.5))
    assert_same(*both(regressor(penalty="l2"), GRID, sparse, y), 12)


def test_pipelines_around_and_inside(data):
    around = make_pipeline(StandardScaler(), regressor((6,), penalty="l2"))
    grid = {f"ortsgdregressor__{name}": values for name, values in GRID.items()}
    assert_same(*both(around, grid, *data), 12)
    # Other steps make other rows: those of each are trained together.
    around = make_pipeline(QuantileTransformer(n_quantiles=9), regressor((6,), penalty="l2"))
    shapes = {"quantiletransformer__output_distribution": ["uniform", "normal"]}
    assert_same(*both(around, {**grid, **shapes}, *data), 24)
    inside = OrtSGDRegressor(
        make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(6,))), **FIXED
    )
    assert_same(*both(inside, GRID, *data), 12)


def test_a_diverging_candidate_is_trained_alone_and_harms_no_other(data):
    model, grid = regressor(penalty="l2", standardize=False), {"eta0": [0.01, 0.02, 1e3, 0.005]}
    with (
        pytest.warns(FitFailedWarning, match="3 fits failed out of a total of 12"),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "One or more of the test scores")
        ours, theirs = both(model, grid, *data, error_score=np.nan)
    assert_same(ours, theirs, 9)
    assert np.isnan(ours.cv_results_["mean_test_score"]).tolist() == [False, False, True, False]


def test_a_training_that_ends_no_better_is_found(data, rng):
    X, _ = data
    # Noise: whether the last epoch is better than the first batch is known after an epoch of the
    # initial weights only.
    model = regressor(penalty="l2", batch_size=5, eta0=0.3, standardize=False)
    ours, theirs = both(
        model, {"alpha": [1e-4, 1e-3], "eta0": [0.02, 0.0001]}, X, rng.normal(size=len(X))
    )
    assert_same(ours, theirs, ours.n_fits_together_)
    # The others were made alone.
    assert 0 < ours.n_fits_together_ < 12


def _falling(t):
    return 0.1 / t


def _steady(t):
    return 0.01


NOT_TOGETHER = {
    "one candidate": (regressor(), {"alpha": [1e-3]}),
    "callbacks": (regressor(callbacks=[EarlyStopping("loss")]), GRID),
    "average": (regressor(average=True), GRID),
    "clipping": (regressor(max_grad_norm=1.0), GRID),
    "agent": (regressor(solver="agent"), GRID),
    "learning_rate": (
        regressor().set_params(eta0="auto"),
        {"learning_rate": [_falling, _steady]},
    ),
    "generator": (regressor(random_state=np.random.RandomState(0)), GRID),
    "shape": (
        regressor(),
        {"estimator": [None, MLPRegressor(hidden_layer_sizes=(2,))], "batch_size": [16, 32]},
    ),
    "model": (OrtSGDRegressor(Lasso(), **FIXED), {"estimator__fit_intercept": [True, False]}),
    "weights of the loss": (OrtSGDRegressor(HuberRegressor(), **FIXED), GRID),
}


@pytest.mark.parametrize("case", NOT_TOGETHER)
def test_what_cannot_be_trained_together_is_fitted_one_by_one(data, case):
    estimator, grid = NOT_TOGETHER[case]
    if case == "agent" and case not in available_solvers():
        pytest.skip("this runtime has no solver 'agent'")
    assert_same(*both(estimator, grid, *data), 0)


@pytest.mark.parametrize(
    "model", [Lasso(), MLPRegressor(hidden_layer_sizes=(3,)), make_pipeline(PCA(2), Lasso())]
)
def test_the_penalty_of_the_model_inside_may_differ(data, model):
    inside = model.steps[-1][0] + "__" if hasattr(model, "steps") else ""
    grid = {f"estimator__{inside}alpha": [0.01, 0.1], "eta0": [0.01, 0.02]}
    ours, theirs = both(OrtSGDRegressor(model, **FIXED), grid, *data)
    assert_same(ours, theirs, 12)
    best = ours.best_estimator_.to_sklearn()
    best = best.steps[-1][1] if hasattr(best, "steps") else best
    assert best.alpha == ours.best_params_[f"estimator__{inside}alpha"]


def test_several_jobs_fit_one_by_one_and_say_so(data):
    with pytest.warns(UserWarning, match="^OrtGridSearchCV trains no fits together in 2 jobs"):
        assert_same(*both(regressor(penalty="l2"), GRID, *data, n_jobs=2), 0)


def test_several_jobs_are_no_matter_for_fits_that_go_alone(data):
    # Warnings are errors.
    both(regressor(), {"batch_size": [10, 20]}, *data, n_jobs=2)


def test_an_invalid_candidate_fails_alone(data):
    with pytest.warns(FitFailedWarning, match="3 fits failed"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "One or more of the test scores")
        ours, theirs = both(regressor(penalty="l2"), {"alpha": [-1.0, 1e-3, 1e-2]}, *data)
    assert_same(ours, theirs, 6)
    with pytest.raises(ValueError, match="alpha"):
        OrtGridSearchCV(regressor(), {"alpha": [-1.0, 1e-3]}, error_score="raise").fit(*data)
    with pytest.raises(ValueError, match="Invalid parameter 'beta'"):
        OrtGridSearchCV(regressor(), {"beta": [-1.0, 1e-3]}, error_score="raise").fit(*data)


def test_without_a_seed_the_candidates_of_a_fold_share_one(data):
    X, y = data
    search = OrtGridSearchCV(regressor((4,), random_state=None), {"alpha": [0.0, 1e-30]}, cv=2).fit(
        X, y
    )
    # The penalties are none and nearly none: they differ in their steps, and are fitted one by one.
    assert search.n_fits_together_ == 0
    search = OrtGridSearchCV(
        regressor((4,), random_state=None), {"alpha": [1e-31, 1e-30]}, cv=2
    ).fit(X, y)
    scores = np.array([search.cv_results_[f"split{i}_test_score"] for i in range(2)])
    np.testing.assert_allclose(scores[:, 0], scores[:, 1], rtol=1e-5)


def test_fitted_candidates_are_those_of_single_fits(data):
    """A scorer sees estimators with everything that a fit leaves."""
    X, y = data
    seen = []

    def scorer(estimator, X, y):
        seen.append(estimator)
        return estimator.score(X, y)

    model = regressor((6,), optimizer="momentum", penalty="l2", tol=1e-3, learning_rate="adaptive")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        OrtGridSearchCV(model, GRID, cv=KFold(2), scoring=scorer, refit=False).fit(X, y)
        made, (rows, _) = seen[-1], [*KFold(2).split(X)][1]
        alone = regressor(
            (6,), optimizer="momentum", penalty="l2", tol=1e-3, learning_rate="adaptive"
        )
        alone.set_params(alpha=1e-2, eta0=0.05).fit(X[rows], y[rows])
    assert made.get_params(deep=False).keys() == alone.get_params(deep=False).keys()
    assert vars(made).keys() == vars(alone).keys()
    for name in ("n_iter_", "t_", "eta0_", "solver_", "n_features_in_"):
        assert getattr(made, name) == getattr(alone, name), name
    assert made.history_.keys() == alone.history_.keys()
    for name in ("loss_curve_", "loss_", "best_loss_"):
        np.testing.assert_allclose(getattr(made, name), getattr(alone, name), rtol=1e-5)
    for name, weights in alone.weights_.items():
        np.testing.assert_allclose(made.weights_[name], weights, rtol=1e-4, atol=1e-5)
    # Both go on in the same way.
    made, alone = (model.partial_fit(X, y) for model in (made, alone))
    np.testing.assert_allclose(made.predict(X), alone.predict(X), rtol=1e-4, atol=1e-4)


def test_a_converging_search_says_how_many_fits_were_made_together(data, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        OrtGridSearchCV(regressor(penalty="l2"), GRID, cv=2, verbose=1).fit(*data)
    assert "\n8 of these fits were trained together with others" in capsys.readouterr().out


def test_equal_warnings_of_candidates_are_one_that_counts(data):
    model = regressor(penalty="l2", tol=1e-6)
    with pytest.warns(ConvergenceWarning, match="Maximum number of epochs") as caught:
        OrtGridSearchCV(model, GRID, cv=2).fit(*data)
    of_fits, of_refit = (w for w in caught if w.category is ConvergenceWarning)
    assert str(of_fits.message).startswith("8 fits: Maximum number of epochs")
    assert str(of_refit.message).startswith("Maximum number of epochs")
    assert of_fits.filename == of_refit.filename == __file__


@pytest.mark.parametrize("cv, total", [(2, 8), (KFold(3), 12), ([(range(20), range(20, 40))], 4)])
@pytest.mark.parametrize("average", [False, True])
def test_a_bar_moves_with_fits_made_together_or_alone(data, monkeypatch, cv, total, average):
    class Bar:
        n, is_open = 0, True

        def update(self, n):
            self.n += n

        def close(self):
            self.is_open = False

    bars = []

    def bar(total, unit):
        bars.append((total, unit, Bar()))
        return bars[-1][-1]

    monkeypatch.setattr(model_selection, "bar", bar)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Fits with `average` are made alone.
        model = regressor(penalty="l2", average=average)
        search = OrtGridSearchCV(model, GRID, cv=cv, verbose=1).fit(*data)
    ((shown, unit, made),) = bars
    assert (shown, unit, made.n, made.is_open) == (total, "fit", total, False)
    assert not hasattr(search, "_bar")


@pytest.mark.parametrize("hidden", [(), (4,)])
@pytest.mark.parametrize("n_iter", [1, 5])
def test_a_randomized_search_draws_and_scores_the_candidates_of_scikit_learns(data, hidden, n_iter):
    distributions = {"alpha": loguniform(1e-5, 1e-1), "eta0": [0.02, 0.05]}
    model = regressor(hidden, penalty="l2", dtype="float64")
    ours, theirs = (
        search(model, distributions, n_iter=n_iter, cv=KFold(3), random_state=7).fit(*data)
        for search in (OrtRandomizedSearchCV, RandomizedSearchCV)
    )
    assert_same(ours, theirs, 0 if n_iter == 1 else 15)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-12
    )


def test_callbacks_of_scikit_learn_that_see_each_fit_are_said(data):
    callback = pytest.importorskip("sklearn.callback")

    class Watch:
        def __init__(self, depth):
            self.max_propagation_depth = depth
            self.began = []

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            self.began.append(context.task_name)

        def on_fit_task_end(self, estimator, context):
            return False

    assert isinstance(Watch(1), callback.AutoPropagatedCallback)
    search = OrtGridSearchCV(regressor(penalty="l2"), {"alpha": [0.01, 0.02]}, cv=2)
    with pytest.warns(UserWarning, match="OrtGridSearchCV trains no fits together: a callback"):
        search.set_callbacks(watch := Watch(1)).fit(*data)
    assert search.n_fits_together_ == 0
    # Also those of the refit.
    assert watch.began.count("epoch") == 5 * FIXED["max_iter"]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.set_callbacks(watch := Watch(0)).fit(*data)
    assert search.n_fits_together_ == 4
    assert "epoch" not in watch.began


@pytest.mark.parametrize(
    "search, argument, told",
    [
        (OrtGridSearchCV, "n_iter", "OrtRandomizedSearchCV has it."),
        (OrtGridSearchCV, "param_distributions", "OrtRandomizedSearchCV has it."),
        (OrtRandomizedSearchCV, "param_grid", "OrtGridSearchCV has it."),
        (OrtGridSearchCV, "socring", "Did you mean scoring?"),
    ],
)
def test_an_argument_of_another_search_is_named(search, argument, told):
    with pytest.raises(TypeError) as raised:
        search(OrtSGDRegressor(), **{argument: 3})
    assert str(raised.value) == (
        f"{search.__name__}() got an unexpected keyword argument {argument!r}. {told}"
    )
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        search(OrtSGDRegressor())


@pytest.mark.parametrize("search", [OrtGridSearchCV, OrtRandomizedSearchCV])
@pytest.mark.parametrize("around", [lambda model: model, make_pipeline])
def test_a_search_without_an_estimator_of_skort_says_that_nothing_is_shared(search, around):
    X = np.random.RandomState(0).normal(size=(60, 3))
    model = around(Lasso())
    name = "alpha" if isinstance(model, Lasso) else "lasso__alpha"
    options = {"n_iter": 2} if search is OrtRandomizedSearchCV else {}
    with pytest.warns(UserWarning, match=f"{search.__name__} trains no fits together: its est"):
        found = search(model, {name: [0.01, 1.0]}, cv=3, **options).fit(X, X[:, 0])
    assert (found.n_fits_together_, found.best_params_) == (0, {name: 0.01})


def test_a_search_whose_grid_has_the_estimators_of_skort_says_nothing(recwarn):
    X = np.random.RandomState(0).normal(size=(60, 3))
    pipeline = make_pipeline(StandardScaler(), Lasso())
    grid = {"lasso": [OrtSGDRegressor(penalty="l2", alpha=alpha) for alpha in (0.01, 1.0)]}
    assert OrtGridSearchCV(pipeline, grid, cv=3).fit(X, X[:, 0]).n_fits_together_ == 6
    assert not recwarn


def scores_of_both(model, grid, X, y, cv):
    """Return the scores of scikit-learn's search and of ours, by candidate."""
    return [
        search.cv_results_["mean_test_score"]
        for search in both(model, grid, X, y, cv=cv, scoring="neg_log_loss", refit=False)
    ]


def test_in_float64_the_scores_of_networks_are_equal():
    X, y = make_classification(300, 10, n_informative=6, random_state=0)
    network = MLPClassifier(hidden_layer_sizes=(50, 50))
    grid = {"alpha": [1e-5, 1e-3]}
    for dtype, difference in (("float64", 1e-10), ("float32", 0.02)):
        model = OrtSGDClassifier(network, random_state=0, dtype=dtype)
        ours, theirs = scores_of_both(model, grid, X, y, cv=2)
        np.testing.assert_allclose(ours, theirs, atol=difference)


def test_a_joint_fit_with_a_small_l1_penalty_ends_at_its_optimum_too():
    X, y = load_wine(return_X_y=True)
    folds = list(StratifiedKFold(5).split(X, y))[2:3]
    model = OrtSGDClassifier(penalty="l1", random_state=0, dtype="float64")
    ours, theirs = scores_of_both(model, {"alpha": [1e-4, 1e-2]}, X, y, cv=folds)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert ours == pytest.approx([-0.1196, -0.1457], abs=5e-4)


def test_values_of_a_search_without_a_name_are_told():
    with pytest.raises(
        TypeError, match="takes only estimator, param_grid without a name, and got 1"
    ):
        OrtGridSearchCV(OrtSGDClassifier(), {"alpha": [1.0]}, "accuracy")


def test_a_search_says_what_reads_a_file_and_what_has_an_attribute(data):
    search = OrtGridSearchCV(OrtSGDRegressor(max_iter=2, tol=None), {"alpha": [1.0]}, cv=2)
    for each in (OrtGridSearchCV, OrtRandomizedSearchCV, search):
        with pytest.raises(
            AttributeError, match=r"'load': pickle or joblib keep and read a search\.$"
        ):
            each.load("search.pkl")
    assert not hasattr(search, "load") and "load" not in dir(search)
    with pytest.raises(AttributeError, match=r"'best_score_': the search is not fitted yet\.$"):
        search.best_score_  # noqa: B018
    there = r"'coefs_': ask search\.best_estimator_\. There, weights_ has all weights by name\.$"
    with pytest.raises(AttributeError, match=there):
        search.coefs_  # noqa: B018
