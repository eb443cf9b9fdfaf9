"""The plan of a stream: what a change of parameters between its calls leaves in force."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor
from skort.estimators.planning.plan import OpenPlan

X = np.random.default_rng(0).normal(size=(200, 5))
y = X @ [1.0, -1.0, 0.5, 2.0, 0.0] + 0.1 * X[:, 0] ** 2
NETWORK = MLPRegressor(hidden_layer_sizes=(4,))
OF_DATA = ("weights", "scaling", "learning rate", "first rate", "average", "batches", "optimizer")


def reasons(model):
    decisions = model.plan_.decisions
    return {name: decisions[name].because for name in OF_DATA if name in decisions}


@pytest.mark.parametrize("changed", [{"alpha": 0.01}, {"shuffle": False}], ids=str)
@pytest.mark.parametrize("inside", [None, NETWORK, FrozenEstimator(Ridge().fit(X, y))], ids=repr)
def test_another_parameter_leaves_every_decision_that_the_data_took(inside, changed):
    model, same = (OrtSGDRegressor(inside, random_state=0).partial_fit(X, y) for _ in range(2))
    model.set_params(**changed).partial_fit(X, y)
    same.partial_fit(X, y)
    assert reasons(model) == reasons(same)
    here, there = (each.plan_.decisions for each in (model, same))
    assert here.keys() == there.keys()
    assert here["scaling"].value is there["scaling"].value or np.array_equal(
        here["scaling"].value.scale, there["scaling"].value.scale
    )
    assert here["first rate"].value == there["first rate"].value == model.eta0_


@pytest.mark.parametrize("first, n_rows", [("auto", 16), (50, 50)], ids=str)
def test_batches_left_to_skort_again_say_what_they_have(first, n_rows):
    model = OrtSGDRegressor(batch_size=first, random_state=0).partial_fit(X, y)
    for size in (7, "auto"):
        model.set_params(batch_size=size).partial_fit(X, y)
    batches = model.plan_.decisions["batches"]
    assert batches.value == n_rows
    assert batches.because == "the first batches had so many rows"


@pytest.mark.parametrize("inside", [None, NETWORK], ids=repr)
def test_a_stream_after_a_fit_has_the_scales_of_the_fit(inside):
    model = OrtSGDRegressor(inside, optimizer="adam", random_state=0, max_iter=30, tol=None).fit(
        X, y
    )
    scale = model.plan_.decisions["scaling"].value.scale
    model.partial_fit(X, y)
    np.testing.assert_array_equal(model.plan_.decisions["scaling"].value.scale, scale)
    first = model.plan_.decisions["first rate"]
    model.set_params(alpha=0.01).partial_fit(X, y)
    np.testing.assert_array_equal(model.plan_.decisions["scaling"].value.scale, scale)
    assert model.plan_.decisions["first rate"] == first


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_call_after_changed_parameters_makes_one_open_plan(method, monkeypatch):
    made = []
    of = OpenPlan.of
    model = getattr(OrtSGDRegressor(random_state=0), method)(X, y)
    monkeypatch.setattr(OpenPlan, "of", lambda *args, **kw: made.append(args) or of(*args, **kw))
    model.set_params(alpha=0.01).partial_fit(X, y)
    assert len(made) == 1
    model.partial_fit(X, y)
    assert len(made) == 1


def test_a_number_for_eta0_is_told_from_the_call_on_that_has_it():
    model = OrtSGDRegressor(random_state=0).partial_fit(X, y)
    of_rows = "the largest rate at which batches of the first rows are stable"
    falls = "in a stream, the rate is divided by the cube root of 1 + rows seen / columns"
    told, values = [], []
    for eta0 in ("auto", 1e-5, 10.0, "auto"):
        model.set_params(eta0=eta0).partial_fit(X, y)
        told.append(reasons(model)["first rate"])
        decisions = model.plan_.decisions
        values.append(decisions["first rate"].value)
        assert decisions["learning rate"].value.eta0 == values[-1]
        assert reasons(model)["learning rate"] == falls
        assert "average" in model.plan_.decisions
    assert told == [of_rows, "you set it", f"{of_rows}; eta0 is larger", of_rows]
    assert values == [model.eta0_, 1e-5, model.eta0_, model.eta0_]


def test_a_schedule_is_told_while_it_is_given():
    model = OrtSGDRegressor(random_state=0).partial_fit(X, y)
    before = reasons(model)
    model.set_params(learning_rate="constant", eta0=0.001).partial_fit(X, y)
    given = reasons(model)
    assert given["learning rate"] == given["first rate"] == "you set it"
    assert given["scaling"] == before["scaling"]
    assert "average" not in given
    model.set_params(learning_rate="auto", eta0="auto").partial_fit(X, y)
    assert reasons(model) == before
