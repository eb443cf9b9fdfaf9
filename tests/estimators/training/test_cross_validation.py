"""A fitted model on new rows: it keeps its weights unless others are better in cross-validation."""

import dataclasses
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import BaggingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.planning.fine_tuning import Rise, best_weights, knows_little, says_nothing
from skort.estimators.training import cross_validation
from skort.estimators.training.run import run_fit
from skort.model_selection import OrtGridSearchCV
from skort.networks import TabularNetwork

X, y = load_diabetes(return_X_y=True)
X = 20 * X
OLD = Ridge().fit(X[:300], y[:300])
DIGITS, LABELS = load_digits(return_X_y=True)
STAYS = "The fitted weights stay: others are not clearly better in cross-validation"


def stays(model, *rows, match=STAYS, **weights):
    with pytest.warns(ConvergenceWarning, match=match):
        return model.fit(*rows, **weights)


def decision(model, matter="kept"):
    return tuple(model.plan_.decisions[matter])[:2]


def test_few_rows_like_the_old_ones_leave_the_weights():
    model = stays(OrtSGDRegressor(FrozenEstimator(OLD)), X[300:330], y[300:330])
    np.testing.assert_allclose(model.coef_, OLD.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), OLD.predict(X), rtol=1e-5)
    kept = ("the fitted weights", "others are not clearly better in cross-validation")
    assert decision(model) == kept
    begun = ("fitted ones", "the model has weights that were fitted or given")
    assert decision(model, "weights") == begun


def test_rows_with_another_y_lead_to_their_optimum():
    model = OrtSGDRegressor(FrozenEstimator(OLD)).fit(X[300:], -y[300:])
    new = Ridge().fit(X[300:], -y[300:])
    np.testing.assert_allclose(model.coef_, new.coef_, rtol=1e-3, atol=1e-3)
    assert decision(model)[0] == "trained ones"


def test_without_early_stopping_a_fit_ends_at_the_optimum_of_its_rows():
    model = OrtSGDRegressor(FrozenEstimator(OLD), early_stopping=False).fit(X[300:330], y[300:330])
    new = Ridge().fit(X[300:330], y[300:330])
    np.testing.assert_allclose(model.coef_, new.coef_, rtol=1e-3, atol=1e-2)
    assert "kept" not in model.plan_.decisions


def test_the_folds_are_those_of_plain_cross_validation(monkeypatch):
    found = []
    monkeypatch.setattr(
        cross_validation, "best_weights", lambda rises: found.append(rises) or best_weights(rises)
    )
    rows = slice(300, 340)
    stays(OrtSGDRegressor(FrozenEstimator(OLD), dtype="float64"), X[rows], y[rows])

    order = np.random.RandomState(0).permutation(40)
    rises, constants = np.zeros((2, 40))
    for held_out in np.array_split(order, 5):
        others = np.setdiff1d(order, held_out) + 300
        tested = held_out + 300
        for model, sign in ((Ridge().fit(X[others], y[others]), 0.5), (OLD, -0.5)):
            rises[held_out] += sign * (y[tested] - model.predict(X[tested])) ** 2
        constants[held_out] = 0.5 * (y[tested] - y[others].mean()) ** 2
        constants[held_out] -= 0.5 * (y[tested] - OLD.predict(X[tested])) ** 2
    # The parts of the sum differ by the spread of y in the folds.
    expected = [f(each) for each in (rises, constants) for f in (np.sum, np.linalg.norm)]
    assert found[0]["trained"] == pytest.approx(expected, rel=1e-6)


def test_many_rows_are_held_out_once():
    folds = list(cross_validation._folds(np.arange(10_000)))
    assert [(len(held_out), len(others)) for held_out, others in folds] == [(2000, 8000)]
    sizes = [len(held_out) for held_out, _ in cross_validation._folds(np.arange(2001))]
    assert sizes == [401, 400, 400]


@pytest.mark.parametrize(
    ("trained", "new", "best"),
    [
        ((-2.0, 1.0), (-3.0, 1.5), "new"),
        ((-2.0, 1.0), (-3.0, 2.5), "trained"),
        ((-2.0, 2.0), (-3.0, 3.5), None),
        ((np.nan, 1.0), (3.0, 0.0), None),
        ((np.inf, 0.0), (-np.inf, 0.0), "new"),
        # A constant is better than the fitted weights by more than one standard error, or by less.
        ((-2.0, 2.0, -5.0, 4.0), (-3.0, 3.5, -5.0, 4.0), "new"),
        ((-2.0, 2.0, -5.0, 5.0), (-3.0, 3.5, -5.0, 5.0), None),
        ((2.0, 1.0, -5.0, 4.0), (3.0, 1.0, -5.0, 4.0), None),
        ((-2.0, 2.0, np.nan, np.nan), (3.0, 0.0, -np.inf, 0.0), None),
    ],
)
def test_other_weights_must_lower_the_loss_by_a_standard_error(trained, new, best):
    assert best_weights({"trained": Rise(*trained), "new": Rise(*new)}) == best


def rows_of_a_useless_model():
    """Return a classifier and rows on which it is worse than a constant, and other rows."""
    rng = np.random.RandomState(8)

    def drawn(n_rows, slopes):
        rows = rng.normal(size=(n_rows, 5))
        return rows, rng.random_sample(n_rows) < 1 / (1 + np.exp(-rows @ slopes))

    slopes = np.array([1.0, 0.5, 0.0, 0.0, 0.0])
    old = LogisticRegression().fit(*drawn(500, slopes))
    return old, drawn(40, slopes[::-1]), drawn(4000, slopes[::-1])


def test_a_model_that_is_worse_than_a_constant_leaves_for_any_better_one(monkeypatch):
    found = []
    monkeypatch.setattr(
        cross_validation, "best_weights", lambda rises: found.append(rises) or best_weights(rises)
    )
    old, rows, test = rows_of_a_useless_model()
    model = OrtSGDClassifier(FrozenEstimator(old)).fit(*rows)
    assert decision(model)[0] == "trained ones"
    assert model.score(*test) > old.score(*test) + 0.15

    rise = found[0]["trained"]
    # By the usual rule, the fitted weights would stay.
    assert rise.loss < 0 < rise.loss + rise.error
    assert rise.constant + rise.constant_error < 0


@pytest.mark.parametrize(
    ("counts", "nothing"),
    [
        ([1] * 19, True),
        ([1] * 20, False),
        ([200], True),
        ([59, 1], True),
        ([51, 9], True),
        ([50, 10], False),
        ([51, 3, 3, 3], True),
        ([9, 9, 2], False),
    ],
    ids=str,
)
def test_twenty_rows_say_something_of_which_ten_with_one_y_count(counts, nothing):
    numbers = np.repeat(np.arange(len(counts)), counts)
    for target in (numbers[:, None] / 3, np.eye(len(counts))[numbers]):
        assert says_nothing(target) is nothing


def test_a_network_is_compared_with_new_weights_from_half_the_loss_of_a_constant_on():
    assert [knows_little(share) for share in (0.5, 0.51, np.inf)] == [False, True, True]


@pytest.mark.parametrize("inside", [Ridge(), MLPRegressor(hidden_layer_sizes=(5,))])
def test_fewer_than_twenty_rows_leave_a_fitted_model_as_it_is(inside):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = inside.fit(X[:300], y[:300])
    told = (
        "The fitted weights stay: fewer than 20 rows say nothing, and of rows with the same y only ten "
        r"count\. Here, 19 of 19 rows count\. partial_fit"
    )
    model = stays(OrtSGDRegressor(FrozenEstimator(old)), X[300:319], -y[300:319], match=told)
    np.testing.assert_allclose(model.predict(X), old.predict(X), rtol=1e-4)


@pytest.fixture(scope="module")
def curve():
    """A network of a curve, and a function that draws other rows of it."""
    rng = np.random.RandomState(0)

    def drawn(n_rows):
        rows = rng.normal(size=(n_rows, 3))
        return rows, np.tanh(2 * rows[:, 0]) + rows[:, 1] ** 2 + 0.1 * rng.normal(size=n_rows)

    network = MLPRegressor(hidden_layer_sizes=(30,))
    return OrtSGDRegressor(network, random_state=0).fit(*drawn(2003)).to_sklearn(), drawn


def test_a_network_that_knows_the_rows_keeps_its_weights(curve):
    network, drawn = curve
    rows, target = drawn(153)
    model = stays(OrtSGDRegressor(FrozenEstimator(network), random_state=0), rows, target)
    test = drawn(1001)
    assert model.score(*test) == pytest.approx(network.score(*test), abs=1e-5)


def test_a_network_of_rows_that_have_changed_a_little_is_trained(curve):
    network, drawn = curve
    rows, target = drawn(303)
    model = OrtSGDRegressor(FrozenEstimator(network), random_state=0).fit(rows, target + rows[:, 2])
    assert decision(model)[0] == "trained ones"
    test, y_test = drawn(1001)
    y_test = y_test + test[:, 2]
    assert model.score(test, y_test) > network.score(test, y_test) + 0.2


def test_a_network_of_other_rows_begins_anew_and_is_told(curve):
    network, drawn = curve
    rows, target = drawn(303)
    told = "^New weights are better than the fitted ones in cross-validation .* labels of the rows"
    tuning = OrtSGDRegressor(FrozenEstimator(network), random_state=0)
    with pytest.warns(UserWarning, match=told):
        model = tuning.fit(1000 * rows, 5 + 3 * target)
    assert decision(model)[0] == "new ones"
    test, y_test = drawn(1001)
    assert model.score(1000 * test, 5 + 3 * y_test) > 0.8


@pytest.mark.parametrize(
    "network", [MLPRegressor(hidden_layer_sizes=(30,)), TabularNetwork((30,))], ids=str
)
@pytest.mark.parametrize("scaler", [None, StandardScaler()], ids=str)
def test_the_network_of_an_estimator_of_skort_begins_anew_too(curve, network, scaler):
    _, drawn = curve
    inside = network if scaler is None else make_pipeline(scaler, network)
    old = OrtSGDRegressor(inside, random_state=0).fit(*drawn(503))
    rows, target = drawn(303)
    tuning = OrtSGDRegressor(FrozenEstimator(old), random_state=0)
    with pytest.warns(UserWarning, match="^New weights are better"):
        model = tuning.fit(rows, 5 - 30 * target)

    assert decision(model)[0] == "new ones"
    test, y_test = drawn(1001)
    new = OrtSGDRegressor(network, random_state=0).fit(rows, 5 - 30 * target)
    score = new.score(test, 5 - 30 * y_test)
    assert model.score(test, 5 - 30 * y_test) == pytest.approx(score, abs=0.05)


def test_a_network_of_ids_begins_anew_with_its_embeddings():
    rng = np.random.RandomState(0)
    ids = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer((ids, ["id"]), remainder="passthrough")
    network = make_pipeline(columns, TabularNetwork((8,)))

    def drawn(values):
        rows = pd.DataFrame({"id": list("abcd") * 75, "x": rng.normal(size=300)})
        return rows, rows["id"].map(dict(zip("abcd", values, strict=True))) + rows["x"]

    old = OrtSGDRegressor(network, random_state=0).fit(*drawn([0, 5, 1, 9]))
    rows, target = drawn([90, -50, 10, 0])
    tuning = OrtSGDRegressor(FrozenEstimator(old), random_state=0)
    with pytest.warns(UserWarning, match="^New weights are better"):
        model = tuning.fit(rows, target)
    assert model.score(*drawn([90, -50, 10, 0])) > 0.99


def several_outputs(rows, target):
    return MultiOutputRegressor(MLPRegressor(hidden_layer_sizes=(8,))).fit(
        rows, np.column_stack([target, target])
    )


def bagged(rows, target):
    return BaggingRegressor(MLPRegressor(hidden_layer_sizes=(8,)), n_estimators=2).fit(rows, target)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("fitted", [bagged, several_outputs], ids=["bagged", "several"])
def test_a_model_of_several_networks_has_no_new_weights(curve, fitted):
    _, drawn = curve
    old = fitted(*drawn(153))
    rows, target = drawn(103)
    target = 5 - 9 * target
    if fitted is several_outputs:
        target = np.column_stack([target, target])
    model = OrtSGDRegressor(FrozenEstimator(old), random_state=0).fit(rows, target)
    assert decision(model)[0] == "trained ones"


def test_frozen_weights_are_not_drawn_anew(curve):
    network, drawn = curve
    rows, target = drawn(303)
    tuning = OrtSGDRegressor(FrozenEstimator(network), trainable="*1", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = tuning.fit(1000 * rows, 5 + 3 * target)
    assert decision(model)[0] != "new ones"
    np.testing.assert_allclose(model.weights_["coefficient"], network.coefs_[0], rtol=1e-6)


@pytest.mark.parametrize(
    "parameters",
    [{"early_stopping": False}, {"eta0": 1e-3}, {"optimizer": "sgd"}, {"batch_size": 50}],
    ids=str,
)
def test_who_chooses_the_steps_gets_them(curve, parameters):
    network, drawn = curve
    rows, target = drawn(153)
    tuning = OrtSGDRegressor(FrozenEstimator(network), random_state=0, max_iter=2, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = tuning.fit(rows, target + rows[:, 2])
    assert model.plan_.decisions.get("kept", ("no comparison",))[0] != "trained ones"


def interrupts(*args):
    raise KeyboardInterrupt


def ends_interrupted(*args):
    end = run_fit(*args)
    outcome = dataclasses.replace(end.ending.outcome, error=KeyboardInterrupt())
    return dataclasses.replace(end, ending=end.ending._replace(outcome=outcome))


@pytest.mark.parametrize("run", [interrupts, ends_interrupted], ids=["at once", "after an epoch"])
def test_an_interrupt_of_the_comparison_leaves_the_fitted_weights(curve, monkeypatch, run):
    network, drawn = curve
    rows, target = drawn(53)
    monkeypatch.setattr(cross_validation, "run_fit", run)
    tuning = OrtSGDRegressor(FrozenEstimator(network), random_state=0)
    with pytest.warns(UserWarning) as warned:
        # Trained weights would be far from them.
        model = tuning.fit(rows, -target)
    told = "Training interrupted by the user: the fitted weights stay."
    assert [str(warning.message) for warning in warned] == [told]
    assert decision(model) == ("the fitted weights", "the user interrupted the cross-validation")
    assert model.stopping_reason_ == "The user interrupted the training."
    np.testing.assert_allclose(model.predict(rows), network.predict(rows), rtol=1e-4, atol=1e-4)


def test_rows_of_weight_zero_do_not_count():
    weight = np.repeat([1.0, 0.0], [30, 15])
    wrong = np.r_[y[300:330], -1e4 * y[330:345]]
    model = stays(OrtSGDRegressor(FrozenEstimator(OLD)), X[300:345], wrong, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, OLD.coef_, rtol=1e-6)


@pytest.mark.parametrize("n_others", [0, 1, 9])
def test_nearly_one_target_says_nothing_against_the_model(n_others):
    old = LogisticRegression(max_iter=300).fit(DIGITS[:500], LABELS[:500])
    rows = np.r_[np.flatnonzero(LABELS == 3)[:50], np.flatnonzero(LABELS == 5)[:n_others]]
    model = stays(
        OrtSGDClassifier(FrozenEstimator(old)),
        DIGITS[rows],
        LABELS[rows],
        match=rf"only ten count\. Here, {10 + n_others} of {50 + n_others} rows count\. partial_fit",
    )
    np.testing.assert_array_equal(model.predict(DIGITS), old.predict(DIGITS))


@pytest.mark.parametrize("to_rows", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", [LogisticRegression(max_iter=300), SGDClassifier(random_state=0)])
def test_classifiers_keep_what_they_know(kind, to_rows):
    rows = to_rows(DIGITS / 16)
    old = kind.fit(rows[:1000], LABELS[:1000])
    model = stays(OrtSGDClassifier(FrozenEstimator(old)), rows[1000:1040], LABELS[1000:1040])
    assert model.score(rows[1100:], LABELS[1100:]) == old.score(rows[1100:], LABELS[1100:])


def test_far_columns_keep_their_predictions():
    far = X + 1e4
    old = LinearRegression().fit(far[:300], y[:300])
    model = stays(OrtSGDRegressor(FrozenEstimator(old)), far[300:320], y[300:320])
    np.testing.assert_allclose(model.predict(far), old.predict(far), rtol=1e-3)


def test_a_stream_goes_on_from_the_weights_that_stay():
    model = stays(OrtSGDRegressor(FrozenEstimator(OLD), random_state=0), X[300:330], y[300:330])
    before = model.coef_.copy()
    model.partial_fit(X[300:330], y[300:330])
    changed = np.linalg.norm(model.coef_ - before) / np.linalg.norm(before)
    assert 0.001 < changed < 0.5


def test_a_validation_set_keeps_the_better_weights():
    model = OrtSGDRegressor(FrozenEstimator(OLD), early_stopping=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[300:330], y[300:330], X_val=X[340:], y_val=y[340:])
    of_old = -np.mean((y[340:] - OLD.predict(X[340:])) ** 2) / 2
    assert model.initial_validation_score_ == pytest.approx(of_old, rel=1e-5)
    reached = -np.mean((y[340:] - model.predict(X[340:])) ** 2) / 2
    assert reached == pytest.approx(max(of_old, model.best_validation_score_), rel=1e-4)
    assert reached >= of_old * (1 + 1e-4)


def test_a_search_makes_the_fits_that_grid_search_makes():
    scores = []
    for search in (GridSearchCV, OrtGridSearchCV):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = OrtSGDRegressor(FrozenEstimator(OLD), random_state=0)
            found = search(model, {"alpha": [1e-4, 1e-1]}, cv=3).fit(X[300:345], y[300:345])
        scores.append(found.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(*scores)


def test_what_is_seen_of_a_fit_that_keeps_the_weights_is_theirs(curve):
    network, drawn = curve
    rows, target = drawn(53)
    test, y_test = drawn(201)
    seen = []

    class Look:
        lock = threading.Lock()  # It cannot be copied.

        def on_epoch_end(self, training):
            seen.append(training.trained_model().predict(test))

    tuning = OrtSGDRegressor(FrozenEstimator(network), callbacks=[Look()], random_state=0)
    with pytest.warns(ConvergenceWarning, match=STAYS):
        model = tuning.fit(rows, target, X_val=test, y_val=y_test)
    assert len(seen) == model.n_iter_ == 1
    np.testing.assert_allclose(seen[0], network.predict(test), rtol=1e-4, atol=1e-4)
    loss = np.mean((network.predict(test) - y_test) ** 2) / 2
    assert model.validation_scores_ == pytest.approx([-loss], rel=1e-4)
    assert model.initial_validation_score_ == pytest.approx(-loss, rel=1e-4)


def test_few_rows_of_which_one_is_huge_leave_the_weights(curve):
    network, drawn = curve
    rows, target = drawn(10)
    rows[3] *= 1e6
    told = "The fitted weights stay: fewer than 20 rows say nothing, and of rows with the same"
    model = stays(OrtSGDRegressor(FrozenEstimator(network)), rows, target, match=told)
    np.testing.assert_allclose(model.predict(rows), network.predict(rows), rtol=1e-3)


def test_weights_of_the_user_are_no_fitted_ones():
    model = OrtSGDRegressor(FrozenEstimator(OLD)).fit(X[300:], y[300:], coef_init=np.zeros(10))
    assert "kept" not in model.plan_.decisions
    new = Ridge().fit(X[300:], y[300:])
    np.testing.assert_allclose(model.coef_, new.coef_, rtol=1e-3, atol=1e-3)
