"""Which fits are made side by side, and which fit takes one of them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.search.together import Together

OPTIONS = {
    "penalty": "l2",
    "max_iter": 3,
    "tol": None,
    "random_state": 0,
    "learning_rate": "constant",
    "eta0": 0.02,
}

HAS_NO_ONNX = pytest.mark.filterwarnings("ignore:The fitted model will have no ONNX")


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(40, 3))
    return X, X @ [1.0, 2.0, 3.0]


def models(*alphas, **options):
    return [OrtSGDRegressor(alpha=alpha, **{**OPTIONS, **options}) for alpha in alphas]


def test_the_first_fit_makes_those_of_the_others(rows, monkeypatch):
    first, second = models(0.1, 0.2)
    together = Together([first, second])
    together.mark(first).fit(*rows)
    assert together.n_made == 2
    with monkeypatch.context() as patch:
        patch.setattr("skort.estimators.base.fit", None)
        together.mark(second).fit(*rows)
    alone = models(0.2)[0].fit(*rows)
    np.testing.assert_allclose(second.coef_, alone.coef_, rtol=1e-6)
    assert not np.allclose(first.coef_, second.coef_, rtol=1e-3)


def test_other_data_other_estimators_and_second_fits_are_made_anew(rows, monkeypatch):
    X, y = rows
    first, second = models(0.1, 0.2)
    together = Together([first, second])
    for data in ((X, y), (X, 2 * y), (X + 1, y), (X, y, np.arange(40))):
        together.mark(first).fit(*data)
    assert together.n_made == 8
    # A fit that was asked for is gone: the next is made alone.
    together.mark(first).fit(X, y)
    together.mark(models(0.3)[0]).fit(X, y)
    together.mark(first).fit(X, y, X_val=X, y_val=y)
    together.mark(first).fit(X, y, coef_init=np.zeros(3))
    together.mark(first).partial_fit(X, y)
    assert together.n_made == 8
    first.fit(X, 3 * y)
    assert together.n_made == 8


def test_empty_data_are_left_to_the_fit(rows):
    with pytest.raises(ValueError, match="0 feature"):
        Together(models(0.1, 0.2)).mark(models(0.1)[0]).fit(np.empty((40, 0)), rows[1])


@HAS_NO_ONNX
def test_dates_as_labels(rows):
    X, y = rows
    dates = np.where(y > 0, "2020-01-01", "2021-01-01").astype("datetime64[D]")
    pair = [OrtSGDClassifier(alpha=alpha, **OPTIONS) for alpha in (0.1, 0.2)]
    together = Together(pair)
    together.mark(pair[0]).fit(X, dates)
    assert together.n_made == 2
    np.testing.assert_array_equal(pair[0].classes_, np.unique(dates))


@HAS_NO_ONNX
def test_parameters_that_cannot_be_compared_are_no_group(rows):
    def pipeline():
        table = pd.DataFrame({"factor": [2.0, 3.0]})
        return make_pipeline(
            FunctionTransformer(_scaled, kw_args={"table": table}), LinearRegression()
        )

    pair = [OrtSGDRegressor(pipeline(), alpha=alpha, **OPTIONS) for alpha in (0.1, 0.2)]
    together = Together(pair)
    assert n_groups(together) == 0
    together.mark(pair[0]).fit(*rows)
    np.testing.assert_array_equal(pair[0].coef_, clone(pair[0]).fit(*rows).coef_)


def _scaled(X, table):
    return X * table["factor"].iloc[0]


def n_groups(together):
    return sum(len(members) > 1 for _, members in together._groups)


def test_groups_are_estimators_that_differ_in_numbers_only():
    several = [*models(0.1, 0.2), *models(0.3, 0.4, batch_size=5), *models(0.5, dtype="float64")]
    several += [OrtSGDClassifier(alpha=alpha, random_state=0) for alpha in (0.1, 0.2)]
    several += [OrtSGDRegressor(Ridge(), random_state=0, alpha=0.1)]
    assert n_groups(Together(several)) == 3
    assert n_groups(Together([*models(0.1), *models(0.1)])) == 0
    for options in (
        {"callbacks": [object()]},
        {"verbose": 1},
        {"average": True},
        {"solver": "session"},
    ):
        assert n_groups(Together(models(0.1, 0.2, **options))) == 0


def test_bad_data_and_bad_parameters_fail_where_they_are(rows):
    X, y = rows
    good, bad, other = models(0.1, -1.0, 0.2)
    together = Together([bad, good, other])
    with pytest.raises(ValueError, match="alpha"):
        together.mark(bad).fit(X, y)
    together.mark(good).fit(X, y)
    assert together.n_made == 2
    with pytest.raises(ValueError, match="NaN"):
        together.mark(good).fit(np.where(X > 2, np.nan, X), y)
    assert together.n_made == 2


def test_rows_that_differ_from_candidate_to_candidate_are_not_trained_for_all(rows):
    X, y = rows
    first, second = models(0.1, 0.2)
    together = Together([first, second])
    together.mark(first).fit(X, y)
    together.mark(first).fit(X + 1, y)
    together.mark(second).fit(X + 2, y)
    assert together.n_made == 4
    together.mark(second).fit(X + 1, y)
    np.testing.assert_allclose(
        second.coef_, together.mark(models(0.2)[0]).fit(X + 1, y).coef_, rtol=1e-5
    )
