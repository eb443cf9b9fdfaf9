"""`TabularNetwork` where scikit-learn's networks go."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from solver_traits import takes

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.exceptions import NotTrainableError
from skort.graphs.sklearn.encoders import category_counts, step_behind_ids
from skort.networks import TabularNetwork
from skort.optimizers import Adam

N = 157
ENCODER = OrdinalEncoder(
    handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1
)
SMALL = TabularNetwork((9, 7), embeddings=3)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": rng.normal(1000, 3, N),
            "city": rng.choice(["Bern", "Oslo", "Rome"], N).astype(object),
            "age": rng.uniform(size=N),
            "kind": rng.choice(["a", "b"], N).astype(object),
        }
    )
    worth = X["city"].map({"Bern": 1.0, "Oslo": -1.0, "Rome": 0.0}) * (X["kind"] == "a")
    return X, (X["size"] - 1000) / 3 + 2 * worth + X["age"]


def pipeline(network=SMALL, **options):
    columns = make_column_transformer(
        (ENCODER, ["city", "kind"]), remainder="passthrough", **options
    )
    return make_pipeline(columns, network)


def regressor(network=SMALL, **options):
    return OrtSGDRegressor(pipeline(network), random_state=0, **options)


def inputs(X):
    """Return X as the inputs of the ONNX file."""
    texts = X[["city", "kind"]].fillna("")
    return {
        name: texts[[name]].to_numpy(object) if name in texts else X[[name]].to_numpy(np.float32)
        for name in X.columns
    }


def test_learns_what_the_ids_say(table):
    X, y = table
    assert regressor(TabularNetwork((15,))).fit(X, y).score(X, y) > 0.97
    as_numbers = regressor(TabularNetwork(embeddings=None, hidden=(1,), activation="identity"))
    assert as_numbers.fit(X, y).score(X, y) < 0.8


def test_an_unknown_id_and_a_missing_one_have_one_embedding(table, run_onnx):
    X, y = table
    model = regressor().fit(X, y)
    new = X.head(4).assign(city=["Paris", None, "Nice", np.nan])
    known = [X.head(4).assign(city=city) for city in ("Bern", "Oslo", "Rome")]
    new.iloc[:, [0, 2]] = X.iloc[[0], [0, 2]].to_numpy()
    new["kind"] = "a"

    predicted = model.predict(new)
    assert np.ptp(predicted) == 0
    assert all(abs(model.predict(each)[0] - predicted[0]) > 0.01 for each in known)

    # No training row has one: its embedding stays zero.
    assert not model.weights_["embeddings"][[0, 4]].any()
    answer = run_onnx(model.to_onnx(), **inputs(new))["variable"].ravel()
    np.testing.assert_allclose(answer, predicted, rtol=1e-4)


def test_missing_values_in_training_have_a_trained_embedding(table):
    X, y = table
    # NaN with every version of pandas: None is a category of its own to OrdinalEncoder.
    X = X.assign(city=X["city"].where(np.arange(N) % 5 != 0))
    model = regressor().fit(X, y)
    # Of three cities and unknown ones, and of two kinds and unknown ones.
    trained = model.weights_["embeddings"].any(axis=1)
    assert trained.tolist() == [True] * 4 + [False, True, True]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dropout": 0.2, "activation": "tanh"},
        {"hidden": 9, "activation": "logistic"},
        {"embeddings": None},
        {"numeric_embedding": "piecewise"},
    ],
    ids=str,
)
def test_one_onnx_file_takes_strings(table, run_onnx, options):
    X, y = table
    model = regressor(clone(SMALL).set_params(**options), max_iter=15, tol=None).fit(X, y)
    answer = run_onnx(model.to_onnx(), **inputs(X))["variable"].ravel()
    np.testing.assert_allclose(answer, model.predict(X), rtol=1e-3, atol=2e-3)


def test_classifier_of_several_classes(table, run_onnx):
    X, y = table
    labels = np.array(["low", "mid", "high"])[np.digitize(y, [-0.5, 1.5])]
    model = OrtSGDClassifier(pipeline(), random_state=0).fit(X, labels)
    assert model.score(X, labels) > 0.85
    assert [*model.classes_] == ["high", "low", "mid"]

    answers = run_onnx(model.to_onnx(), **inputs(X))
    np.testing.assert_allclose(answers["probabilities"], model.predict_proba(X), atol=2e-3)
    assert (answers["label"] == model.predict(X)).mean() > 0.99


def test_several_labels_of_a_row(table):
    X, y = table
    labels = np.column_stack([y > 0, X["kind"] == "a"]).astype(int)
    model = OrtSGDClassifier(pipeline(), random_state=0).fit(X, labels)
    assert model.predict_proba(X).shape == (N, 2)
    assert (model.predict(X) == labels).mean() > 0.9


def test_clone_pickle_and_parameters(table, tmp_path):
    X, y = table
    model = regressor(max_iter=5, tol=None).fit(X, y)
    copied = pickle.loads(pickle.dumps(model))
    assert copied.predict(X).tolist() == model.predict(X).tolist()
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = joblib.load(tmp_path / "model.joblib")
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert copied.estimator[-1].get_params() == SMALL.get_params()

    again = clone(model).fit(X, y)
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert repr(SMALL) == "TabularNetwork(embeddings=3, hidden=(9, 7))"


@pytest.mark.filterwarnings("ignore:embeddings=3 has no effect")
def test_a_search_sets_its_parameters(table):
    X, y = table
    search = GridSearchCV(
        OrtSGDRegressor(SMALL, max_iter=3, tol=None, random_state=0),
        {"estimator__dropout": [0.0, 0.5], "estimator__activation": ["relu", "tanh"]},
        cv=2,
    )
    search.fit(X[["size", "age"]], y)
    scores = search.cv_results_["mean_test_score"]
    assert len({round(score, 6) for score in scores}) == 4

    best = search.best_estimator_
    again = clone(best).fit(X[["size", "age"]], y)
    assert again.predict(X[["size", "age"]]).tolist() == search.predict(X[["size", "age"]]).tolist()


def test_bins_learn_steps_and_a_search_finds_them(table):
    X = np.random.default_rng(1).uniform(-100, 500, size=(1207, 2))
    y = np.floor(X[:, 0] / 150) % 2 + 0.1 * (X[:, 1] > 0)
    search = GridSearchCV(
        OrtSGDRegressor(TabularNetwork(20), random_state=0),
        {"estimator__numeric_embedding": [None, "piecewise"]},
        cv=2,
    ).fit(X, y)
    plain, piecewise = search.cv_results_["mean_test_score"]
    assert search.best_params_ == {"estimator__numeric_embedding": "piecewise"}
    assert piecewise > plain + 0.2
    assert piecewise > 0.75

    # Neither the unit of a column nor its container matters.
    moved = pd.DataFrame(X * [64, 1] + [0, 7], columns=["a", "b"])
    again = clone(search.best_estimator_).fit(moved, y)
    predicted = again.predict(moved)
    np.testing.assert_allclose(predicted, search.predict(X), atol=0.02)
    assert pickle.loads(pickle.dumps(again)).predict(moved).tolist() == predicted.tolist()


def test_a_stream_keeps_the_bins_of_its_first_rows():
    X = np.random.default_rng(1).uniform(size=(403, 2))
    y = np.floor(3 * X[:, 0]) % 2
    stream = OrtSGDRegressor(TabularNetwork(20, numeric_embedding="piecewise"), random_state=0)
    first = stream.partial_fit(X, y).weights_
    for _ in range(40):
        stream.partial_fit(X**2, np.floor(3 * X[:, 0] ** 2) % 2)
    assert all(np.array_equal(stream.weights_[n], first[n]) for n in ("bin_edges", "bin_factors"))
    assert stream.score(X, y) > 0.5


def test_without_ids_it_is_the_network_of_scikit_learn(table):
    from sklearn.neural_network import MLPRegressor

    X, y = table
    X = X[["size", "age"]]
    ours, theirs = (
        OrtSGDRegressor(network, max_iter=4, tol=None, random_state=0).fit(X, y)
        for network in (
            TabularNetwork((9, 7), activation="tanh"),
            MLPRegressor(hidden_layer_sizes=(9, 7), activation="tanh"),
        )
    )
    # Both draw their weights in the same order.
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-4, atol=1e-4)


def test_solvers_make_the_same_steps(table, solver):
    X, y = table
    options = {"max_iter": 3, "optimizer": "adam", "tol": None}
    network = clone(SMALL).set_params(activation="tanh")
    if not takes(solver, Adam()):
        options |= {"optimizer": "sgd", "eta0": 0.01, "learning_rate": "constant"}
    model = regressor(network, solver=solver, **options).fit(X, y)
    other = regressor(network, solver="graph", **options).fit(X, y)
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=1e-3, atol=1e-3)


def test_means_and_scales_of_ids_do_not_matter(table):
    X, y = table
    plain, moved = (
        regressor(max_iter=6, tol=None).fit(each, y) for each in (X, X.assign(size=X["size"] * 64))
    )
    np.testing.assert_allclose(
        moved.predict(X.assign(size=X["size"] * 64)), plain.predict(X), rtol=1e-3, atol=1e-3
    )
    used = plain.plan_.decisions["scaling"].value
    assert used.mean[:2].tolist() == [0, 0]
    assert used.scale[:2].tolist() == [1, 1]
    assert used.relevance[:2].tolist() == [1, 1]
    np.testing.assert_allclose(used.deviation[2:], X[["size", "age"]].std(ddof=0), rtol=1e-6)


def test_dropout_is_for_training_only(table):
    X, y = table
    model = regressor(clone(SMALL).set_params(dropout=0.4), max_iter=4, tol=None).fit(X, y)
    assert model.predict(X).tolist() == model.predict(X).tolist()
    without = regressor(max_iter=4, tol=None).fit(X, y)
    assert abs(model.predict(X) - without.predict(X)).max() > 1e-3


@pytest.mark.filterwarnings("ignore:embeddings=3 has no effect")
def test_a_transformed_target_and_a_stream(table):
    X, y = table
    target = TransformedTargetRegressor(
        pipeline(TabularNetwork((15,))), transformer=StandardScaler()
    )
    assert OrtSGDRegressor(target, random_state=0).fit(X, y).score(X, y) > 0.95

    stream = OrtSGDRegressor(SMALL, random_state=0)
    for _ in range(20):
        stream.partial_fit(X[["size", "age"]], y)
    assert stream.score(X[["size", "age"]], y) > 0.3


def test_columns_of_ids_are_found():
    X = pd.DataFrame({"a": ["x", "y", "z"], "b": [1.0, 2.0, 3.0], "c": ["u", "u", "v"]})
    ids = make_column_transformer((ENCODER, ["a", "c"]), remainder="passthrough")
    assert category_counts(ids.fit(X), 3) == (3, 2, 0)
    assert category_counts(make_pipeline(ids).fit(X), 3) == (3, 2, 0)
    assert category_counts(make_pipeline(ids, StandardScaler()).fit(X), 3) == (0, 0, 0)
    assert category_counts(make_pipeline(ids, "passthrough").fit(X), 3) == (3, 2, 0)
    assert category_counts(OrdinalEncoder().fit(X), 3) == (3, 3, 2)
    assert category_counts(None, 2) == (0, 0)

    nothing = make_column_transformer((ENCODER, []), remainder="passthrough")
    assert category_counts(nothing.fit(X[["b"]]), 1) == (0,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"dropout": 1.0},
            "The 'dropout' parameter of TabularNetwork must be a float in the range",
        ),
        ({"activation": "cosine"}, "The 'activation' parameter of TabularNetwork must be a str"),
        ({"embeddings": 0}, "The 'embeddings' parameter of TabularNetwork must be"),
        (
            {"numeric_embedding": "periodic"},
            "The 'numeric_embedding' parameter of TabularNetwork must be a str",
        ),
        ({"hidden": (9, 0)}, r"hidden of TabularNetwork must be one or more ints > 0"),
    ],
)
def test_wrong_parameters(table, options, message):
    with pytest.raises(ValueError, match=message):
        regressor(clone(SMALL).set_params(**options)).fit(*table)


def test_text_without_an_encoder_is_told_of_the_encoder_of_its_embeddings(table):
    advice = (
        r"ColumnTransformer\(\[\(\"text\", OrdinalEncoder\(handle_unknown=\"use_encoded_value\", "
        r"unknown_value=-1\), \['city', 'kind'\]\)\]"
    )
    with pytest.raises(ValueError, match=advice):
        OrtSGDRegressor(SMALL).fit(*table)


def test_a_fitted_one_is_trained_on_new_rows_of_fewer_categories(table):
    X, y = table
    new = X["city"] != "Rome"
    changed = y + 3 * (X["city"] == "Bern")
    model = regressor(TabularNetwork((15,))).fit(X, y)
    before = model.predict(X)

    # The error of another way names this one.
    with pytest.raises(ValueError, match="or partial_fit, which keeps the fitted steps"):
        copy.deepcopy(model).set_params(warm_start=True).fit(X[new], changed[new])

    tuned = copy.deepcopy(model)
    for _ in range(5):
        tuned.partial_fit(X[new], changed[new])
    assert tuned.weights_["embeddings"].shape == model.weights_["embeddings"].shape
    assert np.mean((tuned.predict(X) - changed)[new] ** 2) < 0.5 * np.mean(
        (before - changed)[new] ** 2
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_embeddings_without_ids_are_told_of_the_place_of_the_encoder(table):
    encoder = pipeline(SMALL)[0]
    outside = make_pipeline(
        encoder, OrtSGDRegressor(TabularNetwork((5,), embeddings=3), max_iter=1)
    )
    with pytest.warns(UserWarning, match="embeddings=3 has no effect: no column has ids.* inside"):
        outside.fit(*table)
    assert "embeddings" not in outside[-1].weights_


IDS = make_column_transformer((ENCODER, ["city", "kind"]), remainder="passthrough")
ORDERED = OrdinalEncoder(
    categories=[["Bern", "Oslo", "Rome"]], handle_unknown="use_encoded_value", unknown_value=-1
)


def of_columns(*steps):
    """Return steps for the cities in a ColumnTransformer with other columns."""
    return make_column_transformer((make_pipeline(*steps), ["city"]), (StandardScaler(), ["size"]))


@pytest.mark.parametrize(
    ("steps", "behind"),
    [
        ([IDS, StandardScaler()], "standardscaler"),
        ([IDS, "passthrough", SimpleImputer(), StandardScaler()], "simpleimputer"),
        ([of_columns(ENCODER, SimpleImputer())], "simpleimputer"),
        ([of_columns(ORDERED), SimpleImputer()], "simpleimputer"),
    ],
)
def test_a_step_behind_the_encoder_that_makes_numbers_of_ids_is_named(table, steps, behind):
    match = (
        f"^TabularNetwork: the step '{behind}' behind an OrdinalEncoder makes numbers of its ids"
    )
    network = TabularNetwork((5,))
    model = OrtSGDRegressor(make_pipeline(*steps, network), max_iter=1, tol=None, random_state=0)
    with pytest.warns(UserWarning, match=match):
        model.fit(*table)
    assert "embeddings" not in model.weights_
    # Warnings are errors.
    model.set_params(estimator__tabularnetwork__embeddings=None).fit(*table)


@pytest.mark.parametrize(
    ("steps", "has_ids"),
    [
        ([IDS, "passthrough"], True),
        ([of_columns(SimpleImputer(strategy="most_frequent"), ENCODER)], True),
        # They are to be numbers, or columns of another encoder.
        ([of_columns(ORDERED, StandardScaler())], False),
        ([of_columns(ENCODER, OneHotEncoder())], False),
        ([of_columns(ENCODER), make_column_transformer((OneHotEncoder(), [0]))], False),
    ],
)
def test_steps_that_leave_ids_or_take_them_for_their_own_are_not_named(table, steps, has_ids):
    # Warnings are errors.
    network = TabularNetwork((5,))
    model = OrtSGDRegressor(make_pipeline(*steps, network), max_iter=1, tol=None, random_state=0)
    assert ("embeddings" in model.fit(*table).weights_) == has_ids


def test_the_step_behind_ids_is_found_in_frozen_steps(table):
    frozen = FrozenEstimator(clone(IDS).fit(table[0]))
    assert step_behind_ids(frozen) == ""
    fitted = make_pipeline(frozen, StandardScaler()).fit(*table)
    assert step_behind_ids(fitted) == step_behind_ids(FrozenEstimator(fitted)) == "standardscaler"


def test_it_has_no_scikit_learn_model(table):
    model = regressor(max_iter=2, tol=None).fit(*table)
    told = "TabularNetwork cannot be returned as a scikit-learn .* partial_fit trains it on new"
    with pytest.raises(ValueError, match=told):
        model.to_sklearn()
    with pytest.raises(NotTrainableError, match="TabularNetwork is a class"):
        OrtSGDRegressor(TabularNetwork).fit([[0.0], [1.0]], [0.0, 1.0])


def test_errors_say_what_trains_it_and_which_parameters_it_has():
    with pytest.raises(AttributeError, match=r"OrtSGDRegressor\(network\) or .* trains it\.$"):
        TabularNetwork().fit([[1.0]], [1.0])
    with pytest.raises(AttributeError, match=r"no attribute 'coefs_': OrtSGD.* trains it\.$"):
        TabularNetwork().coefs_  # noqa: B018
    assert not hasattr(TabularNetwork, "load") and "load" not in dir(TabularNetwork())
    for each in (TabularNetwork, TabularNetwork()):
        with pytest.raises(
            AttributeError, match=r"trains it, and pickle or joblib read the trained"
        ):
            each.load  # noqa: B018
    with pytest.raises(
        TypeError,
        match=r"Did you mean hidden\? Its parameters are activation, dropout, embeddings, hidden, num",
    ):
        TabularNetwork(hidden_layer_sizes=(5,))
    with pytest.raises(TypeError, match=r"'activaton'\. Did you mean activation\?"):
        TabularNetwork(activaton="tanh")
    with pytest.raises(ValueError, match=r"Did you mean estimator__dropout\?$"):
        OrtSGDRegressor(TabularNetwork()).set_params(estimator__dropout_rate=0.1)
    path = "estimator__tabularnetwork__hidden"
    for given in ("estimator__hidden_layer_sizes", f"{path}_layer_sizes"):
        with pytest.raises(ValueError, match=rf"Did you mean {path}\?$"):
            regressor().set_params(**{given: (5,)})


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "frozen",
    [
        FrozenEstimator(TabularNetwork((5,))),
        FrozenEstimator(make_pipeline(StandardScaler().fit(np.eye(3)), TabularNetwork((5,)))),
        make_pipeline(FrozenEstimator(TabularNetwork((5,)))),
    ],
)
def test_a_frozen_network_without_weights_is_refused(frozen, method):
    told = "a TabularNetwork holds no weights that a FrozenEstimator could keep. Freeze the fitted"
    with pytest.raises((ValueError, AttributeError), match=told):
        getattr(OrtSGDRegressor(frozen), method)(np.eye(3), [1.0, 2.0, 3.0])


def test_a_fit_around_a_frozen_one_goes_on_from_its_weights_and_around_the_network_begins_anew(
    table,
):
    X, y = table[0][["size", "age"]].to_numpy(), table[1]
    network = TabularNetwork((9,))
    model = OrtSGDRegressor(network, random_state=0).fit(X, y)
    options = {"eta0": 1e-9, "max_iter": 1, "early_stopping": False, "random_state": 0}
    onward = OrtSGDRegressor(FrozenEstimator(model), **options).fit(X, y)
    np.testing.assert_allclose(onward.predict(X), model.predict(X), rtol=1e-4, atol=1e-4)
    assert onward.plan_.decisions["weights"].value == "fitted ones"
    with pytest.warns(ConvergenceWarning, match="not clearly better than a constant"):
        anew = OrtSGDRegressor(network, **options).fit(X, y)
    assert anew.score(X, y) < 0.1 < 0.3 < model.score(X, y)


def test_a_frozen_one_goes_on_with_its_encoder_and_its_embeddings(table, run_onnx):
    X, y = table
    model = regressor(TabularNetwork((15,))).fit(X, y)
    still = {"eta0": 1e-12, "max_iter": 1, "early_stopping": False, "random_state": 0}
    same = OrtSGDRegressor(FrozenEstimator(model), **still).fit(X, y)
    np.testing.assert_allclose(same.predict(X), model.predict(X), rtol=1e-4, atol=1e-4)

    # New rows lack a city, and have another one: the encoder and the embeddings are the old ones.
    new = (X["city"] != "Rome").to_numpy()
    later = X.replace({"city": {"Rome": "Paris"}})
    changed = y + 3 * (X["city"] == "Bern")
    tuned = OrtSGDRegressor(FrozenEstimator(model), random_state=0)
    tuned.fit(X[new], changed[new], X_val=X[new], y_val=changed[new])
    assert tuned.plan_.decisions["weights"].value == "fitted ones"
    embeddings = tuned.weights_["OrtSGDRegressor/embeddings"]
    assert embeddings.shape == model.weights_["embeddings"].shape
    error = np.mean((tuned.predict(X) - changed)[new] ** 2)
    assert error < 0.2 * np.mean((model.predict(X) - changed)[new] ** 2)
    (scores,) = run_onnx(tuned.to_onnx(), **inputs(later)).values()
    np.testing.assert_allclose(scores.ravel(), tuned.predict(later), rtol=1e-4, atol=1e-4)


def test_a_warm_start_keeps_the_categories_that_are_named(table):
    X, y = table
    names = [["Bern", "Oslo", "Rome"], ["a", "b"]]
    onward = regressor(warm_start=True).set_params(
        estimator__columntransformer__ordinalencoder__categories=names
    )
    onward.fit(X, y).set_params(eta0=1e-9, max_iter=1)
    before = onward.predict(X)
    onward.fit(X[X["city"] != "Bern"], y[X["city"] != "Bern"])
    np.testing.assert_allclose(onward.predict(X), before, rtol=1e-3, atol=1e-3)


def test_ids_have_no_scale_that_a_stream_could_leave():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"shop": np.arange(N) % 61, "size": rng.normal(size=N)})
    y = X["size"] + (X["shop"] > 30)
    ids = make_column_transformer((OrdinalEncoder(), ["shop"]), remainder="passthrough")
    model = OrtSGDRegressor(make_pipeline(ids, SMALL), random_state=0).fit(X, y)

    # A warning would be an error.
    model.partial_fit(X, y)

    with pytest.warns(UserWarning, match="column 'remainder__size' of the transformed X is"):
        model.partial_fit(X.assign(size=X["size"] + 30), y)
