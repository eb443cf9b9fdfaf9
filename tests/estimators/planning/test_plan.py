"""Settings: what the parameters of an estimator stand for, names and instances alike."""

import copy
import pickle
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.common.component import resolved
from skort.estimators import literals
from skort.estimators.planning.plan import snapshot
from skort.objective.loss import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from skort.objective.penalties import PENALTIES
from skort.optim.optimizers import OPTIMIZERS, SGD, Adam, Momentum, Nesterov
from skort.optim.schedules import SCHEDULES, Adaptive, Constant, Cosine, InvScaling, Optimal, Warmup
from skort.solvers import ON_REQUEST, SOLVERS


@pytest.fixture
def data(rng):
    X = rng.normal(size=(60, 3))
    return X, X @ [1.0, 2.0, 3.0] + 4 + 0.1 * rng.normal(size=60)


def fitted(data, **parameters):
    # The rate of an instance is a number, as this one.
    options = {"learning_rate": "constant", "eta0": 0.01, **parameters}
    if not isinstance(options["learning_rate"], str):
        del options["eta0"]
    return OrtSGDRegressor(batch_size=10, max_iter=3, tol=None, random_state=0, **options).fit(
        *data
    )


@pytest.mark.parametrize(
    "by_name, instance",
    [
        ({"optimizer": "sgd"}, {"optimizer": SGD()}),
        ({"optimizer": "momentum"}, {"optimizer": Momentum()}),
        ({"optimizer": "nesterov"}, {"optimizer": Nesterov()}),
        ({"optimizer": "adam"}, {"optimizer": Adam()}),
        ({"learning_rate": "constant", "eta0": 0.02}, {"learning_rate": Constant(0.02)}),
        (
            {"learning_rate": "invscaling", "power_t": 0.5},
            {"learning_rate": InvScaling(power_t=0.5)},
        ),
        ({"learning_rate": "optimal", "alpha": 2.0}, {"learning_rate": Optimal(2.0), "alpha": 2.0}),
        ({"learning_rate": "adaptive"}, {"learning_rate": Adaptive()}),
        ({"eta0": 0.05}, {"learning_rate": lambda t: 0.05}),
        (
            {"learning_rate": "invscaling", "eta0": 0.5, "power_t": 1},
            {"learning_rate": lambda t: np.float64(0.5) / t},
        ),
    ],
)
def test_a_name_and_its_instance_are_the_same(by_name, instance, data):
    np.testing.assert_array_equal(fitted(data, **by_name).coef_, fitted(data, **instance).coef_)


def test_grid_search_reaches_into_components(data):
    model = OrtSGDRegressor(
        optimizer=Momentum(), learning_rate=Warmup(Cosine(30)), max_iter=5, tol=None
    )
    grid = {
        "optimizer__momentum": np.array([0.5, 0.9]),
        "learning_rate__schedule__eta0": [0.01, 0.1],
    }
    search = GridSearchCV(model, grid, cv=2).fit(*data)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_estimator_.optimizer.momentum == search.best_params_["optimizer__momentum"]
    assert "optimizer=Momentum(momentum=0.5)" in repr(
        clone(model).set_params(optimizer__momentum=0.5)
    )


def test_fit_leaves_the_callers_instance_as_it_was(data):
    schedule = Adaptive(eta0=0.1, max_falls=8)
    model = OrtSGDRegressor(
        learning_rate=schedule, tol=10.0, n_iter_no_change=1, batch_size=10
    ).fit(*data)
    # One good epoch, then one at each rate down to 0.1 / 5^8 = 2.6e-7.
    assert model.n_iter_ == 10
    assert schedule(1) == 0.1
    assert model.learning_rate is schedule


def test_functions_and_none_are_themselves():
    assert resolved(None) is None
    assert resolved(len) is len


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"optimizer": "sgdd"}, "'optimizer' parameter of OrtSGDRegressor"),
        ({"optimizer": 3}, "'optimizer' parameter of OrtSGDRegressor"),
        ({"optimizer": Momentum}, r"Momentum is a class.*Momentum\(\)"),
        ({"optimizer": Momentum(momentum=2)}, "'momentum' parameter of Momentum"),
        ({"optimizer": Adam(beta_1=1)}, "'beta_1' parameter of Adam"),
        ({"optimizer": Adam(epsilon=1e-50)}, "'epsilon' parameter of Adam"),
        ({"learning_rate": "cosine"}, "'learning_rate' parameter of OrtSGDRegressor"),
        ({"learning_rate": Cosine}, "Cosine is a class"),
        ({"learning_rate": Warmup(Cosine)}, r"Cosine is a class.*Cosine\(\)"),
        ({"learning_rate": Cosine(n_updates=0)}, "'n_updates' parameter of Cosine"),
        ({"learning_rate": Warmup(Constant(eta0=-1.0))}, "'eta0' parameter of Constant"),
        (
            {"learning_rate": lambda t: -0.1},
            "learning_rate=.*finite number >= 0, got -0.1 for update 1",
        ),
        (
            {"learning_rate": lambda t: np.nan},
            "learning_rate=.*finite number >= 0, got nan for update 1",
        ),
        (
            {"learning_rate": lambda t: None},
            "learning_rate=.*finite number >= 0, got None for update 1",
        ),
        (
            {"learning_rate": "optimal", "alpha": 0},
            'learning_rate="optimal" divides by alpha, got alpha=0',
        ),
        ({"max_grad_norm": 0.0}, "'max_grad_norm' parameter"),
        ({"average": -1}, "'average' parameter"),
        (
            {"solver": "session", "optimizer": "momentum"},
            'solver="session" has no optimizer=Momentum',
        ),
        (
            {"solver": "session", "optimizer": "nesterov"},
            'solver="session" has no optimizer=Nesterov',
        ),
        (
            {"solver": "session", "optimizer": Adam(beta_1=1 - 1e-9)},
            "beta_1 and beta_2 that are below 1 in float32",
        ),
        (
            {"solver": "session", "optimizer": Adam(beta_2=1 - 1e-9)},
            "beta_1 and beta_2 that are below 1 in float32",
        ),
        (
            {"solver": "session", "max_grad_norm": 1.0},
            'solver="session" cannot clip.*max_grad_norm=1.0',
        ),
    ],
)
def test_what_cannot_work_is_refused_in_fit(parameters, message, data):
    model = OrtSGDRegressor(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(*data)
    assert vars(model) == vars(OrtSGDRegressor(**parameters))


class Network(OrtSGDClassifier):
    """A classifier of one's own, with fewer parameters."""

    def __init__(self, hidden=(10,), max_iter=4):
        super().__init__(
            MLPClassifier(hidden_layer_sizes=hidden), max_iter=max_iter, tol=None, random_state=0
        )
        self.hidden = hidden


def test_a_subclass_may_hide_parameters(data):
    X, y = data[0], data[1] > 4
    model = Network(hidden=(3,)).fit(X, y)
    same = OrtSGDClassifier(
        MLPClassifier(hidden_layer_sizes=(3,)), max_iter=4, tol=None, random_state=0
    ).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))
    np.testing.assert_array_equal(
        model.partial_fit(X, y).predict_proba(X), same.partial_fit(X, y).predict_proba(X)
    )
    np.testing.assert_array_equal(
        clone(Network(hidden=(3,))).fit(X, y).predict_proba(X),
        Network((3,)).fit(X, y).predict_proba(X),
    )


@pytest.mark.parametrize(
    "value",
    [
        Momentum(momentum=0.5),
        Warmup(Cosine(30)),
        FrozenEstimator(LinearRegression()),
        make_pipeline(StandardScaler(), LinearRegression()),
        {"a": np.arange(3.0), "b": [np.array(["x", None], dtype=object)]},
        np.float32(2),
        None,
        np.nan,
        SimpleImputer(),
        OrdinalEncoder(categories=[["a", np.nan], np.array(["x", float("nan")], dtype=object)]),
        {"a": [np.float32("nan"), (np.datetime64("NaT", "D"), pd.NA, pd.NaT)]},
        np.array([1.0, np.nan]),
        ["a", pd.Index(["x", "y"]), pd.Index([1.0, np.nan])],
    ],
)
def test_a_snapshot_is_equal_until_a_part_is_changed(value):
    assert snapshot(value) == snapshot(value)
    copied = pickle.loads(pickle.dumps((value, snapshot(value))))
    assert snapshot(copied[0]) == copied[1]
    if not isinstance(value, FrozenEstimator):
        assert snapshot(pickle.loads(pickle.dumps(value))) == snapshot(value)


@pytest.mark.parametrize(
    "value, change",
    [
        (Momentum(momentum=0.5), lambda value: value.set_params(momentum=0.4)),
        (Warmup(Cosine(30)), lambda value: value.set_params(schedule__n_updates=31)),
        (
            make_pipeline(StandardScaler(), Ridge()),
            lambda value: value.set_params(ridge__alpha=2.0),
        ),
        ({"a": np.arange(3.0)}, lambda value: value["a"].__setitem__(1, 5.0)),
        ([np.array(["x", None], dtype=object)], lambda value: value[0].__setitem__(0, "y")),
        (SimpleImputer(), lambda value: value.set_params(missing_values=-1)),
        (SimpleImputer(), lambda value: value.set_params(missing_values=pd.NA)),
        (SimpleImputer(), lambda value: value.set_params(missing_values=None)),
        ([pd.NA], lambda value: value.__setitem__(0, "x")),
        ([pd.Index(["x", "y"])], lambda value: value.__setitem__(0, pd.Index(["y", "x"]))),
    ],
)
def test_a_snapshot_sees_what_is_changed_in_place(value, change):
    before = snapshot(value)
    change(value)
    assert snapshot(value) != before


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("step", [SimpleImputer(), OrdinalEncoder()])
def test_a_stream_goes_on_from_a_copy_whose_steps_have_nan_as_a_parameter(step, copied):
    X = np.arange(60.0)[:, None] % 4
    y = X[:, 0] + np.random.default_rng(0).normal(size=60)
    model = OrtSGDRegressor(make_pipeline(step, LinearRegression()), random_state=0).fit(X, y)
    again = copied(model)
    np.testing.assert_array_equal(
        again.partial_fit(X, y).predict(X), model.partial_fit(X, y).predict(X)
    )
    with pytest.raises(ValueError, match="estimator was changed since the last fit"):
        again.set_params(estimator=make_pipeline(StandardScaler(), LinearRegression())).partial_fit(
            X, y
        )


def test_a_stream_takes_an_equal_index_of_columns_and_refuses_another_series():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])

    def pipeline(columns):
        return make_pipeline(ColumnTransformer([("n", SimpleImputer(), columns)]), Ridge())

    def fitted_on(columns):
        return OrtSGDRegressor(pipeline(columns), random_state=0).fit(X, X["c"])

    model, same = fitted_on(X.columns[:2]), fitted_on(X.columns[:2])
    model.set_params(estimator=pipeline(X.columns[:2].copy())).partial_fit(X, X["c"])
    np.testing.assert_array_equal(model.predict(X), same.partial_fit(X, X["c"]).predict(X))

    model = fitted_on(pd.Series(["a", "b"]))
    with pytest.raises(ValueError, match="estimator was changed since the last fit"):
        model.set_params(estimator=pipeline(pd.Series(["a", "b"]))).partial_fit(X, X["c"])


@pytest.mark.parametrize(
    "literal, table",
    [
        (literals.RegressionLossName, ["auto", *REGRESSION_LOSSES]),
        (literals.ClassificationLossName, ["auto", *CLASSIFICATION_LOSSES]),
        (literals.PenaltyName, ["auto", *PENALTIES]),
        (literals.OptimizerName, ["auto", *OPTIMIZERS]),
        (literals.ScheduleName, ["auto", *SCHEDULES]),
        (literals.SolverName, ["auto", *SOLVERS, *ON_REQUEST]),
    ],
)
def test_the_types_of_names_are_the_tables(literal, table):
    assert set(get_args(literal)) == set(table)
