"""scikit-learn's own callbacks, where scikit-learn has them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor

callback = pytest.importorskip("sklearn.callback")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = (X[:, 0] > 0).astype(int)


def short(estimator_class, inner=None, **options):
    return estimator_class(
        inner, **{"max_iter": 5, "tol": None, "random_state": 0, "batch_size": 20, **options}
    )


class Watch:
    """Keeps the names of the tasks and what the models predict; stops after `n_epochs`."""

    def __init__(self, n_epochs=100):
        self.n_epochs = n_epochs
        self.began, self.ended, self.predicted, self.set_up = [], [], [], 0

    def setup(self, estimator, context):
        self.set_up += 1

    def teardown(self, estimator, context):
        self.set_up -= 1

    def on_fit_task_begin(self, estimator, context):
        self.began.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.ended.append(context.task_name)
        self.predicted.append(fitted_estimator.predict(X))
        return self.ended.count("epoch") == self.n_epochs


@pytest.mark.parametrize("inner", [None, make_pipeline(StandardScaler(), LogisticRegression())])
def test_epochs_are_tasks_of_the_fit(solver, inner):
    watch = Watch()
    model = short(OrtSGDClassifier, inner, solver=solver).set_callbacks(watch).fit(X, Y)
    assert sorted(watch.began) == sorted(watch.ended) == ["epoch"] * 5 + ["fit"]
    np.testing.assert_array_equal(watch.predicted[-1], model.predict(X))
    one = short(OrtSGDClassifier, inner, solver=solver, max_iter=1).fit(X, Y)
    np.testing.assert_array_equal(watch.predicted[0], one.predict(X))
    assert watch.set_up == 0


def test_a_callback_may_stop_the_training():
    model = short(OrtSGDRegressor).set_callbacks(Watch(n_epochs=2)).fit(X, Y)
    assert model.n_iter_ == 2


@pytest.mark.parametrize("bad", [np.where(X > 2, np.nan, X), 1e30 * X])
@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_a_fit_that_fails_ends_the_callbacks(bad):
    watch = Watch()
    model = short(OrtSGDRegressor, eta0=0.01, standardize=False).set_callbacks(watch)
    with pytest.raises(ValueError):
        model.fit(bad, Y)
    assert watch.set_up == 0
    assert not [name for name in vars(model) if name.startswith("_callback")]


def test_scores_of_epochs_also_in_a_search():
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model = short(OrtSGDClassifier).set_callbacks(monitor).fit(X, Y)
    log = monitor.get_logs().data
    scores = [row["accuracy"] for row in log if row["task_name"] == "epoch"]
    assert len(scores) == 5
    assert scores[-1] == pytest.approx(model.score(X, Y))
    search = GridSearchCV(
        short(OrtSGDClassifier).set_callbacks(monitor), {"eta0": [0.01, 0.1]}, cv=2
    ).fit(X, Y)
    assert search.best_estimator_.n_iter_ == 5


def test_a_search_over_trainings_that_begin_again():
    # Strong penalties let the first learning rate be lowered, twice in 20 epochs.
    y = X[:, 0] + np.abs(X[:, 1])
    model = OrtSGDRegressor(
        penalty="l2", alpha=100.0, max_iter=20, tol=None, random_state=0, batch_size=16
    )
    assert model.fit(X, y).history_["restarts"][-1] > 0
    watch = Watch()
    GridSearchCV(
        model.set_callbacks(watch),
        {"alpha": [100.0]},
        cv=[(np.arange(60), np.arange(10))],
        error_score="raise",
    ).fit(X, y)
    assert watch.began.count("epoch") == 2 * 20


def test_a_search_without_callbacks_has_no_tasks_for_its_fits(monkeypatch):
    def refuse(self, **options):
        raise AssertionError("nobody would see the tasks")

    monkeypatch.setattr(OrtSGDRegressor, "_init_callback_context", refuse)
    search = GridSearchCV(
        short(OrtSGDRegressor), {"alpha": [1e-4, 1e-2]}, cv=2, error_score="raise"
    ).fit(X, Y)
    assert search.best_estimator_.n_iter_ == 5
