"""Each rule as a pure function of small numbers, and the plan that shows what was decided."""

import dataclasses
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.common.onnx_text import function
from skort.estimators.planning import epochs, optimizer, rate, scaling, stream
from skort.estimators.planning.decision import RULES, YOURS, sentence
from skort.estimators.planning.epochs import TrainingSize, batch_rows
from skort.estimators.planning.rate import GIVEN_RATE, RateChoice
from skort.estimators.planning.scaling import described
from skort.estimators.planning.table import HEADINGS, MATTERS, rows
from skort.estimators.training.data_source import GivenRows
from skort.estimators.training.read import read_fit
from skort.objective import Huber, Loss, WeightedSum
from skort.schedules import Constant, Cosine, InvScaling

X, y = load_diabetes(return_X_y=True)


def decisions(*calls, **parameters):
    model = OrtSGDRegressor(**{"random_state": 0, **parameters})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y).plan_.decisions


FOUND = RateChoice(is_auto=True, is_found=True)
# The schedule or the optimizer says it.
DECLARED = RateChoice(is_auto=True, is_found=False)
NETWORK = MLPRegressor(hidden_layer_sizes=(3,), random_state=0)


@pytest.mark.parametrize(
    "options, choice",
    [
        # A line search finds the length of each step.
        ({}, GIVEN_RATE),
        ({"optimizer": "sgd"}, FOUND),
        ({"eta0": 0.01}, GIVEN_RATE),
        ({"learning_rate": Constant(0.01)}, GIVEN_RATE),
        ({"learning_rate": "optimal", "alpha": 1.0}, DECLARED),
        ({"estimator": NETWORK}, DECLARED),
        ({"estimator": NETWORK, "optimizer": "sgd"}, FOUND),
    ],
)
def test_who_chooses_the_rate_of_a_fit(options, choice):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = OrtSGDRegressor(max_iter=2, random_state=0, **options).fit(X, y)
    assert model.plan_.rate == choice


@pytest.mark.parametrize(
    "options, choice",
    [
        ({}, FOUND._replace(rows_of_a_step=1, falls=True)),
        ({"batch_size": 7}, FOUND._replace(rows_of_a_step=7, falls=True)),
        ({"eta0": 0.01}, FOUND._replace(rows_of_a_step=1, falls=True, bound=0.01)),
        # With a schedule, rows do not lower the rate; without it, they would again.
        (
            {"eta0": 0.01, "learning_rate": "constant"},
            GIVEN_RATE._replace(rows_of_a_step=1, falls=True),
        ),
        ({"learning_rate": "optimal", "alpha": 1.0}, DECLARED),
        ({"estimator": NETWORK}, FOUND),
        ({"estimator": FrozenEstimator(Ridge().fit(X, y))}, FOUND._replace(rows_of_a_step=1)),
    ],
)
def test_who_chooses_the_rate_of_a_stream_and_which_rows_it_belongs_to(options, choice):
    model = OrtSGDRegressor(random_state=0, **options).partial_fit(X, y)
    assert model.plan_.rate == choice


def test_every_rule_says_what_it_does_in_one_sentence():
    for matter, rules in RULES.items():
        for rule in rules:
            text = sentence(rule)
            assert text.endswith(".") and ". " not in text, (matter, rule.__name__)


def test_a_batch_of_a_size_above_the_rows_is_all_rows():
    size = TrainingSize.of(weight_sum=74.0, n_rows=37, batch_size=200, n_outputs=2)
    assert size == TrainingSize(74.0, 2.0, 37, 2, 1)
    assert size.n_rows == 37
    assert TrainingSize.of(451.0, 451, 200, 1)[2:] == (200, 1, 3)


def test_the_rows_of_a_batch_are_those_of_the_user_or_of_a_rule():
    assert [batch_rows(), batch_rows("auto", is_stream=True)] == [200, 16]
    assert [batch_rows(7), batch_rows(np.int64(7), is_stream=True)] == [7, 7]


@pytest.mark.filterwarnings("ignore:Maximum number of epochs reached")
def test_blocks_of_sparse_rows_have_about_2_to_the_20_values_that_are_not_zero():
    few = scipy.sparse.random(60, 1500, 0.05, format="csr", dtype=np.float32, random_state=0)
    model = OrtSGDRegressor(optimizer="lbfgs", max_iter=2, random_state=0)
    plan = model.fit(few, np.arange(60.0))._result.plan
    assert plan.multiplies_sparse
    # 40 values a row
    many = scipy.sparse.random(40_000, 2000, 0.02, format="csr", dtype=np.float32, random_state=0)
    assert plan.rows_of_batch(many) == 20_000
    # 2^20 / 2000 rows, in blocks of the same size
    assert dataclasses.replace(plan, multiplies_sparse=False).rows_of_batch(many) == 520
    of_user = model.set_params(batch_size=50).fit(few, np.arange(60.0))._result.plan
    assert of_user.rows_of_batch(many) == 50


@pytest.mark.parametrize(
    ("memory", "n_batches", "options", "expected"),
    [
        (1.0, 1, {"is_linear": True}, 30),
        (1.0, 4, {"is_linear": True}, 8),
        (1.0, 100, {"is_linear": True}, 5),
        # Momentum of 0.9: a gradient counts in 10 updates
        (10.0, 2, {"is_linear": False}, 10),
        (10.0, 3, {"is_linear": True, "is_validated": True}, 10),
        (10.0, 3, {"is_linear": False, "is_validated": True, "planned_epochs": 71}, 36),
    ],
)
def test_patience_is_that_of_updates_and_of_epochs(memory, n_batches, options, expected):
    options = {"planned_epochs": None, "is_validated": False, **options}
    assert epochs.patience(memory, n_batches, **options) == expected


def test_what_grows_comes_back_and_begins_again():
    assert epochs.patience_grows("auto", is_validated=False)
    assert not epochs.patience_grows(5, is_validated=False)
    assert not epochs.patience_grows("auto", is_validated=True)
    assert [epochs.keeps_best(is_validated=each) for each in (True, False)] == [True, False]
    assert [epochs.may_restart(is_rate_found=each) for each in (True, False)] == [True, False]


def test_rates_are_those_of_their_formulas():
    assert rate.linear_rate(gain=10.0, stiffness=4.0) == 1 / 40
    assert rate.network_rate(gain=10.0, mean_square=4.0, part=3.0) == pytest.approx(0.015)
    assert stream.stream_linear_rate(0.8, falls=False) == 0.2
    assert stream.stream_linear_rate(0.8, falls=True) == 0.8
    falls = [stream.falling_part(n, 5) for n in (0, 35, 620)]
    assert falls == pytest.approx([1.0, 0.5, 0.2])
    falls = [stream.falling_part(n, 5, most=0.3) for n in (0, 35, 620)]
    assert falls == pytest.approx([0.3, 0.3, 0.2])
    assert [stream.recent_updates(*each) for each in ((4, 16), (5, 16), (5, 1))] == [5, 7, 100]
    assert stream.curvature_factor(0.5, 1 / 8) == 4
    declared = [stream.declared_rate(0.01, n) for n in (2, 16, 200)]
    assert declared == pytest.approx([0.0025, 0.01, 0.01])
    assert stream.fitted_rate(0.01) == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("part", "mean_weight", "expected"),
    [
        (1.0, 20.0, 1),
        (0.3, 20.0, 4),
        (0.3, 2.5, 3),
        (0.3, 1.0, 1),
        (0.3, 0.2, 1),
        (0.01, 900.0, 16),
    ],
)
def test_heavy_rows_come_several_times(part, mean_weight, expected):
    assert stream.heavy_row_copies(part, mean_weight) == expected


def test_linear_models_and_any_model_by_lbfgs_have_a_limit_of_epochs():
    limit = epochs.linear_epochs()
    assert (limit.value, limit.because) == (1000, "a limit: tol ends the training")
    network = MLPRegressor(hidden_layer_sizes=(3,))
    model = OrtSGDRegressor(network, optimizer="lbfgs", random_state=0)
    assert model.fit(np.eye(40), np.arange(40.0)).plan_.decisions["epochs"] == limit


def test_plans_of_networks_are_those_of_their_formulas():
    assert epochs.network_epochs(150, 1, 1).value == 225
    assert repr(optimizer.network_schedule(90, 0.02).value) == repr(Cosine(90, 0.02))
    assert repr(optimizer.at_rate(InvScaling(0.1, 0.5), 0.3)) == repr(InvScaling(0.3, 0.5))
    planned = optimizer.planned_decay(90, 0.02)
    assert optimizer.network_decay(90) == planned
    assert optimizer.network_decay(90, 6.0) == pytest.approx(3 * planned)
    # The part of an update at the first rate is the same at a smaller one.
    assert optimizer.network_decay(90, 18.0) == pytest.approx(4 * 1.5 * planned)
    of_network = optimizer.network_optimizer(optimizer.network_decay(90, 4.0))
    assert optimizer.described(of_network.value, 0.02).endswith("takes 0.1 of each weight")


@pytest.mark.parametrize(
    ("options", "tol", "patience"),
    [
        ({"optimizer": "lbfgs", "tol": 0.1}, None, None),
        ({"optimizer": "sgd", "tol": 0.1}, 0.1, 10),
        ({"optimizer": "sgd", "n_iter_no_change": 7}, 1e-3, 7),
    ],
)
def test_an_optimizer_over_all_rows_decides_itself_when_a_training_ends(options, tol, patience):
    plan = OrtSGDRegressor(random_state=0, **options).fit(X, y).plan_
    assert plan.stopping(3, is_linear=True) == (tol, patience)


@pytest.mark.parametrize(
    ("rows_per_column", "times"),
    [(3.0, 1.0), (400.0, 1.0), (500.0, 1.25), (700.0, 1.75), (1e6, 1.75)],
)
def test_many_rows_a_column_are_trained_on_longer(rows_per_column, times):
    assert epochs.longer(rows_per_column) == times


@pytest.mark.parametrize(
    ("explained", "variances"),
    [
        ([0.0, 0.0], [1.0, 1.0]),
        ([0.2, 0.2], [1.0, 1.0]),
        # (3 + .1) / 1.1 and .1 / 1.1
        ([0.6, 0.0, 0.0], [31 / 11, 1 / 11, 1 / 11]),
        ([0.3, 0.1], [16 / 11, 6 / 11]),
    ],
)
def test_columns_are_as_large_as_they_are_relevant(explained, variances):
    found = scaling.column_relevance(np.array(explained))
    np.testing.assert_allclose(found**2, variances, rtol=1e-12)
    assert np.mean(found**2) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("weights_per_row", "times"),
    [(0.0, 1.0), (2.0, 1.0), (3.0, 1.5), (5.0, 2.5), (8.0, 4.0), (1e4, 4.0)],
)
def test_the_decay_grows_with_the_weights_a_row(weights_per_row, times):
    assert optimizer.decay_growth(weights_per_row) == pytest.approx(times)


@pytest.mark.parametrize(
    ("weights_per_row", "rate"),
    [(0.0, 0.02), (8.0, 0.02), (18.0, 0.02 / 1.5), (32.0, 0.01), (1e4, 0.01)],
)
def test_the_rate_falls_with_the_root_of_many_weights_a_row(weights_per_row, rate):
    assert optimizer.planned_rate(0.02, weights_per_row) == pytest.approx(rate)
    assert optimizer.planned_rate(0.02, weights_per_row, is_short=True) == 0.02


@pytest.mark.parametrize(
    ("noise", "times"), [(0.0, 0.4), (0.1, 0.4), (0.2, 0.5), (0.5, 1.25), (1.0, 2.5), (2.0, 2.5)]
)
def test_the_decay_grows_with_the_noise(noise, times):
    assert optimizer.noise_growth(noise) == pytest.approx(times)
    decision = optimizer.network_optimizer(0.5, noise)
    assert decision.value.weight_decay == 0.5
    assert decision.because.endswith(f"for a noise of y of {noise:.2g}")


@pytest.mark.filterwarnings("ignore:The model is not clearly better than a constant")
@pytest.mark.parametrize("activation", ["tanh", "logistic", "relu"])
@pytest.mark.parametrize("estimator", [OrtSGDRegressor, OrtSGDClassifier])
def test_decay_and_rate_do_not_depend_on_the_weights_in_a_regression_by_curved_units(
    estimator, activation, rng, monkeypatch
):
    monkeypatch.setattr(optimizer, "noise_growth", lambda noise: 1.0)
    X = rng.normal(size=(60, 6))
    kind = MLPRegressor if estimator is OrtSGDRegressor else MLPClassifier
    # 90 * 6 + 90 weights of 60 rows: 10.5 of them a row
    inner = kind(hidden_layer_sizes=(90,), activation=activation)
    # More than half of the planned 225 epochs
    model = estimator(inner, max_iter=120, random_state=0).fit(X, (X[:, 0] > 0).astype(int))
    growth = model.optimizer_.weight_decay / optimizer.planned_decay(120, model.eta0_)
    is_curved = estimator is OrtSGDRegressor and activation != "relu"
    assert growth == pytest.approx(1.0 if is_curved else 4.0)
    assert model.eta0_ == pytest.approx(0.02 if is_curved else 0.02 / (10.5 / 8) ** 0.5)


def test_the_plan_of_a_linear_model():
    found = decisions()
    assert list(found) == [each for each in MATTERS if each in found]
    assert repr(found["optimizer"].value) == "LBFGS()"
    assert found["epochs"].value == 1000
    assert found["stopping"].value == 2e-6
    assert (found["batches"].value, found["weights"].value) == ("all rows", "zeros")
    assert (found["learning rate"].value, found["first rate"].value) == ("none", "none")
    assert not any(each.is_yours for each in found.values())


@pytest.mark.parametrize(
    ("given", "matters"),
    [
        ({}, []),
        ({"optimizer": "adam", "max_iter": 7}, ["optimizer", "epochs"]),
        ({"learning_rate": "constant", "tol": 1e-4}, ["learning rate", "stopping"]),
    ],
)
def test_before_its_model_a_plan_has_what_the_user_decides_on_the_steps_and_the_end(given, matters):
    estimator = OrtSGDRegressor(random_state=0, **given)
    plan = read_fit(estimator, GivenRows(X, y, None)).plan(estimator, None)
    of_model = ("optimizer", "learning rate", "epochs", "stopping")
    assert [matter for matter in of_model if matter in plan.decisions] == matters
    assert all(plan.decisions[matter].is_yours for matter in matters)


def test_the_plan_of_a_linear_model_that_is_trained_by_sgd():
    found = decisions(optimizer="sgd")
    assert found["first rate"].value == (
        OrtSGDRegressor(random_state=0, optimizer="sgd").fit(X, y).eta0_
    )
    assert found["epochs"].value == 1000
    assert (found["stopping"].value.tol, found["stopping"].value.n_iter_no_change) == (1e-3, 10)
    assert (found["batches"].value, found["weights"].value, found["dtype"].value) == (
        200,
        "zeros",
        "float32",
    )
    assert [name for name, each in found.items() if each.is_yours] == ["optimizer"]


@pytest.mark.parametrize(
    ("inside", "given", "expected"),
    [
        (None, "auto", None),
        ("balanced", "auto", ("balanced", "the model inside has them")),
        ({0: 1.0, 1: 3.0}, "auto", ({0: 1.0, 1: 3.0}, "the model inside has them")),
        ("balanced", None, (None, YOURS)),
        (None, {1: 2.0}, ({1: 2.0}, YOURS)),
    ],
)
def test_the_plan_of_a_classifier_has_its_class_weights(inside, given, expected):
    model = OrtSGDClassifier(LogisticRegression(class_weight=inside), class_weight=given)
    found = model.fit(X, y > 140).plan_.decisions.get("class weights")
    assert (found and found[:2]) == expected


def test_a_stream_keeps_the_decision_on_class_weights():
    model = OrtSGDClassifier(class_weight={True: 2.0})
    model.partial_fit(X, y > 140, classes=[False, True])
    model.set_params(class_weight={True: 3.0}).partial_fit(X, y > 140)
    assert model.plan_.decisions["class weights"].value == {True: 3.0}
    assert "class weights {True: 3.0}" in str(model.plan_)


@pytest.mark.parametrize(
    ("parameter", "matter", "value"),
    [
        ({"eta0": 0.01}, "first rate", 0.01),
        ({"batch_size": 50}, "batches", 50),
        ({"max_iter": 7}, "epochs", 7),
        ({"optimizer": "adam"}, "optimizer", None),
        ({"learning_rate": "constant"}, "learning rate", None),
        ({"standardize": False}, "scaling", None),
        ({"solver": "graph"}, "solver", "graph"),
        ({"loss": "huber"}, "loss", None),
        ({"alpha": 0.3}, "penalty", None),
    ],
)
def test_a_parameter_decides_its_own_matter(parameter, matter, value):
    # A lone parameter of steps also decides that SGD makes them.
    given, default = (decisions(**{"optimizer": "sgd", **each}) for each in (parameter, {}))
    assert given[matter].because == YOURS and given[matter].is_yours
    yours = {name for name, each in given.items() if each.is_yours}
    assert yours == {matter, "optimizer"}
    if value is not None:
        assert given[matter].value == value
    # A loss may have scales and a penalty of its own.
    of_loss = {"scaling"} if matter == "loss" else set()
    for name in (
        given.keys() - of_loss - {matter, "first rate", "learning rate", "stopping", "restarts"}
    ):
        assert repr(given[name].value) == repr(default[name].value), name


def test_the_plan_is_a_table_of_what_print_shows():
    model = OrtSGDRegressor(Ridge(), random_state=0, max_iter=50, tol=None).fit(X, y)
    head, *lines = str(model.plan_).splitlines()
    assert head.split("  ")[0] == HEADINGS[0]
    assert max(map(len, lines)) <= 88
    line = next(line for line in lines if line.startswith("epochs"))
    assert line.split() == ["epochs", "at", "most", "50", "you", "set", "it", "max_iter"]
    assert "<td" in model.plan_._repr_html_() and "max_iter" in model.plan_._repr_html_()


def test_functions_of_onnx_have_their_names_in_the_table():
    square = """
        square (score, target) => (loss) {
            residual = Sub (score, target)
            loss = Mul (residual, residual)
        }"""
    parts = WeightedSum([(1.0, Loss(square)), (0.5, Huber(epsilon=1.23456))])
    for loss, value in (
        (Loss(square), "Loss(value='square')"),
        (Loss(function(square, "float32")), "Loss(value='square')"),
        (parts, "WeightedSum(losses=[(1.0, Loss(value='square')), (0.5, Huber(epsilon=1.23))])"),
    ):
        plan = OrtSGDRegressor(loss=loss, max_iter=1, tol=None).fit(X, y).plan_
        assert rows(plan.decisions)[0] == ("loss", value, YOURS, "loss")


def test_the_plan_of_lbfgs_has_no_rate_and_no_batches():
    found = decisions(estimator=Ridge(), optimizer="lbfgs")
    assert (found["learning rate"].value, found["first rate"].value) == ("none", "none")
    assert found["batches"].value == "all rows"


@pytest.mark.parametrize("rows", [X, scipy.sparse.csr_matrix(X)], ids=["dense", "sparse"])
def test_a_pickled_plan_is_the_same_table(rows):
    model = OrtSGDRegressor(random_state=0).fit(rows, y)
    assert str(pickle.loads(pickle.dumps(model)).plan_) == str(model.plan_)


def test_what_happens_later_is_part_of_the_plan():
    # With a few values far from all others, the first trial ends above its beginning.
    rng = np.random.RandomState(2)
    rows = rng.normal(size=(60, 3))
    target = rows @ [1, 2, 3] + 1000 * (rng.rand(60) < 0.1)
    model = OrtSGDRegressor(random_state=0, batch_size=10, max_iter=8, tol=None).fit(rows, target)
    assert model.history_["restarts"][-1] == 1
    assert model.plan_.decisions["restarts"].value == "1"


def test_the_plan_says_which_epoch_was_kept():
    model = OrtSGDRegressor(early_stopping=True, random_state=0).fit(X, y)
    assert model.plan_.decisions["kept"].value in (
        "weights of the best epoch",
        "weights of the last epoch",
    )
    last = len(model.validation_scores_) == np.argmax(model.validation_scores_) + 1
    assert (model.plan_.decisions["kept"].value == "weights of the last epoch") or not last


def test_the_plan_says_why_a_fitted_network_begins_anew():
    network = MLPRegressor(hidden_layer_sizes=(8,), random_state=0, max_iter=5000).fit(
        X, (y - y.mean()) / y.std()
    )
    with pytest.warns(UserWarning, match="New weights are better than the fitted ones"):
        model = OrtSGDRegressor(FrozenEstimator(network), random_state=0).fit(X, y)
    found = model.plan_.decisions["kept"]
    because = "they are better than the fitted ones in cross-validation"
    assert (found.value, found.because) == ("new ones", because)


def test_the_plan_of_a_stream_says_that_it_has_no_end():
    model = OrtSGDRegressor(random_state=0).partial_fit(X, y)
    found = model.plan_.decisions
    assert (found["epochs"].value, found["stopping"].value, found["batches"].value) == (
        "one for each call",
        "never",
        16,
    )
    assert described(found["scaling"].value) == "columns of X (half decorrelated) and y"
    assert found["first rate"].value == pytest.approx(model.eta0_)
    assert "largest rate" in found["first rate"].because
    assert found["learning rate"].because.endswith("rows seen / columns")
    assert found["average"].value == "of recent weights"
    classifier = OrtSGDClassifier(random_state=0).partial_fit(X, y > 0, classes=[False, True])
    because = classifier.plan_.decisions["learning rate"].because
    assert because.endswith("cube root of 1 + rows seen / columns")
    constant = OrtSGDRegressor(learning_rate="constant", random_state=0).partial_fit(X, y)
    # With an l1 term, the steps of both are as they are.
    of_batch = OrtSGDRegressor(batch_size=16, penalty="l1", random_state=0).partial_fit(X, y)
    assert constant.eta0_ == pytest.approx(of_batch.eta0_ / 16 / 4, rel=1e-3)
    assert "quarter" in constant.plan_.decisions["first rate"].because
