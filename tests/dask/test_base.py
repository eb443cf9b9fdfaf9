"""Fits on the partitions of Dask collections."""

import pickle
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler

import skort

pytest.importorskip("distributed")

import dask.array as da
import dask.dataframe as dd
from distributed import Client

from skort.callbacks import Checkpoint
from skort.dask import OrtSGDClassifier, OrtSGDRegressor

SAME = {"eta0": 0.1, "learning_rate": "constant", "max_iter": 4, "tol": None, "random_state": 0}


def chunked(X, *more, sizes=(130, 0, 250, 1, 219)):
    assert sum(sizes) == len(X)
    arrays = [da.from_array(X, chunks=(sizes, X.shape[1]))]
    return *arrays, *(da.from_array(each, chunks=(sizes, *each.shape[1:])) for each in more)


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(600, 6, n_informative=4, n_redundant=0, random_state=0)
    return X * [1, 10, 0.1, 1, 1, 1] + 3, y


@pytest.fixture
def target(data):
    return data[0] @ [1.0, 0.2, 3.0, -1.0, 0.5, 2.0] + 4


class TestOneGroup:
    """One group makes local epochs: what is not drawn is the same as in a local fit."""

    def test_facts_of_a_regression(self, client, data, target):
        X, _ = data
        weights = np.random.default_rng(0).uniform(0, 2, 600)
        weights[::7] = 0
        parameters = {"max_iter": 1, "tol": None, "learning_rate": "constant", "random_state": 0}
        local = skort.OrtSGDRegressor(**parameters).fit(X, target, weights)
        found = OrtSGDRegressor(**parameters, n_groups=1).fit(*chunked(X, target, weights))
        assert found.eta0_ == pytest.approx(local.eta0_, rel=1e-6)
        for name in ("mean", "scale", "target_mean", "target_scale"):
            expected = getattr(local.standardization_, name)
            np.testing.assert_allclose(
                getattr(found.standardization_, name), expected, rtol=1e-6, err_msg=name
            )
        assert found.t_ == local.t_ == 3

    @pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 3.0}])
    def test_one_batch_is_the_same_step(self, client, data, class_weight):
        X, y = data
        weights = np.random.default_rng(0).uniform(0, 2, 600)
        parameters = SAME | {"batch_size": 600, "class_weight": class_weight, "dtype": "float64"}
        local = skort.OrtSGDClassifier(LogisticRegression(C=0.01), **parameters).fit(X, y, weights)
        found = OrtSGDClassifier(LogisticRegression(C=0.01), **parameters, n_groups=1)
        found.fit(*chunked(X, y, weights))
        np.testing.assert_allclose(found.coef_, local.coef_, rtol=1e-9)
        np.testing.assert_allclose(found.loss_curve_, local.loss_curve_, rtol=1e-9)

    def test_three_classes_and_class_weights_of_positives(self, client, data):
        X, _ = data
        y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [2, 4])]
        parameters = SAME | {
            "batch_size": 600,
            "loss": "hinge",
            "class_weight": "balanced",
            "dtype": "float64",
        }
        local = skort.OrtSGDClassifier(**parameters).fit(X, y)
        found = OrtSGDClassifier(**parameters, n_groups=1).fit(*chunked(X, y))
        assert found.classes_.tolist() == ["a", "b", "c"]
        np.testing.assert_allclose(found.coef_, local.coef_, rtol=1e-9)

    def test_sparse_rows(self, client, data):
        _, y = data
        X = scipy.sparse.random(600, 30, 0.1, format="csr", random_state=0)
        blocks = [
            da.from_delayed(_delayed(X[i : i + 200]), (200, 30), X.dtype) for i in (0, 200, 400)
        ]
        dX = da.concatenate([block.map_blocks(scipy.sparse.csr_matrix) for block in blocks])
        parameters = SAME | {"eta0": "auto", "batch_size": 600, "dtype": "float64"}
        local = skort.OrtSGDClassifier(**parameters).fit(X, y)
        found = OrtSGDClassifier(**parameters, n_groups=1).fit(dX, da.from_array(y, chunks=200))
        np.testing.assert_allclose(found.coef_, local.coef_, rtol=1e-9)
        np.testing.assert_array_equal(found.predict(dX).compute(), found.to_local().predict(X))

    def test_empty_groups_do_not_matter(self, client, data):
        X, y = data
        few = chunked(X, y, sizes=(600,))
        np.testing.assert_array_equal(
            *(OrtSGDClassifier(**SAME, n_groups=n).fit(*few).coef_ for n in (1, 5)),
        )


def _delayed(value):
    import dask

    return dask.delayed(value)


class TestTwoGroups:
    def test_it_is_the_mean_of_local_epochs(self, client, data):
        """
        Two partitions of which each fits into one batch: one step each from zero,
        in which a row counts the same.
        """
        X, y = data[0][:500], data[1][:500].astype(float)
        parameters = SAME | {
            "max_iter": 1,
            "batch_size": 400,
            "standardize": False,
            "dtype": "float64",
            "eta0": 0.01,
        }
        found = OrtSGDRegressor(LinearRegression(), **parameters).fit(
            *chunked(X, y, sizes=(100, 400))
        )
        steps = [0.01 * X[part].T @ y[part] / 400 for part in (slice(100), slice(100, None))]
        np.testing.assert_allclose(found.coef_, np.mean(steps, axis=0), rtol=1e-9)
        assert found.t_ == found.n_iter_ == 1

    def test_weights_are_relative_to_the_mean_of_all_rows(self, client, data):
        X, y = data[0][:400], data[1][:400].astype(float)
        weights = np.repeat([1.0, 3.0], 200)
        parameters = SAME | {
            "max_iter": 1,
            "batch_size": 200,
            "standardize": False,
            "dtype": "float64",
            "eta0": 0.01,
        }
        found = OrtSGDRegressor(LinearRegression(), **parameters).fit(
            *chunked(X, y, weights, sizes=(200, 200))
        )
        # The mean of two steps, each with the weights 1 / 2 and 3 / 2, is the step of all rows.
        step = 0.01 * X.T @ (weights * y) / weights.sum()
        np.testing.assert_allclose(found.coef_, step, rtol=1e-9)

    @pytest.mark.parametrize(("optimizer", "eta0"), [("adam", 0.01), ("nesterov", 0.05)])
    def test_network(self, client, data, optimizer, eta0):
        X, y = data
        parameters = SAME | {"optimizer": optimizer, "eta0": eta0, "batch_size": 20, "max_iter": 8}
        model = OrtSGDClassifier(MLPClassifier((20,)), **parameters).fit(*chunked(X, y))
        assert model.score(*chunked(X, y)) > 0.9
        assert model.loss_curve_[-1] < 0.5 * model.loss_curve_[0]

    def test_network_by_default(self, client, data):
        X, y = data
        model = OrtSGDClassifier(MLPClassifier((20,)), max_iter=90, random_state=0).fit(
            *chunked(X, y)
        )
        # As many updates as a fit in memory makes in 60 epochs, with its decay; .87 of 40 rounds,
        # as of 40 epochs.
        local = skort.OrtSGDClassifier(MLPClassifier((20,)), max_iter=60, random_state=0).fit(X, y)
        assert model.score(*chunked(X, y)) == pytest.approx(local.score(X, y), abs=0.02)
        assert local.score(X, y) > 0.92
        # Two groups make at least two updates of 200 rows a round: the cosine is over by the end.
        assert (model.eta0_, model.optimizer_.weight_decay) == (0.02, local.optimizer_.weight_decay)
        assert model.history_["eta"][-1] < 0.001
        assert (
            model.stopping_reason_ == "The learning rate reached zero after 90 epochs, as planned."
        )

    def test_average(self, client, data):
        X, y = data
        found = OrtSGDRegressor(**SAME | {"average": True, "max_iter": 2}).fit(
            *chunked(X, y.astype(float))
        )
        assert np.isfinite(found.coef_).all()

    def test_adaptive_rate_and_tol(self, client, data, target):
        found = OrtSGDRegressor(eta0="auto", tol=1e-4, random_state=0).fit(
            *chunked(data[0], target)
        )
        np.testing.assert_allclose(found.coef_, [1.0, 0.2, 3.0, -1.0, 0.5, 2.0], atol=1e-2)
        assert found.history_["eta"][-1] < found.history_["eta"][0]
        assert len(found.loss_curve_) == found.n_iter_ < 1000

    def test_restart_where_the_rate_is_too_large(self, client, data, target):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = OrtSGDRegressor(
                optimizer="momentum",
                eta0=1e4,
                learning_rate="constant",
                max_iter=5,
                tol=None,
                random_state=0,
            )
            with pytest.raises(ValueError, match="Training diverged"):
                found.fit(*chunked(data[0], target))
        assert not hasattr(found, "coef_")

    @pytest.mark.parametrize(
        "n_groups, batch_size, average",
        [(2, 200, False), (2, 2, True), (3, 2, False), (10, 20, True)],
    )
    def test_the_same_bits_with_one_worker(self, client, data, n_groups, batch_size, average):
        """
        With one exchange a round and with several, and with so many groups
        that their means are merged in a tree.
        """
        from distributed import LocalCluster

        X, y = data
        sizes = (60,) * 10 if n_groups == 10 else (130, 0, 250, 1, 219)
        parameters = SAME | {
            "eta0": 0.01,
            "batch_size": batch_size,
            "average": average,
            "n_groups": n_groups,
        }
        model = OrtSGDClassifier(MLPClassifier((8,)), optimizer="adam", **parameters)
        two = model.fit(*chunked(X, y, sizes=sizes)).weights_
        options = {
            "n_workers": 1,
            "threads_per_worker": 2,
            "processes": False,
            "dashboard_address": ":0",
        }
        with LocalCluster(**options) as cluster, Client(cluster):
            one = clone(model).fit(*chunked(X, y, sizes=sizes)).weights_
        assert all(np.array_equal(one[name], two[name]) for name in two)

    def test_one_class_in_each_partition(self, client, data):
        X, y = data
        order = np.argsort(y, kind="stable")
        sizes = (150,) * 4
        parameters = {
            "optimizer": "adam",
            "eta0": 0.02,
            "max_iter": 8,
            "batch_size": 25,
            "tol": None,
            "random_state": 0,
        }
        model = OrtSGDClassifier(MLPClassifier((20,)), learning_rate="constant", **parameters)
        mixed, divided = (
            clone(model).fit(*chunked(X[rows], y[rows], sizes=sizes))
            for rows in (np.arange(600), order)
        )
        assert divided.score(*chunked(X, y)) > mixed.score(*chunked(X, y)) - 0.05


class TestCollections:
    def test_frames(self, client, data):
        X, y = data
        frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=y)
        parts = dd.from_pandas(frame, npartitions=3)
        found = OrtSGDClassifier(**SAME).fit(parts[list("abcdef")], parts["y"])
        assert found.feature_names_in_.tolist() == list("abcdef")
        expected = found.to_local().predict_proba(frame[list("abcdef")])
        np.testing.assert_array_equal(
            found.predict_proba(parts[list("abcdef")]).compute(), expected
        )

    def test_unknown_sizes(self, client, data):
        X, y = data
        dX, dy = chunked(X, y, sizes=(200, 200, 200))
        some = dX[:, 0] > 3
        found = OrtSGDClassifier(**SAME).fit(dX[some], dy[some])
        rows = X[:, 0] > 3
        expected = OrtSGDClassifier(**SAME).fit(*chunked(X[rows], y[rows], sizes=_sizes(rows)))
        np.testing.assert_array_equal(found.coef_, expected.coef_)
        assert found.predict(dX[some]).compute().shape == (rows.sum(),)

    def test_realigned(self, client, data):
        X, y = data
        found, expected = (
            OrtSGDClassifier(**SAME).fit(chunked(X)[0], da.from_array(y, chunks=sizes))
            for sizes in (100, (130, 0, 250, 1, 219))
        )
        np.testing.assert_array_equal(found.coef_, expected.coef_)

    def test_columns_in_several_chunks(self, client, data):
        X, y = data
        dX = da.from_array(X, chunks=(200, 2))
        found = OrtSGDClassifier(**SAME).fit(dX, da.from_array(y, chunks=200))
        assert found.score(dX, da.from_array(y, chunks=200)) == found.to_local().score(X, y)

    def test_not_aligned(self, client, data):
        X, y = data
        dX, dy = chunked(X, y, sizes=(200, 200, 200))
        some = dX[:, 0] > 3
        with pytest.raises(ValueError, match=r"different numbers of rows: X has 600, y has 599"):
            OrtSGDClassifier(**SAME).fit(dX, dy[:-1])
        with pytest.raises(ValueError, match=r"different numbers of partitions: X has 3, y has 2"):
            OrtSGDClassifier(**SAME).fit(dX[some], dy[:400][some[:400]])
        with pytest.raises(ValueError, match=r"Partition \d of X has 200 rows, that of y has \d+"):
            OrtSGDClassifier(**SAME).fit(dX, dy[some])
        with pytest.raises(
            ValueError, match=r"Partition \d of X_val has 200 rows, that of y_val has \d+"
        ):
            OrtSGDClassifier(**SAME).fit(dX, dy, X_val=dX, y_val=dy[some])
        with pytest.raises(ValueError, match=r"Partition \d of X has 200 rows, that of y has \d+"):
            OrtSGDClassifier(**SAME).fit(dX, dy).score(dX, dy[some])

    def test_no_rows(self, client, data):
        X, y = data
        dX, dy = chunked(X, y)
        with pytest.raises(ValueError, match="X has no rows"):
            OrtSGDClassifier(**SAME).fit(dX[dX[:, 0] > 1e9], dy[dX[:, 0] > 1e9])
        with pytest.raises(ValueError, match="No row has a positive sample weight"):
            OrtSGDClassifier(**SAME).fit(dX, dy, da.zeros_like(dy, dtype=float))

    def test_bad_values_name_their_partition(self, client, data):
        X, y = data
        X = X.copy()
        X[500, 2] = np.nan
        with pytest.raises(ValueError, match="Partition 4: Input X contains NaN"):
            OrtSGDClassifier(**SAME).fit(*chunked(X, y))
        good = chunked(*data)
        with pytest.raises(
            ValueError, match="Partition 4 of the validation set: Input X contains NaN"
        ):
            OrtSGDClassifier(**SAME).fit(*good, X_val=chunked(X)[0], y_val=good[1])

    def test_arrays_in_memory(self, client, data):
        with pytest.raises(TypeError, match=r"X is of type ndarray: .* dask.array.from_array"):
            OrtSGDClassifier(**SAME).fit(*data)

    def test_partial_fit_gathers_no_collection(self, client, data):
        with pytest.raises(TypeError, match=r"partial_fit takes rows in memory.*dask\.compute"):
            OrtSGDClassifier(**SAME).partial_fit(*chunked(*data), classes=[0, 1])

    def test_one_dimension(self, client, data):
        X, y = chunked(*data)
        model = OrtSGDClassifier(**SAME).fit(X, y)
        with pytest.raises(ValueError, match=r"X has 1 dimension.*reshape"):
            model.predict(X[:, 0])
        with pytest.raises(ValueError, match=r"X has 1 dimension.*reshape"):
            model.fit(X[:, 0], y)


def _sizes(rows):
    return tuple(int(rows[i : i + 200].sum()) for i in (0, 200, 400))


class TestValidation:
    def test_own_validation_set(self, client, data):
        X, y = data
        train, held_out = (
            chunked(X[:400], y[:400], sizes=(200, 200)),
            chunked(X[400:], y[400:], sizes=(150, 50)),
        )
        model = OrtSGDClassifier(**SAME | {"max_iter": 8}, early_stopping=True)
        for is_turned in (False, True):
            y_val = 1 - held_out[1] if is_turned else held_out[1]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(*train, X_val=held_out[0], y_val=y_val)
            scores = model.history_["validation_score"]
            assert len(scores) == model.n_iter_
            assert model.best_validation_score_ == max(scores)
            loss = log_loss(y_val.compute(), model.to_local().predict_proba(X[400:]))
            assert -loss == pytest.approx(scores[0 if is_turned else -1], rel=1e-6)

    def test_held_out_rows(self, client, data):
        X, y = data
        model = OrtSGDClassifier(
            eta0=0.1,
            learning_rate="constant",
            tol=1e-4,
            random_state=0,
            early_stopping=True,
            n_iter_no_change=2,
        )
        model.fit(*chunked(X, y))
        assert model.n_iter_ < 100
        assert -0.65 < model.best_validation_score_ < -0.5
        again = clone(model).fit(*chunked(X, y))
        np.testing.assert_array_equal(again.coef_, model.coef_)

    def test_the_loss_is_that_of_a_local_validation_set(self, client, data):
        """Class weights are those of the rows trained on, and the warning has the same numbers."""
        X, rng = data[0], np.random.default_rng(0)
        labels = np.append(
            *(
                rng.choice(["a", "b", "c"], n, p=p)
                for n, p in ((400, [0.7, 0.2, 0.1]), (200, [0.1, 0.2, 0.7]))
            )
        )
        for estimator_class, y, options in (
            (OrtSGDClassifier, labels, {"class_weight": "balanced"}),
            (OrtSGDRegressor, 3.0 * (labels == "c"), {"loss": "poisson"}),
        ):
            train, held_out = (
                chunked(X[:400], y[:400], sizes=(200, 200)),
                chunked(X[400:], y[400:], sizes=(150, 50)),
            )
            model = estimator_class(**SAME, **options, early_stopping=True)
            with pytest.warns(ConvergenceWarning, match="no better than a constant") as ours:
                model.fit(*train, X_val=held_out[0], y_val=held_out[1])
            local = getattr(skort, estimator_class.__name__)(early_stopping=True, **SAME, **options)
            local.set_params(max_iter=1, eta0=1e-9)
            start = model.to_local()
            with pytest.warns(ConvergenceWarning, match="no better than a constant") as theirs:
                local.fit(
                    X[:400],
                    y[:400],
                    X_val=X[400:],
                    y_val=y[400:],
                    coef_init=start.coef_,
                    intercept_init=start.intercept_,
                )
            scores = model.validation_scores_
            assert scores[-1] == pytest.approx(local.best_validation_score_, rel=1e-5)
            ours, theirs = (
                [str(each.message).rpartition("prediction ")[2] for each in seen]
                for seen in (ours, theirs)
            )
            assert ours == theirs

    def test_a_fitted_model(self, client, data, target):
        X = data[0]
        frozen = FrozenEstimator(LinearRegression().fit(X, target))
        parts = chunked(X, target)
        model = OrtSGDRegressor(frozen, max_iter=2, tol=None, random_state=0)
        model.fit(*parts, X_val=parts[0], y_val=parts[1])
        residuals = model.to_local().predict(X) - target
        assert model.validation_scores_[-1] == pytest.approx(-np.mean(residuals**2) / 2, rel=1e-4)

    def test_classes_of_a_fitted_model(self, client, data):
        X = (data[0] - data[0].mean(axis=0)) / data[0].std(axis=0)
        labels = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
        of_two = labels != "c"
        frozen = FrozenEstimator(LogisticRegression().fit(X[of_two], labels[of_two]))
        told = r"^y has the labels \['c'\], and the known classes are \['a', 'b'\]\. Give y these"
        with pytest.raises(ValueError, match=told):
            OrtSGDClassifier(frozen, **SAME).fit(*chunked(X, labels))

        frozen = FrozenEstimator(LogisticRegression().fit(X, labels))
        with pytest.warns(UserWarning, match="has no row of the class 'c'"):
            model = OrtSGDClassifier(frozen, **SAME).fit(*chunked(X, np.where(of_two, labels, "b")))
        assert model.classes_.tolist() == ["a", "b", "c"]

    @pytest.mark.parametrize(
        "scoring", ["r2", "neg_mean_squared_error", "neg_root_mean_squared_error"]
    )
    def test_regression_scores(self, client, data, target, scoring):
        from sklearn.metrics import check_scoring

        X, y = data[0], np.column_stack([target, -2 * target])
        parts = chunked(X, y)
        model = OrtSGDRegressor(**SAME, scoring=scoring).fit(*parts, X_val=parts[0], y_val=parts[1])
        expected = check_scoring(model.to_local(), scoring)(model.to_local(), X, y)
        assert model.validation_scores_[-1] == pytest.approx(expected, rel=1e-6)

    def test_a_score_that_is_no_sum(self, client, data):
        parts = chunked(*data)
        with pytest.raises(ValueError, match=r"scoring='roc_auc' cannot be computed.*'accuracy'"):
            OrtSGDClassifier(**SAME, scoring="roc_auc").fit(*parts, X_val=parts[0], y_val=parts[1])

    def test_score(self, client, data, target):
        X, _ = data
        weights = np.random.default_rng(0).uniform(0, 2, 600)
        model = OrtSGDRegressor(**SAME).fit(*chunked(X, target))
        expected = model.to_local().score(X, target, weights)
        assert model.score(*chunked(X, target, weights)) == pytest.approx(expected, rel=1e-9)
        assert model.score(X, target, weights) == expected


class TestSteps:
    def test_columns(self, client, rng):
        frame = pd.DataFrame(
            {"x": rng.normal(5, 3, 300), "kind": rng.choice(list("abc"), 300), "z": rng.random(300)}
        )
        y = (frame["x"] + 3 * (frame["kind"] == "a") > 6).astype(int)
        frame.loc[rng.random(300) < 0.1, "x"] = np.nan
        steps = ColumnTransformer(
            [
                ("n", make_pipeline(SimpleImputer(), StandardScaler()), ["x"]),
                ("c", OneHotEncoder(), ["kind"]),
            ],
            remainder="passthrough",
        )
        inside = make_pipeline(steps, LogisticRegression())
        parts = dd.from_pandas(frame.assign(y=y), npartitions=4)
        model = OrtSGDClassifier(inside, **SAME).fit(parts[["x", "kind", "z"]], parts["y"])
        expected = clone(steps).fit(frame)
        local = model.to_local()
        plain = local.to_sklearn()
        np.testing.assert_allclose(plain[0].transform(frame), expected.transform(frame), atol=1e-10)
        assert (plain.predict(frame) == local.predict(frame)).all()
        assert model.score(parts[["x", "kind", "z"]], parts["y"]) == local.score(frame, y) > 0.9
        assert len(model.onnx_.graph.input) == 3

    def test_transformed_target(self, client, data, target):
        inside = TransformedTargetRegressor(
            make_pipeline(StandardScaler(), LinearRegression()), transformer=StandardScaler()
        )
        model = OrtSGDRegressor(inside, **SAME | {"max_iter": 30}).fit(*chunked(data[0], target))
        assert model.score(*chunked(data[0], target)) > 0.99
        np.testing.assert_allclose(model.to_local().to_sklearn().transformer_.mean_, target.mean())

    def test_a_step_that_does_not_merge(self, client, data):
        X, y = data
        inside = make_pipeline(PowerTransformer(), LogisticRegression())
        with pytest.raises(
            ValueError, match=r"step 'powertransformer', PowerTransformer\(\).*FrozenEstimator"
        ):
            OrtSGDClassifier(inside, **SAME).fit(*chunked(X, y))
        frozen = make_pipeline(FrozenEstimator(PowerTransformer().fit(X)), LogisticRegression())
        assert OrtSGDClassifier(frozen, **SAME).fit(*chunked(X, y)).score(*chunked(X, y)) > 0.6


class TestEstimator:
    def test_local(self, client, data, tmp_path):
        X, y = data
        model = OrtSGDClassifier(**SAME).fit(*chunked(X, y))
        local = model.to_local()
        assert type(local) is skort.OrtSGDClassifier
        for name in (
            "coef_",
            "intercept_",
            "classes_",
            "loss_curve_",
            "history_",
            "t_",
            "eta0_",
            "n_features_in_",
        ):
            np.testing.assert_equal(getattr(local, name), getattr(model, name))
        copied = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copied.predict(X), local.predict(X))
        model.save_onnx(tmp_path / "model.onnx")
        assert (tmp_path / "model.onnx").read_bytes() == local.onnx_.SerializeToString()
        np.testing.assert_array_equal(local.to_sklearn().predict(X), local.predict(X))
        # It is an ordinary estimator: it goes on.
        assert local.partial_fit(X, y).n_iter_ == model.n_iter_ + 1

    def test_predictions_are_lazy_and_local_ones(self, client, data):
        X, y = data
        dX, dy = chunked(X, y)
        model = OrtSGDClassifier(**SAME).fit(dX, dy)
        local = model.to_local()
        for method in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
            found, expected = getattr(model, method)(dX), getattr(local, method)(X)
            assert isinstance(found, da.Array)
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_array_equal(found.compute(), expected)
            np.testing.assert_array_equal(getattr(model, method)(X), expected)

    def test_several_outputs(self, client, data, target):
        y = np.column_stack([target, -target])
        model = OrtSGDRegressor(**SAME).fit(*chunked(data[0], y))
        found = model.predict(chunked(data[0])[0])
        assert found.shape == (600, 2)
        np.testing.assert_array_equal(found.compute(), model.to_local().predict(data[0]))

    def test_multi_label(self, client, data):
        X, y = data
        y = np.column_stack([y, 1 - y, y])
        model = OrtSGDClassifier(MLPClassifier((5,)), **SAME).fit(*chunked(X, y))
        np.testing.assert_array_equal(
            model.predict(chunked(X)[0]).compute(), model.to_local().predict(X)
        )
        assert model.score(*chunked(X, y)) == model.to_local().score(X, y)

    def test_clones_share_the_client(self, client):
        model = OrtSGDClassifier(client=client, n_groups=3)
        with sklearn.config_context(enable_metadata_routing=True):
            requests = (
                clone(model.set_fit_request(sample_weight=True)).get_metadata_routing().fit.requests
            )
        assert requests["sample_weight"] is True
        assert clone(model).client is model.client is client
        assert pickle.loads(pickle.dumps(OrtSGDClassifier(client=client))).client is None

    def test_parameters(self, client, data):
        with pytest.raises(ValueError, match="n_groups"):
            OrtSGDClassifier(n_groups=0).fit(*chunked(*data))
        assert set(skort.OrtSGDClassifier().get_params()) - set(
            OrtSGDClassifier().get_params()
        ) == {
            "n_total",
            "device",
        }

    def test_warm_start(self, client, data):
        X, y = data
        model = OrtSGDClassifier(**SAME | {"max_iter": 1}, warm_start=True).fit(*chunked(X, y))
        before = model.loss_curve_[0]
        assert model.fit(*chunked(X, y)).loss_curve_[0] < before

    def test_interrupt(self, client, data):
        class Interrupt:
            def on_epoch_end(self, training):
                if training.n_epochs == 2:
                    raise KeyboardInterrupt

        with pytest.warns(
            UserWarning, match="interrupted by the user: fitted up to the last whole epoch, 2"
        ):
            model = OrtSGDClassifier(**SAME, callbacks=[Interrupt()]).fit(*chunked(*data))
        assert model.n_iter_ == 2
        expected = OrtSGDClassifier(**SAME | {"max_iter": 2}).fit(*chunked(*data))
        np.testing.assert_array_equal(model.coef_, expected.coef_)

    def test_callbacks_have_no_batches(self, client, data):
        class EachBatch:
            def on_batch_end(self, training):
                pass

        with pytest.raises(ValueError, match=r"on_batch_end, but the batches are on the workers"):
            OrtSGDClassifier(**SAME, callbacks=[EachBatch()]).fit(*chunked(*data))

    def test_table(self, client, data, capsys):
        model = OrtSGDClassifier(**SAME, verbose=2).fit(*chunked(*data))
        _, table = capsys.readouterr().out.split("\n\n")
        header, *rows, last = table.splitlines()
        assert header.split()[0] == "epoch"
        assert [row.split()[0] for row in rows] == ["1", "2", "3", "4"]
        assert last == model.stopping_reason_


def test_the_workers_do_not_keep_the_partitions_as_they_were(client, data):
    """While a fit trains, each partition is there once."""

    def raw():
        return {
            str(key)
            for keys in client.has_what().values()
            for key in keys
            if str(key).startswith("_part")
        }

    # Those of fits that failed may still be there.
    before = raw()

    class Looks:
        def on_epoch_end(self, training):
            # What nobody needs is forgotten a little later.
            for _ in range(100):
                if not raw() - before:
                    return
                time.sleep(0.1)
            raise AssertionError("there are partitions as they were")

    OrtSGDClassifier(**SAME | {"max_iter": 1}, callbacks=[Looks()]).fit(*chunked(*data))


@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_a_resumed_fit_ends_with_the_same_bits(client, data, tmp_path, optimizer):
    """
    The velocity of the exchanges is in the checkpoint;
    the state that `partial_fit` goes on from has none.

    That of the optimizer is another one.
    """
    X, y = data
    model = OrtSGDClassifier(MLPClassifier((5,)), **SAME | {"eta0": 0.01, "optimizer": optimizer})
    path = str(tmp_path / "training.npz")
    clone(model).set_params(max_iter=2, callbacks=[Checkpoint(path)]).fit(*chunked(X, y))
    expected = clone(model).fit(*chunked(X, y))
    found = model.set_params(callbacks=[Checkpoint(resume_from=path)]).fit(*chunked(X, y))
    for name, weights in expected.weights_.items():
        np.testing.assert_array_equal(found.weights_[name], weights, err_msg=name)
    local = found.to_local().partial_fit(X, y)
    np.testing.assert_array_equal(found.partial_fit(X, y).predict_proba(X), local.predict_proba(X))


@pytest.mark.parametrize("has_steps", [False, True])
def test_an_estimator_of_skort_itself_sends_a_dask_dataframe_on(data, has_steps):
    X, y = pd.DataFrame(data[0]).add_prefix("x"), data[1]
    table = dd.from_pandas(X, npartitions=2)
    inside = LogisticRegression()
    inside = make_pipeline(StandardScaler(), inside) if has_steps else inside
    model = skort.OrtSGDClassifier(inside, max_iter=2, tol=None)
    fitted = clone(model).fit(X, y)
    before = fitted.coef_.copy()

    calls = [
        ("X", lambda: model.fit(table, y)),
        ("X", lambda: fitted.partial_fit(table, y)),
        ("X", lambda: fitted.predict(table)),
        ("X", lambda: fitted.score(table, y)),
        ("X_val", lambda: model.fit(X, y, X_val=table, y_val=y)),
    ]
    for name, call in calls:
        with pytest.raises(TypeError) as refused:
            call()
        assert str(refused.value) == (
            f"{name} is a Dask DataFrame, whose rows are not in memory. Give {name}.compute(), or "
            "train with the estimators of skort.dask, which take its partitions."
        )
    np.testing.assert_array_equal(fitted.coef_, before)
    with pytest.raises(TypeError, match=r"X is a Dask DataFrame.*skort\.dask"):
        skort.OrtSGDClassifier(max_iter=2, tol=None).fit_batches(lambda: [(table, y)])
    np.testing.assert_array_equal(fitted.predict(table.compute()), fitted.predict(X))
